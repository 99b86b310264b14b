//! A mix of a batch's images as its kernel's parameter: `cpp/kernels/mix.h`.

use super::descriptor::{self, MIX_WORDS, mix_kind};
use super::{BLOCK_THREADS, Error};
use forebay_core::{Blend, DType, FieldSpec, Layout, Mix, Region};

/// Most slots of a field whose images are mixed.
const MAX_SLOTS: usize = 32 * MIX_WORDS;

/// A launch of `fb_mix`: one block along x for each tile.
#[derive(Debug, Clone, Copy)]
pub struct PackedMix {
    pub(crate) parameter: descriptor::Mixing,
    /// Blocks.
    pub tiles: u32,
}

impl PackedMix {
    /// The kernel's parameter, for a launch that takes its address.
    pub fn parameter(&self) -> *const u8 {
        std::ptr::from_ref(&self.parameter).cast()
    }
}

/// Packs one mix of the slots `taken`, ascending, of a field of `spec` at `address`; `None` if
/// there is nothing to do. The kernel stays inside the slots.
///
/// # Errors
/// The field is none that can be mixed in this way, or has more slots than a launch can name.
pub fn pack_mix(
    address: u64,
    taken: &[usize],
    spec: &FieldSpec,
    mix: &Mix,
) -> Result<Option<PackedMix>, Error> {
    let Some(last) = taken.last() else { return Ok(None) };
    if *last >= MAX_SLOTS {
        let (slots, limit) = (*last as u64 + 1, MAX_SLOTS as u64);
        return Err(Error::MixedSlots { slots, limit });
    }
    let [channels, height, width] = spec.shape[..] else {
        return Err(Error::Source { what: "no three dimensions" });
    };
    let size = spec.dtype.size();
    let number = |count: usize| {
        u32::try_from(count)
            .map_err(|_| Error::TooLarge { pixels: count as u64, limit: u32::MAX.into() })
    };
    let mut parameter = descriptor::Mixing {
        address,
        pitch: (channels * height * width * size) as u64,
        count: (channels * height * width) as u64,
        slots: number(last + 1)?,
        kind: 0,
        image: 0.0,
        other: 0.0,
        line: 0,
        height: number(height)?,
        left: 0,
        run: 0,
        top: 0,
        rows: 0,
        taken: [0; MIX_WORDS],
    };
    for slot in taken {
        parameter.taken[slot / 32] |= 1 << (slot % 32);
    }
    match *mix {
        Mix::Blend(Blend { image, other }) => {
            (parameter.image, parameter.other) = (image, other);
            parameter.kind = match spec.dtype {
                DType::Float32 => mix_kind::BLEND_FLOAT32,
                DType::Float16 => mix_kind::BLEND_FLOAT16,
                DType::BFloat16 => mix_kind::BLEND_BFLOAT16,
                dtype => return Err(Error::Elements { dtype }),
            };
        }
        Mix::Paste(region) => {
            let Region { x, y, width: columns, height: rows } = region;
            let is_inside = u64::from(x) + u64::from(columns) <= width as u64
                && u64::from(y) + u64::from(rows) <= height as u64;
            if !is_inside {
                return Err(Error::Erase { region });
            }
            let (planes, per_pixel) = match spec.layout {
                Layout::Contiguous => (channels, 1),
                Layout::ChannelsLast => (1, channels),
            };
            parameter.line = number(width * per_pixel)?;
            parameter.left = number(x as usize * per_pixel)?;
            parameter.run = number(columns as usize * per_pixel)?;
            (parameter.top, parameter.rows) = (y, rows);
            parameter.count = (planes * rows as usize) as u64 * u64::from(parameter.run);
            parameter.kind = match size {
                1 => mix_kind::PASTE_1,
                2 => mix_kind::PASTE_2,
                4 => mix_kind::PASTE_4,
                _ => return Err(Error::Elements { dtype: spec.dtype }),
            };
        }
    }
    let tiles = parameter.count.div_ceil(BLOCK_THREADS.into());
    let tiles = number(usize::try_from(tiles).unwrap_or(usize::MAX))?;
    Ok((tiles > 0).then_some(PackedMix { parameter, tiles }))
}
