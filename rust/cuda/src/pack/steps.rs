//! Single steps as the kernels read them.

use super::descriptor::{self, color_kind, gather_kind, layout};
use super::{RenderItem, write};
use forebay_core::{Blend, ColorOp, Erase, Fill, Gather, Layout, Region, Size, Warp, Write};

pub(super) fn channels_of(write: &Write) -> u32 {
    u32::try_from(write.channels.count()).expect("at most 3")
}

pub(super) fn layout_of(write: &Write) -> u32 {
    match write.layout {
        Layout::Contiguous => layout::CONTIGUOUS,
        Layout::ChannelsLast => layout::CHANNELS_LAST,
    }
}

/// What a pass makes of an input of a size first.
pub(super) fn describe(gather: &Gather, input: Size) -> descriptor::Gather {
    let described =
        descriptor::Gather { width: input.width, height: input.height, ..Default::default() };
    match *gather {
        Gather::Sharpen { blur } => {
            descriptor::Gather { kind: gather_kind::SHARPEN, blur, ..described }
        }
        Gather::Warp(Warp { size: _, origin, rows, projection, bilinear, fill }) => {
            let [red, green, blue] = fill.unwrap_or_default();
            descriptor::Gather {
                kind: if bilinear { gather_kind::BILINEAR } else { gather_kind::NEAREST },
                projects: projection.is_some().into(),
                fills: fill.is_some().into(),
                fill: u32::from_le_bytes([red, green, blue, 0]),
                origin,
                rows,
                projection: projection.unwrap_or_default(),
                ..described
            }
        }
    }
}

/// `noise` is the offset of the elements of noise that the part holds.
pub(super) fn erasure(item: &RenderItem<'_>, erase: &Erase, noise: u64) -> descriptor::Erasure {
    let (value, key) = match erase.fill {
        Fill::Value(value) => (value, [0; 2]),
        Fill::Noise { key, .. } => ([0.0; 3], key),
    };
    let write = &item.plan.write;
    let out = item.plan.passes.last().expect("checked").size();
    let Region { x, y, width, height } = erase.region;
    descriptor::Erasure {
        address: item.slot,
        element_bytes: u32::try_from(write.dtype.size()).expect("at most 4"),
        layout: layout_of(write),
        out_width: out.width,
        out_height: out.height,
        x,
        y,
        width,
        height,
        channels: channels_of(write),
        values: value.map(|value| write::element(write.dtype, value)),
        noise,
        key,
    }
}

pub(super) fn color_op(op: ColorOp) -> descriptor::ColorOp {
    let blend = |kind, Blend { image, other }| descriptor::ColorOp {
        kind,
        factor: image,
        complement: other,
    };
    let (kind, factor) = match op {
        ColorOp::Brightness(factor) => (color_kind::BRIGHTNESS, factor),
        ColorOp::Contrast(weights) => return blend(color_kind::CONTRAST, weights),
        ColorOp::Saturation(weights) => return blend(color_kind::SATURATION, weights),
        ColorOp::Hue(turns) => (color_kind::HUE, turns),
        ColorOp::Grayscale => (color_kind::GRAYSCALE, 0.0),
        // From above the largest value on nothing is inverted, from 0 on everything.
        ColorOp::Invert => (color_kind::SOLARIZE, 0.0),
        ColorOp::Solarize(from) => (color_kind::SOLARIZE, from),
        ColorOp::Posterize(bits) => (color_kind::POSTERIZE, f32::from(bits)),
        ColorOp::Autocontrast | ColorOp::Equalize => (color_kind::TABLES, 0.0),
        ColorOp::Permute([red, green, blue]) => {
            // Two bits for each.
            (color_kind::PERMUTE, f32::from(red | green << 2 | blue << 4))
        }
    };
    descriptor::ColorOp { kind, factor, complement: 0.0 }
}
