//! A batch of the engine's as what Python polls: JSON about it, and its tensors.

use crate::device::Device;
use crate::ffi::{DType, TensorOut};
use crate::guard::Error;
use crate::tensors::{self, Poll};
use forebay_core::ErrorKind;
use forebay_engine::Batch;
use forebay_slab::{SealedField, SealedSlab, Values};
use std::sync::Arc;

#[derive(serde::Serialize)]
struct BatchInfo<'a> {
    kind: &'static str,
    epoch: u64,
    next_position: u64,
    failures: Vec<FailureInfo<'a>>,
    /// Number of the failure to raise.
    raise: Option<usize>,
    /// Fields on a device were allocated for another stream than the current one.
    foreign_stream: bool,
    /// The request that each slot's sample answered; for pushed sources, which keep labels by it.
    #[serde(skip_serializing_if = "Option::is_none")]
    tokens: Option<&'a [u64]>,
    /// How labels are to be mixed, as images were.
    #[serde(skip_serializing_if = "Option::is_none")]
    mixed: Option<MixedInfo<'a>>,
}

#[derive(serde::Serialize)]
struct MixedInfo<'a> {
    /// Of a sample's own label, mix by mix.
    weights: Vec<f64>,
    /// By slot whose label is mixed into it; null for slots that have none.
    partners: &'a [Option<usize>],
}

#[derive(serde::Serialize)]
struct FailureInfo<'a> {
    position: u64,
    index: u64,
    key: &'a str,
    stage: &'static str,
    reason: &'a str,
    attempt: u16,
    /// Names the request of a pushed source.
    token: u64,
}

/// Tensors of the indices, positions, and which slots are valid; then, if the batch has memory, of
/// the sizes and the fields.
pub(crate) fn poll(batch: &Batch, pushed: bool, device: Option<&Device>) -> Result<Poll, Error> {
    let failures = batch.failures.iter().map(|failure| FailureInfo {
        position: failure.position,
        index: failure.index,
        key: &failure.key,
        stage: failure.stage.name(),
        reason: &failure.reason,
        attempt: failure.attempt,
        token: failure.token,
    });
    let mut info = BatchInfo {
        kind: if batch.slab.is_some() { "batch" } else { "failed" },
        epoch: batch.epoch,
        next_position: batch.next_position,
        failures: failures.collect(),
        raise: batch.raise,
        foreign_stream: false,
        tokens: pushed.then_some(&batch.tokens),
        mixed: (!batch.mixes.is_empty()).then(|| MixedInfo {
            weights: batch.mixes.iter().map(|mixing| mixing.weight).collect(),
            partners: &batch.partners,
        }),
    };
    let samples = i64::try_from(batch.indices.len()).expect("a batch's length fits an i64");
    let numbers =
        |values: &[u64]| tensors::vector(values.iter().map(|&value| value.cast_signed()).collect());
    let valid = batch.valid.iter().map(|&valid| u8::from(valid)).collect();
    let mut tensors = vec![
        numbers(&batch.indices),
        numbers(&batch.positions),
        tensors::from_bytes(valid, DType::Bool, vec![samples]),
    ];
    if let Some(slab) = &batch.slab {
        let sizes = batch.sizes.iter().flatten().copied().collect();
        tensors.push(tensors::from_numbers(sizes, vec![samples, 2]));
        for field in slab.fields() {
            let (values, foreign) = values(slab, field, device)?;
            info.foreign_stream |= foreign;
            tensors.push(values);
            tensors.extend(field.offsets.iter().map(|view| tensors::from_view(slab, view)));
        }
    }
    let info = serde_json::to_string(&info).expect("plain numbers and text become JSON");
    Ok(Poll::new(info, tensors))
}

/// A field's elements, and whether they were allocated for another stream.
fn values(
    slab: &Arc<SealedSlab>,
    field: &SealedField,
    device: Option<&Device>,
) -> Result<(TensorOut, bool), Error> {
    match (&field.values, device) {
        (Values::Host(view), _) => Ok((tensors::from_view(slab, view), false)),
        (Values::Device(memory), Some(device)) => device.hand_out(memory),
        (Values::Device(_), None) => {
            Err(Error::new(ErrorKind::Internal, "a field on a device of no kind"))
        }
    }
}
