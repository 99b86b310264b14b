//! Opening batches: tickets and memory for those that come next.

use crate::Error;
use crate::assembly::{Assembly, FieldInfo};
use crate::budget::Permit;
use crate::pipeline::Parts;
use crate::shared::{Shared, State};
use crate::worker::panicked;
use forebay_core::order::BatchTickets;
use forebay_core::rng::EpochKey;
use forebay_core::{DType, FieldKind, FieldSpec, Schema};
use forebay_slab::Slab;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, MutexGuard};

/// What the engine needs to know about each field.
pub(crate) fn field_infos(schema: &Schema, specs: &[FieldSpec]) -> Result<Vec<FieldInfo>, Error> {
    if schema.fields.len() != specs.len() {
        let (fields, specs) = (schema.fields.len(), specs.len());
        let reason = format!("the source has {fields} fields, the planner makes {specs}");
        return Err(Error::Parts { reason });
    }
    let info = |(field, spec): (&forebay_core::Field, &FieldSpec)| {
        let item = spec
            .item_bytes()
            .ok_or_else(|| forebay_slab::Error::TooLarge { path: spec.path.clone(), samples: 1 })?;
        let rendered = matches!(field.kind, FieldKind::Image | FieldKind::Mask);
        if rendered && spec.ragged {
            let reason = format!("{}: an image cannot be ragged", spec.path);
            return Err(Error::Parts { reason });
        }
        let skip = match (spec.ragged, field.kind, spec.dtype) {
            // Rendered slots are zeroed in place.
            (true, _, _) | (_, FieldKind::Image | FieldKind::Mask, _) => Vec::new(),
            (false, FieldKind::Tensor, dtype) => {
                let value = element(dtype, field.skip_value);
                value.repeat(item / dtype.size())
            }
            (false, FieldKind::Boxes, _) => vec![0; item],
        };
        Ok(FieldInfo {
            path: spec.path.clone(),
            rendered,
            mixed: field.kind == FieldKind::Image,
            ragged: spec.ragged,
            item,
            skip,
        })
    };
    schema.fields.iter().zip(specs).map(info).collect()
}

/// As float32.
#[allow(clippy::cast_possible_truncation, reason = "skip values are small")]
fn f32_of(value: i64) -> f32 {
    value as f32
}

/// `value` as an element of `dtype`; 0 where it has no such value.
fn element(dtype: DType, value: i64) -> Vec<u8> {
    match dtype {
        DType::Int64 => value.to_ne_bytes().to_vec(),
        DType::Float64 => (value as f64).to_ne_bytes().to_vec(),
        DType::Float32 => f32_of(value).to_ne_bytes().to_vec(),
        DType::Float16 => half::f16::from_f64(value as f64).to_ne_bytes().to_vec(),
        DType::BFloat16 => half::bf16::from_f64(value as f64).to_ne_bytes().to_vec(),
        DType::UInt8 => vec![u8::try_from(value).unwrap_or(0)],
        DType::Bool => vec![0],
    }
}

/// Tickets that may go on their way, once there is memory for them.
struct Opening {
    run: u64,
    key: EpochKey,
    tickets: BatchTickets,
    permit: Permit,
}

/// Opens batches until the depth or the budget is used up or tickets are missing, and returns
/// with the lock held, so that a push cannot go unnoticed before the caller waits.
///
/// # Errors
/// There is no memory for the batch that is due. With batches in flight the depth falls instead.
pub(crate) fn open_batches<'a>(
    shared: &'a Shared,
    parts: &Parts,
) -> Result<MutexGuard<'a, State>, Error> {
    loop {
        let mut state = shared.lock();
        if state.check().is_err() || state.opening {
            return Ok(state);
        }
        let Some(opening) = admit(&mut state, shared, parts)? else {
            return Ok(state);
        };
        state.opening = true;
        drop(state);
        let batch = assemble(&opening, shared, parts);
        let mut state = shared.lock();
        state.opening = false;
        let run = state.run.as_mut().filter(|run| run.id == opening.run);
        match (batch, run) {
            (_, None) => {}
            (Ok(mut batch), Some(run)) => {
                batch.permit = Some(opening.permit);
                run.batches.push_back(batch);
                shared.wake(&state);
            }
            (Err(error), Some(run)) => {
                run.next_up = Some(opening.tickets);
                run.depth = run.batches.len().max(1);
                if run.batches.is_empty() {
                    return Err(error);
                }
            }
        }
    }
}

/// The next batch's tickets, if there is room for its memory. The batch that is due has room
/// always.
fn admit(state: &mut State, shared: &Shared, parts: &Parts) -> Result<Option<Opening>, Error> {
    let Some(run) = &mut state.run else {
        return Ok(None);
    };
    if run.batches.len() >= run.depth {
        return Ok(None);
    }
    let Some(tickets) = run.next_up.take().or_else(|| run.feed.take()) else {
        return Ok(None);
    };
    let bytes = forebay_slab::slab_bytes(parts.planner.specs(), tickets.tickets.len());
    let permit = bytes.map(|bytes| shared.budget.take(bytes as u64, run.batches.is_empty()));
    if let Ok(Some(permit)) = permit {
        return Ok(Some(Opening { run: run.id, key: run.feed.key(), tickets, permit }));
    }
    run.next_up = Some(tickets);
    permit?;
    Ok(None)
}

fn assemble(opening: &Opening, shared: &Shared, parts: &Parts) -> Result<Assembly, Error> {
    let Opening { key, tickets: BatchTickets { tickets, .. }, .. } = opening;
    let specs = parts.planner.specs();
    let allocate = || Slab::new(specs, tickets.len(), Arc::clone(&parts.allocator));
    let slab = catch_unwind(AssertUnwindSafe(allocate)).map_err(|payload| {
        let error = panicked("allocating a batch", &*payload);
        shared.fail(error.clone());
        error
    })??;
    let first = tickets.first().map_or(0, |ticket| ticket.position);
    let mixes = parts.planner.mixes(*key, first);
    Ok(Assembly::new(opening.tickets.clone(), slab, &shared.fields, mixes)?)
}
