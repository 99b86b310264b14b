//! NVIDIA GPUs as decoders and renderer; driver, nvJPEG and NVRTC are found at run time.
//!
//! One build serves every machine: nothing of CUDA is linked, and nothing is loaded before
//! somebody asks for a device. To read: [`find`] (where libraries lie), [`driver`], [`nvrtc`] and
//! [`cache`] (kernels), [`nvjpeg`], [`report`]; then [`pack`] (plans as the kernels read them),
//! `pool`, `lent`, `pixels` and `upload` (memory), `hardware` and `decoder` (the JPEG engines and the cores as decoders), `renderer`,
//! `backend` (all of it on one device).
//!
//! **Invariants**
//! - LIF-2: loading a library creates no context. [`driver::Device::open`] retains the device's
//!   primary context, the one that torch uses, and no other is ever made.
//! - A missing library, and one that lacks a function, is an [`Error`] and never a panic.
//! - L9: the environment is Python's to read; folders come as values.
//! - MEM-2: memory that torch lent is written after the stream that it was allocated on has come to
//!   its allocation, read after our last write, and given back to torch after it.

mod backend;
pub mod cache;
mod decoder;
pub mod driver;
mod error;
pub mod find;
mod hardware;
mod kernels;
mod lent;
mod library;
pub mod nvjpeg;
pub mod nvrtc;
pub mod pack;
mod pixels;
mod pool;
mod renderer;
pub mod report;
mod upload;

pub use backend::{Backend, Options};
pub use decoder::CudaDecoder;
pub use error::Error;
pub use hardware::HardwareDecoder;
pub use lent::Lent;
pub use renderer::CudaRenderer;
