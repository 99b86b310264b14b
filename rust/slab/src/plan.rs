//! Where each field of a batch lies: offsets, shapes and strides, all checked.

use crate::Error;
use crate::block::ALIGN;
use forebay_core::{FieldSpec, Layout};

/// One field's place in the slab's block; ragged fields and those on a device take no room there.
#[derive(Debug, Clone)]
pub(crate) struct Place {
    pub(crate) spec: FieldSpec,
    /// Bytes of one sample, or of one row of a ragged field.
    pub(crate) item: usize,
    /// First byte, aligned.
    pub(crate) offset: usize,
}

/// Places of all fields, and the bytes they take together.
pub(crate) fn places(specs: &[FieldSpec], samples: usize) -> Result<(Vec<Place>, usize), Error> {
    let mut end = 0_usize;
    let mut places = Vec::with_capacity(specs.len());
    for spec in specs {
        let too_large = || Error::TooLarge { path: spec.path.clone(), samples };
        let item = spec.item_bytes().ok_or_else(too_large)?;
        let offset = end.checked_next_multiple_of(ALIGN).ok_or_else(too_large)?;
        if !spec.ragged && !spec.on_device {
            end = item
                .checked_mul(samples)
                .and_then(|bytes| offset.checked_add(bytes))
                .filter(|&end| isize::try_from(end).is_ok())
                .ok_or_else(too_large)?;
        }
        places.push(Place { spec: spec.clone(), item, offset });
    }
    Ok((places, end))
}

/// Bytes that the fields of a batch take in host and device memory, ragged ones left out: their
/// size is known at sealing.
///
/// # Errors
/// The batch does not fit the address space.
pub fn slab_bytes(specs: &[FieldSpec], samples: usize) -> Result<usize, Error> {
    let (places, host) = places(specs, samples)?;
    let on_device = places.iter().filter(|place| place.spec.on_device);
    on_device.map(|place| place.item.checked_mul(samples)).try_fold(host, |sum, bytes| {
        let too_large = || Error::TooLarge { path: specs[0].path.clone(), samples };
        bytes.and_then(|bytes| sum.checked_add(bytes)).ok_or_else(too_large)
    })
}

/// Shape and strides (in elements) of a field of `rows` samples, or rows of a ragged field.
pub fn shape_and_strides(spec: &FieldSpec, rows: usize) -> (Vec<usize>, Vec<usize>) {
    let shape: Vec<usize> = std::iter::once(rows).chain(spec.shape.iter().copied()).collect();
    if let (Layout::ChannelsLast, &[c, h, w]) = (spec.layout, spec.shape.as_slice()) {
        return (shape, vec![h * w * c, 1, w * c, c]);
    }
    let mut strides = vec![1; shape.len()];
    for dim in (1..shape.len()).rev() {
        strides[dim - 1] = strides[dim] * shape[dim];
    }
    (shape, strides)
}
