//! PIX-1 on a JPEG's own planes: upsampling and colour are libjpeg-turbo's, byte for byte.

#![allow(clippy::unwrap_used, reason = "a failed unwrap fails the test")]

#[path = "../../../rust/codec/tests/common/mod.rs"]
mod codec;
mod common;

use codec::{Encoding, Numbers, copy_plan, jpeg, jpeg_of, picture, raw_write};
use common::{Rows, Samples, Side, oracle, render};
use forebay_codec::Pixels;
use forebay_core::coeffs::Interpolation;
use forebay_core::recipe::ResizedCrop;
use forebay_core::{ImagePlan, Layout, Orientation, Region, Size};
use forebay_cuda::pack::{Component, Source};
use std::collections::BTreeSet;
use turbojpeg_sys as tj;

/// Pixels per chroma sample, across and down.
const SUBSAMPLINGS: [(tj::TJSAMP, (u8, u8)); 6] = [
    (tj::TJSAMP_TJSAMP_444, (1, 1)),
    (tj::TJSAMP_TJSAMP_422, (2, 1)),
    (tj::TJSAMP_TJSAMP_420, (2, 2)),
    (tj::TJSAMP_TJSAMP_440, (1, 2)),
    (tj::TJSAMP_TJSAMP_411, (4, 1)),
    (tj::TJSAMP_TJSAMP_441, (1, 4)),
];

/// A decoded component, with libjpeg's padding behind its rows.
struct Decoded {
    size: Size,
    stride: u32,
    rows: Vec<u8>,
}

impl Decoded {
    /// The samples `held`.
    fn samples(&self, held: Region, rows: Rows) -> Samples {
        Samples::new(&self.rows, Size { width: self.stride, ..self.size }, 1, held, rows)
    }
}

/// The components of a JPEG before upsampling.
fn components(file: &[u8], size: Size, expand: (u8, u8), count: usize) -> Vec<Decoded> {
    let component = |i: usize| {
        let (x, y) = if i == 0 { (1, 1) } else { expand };
        let size =
            Size { width: size.width.div_ceil(x.into()), height: size.height.div_ceil(y.into()) };
        // TurboJPEG pads luma to whole chroma samples.
        let pad = |len: u32| len.next_multiple_of(4);
        let rows = vec![0; (pad(size.width) * pad(size.height)) as usize];
        Decoded { size, stride: pad(size.width), rows }
    };
    let mut components: Vec<Decoded> = (0..count).map(component).collect();
    let mut strides: Vec<i32> =
        components.iter().map(|component| component.stride.cast_signed()).collect();
    let mut planes: Vec<*mut u8> =
        components.iter_mut().map(|component| component.rows.as_mut_ptr()).collect();
    // SAFETY: the handle is live until destroyed; `file` is read for its length; every plane has
    // room for the rows and columns that subsampling pads it to, at the stride that is passed.
    unsafe {
        let handle = tj::tj3Init(tj::TJINIT_TJINIT_DECOMPRESS.cast_signed());
        let status = tj::tj3DecompressToYUVPlanes8(
            handle,
            file.as_ptr(),
            file.len() as tj::size_t,
            planes.as_mut_ptr(),
            strides.as_mut_ptr(),
        );
        assert_eq!(status, 0, "decompress to planes");
        tj::tj3Destroy(handle);
    }
    components
}

/// What a plan reads of a component, and a sample more on every side.
fn with_margin(region: Region, expand: (u8, u8), size: Size) -> Region {
    let span = |start: u32, len: u32, expand: u8, limit: u32| {
        let expand = u32::from(expand);
        let first = (start / expand).saturating_sub(1);
        (first, ((start + len).div_ceil(expand) + 1).min(limit) - first)
    };
    let (x, width) = span(region.x, region.width, expand.0, size.width);
    let (y, height) = span(region.y, region.height, expand.1, size.height);
    Region { x, y, width, height }
}

/// The region, from a multiple of `step` on.
fn from_multiple(region: Region, step: u32) -> Region {
    let before = region.x % step;
    Region { x: region.x - before, width: region.width + before, ..region }
}

/// Renders every plan from planes that hold the whole image and from ones that hold a part, in rows
/// that can be read in words and in ones that cannot.
fn check(file: &[u8], size: Size, expand: (u8, u8), plans: &[ImagePlan]) {
    let decoded = components(file, size, expand, 3);
    let expand = [(1, 1), expand, expand];
    let cases = [Rows::Odd, Rows::Words(Side::Behind), Rows::Words(Side::Before)];
    for (is_whole, rows) in [true, false].into_iter().flat_map(|all| cases.map(|rows| (all, rows)))
    {
        let samples: Vec<Vec<Samples>> = plans
            .iter()
            .map(|plan| {
                let held = |(component, expand): (&Decoded, (u8, u8))| {
                    let held = if is_whole {
                        Region::whole(component.size)
                    } else {
                        let held = with_margin(plan.region, expand, component.size);
                        match rows {
                            Rows::Odd => held,
                            // Blocks of the inverse DCT; and what is read by words, but not so.
                            Rows::Words(Side::Behind) => from_multiple(held, 8),
                            Rows::Words(Side::Before) => from_multiple(held, 4),
                        }
                    };
                    component.samples(held, rows)
                };
                decoded.iter().zip(expand).map(held).collect()
            })
            .collect();
        let items: Vec<(Source, &ImagePlan)> = samples
            .iter()
            .zip(plans)
            .map(|(samples, plan)| {
                let component =
                    |i: usize| Component { plane: samples[i].plane(), expand: expand[i] };
                (Source::Ycbcr { size, components: [0, 1, 2].map(component) }, plan)
            })
            .collect();
        for (plan, slot) in plans.iter().zip(render(&items)) {
            let expected = oracle(Pixels::Encoded(file), size, plan);
            assert!(
                slot == expected,
                "{size} by {expand:?}, whole planes: {is_whole}, {rows:?}, {plan:?}"
            );
        }
    }
}

fn encoded(size: Size, subsampling: tj::TJSAMP) -> Vec<u8> {
    jpeg_of(size, u64::from(size.width), Encoding { subsampling, ..Encoding::default() })
}

fn random_region(numbers: &mut Numbers, size: Size) -> Region {
    let (width, height) = (numbers.range(1, size.width), numbers.range(1, size.height));
    let (x, y) = (numbers.range(0, size.width - width), numbers.range(0, size.height - height));
    Region { x, y, width, height }
}

/// A region of the upright image, antialiased.
fn resized(size: Size, region: Region, orientation: Orientation, flip: bool) -> ImagePlan {
    let Region { x, y, width, height } = region;
    let crop = ResizedCrop {
        bounds: Some([x, y, x + width, y + height].map(i64::from)),
        size: Size { width: 31, height: 27 },
        interpolation: Interpolation::Bilinear,
        antialias: true,
        flip,
    };
    crop.plan(size, orientation, raw_write(Layout::Contiguous)).unwrap()
}

#[test]
fn odd_sizes_equal_libjpeg() {
    let mut numbers = Numbers(21);
    for (subsampling, expand) in SUBSAMPLINGS {
        for width in 1..=40 {
            // Every width and every height up to 40, with narrow and low images among them.
            for height in [1, 2, 3, 41 - width, numbers.range(4, 40)] {
                let size = Size { width, height };
                let file = encoded(size, subsampling);
                let whole = Region::whole(size);
                let part = random_region(&mut numbers, size);
                let upright = Orientation::default();
                let plans = [
                    copy_plan(whole),
                    copy_plan(part),
                    resized(size, whole, upright, false),
                    resized(size, part, upright, true),
                ];
                check(&file, size, expand, &plans);
            }
        }
    }
}

/// Ramps between opposite colours: every value of Cb and of Cr, clamping included.
#[test]
fn every_chroma_value_equals_libjpeg() {
    let size = Size { width: 256, height: 48 };
    let ramp = |row: u32, value: u8| {
        let back = 255 - value;
        [[value, value, back], [back, value, value], [value, back, value]][row as usize / 16]
    };
    let rows = (0..size.height).flat_map(|row| (0..=255).map(move |value| ramp(row, value)));
    let pixels: Vec<u8> = rows.flatten().collect();
    let subsampling = tj::TJSAMP_TJSAMP_444;
    let file = jpeg(size, &pixels, Encoding { subsampling, quality: 100, ..Encoding::default() });
    let found = components(&file, size, (1, 1), 3);
    for component in &found[1..] {
        let values: BTreeSet<u8> = component.rows.iter().copied().collect();
        assert!(values.len() > 250, "only {} values of chroma", values.len());
    }
    let whole = Region::whole(size);
    let plans = [copy_plan(whole), resized(size, whole, Orientation::default(), false)];
    check(&file, size, (1, 1), &plans);
}

#[test]
fn regions_equal_libjpeg() {
    let mut numbers = Numbers(22);
    let size = Size { width: 75, height: 53 };
    for (subsampling, expand) in SUBSAMPLINGS {
        let file = encoded(size, subsampling);
        let plans: Vec<ImagePlan> =
            (0..40).map(|_| copy_plan(random_region(&mut numbers, size))).collect();
        check(&file, size, expand, &plans);
    }
}

/// Crops, resampled and turned every way.
#[test]
fn resized_crops_equal_the_cpu() {
    let mut numbers = Numbers(23);
    let size = Size { width: 90, height: 66 };
    for (subsampling, expand) in SUBSAMPLINGS {
        let file = encoded(size, subsampling);
        let plan = |exif| {
            let orientation = Orientation::from_exif(exif).unwrap();
            let region = random_region(&mut numbers, orientation.upright(size));
            resized(size, region, orientation, numbers.one_in(2))
        };
        let plans: Vec<ImagePlan> = (1..=8).map(plan).collect();
        check(&file, size, expand, &plans);
    }
}

/// Rows of which a block of threads keeps a piece at a time.
#[test]
fn wide_images_equal_the_cpu() {
    let size = Size { width: 9001, height: 3 };
    for (subsampling, expand) in SUBSAMPLINGS {
        let file = encoded(size, subsampling);
        let plans = [(0, 9001), (3, 4105), (8, 4096)].map(|(x, width)| {
            let region = Region { x, width, ..Region::whole(size) };
            resized(size, region, Orientation::default(), false)
        });
        check(&file, size, expand, &plans);
    }
}

#[test]
fn gray_files_equal_libjpeg() {
    for side in [1, 7, 16, 33] {
        let size = Size { width: side, height: 40 - side };
        let file = encoded(size, tj::TJSAMP_TJSAMP_GRAY);
        let decoded = components(&file, size, (1, 1), 1);
        let samples = decoded[0].samples(Region::whole(size), Rows::Odd);
        let plan = copy_plan(Region::whole(size));
        let slots = render(&[(Source::Gray(samples.plane()), &plan)]);
        assert_eq!(slots[0], oracle(Pixels::Encoded(&file), size, &plan));
    }
}

/// Sampling factors that no encoder here writes are replicated, as `int_upsample` does.
#[test]
fn other_ratios_are_replicated() {
    let size = Size { width: 23, height: 14 };
    let plan = copy_plan(Region::whole(size));
    let whole = picture(size, 1);
    for expand in [(4_u8, 2_u8), (2, 4), (3, 1), (4, 4)] {
        let (x, y) = (u32::from(expand.0), u32::from(expand.1));
        let small = Size { width: size.width.div_ceil(x), height: size.height.div_ceil(y) };
        let luma = Samples::new(&whole, size, 1, Region::whole(size), Rows::Odd);
        let gray = vec![128; whole.len()];
        let cb = Samples::new(&gray, small, 1, Region::whole(small), Rows::Odd);
        let cr = Samples::new(&whole, small, 1, Region::whole(small), Rows::Odd);
        let components = [
            Component { plane: luma.plane(), expand: (1, 1) },
            Component { plane: cb.plane(), expand },
            Component { plane: cr.plane(), expand },
        ];
        let slots = render(&[(Source::Ycbcr { size, components }, &plan)]);
        let columns = size.width as usize;
        for (at, pixel) in slots[0].as_chunks::<3>().0.iter().enumerate() {
            let (column, row) = (at % columns, at / columns);
            let from = row / y as usize * small.width as usize + column / x as usize;
            let cr = i32::from(whole[from]) - 128;
            let red = i32::from(whole[at]) + ((91_881 * cr + (1 << 15)) >> 16);
            assert_eq!(i32::from(pixel[0]), red.clamp(0, 255), "{expand:?} at {column}, {row}");
        }
    }
}
