//! Iteration domains: which threads of a row run a segment, and index-set splitting of the thread loop.
//!
//! A *row* is all threads of a block with the same `threadIdx.y` and `threadIdx.z`; the innermost thread loop runs over
//! a row. A *segment* is a parallel region.
//!
//! A segment's guard bounds the loop; a [`Split`](crate::backend::host::plan::plan_ir::Split) divides its threads among
//! pieces, each with a copy of the body. The passes of this folder are tried in the order of the table; the first that
//! applies splits the segment, and the others leave it.

pub(crate) mod boundary;
pub(crate) mod conjunction;
pub(crate) mod div_mod;
pub(crate) mod residue;
pub(crate) mod scaled;
pub(crate) mod steady_state;
pub(crate) mod xor_partner;
