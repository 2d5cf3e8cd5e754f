//! The rows: one file per module.

mod atomic;
mod builtins;
mod bytes;
mod cmath;
mod coop;
mod cuda;
mod groups;
mod half;
mod intrinsics;
mod libdevice;
mod math;
mod matrix;
mod numpy;
mod operator;
mod random;
mod reductions;
mod tables;
mod ufunc;
mod warp;

use super::Intrinsic;

/// The tables, in the order of the reference page.
const TABLES: &[&[Intrinsic]] = &[
    cuda::CUDA,
    atomic::ATOMIC,
    warp::WARP,
    groups::GROUPS,
    coop::COOP,
    matrix::MATRIX,
    intrinsics::INTRINSICS,
    libdevice::LIBDEVICE,
    half::FP16,
    half::BF16,
    bytes::FP8,
    random::RANDOM,
    math::MATH,
    cmath::CMATH,
    builtins::BUILTINS,
    operator::OPERATOR,
    ufunc::UFUNCS,
    numpy::NUMPY,
    reductions::REDUCTIONS,
];

/// Every name that a kernel can call or read.
pub fn rows() -> impl Iterator<Item = &'static Intrinsic> {
    TABLES.iter().copied().flatten()
}
