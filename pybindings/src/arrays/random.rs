//! The first contents of arrays of random number generators' states.

use pyo3::{prelude::*, types::PyBytes};

/// The bytes of the states of xoroshiro128+ generators ([`weft_runtime::xoroshiro128p_states`]).
#[pyfunction]
pub(crate) fn xoroshiro128p_states(py: Python<'_>, count: usize, seed: u64, start: u64) -> Bound<'_, PyBytes> {
    let bytes = py.detach(|| weft_runtime::xoroshiro128p_states(count, seed, start));
    PyBytes::new(py, &bytes)
}
