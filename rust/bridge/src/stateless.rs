//! Functions without a pipeline.

use crate::ffi::{DType, TensorOut};
use crate::guard::Error;
use crate::pipeline::to_json;
use crate::tensors;
use forebay_codec::{Level, Mode, Options, decode_into, decoded_size, probe};
use forebay_core::ports::Fault;
use forebay_core::{ErrorKind, Limits};
use forebay_source::read_file;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

pub(crate) fn decode_image(
    encoded: &[u8],
    mode: &str,
    orientation: &str,
) -> Result<TensorOut, Error> {
    let wrong = |message: String| Error::new(ErrorKind::Invalid, message);
    let mode = match mode {
        "RGB" => Mode::Rgb,
        other => return Err(wrong(format!("mode must be \"RGB\", got {other:?}"))),
    };
    let apply_orientation = match orientation {
        "apply" => true,
        "ignore" => false,
        other => {
            let message = format!("orientation must be \"apply\" or \"ignore\", got {other:?}");
            return Err(wrong(message));
        }
    };
    let limits = Limits::default();
    let options = Options { mode, apply_orientation, ..Options::default() };
    let meta = probe(encoded, &limits)?;
    let size = decoded_size(&meta, &options);
    let channels = usize::from(mode.channels());
    let bytes = usize::try_from(size.pixels()).ok().and_then(|pixels| pixels.checked_mul(channels));
    let bytes = bytes.ok_or_else(|| Error::new(ErrorKind::Memory, "the image is too large"))?;
    let mut pixels = vec![0; bytes];
    decode_into(encoded, &meta, &options, &limits, &mut pixels)?;
    let sizes = [u32::from(mode.channels()), size.height, size.width];
    Ok(tensors::from_bytes(pixels, DType::UInt8, sizes.map(i64::from).to_vec()))
}

pub(crate) fn system_info() -> Result<String, Error> {
    to_json(&serde_json::json!({
        "version": env!("CARGO_PKG_VERSION"),
        "simd": Level::best().name(),
        "simd_available": Level::available().iter().map(|level| level.name()).collect::<Vec<_>>(),
        "jpeg": forebay_codec::jpeg_version(),
        "state_version": forebay_core::state::VERSION,
    }))
}

/// An error of the kind with the given number, for tests of the way that errors take.
pub(crate) fn raise(kind: i64) -> Result<(), Error> {
    let known = usize::try_from(kind).ok().and_then(|kind| ErrorKind::ALL.get(kind));
    match known {
        Some(kind) => Err(Error::new(*kind, format!("raised on request: {kind:?}"))),
        None => Err(Error::new(ErrorKind::Range, format!("there is no kind {kind}"))),
    }
}

pub(crate) fn read_path(path: &[u8]) -> Result<Vec<u8>, Fault> {
    read_file(Path::new(OsStr::from_bytes(path)))
}
