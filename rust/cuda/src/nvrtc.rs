//! NVRTC: compiles kernels for the device that is there.

use crate::Error;
use crate::driver::{ComputeCapability, Cubin};
use crate::find::{self, Found, Part, Places, Version};
use crate::library::function_table;
use std::ffi::{CStr, CString, c_char, c_int, c_uint, c_void};
use std::sync::OnceLock;

/// An nvrtcProgram.
type Raw = *mut c_void;
/// An nvrtcResult as a plain number: newer libraries return codes that older headers lack.
type Code = c_uint;

const SUCCESS: Code = 0;
const INVALID_OPTION: Code = 5;
const COMPILATION: Code = 6;

/// Not known to compilers of the first versions 12; the machine code is the same without.
const ON_ALL_CORES: &str = "--split-compile=0";

function_table! {
    /// What this crate calls, as nvrtc.h of CUDA 12 and 13 declares it.
    struct Functions {
        fn nvrtcVersion(major: *mut c_int, minor: *mut c_int) -> Code;
        fn nvrtcGetErrorString(code: Code) -> *const c_char;
        fn nvrtcGetNumSupportedArchs(count: *mut c_int) -> Code;
        fn nvrtcGetSupportedArchs(numbers: *mut c_int) -> Code;
        fn nvrtcCreateProgram(
            program: *mut Raw,
            source: *const c_char,
            name: *const c_char,
            header_count: c_int,
            headers: *const *const c_char,
            header_names: *const *const c_char,
        ) -> Code;
        fn nvrtcDestroyProgram(program: *mut Raw) -> Code;
        fn nvrtcCompileProgram(program: Raw, count: c_int, options: *const *const c_char) -> Code;
        fn nvrtcGetProgramLogSize(program: Raw, size: *mut usize) -> Code;
        fn nvrtcGetProgramLog(program: Raw, log: *mut c_char) -> Code;
        fn nvrtcGetCUBINSize(program: Raw, size: *mut usize) -> Code;
        fn nvrtcGetCUBIN(program: Raw, code: *mut c_char) -> Code;
    }
}

/// The compiler, once it is loaded.
#[derive(Debug)]
pub struct Nvrtc {
    functions: Functions,
    found: Found,
}

/// A source file or a header, under the name that includes and messages call it.
#[derive(Debug, Clone, Copy)]
pub struct Source<'a> {
    /// `resize.cu`.
    pub name: &'a str,
    /// Its content.
    pub text: &'a str,
}

/// What is compiled, and how. All of it is in memory: no file is read.
#[derive(Debug, Clone, Copy)]
pub struct Program<'a> {
    /// What is compiled.
    pub source: Source<'a>,
    /// What it may include.
    pub headers: &'a [Source<'a>],
    /// Options of the compiler, but for the architecture.
    pub options: &'a [&'a str],
}

static NVRTC: OnceLock<Nvrtc> = OnceLock::new();

impl Nvrtc {
    /// Loads the compiler, once in a process; it stays loaded. Needs neither driver nor device.
    ///
    /// # Errors
    /// [`Error::Missing`].
    pub fn load(places: &Places) -> Result<&'static Self, Error> {
        if let Some(nvrtc) = NVRTC.get() {
            return Ok(nvrtc);
        }
        let (library, path, functions) = find::search(Part::Nvrtc, places, |library| {
            // SAFETY: they are declared above as nvrtc.h does, and `find` opens nothing but libnvrtc.
            unsafe { Functions::resolve(library) }
        })?;
        let path = library.file_of("nvrtcVersion").unwrap_or(path);
        let mut nvrtc = Self { functions, found: Found { path, version: Version::default() } };
        nvrtc.found.version = nvrtc.version()?;
        Ok(NVRTC.get_or_init(|| nvrtc))
    }

    /// Where it lies, and its version, which is its toolkit's.
    pub fn found(&self) -> &Found {
        &self.found
    }

    /// The architecture to compile for, so that the code runs on a device: its own, or an older
    /// one of the same generation where the compiler is older than the device.
    ///
    /// # Errors
    /// [`Error::Architecture`] when the compiler knows none of that generation.
    pub fn architecture(&self, device: ComputeCapability) -> Result<String, Error> {
        let mut count = 0;
        // SAFETY: the count lives for the call.
        let code = unsafe { (self.functions.nvrtcGetNumSupportedArchs)(&raw mut count) };
        self.check("nvrtcGetNumSupportedArchs", code)?;
        let mut known = vec![0; usize::try_from(count).unwrap_or(0)];
        // SAFETY: there is room for as many as NVRTC said.
        let code = unsafe { (self.functions.nvrtcGetSupportedArchs)(known.as_mut_ptr()) };
        self.check("nvrtcGetSupportedArchs", code)?;
        let known: Vec<u32> = known.into_iter().filter_map(|n| u32::try_from(n).ok()).collect();
        best_architecture(device, &known).map_err(|advice| Error::Architecture {
            architecture: name_of(device.major * 10 + device.minor),
            version: self.found.version.to_string(),
            known: known.iter().map(|&n| name_of(n)).collect::<Vec<_>>().join(", "),
            advice,
        })
    }

    /// Compiles to machine code, on all cores where the compiler can. Takes about a second; several
    /// threads may call it.
    ///
    /// # Errors
    /// [`Error::Compile`] with the compiler's log, or [`Error::Nvrtc`].
    pub fn compile(&self, program: &Program<'_>, architecture: &str) -> Result<Cubin, Error> {
        let unit = Unit::new(self, program)?;
        let architecture_option = format!("--gpu-architecture={architecture}");
        let options = [&[architecture_option.as_str()], program.options].concat();
        let mut code = self.run(&unit, &[options.as_slice(), &[ON_ALL_CORES]].concat())?;
        if code == INVALID_OPTION {
            code = self.run(&unit, &options)?;
        }
        if code == COMPILATION {
            return Err(Error::Compile {
                name: program.source.name.to_owned(),
                architecture: architecture.to_owned(),
                log: unit.log()?,
            });
        }
        self.check("nvrtcCompileProgram", code)?;
        unit.cubin()
    }

    fn run(&self, unit: &Unit<'_>, options: &[&str]) -> Result<Code, Error> {
        let options: Vec<_> =
            options.iter().map(|option| text(option)).collect::<Result<_, _>>()?;
        let pointers: Vec<*const c_char> = options.iter().map(|option| option.as_ptr()).collect();
        let count = length(&pointers)?;
        // SAFETY: the program lives in `unit`; the options live for the call.
        Ok(unsafe { (self.functions.nvrtcCompileProgram)(unit.raw, count, pointers.as_ptr()) })
    }

    fn version(&self) -> Result<Version, Error> {
        let (mut major, mut minor) = (0, 0);
        // SAFETY: both numbers live for the call.
        let code = unsafe { (self.functions.nvrtcVersion)(&raw mut major, &raw mut minor) };
        self.check("nvrtcVersion", code)?;
        let number = |n| u32::try_from(n).unwrap_or(0);
        Ok(Version { major: number(major), minor: number(minor) })
    }

    fn check(&self, call: &'static str, code: Code) -> Result<(), Error> {
        if code == SUCCESS {
            return Ok(());
        }
        // SAFETY: takes any code.
        let name = unsafe { (self.functions.nvrtcGetErrorString)(code) };
        if name.is_null() {
            return Err(Error::Nvrtc { call, name: format!("error {code}") });
        }
        // SAFETY: the library's own constant text.
        let name = unsafe { CStr::from_ptr(name) }.to_string_lossy().into_owned();
        Err(Error::Nvrtc { call, name })
    }
}

/// A program inside NVRTC.
struct Unit<'n> {
    nvrtc: &'n Nvrtc,
    raw: Raw,
}

impl<'n> Unit<'n> {
    fn new(nvrtc: &'n Nvrtc, program: &Program<'_>) -> Result<Self, Error> {
        let (source, name) = (text(program.source.text)?, text(program.source.name)?);
        let mut headers = Vec::new();
        let mut names = Vec::new();
        for header in program.headers {
            headers.push(text(header.text)?);
            names.push(text(header.name)?);
        }
        let header_pointers: Vec<_> = headers.iter().map(|text| text.as_ptr()).collect();
        let name_pointers: Vec<_> = names.iter().map(|text| text.as_ptr()).collect();
        let mut raw = std::ptr::null_mut();
        // SAFETY: NVRTC copies all texts before it returns, and they live until then; both lists have
        // the length that is given.
        let code = unsafe {
            (nvrtc.functions.nvrtcCreateProgram)(
                &raw mut raw,
                source.as_ptr(),
                name.as_ptr(),
                length(&header_pointers)?,
                header_pointers.as_ptr(),
                name_pointers.as_ptr(),
            )
        };
        nvrtc.check("nvrtcCreateProgram", code)?;
        Ok(Self { nvrtc, raw })
    }

    fn log(&self) -> Result<String, Error> {
        let functions = &self.nvrtc.functions;
        let log = self.read(
            ("nvrtcGetProgramLogSize", functions.nvrtcGetProgramLogSize),
            ("nvrtcGetProgramLog", functions.nvrtcGetProgramLog),
        )?;
        Ok(String::from_utf8_lossy(&log).trim_end_matches('\0').trim_end().to_owned())
    }

    fn cubin(&self) -> Result<Cubin, Error> {
        let functions = &self.nvrtc.functions;
        let code = self.read(
            ("nvrtcGetCUBINSize", functions.nvrtcGetCUBINSize),
            ("nvrtcGetCUBIN", functions.nvrtcGetCUBIN),
        )?;
        Ok(Cubin::new(code))
    }

    /// Reads what NVRTC hands out in two calls: its size, then its bytes.
    fn read(
        &self,
        size: (&'static str, unsafe extern "C" fn(Raw, *mut usize) -> Code),
        bytes: (&'static str, unsafe extern "C" fn(Raw, *mut c_char) -> Code),
    ) -> Result<Vec<u8>, Error> {
        let mut len = 0;
        // SAFETY: the program lives in `self`, the number for the call.
        self.nvrtc.check(size.0, unsafe { size.1(self.raw, &raw mut len) })?;
        let mut buffer = vec![0u8; len];
        // SAFETY: there is room for as many bytes as NVRTC said.
        self.nvrtc.check(bytes.0, unsafe { bytes.1(self.raw, buffer.as_mut_ptr().cast()) })?;
        Ok(buffer)
    }
}

impl Drop for Unit<'_> {
    fn drop(&mut self) {
        // SAFETY: `new` created it, and nobody holds it any more.
        unsafe { (self.nvrtc.functions.nvrtcDestroyProgram)(&raw mut self.raw) };
    }
}

fn text(text: &str) -> Result<CString, Error> {
    CString::new(text).map_err(|_| Error::Invalid {
        what: format!("a source or option holds a zero byte: {:?}", text.get(..40)),
    })
}

fn length<T>(items: &[T]) -> Result<c_int, Error> {
    c_int::try_from(items.len())
        .map_err(|_| Error::Invalid { what: format!("{} headers or options", items.len()) })
}

/// What NVRTC calls an architecture: 90 is `sm_90`.
fn name_of(number: u32) -> String {
    format!("sm_{number}")
}

/// Machine code runs on devices of its own generation whose minor number is not less.
fn best_architecture(device: ComputeCapability, known: &[u32]) -> Result<String, &'static str> {
    let runs = |number: &u32| number / 10 == device.major && number % 10 <= device.minor;
    match known.iter().copied().filter(runs).max() {
        Some(number) => Ok(name_of(number)),
        None if known.iter().all(|number| number / 10 < device.major) => {
            Err("install a newer NVRTC")
        }
        None => Err("this device needs an older NVRTC, which torch for CUDA 12 brings"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_architecture_is_the_devices_or_an_older_one_of_its_generation() {
        let known = [75, 80, 86, 87, 89, 90, 100, 103, 120];
        let best = |major, minor| best_architecture(ComputeCapability { major, minor }, &known);
        assert_eq!(best(9, 0).as_deref(), Ok("sm_90"));
        assert_eq!(best(8, 9).as_deref(), Ok("sm_89"));
        assert_eq!(best(8, 8).as_deref(), Ok("sm_87"));
        assert_eq!(best(10, 1).as_deref(), Ok("sm_100"));
        assert_eq!(best(12, 1).as_deref(), Ok("sm_120"));
        assert!(best(7, 0).unwrap_err().contains("older NVRTC"));
        assert!(best(13, 0).unwrap_err().contains("newer NVRTC"));
    }
}
