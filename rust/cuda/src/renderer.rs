//! The renderer: a batch of decoded images and plans becomes two launches a pass.
//!
//! Nothing here waits for the device but for scratch memory. A slot is "rendered" once its kernel is
//! in the stream: whoever reads the slab waits for the events that its fields carry.

use crate::Error;
use crate::driver::{Device, DeviceBuffer, Event, PinnedBuffer, Stream, Wait, fill};
use crate::kernels::Kernels;
use crate::lent::Lent;
use crate::pack::{self, Packed, PackedMix, Plane, RenderItem, Source};
use crate::pixels::{DevicePixels, ForeignPixels};
use crate::pool::{Loan, Pool};
use crate::upload::Pieces;
use forebay_core::ports::{
    Blocks, DeviceMemory, Failed, Fault, HostCoefficients, HostPixels, Pixels, RenderJob,
    RenderReport, RenderSink, Rendered, Renderer, Slot, SlotMemory, Stage,
};
use forebay_core::{ErrorKind, FieldSpec, HasKind, Mix, Region, Size};
use std::collections::HashSet;
use std::fmt::Display;
use std::sync::{Arc, Mutex, PoisonError};

/// Renders on one device.
#[derive(Debug)]
pub struct CudaRenderer {
    device: Arc<Device>,
    kernels: Arc<Kernels>,
    render: Arc<Stream>,
    upload: Stream,
    scratch: Arc<Pool<DeviceBuffer>>,
    staging: Arc<Pool<PinnedBuffer>>,
    /// Held while a batch is put into the streams, so that batches do not mix.
    order: Mutex<()>,
}

type Outcome = Result<(), Fault>;

/// A batch's pixels, which it uses until its last kernel is done.
#[derive(Default)]
struct Gathered {
    /// By job; `None` for those that have none.
    places: Vec<Option<Place>>,
    /// Memory that decoders on the device wrote, and when.
    device: Vec<Arc<Loan<DeviceBuffer>>>,
    decoded: Vec<Arc<Event>>,
    /// What decoders on the host wrote.
    pieces: Pieces,
}

/// Where a job's pixels are, before those of the host are copied.
enum Place {
    Device(Source),
    /// One of the pieces.
    Upload {
        piece: usize,
        region: Region,
        channels: usize,
    },
    /// Coefficients in one of the pieces, which are to become planes.
    Blocks {
        piece: usize,
        size: Size,
        components: Box<[Blocks; 3]>,
    },
}

impl CudaRenderer {
    pub(crate) fn new(
        kernels: &Arc<Kernels>,
        render: &Arc<Stream>,
        scratch: &Arc<Pool<DeviceBuffer>>,
        staging: &Arc<Pool<PinnedBuffer>>,
    ) -> Result<Self, Error> {
        let device = Arc::clone(render.device());
        Ok(Self {
            kernels: Arc::clone(kernels),
            render: Arc::clone(render),
            upload: Stream::new(&device)?,
            device,
            scratch: Arc::clone(scratch),
            staging: Arc::clone(staging),
            order: Mutex::default(),
        })
    }

    /// Puts the batch into the streams; the outcome of each job by its place.
    fn enqueue(&self, jobs: &mut [RenderJob]) -> Result<Vec<Outcome>, Error> {
        let _current = self.device.enter()?;
        let mut outcomes = vec![Ok(()); jobs.len()];
        let gathered = self.gather(jobs, &mut outcomes)?;
        let uploads = gathered.pieces.uploads();
        let uploaded = self.scratch.loan(uploads.bytes)?;
        let planes = self.scratch.loan(Sources::plane_bytes(&gathered.places))?;
        let addresses = uploads.addresses(uploaded.pointer());
        let sources = Sources { uploaded: addresses, planes: planes.pointer() };
        let packed = pack_jobs(jobs, &gathered.places, sources, &mut outcomes);
        if packed.launches.is_empty() {
            return Ok(outcomes);
        }
        let mut blob = self.staging.loan(packed.blob.len())?;
        blob.bytes_mut()[..packed.blob.len()].copy_from_slice(&packed.blob);
        let tables = self.scratch.loan(packed.blob.len())?;
        let scratch_bytes = usize::try_from(packed.scratch_bytes).unwrap_or(usize::MAX);
        let scratch = self.scratch.loan(scratch_bytes)?;

        let order = self.order.lock().unwrap_or_else(PoisonError::into_inner);
        let done = Arc::new(Event::new(&self.device, Wait::Block)?);
        let enqueued = || -> Result<(), Error> {
            let copied = Event::new(&self.device, Wait::Block)?;
            // SAFETY: the pinned memory and `uploaded` are kept, unwritten, until `done`.
            unsafe { uploads.enqueue(&uploaded, &self.upload) }?;
            // SAFETY: as above.
            unsafe { tables.upload(0, &blob.bytes()[..packed.blob.len()], &self.upload) }?;
            copied.record(&self.upload)?;
            self.render.wait(&copied)?;
            for event in &gathered.decoded {
                self.render.wait(event)?;
            }
            self.launch(jobs, &packed, &tables, &scratch)?;
            done.record(&self.render)
        }();
        if let Err(error) = enqueued {
            // Nobody could wait for what was enqueued otherwise; its memory goes back now.
            let _ = self.upload.synchronize();
            let _ = self.render.synchronize();
            return Err(error);
        }
        drop(order);

        for_each_field(jobs, |field| field.written(&done));
        let device = gathered.device.iter().map(|memory| &**memory);
        device
            .chain([&uploaded, &planes, &tables, &scratch])
            .for_each(|memory| memory.use_until(&done));
        uploads.use_until(&done);
        blob.use_until(&done);
        Ok(outcomes)
    }

    fn launch(
        &self,
        jobs: &mut [RenderJob],
        packed: &Packed,
        tables: &DeviceBuffer,
        scratch: &DeviceBuffer,
    ) -> Result<(), Error> {
        let mut waited = Ok(());
        for_each_field(jobs, |field| {
            if waited.is_ok() {
                waited = field.wait_before_writing(&self.render);
            }
        });
        waited?;
        let cleared = usize::try_from(packed.cleared_bytes).unwrap_or(usize::MAX);
        if cleared > 0 {
            // SAFETY: the scratch is kept until the batch is done.
            unsafe { fill(scratch.pointer(), cleared, 0, &self.render) }?;
        }
        // SAFETY: `pack` checked that the kernels stay inside sources, slots, tables and scratch,
        // which are kept until the batch is done.
        unsafe { self.kernels.launch(packed, tables, scratch, &self.render) }
    }

    /// Finds every job's pixels.
    fn gather(&self, jobs: &[RenderJob], outcomes: &mut [Outcome]) -> Result<Gathered, Error> {
        let mut gathered = Gathered::default();
        let mut seen = HashSet::new();
        for (job, outcome) in jobs.iter().zip(outcomes) {
            let place = match &job.pixels {
                Pixels::Host(HostPixels { region, channels, rows, .. }) => {
                    let piece = gathered.pieces.add(&**rows, rows.bytes(), &self.staging)?;
                    Ok(Place::Upload { piece, region: *region, channels: *channels })
                }
                Pixels::Coefficients(HostCoefficients { size, components, memory }) => {
                    let piece = gathered.pieces.add(&**memory, memory.bytes(), &self.staging)?;
                    Ok(Place::Blocks { piece, size: *size, components: components.clone() })
                }
                Pixels::Device(pixels) => match pixels.downcast_ref::<DevicePixels>() {
                    Some(DevicePixels { source, decoded, memory }) => {
                        if seen.insert(Arc::as_ptr(memory)) {
                            gathered.device.push(Arc::clone(memory));
                            gathered.decoded.push(Arc::clone(decoded));
                        }
                        Ok(Place::Device(*source))
                    }
                    None => match pixels.downcast_ref::<ForeignPixels>() {
                        Some(ForeignPixels(source)) => Ok(Place::Device(*source)),
                        None => Err("pixels of another device"),
                    },
                },
                Pixels::Encoded(_) => Err("pixels that were not decoded"),
            };
            if let Err(what) = place {
                *outcome = Err(Fault::new(Stage::Transform, format!("internal error: {what}")));
            }
            gathered.places.push(place.ok());
        }
        Ok(gathered)
    }

    /// Puts mixes of a field's slots into the stream.
    fn enqueue_mixes(&self, memory: &dyn DeviceMemory, mixes: &[PackedMix]) -> Result<(), Error> {
        let lent = memory.as_any().downcast_ref::<Lent>();
        let _current = self.device.enter()?;
        let done = Arc::new(Event::new(&self.device, Wait::Block)?);
        let _order = self.order.lock().unwrap_or_else(PoisonError::into_inner);
        let enqueued = || -> Result<(), Error> {
            if let Some(field) = lent {
                field.wait_before_writing(&self.render)?;
            }
            for packed in mixes {
                // SAFETY: the slots are ours until they are dropped; who then gets the field waits
                // for the event below.
                unsafe { self.kernels.mix(packed, &self.render) }?;
            }
            done.record(&self.render)
        }();
        if let Err(error) = enqueued {
            // Nobody could wait for what was enqueued otherwise.
            let _ = self.render.synchronize();
            return Err(error);
        }
        if let Some(field) = lent {
            field.written(&done);
        }
        Ok(())
    }

    /// Puts the batch into the streams, in parts if there is no memory for all of it at once; the
    /// outcome of each job by its place. [`Renderer::submit`] for callers without a sink.
    ///
    /// # Errors
    /// The device fails, or has no scratch memory. Parts that are in the streams are still done.
    pub fn enqueue_all(&self, jobs: &mut [RenderJob]) -> Result<Vec<Result<(), Fault>>, Error> {
        match self.enqueue(jobs) {
            Err(error) if error.kind() == ErrorKind::DeviceMemory && jobs.len() > 1 => {
                let (first, second) = jobs.split_at_mut(jobs.len() / 2);
                let mut outcomes = self.enqueue_all(first)?;
                outcomes.append(&mut self.enqueue_all(second)?);
                Ok(outcomes)
            }
            result => result,
        }
    }
}

/// A field, and the places of some slots in it.
type FieldSlots<'a> = (&'a dyn DeviceMemory, Vec<usize>);

/// Those of slots of one field; `None` if there are none.
fn field_of<'a>(slots: &'a mut [Box<dyn Slot>]) -> Result<Option<FieldSlots<'a>>, Error> {
    let foreign = || Error::Invalid { what: "slots of several fields are mixed".to_owned() };
    let mut field: Option<&'a dyn DeviceMemory> = None;
    let mut places = Vec::with_capacity(slots.len());
    for slot in slots {
        let SlotMemory::Device { memory, offset, bytes } = slot.memory() else {
            return Err(foreign());
        };
        if field.is_some_and(|field| field.address() != memory.address()) {
            return Err(foreign());
        }
        field = Some(memory);
        places.push(offset / bytes.max(1));
    }
    Ok(field.map(|field| (field, places)))
}

/// Where pixels lie on the device.
struct Sources {
    /// By piece.
    uploaded: Vec<u64>,
    /// Where planes that are made of coefficients begin.
    planes: u64,
}

impl Sources {
    /// Bytes of all planes that are made of coefficients.
    fn plane_bytes(places: &[Option<Place>]) -> usize {
        let bytes = |place: &Place| match place {
            Place::Blocks { size, components, .. } => pack::lay_out(*size, components, 0, 0).bytes,
            Place::Device(_) | Place::Upload { .. } => 0,
        };
        places.iter().flatten().map(bytes).sum()
    }

    /// The source at a place, and what is to be made into it first.
    fn take(&mut self, place: &Place) -> (Source, Option<[pack::Blocks; 3]>) {
        match place {
            Place::Device(source) => (*source, None),
            &Place::Upload { piece, region, channels } => {
                let channels = u32::try_from(channels).unwrap_or(u32::MAX);
                let plane = Plane {
                    address: self.uploaded[piece],
                    pitch: region.width.saturating_mul(channels),
                    held: region,
                };
                let source = if channels == 1 { Source::Gray(plane) } else { Source::Rgb(plane) };
                (source, None)
            }
            Place::Blocks { piece, size, components } => {
                let coefficients = self.uploaded[*piece];
                let laid = pack::lay_out(*size, components, coefficients, self.planes);
                self.planes += laid.bytes as u64;
                (laid.source, Some(laid.blocks))
            }
        }
    }
}

fn pack_jobs(
    jobs: &mut [RenderJob],
    places: &[Option<Place>],
    mut sources: Sources,
    outcomes: &mut [Outcome],
) -> Packed {
    let mut items = Vec::with_capacity(jobs.len());
    let mut blocks = Vec::new();
    let mut numbers = Vec::with_capacity(jobs.len());
    for (number, (job, place)) in jobs.iter_mut().zip(places).enumerate() {
        let Some(place) = place else { continue };
        let SlotMemory::Device { memory, offset, bytes } = job.slot.memory() else {
            let what = "internal error: a host slot on a device";
            outcomes[number] = Err(Fault::new(Stage::Transform, what));
            continue;
        };
        let slot = memory.address() + offset as u64;
        let (source, made_of) = sources.take(place);
        blocks.extend(made_of.into_iter().flatten());
        items.push(RenderItem { source, plan: &job.plan, slot, slot_bytes: bytes });
        numbers.push(number);
    }
    let packed = pack::pack(&items, &blocks);
    for (place, error) in &packed.refused {
        outcomes[numbers[*place]] = Err(Fault::new(Stage::Transform, error));
    }
    packed
}

/// Every field of the batch that a job writes, once.
fn for_each_field(jobs: &mut [RenderJob], mut act: impl FnMut(&Lent)) {
    let mut seen = HashSet::new();
    for job in jobs {
        if let SlotMemory::Device { memory, .. } = job.slot.memory()
            && let Some(field) = memory.as_any().downcast_ref::<Lent>()
            && seen.insert(std::ptr::from_ref(field))
        {
            act(field);
        }
    }
}

impl Renderer for CudaRenderer {
    fn name(&self) -> &'static str {
        "cuda"
    }

    /// A batch.
    fn preferred_jobs(&self) -> usize {
        usize::MAX
    }

    fn submit(&self, mut jobs: Vec<RenderJob>, sink: &Arc<dyn RenderSink>) {
        let outcomes = match self.enqueue_all(&mut jobs) {
            Ok(outcomes) => outcomes,
            Err(error) if error.kind() == ErrorKind::DeviceMemory => {
                return sink.postponed(jobs, error.to_string());
            }
            Err(error) => return sink.failed(error.kind(), error.to_string()),
        };
        let rendered = |(job, outcome): (RenderJob, Outcome)| {
            let passes = u32::try_from(job.plan.every_pass().count()).unwrap_or(u32::MAX);
            let warnings = match &job.pixels {
                Pixels::Host(pixels) => pixels.warnings,
                _ => 0,
            };
            let report = RenderReport { passes, warnings, ..RenderReport::default() };
            Rendered { token: job.token, slot: job.slot, outcome: outcome.map(|()| report) }
        };
        sink.rendered(jobs.into_iter().zip(outcomes).map(rendered).collect());
    }

    fn mix(
        &self,
        slots: &mut [Box<dyn Slot>],
        spec: &FieldSpec,
        mixes: &[Mix],
    ) -> Result<(), Failed> {
        let Some((memory, places)) = field_of(slots).map_err(failed)? else { return Ok(()) };
        let pack = |mix| pack::pack_mix(memory.address(), &places, spec, mix).transpose();
        let packed: Vec<_> =
            mixes.iter().filter_map(pack).collect::<Result<_, _>>().map_err(failed)?;
        self.enqueue_mixes(memory, &packed).map_err(failed)
    }
}

#[allow(clippy::needless_pass_by_value, reason = "for map_err")]
fn failed(error: impl HasKind + Display) -> Failed {
    Failed { kind: error.kind(), reason: error.to_string() }
}
