//! The one way out of Rust: every function of the bridge is one `guard(|| ...)`.
//!
//! cxx aborts on a panic, even in functions that return `Result`; here a panic becomes an error of
//! kind Internal. The kind travels as a letter before the message.

use forebay_core::{ErrorKind, HasKind};
use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// What crosses: `"V:message"`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Error {
    kind: ErrorKind,
    message: String,
}

impl Error {
    pub(crate) fn new(kind: ErrorKind, message: impl std::fmt::Display) -> Self {
        // C++ reads the text up to the first NUL; a path that somebody gave may hold one.
        Self { kind, message: message.to_string().replace('\0', "\\0") }
    }

    /// The same error, saying what it is about.
    pub(crate) fn about(self, what: &str) -> Self {
        Self { message: format!("{what}: {}", self.message), ..self }
    }
}

impl std::fmt::Display for Error {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}", self.kind.letter(), self.message)
    }
}

impl<E: HasKind> From<E> for Error {
    fn from(error: E) -> Self {
        Self::new(error.kind(), error)
    }
}

/// Runs `f`; a panic is an error like any other.
pub(crate) fn guard<T>(f: impl FnOnce() -> Result<T, Error>) -> Result<T, Error> {
    catch_unwind(AssertUnwindSafe(f)).unwrap_or_else(|payload| {
        let text = panic_text(payload.as_ref());
        let message = format!("internal error: {text}; please report this");
        Err(Error::new(ErrorKind::Internal, message))
    })
}

fn panic_text(payload: &(dyn Any + Send)) -> &str {
    let text = payload.downcast_ref::<&str>().copied();
    text.or_else(|| payload.downcast_ref::<String>().map(String::as_str)).unwrap_or("panic")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn panics_become_internal_errors() {
        let error = guard::<()>(|| panic!("lost {}", 3)).unwrap_err();
        assert_eq!(error.to_string(), "X:internal error: lost 3; please report this");
    }

    #[test]
    fn nothing_is_cut_off_at_a_nul() {
        let error = Error::new(ErrorKind::Io, "a\0b: not found");
        assert_eq!(error.to_string(), r"F:a\0b: not found");
    }

    #[test]
    fn errors_keep_kind_and_text() {
        let error = Error::new(ErrorKind::Range, "index 9 is past the end");
        assert_eq!(guard::<()>(|| Err(error.clone())), Err(error));
    }
}
