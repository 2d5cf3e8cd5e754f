//! The scratch memory of adjoint kernels: values of loops without a constant bound, which the reverse sweep needs.
//!
//! Each thread has a stack of bytes. The forward sweep of a loop pushes a record of values in each iteration, and the
//! reverse sweep reads and releases them. The byte of a thread's stack at which a value begins, times the number of
//! threads, plus the value's size times the number of the thread, is its address: the threads of a warp access
//! neighboring elements.
//!
//! A launch of the kernel that counts finds the bytes that a thread needs: of each loop the most that one execution
//! stores. At most one execution of a loop has records at a time.

use super::{
    activity::for_each_write,
    plan::{LoopPlan, Needed, Order},
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
}

impl Record {
    /// The record of some values: the largest ones first, so that each is aligned.
    pub(super) fn of(function: &Function, values: &[LocalId]) -> Self {
        let size = |value: LocalId| function.locals[value].ty.scalar().map_or(0, weft_artifact::Scalar::size_bytes);
        let mut sorted = values.to_vec();
        sorted.sort_by_key(|&value| std::cmp::Reverse(size(value)));
        let mut record = Self::default();
        for value in sorted {
            record.values.push((value, record.bytes));
            record.bytes += size(value);
        }
        let largest = record.values.first().map_or(1, |&(value, _)| size(value));
        record.bytes = record.bytes.next_multiple_of(largest.max(1));
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
}

impl LoopPlan {
    /// The bytes that an iteration stores in the scratch memory.
    pub(super) fn record_bytes(&self) -> u64 {
        match &self.order {
            Order::Forward => 0,
            Order::Backward(restored) => restored.stored.bytes(),
        }
    }
}

/// The loops of a list that store records, with the bytes of a record.
pub(super) fn storing<'a>(list: &'a List, plans: &[LoopPlan]) -> Vec<(&'a Repeat, u64)> {
    let mut found = Vec::new();
    for_each_loop(list, &mut |repeat| {
        let bytes = plans[repeat.id].record_bytes();
        if bytes > 0 {
            found.push((repeat, bytes));
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

/// What the kernel that counts computes: the iterations of the loops that store records.
pub(super) fn counted(list: &List, plans: &[LoopPlan]) -> Needed {
    let loops = storing(list, plans).into_iter();
    Needed { values: loops.map(|(repeat, _)| repeat.count).collect(), ..Needed::default() }
}
