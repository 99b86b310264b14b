//! Which instructions the pixel kernels may use: one probe, as a value that tests can set.

/// A set of instructions that this CPU has; holding one is the proof.
///
/// ```
/// use forebay_codec::Level;
/// assert!(Level::available().contains(&Level::SCALAR));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Level(Kind);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Scalar,
    #[cfg(target_arch = "x86_64")]
    Avx2,
}

impl Level {
    /// Plain Rust, the oracle of the others.
    pub const SCALAR: Self = Self(Kind::Scalar);

    /// The fastest that this CPU has.
    pub fn best() -> Self {
        #[cfg(target_arch = "x86_64")]
        if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") {
            return Self(Kind::Avx2);
        }
        Self::SCALAR
    }

    /// All that this CPU has, slowest first.
    pub fn available() -> Vec<Self> {
        let mut levels = vec![Self::SCALAR];
        if Self::best() != Self::SCALAR {
            levels.push(Self::best());
        }
        levels
    }

    /// The name in `describe()`.
    pub fn name(self) -> &'static str {
        match self.0 {
            Kind::Scalar => "scalar",
            #[cfg(target_arch = "x86_64")]
            Kind::Avx2 => "avx2",
        }
    }

    /// AVX2 and FMA are present whenever this is `Kind::Avx2`: only `best` makes one.
    pub(crate) fn kind(self) -> Kind {
        self.0
    }
}

/// The fastest level of this CPU.
pub fn level() -> Level {
    Level::best()
}
