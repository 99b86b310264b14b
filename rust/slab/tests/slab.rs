//! The slab's promises: disjoint write-once slots, sealing, views, reuse.
#![cfg(not(loom))]
#![allow(clippy::unwrap_used, reason = "a failed unwrap fails the test")]

use forebay_core::ports::{Slot, SlotMemory};
use forebay_core::{DType, ErrorKind, FieldSpec, Layout};
use forebay_slab::{
    Allocator, Block, Error, Pageable, SealedField, Slab, Values, View, slab_bytes, zero,
};
use std::sync::Arc;

fn spec(path: &str, dtype: DType, shape: &[usize]) -> FieldSpec {
    FieldSpec {
        path: path.to_owned(),
        dtype,
        shape: shape.to_vec(),
        ragged: false,
        layout: Layout::Contiguous,
        on_device: false,
    }
}

fn host(field: &SealedField) -> &View {
    match &field.values {
        Values::Host(view) => view,
        Values::Device(_) => panic!("on a device"),
    }
}

fn specs() -> Vec<FieldSpec> {
    vec![
        spec("image", DType::UInt8, &[3, 2, 5]),
        FieldSpec { ragged: true, ..spec("boxes", DType::Float32, &[4]) },
        spec("label", DType::Int64, &[]),
        FieldSpec { layout: Layout::ChannelsLast, ..spec("depth", DType::Float16, &[3, 2, 5]) },
    ]
}

fn slab(samples: usize) -> Slab {
    let slab = Slab::new(&specs(), samples, Arc::new(Pageable::default())).unwrap();
    slab.reserve().unwrap();
    slab
}

fn fill(slot: &mut dyn Slot, byte: u8) {
    let SlotMemory::Host(memory) = slot.memory() else {
        panic!("host memory expected");
    };
    memory.fill(byte);
}

fn write_all(slab: &Slab, samples: usize) {
    for sample in 0..samples {
        let byte = u8::try_from(sample).unwrap();
        fill(&mut slab.slot(0, sample).unwrap(), byte);
        fill(&mut slab.slot(3, sample).unwrap(), byte + 100);
        slab.put(1, sample, &vec![byte; 16 * sample]).unwrap();
        slab.put(2, sample, &[byte; 8]).unwrap();
    }
}

#[test]
fn sealed_fields_show_what_was_written() {
    let slab = slab(3);
    write_all(&slab, 3);
    let sealed = slab.seal().unwrap();
    let bytes = |item: usize, first: u8| -> Vec<u8> {
        (0..3).flat_map(|sample| vec![first + sample; item]).collect()
    };
    assert_eq!(sealed.bytes(0), bytes(30, 0));
    assert_eq!(sealed.bytes(2), bytes(8, 0));
    assert_eq!(sealed.bytes(3), bytes(60, 100));
    let rows: Vec<u8> = [vec![1; 16], vec![2; 32]].concat();
    assert_eq!(sealed.bytes(1), rows);
    assert_eq!(sealed.offsets(1).unwrap(), [0, 0, 1, 3]);
    assert_eq!(sealed.offsets(0), None);
    assert_eq!(sealed.samples(), 3);
}

#[test]
fn views_have_shapes_strides_and_alignment() {
    let slab = slab(3);
    write_all(&slab, 3);
    let sealed = slab.seal().unwrap();
    let fields = sealed.fields();
    assert_eq!(host(&fields[0]).shape(), [3, 3, 2, 5]);
    assert_eq!(host(&fields[0]).strides(), [30, 10, 5, 1]);
    assert_eq!(host(&fields[1]).shape(), [3, 4], "all rows");
    assert_eq!(host(&fields[1]).strides(), [4, 1]);
    let offsets = fields[1].offsets.as_ref().unwrap();
    assert_eq!((offsets.shape(), offsets.dtype()), ([4].as_slice(), DType::Int64));
    assert_eq!(host(&fields[2]).shape(), [3]);
    assert_eq!(host(&fields[3]).strides(), [30, 1, 15, 3], "channels last");
    assert_eq!(host(&fields[3]).bytes(), 3 * 60);
    for view in fields.iter().map(host).chain([offsets]) {
        assert_eq!(view.ptr().addr().get() % 64, 0);
    }
}

#[test]
fn a_slot_is_given_out_once() {
    let slab = slab(2);
    let slot = slab.slot(0, 1).unwrap();
    assert!(matches!(slab.slot(0, 1), Err(Error::Taken { sample: 1, .. })));
    drop(slot);
    let mut slot = slab.slot(0, 1).expect("an untouched slot was not written");
    fill(&mut slot, 1);
    zero(&mut slot).unwrap();
    drop(slot);
    assert!(matches!(slab.slot(0, 1), Err(Error::Taken { .. })), "MEM-2");
    assert_eq!(slab.slot(0, 2).unwrap_err().kind(), ErrorKind::Range);
    assert_eq!(slab.slot(4, 0).unwrap_err().kind(), ErrorKind::Range);
    assert!(matches!(slab.slot(1, 0), Err(Error::Ragged { .. })));
}

#[test]
fn values_have_the_fields_size_and_come_once() {
    let slab = slab(2);
    let text = |result: Result<(), Error>| result.unwrap_err().to_string();
    assert_eq!(text(slab.put(2, 1, &[0; 7])), "label: sample 1: expected 8 bytes, got 7");
    assert_eq!(text(slab.put(1, 0, &[0; 20])), "boxes: sample 0: expected 16 bytes a row, got 20");
    slab.put(1, 0, &[]).unwrap();
    assert_eq!(text(slab.put(1, 0, &[])), "boxes: sample 0 was already given out");
    slab.put(2, 1, &[0; 8]).unwrap();
    assert_eq!(text(slab.put(2, 1, &[0; 8])), "label: sample 1 was already given out");
}

#[test]
fn sealing_names_what_is_missing() {
    let text = |slab: Slab| slab.seal().unwrap_err().to_string();
    assert_eq!(text(slab(1)), "image: sample 0 was not written and returned");
    let untouched = slab(2);
    write_all(&untouched, 1);
    drop(untouched.slot(0, 1).unwrap());
    assert_eq!(text(untouched), "image: sample 1 was not written and returned");
    let lent = slab(1);
    let mut slot = lent.slot(0, 0).unwrap();
    fill(&mut slot, 1);
    assert_eq!(text(lent), "image: sample 0 was not written and returned");
    fill(&mut slot, 2);
    let no_rows = Slab::new(&specs()[1..2], 2, Arc::new(Pageable::default())).unwrap();
    no_rows.put(0, 0, &[]).unwrap();
    assert_eq!(text(no_rows), "boxes: sample 1 was not written and returned");
}

#[test]
fn slots_are_written_from_many_threads() {
    let samples = 64;
    let slab = Slab::new(&specs()[..1], samples, Arc::new(Pageable::default())).unwrap();
    slab.reserve().unwrap();
    std::thread::scope(|scope| {
        for sample in 0..samples {
            let mut slot = slab.slot(0, sample).unwrap();
            scope.spawn(move || fill(&mut slot, u8::try_from(sample).unwrap()));
        }
    });
    let sealed = slab.seal().unwrap();
    for (sample, bytes) in sealed.bytes(0).chunks(30).enumerate() {
        assert!(bytes.iter().all(|byte| usize::from(*byte) == sample));
    }
}

#[test]
fn freed_blocks_are_reused_and_bounded() {
    let pageable = Arc::new(Pageable::new(2));
    let first = pageable.allocate(100).unwrap();
    let address = first.ptr();
    assert_eq!(first.len(), 4096);
    drop(first);
    let again = pageable.allocate(4000).unwrap();
    assert_eq!(again.ptr(), address, "both are a page");
    let other: Vec<Block> = (0..4).map(|_| pageable.allocate(5000).unwrap()).collect();
    drop((again, other));
    assert_eq!(pageable.free_blocks(), 3, "one of a page, and two of the four of two pages");
    let all: Vec<Block> = (1..20).map(|n| pageable.allocate(n * 10_000).unwrap()).collect();
    drop(all);
    assert_eq!(pageable.free_blocks(), 8, "of all lengths");
}

#[test]
fn a_block_that_comes_back_soon_is_waited_for() {
    let pageable = Arc::new(Pageable::default());
    let bytes = 16 << 20;
    let [one, two] = [(); 2].map(|()| pageable.allocate(bytes).unwrap());
    let address = one.ptr();
    let third = std::thread::scope(|scope| {
        let third = scope.spawn(|| pageable.allocate(bytes).unwrap());
        drop(one);
        third.join().unwrap()
    });
    assert_eq!(third.ptr(), address);
    let fourth = pageable.allocate(bytes).unwrap();
    assert!(fourth.ptr() != address && fourth.ptr() != two.ptr(), "but not for ever");
}

#[test]
fn a_sealed_slab_keeps_its_memory_until_the_last_owner_is_gone() {
    let pageable = Arc::new(Pageable::default());
    let slab = Slab::new(&specs(), 2, Arc::clone(&pageable) as _).unwrap();
    slab.reserve().unwrap();
    write_all(&slab, 2);
    let sealed = slab.seal().unwrap();
    let another = Arc::clone(&sealed);
    drop(sealed);
    assert_eq!(pageable.free_blocks(), 0, "MEM-2");
    drop(another);
    assert_eq!(pageable.free_blocks(), 2, "the slots' block and the ragged one");
    let block = pageable.allocate(1).unwrap();
    drop(pageable);
    drop(block);
}

#[test]
fn impossible_sizes_are_errors() {
    let pageable = || Arc::new(Pageable::default());
    let huge = [spec("huge", DType::Float64, &[usize::MAX / 8])];
    let error = Slab::new(&huge, 2, pageable()).unwrap_err();
    assert_eq!(error.to_string(), "huge: 2 samples do not fit the address space");
    assert_eq!(error.kind(), ErrorKind::Memory);
    let overflow = [spec("overflow", DType::Float64, &[usize::MAX, 2])];
    assert!(slab_bytes(&overflow, 1).is_err());
    let error = Pageable::default().allocate(usize::MAX).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Memory);
    let error = Pageable::default().allocate(isize::MAX as usize - 8192).unwrap_err();
    assert!(matches!(error, Error::Exhausted { .. }));
}

#[test]
fn an_allocator_that_gives_too_little_is_refused() {
    struct Stingy(Pageable);
    impl Allocator for Stingy {
        fn allocate(&self, _bytes: usize) -> Result<Block, Error> {
            self.0.allocate(1)
        }
    }
    let specs = [spec("image", DType::UInt8, &[3, 100, 100])];
    let error = Slab::new(&specs, 1, Arc::new(Stingy(Pageable::default()))).unwrap_err();
    assert!(matches!(error, Error::BadBlock { expected: 30_000, got: 4096, .. }), "{error}");
}
