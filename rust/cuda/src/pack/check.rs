//! What the kernels rely on, checked once per item: an item that passes leads them to no address
//! outside its source, its slot, the blob and the scratch.

use super::{Error, RenderItem, axis, write};
use forebay_core::{ColorOp, ImagePlan, Pass, Size};

/// Pixels of a pass, which kernels number in 32 bits, rounded up to whole segments of a row.
const MAX_PIXELS: u64 = i32::MAX as u64;

/// Refuses items that do not fit their source, themselves or their slot.
pub(super) fn item(item: &RenderItem<'_>) -> Result<(), Error> {
    let plan = item.plan;
    item.source.check(plan.region)?;
    let Some(last) = plan.passes.last() else { return Err(Error::NoPass) };
    passes(plan)?;
    slot(item, last)
}

fn passes(plan: &ImagePlan) -> Result<(), Error> {
    let mut input = plan.region.size();
    if plan.transpose {
        input = input.transposed();
    }
    let first = plan.passes.first();
    if first.is_some_and(|pass| pass.gather.is_some() || pass.mixture.is_some()) {
        return Err(Error::FirstGather);
    }
    for pass in &plan.passes {
        for layer in pass.mixture.iter().flat_map(|mixture| &mixture.layers) {
            if layer.passes.is_empty() || layer.passes.iter().any(|pass| pass.mixture.is_some()) {
                return Err(Error::Layer);
            }
            let made =
                layer.passes.iter().try_fold(input, |input, each| self::pass(each, input))?;
            if made != input || layer.passes.iter().any(|pass| pass.size() != input) {
                return Err(Error::Layer);
            }
        }
        input = self::pass(pass, input)?;
    }
    Ok(())
}

/// Size of a pass's result.
fn pass(pass: &Pass, mut input: Size) -> Result<Size, Error> {
    if let Some(gather) = &pass.gather {
        input = gather.size(input);
    }
    axis::check(&pass.x, input.width)?;
    axis::check(&pass.y, input.height)?;
    let across = u64::from(pass.x.content_len()) * u64::from(input.height);
    let pixels = across.max(pass.size().pixels());
    if pixels > MAX_PIXELS {
        return Err(Error::TooLarge { pixels, limit: MAX_PIXELS });
    }
    Ok(pass.size())
}

fn slot(item: &RenderItem<'_>, last: &Pass) -> Result<(), Error> {
    let write = item.plan.write;
    let (channels, dtype) = (write.channels.count(), write.dtype);
    let mut ops = item.plan.every_pass().flat_map(|pass| &pass.color);
    if channels == 1 && ops.any(ColorOp::mixes_channels) {
        return Err(Error::Gray);
    }
    if !write::is_element(dtype) {
        return Err(Error::Elements { dtype });
    }
    let need = last.size().pixels() * channels as u64 * dtype.size() as u64;
    if let Some(erase) = item.plan.erase.iter().find(|erase| !erase.region.fits(last.size())) {
        return Err(Error::Erase { region: erase.region });
    }
    let (address, bytes) = (item.slot, item.slot_bytes as u64);
    let is_aligned = address.is_multiple_of(dtype.size() as u64);
    if need == bytes && address != 0 && is_aligned && address.checked_add(bytes).is_some() {
        Ok(())
    } else {
        Err(Error::Slot { address, bytes, need })
    }
}
