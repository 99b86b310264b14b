//! Functions without a pipeline.

use crate::ffi::TensorOut;
use crate::guard::Error;
use crate::pipeline::to_json;
use crate::{ops, options};
use forebay_codec::Level;
use forebay_core::ports::Fault;
use forebay_core::{ErrorKind, Field, Recipe, Schema};
use forebay_cuda::find::Places;
use forebay_source::read_file;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

pub(crate) fn decode_image(
    encoded: &[u8],
    mode: &str,
    orientation: &str,
) -> Result<TensorOut, Error> {
    let (mode, apply_orientation) = (ops::parse_mode(mode)?, ops::parse_orientation(orientation)?);
    ops::decode(encoded, mode, apply_orientation)
}

/// What a pipeline would say of a recipe for images, when it is opened.
pub(crate) fn check_recipe(json: &str) -> Result<(), Error> {
    let schema = Schema { fields: vec![Field::image("image")] };
    Ok(Recipe::new(options::parse("recipe", json)?, &schema, true).map(drop)?)
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

pub(crate) fn cuda_report(
    folders: Vec<String>,
    cuda_major: i64,
    kernels: &str,
) -> Result<String, Error> {
    let places = places(folders, cuda_major);
    to_json(&forebay_cuda::report::report(&places, Path::new(kernels)))
}

/// A `cuda_major` of 0 stands for none.
pub(crate) fn places(folders: Vec<String>, cuda_major: i64) -> Places {
    let folders = folders.into_iter().map(Into::into).collect();
    let cuda_major = u32::try_from(cuda_major).ok().filter(|&major| major != 0);
    Places { folders, cuda_major }
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
