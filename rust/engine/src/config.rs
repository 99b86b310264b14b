//! The engine's options, checked once.

use crate::{Cpus, Error};
use forebay_core::order::{Dealing, LastBatch};

/// What happens to batches with bad samples (ERR-1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnError {
    /// The batch comes without memory; its good samples are counted as dropped.
    Raise,
    /// The slot is zeros, `skip_value` in int64 fields, and invalid.
    Skip,
    /// Another sample takes the slot, at most [`OnError::ATTEMPTS`] times; then as `Raise`.
    Replace,
}

impl OnError {
    /// Replacements that are tried for one slot.
    pub const ATTEMPTS: u16 = 8;
}

/// Who decides which samples make up which batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FeedConfig {
    /// The epoch's order, a pure function of the seed (ORD-1).
    Ordered {
        /// Seed of the order and of all draws.
        seed: u64,
        /// Permute the samples in every epoch.
        shuffle: bool,
        /// Batches and ranks.
        dealing: Dealing,
    },
    /// Batches of indices come from outside, through `push_batch`.
    Pushed {
        /// Seed of all draws.
        seed: u64,
        /// Which of the `shards` feeds this is; keys draws (RNG-1).
        shard: u64,
        /// Ranks times loader workers.
        shards: u64,
    },
}

impl FeedConfig {
    /// Seed of all draws.
    pub fn seed(&self) -> u64 {
        match self {
            Self::Ordered { seed, .. } | Self::Pushed { seed, .. } => *seed,
        }
    }
}

/// Parts of the images that go to decoders with engines, by sample index; the others, and those that
/// such a decoder cannot decode, go to threads.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Shares {
    /// By place among the pipeline's decoders.
    pub parts: [f64; Self::DECODERS],
}

impl Shares {
    /// No pipeline has more decoders.
    pub const DECODERS: usize = 4;

    /// Whose an image at `place` in [0, 1) is; `None` for threads.
    pub(crate) fn decoder(self, place: f64) -> Option<usize> {
        let mut end = 0.0;
        self.parts.iter().position(|part| {
            end += part;
            place < end
        })
    }
}

/// The engine's options.
///
/// ```
/// use forebay_core::order::{Dealing, LastBatch};
/// use forebay_engine::{EngineConfig, FeedConfig};
/// let dealing = Dealing { batch_size: 4, rank: 0, world_size: 1, last_batch: LastBatch::Partial };
/// let config = EngineConfig::new(FeedConfig::Ordered { seed: 0, shuffle: true, dealing });
/// assert!(config.validate().is_ok());
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct EngineConfig {
    /// Threads that probe, plan, decode and render; 0: everything in the thread that calls `next`.
    pub workers: usize,
    /// Threads that wait for the source; not used if `workers` is 0.
    pub io_threads: usize,
    /// Samples that are asked of the source or wait for a worker, at most: enough that workers
    /// never wait for reads; more would only hold memory.
    pub read_ahead: usize,
    /// Batches in flight in total, those that wait for `next` included.
    pub depth: usize,
    /// Bytes that the engine may hold (MEM-1).
    pub memory_budget: u64,
    /// What happens to batches with bad samples.
    pub on_error: OnError,
    /// Which images go to which decoder; `None`: whoever is free takes them.
    pub shares: Option<Shares>,
    /// Bad samples, since the pipeline was opened, after which it fails; `None`: never.
    pub max_errors: Option<u64>,
    /// Where tickets come from.
    pub feed: FeedConfig,
    /// Processors that the threads stay on; `None`: those of the process.
    pub cpus: Option<Cpus>,
    /// Ranges for profilers that speak NVTX.
    pub ranges: bool,
}

impl EngineConfig {
    /// The defaults: two workers, four threads for reading, 48 records ahead, depth 3, 1 GiB,
    /// `Raise`.
    pub fn new(feed: FeedConfig) -> Self {
        Self {
            workers: 2,
            io_threads: 4,
            read_ahead: 48,
            depth: 3,
            memory_budget: 1 << 30,
            on_error: OnError::Raise,
            shares: None,
            max_errors: None,
            feed,
            cpus: None,
            ranges: false,
        }
    }

    /// Checks every option.
    ///
    /// # Errors
    /// An option has a value that makes no sense.
    pub fn validate(&self) -> Result<(), Error> {
        at_least_one("depth", self.depth as u64)?;
        at_least_one("read_ahead", self.read_ahead as u64)?;
        at_least_one("memory_budget", self.memory_budget)?;
        if self.workers > 0 {
            at_least_one("io_threads", self.io_threads as u64)?;
        }
        match self.feed {
            FeedConfig::Ordered { dealing, .. } => validate_dealing(&dealing),
            FeedConfig::Pushed { shard, shards, .. } => {
                at_least_one("shards", shards)?;
                below("shard", shard, "shards", shards)
            }
        }
    }
}

fn validate_dealing(dealing: &Dealing) -> Result<(), Error> {
    at_least_one("batch_size", dealing.batch_size)?;
    at_least_one("world_size", dealing.world_size)?;
    below("rank", dealing.rank, "world_size", dealing.world_size)?;
    let global = dealing.batch_size.checked_mul(dealing.world_size);
    if global.is_none_or(|global| global > u64::from(u32::MAX)) {
        return Err(Error::Option {
            option: "batch_size",
            reason: format!(
                "expected batch_size x world_size below 2^32, got {} x {}",
                dealing.batch_size, dealing.world_size
            ),
        });
    }
    if dealing.last_batch == LastBatch::Partial && dealing.world_size > 1 {
        return Err(Error::Option {
            option: "last_batch",
            reason: format!(
                "\"partial\" would give {} ranks batches of different sizes, use \"pad\" or \"drop\"",
                dealing.world_size
            ),
        });
    }
    Ok(())
}

fn at_least_one(option: &'static str, value: u64) -> Result<(), Error> {
    if value >= 1 {
        return Ok(());
    }
    Err(Error::Option { option, reason: format!("expected at least 1, got {value}") })
}

fn below(option: &'static str, value: u64, limit: &str, bound: u64) -> Result<(), Error> {
    if value < bound {
        return Ok(());
    }
    Err(Error::Option {
        option,
        reason: format!("expected less than {limit}={bound}, got {value}"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn contradictory_options_are_refused_by_name() {
        let dealing =
            Dealing { batch_size: 4, rank: 0, world_size: 1, last_batch: LastBatch::Partial };
        let ordered =
            |dealing| EngineConfig::new(FeedConfig::Ordered { seed: 0, shuffle: false, dealing });
        let good = ordered(dealing);
        assert!(good.validate().is_ok());
        let bad = [
            EngineConfig { depth: 0, ..good },
            EngineConfig { memory_budget: 0, ..good },
            EngineConfig { io_threads: 0, ..good },
            EngineConfig { read_ahead: 0, ..good },
            ordered(Dealing { batch_size: 0, ..dealing }),
            ordered(Dealing { rank: 1, ..dealing }),
            ordered(Dealing { batch_size: 1 << 40, ..dealing }),
            ordered(Dealing { world_size: 2, ..dealing }),
            EngineConfig::new(FeedConfig::Pushed { seed: 0, shard: 2, shards: 2 }),
        ];
        let messages: Vec<String> =
            bad.iter().map(|config| config.validate().unwrap_err().to_string()).collect();
        assert_eq!(messages[0], "depth: expected at least 1, got 0");
        assert_eq!(messages[8], "shard: expected less than shards=2, got 2");
        assert!(EngineConfig { workers: 0, io_threads: 0, ..good }.validate().is_ok());
    }
}
