//! Decoding apart from rendering gives what the fused path gives.

#![allow(clippy::unwrap_used, reason = "a failed unwrap fails the test")]

mod common;

use common::{
    Encoding, Numbers, copy_axis, decode_by_port, jpeg_of, pass, picture, png, raw_write,
    render_pixels,
};
use forebay_codec::{CpuBackend, Level, PixelDecoder};
use forebay_core::ports::{Fault, HostBuffer, HostMemory, Pixels, Stage, Stop};
use forebay_core::{Bytes, Channels, ImagePlan, Layout, Limits, Region, Size, Write};
use png::{BitDepth, ColorType};
use std::sync::Arc;

/// Memory full of rubbish, or none at all.
struct Lent {
    exhausted: bool,
}

impl HostMemory for Lent {
    fn take(&self, bytes: usize) -> Result<Box<dyn HostBuffer>, Fault> {
        if self.exhausted {
            let none = "no page-locked memory left";
            return Err(Fault::new(Stage::Decode, none));
        }
        Ok(Box::new(vec![0xDD; bytes]))
    }
}

fn decode(
    file: &[u8],
    region: Region,
    channels: Channels,
    exhausted: bool,
) -> Result<Pixels, Fault> {
    let decoder =
        PixelDecoder::new(CpuBackend::new(Limits::default()), Arc::new(Lent { exhausted }));
    decode_by_port(&decoder, file, region, channels)
}

#[test]
fn pixels_from_the_decoder_render_as_the_fused_path_does() {
    let size = Size { width: 61, height: 47 };
    let encoded = Encoding::default();
    let files = [
        jpeg_of(size, 1, encoded),
        jpeg_of(size, 2, Encoding { progressive: true, ..encoded }),
        png(size, ColorType::Rgb, BitDepth::Eight, &picture(size, 3)),
    ];
    let mut numbers = Numbers(9);
    for file in &files {
        for _ in 0..20 {
            let (x, y) = (numbers.range(0, 60), numbers.range(0, 46));
            let region =
                Region { x, y, width: numbers.range(1, 61 - x), height: numbers.range(1, 47 - y) };
            for channels in [Channels::Rgb, Channels::Gray, Channels::Index] {
                let write = Write { channels, ..raw_write(Layout::ChannelsLast) };
                let axes = pass(copy_axis(region.width), copy_axis(region.height));
                let plan = ImagePlan {
                    region,
                    transpose: false,
                    passes: vec![axes],
                    write,
                    erase: vec![],
                };
                let run = |pixels| {
                    render_pixels(Level::best(), file, pixels, &plan, &Stop::default()).unwrap().0
                };
                let fused = run(Pixels::Encoded(Bytes::new(file.clone())));
                let apart = run(decode(file, region, channels, false).unwrap());
                assert!(apart == fused, "{region:?}, {channels:?}");
            }
        }
    }
}

#[test]
fn what_the_memory_or_the_file_lacks_is_a_fault() {
    let size = Size { width: 61, height: 47 };
    let file = jpeg_of(size, 1, Encoding::default());
    let fault = decode(&file, Region::whole(size), Channels::Rgb, true).unwrap_err();
    assert_eq!(fault.reason, "no page-locked memory left");
    let fault = decode(&file, Region { width: 62, ..Region::whole(size) }, Channels::Rgb, false)
        .unwrap_err();
    assert!(fault.reason.contains("61x47"), "{}", fault.reason);
}
