//! The scratch memory of adjoint kernels: values of loops without a constant bound, which the reverse sweep needs.
//!
//! Each thread has a stack of bytes. The forward sweep of a loop pushes a record of values in each iteration, and the
//! reverse sweep reads and releases them. The byte of a thread's stack at which a value begins, times the number of
//! threads, plus the value's size times the number of the thread, is its address: the threads of a warp access
//! neighboring elements.
//!
//! An element that an array has lost is a value of its load. If the load is in a nested loop, an iteration has any number
//! of these values. Each execution of the load in the forward sweep pushes one after the record. When the reverse sweep
//! executes the iteration again, each execution of the load pops one, in the same order. Such records differ in size, so
//! each begins with the byte at which the one before it begins.
//!
//! A launch of the kernel that counts finds the bytes that a thread needs: of each loop the most that one execution
//! stores. At most one execution of a loop has records at a time.

use super::{
    activity::for_each_write,
    needed::Needed,
    plan::{LoopPlan, Order},
    refusals::not_recomputable,
    tape::{List, Repeat, for_each_loop},
};
use crate::{
    diagnostic::Diagnostic,
    ir::{Function, LocalId},
};

/// The alignment of a loop's records.
pub(super) const ALIGN: u64 = 8;

/// The values that an iteration of a loop stores.
#[derive(Debug, Default)]
pub(super) struct Record {
    /// With the byte of the record at which each begins.
    values: Vec<(LocalId, u64)>,
    bytes: u64,
    /// The values that an iteration pushes after the record.
    pushed: Vec<LocalId>,
    /// The bytes that each of them takes.
    slot: u64,
}

impl Record {
    /// The record of some values: the largest ones first, so that each is aligned.
    pub(super) fn of(function: &Function, values: &[LocalId], pushed: Vec<LocalId>) -> Self {
        let size = |value: LocalId| function.locals[value].ty.scalar().map_or(0, weft_artifact::Scalar::size_bytes);
        let mut sorted = values.to_vec();
        sorted.sort_by_key(|&value| std::cmp::Reverse(size(value)));
        let slot = pushed.iter().map(|&value| size(value)).max().unwrap_or(0);
        // Where the record before it begins.
        let link = if pushed.is_empty() { 0 } else { ALIGN };
        let largest = sorted.first().map_or(1, |&value| size(value)).max(link).max(1);
        let mut record = Self { values: Vec::new(), bytes: link, pushed, slot };
        for value in sorted {
            record.values.push((value, record.bytes));
            record.bytes += size(value);
        }
        record.bytes = record.bytes.next_multiple_of(largest);
        record
    }

    /// The values, with the byte at which each begins.
    pub(super) fn values(&self) -> &[(LocalId, u64)] {
        &self.values
    }

    /// The size of the record.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The values that an iteration pushes after it.
    pub(super) fn pushed(&self) -> &[LocalId] {
        &self.pushed
    }

    /// The bytes that each of them takes.
    pub(super) fn slot(&self) -> u64 {
        self.slot
    }
}

impl LoopPlan {
    /// What an iteration stores in the scratch memory.
    pub(super) fn record(&self) -> Option<&Record> {
        match &self.order {
            Order::Forward => None,
            Order::Backward(restored) => Some(&restored.stored).filter(|record| record.bytes > 0),
        }
    }
}

/// The loops of a list that store records.
pub(super) fn storing<'a>(list: &'a List, plans: &[LoopPlan]) -> Vec<&'a Repeat> {
    let mut found = Vec::new();
    for_each_loop(list, &mut |repeat| {
        if plans[repeat.id].record().is_some() {
            found.push(repeat);
        }
    });
    found
}

/// Refuses trip counts that depend on sums whose rounding depends on the order of the threads: they may differ in the
/// kernel that counts.
pub(super) fn check(function: &Function, list: &List, counted: &Needed) -> Result<(), Diagnostic> {
    let mut found = Ok(());
    for_each_write(list, &mut |write, is_atomic| {
        let is_float = function.exprs[write.value].ty.scalar().is_some_and(weft_artifact::Scalar::is_float);
        if is_atomic && is_float && counted.events.contains(&write.event) {
            let why = "a trip count depends on the sum, whose rounding depends on the order of the threads";
            found = Err(not_recomputable(write.span, why, "do not compute a trip count from it"));
        }
    });
    found
}

/// What the kernel that counts computes: the iterations of the loops that store records, and the loads whose values they
/// push.
pub(super) fn counted(list: &List, plans: &[LoopPlan]) -> Needed {
    let values = storing(list, plans).into_iter().map(|repeat| repeat.count).collect();
    let reached = plans.iter().filter_map(LoopPlan::record).flat_map(|record| record.pushed.iter().copied()).collect();
    Needed { values, reached, ..Needed::default() }
}
