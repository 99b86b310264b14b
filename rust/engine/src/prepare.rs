//! From a record to the work that its images need: probe, plan, route.

use crate::assembly::{DecodeTask, FieldInfo};
use crate::budget::Permit;
use crate::config::Shares;
use crate::pipeline::Parts;
use crate::route::Ways;
use crate::stats::StageStats;
use forebay_core::ports::{Decoder, Fault, Stage};
use forebay_core::recipe::FieldPlan;
use forebay_core::rng::EpochKey;
use forebay_core::{Bytes, FieldKind, ImageMeta, Record, Value};
use std::sync::Arc;
use std::time::Instant;

/// A record on its way into slot `sample`.
#[derive(Debug)]
pub(crate) struct Incoming {
    pub(crate) sample: usize,
    pub(crate) record: Record,
    pub(crate) held: Arc<Permit>,
    pub(crate) key: EpochKey,
    pub(crate) position: u64,
    pub(crate) index: u64,
}

/// What probing and planning made of a record.
#[derive(Debug, Default)]
pub(crate) struct Prepared {
    pub(crate) size: [i64; 2],
    pub(crate) elements: Vec<(usize, Vec<u8>)>,
    pub(crate) images: Vec<DecodeTask>,
}

/// What it took.
#[derive(Debug, Default)]
pub(crate) struct Times {
    pub(crate) probe: StageStats,
    pub(crate) plan: StageStats,
}

/// Probes and plans a record.
pub(crate) fn prepare(
    incoming: Incoming,
    fields: &[FieldInfo],
    parts: &Parts,
    shares: Option<Shares>,
    times: &mut Times,
) -> Result<Prepared, Fault> {
    let Incoming { sample, record, held, key, position, index } = incoming;
    let schema = parts.source.schema();
    let images = encoded(&record, fields)?;
    let metas = probe(&images, &*parts.decoders[0], times)?;
    let size = schema
        .fields
        .iter()
        .zip(&metas)
        .find_map(|(field, meta)| meta.as_ref().filter(|_| field.kind == FieldKind::Image))
        .map_or([0, 0], |meta| {
            let size = parts.planner.input_size(meta);
            [i64::from(size.height), i64::from(size.width)]
        });

    let started = Instant::now();
    let plans = parts.planner.plan(schema, record, &metas, key, position)?;
    times.plan.add(0, started.elapsed());

    let mut prepared = Prepared { size, ..Prepared::default() };
    if plans.len() != fields.len() {
        let got = plans.len();
        return Err(misfit(format!("expected {} field plans, got {got}", fields.len())));
    }
    for (field, (plan, info)) in plans.into_iter().zip(fields).enumerate() {
        match (plan, &metas[field], &images[field]) {
            (FieldPlan::Image(plan), Some(meta), Some(bytes)) if info.rendered => {
                let number = index.wrapping_mul(fields.len() as u64).wrapping_add(field as u64);
                let ways = Ways::new(&parts.decoders, meta, plan.region, shares, number);
                prepared.images.push(DecodeTask {
                    sample,
                    field,
                    ways: ways.check(info)?,
                    bytes: bytes.clone(),
                    meta: Arc::clone(meta),
                    plan,
                    held: Arc::clone(&held),
                });
            }
            (FieldPlan::Elements(elements), _, _) if !info.rendered => {
                check_length(elements.len(), info)?;
                prepared.elements.push((field, elements));
            }
            _ => return Err(misfit(format!("{}: the plan does not suit the field", info.path))),
        }
    }
    Ok(prepared)
}

/// The encoded fields' bytes, by field.
fn encoded(record: &Record, fields: &[FieldInfo]) -> Result<Vec<Option<Bytes>>, Fault> {
    if record.values.len() != fields.len() {
        let (expected, got) = (fields.len(), record.values.len());
        return Err(Fault::new(Stage::Dataset, format!("expected {expected} values, got {got}")));
    }
    let bytes = |(value, info): (&Value, &FieldInfo)| match value {
        Value::Encoded(bytes) if info.rendered => Ok(Some(bytes.clone())),
        _ if info.rendered => {
            Err(Fault::new(Stage::Dataset, format!("{}: expected an encoded image", info.path)))
        }
        _ => Ok(None),
    };
    record.values.iter().zip(fields).map(bytes).collect()
}

/// Reads all headers. The first decoder's word counts for all of them, so that a file's verdict
/// does not depend on the route (ERR-2).
fn probe(
    images: &[Option<Bytes>],
    decoder: &dyn Decoder,
    times: &mut Times,
) -> Result<Vec<Option<Arc<ImageMeta>>>, Fault> {
    let mut probe = |bytes: &Option<Bytes>| {
        let Some(bytes) = bytes else {
            return Ok(None);
        };
        let started = Instant::now();
        let meta = decoder.probe(bytes)?;
        times.probe.add(bytes.len() as u64, started.elapsed());
        Ok(Some(Arc::new(meta)))
    };
    images.iter().map(&mut probe).collect()
}

fn check_length(got: usize, info: &FieldInfo) -> Result<(), Fault> {
    let FieldInfo { path, item, ragged, .. } = info;
    let fits = if *ragged { got.is_multiple_of((*item).max(1)) } else { got == *item };
    if fits {
        return Ok(());
    }
    let per = if *ragged { " a row" } else { "" };
    Err(Fault::new(Stage::Dataset, format!("{path}: expected {item} bytes{per}, got {got}")))
}

fn misfit(reason: String) -> Fault {
    Fault::new(Stage::Transform, reason)
}
