//! The cores of a GPU as a decoder: baseline JPEGs, by kernels of ours.
//!
//! A submit is some images in a few launches (`pack::scan`), for which the calling thread waits
//! asleep. Only blocks that the planned region needs become samples. What the kernels do not vouch
//! for, the fallback decodes.

use crate::Error;
use crate::driver::{Device, DeviceBuffer, Event, PinnedBuffer, Stream, Wait, fill};
use crate::kernels::Kernels;
use crate::pack::{MAX_FILE, Scan, ScanItem, ScanScratch, Source, lay_out, pack_scans};
use crate::pixels::DevicePixels;
use crate::pool::Pool;
use crate::upload::Pieces;
use forebay_core::ports::{self, Cost, DecodeJob, DecodeSink, Decoded, Decoder, Fault, Pixels};
use forebay_core::{Channels, ImageMeta, Region};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Submits at once: one is copied while another runs.
const SUBMITS: usize = 2;
/// Images of a submit: 64 take 2.3 ms, 192 take 2.8 ms (H200, photos of 110 kB).
const GROUP: usize = 256;
/// With so many it need not wait for more.
const ENOUGH: usize = 64;
/// Bytes of an image's look-up tables, about.
const TABLES: u64 = 20 << 10;
/// Fewer are left to threads.
const LEAST: usize = 4;
/// A submit of usual photos.
const GROUP_COST: Cost = Cost(5_000_000);

/// The cores as a decoder.
pub struct CudaDecoder {
    device: Arc<Device>,
    kernels: Arc<Kernels>,
    /// One submit after the other: two at once would take as long, and end together, and nothing
    /// would be left to do until the next ones have been read.
    compute: Mutex<Stream>,
    /// Copies of a submit run beside the kernels of the one before. Those that no submit uses.
    uploads: Mutex<Vec<Stream>>,
    memory: Arc<Pool<DeviceBuffer>>,
    staging: Arc<Pool<PinnedBuffer>>,
    /// Reads headers, and decodes what the kernels leave.
    fallback: Arc<dyn Decoder>,
}

impl std::fmt::Debug for CudaDecoder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CudaDecoder").field("device", &self.device).finish_non_exhaustive()
    }
}

impl CudaDecoder {
    pub(crate) fn new(
        kernels: &Arc<Kernels>,
        device: &Arc<Device>,
        memory: &Arc<Pool<DeviceBuffer>>,
        staging: &Arc<Pool<PinnedBuffer>>,
        fallback: Arc<dyn Decoder>,
    ) -> Result<Self, Error> {
        Ok(Self {
            kernels: Arc::clone(kernels),
            compute: Mutex::new(Stream::new(device)?),
            uploads: Mutex::new(vec![Stream::new(device)?]),
            device: Arc::clone(device),
            memory: Arc::clone(memory),
            staging: Arc::clone(staging),
            fallback,
        })
    }

    fn uploads(&self) -> MutexGuard<'_, Vec<Stream>> {
        self.uploads.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn compute(&self) -> MutexGuard<'_, Stream> {
        self.compute.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The pixels of each job; `None` for those that the kernels leave.
    fn decode(&self, jobs: &[(DecodeJob, Scan)]) -> Result<Vec<Option<Pixels>>, Error> {
        let _current = self.device.enter()?;
        let free = self.uploads().pop();
        let upload = free.map_or_else(|| Stream::new(&self.device), Ok)?;
        let decoded = self.decode_by(&upload, jobs);
        self.uploads().push(upload);
        decoded
    }

    fn decode_by(
        &self,
        upload: &Stream,
        jobs: &[(DecodeJob, Scan)],
    ) -> Result<Vec<Option<Pixels>>, Error> {
        let mut files = Pieces::default();
        for (job, _) in jobs {
            files.add(job.bytes.memory(), &job.bytes, &self.staging)?;
        }
        let uploads = files.uploads();
        let encoded = self.memory.loan(uploads.bytes)?;
        let items: Vec<ScanItem<'_>> = jobs
            .iter()
            .zip(uploads.addresses(encoded.pointer()))
            .map(|((job, scan), file)| {
                let (components, coefficients) = scan.window(job.region);
                ScanItem {
                    scan,
                    size: job.meta.size,
                    file,
                    file_bytes: job.bytes.len(),
                    components,
                    coefficients,
                }
            })
            .collect();
        let layout = ScanScratch::new(&items);
        let scratch = self.memory.loan(length(layout.bytes))?;
        let planes: usize =
            items.iter().map(|item| lay_out(item.size, &item.components, 0, 0).bytes).sum();
        let planes = Arc::new(self.memory.loan(planes)?);
        let (packed, sources) = pack_scans(&items, &layout, scratch.pointer(), planes.pointer());
        let tables = self.memory.loan(packed.blob.len())?;
        let mut staging = self.staging.loan(packed.blob.len().max(STATUS * jobs.len()))?;
        staging.bytes_mut()[..packed.blob.len()].copy_from_slice(&packed.blob);

        let copied = Event::new(&self.device, Wait::Block)?;
        let decoded = Arc::new(Event::new(&self.device, Wait::Block)?);
        let enqueued = || -> Result<(), Error> {
            // SAFETY: the files and `encoded` are kept until the event, which is waited for.
            unsafe { uploads.enqueue(&encoded, upload) }?;
            // SAFETY: as above; the blob's copy is read before it is written below.
            unsafe { tables.upload(0, &staging.bytes()[..packed.blob.len()], upload) }?;
            // SAFETY: the scratch is kept until the event.
            unsafe { fill(scratch.pointer(), length(packed.cleared_bytes), 0, upload) }?;
            copied.record(upload)?;
            let compute = self.compute();
            compute.wait(&copied)?;
            // SAFETY: files, planes, blob and scratch are as the batch was packed for, and kept.
            unsafe { self.kernels.launch(&packed, &tables, &scratch, &compute) }?;
            // SAFETY: nobody looks at the bytes before the event.
            unsafe { scratch.download(0, STATUS * jobs.len(), &mut staging, &compute) }?;
            decoded.record(&compute)
        }();
        // Everything is given back below, whatever came of it.
        let done = enqueued.and_then(|()| decoded.synchronize());
        if let Err(error) = done {
            let _ = upload.synchronize();
            let _ = self.compute().synchronize();
            return Err(error);
        }
        let (statuses, _) = staging.bytes().as_chunks::<STATUS>();
        let pixels = |(source, status): (Source, &[u8; STATUS])| {
            let (decoded, memory) = (Arc::clone(&decoded), Arc::clone(&planes));
            let pixels = DevicePixels { source, decoded, memory };
            (u32::from_ne_bytes(*status) == 1).then(|| Pixels::Device(Box::new(pixels)))
        };
        Ok(sources.into_iter().zip(statuses).map(pixels).collect())
    }
}

/// Bytes of an image's status.
const STATUS: usize = size_of::<u32>();

fn length(bytes: u64) -> usize {
    usize::try_from(bytes).unwrap_or(usize::MAX)
}

impl Decoder for CudaDecoder {
    fn name(&self) -> &'static str {
        "cuda"
    }

    fn probe(&self, bytes: &[u8]) -> Result<ImageMeta, Fault> {
        self.fallback.probe(bytes)
    }

    fn cost(&self, meta: &ImageMeta, _region: Region) -> Option<Cost> {
        if meta.baseline.is_none() || meta.restarts || meta.bytes > MAX_FILE {
            return None;
        }
        Some(Cost(5_000 + meta.bytes as u64 / 10))
    }

    /// The file and what is known of its chunks, tables, and of the region two bytes a coefficient
    /// and one a sample; windows end at whole MCUs, of 32 pixels at most.
    fn footprint(&self, meta: &ImageMeta, region: Region) -> u64 {
        let bytes = meta.bytes as u64;
        let samples = u64::from(region.width + 64) * u64::from(region.height + 64);
        bytes + bytes / 2 + TABLES + 9 * samples
    }

    fn engines(&self) -> Option<ports::Engines> {
        Some(ports::Engines {
            submits: SUBMITS,
            jobs: GROUP,
            enough: ENOUGH,
            least: LEAST,
            cost: GROUP_COST,
            busy: false,
        })
    }

    fn submit(&self, jobs: Vec<DecodeJob>, sink: &Arc<dyn DecodeSink>) {
        let stopped = jobs.iter().all(|job| job.stop.raised());
        let scan = |job: DecodeJob| {
            let fits = !stopped && job.channels == Channels::Rgb && job.bytes.len() <= MAX_FILE;
            let kind = job.meta.baseline.filter(|_| fits);
            match kind.and_then(|kind| Scan::parse(&job.bytes, kind)) {
                Some(scan) if scan.size() == job.meta.size => Ok((job, scan)),
                _ => Err(job),
            }
        };
        let (mut scans, mut left) = (Vec::with_capacity(jobs.len()), Vec::new());
        for job in jobs {
            match scan(job) {
                Ok(pair) => scans.push(pair),
                Err(job) => left.push(job),
            }
        }
        let pixels = if scans.is_empty() { Ok(Vec::new()) } else { self.decode(&scans) };
        // A device that fails says so when it renders.
        let mut pixels = pixels.unwrap_or_default().into_iter();
        let mut done = Vec::with_capacity(scans.len());
        for (job, _) in scans {
            match pixels.next().flatten() {
                Some(pixels) => done.push(Decoded { token: job.token, pixels: Ok(pixels) }),
                None => left.push(job),
            }
        }
        sink.decoded(done);
        if !left.is_empty() {
            self.fallback.submit(left, sink);
        }
    }
}
