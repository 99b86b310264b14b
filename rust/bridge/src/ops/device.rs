//! The stateless ops on a device: planned on the host, decoded by threads and JPEG engines,
//! rendered by kernels into torch's memory.
//!
//! **Invariants**
//! - PIX-3, ERR-1: results, verdicts and words are those of the CPU's ops.
//! - MEM-2: our streams come after all that the current stream had to do before the call, and it
//!   goes on after our last write and read. The host waits for neither.

use super::Outcomes;
use super::crop::Crops;
use super::wave::{self, Image, Place};
use crate::device::Torch;
use crate::devices::{self, SharedDevice};
use crate::ffi::{self, CropOptions, DeviceAllocator, ImageForm, NormalizeOptions, TensorOut};
use crate::guard::Error;
use crate::tensors;
use cxx::UniquePtr;
use forebay_core::ports::{DeviceMemory, Fault, Pixels, RenderJob, Stop};
use forebay_core::{DType, ErrorKind, ImageMeta, ImagePlan, Orientation, Region, Size};
use forebay_cuda::Lent;
use forebay_cuda::pack::{self, Plane, Source};
use std::ops::Range;
use std::sync::Arc;

/// Plans for which a thread is started: one takes 14 us, and a start 30.
const PLANS: usize = 16;

/// A device for the length of a call, whose results are tensors of the current stream.
pub(crate) struct Target {
    device: Arc<SharedDevice>,
    torch: Torch,
}

impl Target {
    /// Opens the device if no call has yet; refuses to take part in a capture.
    pub(crate) fn open(allocator: UniquePtr<DeviceAllocator>, call: &str) -> Result<Self, Error> {
        let torch = Torch::new(allocator);
        let device = devices::shared(torch.index())?;
        let advice = "call it before and copy the result into static inputs";
        torch.check_capture(&device.backend, call, advice)?;
        Ok(Self { device, torch })
    }

    /// Images of their own sizes, `(3, H, W)`, or `(3, 0, 0)` for those that `outcomes` has an
    /// error of; and which are there.
    pub(super) fn decode_images(
        &self,
        images: &[Image<'_>],
        outcomes: Outcomes,
        items: usize,
        strict: bool,
        threads: usize,
    ) -> Result<(Vec<TensorOut>, Vec<u8>), Error> {
        let sizes = images.iter().map(|image| output(&image.plan));
        let fields = sizes.map(|Size { width, height }| {
            self.lend(DType::UInt8, &[3, height as usize, width as usize])
        });
        let fields: Vec<Arc<Lent>> = fields.collect::<Result<_, _>>()?;
        self.render_encoded(images, threads, &outcomes, |place| {
            let tensor = Arc::clone(&fields[place]);
            Place { offset: 0, bytes: tensor.bytes(), tensor }
        })?;
        let ok = outcomes.ok(items, strict)?;
        let mut results = vec![None; items];
        for (image, field) in images.iter().zip(fields) {
            results[image.item] = Some(field).filter(|_| ok[image.item] == 1);
        }
        let tensor = |field: Option<Arc<Lent>>| match field {
            Some(field) => self.hand_out(&field),
            None => self.hand_out(&*self.lend(DType::UInt8, &[3, 0, 0])?),
        };
        Ok((results.into_iter().map(tensor).collect::<Result<_, _>>()?, ok))
    }

    /// A batch of crops, `(N, 3, H, W)`, zeros for those that `outcomes` has an error of; and which
    /// are there.
    pub(super) fn decode_resized_crop(
        &self,
        images: &[Image<'_>],
        outcomes: Outcomes,
        crops: &Crops<'_>,
        items: usize,
        strict: bool,
        threads: usize,
    ) -> Result<(TensorOut, Vec<u8>), Error> {
        let bytes = crops.item(1);
        let batch = self.lend(DType::UInt8, &crops.batch(items))?;
        self.render_encoded(images, threads, &outcomes, |place| Place {
            tensor: Arc::clone(&batch),
            offset: images[place].item * bytes,
            bytes,
        })?;
        let ok = outcomes.ok(items, strict)?;
        for item in (0..items).filter(|&item| ok[item] == 0) {
            let failed = |fault: Fault| Error::new(ErrorKind::Device, fault.reason);
            batch.zero(item * bytes, bytes).map_err(failed)?;
        }
        Ok((self.hand_out(&batch)?, ok))
    }

    /// Crops of decoded images, normalised: `(N, 3, H, W)`.
    pub(crate) fn resized_crop_normalize(
        &self,
        images: &ffi::DeviceTensor,
        form: ImageForm,
        boxes: &[i64],
        flip: &[bool],
        options: &CropOptions,
        normalize: &NormalizeOptions,
    ) -> Result<TensorOut, Error> {
        let (count, size) = super::batch_of(form)?;
        let crops = Crops::new(options, boxes, flip, count)?;
        let write = super::normalize_write(normalize)?;
        let plan = |item: usize| {
            let plan = crops.of(item).plan(size, Orientation::default(), write);
            plan.map(Arc::new).map_err(super::invalid)
        };
        let threads = super::thread_count(options.threads).min(count.div_ceil(PLANS));
        let outcomes = Outcomes::new();
        let plans = super::collect(threads, count, &outcomes, plan)?;
        outcomes.first("images")?;

        let bytes = crops.item(write.dtype.size());
        let batch = self.lend(write.dtype, &crops.batch(count))?;
        let meta = Arc::new(super::decoded_meta(size));
        let outcomes = Outcomes::new();
        for wave in wave::waves(plans.iter().map(|plan| pack::footprint(plan))) {
            let job = |item: usize| {
                let source = source(images.address(), item, size, form.interleaved);
                // SAFETY: the caller keeps `images`, torch's tensor, for the length of the call.
                // `batch` was allocated in it, so the pixels are read after the current stream's
                // work before; and in it that stream is made to wait for `batch`: whoever writes
                // or frees the images later does so in its order, by torch's rules.
                let pixels = unsafe { self.device.backend.pixels(source) };
                let offset = item * bytes;
                let place = Place { tensor: Arc::clone(&batch), offset, bytes };
                job(item, pixels, &meta, &plans[item], place)
            };
            self.submit(wave.map(job).collect(), &outcomes)?;
        }
        let batch = self.hand_out(&batch)?;
        outcomes.first("images")?;
        Ok(batch)
    }

    /// Decodes and renders all images, each into its `place`.
    fn render_encoded(
        &self,
        images: &[Image<'_>],
        threads: usize,
        outcomes: &Outcomes,
        place: impl Fn(usize) -> Place,
    ) -> Result<(), Error> {
        let hardware = self.device.hardware.as_ref();
        let for_engines = wave::for_engines(hardware, images);
        let pairs = images.iter().zip(&for_engines);
        let footprints = pairs.map(|(image, &engines)| wave::footprint(hardware, image, engines));
        for Range { start, end } in wave::waves(footprints) {
            let (wave, engines) = (&images[start..end], &for_engines[start..end]);
            let decoded = wave::decode(&self.device, wave, engines, threads, outcomes)?;
            let jobs = (start..end).zip(decoded).filter_map(|(number, pixels)| {
                let Image { item, meta, plan, .. } = &images[number];
                Some(job(*item, pixels?, meta, plan, place(number)))
            });
            self.submit(jobs.collect(), outcomes)?;
        }
        Ok(())
    }

    fn submit(&self, mut jobs: Vec<RenderJob>, outcomes: &Outcomes) -> Result<(), Error> {
        let done = self.device.renderer.enqueue_all(&mut jobs)?;
        for (job, outcome) in jobs.iter().zip(done) {
            let item = usize::try_from(job.token).expect("a token is an item");
            let refused = |fault: Fault| Error::new(ErrorKind::Unsupported, fault.reason);
            outcomes.note(item, outcome.map_err(refused));
        }
        Ok(())
    }

    /// A contiguous tensor of the current stream.
    fn lend(&self, dtype: DType, sizes: &[usize]) -> Result<Arc<Lent>, Error> {
        let strides = tensors::contiguous(sizes);
        Ok(Arc::new(self.torch.lend(&self.device.backend, dtype, sizes, &strides)?))
    }

    /// The tensor, for which the current stream waits.
    fn hand_out(&self, lent: &Lent) -> Result<TensorOut, Error> {
        // Allocated within this call, so on the same stream.
        Ok(self.torch.hand_out(&self.device.backend, lent)?.0)
    }
}

fn output(plan: &ImagePlan) -> Size {
    plan.passes.last().map_or(Size { width: 0, height: 0 }, forebay_core::Pass::size)
}

fn job(
    item: usize,
    pixels: Pixels,
    meta: &Arc<ImageMeta>,
    plan: &Arc<ImagePlan>,
    place: Place,
) -> RenderJob {
    RenderJob {
        token: item as u64,
        pixels,
        meta: Arc::clone(meta),
        plan: Arc::clone(plan),
        slot: Box::new(place),
        stop: Stop::default(),
    }
}

/// One of the images at `address`.
fn source(address: u64, item: usize, size: Size, interleaved: bool) -> Source {
    let first = address + item as u64 * 3 * size.pixels();
    let held = Region::whole(size);
    if interleaved {
        return Source::Rgb(Plane { address: first, pitch: size.width.saturating_mul(3), held });
    }
    let channel = |channel| {
        let address = first + channel * size.pixels();
        Plane { address, pitch: size.width, held }
    };
    Source::Planar([channel(0), channel(1), channel(2)])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn images_follow_each_other_in_either_form() {
        let size = Size { width: 5, height: 4 };
        let held = Region::whole(size);
        let rgb = Source::Rgb(Plane { address: 1000 + 2 * 60, pitch: 15, held });
        assert_eq!(source(1000, 2, size, true), rgb);
        let plane = |address| Plane { address, pitch: 5, held };
        let planar = Source::Planar([plane(1060), plane(1080), plane(1100)]);
        assert_eq!(source(1000, 1, size, false), planar);
    }
}
