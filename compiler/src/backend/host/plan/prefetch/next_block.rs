//! Prefetches of the memory that the next block along `x` accesses, emitted while the present block runs.
//!
//! ```text
//! tile[ty, tx] = a[y, x]                    tile[ty, tx] = a[y, x]
//! syncthreads(); …                          prefetch a[y, x + blockDim.x], one per cache line
//!                                           syncthreads(); …
//! ```
//!
//! It is legal because a prefetch does not fault, even past the end of an array. The values that the address reads are
//! rematerialized for the next block, so they must be rematerializable or uniform, and must neither load nor divide by
//! a value that may be zero.
//!
//! It pays in blocks with barriers: these wait for their loads, compute in shared memory, and wait for their stores.
//! The hardware prefetcher sees a few cache lines at a time, and starts again with each block.

use crate::{
    analysis::{
        affine::{ByStructure, Precision},
        for_each_read,
    },
    backend::host::plan::{
        analysis::{fixed_rows::Rows, strides::Form},
        plan_ir::{Plan, Runs, Segment},
    },
    ir::{
        Class, ExprId, ExprKind, Function, Leaf, LocalId, Space, SpecialRegister, Stmt, StmtKind, Type, for_each_expr,
        for_each_expr_of_stmt,
    },
};

/// The maximum number of addresses of a segment.
const MAX_ADDRESSES: usize = 4;

/// The maximum number of locals that one address depends on.
const MAX_LOCALS: usize = 32;

/// Addresses at most this many elements away from each other share one prefetch.
const MAX_DISTANCE: u128 = 8;

/// An address with unit stride along `threadIdx.x` that depends on `blockIdx.x`.
#[derive(Debug)]
pub(crate) struct Stream {
    /// The address of a thread's element.
    pub pointer: ExprId,
    /// The size of an element in bytes.
    pub size: u64,
    /// Rematerializable locals that the address reads. They are computed first for the next block, in this order.
    pub before: Vec<LocalId>,
}

/// The addresses that a segment's body loads from and stores to outside of branches and that can be prefetched for the
/// next block. Segments in loops have none: the following iterations would evict the lines before the next block
/// begins.
pub(crate) fn streams(plan: &Plan, segment: &Segment, body: &[Stmt]) -> Vec<Stream> {
    // A segment that is a function of its own has only the values that it mentions.
    let is_apart = plan.outlines();
    if is_apart || segment.repeats || segment.shape.is_some() || segment.runs != Runs::EachThread {
        return Vec::new();
    }
    let function = &plan.module.functions[plan.kernel];
    let rows = Rows { plan, function, width: 0 };
    let mut streams: Vec<Stream> = Vec::new();
    let mut note = |pointer: ExprId| {
        if streams.len() < MAX_ADDRESSES && !streams.iter().any(|other| are_near(function, other.pointer, pointer)) {
            streams.extend(stream(&rows, pointer));
        }
    };
    for stmt in body {
        match stmt.kind {
            StmtKind::Assign(..) | StmtKind::Store { .. } => {
                for_each_expr_of_stmt(function, &stmt.kind, &mut |id| {
                    if let Class::Load(pointer) = function.class(id) {
                        note(pointer);
                    }
                });
                if let StmtKind::Store { pointer, .. } = stmt.kind {
                    note(pointer);
                }
            }
            StmtKind::Op { .. }
            | StmtKind::Call { .. }
            | StmtKind::If { .. }
            | StmtKind::Loop { .. }
            | StmtKind::Break
            | StmtKind::Continue
            | StmtKind::Return(_) => {}
        }
    }
    streams
}

fn stream(rows: &Rows<'_>, pointer: ExprId) -> Option<Stream> {
    let Rows { plan, function, .. } = *rows;
    let ExprKind::Offset { base, index, scale } = function.exprs[pointer].kind else { return None };
    let Type::Ptr(elem, Space::Global) = function.exprs[pointer].ty else { return None };
    let is_given = function.local(base).is_some_and(|local| function.params.contains(&local));
    // Accesses with a larger stride are left to the hardware prefetcher.
    if !is_given || scale != 1 || rows.form(index).0 != Form::Step {
        return None;
    }
    let mut before = Vec::new();
    let is_known = locals(rows, index, &mut before, MAX_LOCALS);
    let roots = || before.iter().filter_map(|&local| plan.fixed.value(local)).chain([index]);
    let by_block = roots().any(|root| asks_for_block(function, root));
    // A prefetch of any address is harmless, but one of an address that is not known is wasted.
    (is_known && by_block && legal!("next_block.no-fault", roots().all(|root| rows.is_harmless(root))))
        .then_some(Stream { pointer, size: elem.size_bytes(), before })
}

/// Whether two addresses are known to be in the same cache line or in neighboring ones.
fn are_near(function: &Function, a: ExprId, b: ExprId) -> bool {
    let Type::Ptr(element, _) = function.exprs[a].ty else { return false };
    let bytes = ByStructure::new(function).difference(Precision::Estimate, a, b);
    bytes.is_some_and(|bytes| bytes.unsigned_abs() <= MAX_DISTANCE * u128::from(element.size_bytes()))
}

/// The rematerializable locals that an expression depends on, each after those it reads itself. Returns whether all
/// other locals are uniform.
fn locals(rows: &Rows<'_>, root: ExprId, found: &mut Vec<LocalId>, most: usize) -> bool {
    let mut known = true;
    for_each_read(rows.function, root, &mut |local| {
        if !known || found.contains(&local) {
            return;
        }
        match rows.plan.fixed.value(local) {
            Some(value) => {
                known = most > 0 && locals(rows, value, found, most - 1) && found.len() < MAX_LOCALS;
                found.push(local);
            }
            None => known = !rows.is_own(local),
        }
    });
    known
}

fn asks_for_block(function: &Function, root: ExprId) -> bool {
    let mut asks = false;
    for_each_expr(function, root, &mut |id| {
        asks |= matches!(function.class(id), Class::Leaf(Leaf::Special(SpecialRegister::BlockIdx(0))));
    });
    asks
}
