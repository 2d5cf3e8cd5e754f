//! What is known of a module from its IR alone: questions that passes and both back ends ask. Nothing here knows LLVM or a
//! target, and what an analysis does not know it takes for the worst.

mod copied;
mod disjoint;
mod fixed;
mod interval;
mod origins;
mod quiet_turns;
mod ranges;
mod reach;
mod reads;
mod rounds;
mod waiting;
mod walk;
mod warps;

pub(crate) use copied::{Parts, copied};
pub(crate) use disjoint::{gains_by_accumulation, gains_by_disjoint, never_written, only_accumulated};
pub(crate) use fixed::Fixed;
pub(crate) use interval::Interval;
pub(crate) use origins::{Origins, Owner, base, only_read};
pub(crate) use ranges::Ranges;
pub(crate) use reach::{Reach, Reaches};
pub(crate) use reads::same;
pub(crate) use waiting::Waiting;
pub(crate) use walk::{any_expr, escapes, for_each_mention, for_each_read};
pub(crate) use warps::gains_by_warps;
