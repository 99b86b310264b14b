//! Compiles the C++ half of the cxx bridge into the static library.

fn main() {
    cxx_build::bridge("src/lib.rs")
        .include("../../cpp/include")
        .std("c++17")
        .flag("-fvisibility=hidden")
        .compile("forebay_cxx");
    println!("cargo:rerun-if-changed=../../cpp/include");
    println!("cargo:rerun-if-changed=src/lib.rs");
}
