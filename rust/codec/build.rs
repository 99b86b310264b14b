//! Compiles the libjpeg shim and its Huffman reader against the headers of turbojpeg-sys's vendored libjpeg-turbo.

use std::path::Path;

#[allow(
    clippy::disallowed_methods,
    reason = "cargo talks to build scripts through the environment"
)]
fn main() {
    let shims = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../cpp/shims");
    println!("cargo::rerun-if-changed={}", shims.display());
    let includes =
        std::env::var("DEP_TURBOJPEG_INCLUDE").expect("turbojpeg-sys says where its headers are");
    let mut build = cc::Build::new();
    for include in includes.split(',') {
        build.flag("-isystem").flag(include);
    }
    build
        .file(shims.join("jpeg_shim.c"))
        .file(shims.join("jpeg_huffman.c"))
        // Per coefficient code: worth optimising in every profile, as libjpeg-turbo itself is.
        .opt_level(3)
        .include(&shims)
        .flag("-fvisibility=hidden")
        .warnings(true)
        .extra_warnings(true)
        .warnings_into_errors(true)
        .std("c11")
        .compile("forebay_jpeg_shim");
}
