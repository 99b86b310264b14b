//! What a kernel depends on, as a name for its file.

use crate::find::Version;
use crate::nvrtc::{Program, Source};
use sha2::{Digest, Sha256};
use std::fmt;

/// A hash of all that decides the compiler's output.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Key([u8; 32]);

impl Key {
    /// Sources, headers, options, architecture, and the versions of NVRTC and of this crate.
    pub fn new(program: &Program<'_>, architecture: &str, nvrtc: Version) -> Self {
        let mut hash = Sha256::new();
        // With its length before it no text can run into the next.
        let mut add = |text: &str| {
            hash.update((text.len() as u64).to_le_bytes());
            hash.update(text.as_bytes());
        };
        add(env!("CARGO_PKG_VERSION"));
        add(&nvrtc.to_string());
        add(architecture);
        let Program { source, headers, options } = program;
        add(&options.len().to_string());
        options.iter().for_each(|option| add(option));
        for Source { name, text } in std::iter::once(source).chain(*headers) {
            add(name);
            add(text);
        }
        Self(hash.finalize().into())
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn all_that_decides_the_output_is_in_the_key() {
        let source = Source { name: "a.cu", text: "int x;" };
        let header = [Source { name: "b.cuh", text: "int y;" }];
        let plain = Program { source, headers: &header, options: &["-O3"] };
        let nvrtc = Version { major: 13, minor: 2 };
        let keys = [
            Key::new(&plain, "sm_90", nvrtc),
            Key::new(&plain, "sm_80", nvrtc),
            Key::new(&plain, "sm_90", Version { major: 13, minor: 3 }),
            Key::new(&Program { options: &[], ..plain }, "sm_90", nvrtc),
            Key::new(&Program { options: &["-O", "3"], ..plain }, "sm_90", nvrtc),
            Key::new(&Program { headers: &[], ..plain }, "sm_90", nvrtc),
            Key::new(
                &Program { source: Source { name: "a.cui", text: "nt x;" }, ..plain },
                "sm_90",
                nvrtc,
            ),
        ];
        assert_eq!(keys.iter().collect::<HashSet<_>>().len(), keys.len());
        assert_eq!(Key::new(&plain, "sm_90", nvrtc), keys[0]);
        assert_eq!(keys[0].to_string().len(), 64);
    }
}
