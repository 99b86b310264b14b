//! Images a second that the scheduler hands to backends which only sleep: how far it keeps threads
//! and engines busy, what its lock costs, and how evenly batches come.
//!
//! `cargo bench -p forebay-engine --features testing --bench schedule -- [WORKERS [DEPTH [CORES [BATCH [COST]]]]]`
//! Reading takes 35 us an image, preparing 50, decoding 800 on a thread and 55 in an engine. There are
//! CORES submits at once to a decoder that says an image costs COST ns (16,000); a thread waits for
//! it 3 us an image and, one submit after the other, 2 ms and a quarter of the cost an image.
//! Rendering takes 4 us an image.

use forebay_core::order::{Dealing, LastBatch};
use forebay_core::ports::{
    Cost, DecodeJob, DecodeSink, Decoded, Decoder, Engines, Fault, HostPixels, Pixels, RecordSink,
    Request, Source,
};
use forebay_core::recipe::{FieldPlan, Planner, whole};
use forebay_core::rng::EpochKey;
use forebay_core::{
    Bytes, Channels, DType, Field, FieldSpec, Format, ImageMeta, Layout, Orientation, Record,
    Region, Schema, Size, Value, Write,
};
use forebay_engine::testing::BatchRenderer;
use forebay_engine::{EngineConfig, FeedConfig, Next, Parts, Pipeline};
use std::io::Write as _;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

const READ: Duration = Duration::from_micros(35);
const PREPARE: Duration = Duration::from_micros(50);
const THREAD: Duration = Duration::from_micros(800);
const ENGINE: Duration = Duration::from_micros(55);
const CORES: Duration = Duration::from_millis(2);
const COPY: Duration = Duration::from_micros(3);
const SIZE: Size = Size { width: 1, height: 1 };
const TIME: Duration = Duration::from_secs(3);
const RENDER: Duration = Duration::from_micros(4);

#[derive(Debug)]
struct Photos(Schema);

impl Source for Photos {
    fn len(&self) -> Option<u64> {
        Some(20_000)
    }

    fn schema(&self) -> &Schema {
        &self.0
    }

    fn fingerprint(&self) -> u64 {
        0
    }

    fn key(&self, index: u64) -> String {
        index.to_string()
    }

    fn request(&self, requests: &[Request], sink: &Arc<dyn RecordSink>) {
        for request in requests {
            std::thread::sleep(READ);
            // Every fourth is of another kind.
            let bytes = vec![0; 1000 + usize::from(request.index % 4 == 0)];
            let values = vec![Value::Encoded(Bytes::new(bytes))];
            sink.deliver(request.token, Ok(Record { values }));
        }
    }
}

#[derive(Debug)]
struct Recipe(Vec<FieldSpec>);

impl Planner for Recipe {
    fn specs(&self) -> &[FieldSpec] {
        &self.0
    }

    fn plan(
        &self,
        _schema: &Schema,
        _record: Record,
        _metas: &[Option<Arc<ImageMeta>>],
        _key: EpochKey,
        _position: u64,
    ) -> Result<Vec<FieldPlan>, Fault> {
        let write = Write {
            channels: Channels::Rgb,
            dtype: DType::UInt8,
            layout: Layout::Contiguous,
            scale: false,
            normalize: None,
        };
        let plan = whole(SIZE, Orientation::default(), write);
        Ok(vec![FieldPlan::Image(Arc::new(plan))])
    }
}

#[derive(Debug)]
struct Sleeper {
    name: &'static str,
    /// What it says that an image costs.
    cost: Duration,
    /// Of each image, before it is a submit's turn.
    copy: Duration,
    /// Of a submit, and of each image.
    times: [Duration; 2],
    engines: Option<Engines>,
    turn: Mutex<()>,
}

impl Decoder for Sleeper {
    fn name(&self) -> &'static str {
        self.name
    }

    fn probe(&self, bytes: &[u8]) -> Result<ImageMeta, Fault> {
        std::thread::sleep(PREPARE);
        Ok(ImageMeta {
            format: Format::Jpeg,
            size: SIZE,
            orientation: Orientation::default(),
            components: 1,
            progressive: false,
            baseline: None,
            restarts: false,
            bytes: bytes.len(),
        })
    }

    fn cost(&self, _meta: &ImageMeta, _region: Region) -> Option<Cost> {
        Some(Cost(u64::try_from(self.cost.as_nanos()).unwrap_or(u64::MAX)))
    }

    fn engines(&self) -> Option<Engines> {
        self.engines
    }

    fn kind(&self, meta: &ImageMeta) -> u64 {
        if self.name == "engines" { meta.bytes as u64 } else { 0 }
    }

    fn submit(&self, jobs: Vec<DecodeJob>, sink: &Arc<dyn DecodeSink>) {
        let [submit, image] = self.times;
        let count = u32::try_from(jobs.len()).unwrap_or(u32::MAX);
        std::thread::sleep(self.copy * count);
        // Threads decode beside each other.
        let turn = self.engines.map(|_| self.turn.lock().unwrap_or_else(PoisonError::into_inner));
        std::thread::sleep(submit + image * count);
        drop(turn);
        let pixels = |job: DecodeJob| {
            let (region, rows) = (job.region, Box::new(vec![0_u8; 3]));
            let pixels = Ok(Pixels::Host(HostPixels { region, channels: 3, rows, warnings: 0 }));
            Decoded { token: job.token, pixels }
        };
        sink.decoded(jobs.into_iter().map(pixels).collect());
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut numbers = std::env::args().skip(1).filter_map(|word| word.parse::<usize>().ok());
    let mut number = |default| numbers.next().unwrap_or(default);
    let (workers, depth, cores, batch) = (number(15), number(3), number(2), number(256));
    let of_cores = Duration::from_nanos(number(16_000) as u64);

    let dealing =
        Dealing { batch_size: batch as u64, rank: 0, world_size: 1, last_batch: LastBatch::Drop };
    let feed = FeedConfig::Ordered { seed: 0, shuffle: true, dealing };
    let read_ahead = 8 * (workers + 4);
    let config = EngineConfig { workers, depth, read_ahead, ..EngineConfig::new(feed) };
    let spec = FieldSpec {
        path: "image".to_owned(),
        dtype: DType::UInt8,
        shape: vec![3, 1, 1],
        ragged: false,
        layout: Layout::Contiguous,
        on_device: false,
    };
    let engines =
        Engines { submits: 1, jobs: 64, enough: 16, least: 16, cost: Cost(4_000_000), busy: true };
    let sleeper = |name, cost, copy, times, engines| -> Arc<dyn Decoder> {
        Arc::new(Sleeper { name, cost, copy, times, engines, turn: Mutex::default() })
    };
    let mut decoders = vec![
        sleeper("threads", THREAD, Duration::ZERO, [Duration::ZERO, THREAD], None),
        sleeper("engines", ENGINE, Duration::ZERO, [Duration::ZERO, ENGINE], Some(engines)),
    ];
    if cores > 0 {
        let cost = Cost(5_000_000);
        let engines =
            Engines { submits: cores, jobs: 256, enough: 64, least: 4, cost, busy: false };
        decoders.push(sleeper("cores", of_cores, COPY, [CORES, of_cores / 4], Some(engines)));
    }
    let parts = Parts {
        source: Arc::new(Photos(Schema { fields: vec![Field::image("image")] })),
        decoders,
        renderer: Arc::new(BatchRenderer::new(usize::MAX, RENDER * u32::try_from(batch)?)),
        planner: Arc::new(Recipe(vec![spec])),
        allocator: Arc::new(forebay_slab::Pageable::default()),
    };
    let pipeline = Pipeline::open(config, parts)?;
    let (started, mut images) = (Instant::now(), 0);
    let (mut last, mut times) = (started, Vec::new());
    for epoch in 0.. {
        pipeline.start_epoch(epoch, 0)?;
        loop {
            match pipeline.next(Duration::from_millis(50))? {
                Next::Batch(batch) => {
                    images += batch.indices.len();
                    times.push(std::mem::replace(&mut last, Instant::now()).elapsed());
                }
                Next::Pending => {}
                Next::End => break,
            }
        }
        if started.elapsed() > TIME {
            break;
        }
    }
    let elapsed = started.elapsed().as_secs_f64();
    let mut out = std::io::stdout();
    times.sort();
    let [median, late] = [50, 99].map(|part| times[times.len() * part / 100]);
    writeln!(
        out,
        "{:.0} images/s, batch times: {median:.1?}, p99 {late:.1?}",
        images as f64 / elapsed
    )?;
    for (name, stage) in pipeline.stats().decoders {
        let rate = stage.count as f64 / elapsed;
        writeln!(out, "{name}: {rate:.0} images/s, {:.2} busy", stage.seconds / elapsed)?;
    }
    Ok(())
}
