//! The rows: one file a module.

mod builtins;
mod cuda;
mod math;

use super::Intrinsic;

/// The tables, in the order of the reference page.
const TABLES: &[&[Intrinsic]] = &[cuda::CUDA, math::MATH, builtins::BUILTINS];

/// Every name that a kernel can call or read.
pub fn rows() -> impl Iterator<Item = &'static Intrinsic> {
    TABLES.iter().copied().flatten()
}
