//! Memory in the scratch that one image's passes leave their pixels in.

use super::batch::is_across;
use super::blob::Scratch;
use super::descriptor;
use forebay_core::ImagePlan;

/// Memory of one image. Passes run one after the other, so each shares it with the one but last
/// before it.
#[derive(Debug)]
pub(super) struct Areas {
    pub(super) across: u64,
    intermediates: [u64; 2],
    /// What a layer's passes but the last one leave.
    in_layers: [u64; 2],
    /// What layers leave; mixtures share it.
    layers: Vec<u64>,
    /// The layers' sum.
    pub(super) mixed: u64,
}

impl Areas {
    /// Takes an image's memory from the scratch, but for its sums.
    pub(super) fn new(plan: &ImagePlan, scratch: &mut Scratch) -> Self {
        let (_, before) = plan.passes.split_last().expect("checked");
        let across = plan.every_pass().filter(|pass| is_across(pass)).map(|pass| {
            let rows = pass.y.extent().unwrap_or_default();
            u64::from(pass.x.content_len()) * u64::from(rows.end - rows.start)
        });
        let most = |parity| {
            let turns = before.iter().skip(parity).step_by(2);
            turns.map(|pass| pass.size().pixels()).max().unwrap_or(0)
        };
        // Each mixture is of what the pass before it leaves, and as large.
        let mixtures = || {
            let pairs = plan.passes.iter().zip(plan.passes.iter().skip(1));
            pairs
                .filter_map(|(before, pass)| Some((before.size().pixels(), pass.mixture.as_ref()?)))
        };
        let layers = mixtures().flat_map(|(pixels, mixture)| {
            mixture.layers.iter().map(move |layer| (pixels, layer.passes.len() - 1))
        });
        let within = |least| {
            layers.clone().filter(|(_, before)| *before > least).map(|(pixels, _)| pixels).max()
        };
        let count = mixtures().map(|(_, mixture)| mixture.layers.len()).max().unwrap_or(0);
        let mixed = mixtures().map(|(pixels, _)| pixels).max().unwrap_or(0);
        Self {
            across: scratch.area(across.max().unwrap_or(0)),
            intermediates: [most(0), most(1)].map(|pixels| scratch.area(pixels)),
            in_layers: [within(0), within(1)].map(|pixels| scratch.area(pixels.unwrap_or(0))),
            layers: (0..count).map(|_| scratch.area(mixed)).collect(),
            mixed: scratch.area(mixed),
        }
    }

    /// Where the pass at `place`, not the last, leaves its pixels.
    pub(super) fn output(&self, place: usize) -> descriptor::Output {
        at(self.intermediates[place % 2])
    }

    /// Where a pass of a layer leaves its pixels.
    pub(super) fn in_layer(&self, layer: usize, place: usize, is_last: bool) -> descriptor::Output {
        at(if is_last { self.layers[layer] } else { self.in_layers[place % 2] })
    }
}

fn at(address: u64) -> descriptor::Output {
    descriptor::Output { address, ..Default::default() }
}
