//! Pixel kernels: one folder a stage, `scalar.rs` the oracle, SIMD leaves byte-equal to it.
//!
//! Rows are interleaved 8-bit channels. `mod.rs` of a stage chooses the leaf by [`crate::Level`]
//! and checks what its leaves rely on.

pub mod color;
pub mod gather;
pub mod horizontal;
#[cfg(target_arch = "x86_64")]
mod lanes;
pub mod luma;
pub mod sums;
pub mod vertical;
pub mod write;
