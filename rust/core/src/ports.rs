//! The seams between the engine and the rooms that do the work.
//!
//! Every port takes many jobs and completes them later through a sink, in any order and on any
//! thread: inline and one by one on the CPU, by batch from a completion thread on a GPU. The
//! engine routes by cost and never asks what kind of backend it has.

use crate::{
    Bytes, Channels, ErrorKind, FieldSpec, ImageMeta, ImagePlan, Mix, Record, Region, Sampling,
    Schema, Size,
};
use std::any::Any;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Where in a sample's journey something failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Stage {
    /// Reading bytes.
    Read,
    /// Code of the user's dataset.
    Dataset,
    /// Header or pixels.
    Decode,
    /// Planning or rendering the recipe.
    Transform,
}

impl Stage {
    /// The name that users see.
    pub fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Dataset => "dataset",
            Self::Decode => "decode",
            Self::Transform => "transform",
        }
    }
}

/// A bad sample, as a value (ERR-1).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// Where it failed.
    pub stage: Stage,
    /// What is wrong: lowercase, no full stop.
    pub reason: String,
}

impl Fault {
    /// A fault at `stage`.
    pub fn new(stage: Stage, reason: impl std::fmt::Display) -> Self {
        Self { stage, reason: reason.to_string() }
    }
}

/// Raised once to tell decoders that their work is no longer wanted; they look at it every band
/// of rows (LIF-1).
#[derive(Debug, Clone, Default)]
pub struct Stop(Arc<AtomicBool>);

impl Stop {
    /// Asks everyone who holds a clone to stop.
    pub fn raise(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Whether work should end early.
    pub fn raised(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// Names one piece of work between a submit and its completion.
pub type Token = u64;

/// A sample that the engine wants from a source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Request {
    /// Handed back with the record.
    pub token: Token,
    /// Which sample.
    pub index: u64,
}

/// Receives records in any order, from any thread.
pub trait RecordSink: Send + Sync {
    /// Called by sources that know a record's size before they read it. False: there is no room
    /// for it now; the source drops the request, which will come again.
    fn admit(&self, token: Token, bytes: u64) -> bool {
        let _ = (token, bytes);
        true
    }

    /// The record that `token` asked for, or why there is none.
    fn deliver(&self, token: Token, record: Result<Record, Fault>);
}

/// Where records come from, addressed by index.
pub trait Source: Send + Sync {
    /// Number of samples; `None` for a stream.
    fn len(&self) -> Option<u64>;

    /// Whether there are no samples at all.
    fn is_empty(&self) -> bool {
        self.len() == Some(0)
    }

    /// The leaves of its samples.
    fn schema(&self) -> &Schema;

    /// Changes when the samples or their order do (RES-1).
    fn fingerprint(&self) -> u64;

    /// How users name the sample: a path, or shard and offset.
    fn key(&self, index: u64) -> String;

    /// Reads; every request that was not refused by `admit` completes exactly once. May block on I/O: the engine calls it from
    /// threads that wait.
    fn request(&self, requests: &[Request], sink: &Arc<dyn RecordSink>);
}

/// Decoded pixels on their way from a decoder to a renderer.
pub enum Pixels {
    /// Not decoded: the renderer decodes while it renders, band by band.
    Encoded(Bytes),
    /// The planned region as rows in host memory.
    Host(HostPixels),
    /// A JPEG's coefficients around the planned region, for a renderer on a device.
    Coefficients(HostCoefficients),
    /// The planned region wherever this decoder and its renderer agreed.
    Device(Box<dyn Any + Send>),
}

impl std::fmt::Debug for Pixels {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Encoded(bytes) => f.debug_tuple("Encoded").field(bytes).finish(),
            Self::Host(pixels) => f.debug_tuple("Host").field(&pixels.region).finish(),
            Self::Coefficients(of) => f.debug_tuple("Coefficients").field(&of.size).finish(),
            Self::Device(_) => f.write_str("Device"),
        }
    }
}

/// Interleaved rows of one region of an image, in stored orientation.
#[derive(Debug)]
pub struct HostPixels {
    /// Which part of the stored image this is.
    pub region: Region,
    /// Channels per pixel.
    pub channels: usize,
    /// `region.height * region.width * channels` bytes.
    pub rows: Box<dyn HostBuffer>,
    /// Decoder warnings about damage that left every row present.
    pub warnings: u32,
}

/// Y, Cb and Cr of a JPEG before the inverse DCT.
#[derive(Debug)]
pub struct HostCoefficients {
    /// Of the whole stored image.
    pub size: Size,
    /// In this order.
    pub components: Box<[Blocks; 3]>,
    /// int16 of native byte order, aligned to its size.
    pub memory: Box<dyn HostBuffer>,
}

/// Blocks of a component that cover its samples of a region and a neighbour of each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Blocks {
    /// Pixels per sample.
    pub sampling: Sampling,
    /// First byte of the first block; rows of blocks follow each other. A block is 64 coefficients in
    /// natural order, not dequantised.
    pub offset: usize,
    /// Place of the first block among the component's, across.
    pub x: u32,
    /// Down.
    pub y: u32,
    /// Number of blocks, across.
    pub across: u32,
    /// Down.
    pub down: u32,
    /// What coefficients are to be multiplied by, in natural order.
    pub quantisation: [u16; 64],
}

/// Host memory that somebody lends.
pub trait HostBuffer: Send + Sync + std::fmt::Debug {
    /// The bytes that were asked for.
    fn bytes(&self) -> &[u8];

    /// The same, to be written.
    fn bytes_mut(&mut self) -> &mut [u8];

    /// For the renderer whose memory it is.
    fn as_any(&self) -> &dyn Any;
}

impl HostBuffer for Vec<u8> {
    fn bytes(&self) -> &[u8] {
        self
    }

    fn bytes_mut(&mut self) -> &mut [u8] {
        self
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// Where sources put files, and decoders pixels, that a backend wants in a place of its own:
/// page-locked memory, for a device.
pub trait HostMemory: Send + Sync {
    /// `bytes` bytes with undefined contents.
    ///
    /// # Errors
    /// There is not enough memory.
    fn take(&self, bytes: usize) -> Result<Box<dyn HostBuffer>, Fault>;
}

/// Memory of the process's own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Heap;

impl HostMemory for Heap {
    fn take(&self, bytes: usize) -> Result<Box<dyn HostBuffer>, Fault> {
        let mut memory = Vec::new();
        let missing = |_| Fault::new(Stage::Read, format!("out of memory ({bytes} bytes)"));
        memory.try_reserve_exact(bytes).map_err(missing)?;
        memory.resize(bytes, 0);
        Ok(Box::new(memory))
    }
}

/// One image to decode.
#[derive(Debug)]
pub struct DecodeJob {
    /// Handed back on completion.
    pub token: Token,
    /// The encoded image.
    pub bytes: Bytes,
    /// What the probe found.
    pub meta: Arc<ImageMeta>,
    /// The part that the plan needs, in stored orientation.
    pub region: Region,
    /// What the plan reads of each pixel.
    pub channels: Channels,
    /// Raised when the result is no longer wanted.
    pub stop: Stop,
}

/// The pixels that a job asked for, or why there are none.
#[derive(Debug)]
pub struct Decoded {
    /// The job's.
    pub token: Token,
    /// The planned region, or more of the image.
    pub pixels: Result<Pixels, Fault>,
}

/// Receives decoded pixels in any order, from any thread.
pub trait DecodeSink: Send + Sync {
    /// Takes what came of some jobs; many at once cost little more than one.
    fn decoded(&self, done: Vec<Decoded>);
}

/// Estimated busy time of the resource that a decoder stands for, in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Cost(pub u64);

/// Decoding that does not happen on the calling thread, though a thread may have to wait for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Engines {
    /// Submits that it works on at once; each has a thread of its own.
    pub submits: usize,
    /// Jobs of one submit that keep it busy.
    pub jobs: usize,
    /// With so many a submit need not wait for more.
    pub enough: usize,
    /// Fewer than these are left to others.
    pub least: usize,
    /// Cost of one submit beyond which it gets no more jobs.
    pub cost: Cost,
    /// A submit takes the calling thread's time; else that sleeps.
    pub busy: bool,
}

/// Bytes and a region to pixels.
pub trait Decoder: Send + Sync {
    /// The name in `stats()` and `describe()`.
    fn name(&self) -> &'static str;

    /// Reads the header, to the last marker (ERR-2), within the limits.
    ///
    /// # Errors
    /// The image is damaged, too large or of a kind that no decoder reads.
    fn probe(&self, bytes: &[u8]) -> Result<ImageMeta, Fault>;

    /// What the image would cost here; `None` if this decoder cannot decode it.
    fn cost(&self, meta: &ImageMeta, region: Region) -> Option<Cost>;

    /// Bytes that decoding holds beside the encoded bytes until the image is rendered, on the host or
    /// on a device, for the budget (MEM-1); 0 for decoders that work in bands.
    fn footprint(&self, meta: &ImageMeta, region: Region) -> u64 {
        let _ = (meta, region);
        0
    }

    /// Makes ready what takes long and is seldom needed. Until it is done, `cost` says `None`. Called
    /// on a thread of the engine's while others work: before any work where shares of the images are
    /// fixed, else once `wants_warm_up`. May be called on several threads, which all return when it
    /// is done.
    fn warm_up(&self) {}

    /// Lets go of what that takes long for, once nobody asks it for anything any more. Called on a
    /// thread of the engine's, as it ends.
    fn retire(&self) {}

    /// Whether `cost` has said `None` to an image only because [`Decoder::warm_up`] was not called.
    fn wants_warm_up(&self) -> bool {
        false
    }

    /// How it takes work if it has engines of its own; `None` if it works on the thread that calls
    /// it.
    fn engines(&self) -> Option<Engines> {
        None
    }

    /// Images of different kinds do not go into one submit to engines.
    fn kind(&self, meta: &ImageMeta) -> u64 {
        let _ = meta;
        0
    }

    /// Decodes; every job completes exactly once.
    fn submit(&self, jobs: Vec<DecodeJob>, sink: &Arc<dyn DecodeSink>);
}

/// The memory of one sample's slot in one field of a batch.
#[derive(Debug)]
pub enum SlotMemory<'a> {
    /// Host memory.
    Host(&'a mut [u8]),
    /// A range of device memory.
    Device {
        /// The field of the batch.
        memory: &'a dyn DeviceMemory,
        /// First byte of the slot in it.
        offset: usize,
        /// Length in bytes.
        bytes: usize,
    },
}

/// Memory of one field of a batch that only a device can touch.
pub trait DeviceMemory: Send + Sync + std::fmt::Debug {
    /// Where the first byte lies, for the device.
    fn address(&self) -> u64;

    /// Length in bytes.
    fn bytes(&self) -> usize;

    /// Fills a range with zeros, after whatever was written to it before.
    ///
    /// # Errors
    /// The device failed.
    fn zero(&self, offset: usize, bytes: usize) -> Result<(), Fault>;

    /// For the renderer whose memory it is.
    fn as_any(&self) -> &dyn Any;
}

/// Exclusive access to one slot of a slab, given out once.
pub trait Slot: Send + std::fmt::Debug {
    /// The memory to write.
    fn memory(&mut self) -> SlotMemory<'_>;
}

/// One image to render into its slot.
#[derive(Debug)]
pub struct RenderJob {
    /// Handed back on completion.
    pub token: Token,
    /// What the decoder gave.
    pub pixels: Pixels,
    /// What the probe found.
    pub meta: Arc<ImageMeta>,
    /// What to do.
    pub plan: Arc<ImagePlan>,
    /// Where to write.
    pub slot: Box<dyn Slot>,
    /// Raised when the result is no longer wanted.
    pub stop: Stop,
}

/// What rendering one image took, counted by the executor itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RenderReport {
    /// Passes run over the pixels.
    pub passes: u32,
    /// Bytes written between passes, and of whole decoded regions; 0 on the fused path.
    pub intermediate_bytes: u64,
    /// Decoder warnings about damage that left every row present.
    pub warnings: u32,
}

/// A job's slot on its way back.
#[derive(Debug)]
pub struct Rendered {
    /// The job's.
    pub token: Token,
    /// Written, or with undefined contents if there is a fault.
    pub slot: Box<dyn Slot>,
    /// What it took, or why it was not written.
    pub outcome: Result<RenderReport, Fault>,
}

/// Receives rendered slots in any order, from any thread.
pub trait RenderSink: Send + Sync {
    /// Takes the slots of some jobs; many at once cost little more than one.
    fn rendered(&self, done: Vec<Rendered>);

    /// The device has no memory for these jobs now. They come again, later or after the consumer was
    /// told.
    fn postponed(&self, jobs: Vec<RenderJob>, reason: String);

    /// The renderer itself failed, through no fault of an image: the pipeline ends with this error.
    fn failed(&self, kind: ErrorKind, reason: String);
}

/// A backend failed, through no fault of an image: the pipeline ends with this error.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failed {
    /// What kind of failure.
    pub kind: ErrorKind,
    /// What is wrong: lowercase, no full stop.
    pub reason: String,
}

/// Pixels and a plan to a slot's final bytes.
pub trait Renderer: Send + Sync {
    /// The name in `stats()` and `describe()`.
    fn name(&self) -> &'static str;

    /// How many jobs it likes in one submit; the engine never waits for more than a batch.
    fn preferred_jobs(&self) -> usize {
        1
    }

    /// Renders; every job completes exactly once and gives its slot back, is
    /// postponed, or the renderer fails.
    fn submit(&self, jobs: Vec<RenderJob>, sink: &Arc<dyn RenderSink>);

    /// Mixes rendered images of one batch's field with each other, in place: `mixes` in order, each
    /// of every slot with the one before it and the first with the last.
    ///
    /// # Errors
    /// The renderer itself failed.
    fn mix(
        &self,
        slots: &mut [Box<dyn Slot>],
        spec: &FieldSpec,
        mixes: &[Mix],
    ) -> Result<(), Failed>;
}
