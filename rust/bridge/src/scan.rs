//! Scans of folders, started and polled so that Ctrl-C works while a million files are listed.

use crate::guard::{Error, guard};
use crate::handles::Table;
use crate::pipeline::to_json;
use crate::tensors::{self, Poll};
use forebay_core::ErrorKind;
use forebay_engine::Background;
use forebay_source::{FolderScan, scan_folder};
use std::path::Path;
use std::time::Duration;

/// A scan that runs in a thread of the engine's.
pub(crate) type Scan = Background<Result<FolderScan, Error>>;

pub(crate) static SCANS: Table<Scan> = Table::new("scan");

pub(crate) fn start(root: &str, extensions: Vec<String>) -> Result<Scan, Error> {
    let root = Path::new(root).to_owned();
    Ok(Background::start("forebay-scan", move |stop| {
        guard(|| Ok(scan_folder(&root, &extensions, stop)?))
    })?)
}

#[derive(serde::Serialize)]
struct ScanInfo<'a> {
    classes: &'a [String],
    empty: &'a [String],
}

pub(crate) fn poll(scan: &Scan, timeout_ms: u64) -> Result<Poll, Error> {
    let Some(result) = scan.wait(Duration::from_millis(timeout_ms)) else {
        return Ok(Poll::default());
    };
    let Some(result) = result else {
        return Err(Error::new(ErrorKind::Closed, "the scan's result was taken already"));
    };
    let found = result?;
    let info = to_json(&ScanInfo { classes: &found.classes, empty: &found.empty })?;
    let bytes = found.names.bytes().to_vec();
    let len = i64::try_from(bytes.len()).map_err(|error| Error::new(ErrorKind::Memory, error))?;
    let tensors = vec![
        tensors::from_bytes(bytes, crate::ffi::DType::UInt8, vec![len]),
        tensors::vector(found.names.offsets().iter().map(|&at| at.cast_signed()).collect()),
        tensors::vector(found.labels),
    ];
    Ok(Poll::new(info, tensors))
}
