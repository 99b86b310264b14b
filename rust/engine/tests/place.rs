//! Where threads run and who comes first. Threads belong to the process, so this test has one of its
//! own: it must stay the only one in its file.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "a failed unwrap fails the test")]

mod common;

use common::{Setup, engines, next_batch};
use forebay_engine::testing::{FakeDecoder, PixelRoute};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

/// Processors and niceness of a thread.
fn placed(task: &Path) -> (String, i32) {
    let status = std::fs::read_to_string(task.join("status")).unwrap();
    let cpus = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
    let stat = std::fs::read_to_string(task.join("stat")).unwrap();
    let behind_name = stat.rsplit(')').next().unwrap();
    (
        cpus.unwrap().trim().to_owned(),
        behind_name.split_whitespace().nth(16).unwrap().parse().unwrap(),
    )
}

fn threads() -> BTreeMap<String, (String, i32)> {
    let tasks = std::fs::read_dir("/proc/self/task").unwrap().flatten();
    let named = tasks.filter_map(|task| {
        let name = std::fs::read_to_string(task.path().join("comm")).ok()?;
        name.starts_with("forebay-").then(|| (name.trim().to_owned(), placed(&task.path())))
    });
    named.collect()
}

#[test]
fn threads_stay_on_given_processors_and_those_beside_engines_step_back() {
    let (own, nice) = placed(Path::new("/proc/thread-self"));
    let first: u32 = own.split(['-', ',']).next().unwrap().parse().unwrap();
    let engine = FakeDecoder { engines: Some(engines(4)), ..FakeDecoder::new(PixelRoute::Host) };
    let mut setup = Setup::new(400).workers(3);
    setup.config.cpus = Some([first].into_iter().collect());
    setup.decoders.push(Arc::new(engine));
    let pipeline = setup.open();
    pipeline.start_epoch(0, 0).unwrap();
    // Most of the way through, all threads have begun.
    (0..60).for_each(|_| assert!(next_batch(&pipeline).is_some()));
    let threads = threads();
    assert_eq!(threads.len(), 3 + 4, "{threads:?}");
    assert!(threads.values().all(|(cpus, _)| *cpus == first.to_string()), "{threads:?}");
    let nices = ["work-0", "work-1", "work-2", "io-0"];
    let nices = nices.map(|name| threads[&format!("forebay-{name}")].1 - nice);
    assert_eq!(nices, [5, 5, 0, 0], "the last worker is the engine's");
}
