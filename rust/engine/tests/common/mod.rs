//! A pipeline over fakes, and what it delivered in a form that can be compared.
#![allow(dead_code, reason = "every test file uses a part of it")]

use forebay_core::order::{Dealing, LastBatch};
use forebay_core::ports::{Cost, Decoder, Engines, Renderer};
use forebay_engine::testing::{
    Bad, Delivery, FakeDecoder, FakeDevice, FakeMemory, FakePlanner, FakeRenderer, FakeSource,
    PixelRoute,
};
use forebay_engine::{Batch, EngineConfig, Failure, FeedConfig, Next, OnError, Parts, Pipeline};
use forebay_slab::{Allocator, Pageable, SealedSlab, Values};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Far more than any test needs: what takes longer is stuck.
pub(crate) const STUCK: Duration = Duration::from_secs(60);

/// One submit of `jobs` images at once.
pub(crate) fn engines(jobs: usize) -> Engines {
    let least = jobs.div_ceil(4);
    Engines { submits: 1, jobs, enough: jobs, least, cost: Cost(u64::MAX), busy: true }
}

/// The parts that tests vary; the fields of each image are 8 x 8.
pub(crate) struct Setup {
    pub(crate) config: EngineConfig,
    pub(crate) len: u64,
    pub(crate) image_bytes: usize,
    pub(crate) bad: Vec<(u64, Bad)>,
    pub(crate) delivery: Delivery,
    pub(crate) decoders: Vec<Arc<dyn Decoder>>,
    pub(crate) renderer: Arc<dyn Renderer>,
    pub(crate) allocator: Arc<dyn Allocator>,
    /// Images and masks lie on a fake device.
    pub(crate) on_device: bool,
    /// How often images of a batch are mixed.
    pub(crate) mixes: u32,
}

impl Setup {
    /// `len` good samples, shuffled, in batches of 4, everything inline.
    pub(crate) fn new(len: u64) -> Self {
        let dealing =
            Dealing { batch_size: 4, rank: 0, world_size: 1, last_batch: LastBatch::Partial };
        Self {
            config: EngineConfig {
                workers: 0,
                ..EngineConfig::new(FeedConfig::Ordered { seed: 7, shuffle: true, dealing })
            },
            len,
            image_bytes: 40,
            bad: vec![],
            delivery: Delivery::Inline,
            decoders: vec![Arc::new(FakeDecoder::new(PixelRoute::Host))],
            renderer: Arc::new(FakeRenderer),
            allocator: Arc::new(Pageable::default()),
            on_device: false,
            mixes: 0,
        }
    }

    pub(crate) fn mixing(mut self, mixes: u32) -> Self {
        self.mixes = mixes;
        self
    }

    pub(crate) fn on_device(mut self) -> Self {
        self.allocator = Arc::new(FakeDevice::default());
        self.on_device = true;
        self
    }

    pub(crate) fn workers(mut self, workers: usize) -> Self {
        self.config.workers = workers;
        self
    }

    pub(crate) fn depth(mut self, depth: usize) -> Self {
        self.config.depth = depth;
        self
    }

    pub(crate) fn budget(mut self, bytes: u64) -> Self {
        self.config.memory_budget = bytes;
        self
    }

    pub(crate) fn on_error(mut self, on_error: OnError) -> Self {
        self.config.on_error = on_error;
        self
    }

    pub(crate) fn bad(mut self, bad: impl IntoIterator<Item = (u64, Bad)>) -> Self {
        self.bad = bad.into_iter().collect();
        self
    }

    pub(crate) fn delivery(mut self, delivery: Delivery) -> Self {
        self.delivery = delivery;
        self
    }

    pub(crate) fn decoder(mut self, decoder: FakeDecoder) -> Self {
        self.decoders = vec![Arc::new(decoder)];
        self
    }

    pub(crate) fn renderer(mut self, renderer: Arc<dyn Renderer>) -> Self {
        self.renderer = renderer;
        self
    }

    pub(crate) fn dealing(mut self, dealing: Dealing) -> Self {
        self.config.feed = FeedConfig::Ordered { seed: 7, shuffle: true, dealing };
        self
    }

    pub(crate) fn feed(mut self, feed: FeedConfig) -> Self {
        self.config.feed = feed;
        self
    }

    pub(crate) fn open(self) -> Pipeline {
        self.open_with_source().0
    }

    pub(crate) fn open_with_source(self) -> (Pipeline, Arc<FakeSource>) {
        let source = FakeSource::new(self.len, self.image_bytes, self.bad, self.delivery);
        let source = Arc::new(source);
        let planner = FakePlanner::new(8).mixing(self.mixes);
        let parts = Parts {
            source: Arc::clone(&source) as _,
            decoders: self.decoders,
            renderer: self.renderer,
            planner: Arc::new(if self.on_device { planner.on_device() } else { planner }),
            allocator: self.allocator,
        };
        (Pipeline::open(self.config, parts).unwrap(), source)
    }

    /// Everything that `epoch` delivers.
    pub(crate) fn epoch(self, epoch: u64) -> Vec<Delivered> {
        let pipeline = self.open();
        pipeline.start_epoch(epoch, 0).unwrap();
        drain(&pipeline)
    }
}

/// A field's elements, and offsets if it is ragged.
pub(crate) type FieldBytes = (Vec<u8>, Option<Vec<i64>>);

/// Everything about a batch that a user can see.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Delivered {
    pub(crate) indices: Vec<u64>,
    pub(crate) positions: Vec<u64>,
    pub(crate) valid: Vec<bool>,
    pub(crate) sizes: Vec<[i64; 2]>,
    pub(crate) failures: Vec<Failure>,
    pub(crate) raised: Option<Failure>,
    /// By field.
    pub(crate) fields: Option<Vec<FieldBytes>>,
    pub(crate) weights: Vec<f64>,
    pub(crate) partners: Vec<Option<usize>>,
    pub(crate) next_position: u64,
}

/// A field's elements, wherever they lie.
fn bytes(slab: &SealedSlab, field: usize) -> Vec<u8> {
    match &slab.fields()[field].values {
        Values::Host(_) => slab.bytes(field).to_vec(),
        Values::Device(memory) => {
            memory.as_any().downcast_ref::<FakeMemory>().expect("the fake device's").bytes()
        }
    }
}

impl Delivered {
    pub(crate) fn labels(&self) -> Vec<i64> {
        let (bytes, _) = &self.fields.as_ref().unwrap()[4];
        let (labels, _) = bytes.as_chunks::<8>();
        labels.iter().copied().map(i64::from_ne_bytes).collect()
    }
}

impl From<&Batch> for Delivered {
    fn from(batch: &Batch) -> Self {
        let fields = batch.slab.as_ref().map(|slab| {
            (0..slab.fields().len())
                .map(|field| (bytes(slab, field), slab.offsets(field)))
                .collect()
        });
        Self {
            indices: batch.indices.clone(),
            positions: batch.positions.clone(),
            valid: batch.valid.clone(),
            sizes: batch.sizes.clone(),
            // Tokens name requests in the order in which threads made them.
            failures: batch
                .failures
                .iter()
                .map(|bad| Failure { token: 0, ..bad.clone() })
                .collect(),
            raised: batch.raised().map(|bad| Failure { token: 0, ..bad.clone() }),
            fields,
            weights: batch.mixes.iter().map(|mixing| mixing.weight).collect(),
            partners: batch.partners.clone(),
            next_position: batch.next_position,
        }
    }
}

/// The next batch, `None` at the end.
pub(crate) fn next_batch(pipeline: &Pipeline) -> Option<Box<Batch>> {
    let started = Instant::now();
    while started.elapsed() < STUCK {
        match pipeline.next(Duration::from_millis(50)).unwrap() {
            Next::Batch(batch) => return Some(batch),
            Next::End => return None,
            Next::Pending => {}
        }
    }
    panic!("stuck: {:?}", pipeline.stats());
}

/// What is left of the epoch.
pub(crate) fn drain(pipeline: &Pipeline) -> Vec<Delivered> {
    std::iter::from_fn(|| next_batch(pipeline)).map(|batch| Delivered::from(&*batch)).collect()
}
