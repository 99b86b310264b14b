//! Scheduling: turns tickets into batches with the help of sources, decoders and renderers that
//! it knows only as ports.
//!
//! **Invariants**
//! - ORD-1: threads, completion order and speed never change what is delivered.
//! - RES-1: [`Progress`] speaks of batches handed out, never of those in flight.
//! - ERR-1: a bad sample is a value; it uses up its position, and its slot is filled.
//! - MEM-1: bytes read but not rendered, pixels and slabs in flight stay within the budget, but
//!   one sample of the batch that is due always proceeds.
//! - LIF-1: threads start at the first [`Pipeline::next`]; [`Pipeline::close`] waits for at most a
//!   second.
//! - Memory of eager allocators is taken on the thread that calls `next`, because torch's belong to
//!   the consumer's thread and stream; ours is taken just before a batch's first sample is written.
//!
//! A batch's journey: `feed` (tickets) -> `opening` (memory) -> `assembly` (its samples' states
//! and queues) -> `scheduler` (which work is next, of a `run`, in `groups` for engines) -> `worker` and `prepare` (do it) -> `sinks`
//! (what came of it) -> `pipeline` (hands it out).
#![forbid(unsafe_code)]

mod assembly;
mod background;
mod batch;
mod budget;
mod config;
mod error;
mod feed;
mod groups;
mod opening;
mod parallel;
mod pipeline;
mod place;
mod prepare;
mod ranges;
mod route;
mod run;
mod scheduler;
mod shared;
mod sinks;
mod stats;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
mod worker;

pub use background::Background;
pub use batch::{Batch, Failure};
pub use config::{EngineConfig, FeedConfig, OnError, Shares};
pub use error::Error;
pub use parallel::for_each;
pub use pipeline::{Next, Parts, Pipeline, Progress};
pub use place::Cpus;
pub use stats::{StageStats, Stats};
pub use worker::left_behind;
