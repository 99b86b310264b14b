//! Every interleaving of writers and the one that seals, under loom:
//! `RUSTFLAGS="--cfg loom" cargo test -p forebay-slab --release --test loom`.
#![cfg(loom)]
#![allow(clippy::unwrap_used, reason = "a failed unwrap fails the test")]

use forebay_core::ports::{Slot, SlotMemory};
use forebay_core::{DType, FieldSpec, Layout};
use forebay_slab::{Error, Pageable, Slab};
use loom::sync::Arc;

fn slab(samples: usize) -> Slab {
    let label = FieldSpec {
        path: "label".to_owned(),
        dtype: DType::Int64,
        shape: vec![],
        ragged: false,
        layout: Layout::Contiguous,
        on_device: false,
    };
    let slab = Slab::new(&[label], samples, std::sync::Arc::new(Pageable::default())).unwrap();
    slab.reserve().unwrap();
    slab
}

fn fill(slot: &mut dyn Slot, byte: u8) {
    let SlotMemory::Host(memory) = slot.memory() else {
        panic!("host memory expected");
    };
    memory.fill(byte);
}

#[test]
fn sealing_is_refused_or_shows_every_byte() {
    loom::model(|| {
        let slab = slab(2);
        let writers: Vec<_> = [3, 4]
            .into_iter()
            .enumerate()
            .map(|(sample, byte)| {
                let mut slot = slab.slot(0, sample).unwrap();
                loom::thread::spawn(move || fill(&mut slot, byte))
            })
            .collect();
        match slab.seal() {
            Ok(sealed) => assert_eq!(sealed.bytes(0), [[3; 8], [4; 8]].concat()),
            Err(error) => assert!(matches!(error, Error::Unwritten { .. })),
        }
        for writer in writers {
            writer.join().unwrap();
        }
    });
}

#[test]
fn one_of_two_takers_gets_the_slot() {
    loom::model(|| {
        let slab = Arc::new(slab(1));
        let takers: Vec<_> = (1..=2)
            .map(|byte| {
                let slab = Arc::clone(&slab);
                loom::thread::spawn(move || slab.put(0, 0, &[byte; 8]).is_ok())
            })
            .collect();
        let won: Vec<bool> = takers.into_iter().map(|taker| taker.join().unwrap()).collect();
        assert_eq!(won.iter().filter(|won| **won).count(), 1);
        let Ok(slab) = Arc::try_unwrap(slab) else {
            panic!("the takers are gone");
        };
        let byte = if won[0] { 1 } else { 2 };
        assert_eq!(slab.seal().unwrap().bytes(0), [byte; 8]);
    });
}
