//! Iteration domains: which threads of a row run a segment, and index-set splitting of the thread loop.
//!
//! A *row* is all threads of a block with the same `threadIdx.y` and `threadIdx.z`; the innermost thread loop runs over
//! a row. A *segment* is a parallel region.

pub(crate) mod boundary;
pub(crate) mod conjunction;
pub(crate) mod div_mod;
pub(crate) mod residue;
pub(crate) mod scaled;
pub(crate) mod steady_state;
pub(crate) mod xor_partner;
