//! Compiles the kernels with the host's compiler, through `cpp/kernels/host.h`: once with threads one
//! after the other, and once, where they work together, with threads of the host.

use std::path::Path;

fn main() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let kernels = root.join("../../cpp/kernels");
    println!("cargo::rerun-if-changed={}", kernels.display());
    println!("cargo::rerun-if-changed=src");
    cc::Build::new()
        .cpp(true)
        .std("c++17")
        .files(["src/launch.cpp", "src/threads.cpp"].map(|file| root.join(file)))
        .include(&kernels)
        .opt_level(2)
        // As NVRTC's --fmad=false: no contraction but fmaf's.
        .flag("-ffp-contract=off")
        .warnings(true)
        .extra_warnings(true)
        .warnings_into_errors(true)
        .compile("forebay_host_kernels");
}
