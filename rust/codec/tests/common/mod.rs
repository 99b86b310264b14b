//! Images made from numbers, and the ports' other ends.

#![allow(dead_code, missing_docs, unreachable_pub, reason = "each test file uses a part of it")]
#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    clippy::cast_precision_loss,
    clippy::cast_sign_loss,
    clippy::unwrap_used,
    reason = "test pictures are small, and a failed unwrap fails the test"
)]

pub mod uniform_jpeg;

use forebay_codec::{CpuBackend, Error, Level, Options, decode_into, decoded_size, probe};
use forebay_core::ports::{
    DecodeJob, DecodeSink, Decoded, Decoder, Fault, Pixels, RenderJob, RenderReport, RenderSink,
    Rendered, Renderer, Slot, SlotMemory, Stop,
};
use forebay_core::{
    Axis, Bytes, Channels, DType, ErrorKind, ImagePlan, Layout, Limits, Orientation, Pass, Region,
    Size, Taps, Write,
};
use std::sync::{Arc, Mutex};
use turbojpeg_sys as tj;

/// A deterministic generator of test numbers (splitmix64).
pub struct Numbers(pub u64);

impl Numbers {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// From `low` to `high`, both included.
    pub fn range(&mut self, low: u32, high: u32) -> u32 {
        low + (self.next() % u64::from(high - low + 1)) as u32
    }

    /// True once in `n` times.
    pub fn one_in(&mut self, n: u64) -> bool {
        self.next().is_multiple_of(n)
    }

    pub fn bytes(&mut self, len: usize) -> Vec<u8> {
        (0..len).map(|_| self.next() as u8).collect()
    }
}

/// Smooth waves with coloured edges and some noise, so that every coefficient and chroma matters.
pub fn picture(size: Size, seed: u64) -> Vec<u8> {
    let mut numbers = Numbers(seed);
    let (width, height) = (size.width as usize, size.height as usize);
    let mut out = Vec::with_capacity(width * height * 3);
    for y in 0..height {
        for x in 0..width {
            let noise = (numbers.next() % 24) as usize;
            let edge = if (x / 5 + y / 7) % 3 == 0 { 200 } else { 0 };
            out.push(((x * 5 + y + noise) % 256) as u8);
            out.push(((edge + y * 3 + noise) % 256) as u8);
            out.push(((x * x / 9 + edge / 2 + noise) % 256) as u8);
        }
    }
    out
}

/// How a test JPEG is encoded.
#[derive(Debug, Clone, Copy)]
pub struct Encoding {
    pub subsampling: tj::TJSAMP,
    pub progressive: bool,
    pub arithmetic: bool,
    pub optimise: bool,
    pub quality: i32,
    pub restart_rows: i32,
}

impl Default for Encoding {
    fn default() -> Self {
        Self {
            subsampling: tj::TJSAMP_TJSAMP_420,
            progressive: false,
            arithmetic: false,
            optimise: false,
            quality: 90,
            restart_rows: 0,
        }
    }
}

pub const SUBSAMPLINGS: [tj::TJSAMP; 7] = [
    tj::TJSAMP_TJSAMP_444,
    tj::TJSAMP_TJSAMP_422,
    tj::TJSAMP_TJSAMP_420,
    tj::TJSAMP_TJSAMP_GRAY,
    tj::TJSAMP_TJSAMP_440,
    tj::TJSAMP_TJSAMP_411,
    tj::TJSAMP_TJSAMP_441,
];

/// Encodes interleaved RGB (or CMYK, if there are four bytes a pixel) with libjpeg-turbo.
pub fn jpeg(size: Size, pixels: &[u8], encoding: Encoding) -> Vec<u8> {
    let channels = pixels.len() / size.pixels() as usize;
    let format = if channels == 4 { tj::TJPF_TJPF_CMYK } else { tj::TJPF_TJPF_RGB };
    let parameters = [
        (tj::TJPARAM_TJPARAM_SUBSAMP, encoding.subsampling),
        (tj::TJPARAM_TJPARAM_QUALITY, encoding.quality),
        (tj::TJPARAM_TJPARAM_PROGRESSIVE, i32::from(encoding.progressive)),
        (tj::TJPARAM_TJPARAM_ARITHMETIC, i32::from(encoding.arithmetic)),
        (tj::TJPARAM_TJPARAM_OPTIMIZE, i32::from(encoding.optimise)),
        (tj::TJPARAM_TJPARAM_RESTARTROWS, encoding.restart_rows),
    ];
    assert_eq!(pixels.len(), size.pixels() as usize * channels);
    let (mut buffer, mut len) = (std::ptr::null_mut(), 0);
    // SAFETY: the handle is live until destroyed; `pixels` holds the rows that size and format
    // ask for; the buffer is allocated by the library, read for its length and freed once.
    unsafe {
        let handle = tj::tj3Init(tj::TJINIT_TJINIT_COMPRESS as i32);
        for (name, value) in parameters {
            assert_eq!(tj::tj3Set(handle, name as i32, value), 0, "parameter {name}");
        }
        let status = tj::tj3Compress8(
            handle,
            pixels.as_ptr(),
            size.width as i32,
            0,
            size.height as i32,
            format,
            &raw mut buffer,
            &raw mut len,
        );
        assert_eq!(status, 0, "compress");
        let out = std::slice::from_raw_parts(buffer, len as usize).to_vec();
        tj::tj3Free(buffer.cast());
        tj::tj3Destroy(handle);
        out
    }
}

/// A test picture as JPEG.
pub fn jpeg_of(size: Size, seed: u64, encoding: Encoding) -> Vec<u8> {
    jpeg(size, &picture(size, seed), encoding)
}

/// Puts an EXIF block with an orientation behind SOI.
pub fn with_exif(jpeg: &[u8], orientation: u8) -> Vec<u8> {
    let mut out = jpeg[..2].to_vec();
    out.extend(b"\xff\xe1\x00\x22Exif\0\0MM\0\x2a\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0");
    out.push(orientation);
    out.extend([0; 6]);
    out.extend(&jpeg[2..]);
    out
}

/// Encodes a PNG.
pub fn png(size: Size, colour: png::ColorType, depth: png::BitDepth, data: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    let mut encoder = png::Encoder::new(&mut out, size.width, size.height);
    encoder.set_color(colour);
    encoder.set_depth(depth);
    if colour == png::ColorType::Indexed {
        encoder.set_palette(vec![10, 20, 30, 200, 100, 50, 0, 255, 0]);
    }
    encoder.write_header().unwrap().write_image_data(data).unwrap();
    out
}

/// A whole decode to interleaved RGB, in stored orientation.
pub fn decode(bytes: &[u8]) -> Result<(Size, Vec<u8>), Error> {
    let options =
        Options { layout: Layout::ChannelsLast, apply_orientation: false, ..Options::default() };
    decode_with(bytes, options, &Limits::default())
}

pub fn decode_with(
    bytes: &[u8],
    options: Options,
    limits: &Limits,
) -> Result<(Size, Vec<u8>), Error> {
    let meta = probe(bytes, limits)?;
    let size = decoded_size(&meta, &options);
    let mut out = vec![0; size.pixels() as usize * 3];
    decode_into(bytes, &meta, &options, limits, &mut out)?;
    Ok((size, out))
}

/// The region of an interleaved image, by copying.
pub fn crop(pixels: &[u8], size: Size, region: Region) -> Vec<u8> {
    let mut out = Vec::new();
    for y in region.y..region.y + region.height {
        let at = (y as usize * size.width as usize + region.x as usize) * 3;
        out.extend(&pixels[at..at + region.width as usize * 3]);
    }
    out
}

pub fn copy_axis(len: u32) -> Axis {
    Axis { out_len: len, content_start: 0, taps: Taps::Copy((0..len).collect()) }
}

pub fn pass(x: Axis, y: Axis) -> Pass {
    Pass { mixture: None, gather: None, x, y, fill: [0; 3], color: vec![], reduce: None }
}

pub fn raw_write(layout: Layout) -> Write {
    Write { channels: Channels::Rgb, dtype: DType::UInt8, layout, scale: false, normalize: None }
}

/// A plan that copies a region.
pub fn copy_plan(region: Region) -> ImagePlan {
    ImagePlan {
        erase: vec![],
        region,
        transpose: false,
        passes: vec![pass(copy_axis(region.width), copy_axis(region.height))],
        write: raw_write(Layout::ChannelsLast),
    }
}

#[derive(Debug)]
struct Memory(Vec<u8>);

impl Slot for Memory {
    fn memory(&mut self) -> SlotMemory<'_> {
        SlotMemory::Host(&mut self.0)
    }
}

#[derive(Default)]
struct Kept(Mutex<Vec<Decoded>>);

impl DecodeSink for Kept {
    fn decoded(&self, done: Vec<Decoded>) {
        self.0.lock().unwrap().extend(done);
    }
}

/// Decodes one image through the port.
pub fn decode_by_port(
    decoder: &dyn Decoder,
    file: &[u8],
    region: Region,
    channels: Channels,
) -> Result<Pixels, Fault> {
    let kept = Arc::new(Kept::default());
    let sink: Arc<dyn DecodeSink> = Arc::<Kept>::clone(&kept);
    let meta = Arc::new(decoder.probe(file).unwrap());
    let bytes = Bytes::new(file.to_vec());
    let job = DecodeJob { token: 5, bytes, meta, region, channels, stop: Stop::default() };
    decoder.submit(vec![job], &sink);
    let mut kept = kept.0.lock().unwrap();
    assert_eq!((kept.len(), kept[0].token), (1, 5), "every job completes once");
    kept.remove(0).pixels
}

type Outcome = (Vec<u8>, Result<RenderReport, Fault>);

#[derive(Default)]
struct Collect(Mutex<Vec<Outcome>>);

impl RenderSink for Collect {
    fn rendered(&self, done: Vec<Rendered>) {
        for Rendered { mut slot, outcome, .. } in done {
            let SlotMemory::Host(bytes) = slot.memory() else { panic!("a host slot") };
            self.0.lock().unwrap().push((bytes.to_vec(), outcome));
        }
    }

    fn postponed(&self, _: Vec<RenderJob>, reason: String) {
        panic!("{reason}");
    }

    fn failed(&self, _: ErrorKind, reason: String) {
        panic!("{reason}");
    }
}

/// Runs a plan through the ports.
pub fn render_pixels(
    level: Level,
    encoded: &[u8],
    pixels: Pixels,
    plan: &ImagePlan,
    stop: &Stop,
) -> Result<(Vec<u8>, RenderReport), Fault> {
    let backend = CpuBackend::with_level(Limits::default(), level);
    render_by(&backend, encoded, pixels, plan, stop)
}

/// The same with a backend.
pub fn render_by(
    backend: &CpuBackend,
    encoded: &[u8],
    pixels: Pixels,
    plan: &ImagePlan,
    stop: &Stop,
) -> Result<(Vec<u8>, RenderReport), Fault> {
    let meta = probe(encoded, &Limits::default())?;
    let last = plan.passes.last().expect("a pass").size();
    let elements = last.pixels() as usize * plan.write.channels.count();
    let sink = Arc::new(Collect::default());
    let port: Arc<dyn RenderSink> = Arc::<Collect>::clone(&sink);
    let job = RenderJob {
        token: 7,
        pixels,
        meta: Arc::new(meta),
        plan: Arc::new(plan.clone()),
        slot: Box::new(Memory(vec![0xa5; elements * plan.write.dtype.size()])),
        stop: stop.clone(),
    };
    Renderer::submit(backend, vec![job], &port);
    let (bytes, outcome) = sink.0.lock().unwrap().pop().expect("every job completes");
    outcome.map(|report| (bytes, report))
}

pub fn render(encoded: &[u8], plan: &ImagePlan) -> Result<(Vec<u8>, RenderReport), Fault> {
    let pixels = Pixels::Encoded(Bytes::new(encoded.to_vec()));
    render_pixels(Level::best(), encoded, pixels, plan, &Stop::default())
}

/// What the orientation makes of the stored pixel that becomes upright pixel `(x, y)`.
pub fn stored_position(orientation: Orientation, stored: Size, x: u32, y: u32) -> (u32, u32) {
    let upright = orientation.upright(stored);
    let x = if orientation.flip_x { upright.width - 1 - x } else { x };
    let y = if orientation.flip_y { upright.height - 1 - y } else { y };
    if orientation.transpose { (y, x) } else { (x, y) }
}

/// Those of three components.
pub const OF_COLOUR: [tj::TJSAMP; 6] = [
    tj::TJSAMP_TJSAMP_444,
    tj::TJSAMP_TJSAMP_422,
    tj::TJSAMP_TJSAMP_420,
    tj::TJSAMP_TJSAMP_440,
    tj::TJSAMP_TJSAMP_411,
    tj::TJSAMP_TJSAMP_441,
];

pub fn random_region(numbers: &mut Numbers, size: Size) -> Region {
    let (width, height) = (numbers.range(1, size.width), numbers.range(1, size.height));
    let (x, y) = (numbers.range(0, size.width - width), numbers.range(0, size.height - height));
    Region { x, y, width, height }
}
