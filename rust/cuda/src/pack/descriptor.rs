//! What the kernels read: `cpp/kernels/render.h`, field by field.
//!
//! `IntoBytes` refuses padding, so every byte of a descriptor is a field's.

use std::mem::{offset_of, size_of};
use zerocopy::{Immutable, IntoBytes};

/// Threads of a block.
pub(super) const BLOCK: u32 = 256;
/// An offset that stands for "no sum".
pub(super) const NO_SUM: u64 = u64::MAX;

pub(super) mod axis_kind {
    pub(in crate::pack) const RUN: u32 = 0;
    pub(in crate::pack) const LIST: u32 = 1;
    pub(in crate::pack) const WEIGHTED: u32 = 2;
}

pub(super) mod upsampling {
    pub(in crate::pack) const NONE: u32 = 0;
    pub(in crate::pack) const REPLICATE: u32 = 1;
    pub(in crate::pack) const H2V1: u32 = 2;
    pub(in crate::pack) const H1V2: u32 = 3;
    pub(in crate::pack) const H2V2: u32 = 4;
}

pub(super) mod source_kind {
    pub(in crate::pack) const RGB: u32 = 0;
    pub(in crate::pack) const GRAY: u32 = 1;
    pub(in crate::pack) const RGBX: u32 = 2;
    pub(in crate::pack) const YCBCR: u32 = 3;
    pub(in crate::pack) const PLANAR: u32 = 4;
}

pub(super) mod layout {
    pub(in crate::pack) const CONTIGUOUS: u32 = 0;
    pub(in crate::pack) const CHANNELS_LAST: u32 = 1;
}

pub(super) mod color_kind {
    pub(in crate::pack) const BRIGHTNESS: u32 = 0;
    pub(in crate::pack) const CONTRAST: u32 = 1;
    pub(in crate::pack) const SATURATION: u32 = 2;
    pub(in crate::pack) const HUE: u32 = 3;
    pub(in crate::pack) const GRAYSCALE: u32 = 4;
    pub(in crate::pack) const SOLARIZE: u32 = 5;
    pub(in crate::pack) const POSTERIZE: u32 = 6;
    pub(in crate::pack) const PERMUTE: u32 = 7;
    pub(in crate::pack) const TABLES: u32 = 8;
}

pub(super) mod gather_kind {
    pub(in crate::pack) const NEAREST: u32 = 0;
    pub(in crate::pack) const BILINEAR: u32 = 1;
    pub(in crate::pack) const SHARPEN: u32 = 2;
}

/// Words of 32 slots each.
pub(super) const MIX_WORDS: usize = 896;

pub(super) mod mix_kind {
    pub(in crate::pack) const BLEND_FLOAT32: u32 = 0;
    pub(in crate::pack) const BLEND_FLOAT16: u32 = 1;
    pub(in crate::pack) const BLEND_BFLOAT16: u32 = 2;
    pub(in crate::pack) const PASTE_1: u32 = 3;
    pub(in crate::pack) const PASTE_2: u32 = 4;
    pub(in crate::pack) const PASTE_4: u32 = 5;
}

pub(super) mod levels_kind {
    pub(in crate::pack) const AUTOCONTRAST: u32 = 0;
    pub(in crate::pack) const EQUALIZE: u32 = 1;
}

#[derive(Debug, Clone, Copy, IntoBytes, Immutable)]
#[repr(C)]
pub(super) struct Span {
    pub(super) start: u32,
    pub(super) count: u32,
}

#[derive(Debug, Clone, Copy, Default, IntoBytes, Immutable)]
#[repr(C)]
pub(super) struct Axis {
    pub(super) table: u64,
    pub(super) weights: u64,
    pub(super) kind: u32,
    pub(super) out_len: u32,
    pub(super) content_start: u32,
    pub(super) content_len: u32,
    pub(super) first: u32,
    pub(super) step: i32,
    pub(super) precision: u32,
    pub(super) reserved: u32,
}

#[derive(Debug, Clone, Copy, Default, IntoBytes, Immutable)]
#[repr(C)]
pub(super) struct Plane {
    pub(super) address: u64,
    pub(super) pitch: u32,
    pub(super) upsampling: u32,
    pub(super) expand_x: u32,
    pub(super) expand_y: u32,
    pub(super) left: i32,
    pub(super) right: i32,
    pub(super) top: i32,
    pub(super) bottom: i32,
}

#[derive(Debug, Clone, Copy, Default, IntoBytes, Immutable)]
#[repr(C)]
pub(super) struct Source {
    pub(super) kind: u32,
    pub(super) transpose: u32,
    pub(super) origin_x: i32,
    pub(super) origin_y: i32,
    pub(super) planes: [Plane; 3],
}

#[derive(Debug, Clone, Copy, Default, IntoBytes, Immutable)]
#[repr(C)]
pub(super) struct Output {
    pub(super) address: u64,
    pub(super) table: u64,
    pub(super) element_bytes: u32,
    pub(super) channels: u32,
    pub(super) layout: u32,
    pub(super) reserved: u32,
}

#[derive(Debug, Clone, Copy, IntoBytes, Immutable)]
#[repr(C)]
pub(super) struct ColorOp {
    pub(super) kind: u32,
    pub(super) factor: f32,
    pub(super) complement: f32,
}

#[derive(Debug, Clone, Copy, IntoBytes, Immutable)]
#[repr(C)]
pub(super) struct Job {
    pub(super) source: Source,
    pub(super) x: Axis,
    pub(super) y: Axis,
    pub(super) output: Output,
    pub(super) across: u64,
    pub(super) across_top: u32,
    pub(super) across_rows: u32,
    pub(super) color: u64,
    pub(super) color_ops: u32,
    pub(super) fill: u32,
    pub(super) sum: u64,
    pub(super) mean_sum: u64,
    pub(super) mean_pixels: u32,
    pub(super) reserved: u32,
    pub(super) histogram: u64,
    pub(super) tables: u64,
    pub(super) gather: u64,
}

#[derive(Debug, Clone, Copy, Default, IntoBytes, Immutable)]
#[repr(C)]
pub(super) struct Gather {
    pub(super) kind: u32,
    pub(super) projects: u32,
    pub(super) fills: u32,
    pub(super) fill: u32,
    pub(super) width: u32,
    pub(super) height: u32,
    pub(super) blur: f32,
    pub(super) reserved: u32,
    pub(super) origin: [f32; 2],
    pub(super) rows: [[f32; 3]; 2],
    pub(super) projection: [f32; 2],
}

#[derive(Debug, Clone, Copy, IntoBytes, Immutable)]
#[repr(C)]
pub(super) struct Levels {
    pub(super) histogram: u64,
    pub(super) tables: u64,
    pub(super) kind: u32,
    pub(super) reserved: u32,
}

#[derive(Debug, Clone, Copy, IntoBytes, Immutable)]
#[repr(C)]
pub(super) struct Layer {
    pub(super) image: u64,
    pub(super) weight: f32,
    pub(super) reserved: u32,
}

#[derive(Debug, Clone, Copy, IntoBytes, Immutable)]
#[repr(C)]
pub(super) struct Mixture {
    pub(super) base: u64,
    pub(super) out: u64,
    pub(super) layers: u64,
    pub(super) count: u32,
    pub(super) pixels: u32,
    pub(super) weight: f32,
    pub(super) reserved: u32,
}

#[derive(Debug, Clone, Copy, IntoBytes, Immutable)]
#[repr(C)]
pub(super) struct Erasure {
    pub(super) address: u64,
    pub(super) element_bytes: u32,
    pub(super) layout: u32,
    pub(super) out_width: u32,
    pub(super) out_height: u32,
    pub(super) x: u32,
    pub(super) y: u32,
    pub(super) width: u32,
    pub(super) height: u32,
    pub(super) channels: u32,
    pub(super) values: [u32; 3],
    pub(super) noise: u64,
    pub(super) key: [u32; 2],
}

#[derive(Debug, Clone, Copy, IntoBytes, Immutable)]
#[repr(C)]
pub(super) struct Blocks {
    pub(super) coefficients: u64,
    pub(super) samples: u64,
    pub(super) across: u32,
    pub(super) down: u32,
    pub(super) pitch: u32,
    pub(super) reserved: u32,
    pub(super) quantisation: [u16; 64],
}

#[derive(Debug, Clone, Copy, IntoBytes, Immutable)]
#[repr(C)]
pub(crate) struct Mixing {
    pub(super) address: u64,
    pub(super) pitch: u64,
    pub(super) count: u64,
    pub(super) slots: u32,
    pub(super) kind: u32,
    pub(super) image: f32,
    pub(super) other: f32,
    pub(super) line: u32,
    pub(super) height: u32,
    pub(super) left: u32,
    pub(super) run: u32,
    pub(super) top: u32,
    pub(super) rows: u32,
    pub(super) taken: [u32; MIX_WORDS],
}

const _: () = {
    assert!(size_of::<Mixing>() == 3648 && offset_of!(Mixing, taken) == 64);
    assert!(size_of::<Erasure>() == 72 && offset_of!(Erasure, noise) == 56);
    assert!(size_of::<Blocks>() == 160 && offset_of!(Blocks, quantisation) == 32);
    assert!(size_of::<Span>() == 8 && size_of::<Axis>() == 48 && size_of::<Plane>() == 40);
    assert!(size_of::<Source>() == 136 && size_of::<Output>() == 32);
    assert!(size_of::<ColorOp>() == 12 && size_of::<Job>() == 344);
    assert!(size_of::<Gather>() == 72 && offset_of!(Gather, origin) == 32);
    assert!(offset_of!(Job, gather) == 336);
    assert!(offset_of!(Source, planes) == 16 && offset_of!(Plane, left) == 24);
    assert!(offset_of!(Job, x) == 136 && offset_of!(Job, y) == 184);
    assert!(offset_of!(Job, output) == 232 && offset_of!(Job, across) == 264);
    assert!(offset_of!(Job, color) == 280 && offset_of!(Job, sum) == 296);
    assert!(offset_of!(Job, mean_pixels) == 312 && offset_of!(Job, histogram) == 320);
    assert!(size_of::<Levels>() == 24);
    assert!(size_of::<Layer>() == 16 && size_of::<Mixture>() == 40);
};
