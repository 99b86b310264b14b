//! Where decoded pixels lie.

use super::Error;
use super::descriptor::{self, source_kind, upsampling};
use forebay_core::{ImagePlan, Region, Size};

/// 8-bit samples in memory that the kernels can read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Plane {
    /// Address of the first sample that is there. `pitch` bytes of every row can be read, the last
    /// one's, too.
    pub address: u64,
    /// Bytes from row to row.
    pub pitch: u32,
    /// Which samples are there: a part of the stored image, or of a component.
    pub held: Region,
}

/// A component of a JPEG, at its own size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Component {
    /// Its samples. Where only a part of a subsampled component is there, upsampling takes missing
    /// neighbours for the nearest sample: exact pixels want one sample more on every side.
    pub plane: Plane,
    /// Pixels per sample, across and down: the largest sampling factors of the file divided by
    /// this component's.
    pub expand: (u8, u8),
}

/// The pixels of one image.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// Interleaved, three bytes a pixel.
    Rgb(Plane),
    /// Red, green and blue, each whole by itself.
    Planar([Plane; 3]),
    /// One channel, which stands for all three.
    Gray(Plane),
    /// Y, Cb and Cr as a JPEG stores them; they are upsampled and converted as libjpeg-turbo does.
    Ycbcr {
        /// Of the whole stored image.
        size: Size,
        /// In this order.
        components: [Component; 3],
    },
}

impl Plane {
    /// Checks that `needed` is there.
    fn check(&self, needed: Region, sample_bytes: u64) -> Result<(), Error> {
        let held = self.held;
        let end = |start: u32, len: u32| u64::from(start) + u64::from(len);
        let ends = [end(held.x, held.width), end(held.y, held.height)];
        if ends.into_iter().any(|end| end > i32::MAX as u64) {
            return Err(Error::Source { what: "positions beyond 31 bits" });
        }
        let inside = needed.width > 0
            && needed.height > 0
            && needed.x >= held.x
            && needed.y >= held.y
            && end(needed.x, needed.width) <= ends[0]
            && end(needed.y, needed.height) <= ends[1];
        if !inside {
            return Err(Error::Region { needed, held });
        }
        if u64::from(self.pitch) < u64::from(held.width) * sample_bytes {
            return Err(Error::Source { what: "rows that overlap" });
        }
        let bytes = u64::from(self.pitch) * u64::from(held.height);
        if self.address == 0 || self.address.checked_add(bytes).is_none() {
            return Err(Error::Source { what: "no address" });
        }
        Ok(())
    }

    /// The descriptor for samples that are pixels.
    fn describe(&self, sample_bytes: u64) -> descriptor::Plane {
        let Region { x, y, width, height } = self.held;
        let first = u64::from(y) * u64::from(self.pitch) + u64::from(x) * sample_bytes;
        descriptor::Plane {
            address: self.address.wrapping_sub(first),
            pitch: self.pitch,
            upsampling: upsampling::NONE,
            expand_x: 1,
            expand_y: 1,
            left: x.cast_signed(),
            right: (x + width - 1).cast_signed(),
            top: y.cast_signed(),
            bottom: (y + height - 1).cast_signed(),
        }
    }
}

impl Component {
    /// Size of a component of an image of `size`.
    fn size(&self, size: Size) -> Size {
        let (x, y) = self.expand;
        Size { width: size.width.div_ceil(x.into()), height: size.height.div_ceil(y.into()) }
    }

    /// The samples nearest to the pixels of `region`.
    fn samples(&self, region: Region) -> Region {
        let span = |start: u32, len: u32, expand: u8| {
            let expand = u32::from(expand);
            let first = start / expand;
            (first, (start + len - 1) / expand - first + 1)
        };
        let (x, width) = span(region.x, region.width, self.expand.0);
        let (y, height) = span(region.y, region.height, self.expand.1);
        Region { x, y, width, height }
    }

    fn check(&self, size: Size, region: Region) -> Result<(), Error> {
        if self.expand.0 == 0 || self.expand.1 == 0 {
            return Err(Error::Source { what: "no pixel per sample" });
        }
        if !self.plane.held.fits(self.size(size)) {
            return Err(Error::Source { what: "more samples than its component has" });
        }
        self.plane.check(self.samples(region), 1)
    }

    /// libjpeg-turbo's choice of an upsampler (`jinit_upsampler` with fancy upsampling).
    fn upsampling(&self, size: Size) -> u32 {
        let is_narrow = self.size(size).width <= 2;
        match self.expand {
            (1, 1) => upsampling::NONE,
            (1, 2) => upsampling::H1V2,
            (2, 1) if !is_narrow => upsampling::H2V1,
            (2, 2) if !is_narrow => upsampling::H2V2,
            _ => upsampling::REPLICATE,
        }
    }

    fn describe(&self, size: Size) -> descriptor::Plane {
        descriptor::Plane {
            upsampling: self.upsampling(size),
            expand_x: self.expand.0.into(),
            expand_y: self.expand.1.into(),
            ..self.plane.describe(1)
        }
    }
}

impl Source {
    /// Checks that everything that a plan on `region` reads is there.
    pub(super) fn check(&self, region: Region) -> Result<(), Error> {
        match self {
            Self::Rgb(plane) => plane.check(region, 3),
            Self::Planar(planes) => planes.iter().try_for_each(|plane| plane.check(region, 1)),
            Self::Gray(plane) => plane.check(region, 1),
            Self::Ycbcr { size, components } => {
                if !region.fits(*size) {
                    return Err(Error::Region { needed: region, held: Region::whole(*size) });
                }
                components.iter().try_for_each(|component| component.check(*size, region))
            }
        }
    }

    /// The descriptor of a source that was checked.
    pub(super) fn describe(&self, plan: &ImagePlan) -> descriptor::Source {
        let mut planes = [descriptor::Plane::default(); 3];
        let kind = match self {
            Self::Rgb(plane) => {
                planes[0] = plane.describe(3);
                source_kind::RGB
            }
            Self::Planar(channels) => {
                planes = channels.map(|channel| channel.describe(1));
                source_kind::PLANAR
            }
            Self::Gray(plane) => {
                planes[0] = plane.describe(1);
                source_kind::GRAY
            }
            Self::Ycbcr { size, components } => {
                planes = components.map(|component| component.describe(*size));
                source_kind::YCBCR
            }
        };
        descriptor::Source {
            kind,
            transpose: plan.transpose.into(),
            origin_x: plan.region.x.cast_signed(),
            origin_y: plan.region.y.cast_signed(),
            planes,
        }
    }
}

/// What a pass left in the scratch, as the source of the next one.
pub(super) fn intermediate(offset: u64, width: u32) -> descriptor::Source {
    let mut planes = [descriptor::Plane::default(); 3];
    planes[0] = descriptor::Plane { address: offset, pitch: 4 * width, ..Default::default() };
    descriptor::Source { kind: source_kind::RGBX, planes, ..Default::default() }
}
