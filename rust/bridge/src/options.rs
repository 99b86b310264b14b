//! Options of a pipeline as Python sends them: JSON, parsed strictly.

use crate::guard::Error;
use forebay_core::ErrorKind;
use forebay_core::order::LastBatch;
use forebay_cuda::find::Places;
use serde::Deserialize;
use serde_json::value::RawValue;
use std::path::PathBuf;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Options {
    pub(crate) source: SourceOptions,
    /// A `RecipeSpec`, kept as text because its text is part of the fingerprint.
    pub(crate) recipe: Box<RawValue>,
    pub(crate) decode: DecodeOptions,
    pub(crate) engine: EngineOptions,
    pub(crate) feed: FeedOptions,
    /// Where images are delivered to; the host if it is not there.
    pub(crate) device: Option<DeviceOptions>,
}

/// A device and what of it is used.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct DeviceOptions {
    /// As torch counts.
    pub(crate) ordinal: u32,
    /// Folders in which libraries may lie.
    pub(crate) folders: Vec<PathBuf>,
    /// torch's CUDA.
    pub(crate) cuda_major: Option<u32>,
    /// Where compiled kernels are kept.
    pub(crate) kernels: PathBuf,
    pub(crate) decoders: DecoderOptions,
}

/// What a decoder beside the CPU's threads gets.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct DecoderOptions {
    /// The JPEG engines.
    pub(crate) hardware: Use,
    /// The device's cores.
    pub(crate) cuda: Use,
}

/// How far a decoder is used.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Use {
    Never,
    /// When it is free.
    Free,
    /// For this part of the images that it can decode.
    Share(f64),
}

impl DecoderOptions {
    pub(crate) fn of(self, name: &str) -> Use {
        match name {
            "hardware" => self.hardware,
            "cuda" => self.cuda,
            _ => Use::Free,
        }
    }
}

impl From<&DeviceOptions> for forebay_cuda::Options {
    fn from(options: &DeviceOptions) -> Self {
        let DeviceOptions { ordinal, folders, cuda_major, kernels, .. } = options;
        let places = Places { folders: folders.clone(), cuda_major: *cuda_major };
        Self { places, kernels: kernels.clone(), ..Self::new(*ordinal) }
    }
}

#[derive(Debug, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase", deny_unknown_fields)]
pub(crate) enum SourceOptions {
    /// Files by name; names and labels come as tensors beside the options.
    List { root: String },
    /// Samples that Python supplies on request.
    Pushed { len: Option<u64>, fingerprint: u64 },
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct DecodeOptions {
    pub(crate) orientation: Orientation,
    pub(crate) max_pixels: u64,
    pub(crate) truncated: Truncated,
    pub(crate) fidelity: Fidelity,
}

/// How exact pixels are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Fidelity {
    Full,
    Fast,
}

/// What is done about the EXIF orientation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Orientation {
    Apply,
    Ignore,
}

/// What is done about files that end early.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Truncated {
    Error,
    Accept,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct EngineOptions {
    pub(crate) workers: usize,
    pub(crate) depth: usize,
    pub(crate) memory_budget: u64,
    pub(crate) on_error: OnError,
    pub(crate) max_errors: Option<u64>,
    /// Processors that the threads stay on.
    pub(crate) cpus: Option<Vec<u32>>,
    /// Ranges for profilers that speak NVTX.
    pub(crate) ranges: bool,
}

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum OnError {
    Raise,
    Skip,
    Replace,
}

#[derive(Debug, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase", deny_unknown_fields)]
pub(crate) enum FeedOptions {
    /// A built-in sampler.
    Ordered {
        seed: u64,
        shuffle: bool,
        batch_size: u64,
        rank: u64,
        world_size: u64,
        last_batch: LastBatch,
    },
    /// Batches of indices from Python.
    Pushed { seed: u64, shard: u64, shards: u64 },
}

/// Parses JSON; an error names the path of the wrong field.
pub(crate) fn parse<'a, T: Deserialize<'a>>(what: &str, json: &'a str) -> Result<T, Error> {
    let mut deserializer = serde_json::Deserializer::from_str(json);
    serde_path_to_error::deserialize(&mut deserializer).map_err(|error| {
        let path = error.path().to_string();
        Error::new(ErrorKind::Invalid, format!("{what}: {path}: {}", error.into_inner()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use forebay_core::RecipeSpec;

    #[test]
    fn errors_name_the_field() {
        let json = r#"{"transforms": [{"name": "Normalize", "mean": [0, 0, 0], "std": [1, 1]}]}"#;
        let error = parse::<RecipeSpec>("recipe", json).unwrap_err().to_string();
        assert!(error.starts_with("V:recipe: transforms[0]"), "{error}");
        let json = r#"{"kind": "list", "root": "", "surplus": 1}"#;
        let error = parse::<SourceOptions>("source", json).unwrap_err().to_string();
        assert!(error.contains("surplus"), "{error}");
    }
}
