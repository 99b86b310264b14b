//! Where a loader stands, small enough to keep in every checkpoint.
//!
//! **Invariants**
//! - RES-1: a state speaks of batches handed out, never of prefetched ones, and loading it reads
//!   no data.

use crate::{ErrorKind, HasKind};
use serde::{Deserialize, Serialize};

/// Version of the state's layout that this build writes and reads.
pub const VERSION: u32 = 1;

/// Everything that built-in samplers need to go on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct State {
    /// [`VERSION`] of the build that wrote it.
    pub version: u32,
    /// Of the source and the recipe, in hexadecimal.
    pub fingerprint: String,
    /// Seed of order and draws.
    pub seed: u64,
    /// Epoch of the next batch.
    pub epoch: u64,
    /// Global position of the next batch's first sample.
    pub position: u64,
}

/// A state that does not belong here.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum StateError {
    /// Written by another layout.
    #[error("state has version {got}, this build reads version {VERSION}")]
    Version {
        /// As found.
        got: u32,
    },
    /// Of another source or recipe.
    #[error(
        "state belongs to another dataset or recipe: its fingerprint is {got}, this loader's {want}; \
         build the loader with the same source and transforms"
    )]
    Fingerprint {
        /// As found.
        got: String,
        /// This loader's.
        want: String,
    },
    /// Of another seed.
    #[error("state has seed {got}, this loader {want}; pass seed={got}")]
    Seed {
        /// As found.
        got: u64,
        /// This loader's.
        want: u64,
    },
    /// Past the end of the epoch.
    #[error("state stands at position {got}, the epoch has {len}")]
    Position {
        /// As found.
        got: u64,
        /// Positions of an epoch.
        len: u64,
    },
}

impl HasKind for StateError {
    fn kind(&self) -> ErrorKind {
        match self {
            Self::Version { .. }
            | Self::Fingerprint { .. }
            | Self::Seed { .. }
            | Self::Position { .. } => ErrorKind::Invalid,
        }
    }
}

impl State {
    /// Whether a loader that would write `current` at its beginning can go on from `self`.
    ///
    /// # Errors
    /// Version, fingerprint or seed differ, or the position is past the end of `len` positions.
    pub fn check(&self, current: &Self, len: Option<u64>) -> Result<(), StateError> {
        if self.version != current.version {
            return Err(StateError::Version { got: self.version });
        }
        if self.fingerprint != current.fingerprint {
            let (got, want) = (self.fingerprint.clone(), current.fingerprint.clone());
            return Err(StateError::Fingerprint { got, want });
        }
        if self.seed != current.seed {
            return Err(StateError::Seed { got: self.seed, want: current.seed });
        }
        match len {
            Some(len) if self.position > len => {
                Err(StateError::Position { got: self.position, len })
            }
            _ => Ok(()),
        }
    }
}

/// A 64-bit hash that stays the same across builds and machines (FNV-1a over 8-byte words, then a
/// finaliser); for fingerprints only.
///
/// ```
/// use forebay_core::state::Fingerprint;
/// let of = |parts: &[&[u8]]| parts.iter().fold(Fingerprint::default(), |f, part| f.with(part)).value();
/// assert_ne!(of(&[b"ab", b"c"]), of(&[b"a", b"bc"]));
/// ```
#[derive(Debug, Clone, Copy)]
#[must_use]
pub struct Fingerprint(u64);

impl Default for Fingerprint {
    fn default() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }
}

impl Fingerprint {
    const PRIME: u64 = 0x0000_0100_0000_01b3;

    fn word(self, word: u64) -> Self {
        Self((self.0 ^ word).wrapping_mul(Self::PRIME).rotate_left(23))
    }

    /// Adds a part; where parts begin and end counts.
    pub fn with(self, part: &[u8]) -> Self {
        let (words, rest) = part.as_chunks::<8>();
        let hash = words.iter().fold(self, |hash, word| hash.word(u64::from_le_bytes(*word)));
        let mut last = [0; 8];
        last[..rest.len()].copy_from_slice(rest);
        hash.word(u64::from_le_bytes(last)).word(part.len() as u64)
    }

    /// The hash so far.
    pub fn value(self) -> u64 {
        let mixed = (self.0 ^ (self.0 >> 31)).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        mixed ^ (mixed >> 29)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state() -> State {
        State { version: VERSION, fingerprint: "00ff".into(), seed: 3, epoch: 1, position: 640 }
    }

    #[test]
    fn survives_json() {
        let json = serde_json::to_string(&state()).unwrap();
        assert_eq!(serde_json::from_str::<State>(&json).unwrap(), state());
    }

    #[test]
    fn t48_states_of_other_loaders_are_refused() {
        let here = state();
        assert_eq!(state().check(&here, Some(1000)), Ok(()));
        let others = [
            State { version: 2, ..state() },
            State { fingerprint: "beef".into(), ..state() },
            State { seed: 4, ..state() },
            State { position: 1001, ..state() },
        ];
        for other in others {
            assert!(other.check(&here, Some(1000)).is_err(), "{other:?}");
        }
    }
}
