//! NVIDIA GPUs as decoders and renderer; driver, nvJPEG and NVRTC are found at run time.
//!
//! One build serves every machine: nothing of CUDA is linked, and nothing is loaded before
//! somebody asks for a device. To read: [`find`] (where libraries lie), [`driver`], [`nvrtc`] and
//! [`cache`] (kernels), [`nvjpeg`], [`report`].
//!
//! **Invariants**
//! - LIF-2: loading a library creates no context. [`driver::Device::open`] retains the device's
//!   primary context, the one that torch uses, and no other is ever made.
//! - A missing library, and one that lacks a function, is an [`Error`] and never a panic.
//! - L9: the environment is Python's to read; folders come as values.

pub mod cache;
pub mod driver;
mod error;
pub mod find;
mod library;
pub mod nvjpeg;
pub mod nvrtc;
pub mod pack;
pub mod report;

pub use error::Error;
