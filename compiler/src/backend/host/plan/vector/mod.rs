//! Passes that shape thread loops for LLVM's vectorizer: strip mining, register transposes, narrow divisions.

pub(crate) mod narrow_divisions;
pub(crate) mod strip_mine;
pub(crate) mod transpose;
