//! Items that would lead a kernel astray are refused, each with its reason, and the rest is rendered.

#![allow(clippy::unwrap_used, reason = "a failed unwrap fails the test")]

#[path = "../../../rust/codec/tests/common/mod.rs"]
mod codec;
mod common;

use codec::{copy_axis, copy_plan, pass};
use common::{Image, slot_bytes};
use forebay_core::coeffs::{Interpolation, Table};
use forebay_core::{
    Axis, Channels, ColorOp, DType, ErrorKind, HasKind, ImagePlan, Region, Size, Taps,
};
use forebay_cuda::pack::{Component, Error, Plane, RenderItem, Source, pack};

const SIZE: Size = Size { width: 8, height: 6 };
const ADDRESS: u64 = 0x7000_0000;

fn plane(held: Region) -> Plane {
    Plane { address: ADDRESS, pitch: 64, held }
}

fn whole() -> Source {
    Source::Rgb(plane(Region::whole(SIZE)))
}

fn plan() -> ImagePlan {
    copy_plan(Region::whole(SIZE))
}

fn refusal(source: Source, plan: &ImagePlan, slot: u64, slot_bytes: usize) -> Error {
    let packed = pack(&[RenderItem { source, plan, slot, slot_bytes }], &[]);
    assert!(packed.launches.is_empty());
    packed.refused.into_iter().next().expect("refused").1
}

/// Of a plan whose slot would fit.
fn refused_plan(plan: &ImagePlan) -> Error {
    refusal(whole(), plan, ADDRESS, slot_bytes(plan))
}

fn refused_source(source: Source) -> Error {
    let plan = plan();
    refusal(source, &plan, ADDRESS, slot_bytes(&plan))
}

#[test]
fn axes_that_leave_the_input_are_refused() {
    let with_x = |taps| {
        let mut plan = plan();
        let (content_start, out_len) = (0, 8);
        plan.passes[0].x = Axis { out_len, content_start, taps };
        refused_plan(&plan)
    };
    let weighted = |change: fn(&mut Table)| {
        let mut table = Table::new(8, 8, Interpolation::Bilinear, true);
        change(&mut table);
        with_x(Taps::Weighted(table))
    };
    let expected = Error::Axis { input: 8 };
    assert_eq!(with_x(Taps::Copy(vec![0, 8])), expected);
    assert_eq!(with_x(Taps::Copy((0..9).map(|_| 0).collect())), expected);
    assert_eq!(weighted(|table| table.starts[3] = 8), expected);
    assert_eq!(weighted(|table| table.starts[3] = u32::MAX), expected);
    assert_eq!(weighted(|table| table.counts[0] = 0), expected);
    assert_eq!(weighted(|table| table.counts[0] = table.taps + 1), expected);
    assert_eq!(weighted(|table| table.precision = 31), expected);
    assert_eq!(weighted(|table| table.starts.swap(2, 5)), expected, "back and forth");
    assert_eq!(weighted(|table| table.weights.truncate(1)), expected);
    assert_eq!(weighted(|table| table.counts.truncate(1)), expected);
    let mut second = plan();
    second.passes.push(pass(copy_axis(9), copy_axis(6)));
    assert_eq!(refused_plan(&second), expected);
}

#[test]
fn plans_that_write_no_slot_are_refused() {
    let mut empty = plan();
    empty.passes.clear();
    assert_eq!(refusal(whole(), &empty, ADDRESS, 0), Error::NoPass);
    let mut gray = plan();
    gray.write.channels = Channels::Gray;
    gray.passes[0].color.push(ColorOp::Hue(0.1));
    assert_eq!(refused_plan(&gray), Error::Gray);
    let mut elements = plan();
    elements.write.dtype = DType::Int64;
    assert_eq!(refused_plan(&elements), Error::Elements { dtype: DType::Int64 });
}

#[test]
fn slots_of_another_size_or_alignment_are_refused() {
    let mut plan = plan();
    plan.write.dtype = DType::Float32;
    let bytes = slot_bytes(&plan);
    for (slot, slot_bytes) in
        [(ADDRESS, bytes - 4), (ADDRESS, bytes + 4), (ADDRESS + 2, bytes), (0, bytes), (!3, bytes)]
    {
        let error = refusal(whole(), &plan, slot, slot_bytes);
        assert!(matches!(error, Error::Slot { .. }), "{error}");
    }
}

#[test]
fn pixels_that_are_not_there_are_refused() {
    for held in [
        Region { x: 1, y: 0, width: 7, height: 6 },
        Region { x: 0, y: 1, width: 8, height: 5 },
        Region { x: 0, y: 0, width: 7, height: 6 },
        Region { x: 0, y: 0, width: 8, height: 5 },
    ] {
        let needed = Region::whole(SIZE);
        assert_eq!(refused_source(Source::Rgb(plane(held))), Error::Region { needed, held });
        assert_eq!(refused_source(Source::Gray(plane(held))), Error::Region { needed, held });
        for place in 0..3 {
            let mut planes = [plane(needed); 3];
            planes[place] = plane(held);
            assert_eq!(refused_source(Source::Planar(planes)), Error::Region { needed, held });
        }
    }
}

#[test]
fn sources_that_contradict_themselves_are_refused() {
    let held = Region::whole(SIZE);
    for plane in [
        Plane { pitch: 23, ..plane(held) },
        Plane { address: 0, ..plane(held) },
        Plane { address: u64::MAX - 10, ..plane(held) },
        Plane { held: Region { width: u32::MAX, ..held }, pitch: u32::MAX, ..plane(held) },
    ] {
        let error = refused_source(Source::Rgb(plane));
        assert!(matches!(error, Error::Source { .. }), "{error}");
    }
    let narrow = Plane { pitch: 7, ..plane(held) };
    let error = refused_source(Source::Planar([plane(held), narrow, plane(held)]));
    assert!(matches!(error, Error::Source { .. }), "{error}");
}

#[test]
fn components_that_do_not_cover_the_region_are_refused() {
    let with_chroma = |expand, held| {
        let luma = Component { plane: plane(Region::whole(SIZE)), expand: (1, 1) };
        let chroma = Component { plane: plane(held), expand };
        refused_source(Source::Ycbcr { size: SIZE, components: [luma, chroma, chroma] })
    };
    let region = |width, height| Region { x: 0, y: 0, width, height };
    assert!(matches!(with_chroma((2, 2), region(3, 3)), Error::Region { .. }));
    assert!(matches!(with_chroma((2, 2), region(4, 2)), Error::Region { .. }));
    assert!(matches!(with_chroma((2, 2), region(5, 3)), Error::Source { .. }));
    assert!(matches!(with_chroma((0, 1), region(4, 3)), Error::Source { .. }));
}

#[test]
fn passes_beyond_31_bits_of_pixels_are_unsupported() {
    let mut plan = plan();
    plan.passes[0].x.out_len = 1 << 16;
    plan.passes[0].y.out_len = 1 << 16;
    let error = refused_plan(&plan);
    assert!(matches!(error, Error::TooLarge { .. }), "{error}");
    assert_eq!(error.kind(), ErrorKind::Unsupported);
}

#[test]
fn a_refused_item_leaves_the_others_as_they_are() {
    let image = Image { size: SIZE, channels: 3, pixels: (0..144).collect() };
    let samples = image.samples(Region::whole(SIZE));
    let (good, bad) = (plan(), copy_plan(Region { x: 1, ..Region::whole(SIZE) }));
    let mut slots = [vec![0_u8; 144], vec![0; 144], vec![0; 144]];
    let plans = [&good, &bad, &good];
    let items: Vec<RenderItem<'_>> = plans
        .into_iter()
        .zip(&mut slots)
        .map(|(plan, slot)| RenderItem {
            source: Source::Rgb(samples.plane()),
            plan,
            slot: slot.as_mut_ptr() as u64,
            slot_bytes: slot.len(),
        })
        .collect();
    let packed = pack(&items, &[]);
    assert_eq!(packed.refused.iter().map(|(place, _)| *place).collect::<Vec<_>>(), [1]);
    // SAFETY: `samples` and `slots` are live, and no two slots overlap.
    unsafe { forebay_kernel_tests::run(&packed) };
    let expected = image.expected(&good);
    assert_eq!(slots, [expected.clone(), vec![0; 144], expected]);
}
