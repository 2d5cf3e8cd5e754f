//! Iteration domains: which threads of a row run a segment, and pieces of a row with simpler code.

pub(crate) mod boundary;
pub(crate) mod conjunction;
pub(crate) mod div_mod;
pub(crate) mod guards;
pub(crate) mod interior;
pub(crate) mod residue;
pub(crate) mod scaled;
pub(crate) mod xor_partner;
