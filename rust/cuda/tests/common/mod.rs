//! Where the tests find CUDA's libraries, and what happens when they do not.

#![allow(dead_code, reason = "each test binary uses a part")]

use forebay_cuda::find::Places;
use std::path::PathBuf;

/// Folders with CUDA's libraries, separated by colons, such as torch's `nvidia/cu13/lib`.
const FOLDERS: &str = "FOREBAY_CUDA_FOLDERS";
/// Set on machines with a GPU, where a test that skips has failed.
const REQUIRED: &str = "FOREBAY_REQUIRE_GPU";

#[allow(clippy::disallowed_methods, reason = "tests are told by the environment what is here")]
fn environment(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

pub(crate) fn places() -> Places {
    let folders = environment(FOLDERS).unwrap_or_default();
    let folders = folders.split(':').filter(|folder| !folder.is_empty()).map(PathBuf::from);
    Places { folders: folders.collect(), cuda_major: None }
}

/// What was found, or None after saying that the test skips, and why.
#[allow(clippy::print_stderr, reason = "a test that skips says so")]
pub(crate) fn or_skip<T, E: std::fmt::Display>(found: Result<T, E>) -> Option<T> {
    match found {
        Ok(found) => Some(found),
        Err(error) => {
            assert!(environment(REQUIRED).is_none(), "{REQUIRED} is set, but {error}");
            eprintln!("skipped: {error} (folders to search: {FOLDERS})");
            None
        }
    }
}
