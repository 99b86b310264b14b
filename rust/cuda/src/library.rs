//! Shared libraries opened at run time, and tables of their functions.
//!
//! **Invariants**
//! - A library that was opened stays: CUDA's keep threads and thread-local destructors that do not
//!   survive `dlclose`, so function pointers are valid until the process ends.

use std::ffi::{CStr, OsStr, c_void};
use std::mem::ManuallyDrop;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// An open library.
#[derive(Debug)]
pub(crate) struct Library {
    handle: ManuallyDrop<libloading::Library>,
}

impl Library {
    /// Opens a file, or by a bare name what the system's loader has for it.
    ///
    /// # Errors
    /// The loader's text.
    pub(crate) fn open(name: &Path) -> Result<Self, String> {
        // SAFETY: initialisers run, and those of NVIDIA's libraries have no preconditions; the
        // callers of this crate open nothing but names that such libraries bear.
        let handle = unsafe { libloading::Library::new(name) }.map_err(|error| detail(&error))?;
        Ok(Self { handle: ManuallyDrop::new(handle) })
    }

    /// The function of that name, if the library has it.
    ///
    /// # Safety
    /// - `F` is the function pointer type of that function, as its header declares it.
    pub(crate) unsafe fn function<F: Copy>(&self, name: &str) -> Option<F> {
        const { assert!(size_of::<F>() == size_of::<*const c_void>()) };
        // SAFETY: the caller vouches for the type; the library stays open, so the copy stays valid.
        unsafe { self.handle.get::<F>(name) }.ok().map(|symbol| *symbol)
    }

    /// The file that a function came from, where the loader chose it.
    pub(crate) fn file_of(&self, function: &str) -> Option<PathBuf> {
        // SAFETY: the symbol is only used as an address.
        let address = unsafe { self.function::<*const c_void>(function) }?;
        let mut info = std::mem::MaybeUninit::<libc::Dl_info>::zeroed();
        // SAFETY: `info` is writable; the address need not belong to any library.
        let found = unsafe { libc::dladdr(address, info.as_mut_ptr()) };
        // SAFETY: all zeros is a valid Dl_info, and a successful dladdr filled it.
        let info = unsafe { info.assume_init() };
        if found == 0 || info.dli_fname.is_null() {
            return None;
        }
        // SAFETY: the loader's own text, which lives as long as the library: it stays open.
        let name = unsafe { CStr::from_ptr(info.dli_fname) };
        Some(PathBuf::from(OsStr::from_bytes(name.to_bytes())))
    }
}

/// libloading keeps the loader's text as a source.
fn detail(error: &libloading::Error) -> String {
    std::error::Error::source(error).map_or_else(|| error.to_string(), ToString::to_string)
}

/// Declares a table of C functions, as a header has them, and how it is filled from a library.
///
/// The table is filled at once and only if every function is there, so a call can never meet a
/// missing one. Functions below `optional` are `Option`s.
macro_rules! function_table {
    (
        $(#[$meta:meta])*
        struct $table:ident {
            $( fn $name:ident($($argument:ident: $type:ty),* $(,)?) -> $status:ty; )*
        }
        $( optional { $( fn $maybe:ident($($maybe_argument:ident: $maybe_type:ty),* $(,)?) -> $maybe_status:ty; )* } )?
    ) => {
        $(#[$meta])*
        #[allow(non_snake_case, reason = "the header's names, so that they can be searched for")]
        #[derive(Debug)]
        pub(crate) struct $table {
            $( pub(crate) $name: unsafe extern "C" fn($($type),*) -> $status, )*
            $( $( pub(crate) $maybe: Option<unsafe extern "C" fn($($maybe_type),*) -> $maybe_status>, )* )?
        }

        impl $table {
            /// Fills the table.
            ///
            /// # Errors
            /// What the library lacks.
            ///
            /// # Safety
            /// - Functions that the library has under these names have these types.
            #[allow(non_snake_case, reason = "the header's names, so that they can be searched for")]
            pub(crate) unsafe fn resolve(
                library: &crate::library::Library,
            ) -> Result<Self, String> {
                let mut lacking: Vec<&'static str> = Vec::new();
                // SAFETY: the caller vouches for the types.
                $( let $name = unsafe { library.function(stringify!($name)) };
                if $name.is_none() {
                    lacking.push(stringify!($name));
                } )*
                match ($($name,)*) {
                    ($(Some($name),)*) => Ok(Self {
                        $($name,)*
                        // SAFETY: as above.
                        $($( $maybe: unsafe { library.function(stringify!($maybe)) }, )*)?
                    }),
                    _ => Err(format!("lacks {}", lacking.join(", "))),
                }
            }
        }
    };
}
pub(crate) use function_table;
