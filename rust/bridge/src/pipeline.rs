//! The composition root: options in, source, codec and engine put together.

use crate::batch;
use crate::device::{Device, DeviceSlabs};
use crate::ffi::{DType, DeviceAllocator, Labels as LabelsIn, TensorOut};
use crate::guard::Error;
use crate::handles::Table;
use crate::options::{self, EngineOptions, FeedOptions, OnError, Options, SourceOptions};
use crate::tensors::{self, Poll};
use cxx::UniquePtr;
use forebay_codec::CpuBackend;
use forebay_core::order::Dealing;
use forebay_core::ports::{Fault, HostMemory, Source, Stage};
use forebay_core::state::{Fingerprint, State, VERSION};
use forebay_core::{Bytes, ErrorKind, Limits, Recipe};
use forebay_engine::{self as engine, EngineConfig, FeedConfig, Next, Parts};
use forebay_slab::Pageable;
use forebay_source::{FileList, Labels, Names, Pushed};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// Threads that wait for reads: on local disks two keep any number of decoders busy, and a thread
/// that waits costs nothing.
const IO_THREADS: usize = 4;

/// Records that may wait per thread. Two hide the jitter of local reads; some more cost little.
const READ_AHEAD: usize = 8;

/// An open pipeline and what its state is made of.
pub(crate) struct Pipeline {
    engine: engine::Pipeline,
    source: Arc<dyn Source>,
    pushed: Option<Arc<Pushed>>,
    config: EngineConfig,
    fingerprint: String,
    device: Option<Arc<Device>>,
    decoders: Vec<&'static str>,
    renderer: &'static str,
}

pub(crate) static PIPELINES: Table<Pipeline> = Table::new("pipeline");

impl Pipeline {
    pub(crate) fn open(
        json: &str,
        names: &[u8],
        offsets: &[i64],
        labels: &LabelsIn,
        allocator: UniquePtr<DeviceAllocator>,
    ) -> Result<Self, Error> {
        let options: Options = options::parse("options", json)?;
        let limits = Limits {
            max_pixels: options.decode.max_pixels,
            accept_truncated: options.decode.truncated == options::Truncated::Accept,
        };
        let backend = match options.decode.fidelity {
            options::Fidelity::Full => CpuBackend::new(limits),
            options::Fidelity::Fast => CpuBackend::fast(limits),
        };
        let device = options.device.as_ref();
        let device =
            device.map(|options| Device::open(options, allocator, &backend)).transpose()?;
        let device = device.map(Arc::new);
        let memory = device.as_ref().and_then(|device| device.file_memory());
        let (source, pushed) = open_source(&options.source, names, offsets, labels, memory)?;
        let spec = options::parse("recipe", options.recipe.get())?;
        let apply_orientation = options.decode.orientation == options::Orientation::Apply;
        let mut recipe = Recipe::new(spec, source.schema(), apply_orientation)?;
        let decoders = options.device.as_ref().map(|device| device.decoders);
        let shares = device.as_ref().zip(decoders);
        let config = EngineConfig {
            shares: shares.and_then(|(device, decoders)| device.shares(decoders)),
            ..engine_config(&options.engine, &options.feed)
        };
        let fingerprint = Fingerprint::default()
            .with(&source.fingerprint().to_le_bytes())
            .with(options.recipe.get().as_bytes())
            .with(&[u8::from(apply_orientation), u8::from(shuffles(&options.feed))]);
        let host = Pageable::new(1);
        let parts = match &device {
            None => Parts {
                source: Arc::clone(&source),
                decoders: vec![Arc::<CpuBackend>::clone(&backend)],
                renderer: backend,
                planner: Arc::new(recipe),
                allocator: Arc::new(host),
            },
            Some(device) => {
                recipe.render_on_device(source.schema());
                Parts {
                    source: Arc::clone(&source),
                    decoders: device.decoders(),
                    renderer: device.renderer(),
                    planner: Arc::new(recipe),
                    allocator: Arc::new(DeviceSlabs { device: Arc::clone(device), host }),
                }
            }
        };
        let decoders = parts.decoders.iter().map(|decoder| decoder.name()).collect();
        let renderer = parts.renderer.name();
        let engine = engine::Pipeline::open(config, parts)?;
        let fingerprint = format!("{:016x}", fingerprint.value());
        Ok(Self { engine, source, pushed, config, fingerprint, device, decoders, renderer })
    }

    /// Ordinals per global position: feeds from Python count their own samples only.
    fn stride(&self) -> u64 {
        match self.config.feed {
            FeedConfig::Ordered { .. } => 1,
            FeedConfig::Pushed { shards, .. } => shards,
        }
    }

    pub(crate) fn start(&self, epoch: u64, position: u64) -> Result<(), Error> {
        // The old epoch's requests are refused after it has ended, so that they are no faults of it.
        let forgotten = self.pushed.as_ref().map(|pushed| pushed.clear());
        let started = self.engine.start_epoch(epoch, position);
        if let Some(forgotten) = forgotten {
            forgotten.refuse();
        }
        Ok(started?)
    }

    pub(crate) fn next(&self, timeout_ms: u64) -> Result<Poll, Error> {
        if let Some(device) = &self.device {
            device.check_capture()?;
        }
        match self.engine.next(Duration::from_millis(timeout_ms))? {
            Next::Pending => Ok(Poll::default()),
            Next::End => Ok(Poll::new(r#"{"kind":"end"}"#.into(), Vec::new())),
            Next::Batch(batch) => {
                batch::poll(&batch, self.pushed.is_some(), self.device.as_deref())
            }
        }
    }

    pub(crate) fn push_batch(&self, indices: &[i64]) -> Result<(), Error> {
        let index = |&index: &i64| {
            u64::try_from(index).map_err(|_| {
                Error::new(ErrorKind::Range, format!("the sampler gave index {index}, below 0"))
            })
        };
        let indices: Vec<u64> = indices.iter().map(index).collect::<Result<_, _>>()?;
        if let Some(len) = self.source.len()
            && let Some(index) = indices.iter().find(|&&index| index >= len)
        {
            let message = format!("the sampler gave index {index}, the source has {len} samples");
            return Err(Error::new(ErrorKind::Range, message));
        }
        Ok(self.engine.push_batch(&indices)?)
    }

    pub(crate) fn push_end(&self) -> Result<(), Error> {
        Ok(self.engine.push_end()?)
    }

    pub(crate) fn feed_wanted(&self) -> usize {
        self.engine.wanted_batches()
    }

    pub(crate) fn state(&self) -> State {
        let progress = self.engine.progress();
        State {
            version: VERSION,
            fingerprint: self.fingerprint.clone(),
            seed: self.config.feed.seed(),
            epoch: progress.epoch,
            position: progress.next_position * self.stride(),
        }
    }

    /// Epoch and position (of this feed's own count) at which `json` goes on.
    pub(crate) fn check_state(&self, json: &str) -> Result<[u64; 2], Error> {
        let state: State = options::parse("state", json)?;
        let len = match self.config.feed {
            FeedConfig::Ordered { .. } => self.source.len(),
            FeedConfig::Pushed { .. } => None,
        };
        state.check(&self.state(), len)?;
        Ok([state.epoch, state.position / self.stride()])
    }

    fn pushed(&self) -> Result<&Pushed, Error> {
        let missing = || Error::new(ErrorKind::Invalid, "this pipeline reads its own files");
        self.pushed.as_deref().ok_or_else(missing)
    }

    pub(crate) fn wanted(&self, max: usize, timeout_ms: u64) -> Result<TensorOut, Error> {
        let requests = self.pushed()?.take(max, Duration::from_millis(timeout_ms));
        let rows = i64::try_from(requests.len()).unwrap_or(i64::MAX);
        let numbers = requests.iter().flat_map(|request| [request.token, request.index]);
        Ok(tensors::from_numbers(numbers.map(u64::cast_signed).collect(), vec![rows, 2]))
    }

    pub(crate) fn supply(&self, token: i64, bytes: Result<Vec<u8>, Fault>) -> Result<(), Error> {
        self.pushed()?.supply(token.cast_unsigned(), bytes.map(Bytes::new));
        Ok(())
    }

    pub(crate) fn stats(&self) -> Result<String, Error> {
        to_json(&self.engine.stats())
    }

    pub(crate) fn describe(&self) -> Result<String, Error> {
        let fields: Vec<&str> =
            self.source.schema().fields.iter().map(|field| field.path.as_str()).collect();
        to_json(&serde_json::json!({
            "fields": fields,
            "samples": self.source.len(),
            "workers": self.config.workers,
            "io_threads": if self.config.workers == 0 { 0 } else { self.config.io_threads },
            "depth": self.config.depth,
            "cpus": self.config.cpus.map(|cpus| cpus.iter().collect::<Vec<_>>()),
            "memory_budget": self.config.memory_budget,
            "decoders": self.decoders,
            "renderer": self.renderer,
            "notes": self.device.as_ref().map_or(&[] as &[String], |device| device.notes()),
            "simd": forebay_codec::Level::best().name(),
            "fingerprint": self.fingerprint,
        }))
    }

    pub(crate) fn close(&self) {
        if let Some(pushed) = &self.pushed {
            pushed.close();
        }
        self.engine.close();
    }
}

impl Drop for Pipeline {
    fn drop(&mut self) {
        self.close();
    }
}

pub(crate) fn to_json(value: &impl serde::Serialize) -> Result<String, Error> {
    serde_json::to_string(value).map_err(|error| Error::new(ErrorKind::Internal, error))
}

type OpenSource = (Arc<dyn Source>, Option<Arc<Pushed>>);

fn open_source(
    options: &SourceOptions,
    names: &[u8],
    offsets: &[i64],
    labels: &LabelsIn,
    memory: Option<Arc<dyn HostMemory>>,
) -> Result<OpenSource, Error> {
    match options {
        SourceOptions::List { root } => {
            let names = Names::new(names.to_vec(), offsets)?;
            let labels = parse_labels(labels)?;
            let list = FileList::new(PathBuf::from(root), names, labels)?;
            let list = match memory {
                Some(memory) => list.into_memory(memory),
                None => list,
            };
            Ok((Arc::new(list), None))
        }
        SourceOptions::Pushed { len, fingerprint } => {
            let pushed = Arc::new(Pushed::new(*len, *fingerprint));
            Ok((Arc::<Pushed>::clone(&pushed), Some(pushed)))
        }
    }
}

fn parse_labels(labels: &LabelsIn) -> Result<Option<Labels>, Error> {
    use forebay_core::DType as Core;
    let [_, shape @ ..] = labels.sizes else { return Ok(None) };
    if labels.elements.is_empty() {
        return Ok(None);
    }
    let dtype = match labels.dtype {
        DType::Bool => Core::Bool,
        DType::UInt8 => Core::UInt8,
        DType::Int64 => Core::Int64,
        DType::Float16 => Core::Float16,
        DType::BFloat16 => Core::BFloat16,
        DType::Float32 => Core::Float32,
        DType::Float64 => Core::Float64,
        _ => return Err(Error::new(ErrorKind::Type, "labels have an element type unknown here")),
    };
    let side = |&size: &i64| {
        usize::try_from(size).map_err(|_| Error::new(ErrorKind::Invalid, "labels: negative size"))
    };
    let shape = shape.iter().map(side).collect::<Result<_, _>>()?;
    Ok(Some(Labels { dtype, shape, elements: labels.elements.to_vec() }))
}

/// Whether positions stand for other samples in every epoch; a state means nothing without it.
fn shuffles(feed: &FeedOptions) -> bool {
    match feed {
        FeedOptions::Ordered { shuffle, .. } => *shuffle,
        FeedOptions::Pushed { .. } => false,
    }
}

fn engine_config(engine: &EngineOptions, feed: &FeedOptions) -> EngineConfig {
    let feed = match *feed {
        FeedOptions::Ordered { seed, shuffle, batch_size, rank, world_size, last_batch } => {
            let dealing = Dealing { batch_size, rank, world_size, last_batch };
            FeedConfig::Ordered { seed, shuffle, dealing }
        }
        FeedOptions::Pushed { seed, shard, shards } => FeedConfig::Pushed { seed, shard, shards },
    };
    EngineConfig {
        workers: engine.workers,
        io_threads: IO_THREADS,
        read_ahead: READ_AHEAD * (engine.workers + IO_THREADS),
        depth: engine.depth,
        memory_budget: engine.memory_budget,
        on_error: match engine.on_error {
            OnError::Raise => engine::OnError::Raise,
            OnError::Skip => engine::OnError::Skip,
            OnError::Replace => engine::OnError::Replace,
        },
        shares: None,
        max_errors: engine.max_errors,
        feed,
        cpus: engine.cpus.as_ref().map(|cpus| cpus.iter().copied().collect()),
        ranges: engine.ranges,
    }
}

/// A bad sample that Python reports.
pub(crate) fn dataset_fault(reason: &str) -> Fault {
    Fault::new(Stage::Dataset, reason)
}
