//! Passes that shape thread loops for LLVM's vectorizer: strip mining, register transposes, rows of a known length,
//! narrow divisions.

pub(crate) mod fixed_rows;
pub(crate) mod narrow_divisions;
pub(crate) mod strip_mine;
pub(crate) mod transpose;
pub(crate) mod transposed_exprs;
pub(crate) mod transposed_stores;
