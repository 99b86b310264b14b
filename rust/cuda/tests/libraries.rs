//! NVRTC and nvJPEG as they are installed: both load and answer without a GPU.

mod common;

use common::{or_skip, places};
use forebay_core::{ErrorKind, HasKind};
use forebay_cuda::Error;
use forebay_cuda::cache::{Cache, Key, Origin};
use forebay_cuda::driver::ComputeCapability;
use forebay_cuda::find::Places;
use forebay_cuda::nvjpeg::NvJpeg;
use forebay_cuda::nvrtc::{Nvrtc, Program, Source};
use forebay_cuda::pack::{COMPILE_OPTIONS, Kernel, SOURCES};

const HEADER: Source<'static> =
    Source { name: "forebay/twice.cuh", text: "__device__ int twice(int x) { return 2 * x; }" };
const KERNEL: Source<'static> = Source {
    name: "double.cu",
    text: "#include \"forebay/twice.cuh\"\n\
           extern \"C\" __global__ void double_all(int* data, int count) {\n\
             const int i = blockIdx.x * blockDim.x + threadIdx.x;\n\
             if (i < count) data[i] = twice(data[i]);\n\
           }",
};

fn program() -> Program<'static> {
    Program { source: KERNEL, headers: &[HEADER], options: &["--std=c++17"] }
}

#[test]
fn nvjpeg_resolves_every_function_and_tells_its_version() {
    let Some(nvjpeg) = or_skip(NvJpeg::load(&places())) else { return };
    assert!(nvjpeg.found().path.is_file(), "{:?}", nvjpeg.found());
    assert!([12, 13].contains(&nvjpeg.found().version.major), "{:?}", nvjpeg.found());
}

#[test]
fn nvrtc_compiles_for_hopper_with_headers_in_memory() {
    let Some(nvrtc) = or_skip(Nvrtc::load(&places())) else { return };
    assert!([12, 13].contains(&nvrtc.found().version.major), "{:?}", nvrtc.found());
    let hopper = ComputeCapability { major: 9, minor: 0 };
    let architecture = nvrtc.architecture(hopper).unwrap();
    assert_eq!(architecture, "sm_90");
    let cubin = nvrtc.compile(&program(), &architecture).unwrap();
    assert!(cubin.bytes().starts_with(b"\x7fELF"));
    let name = b"double_all";
    assert!(cubin.bytes().windows(name.len()).any(|bytes| bytes == name), "the kernel's name");
}

/// A GPU compiles them at first use: what it would refuse is seen where none is.
#[test]
fn nvrtc_compiles_the_renderers_kernels() {
    let Some(nvrtc) = or_skip(Nvrtc::load(&places())) else { return };
    let sources: Vec<Source<'_>> =
        SOURCES.iter().map(|&(name, text)| Source { name, text }).collect();
    let (source, headers) = sources.split_first().unwrap();
    let program = Program { source: *source, headers, options: COMPILE_OPTIONS };
    // The oldest one that each compiler knows, which has the fewest instructions, and Hopper.
    let all = [(5, 0), (6, 0), (7, 0), (7, 5), (9, 0)];
    let known = all
        .into_iter()
        .filter_map(|(major, minor)| nvrtc.architecture(ComputeCapability { major, minor }).ok());
    let known: Vec<String> = known.collect();
    for architecture in [known.first().unwrap(), known.last().unwrap()] {
        let cubin = nvrtc.compile(&program, architecture).unwrap();
        for kernel in [Kernel::ResampleAcross, Kernel::ResampleDown] {
            let name = kernel.name().as_bytes();
            assert!(cubin.bytes().windows(name.len()).any(|bytes| bytes == name), "{kernel:?}");
        }
    }
}

#[test]
fn what_does_not_compile_comes_with_the_compilers_words() {
    let Some(nvrtc) = or_skip(Nvrtc::load(&places())) else { return };
    let lost = Program { headers: &[], ..program() };
    let error = nvrtc.compile(&lost, "sm_90").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Internal);
    let text = error.to_string();
    assert!(text.starts_with("double.cu does not compile for sm_90: "), "{text}");
    assert!(text.contains("forebay/twice.cuh"), "{text}");
    let option = Program { options: &["--no-such-option"], ..program() };
    let error = nvrtc.compile(&option, "sm_90").unwrap_err();
    assert!(matches!(&error, Error::Nvrtc { call: "nvrtcCompileProgram", .. }), "{error}");
    let zero = Program { source: Source { name: "a.cu", text: "a\0b" }, ..program() };
    assert_eq!(nvrtc.compile(&zero, "sm_90").unwrap_err().kind(), ErrorKind::Invalid);
}

#[test]
fn a_device_of_an_unknown_generation_is_refused_with_advice() {
    let Some(nvrtc) = or_skip(Nvrtc::load(&places())) else { return };
    let error = nvrtc.architecture(ComputeCapability { major: 99, minor: 0 }).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    assert!(error.to_string().contains("sm_990; install a newer NVRTC"), "{error}");
}

#[test]
fn the_second_run_compiles_nothing() {
    let Some(nvrtc) = or_skip(Nvrtc::load(&places())) else { return };
    let folder = tempfile::tempdir().unwrap();
    let cache = Cache::new(folder.path());
    let key = Key::new(&program(), "sm_90", nvrtc.found().version);
    let compile = || nvrtc.compile(&program(), "sm_90");
    let (first, origin) = cache.get_or_compile(&key, compile).unwrap();
    assert!(matches!(origin, Origin::Compiler), "{origin:?}");
    let (second, origin) = cache.get_or_compile(&key, || panic!("compiled again")).unwrap();
    assert!(matches!(origin, Origin::Cache), "{origin:?}");
    assert_eq!(first, second);
}

#[test]
fn a_machine_without_a_driver_gets_an_error_that_says_so() {
    match forebay_cuda::driver::Driver::load(&Places::default()) {
        Ok(driver) => assert!(driver.found().version.major >= 12, "{:?}", driver.found()),
        Err(error) => {
            assert_eq!(error.kind(), ErrorKind::Unsupported);
            let text = error.to_string();
            assert!(text.starts_with("NVIDIA's driver (libcuda.so.1) was not found"), "{text}");
        }
    }
}
