//! The state of the analysis of one loop with strided accesses.

use std::collections::{BTreeMap, BTreeSet};

use crate::{
    backend::host::plan::plan_ir::{LaneTripCounts, TransposedLoad, TransposedStore, guards::Peeler},
    ir::{ExprId, LocalId},
};

/// The values of an iteration's locals, in terms of the counter and of loop-invariant values; `None` if a value is
/// unknown.
pub(crate) type Known = BTreeMap<LocalId, Option<ExprId>>;

/// The analysis of one loop with strided accesses.
pub(crate) struct Transposition<'a, 'b> {
    pub peeler: &'a mut Peeler<'b>,
    pub counter: LocalId,
    /// Lanes have different trip counts.
    pub lane_trip_counts: Option<LaneTripCounts>,
    /// The number of branches around the current statement, except the test whether a lane has the iteration.
    pub branches: usize,
    /// Locals that an iteration assigns.
    pub assigned: BTreeSet<LocalId>,
    /// Locals that threads load from their contexts when an iteration begins.
    pub fetched: BTreeSet<LocalId>,
    /// An iteration stores something.
    pub stores: bool,
    /// An iteration has a contiguous load, or divides integers: inactive lanes must not execute it.
    pub touches: bool,
    pub loads: Vec<TransposedLoad>,
    pub written: Written,
    /// For each early load: the list of statements that contains it.
    pub lists: Vec<usize>,
    /// The number of lists before the current statement, and those around the current statement.
    pub n_lists: usize,
    pub around: Vec<usize>,
    /// Conditions that hold unless the counter is one of the values in `partial`.
    pub unconditional_tests: BTreeSet<ExprId>,
    pub partial: Vec<ExprId>,
    pub uniform_loads: Vec<(ExprId, ExprId)>,
}

/// The stores of a loop, and the loads that they may alias.
#[derive(Debug, Default)]
pub(crate) struct Written {
    /// Stores along rows.
    pub rows: Vec<TransposedStore>,
    /// By the pointer of such a store: the number of the store, and the pointer that replaces it in
    /// `TransposedRows::unconditional`.
    pub copies: BTreeMap<ExprId, (usize, ExprId)>,
    /// Early loads from memory that may be written: the number of the load, and the number of stores along rows that
    /// precede it in an iteration.
    pub unsure: Vec<(usize, usize)>,
    /// The loop has a store that is not along rows.
    pub elsewhere: bool,
    /// The loop has a load from memory that may be written, and this load is not early.
    pub reads: bool,
}

impl Written {
    pub(crate) fn copy_of(&self, pointer: ExprId) -> Option<ExprId> {
        self.copies.get(&pointer).map(|(_, copy)| *copy)
    }
}
