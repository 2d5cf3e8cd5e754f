//! Parallel regions: the parts of a body between barriers, and the values that are live across them.

pub(crate) mod context;
pub(crate) mod dead;
pub(crate) mod form;
