//! How a batch becomes a blob and launches; nothing is run.

#[path = "../../../rust/codec/tests/common/mod.rs"]
mod codec;
mod common;

use codec::{copy_axis, copy_plan, pass};
use common::slot_bytes;
use forebay_core::coeffs::{Interpolation, Table};
use forebay_core::{Axis, DType, ImagePlan, Layout, Reduce, Region, Size, Taps, Write};
use forebay_cuda::pack::{ALIGN, Kernel, Packed, Plane, RenderItem, Source, pack};

const SIZE: Size = Size { width: 8, height: 6 };
const ADDRESS: u64 = 0x7000_0000;
/// Bytes of a job's descriptor.
const JOB: usize = 344;

fn plan() -> ImagePlan {
    copy_plan(Region::whole(SIZE))
}

fn resized(output: u32) -> ImagePlan {
    let table = |input| Taps::Weighted(Table::new(input, output, Interpolation::Bilinear, true));
    let axis = |input| Axis { out_len: output, content_start: 0, taps: table(input) };
    ImagePlan { passes: vec![pass(axis(SIZE.width), axis(SIZE.height))], ..plan() }
}

fn item(plan: &ImagePlan) -> RenderItem<'_> {
    let plane = Plane { address: ADDRESS, pitch: 64, held: Region::whole(SIZE) };
    let slot_bytes = slot_bytes(plan);
    RenderItem { source: Source::Rgb(plane), plan, slot: ADDRESS, slot_bytes }
}

fn packed(plans: &[&ImagePlan]) -> Packed {
    let packed = pack(&plans.iter().copied().map(item).collect::<Vec<_>>(), &[]);
    assert_eq!(packed.refused, []);
    packed
}

#[test]
fn nothing_becomes_nothing() {
    let packed = pack(&[], &[]);
    assert!(packed.blob.is_empty() && packed.launches.is_empty());
    assert_eq!((packed.scratch_bytes, packed.cleared_bytes), (0, 0));
}

#[test]
fn equal_axes_and_element_tables_are_stored_once() {
    let (first, second) = (resized(20), resized(20));
    let added = packed(&[&first, &second]).blob.len() - packed(&[&first]).blob.len();
    assert_eq!(added, JOB);
    let mut other_layout = resized(20);
    other_layout.write.layout = Layout::Contiguous;
    let added = packed(&[&first, &other_layout]).blob.len() - packed(&[&first]).blob.len();
    assert_eq!(added, JOB, "a layout needs no table of its own");
    let half = Write { dtype: DType::Float16, ..first.write };
    let other_elements = ImagePlan { write: half, ..resized(20) };
    let added = packed(&[&first, &other_elements]).blob.len() - packed(&[&first]).blob.len();
    assert_eq!(added, JOB + 3 * 256 * 2);
}

#[test]
fn sums_lie_where_the_scratch_is_cleared() {
    let mut reduced = plan();
    reduced.passes[0].reduce = Some(Reduce::GrayMean);
    reduced.passes.push(pass(copy_axis(SIZE.width), copy_axis(SIZE.height)));
    let packed = packed(&[&reduced, &plan(), &reduced]);
    assert_eq!(packed.cleared_bytes, 2 * 8);
    assert!(packed.scratch_bytes >= packed.cleared_bytes + 2 * 4 * SIZE.pixels());
    assert!(packed.launches.iter().all(|launch| launch.jobs_offset % ALIGN as u64 == 0));
}

#[test]
fn one_pass_without_weights_needs_no_scratch() {
    assert_eq!(packed(&[&plan()]).scratch_bytes, 0);
}

#[test]
fn a_batch_is_one_pair_of_launches_a_pass() {
    let mut two = resized(40);
    two.passes.push(pass(copy_axis(40), copy_axis(40)));
    let plans = [resized(20), plan(), two, resized(17)];
    let launches = packed(&plans.each_ref()).launches;
    let found: Vec<_> = launches.iter().map(|l| (l.kernel, l.jobs, l.tiles)).collect();
    let expected = [
        (Kernel::ResampleAcross, 3, (40_u32 * 6).div_ceil(256)),
        // A warp makes at most 128 pixels of a row, a block has eight warps.
        (Kernel::ResampleDown, 4, 40_u32.div_ceil(8)),
        (Kernel::ResampleDown, 1, 40_u32.div_ceil(8)),
    ];
    assert_eq!(found, expected);
    assert_eq!(launches[0].jobs_offset, launches[1].jobs_offset);
}

#[test]
fn empty_outputs_are_not_launched() {
    let mut empty = plan();
    empty.passes = vec![pass(copy_axis(0), copy_axis(SIZE.height))];
    assert!(packed(&[&empty]).launches.is_empty());
}

#[test]
fn batches_beyond_the_grid_are_split() {
    let plan = plan();
    let packed = packed(&vec![&plan; 65_537]);
    let jobs: Vec<u32> = packed.launches.iter().map(|launch| launch.jobs).collect();
    assert_eq!(jobs, [65_535, 2]);
    assert!(packed.launches[0].jobs_offset < packed.launches[1].jobs_offset);
}
