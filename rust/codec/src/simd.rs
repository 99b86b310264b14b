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
    /// AVX-512 F, BW, VL, VBMI and VNNI: Ice Lake, Zen 4 and later. Leaves without a version of
    /// their own run their AVX2 one.
    #[cfg(target_arch = "x86_64")]
    Avx512,
}

impl Level {
    /// Plain Rust, the oracle of the others.
    pub const SCALAR: Self = Self(Kind::Scalar);

    /// The fastest that this CPU has.
    pub fn best() -> Self {
        Self::available().pop().expect("plain Rust runs everywhere")
    }

    /// All that this CPU has, slowest first.
    pub fn available() -> Vec<Self> {
        let mut levels = vec![Self::SCALAR];
        #[cfg(target_arch = "x86_64")]
        if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") {
            levels.push(Self(Kind::Avx2));
            if is_x86_feature_detected!("avx512f")
                && is_x86_feature_detected!("avx512bw")
                && is_x86_feature_detected!("avx512vl")
                && is_x86_feature_detected!("avx512vbmi")
                && is_x86_feature_detected!("avx512vnni")
            {
                levels.push(Self(Kind::Avx512));
            }
        }
        levels
    }

    /// The name in `describe()`.
    pub fn name(self) -> &'static str {
        match self.0 {
            Kind::Scalar => "scalar",
            #[cfg(target_arch = "x86_64")]
            Kind::Avx2 => "avx2",
            #[cfg(target_arch = "x86_64")]
            Kind::Avx512 => "avx512",
        }
    }

    /// Its instructions are present, and those of the kinds before it: only `available` makes one.
    pub(crate) fn kind(self) -> Kind {
        self.0
    }
}

/// The fastest level of this CPU.
pub fn level() -> Level {
    Level::best()
}
