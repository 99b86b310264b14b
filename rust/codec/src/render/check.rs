//! What the executor relies on, checked once per image instead of per pixel.

use crate::Error;
use forebay_core::{Axis, ColorOp, ImageMeta, ImagePlan, Pass, Size, Taps};

/// Refuses plans that do not fit the image, themselves or the slot.
pub(super) fn plan(plan: &ImagePlan, meta: &ImageMeta, slot_bytes: usize) -> Result<(), Error> {
    if !plan.region.fits(meta.size) {
        return Err(Error::internal(format!("{:?} of an image of {}", plan.region, meta.size)));
    }
    let Some(last) = plan.passes.last() else {
        return Err(Error::internal("a plan without a pass"));
    };
    let channels = plan.write.channels.count();
    let mut ops = plan.every_pass().flat_map(|pass| &pass.color);
    if channels == 1 && ops.any(ColorOp::mixes_channels) {
        return Err(Error::internal("a change of colour of grey"));
    }
    let mut input = plan.region.size();
    if plan.transpose {
        input = input.transposed();
    }
    let first = plan.passes.first();
    if first.is_some_and(|pass| pass.gather.is_some() || pass.mixture.is_some()) {
        return Err(Error::internal("a first pass that needs a whole image"));
    }
    for pass in &plan.passes {
        for layer in pass.mixture.iter().flat_map(|mixture| &mixture.layers) {
            if layer.passes.is_empty() || layer.passes.iter().any(|pass| pass.mixture.is_some()) {
                return Err(Error::internal("a layer without a pass of its own, or in a layer"));
            }
            let made =
                layer.passes.iter().try_fold(input, |input, each| self::pass(each, input))?;
            if made != input {
                return Err(Error::internal(format!("a layer of {made} in an image of {input}")));
            }
        }
        input = self::pass(pass, input)?;
    }
    if let Some(erase) = plan.erase.iter().find(|erase| !erase.region.fits(last.size())) {
        let (region, size) = (erase.region, last.size());
        return Err(Error::internal(format!("{region:?} of a result of {size} is erased")));
    }
    let elements = last.size().pixels() * channels as u64;
    let need = elements * plan.write.dtype.size() as u64;
    if need != slot_bytes as u64 {
        return Err(Error::internal(format!("a slot of {slot_bytes} bytes, need {need}")));
    }
    Ok(())
}

/// Size of a pass's result.
fn pass(pass: &Pass, mut input: Size) -> Result<Size, Error> {
    if let Some(gather) = &pass.gather {
        input = gather.size(input);
    }
    axis(&pass.x, input.width)?;
    axis(&pass.y, input.height)?;
    Ok(pass.size())
}

fn axis(axis: &Axis, input: u32) -> Result<(), Error> {
    let content = u64::from(axis.content_start) + u64::from(axis.content_len());
    let inside = content <= u64::from(axis.out_len)
        && match &axis.taps {
            Taps::Copy(sources) => sources.iter().all(|&source| source < input),
            Taps::Weighted(table) => {
                let rows = table.starts.len();
                table.counts.len() == rows
                    && table.weights.len() == rows * table.taps as usize
                    && table.precision < 31
                    && table.starts.iter().zip(&table.counts).all(|(&start, &count)| {
                        (1..=table.taps).contains(&count)
                            && start.checked_add(count).is_some_and(|end| end <= input)
                    })
            }
        };
    if inside { Ok(()) } else { Err(Error::internal(format!("an axis that leaves 0..{input}"))) }
}
