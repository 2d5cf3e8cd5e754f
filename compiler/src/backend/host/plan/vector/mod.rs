//! Passes that give a few neighboring threads to the vectorizer: strips, transposed accesses, rows of a known length.

pub(crate) mod fixed_rows;
pub(crate) mod strip_mine;
pub(crate) mod transpose;
pub(crate) mod transposed_exprs;
pub(crate) mod transposed_stores;
