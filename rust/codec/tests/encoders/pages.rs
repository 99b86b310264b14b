//! TIFFs put together tag by tag.

use forebay_core::Size;

/// A TIFF of these tags with `data` at the offset 8. A value is SHORT if it fits; a list of values
/// is LONG, of tables UNDEFINED, and stands behind the data.
pub fn tagged(tags: &[(u16, &[u32])], data: &[u8]) -> Vec<u8> {
    let mut head = b"II\x2a\0".to_vec();
    let mut body = data.to_vec();
    body.resize(body.len().next_multiple_of(4), 0);
    let mut directory = (tags.len() as u16).to_le_bytes().to_vec();
    for &(tag, values) in tags {
        directory.extend(tag.to_le_bytes());
        let short = values.len() == 1 && values[0] < 65536;
        let kind = match tag {
            JPEG_TABLES => 7_u16,
            _ if short => 3,
            _ => 4,
        };
        directory.extend(kind.to_le_bytes());
        directory.extend((values.len() as u32).to_le_bytes());
        if let &[value] = values {
            directory.extend(value.to_le_bytes());
        } else {
            directory.extend((8 + body.len() as u32).to_le_bytes());
            let bytes = if tag == JPEG_TABLES { 1 } else { 4 };
            body.extend(
                values.iter().flat_map(|value| value.to_le_bytes().into_iter().take(bytes)),
            );
        }
    }
    directory.extend([0; 4]);
    head.extend((8 + body.len() as u32).to_le_bytes());
    [head, body, directory].concat()
}

pub const WIDTH: u16 = 256;
pub const HEIGHT: u16 = 257;
pub const BITS: u16 = 258;
pub const COMPRESSION: u16 = 259;
pub const PHOTOMETRIC: u16 = 262;
pub const FILL_ORDER: u16 = 266;
pub const STRIP_OFFSETS: u16 = 273;
pub const ORIENTATION: u16 = 274;
pub const SAMPLES: u16 = 277;
pub const STRIP_ROWS: u16 = 278;
pub const STRIP_BYTES: u16 = 279;
pub const PLANAR: u16 = 284;
pub const COLOURS: u16 = 320;
pub const TILE_WIDTH: u16 = 322;
pub const TILE_HEIGHT: u16 = 323;
pub const TILE_OFFSETS: u16 = 324;
pub const TILE_BYTES: u16 = 325;
pub const EXTRA: u16 = 338;
pub const SAMPLE_FORMAT: u16 = 339;
pub const JPEG_TABLES: u16 = 347;

/// A page of 2 x 1 pixels with more tags.
pub fn two_pixels(
    bits: u32,
    samples: u32,
    photometric: u32,
    more: &[(u16, &[u32])],
    data: &[u8],
) -> Vec<u8> {
    let (bits, samples, photometric) = ([bits], [samples], [photometric]);
    let length = [data.len() as u32];
    let mut tags: Vec<(u16, &[u32])> = vec![
        (WIDTH, &[2]),
        (HEIGHT, &[1]),
        (BITS, &bits),
        (PHOTOMETRIC, &photometric),
        (SAMPLES, &samples),
    ];
    if !more.iter().any(|&(tag, _)| matches!(tag, STRIP_OFFSETS | TILE_OFFSETS)) {
        tags.extend([(STRIP_OFFSETS, &[8][..]), (STRIP_BYTES, &length)]);
    }
    tags.extend(more);
    tags.sort_by_key(|&(tag, _)| tag);
    tagged(&tags, data)
}

/// A page of one sample a pixel whose strips of `rows` rows each are compressed by `method`.
pub fn strips(
    size: Size,
    (bits, photometric): (u32, u32),
    method: u32,
    rows: u32,
    strips: &[Vec<u8>],
    more: &[(u16, &[u32])],
) -> Vec<u8> {
    let lengths: Vec<u32> = strips.iter().map(|strip| strip.len() as u32).collect();
    let offsets: Vec<u32> =
        lengths.iter().scan(8, |at, length| Some(std::mem::replace(at, *at + length))).collect();
    let (width, height) = ([size.width], [size.height]);
    let (bits, photometric, method, rows) = ([bits], [photometric], [method], [rows]);
    let mut tags: Vec<(u16, &[u32])> = vec![
        (WIDTH, &width),
        (HEIGHT, &height),
        (BITS, &bits),
        (COMPRESSION, &method),
        (PHOTOMETRIC, &photometric),
        (STRIP_OFFSETS, &offsets),
        (STRIP_ROWS, &rows),
        (STRIP_BYTES, &lengths),
    ];
    tags.extend(more);
    tags.sort_by_key(|&(tag, _)| tag);
    tagged(&tags, &strips.concat())
}

/// CCITT group 4 of a sample a byte, 1 for black.
pub fn fax(width: u32, pixels: &[u8]) -> Vec<u8> {
    let mut encoder = fax::encoder::Encoder::new(fax::VecWriter::new());
    for row in pixels.chunks(width as usize) {
        let colour = |&pixel: &u8| if pixel == 1 { fax::Color::Black } else { fax::Color::White };
        encoder.encode_line(row.iter().map(colour), width).unwrap();
    }
    encoder.finish().unwrap().finish()
}
