//! Encoders of the formats that are decoded whole.

#![allow(
    dead_code,
    missing_docs,
    unreachable_pub,
    clippy::cast_possible_truncation,
    clippy::unwrap_used,
    reason = "each test file uses a part of it; test pictures are small, and a failed unwrap fails"
)]

pub mod pages;

use forebay_core::Size;

/// Encodes RGB, or RGBA if there are four bytes a pixel, as lossless WebP.
pub fn webp(size: Size, pixels: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    let alpha = pixels.len() as u64 == 4 * size.pixels();
    let colour = if alpha { image_webp::ColorType::Rgba8 } else { image_webp::ColorType::Rgb8 };
    let encoder = image_webp::WebPEncoder::new(&mut out);
    encoder.encode(pixels, size.width, size.height, colour).unwrap();
    out
}

/// Encodes RGB as BMP.
pub fn bmp(size: Size, rgb: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    let mut encoder = image::codecs::bmp::BmpEncoder::new(&mut out);
    encoder.encode(rgb, size.width, size.height, image::ExtendedColorType::Rgb8).unwrap();
    out
}

/// Encodes RGB as TIFF with LZW.
pub fn tiff(size: Size, rgb: &[u8]) -> Vec<u8> {
    let mut out = std::io::Cursor::new(Vec::new());
    let mut encoder = tiff::encoder::TiffEncoder::new(&mut out)
        .unwrap()
        .with_compression(tiff::encoder::Compression::Lzw);
    encoder.write_image::<tiff::encoder::colortype::RGB8>(size.width, size.height, rgb).unwrap();
    out.into_inner()
}

/// Encodes the red channel as a GIF of greys.
pub fn gif(size: Size, rgb: &[u8]) -> Vec<u8> {
    let palette: Vec<u8> = (0..=255).flat_map(|grey| [grey; 3]).collect();
    let mut out = Vec::new();
    let (width, height) = (size.width as u16, size.height as u16);
    let mut encoder = gif::Encoder::new(&mut out, width, height, &palette).unwrap();
    let red = rgb.iter().step_by(3).copied().collect::<Vec<_>>();
    encoder.write_frame(&gif::Frame::from_indexed_pixels(width, height, red, None)).unwrap();
    drop(encoder);
    out
}
