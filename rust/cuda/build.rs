//! Satisfies nvjpeg-sys's wish for a libnvjpeg at link time with an empty archive: only that
//! crate's types are used, the functions are found at run time.

use std::path::Path;

#[allow(
    clippy::disallowed_methods,
    reason = "cargo talks to build scripts through the environment"
)]
fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let out = std::env::var("OUT_DIR").expect("cargo sets OUT_DIR");
    let archive = Path::new(&out).join("libnvjpeg.a");
    std::fs::write(&archive, b"!<arch>\n").expect("OUT_DIR is writable");
    println!("cargo::rustc-link-search=native={out}");
}
