//! Analyses of a module's IR, which passes and both back ends use. They do not depend on LLVM or a target, and are
//! conservative: an analysis assumes the worst of what it does not know.

mod accesses;
pub(crate) mod affine;
mod copied;
mod disjoint;
mod interval;
mod ir_queries;
mod no_progress;
mod origins;
mod pointed_arrays;
mod pointer_extents;
mod pointers;
mod ranges;
mod reads;
mod rematerializable;
mod waiting_loops;
mod waiting_recursion;
mod warps;

pub(crate) use accesses::{Access, for_each_access};
pub(crate) use copied::{ValueInputs, copied};
pub(crate) use disjoint::{gains_by_accumulation, gains_by_disjoint, never_written, only_accumulated};
pub(crate) use interval::Interval;
pub(crate) use ir_queries::{any_expr, assigned_in, assigns, differs_by, escapes, for_each_mention, for_each_read};
pub(crate) use origins::{Origins, Owner, base, only_read};
use pointed_arrays::PointedArray;
pub(crate) use pointer_extents::{PointerExtent, PointerExtents};
pub(crate) use ranges::{Ranges, argument_range};
pub(crate) use reads::same;
pub(crate) use rematerializable::{Dependence, Rematerializable};
pub(crate) use waiting_loops::WaitAnalysis;
pub(crate) use warps::gains_by_warps;
