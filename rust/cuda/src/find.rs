//! Where CUDA's libraries may lie: folders that Python collected, then the system's loader.
//!
//! Python knows torch's folders and the environment; this module knows file names and order. Nothing
//! here is cached: whoever found a library keeps its functions.

use crate::library::Library;
use std::fmt;
use std::path::{Path, PathBuf};

/// A library that is found at run time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Part {
    /// The driver, libcuda.
    Driver,
    /// The run-time compiler.
    Nvrtc,
    /// The JPEG decoder.
    NvJpeg,
}

impl Part {
    /// How NVIDIA calls it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Driver => "NVIDIA's driver",
            Self::Nvrtc => "NVRTC",
            Self::NvJpeg => "nvJPEG",
        }
    }

    fn stem(self) -> &'static str {
        match self {
            Self::Driver => "libcuda",
            Self::Nvrtc => "libnvrtc",
            Self::NvJpeg => "libnvjpeg",
        }
    }

    /// Versions in the file's name, the best first: torch's CUDA is the one that this machine's
    /// driver surely runs.
    fn majors(self, torch: Option<u32>) -> Vec<u32> {
        match self {
            Self::Driver => vec![1],
            Self::Nvrtc | Self::NvJpeg => {
                let known = [13, 12];
                let first = torch.filter(|major| known.contains(major));
                first.into_iter().chain(known.into_iter().filter(|&m| Some(m) != first)).collect()
            }
        }
    }

    /// The driver belongs to the system, whose loader knows which one runs; the others come with
    /// torch, whose folders the loader does not know.
    fn system_first(self) -> bool {
        self == Self::Driver
    }
}

/// Where to look, and for which CUDA.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Places {
    /// In the order of preference.
    pub folders: Vec<PathBuf>,
    /// Major version of the CUDA that torch was built for.
    pub cuda_major: Option<u32>,
}

/// A library that was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// The file.
    pub path: PathBuf,
    /// As the library itself says.
    pub version: Version,
}

/// A library's version.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Version {
    /// Its first number.
    pub major: u32,
    /// Its second number.
    pub minor: u32,
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

/// A library that was not found, and where it was looked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Missing {
    /// Which.
    pub part: Part,
    /// File names that would do, the best first.
    pub names: Vec<String>,
    /// Folders that were looked through, besides asking the system's loader.
    pub searched: Vec<PathBuf>,
    /// Files that were there but would not do, and why.
    pub rejected: Vec<(PathBuf, String)>,
    /// What to install.
    pub advice: String,
}

impl fmt::Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({}) was not found; searched ", self.part.name(), self.names.join(", "))?;
        for folder in &self.searched {
            write!(f, "{}, ", folder.display())?;
        }
        write!(f, "the system's loader")?;
        for (path, reason) in &self.rejected {
            write!(f, "; {}: {reason}", path.display())?;
        }
        write!(f, "; {}", self.advice)
    }
}

impl std::error::Error for Missing {}

/// Opens the first candidate that `accept` takes: it fills a table of functions, or says why not.
pub(crate) fn search<T>(
    part: Part,
    places: &Places,
    accept: impl Fn(&Library) -> Result<T, String>,
) -> Result<(Library, PathBuf, T), Missing> {
    let majors = part.majors(places.cuda_major);
    let names: Vec<String> =
        majors.iter().map(|major| format!("{}.so.{major}", part.stem())).collect();
    let in_folders = majors.iter().flat_map(|&major| {
        places.folders.iter().flat_map(move |folder| candidates(part, major, folder))
    });
    let by_loader = names.iter().map(PathBuf::from);
    let order: Vec<PathBuf> = if part.system_first() {
        by_loader.chain(in_folders).collect()
    } else {
        in_folders.chain(by_loader).collect()
    };
    let mut rejected = Vec::new();
    for path in order {
        match Library::open(&path).and_then(|library| Ok((accept(&library)?, library))) {
            Ok((functions, library)) => return Ok((library, path, functions)),
            Err(reason) => rejected.push((path, reason)),
        }
    }
    // That the loader has no file of a name is what "not found" says already.
    rejected.retain(|(path, reason)| path.is_absolute() || !reason.contains("No such file"));
    let advice = advice(part, majors[0]);
    Err(Missing { part, names, searched: places.folders.clone(), rejected, advice })
}

fn advice(part: Part, major: u32) -> String {
    match part {
        Part::Driver => "install NVIDIA's driver, and in a container let it in".to_owned(),
        Part::Nvrtc | Part::NvJpeg => {
            format!("pip install \"forebay[cuda{major}]\" brings it")
        }
    }
}

/// Files of one folder that bear the part's name, plain names first.
///
/// Wheels that carry libraries of others rename them: `libnvjpeg.4a0b5c81.so.13`.
fn candidates(part: Part, major: u32, folder: &Path) -> Vec<PathBuf> {
    let end = format!(".so.{major}");
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    let mut found: Vec<PathBuf> = entries
        .filter_map(Result::ok)
        .filter(|entry| {
            let name = entry.file_name();
            let middle = name.to_str().and_then(|name| {
                name.strip_prefix(part.stem()).and_then(|rest| rest.strip_suffix(&end))
            });
            middle.is_some_and(|middle| middle.is_empty() || is_hash(middle))
        })
        .map(|entry| entry.path())
        .collect();
    found.sort_by_key(|path| (path.as_os_str().len(), path.clone()));
    found
}

/// What auditwheel puts between name and suffix.
fn is_hash(middle: &str) -> bool {
    let hash = middle.strip_prefix(['.', '-']).unwrap_or_default();
    hash.len() == 8 && hash.bytes().all(|byte| byte.is_ascii_hexdigit())
}

#[cfg(test)]
mod tests;
