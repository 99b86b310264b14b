//! Items become jobs, jobs become launches.

use super::axis::{self, Axes};
use super::blob::{Blob, Scratch};
use super::blocks::{self, Blocks};
use super::descriptor::{self, BLOCK, NO_SUM, color_kind, gather_kind, layout, levels_kind};
use super::source::intermediate;
use super::write::{self, Tables};
use super::{Kernel, Launch, Packed, RenderItem};
use forebay_core::{
    Blend, ColorOp, Erase, Gather, ImagePlan, Layout, Pass, Reduce, Region, Size, Taps, Warp, Write,
};

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
    /// All images' first passes, then all second ones, and so on.
    passes: Vec<Jobs>,
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
        let passes = || items.iter().flat_map(|item| &item.plan.passes);
        let count = |reduce| passes().filter(|pass| pass.reduce == Some(reduce)).count();
        let scratch = Scratch::new(count(Reduce::GrayMean), count(Reduce::Histogram));
        Self {
            cleared_bytes: scratch.bytes(),
            scratch,
            blob: Blob::default(),
            tables: Tables::default(),
            axes: Axes::default(),
            passes: Vec::new(),
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
        let mut source = item.source.describe(plan);
        let mut mean = Sum::NONE;
        let mut counted = NO_SUM;
        // None but a first pass has no pass before it, and that has no gather.
        let mut input = Size { width: 0, height: 0 };
        for (place, pass) in plan.passes.iter().enumerate() {
            let is_last = place + 1 == plan.passes.len();
            let output = if is_last { self.slot(item) } else { areas.output(place) };
            let sum = if is_last { Sum::NONE } else { self.sum(plan, pass) };
            let across = areas.across;
            let histogram = if is_last { NO_SUM } else { self.histogram(plan, pass) };
            let levels = self.levels(pass, counted);
            let tables = levels.map_or(NO_SUM, |levels| levels.tables);
            let gather = match &pass.gather {
                Some(gather) => self.blob.append(&[describe(gather, input)]),
                None => NO_SUM,
            };
            let links = Links { source, gather, across, output, mean, sum, histogram, tables };
            let job = self.job(plan, pass, &links);
            if self.passes.len() == place {
                self.passes.push(Jobs::default());
            }
            let jobs = &mut self.passes[place];
            jobs.levels.extend(levels);
            let jobs = if is_across(pass) { &mut jobs.across } else { &mut jobs.down_only };
            jobs.push(job);
            source = intermediate(output.address, pass.x.out_len);
            input = pass.size();
            if sum.offset != NO_SUM {
                mean = sum;
            }
            if histogram != NO_SUM {
                counted = histogram;
            }
        }
        for (turn, erase) in plan.erase.iter().enumerate() {
            if self.erasures.len() == turn {
                self.erasures.push(Vec::new());
            }
            self.erasures[turn].push(erasure(item, erase));
        }
    }

    fn job(&mut self, plan: &ImagePlan, pass: &'a Pass, links: &Links) -> descriptor::Job {
        let rows = pass.y.extent().unwrap_or_default();
        // Masks are not coloured.
        let color = if plan.write.channels == 3 { pass.color.as_slice() } else { &[] };
        let color: Vec<descriptor::ColorOp> = color.iter().copied().map(color_op).collect();
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
    fn histogram(&mut self, plan: &ImagePlan, pass: &Pass) -> u64 {
        match pass.reduce {
            Some(Reduce::Histogram) if plan.write.channels == 3 => self.scratch.histogram(),
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
    fn sum(&mut self, plan: &ImagePlan, pass: &Pass) -> Sum {
        match pass.reduce {
            Some(Reduce::GrayMean) if plan.write.channels == 3 => {
                Sum { offset: self.scratch.sum(), pixels: pixels(pass) }
            }
            _ => Sum::NONE,
        }
    }

    fn slot(&mut self, item: &RenderItem<'_>) -> descriptor::Output {
        let write = &item.plan.write;
        descriptor::Output {
            address: item.slot,
            table: self.tables.offset(&mut self.blob, write),
            element_bytes: u32::try_from(write.dtype.size()).expect("at most 4"),
            channels: write.channels.into(),
            layout: layout_of(write),
            reserved: 0,
        }
    }

    /// Ends the batch.
    pub(super) fn finish(mut self) -> Packed {
        let mut launches = self.launches;
        for jobs in self.passes {
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
    levels: Vec<descriptor::Levels>,
    across: Vec<descriptor::Job>,
    down_only: Vec<descriptor::Job>,
}

impl Jobs {
    /// Jobs with an across kernel come first, so that both launches name adjacent jobs.
    fn launch(mut self, blob: &mut Blob, launches: &mut Vec<Launch>) {
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

/// Memory of one image. Passes run one after the other, so each shares it with the one but last
/// before it.
#[derive(Debug)]
struct Areas {
    across: u64,
    intermediates: [u64; 2],
}

impl Areas {
    fn new(plan: &ImagePlan, scratch: &mut Scratch) -> Self {
        let (_, before) = plan.passes.split_last().expect("checked");
        let across = plan.passes.iter().filter(|pass| is_across(pass)).map(|pass| {
            let rows = pass.y.extent().unwrap_or_default();
            u64::from(pass.x.content_len()) * u64::from(rows.end - rows.start)
        });
        let most = |parity| {
            let turns = before.iter().skip(parity).step_by(2);
            turns.map(|pass| pass.size().pixels()).max().unwrap_or(0)
        };
        Self {
            across: scratch.area(across.max().unwrap_or(0)),
            intermediates: [most(0), most(1)].map(|pixels| scratch.area(pixels)),
        }
    }

    /// Where the pass at `place`, not the last, leaves its pixels.
    fn output(&self, place: usize) -> descriptor::Output {
        descriptor::Output { address: self.intermediates[place % 2], ..Default::default() }
    }
}

/// Takes an image's memory from the scratch, but for its sums.
pub(super) fn reserve(plan: &ImagePlan, scratch: &mut Scratch) {
    Areas::new(plan, scratch);
}

/// Whether a pass needs the across kernel.
fn is_across(pass: &Pass) -> bool {
    matches!(pass.x.taps, Taps::Weighted(_)) && pass.x.content_len() > 0 && pass.y.content_len() > 0
}

fn pixels(pass: &Pass) -> u32 {
    pass.x.out_len * pass.y.out_len
}

fn layout_of(write: &Write) -> u32 {
    match write.layout {
        Layout::Contiguous => layout::CONTIGUOUS,
        Layout::ChannelsLast => layout::CHANNELS_LAST,
    }
}

/// What a pass makes of an input of a size first.
fn describe(gather: &Gather, input: Size) -> descriptor::Gather {
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

fn erasure(item: &RenderItem<'_>, erase: &Erase) -> descriptor::Erasure {
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
        channels: write.channels.into(),
        values: erase.value.map(|value| write::element(write.dtype, value)),
    }
}

fn color_op(op: ColorOp) -> descriptor::ColorOp {
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
