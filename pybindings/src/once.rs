//! Values that are created on first use, by a thread that holds the GIL.
//!
//! pyo3's own cells release the GIL while a value is created, and other threads wait for it: the child of a fork could
//! then wait forever. Here no thread waits. Two threads may create a value at once, and the first one is used.

use std::sync::OnceLock;

use pyo3::{Py, Python};

/// Such a value.
pub(crate) struct Once<T>(OnceLock<T>);

impl<T> Once<T> {
    /// A value that is not made yet.
    pub(crate) const fn new() -> Self {
        Self(OnceLock::new())
    }

    /// The value, if it is made.
    pub(crate) fn get(&self) -> Option<&T> {
        self.0.get()
    }

    /// The value.
    ///
    /// # Errors
    ///
    /// The value cannot be created; the next call tries again.
    pub(crate) fn get_or_make<E>(&self, make: impl FnOnce() -> Result<T, E>) -> Result<&T, E> {
        if let Some(value) = self.0.get() {
            return Ok(value);
        }
        let value = make()?;
        Ok(self.0.get_or_init(|| value))
    }
}

impl<T> Once<Py<T>> {
    /// A Python object whose creation cannot fail.
    pub(crate) fn object<'py>(&self, py: Python<'py>, make: impl FnOnce() -> Py<T>) -> &pyo3::Bound<'py, T> {
        match self.get_or_make(|| Ok::<_, std::convert::Infallible>(make())) {
            Ok(object) => object.bind(py),
            Err(never) => match never {},
        }
    }
}

/// A text of Python's that is made once.
macro_rules! intern {
    ($py:expr, $text:expr $(,)?) => {{
        static TEXT: $crate::once::Once<pyo3::Py<pyo3::types::PyString>> = $crate::once::Once::new();
        let py: pyo3::Python<'_> = $py;
        TEXT.object(py, || pyo3::types::PyString::intern(py, $text).unbind())
    }};
}
