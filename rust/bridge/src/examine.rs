//! What one file holds, for `forebay check` and `forebay stats`.

use crate::guard::Error;
use crate::pipeline::to_json;
use forebay_codec::pixel::sums::{Sums, sums};
use forebay_codec::{Options, decode_into, decoded_size, probe, transparent};
use forebay_core::ports::Fault;
use forebay_core::{ErrorKind, Layout, Limits, Orientation};
use forebay_source::read_file;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

#[derive(serde::Serialize)]
struct Report {
    format: String,
    bytes: usize,
    width: u32,
    height: u32,
    components: u8,
    /// An alpha channel, or transparent entries of a palette.
    alpha: bool,
    progressive: bool,
    /// The pixels are stored turned or mirrored.
    oriented: bool,
    /// Damage that left every row present.
    warnings: u32,
    /// Per channel: sum of the 8-bit values, and of their squares.
    sums: Sums,
}

#[derive(serde::Serialize)]
#[serde(untagged)]
enum Examined {
    Good(Report),
    Bad { stage: &'static str, reason: String },
}

/// Reads and decodes the file at `path` whole; JSON either way, as a bad file is a finding.
pub(crate) fn examine_file(path: &[u8], max_pixels: u64) -> Result<String, Error> {
    let limits = Limits { max_pixels, ..Limits::default() };
    let examined = match examine(Path::new(OsStr::from_bytes(path)), &limits) {
        Ok(report) => Examined::Good(report),
        Err(Fault { stage, reason }) => Examined::Bad { stage: stage.name(), reason },
    };
    to_json(&examined)
}

fn examine(path: &Path, limits: &Limits) -> Result<Report, Fault> {
    let bytes = read_file(path)?;
    let meta = probe(&bytes, limits)?;
    let options = Options { layout: Layout::ChannelsLast, apply_orientation: false, to_end: true };
    let size = decoded_size(&meta, &options);
    let mut pixels = crate::ops::zeros(1, 3, size, 1)
        .map_err(|error| Fault::new(forebay_core::ports::Stage::Decode, error))?;
    let warnings = decode_into(&bytes, &meta, &options, limits, &mut pixels)?;
    Ok(Report {
        format: meta.format.name().to_lowercase(),
        bytes: bytes.len(),
        width: meta.size.width,
        height: meta.size.height,
        components: meta.components,
        alpha: transparent(&bytes, &meta),
        progressive: meta.progressive,
        oriented: meta.orientation != Orientation::default(),
        warnings,
        sums: sums(&pixels),
    })
}

/// The limit as Python gives it.
pub(crate) fn max_pixels(limit: i64) -> Result<u64, Error> {
    let wrong = || Error::new(ErrorKind::Invalid, format!("max_pixels must be >= 1, got {limit}"));
    u64::try_from(limit).ok().filter(|&limit| limit > 0).ok_or_else(wrong)
}
