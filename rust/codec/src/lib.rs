//! CPU decoders and renderer: encoded bytes to pixels, pixels to the elements of a slot.
//!
//! Invariants that this crate keeps: decoded pixels equal libjpeg-turbo's, also for a region
//! (PIX-1); resampling equals torchvision v2 on uint8 within 1 (PIX-2); a file's verdict does not
//! depend on the region (ERR-2); the stop flag is looked at every band of rows (LIF-1); backends are
//! pure functions of their inputs and start no threads.

mod backend;
mod channels;
mod decode;
mod decoder;
mod error;
mod jpeg;
mod mix;
pub mod pixel;
mod probe;
mod render;
pub mod simd;
mod whole;

pub use backend::CpuBackend;
pub use channels::{Image, decode_as};
pub use decode::{
    CHANNELS, Mode, Options, Pixels, decode_into, decode_region_into, decoded_size, render_into,
};
pub use decoder::PixelDecoder;
pub use error::Error;
pub use jpeg::version as jpeg_version;
pub use probe::{probe, transparent};
pub use simd::Level;
