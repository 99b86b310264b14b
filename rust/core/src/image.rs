//! What images are made of: sizes, regions, orientations, element types, layouts and limits.

use serde::{Deserialize, Serialize};

/// Width and height in pixels.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Size {
    /// Columns.
    pub width: u32,
    /// Rows.
    pub height: u32,
}

impl Size {
    /// Number of pixels.
    pub fn pixels(self) -> u64 {
        u64::from(self.width) * u64::from(self.height)
    }

    /// The size after rows and columns change places.
    pub fn transposed(self) -> Self {
        Self { width: self.height, height: self.width }
    }
}

impl std::fmt::Display for Size {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}x{}", self.width, self.height)
    }
}

/// A rectangle of pixels, never empty, inside some image.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Region {
    /// First column.
    pub x: u32,
    /// First row.
    pub y: u32,
    /// Columns.
    pub width: u32,
    /// Rows.
    pub height: u32,
}

impl Region {
    /// The whole of an image.
    pub fn whole(size: Size) -> Self {
        Self { x: 0, y: 0, width: size.width, height: size.height }
    }

    /// The region's own size.
    pub fn size(self) -> Size {
        Size { width: self.width, height: self.height }
    }

    /// Whether the region lies inside an image of `size` and holds at least one pixel.
    pub fn fits(self, size: Size) -> bool {
        let ends_inside = |start: u32, len: u32, limit: u32| {
            len > 0 && start.checked_add(len).is_some_and(|end| end <= limit)
        };
        ends_inside(self.x, self.width, size.width) && ends_inside(self.y, self.height, size.height)
    }
}

/// How the stored pixels become upright ones: transpose first, then mirror.
///
/// ```
/// use forebay_core::Orientation;
/// let rotated = Orientation::from_exif(6).unwrap();
/// assert!(rotated.transpose && rotated.flip_x && !rotated.flip_y);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Orientation {
    /// Rows and columns change places.
    pub transpose: bool,
    /// Left and right change places, after the transposition.
    pub flip_x: bool,
    /// Top and bottom change places, after the transposition.
    pub flip_y: bool,
}

impl Orientation {
    /// The orientation that EXIF tag 0x0112 names; `None` for values that EXIF does not define.
    pub fn from_exif(value: u16) -> Option<Self> {
        let (transpose, flip_x, flip_y) = match value {
            1 => (false, false, false),
            2 => (false, true, false),
            3 => (false, true, true),
            4 => (false, false, true),
            5 => (true, false, false),
            6 => (true, true, false),
            7 => (true, true, true),
            8 => (true, false, true),
            _ => return None,
        };
        Some(Self { transpose, flip_x, flip_y })
    }

    /// The upright size of an image stored with `size`.
    pub fn upright(self, size: Size) -> Size {
        if self.transpose { size.transposed() } else { size }
    }
}

/// Element type of a tensor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DType {
    /// Boolean, one byte.
    Bool,
    /// Unsigned 8-bit integer.
    UInt8,
    /// Signed 64-bit integer.
    Int64,
    /// IEEE 754 half precision.
    Float16,
    /// bfloat16.
    BFloat16,
    /// IEEE 754 single precision.
    Float32,
    /// IEEE 754 double precision.
    Float64,
}

impl DType {
    /// Size of one element in bytes.
    pub fn size(self) -> usize {
        match self {
            Self::Bool | Self::UInt8 => 1,
            Self::Float16 | Self::BFloat16 => 2,
            Self::Float32 => 4,
            Self::Int64 | Self::Float64 => 8,
        }
    }
}

/// Which samples of an image are read, and how many each pixel has from then on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum Channels {
    /// Red, green and blue.
    #[default]
    Rgb,
    /// One, made of the three as Pillow's `convert("L")` does.
    Gray,
    /// One: a palette's indices, grey as it is, or the first of the colours; for masks.
    #[serde(skip)]
    Index,
}

impl Channels {
    /// Of a pixel.
    pub fn count(self) -> usize {
        match self {
            Self::Rgb => 3,
            Self::Gray | Self::Index => 1,
        }
    }
}

/// Order of an image's elements in memory; its shape is (C, H, W) either way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Layout {
    /// Planes of rows: torch's `contiguous_format`.
    #[default]
    Contiguous,
    /// Interleaved channels: torch's `channels_last`.
    ChannelsLast,
}

/// Format that the first bytes of a file name; extensions have no say.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Format {
    /// JPEG of any process.
    Jpeg,
    /// PNG, APNG included.
    Png,
    /// WebP, lossy or lossless.
    WebP,
    /// Windows bitmap.
    Bmp,
    /// TIFF, also with offsets of 64 bits.
    Tiff,
    /// GIF.
    Gif,
    /// PBM, PGM or PPM.
    Pnm,
}

impl Format {
    /// As people write it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Jpeg => "JPEG",
            Self::Png => "PNG",
            Self::WebP => "WebP",
            Self::Bmp => "BMP",
            Self::Tiff => "TIFF",
            Self::Gif => "GIF",
            Self::Pnm => "PNM",
        }
    }
}

/// Pixels per sample of a JPEG's component: the file's largest sampling factors divided by the
/// component's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Sampling {
    /// Across: 2 where chroma has half the width.
    pub across: u8,
    /// Down: 2 where chroma has half the height.
    pub down: u8,
}

impl Sampling {
    /// Size of the component in an image of `size`.
    pub fn component(self, size: Size) -> Size {
        Size {
            width: size.width.div_ceil(self.across.into()),
            height: size.height.div_ceil(self.down.into()),
        }
    }
}

/// What the header of an encoded image says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImageMeta {
    /// Container format.
    pub format: Format,
    /// Size as stored, before orientation.
    pub size: Size,
    /// EXIF orientation; the identity where there is none or it is malformed.
    pub orientation: Orientation,
    /// Stored components: 1 grey, 3 colour, 4 CMYK or alpha.
    pub components: u8,
    /// Pixels come in several scans, so a region saves little.
    pub progressive: bool,
    /// Sampling of Y, Cb and Cr in a baseline JPEG of one scan: what a GPU's JPEG engines decode.
    pub baseline: Option<[Sampling; 3]>,
    /// Its data has restart markers.
    pub restarts: bool,
    /// Encoded bytes.
    pub bytes: usize,
}

/// Bounds that are checked before memory is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Largest number of pixels that a header may declare.
    pub max_pixels: u64,
    /// Truncated files give what is there (missing rows grey) instead of an error.
    pub accept_truncated: bool,
}

impl Limits {
    /// Pillow's limit for an error: twice `Image.MAX_IMAGE_PIXELS`.
    pub const DEFAULT_MAX_PIXELS: u64 = 178_956_970;
}

impl Default for Limits {
    fn default() -> Self {
        Self { max_pixels: Self::DEFAULT_MAX_PIXELS, accept_truncated: false }
    }
}
