//! Items become jobs, jobs become launches.

use super::areas::Areas;
use super::axis::{self, Axes};
use super::blob::{Blob, Scratch};
use super::blocks::{self, Blocks};
use super::descriptor::{self, BLOCK, NO_SUM, levels_kind};
use super::source::intermediate;
use super::steps::{channels_of, color_op, describe, erasure, layout_of};
use super::write::Tables;
use super::{Kernel, Launch, Packed, RenderItem};
use forebay_core::{ColorOp, Fill, ImagePlan, Mixture, Pass, Reduce, Size, Taps};

/// Jobs of one launch: CUDA's limit for a grid's second dimension.
pub(super) const MAX_JOBS: usize = 65_535;

/// A batch that grows by one checked item at a time.
#[derive(Debug)]
pub(super) struct Batch<'a> {
    blob: Blob,
    scratch: Scratch,
    cleared_bytes: u64,
    tables: Tables,
    axes: Axes<'a>,
    /// All images' first passes, then all second ones, and so on; layers' passes are such, too.
    turns: Vec<Jobs>,
    /// Those before all passes.
    launches: Vec<Launch>,
    /// By turn: those of one image follow each other.
    erasures: Vec<Vec<descriptor::Erasure>>,
}

/// Rows of a tile of the across kernel that is as wide as a block of threads; and at most, of narrow
/// ones, whose rows may have to be made one after the other.
const TILE_ROWS: u32 = 8;
const MOST_TILE_ROWS: u32 = 32;

/// Pixels of a row that a warp of the down kernel makes, and threads of a warp.
const SEGMENT: u32 = 4 * WARP;
const WARP: u32 = 32;

/// Words of three tables of bytes.
const TABLE_WORDS: u64 = 3 * 256 / 4;

/// The grey sum that contrast takes its mean from.
#[derive(Debug, Clone, Copy)]
struct Sum {
    offset: u64,
    pixels: u32,
}

impl Sum {
    /// Of a plan in which no pass has been reduced yet.
    const NONE: Self = Self { offset: NO_SUM, pixels: 1 };
}

/// What passes have left so far.
struct Chain {
    source: descriptor::Source,
    input: Size,
    mean: Sum,
    counted: u64,
}

impl Chain {
    fn new(source: descriptor::Source, input: Size) -> Self {
        Self { source, input, mean: Sum::NONE, counted: NO_SUM }
    }
}

/// What a pass shares with those before and behind it.
struct Links {
    source: descriptor::Source,
    gather: u64,
    across: u64,
    output: descriptor::Output,
    mean: Sum,
    sum: Sum,
    histogram: u64,
    tables: u64,
}

impl<'a> Batch<'a> {
    /// Takes what `items` may need of the part of the scratch that is cleared.
    pub(super) fn new(items: &[RenderItem<'_>]) -> Self {
        let passes = || items.iter().flat_map(|item| item.plan.every_pass());
        let count = |reduce| passes().filter(|pass| pass.reduce == Some(reduce)).count();
        let scratch = Scratch::new(count(Reduce::GrayMean), count(Reduce::Histogram));
        Self {
            cleared_bytes: scratch.bytes(),
            scratch,
            blob: Blob::default(),
            tables: Tables::default(),
            axes: Axes::default(),
            turns: Vec::new(),
            launches: Vec::new(),
            erasures: Vec::new(),
        }
    }

    /// Makes planes of coefficients first.
    pub(super) fn inverse_dct(&mut self, all: &[Blocks]) {
        blocks::launch(all, &mut self.blob, &mut self.launches);
    }

    /// Appends a checked item.
    pub(super) fn add(&mut self, item: &RenderItem<'a>) {
        let plan = item.plan;
        let areas = Areas::new(plan, &mut self.scratch);
        // None but a first pass has no pass before it, and that has no gather.
        let mut chain = Chain::new(item.source.describe(plan), Size { width: 0, height: 0 });
        let mut turn = 0;
        for (place, pass) in plan.passes.iter().enumerate() {
            if let Some(mixture) = &pass.mixture {
                chain.source = self.mix(plan, mixture, &chain, &areas, &mut turn);
            }
            let is_last = place + 1 == plan.passes.len();
            let output = if is_last { self.slot(item) } else { areas.output(place) };
            self.pass(plan, pass, &mut chain, areas.across, output, turn);
            turn += 1;
        }
        for (turn, erase) in plan.erase.iter().enumerate() {
            if self.erasures.len() == turn {
                self.erasures.push(Vec::new());
            }
            let noise = match erase.fill {
                Fill::Noise { normalize, .. } => {
                    self.tables.noise(&mut self.blob, &plan.write, normalize)
                }
                Fill::Value(_) => NO_SUM,
            };
            self.erasures[turn].push(erasure(item, erase, noise));
        }
    }

    /// Appends layers and their sum, which is there in the last turn.
    fn mix(
        &mut self,
        plan: &ImagePlan,
        mixture: &'a Mixture,
        base: &Chain,
        areas: &Areas,
        turn: &mut usize,
    ) -> descriptor::Source {
        let mut layers = Vec::with_capacity(mixture.layers.len());
        for (number, layer) in mixture.layers.iter().enumerate() {
            let mut chain = Chain::new(base.source, base.input);
            for (place, pass) in layer.passes.iter().enumerate() {
                let is_last = place + 1 == layer.passes.len();
                let output = areas.in_layer(number, place, is_last);
                self.pass(plan, pass, &mut chain, areas.across, output, *turn);
                *turn += 1;
            }
            let image = chain.source.planes[0].address;
            layers.push(descriptor::Layer { image, weight: layer.weight, reserved: 0 });
        }
        let sum = descriptor::Mixture {
            base: base.source.planes[0].address,
            out: areas.mixed,
            layers: self.blob.append(&layers),
            count: u32::try_from(layers.len()).expect("a recipe has fewer"),
            pixels: u32::try_from(base.input.pixels()).expect("checked"),
            weight: mixture.weight,
            reserved: 0,
        };
        self.turn(*turn).mixtures.push(sum);
        intermediate(areas.mixed, base.input.width)
    }

    /// Appends a pass.
    fn pass(
        &mut self,
        plan: &ImagePlan,
        pass: &'a Pass,
        chain: &mut Chain,
        across: u64,
        output: descriptor::Output,
        turn: usize,
    ) {
        let output = descriptor::Output { channels: channels_of(&plan.write), ..output };
        let (sum, histogram) = (self.sum(pass), self.histogram(pass));
        let levels = self.levels(pass, chain.counted);
        let tables = levels.map_or(NO_SUM, |levels| levels.tables);
        let gather = match &pass.gather {
            Some(gather) => self.blob.append(&[describe(gather, chain.input)]),
            None => NO_SUM,
        };
        let (source, mean) = (chain.source, chain.mean);
        let links = Links { source, gather, across, output, mean, sum, histogram, tables };
        let job = self.job(pass, &links);
        let jobs = self.turn(turn);
        jobs.levels.extend(levels);
        let jobs = if is_across(pass) { &mut jobs.across } else { &mut jobs.down_only };
        jobs.push(job);
        chain.source = intermediate(output.address, pass.x.out_len);
        chain.input = pass.size();
        if sum.offset != NO_SUM {
            chain.mean = sum;
        }
        if histogram != NO_SUM {
            chain.counted = histogram;
        }
    }

    /// The jobs of a turn.
    fn turn(&mut self, turn: usize) -> &mut Jobs {
        while self.turns.len() <= turn {
            self.turns.push(Jobs::default());
        }
        &mut self.turns[turn]
    }

    fn job(&mut self, pass: &'a Pass, links: &Links) -> descriptor::Job {
        let rows = pass.y.extent().unwrap_or_default();
        let color: Vec<descriptor::ColorOp> = pass.color.iter().copied().map(color_op).collect();
        let [red, green, blue] = pass.fill;
        descriptor::Job {
            source: links.source,
            x: self.axes.describe(&mut self.blob, &pass.x, axis::X),
            y: self.axes.describe(&mut self.blob, &pass.y, axis::Y),
            output: links.output,
            across: links.across,
            across_top: rows.start,
            across_rows: rows.end - rows.start,
            color: self.blob.append(&color),
            color_ops: u32::try_from(color.len()).expect("a recipe has fewer steps"),
            fill: u32::from_le_bytes([red, green, blue, 0]),
            sum: links.sum.offset,
            mean_sum: links.mean.offset,
            mean_pixels: links.mean.pixels,
            reserved: 0,
            histogram: links.histogram,
            tables: links.tables,
            gather: links.gather,
        }
    }

    /// The histogram that a pass leaves.
    fn histogram(&mut self, pass: &Pass) -> u64 {
        match pass.reduce {
            Some(Reduce::Histogram) => self.scratch.histogram(),
            _ => NO_SUM,
        }
    }

    /// The tables that a pass takes from the histogram that the one before has left.
    fn levels(&mut self, pass: &Pass, histogram: u64) -> Option<descriptor::Levels> {
        let kind = pass.color.iter().find_map(|op| match op {
            ColorOp::Autocontrast => Some(levels_kind::AUTOCONTRAST),
            ColorOp::Equalize => Some(levels_kind::EQUALIZE),
            _ => None,
        })?;
        let tables = || self.scratch.area(TABLE_WORDS);
        (histogram != NO_SUM).then(tables).map(|tables| descriptor::Levels {
            histogram,
            tables,
            kind,
            reserved: 0,
        })
    }

    /// The sum that a pass leaves.
    fn sum(&mut self, pass: &Pass) -> Sum {
        match pass.reduce {
            Some(Reduce::GrayMean) => Sum { offset: self.scratch.sum(), pixels: pixels(pass) },
            _ => Sum::NONE,
        }
    }

    fn slot(&mut self, item: &RenderItem<'_>) -> descriptor::Output {
        let write = &item.plan.write;
        descriptor::Output {
            address: item.slot,
            table: self.tables.offset(&mut self.blob, write),
            element_bytes: u32::try_from(write.dtype.size()).expect("at most 4"),
            layout: layout_of(write),
            ..Default::default()
        }
    }

    /// Ends the batch.
    pub(super) fn finish(mut self) -> Packed {
        let mut launches = self.launches;
        for jobs in self.turns {
            jobs.launch(&mut self.blob, &mut launches);
        }
        for chunk in self.erasures.iter().flat_map(|erasures| erasures.chunks(MAX_JOBS)) {
            let pixels = chunk.iter().map(|erasure| erasure.width * erasure.height).max();
            let tiles = pixels.unwrap_or(0).div_ceil(BLOCK);
            if tiles > 0 {
                launches.push(Launch {
                    kernel: Kernel::Erase,
                    jobs_offset: self.blob.append(chunk),
                    jobs: u32::try_from(chunk.len()).expect("at most MAX_JOBS"),
                    tiles,
                });
            }
        }
        Packed {
            blob: self.blob.into_bytes(),
            scratch_bytes: self.scratch.bytes(),
            cleared_bytes: self.cleared_bytes,
            launches,
            refused: Vec::new(),
        }
    }
}

/// The jobs of one pair of launches.
#[derive(Debug, Default)]
struct Jobs {
    /// What they need first.
    mixtures: Vec<descriptor::Mixture>,
    levels: Vec<descriptor::Levels>,
    across: Vec<descriptor::Job>,
    down_only: Vec<descriptor::Job>,
}

impl Jobs {
    /// Jobs with an across kernel come first, so that both launches name adjacent jobs.
    fn launch(mut self, blob: &mut Blob, launches: &mut Vec<Launch>) {
        for chunk in self.mixtures.chunks(MAX_JOBS) {
            let pixels = chunk.iter().map(|mixture| mixture.pixels).max().unwrap_or(0);
            launches.push(Launch {
                kernel: Kernel::Layers,
                jobs_offset: blob.append(chunk),
                jobs: u32::try_from(chunk.len()).expect("at most MAX_JOBS"),
                tiles: pixels.div_ceil(BLOCK),
            });
        }
        for chunk in self.levels.chunks(MAX_JOBS) {
            launches.push(Launch {
                kernel: Kernel::Levels,
                jobs_offset: blob.append(chunk),
                jobs: u32::try_from(chunk.len()).expect("at most MAX_JOBS"),
                tiles: 3,
            });
        }
        let across = self.across.len();
        let mut jobs = self.across;
        jobs.append(&mut self.down_only);
        let offset = blob.append(&jobs);
        let mut push = |kernel, jobs: &[descriptor::Job], tiles: fn(&descriptor::Job) -> u32| {
            for (chunk, jobs) in jobs.chunks(MAX_JOBS).enumerate() {
                let tiles = jobs.iter().map(tiles).max().unwrap_or(0);
                if tiles == 0 {
                    continue;
                }
                launches.push(Launch {
                    kernel,
                    jobs_offset: offset + (chunk * MAX_JOBS * size_of::<descriptor::Job>()) as u64,
                    jobs: u32::try_from(jobs.len()).expect("at most MAX_JOBS"),
                    tiles,
                });
            }
        };
        push(Kernel::ResampleAcross, &jobs[..across], |job| {
            across_tiles(job.x.content_len, job.across_rows)
        });
        push(Kernel::ResampleDown, &jobs, |job| down_tiles(job.x.out_len, job.y.out_len));
    }
}

/// Tiles of the across kernel, as it counts them.
fn across_tiles(columns: u32, rows: u32) -> u32 {
    let width = columns.clamp(1, BLOCK);
    columns.div_ceil(width) * rows.div_ceil((BLOCK / width * TILE_ROWS).min(MOST_TILE_ROWS))
}

/// Tiles of the down kernel, as it counts them: each takes some rows' segments.
fn down_tiles(columns: u32, rows: u32) -> u32 {
    (columns.div_ceil(SEGMENT) * rows).div_ceil(BLOCK / WARP)
}

/// Whether a pass needs the across kernel.
pub(super) fn is_across(pass: &Pass) -> bool {
    matches!(pass.x.taps, Taps::Weighted(_)) && pass.x.content_len() > 0 && pass.y.content_len() > 0
}

fn pixels(pass: &Pass) -> u32 {
    pass.x.out_len * pass.y.out_len
}
