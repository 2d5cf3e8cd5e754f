//! Addresses whose distance from their base is computed in 32 bits.
//!
//! ```text
//! $x.data[$row * $x.shape1 + $column]        $x.data[int64($row * int32($x.shape1) + $column)]
//! ```
//!
//! A program accesses only elements of its arrays. So for an array with fewer than 2^31 elements, by
//! [`PointerExtents`], the offset of each accessed address fits `int32`, and its lower half determines it. The operands
//! of its sums and products may have any value: sums and products of lower halves have the right lower half. They wrap,
//! and are not marked as exact: LLVM then uses the uniform part of adjacent addresses as the base, instead of extending
//! each index.
//!
//! Between branches LLVM finds the common part of such addresses only if constants are added last and exactly. Therefore
//! offsets in a window of constant size, whose borders are tested for each element, are reassociated: `row * width + (x +
//! dx)` becomes `(row * width + x) + dx`, in which the first sum is extended once for each row ([`Windows`]). The address
//! of `row * width + x` is computed before the branch, where its operands are known there: as code for each element it
//! would cost more than the access.
//!
//! Induction variables in addresses of global memory remain wide, with the sums and products that contain them: LLVM
//! strength-reduces them to pointers.

use std::collections::{BTreeMap, BTreeSet};

use weft_artifact::SMALL_SIZE;

use super::Narrow;
use crate::{
    analysis::{Interval, PointerExtent, PointerExtents},
    ir::{
        Arith, BinaryOp, Block, Class, ExprId, ExprKind, FuncId, Function, Leaf, Local, LocalId, LocalKind, Module,
        Space, Stmt, StmtKind, Type, falls_through, for_each_expr, for_each_expr_of_block, for_each_stmt,
    },
};

/// Offsets of accessed elements from the start of an array.
const FROM_START: Interval = Interval::new(0, SMALL_SIZE as i128 - 1);

/// Offsets of accessed elements from any element of an array.
const FROM_ANYWHERE: Interval = Interval::new(-(i32::MAX as i128), i32::MAX as i128);

/// The limit of constants that LLVM moves into an address.
const LARGEST_TERM: i128 = 1 << 16;

/// The range of an unknown value.
const ANYTHING: Interval = Interval::new(i128::MIN, i128::MAX);

/// The addresses of a function.
pub(super) struct Addresses {
    /// By the index of an address: the extent of its base.
    bases: Vec<Option<PointerExtent>>,
    /// Induction variables, and their sums and products.
    varying: BTreeSet<LocalId>,
    /// Values that are added to such a row offset in addresses of global memory, `x[$counter * $x.shape1 + $column]`.
    /// They are part of a pointer, so they exist in 64 bits; if they existed in 32, too, for other addresses, ptxas did
    /// not group the loads of an unrolled matrix product.
    beside: BTreeSet<LocalId>,
    windows: Windows,
}

impl Addresses {
    /// Where the body of a loop with this step is, if the loop is at `guard`.
    pub(super) fn inside(&self, guard: Guard, step: &Block) -> Guard {
        let is_short = step.iter().flat_map(|stmt| stmt.kind.assigned()).any(|it| self.windows.counters.contains(&it));
        if is_short { guard.max(Guard::Window) } else { guard }
    }

    /// `narrow` returns whether a counter need not remain wide, `is_short` whether LLVM unrolls its loop fully.
    pub(super) fn of(
        module: &Module,
        reaches: &PointerExtents,
        (narrow, is_short): (&dyn Fn(LocalId) -> bool, &dyn Fn(LocalId) -> bool),
        (id, function): (FuncId, &Function),
    ) -> Self {
        let mut bases = vec![None; function.exprs.len()];
        for_each_expr_of_block(function, &function.body, &mut |address| {
            if let Class::Address { base, .. } = function.class(address) {
                bases[address.index()] = reaches.get(module, id, function, base);
            }
        });
        let varying = varying(function, narrow);
        let beside = beside(function, &varying);
        Self { bases, varying, beside, windows: Windows::of(function, is_short) }
    }
}

/// Addresses in windows of constant size.
struct Windows {
    /// By local that is now the sum of two others: these, the second of which is the counter of a loop that LLVM
    /// unrolls fully, or a copy of one.
    sums: BTreeMap<LocalId, (ExprId, ExprId)>,
    /// Such counters, and their copies.
    counters: BTreeSet<LocalId>,
    /// By address under a branch in such a loop, whose offset ends with such a sum: the sum.
    guarded: BTreeMap<ExprId, GuardedAddress>,
}

/// An address in a window.
#[derive(Clone, Copy, Debug)]
struct GuardedAddress {
    /// The terms of the last sum of its offset.
    start: ExprId,
    counter: ExprId,
    /// Whether the rest of the address has its value before the branch.
    is_known_before: bool,
}

impl Windows {
    fn of(function: &Function, is_short: &dyn Fn(LocalId) -> bool) -> Self {
        let mut windows = Self { sums: BTreeMap::new(), counters: BTreeSet::new(), guarded: BTreeMap::new() };
        let mut assignments = vec![0_u32; function.locals.len()];
        for_each_stmt(&function.body, &mut |stmt| {
            for local in stmt.kind.assigned() {
                assignments[local.index()] += 1;
            }
            if let StmtKind::Loop { step, .. } = &stmt.kind
                && let [Stmt { kind: StmtKind::Assign(counter, _), .. }] = step.as_slice()
                && is_short(*counter)
            {
                windows.counters.insert(*counter);
            }
        });
        // The start, and the step.
        windows.counters.retain(|counter| assignments[counter.index()] == 2);
        if !windows.counters.is_empty() {
            let mut constant: BTreeSet<LocalId> = function.params.iter().copied().collect();
            constant.extend(
                function
                    .body
                    .iter()
                    .filter_map(|stmt| if let StmtKind::Assign(local, _) = stmt.kind { Some(local) } else { None }),
            );
            constant.retain(|local| assignments[local.index()] <= 1);
            let mut assigned = BTreeSet::new();
            windows.collect(function, &function.body, (&assignments, &constant), (Guard::Outside, &mut assigned));
        }
        windows
    }

    /// Collects the addresses of a block. The sums hold until its end.
    fn collect(
        &mut self,
        function: &Function,
        block: &Block,
        (assignments, constant): (&[u32], &BTreeSet<LocalId>),
        (mut guard, assigned): (Guard, &mut BTreeSet<LocalId>),
    ) {
        let before = self.sums.clone();
        for (index, stmt) in block.iter().enumerate() {
            if index == 0 && stmt.kind.exit_condition().is_some() {
                continue;
            }
            if guard == Guard::Window && matches!(stmt.kind, StmtKind::If { .. }) {
                // What is assigned from here on is not known before the branch.
                assigned.clear();
            }
            assigned.extend(stmt.kind.assigned());
            if guard == Guard::Tested {
                for root in stmt.kind.exprs() {
                    for_each_expr(function, root, &mut |id| {
                        if let Class::Address { base, by, .. } = function.class(id)
                            && let Class::Arith(Arith::Binary(op, row, column)) = function.class(by)
                            && adds(op)
                            && let Some((start, counter)) = self.terms(function, column)
                        {
                            let mut is_known_before = function.local(base).is_some_and(|base| constant.contains(&base));
                            for term in [row, start] {
                                for_each_expr(function, term, &mut |part| {
                                    is_known_before &= !matches!(function.exprs[part].kind, ExprKind::Load(..))
                                        && function.local(part).is_none_or(|local| !assigned.contains(&local));
                                });
                            }
                            self.guarded.insert(id, GuardedAddress { start, counter, is_known_before });
                        }
                    });
                }
            }
            match &stmt.kind {
                StmtKind::Assign(local, value) if assignments[local.index()] == 1 && guard != Guard::Outside => {
                    if function.local(*value).is_some_and(|of| self.counters.contains(&of)) {
                        self.counters.insert(*local);
                    } else if let Some((start, counter)) = self.terms(function, *value)
                        && function.local(start).is_some_and(|start| constant.contains(&start))
                    {
                        self.sums.insert(*local, (start, counter));
                    }
                }
                StmtKind::Loop { body, step } => {
                    let is_short =
                        step.iter().flat_map(|stmt| stmt.kind.assigned()).any(|it| self.counters.contains(&it));
                    let inside = if is_short { guard.max(Guard::Window) } else { guard };
                    // Later statements of the loop run before earlier ones of its next iteration.
                    for block in [body, step] {
                        for_each_stmt(block, &mut |stmt| assigned.extend(stmt.kind.assigned()));
                    }
                    self.collect(function, body, (assignments, constant), (inside, assigned));
                }
                StmtKind::If { then, otherwise, .. } => {
                    let inside = if guard == Guard::Outside { guard } else { Guard::Tested };
                    for arm in [then, otherwise] {
                        self.collect(function, arm, (assignments, constant), (inside, assigned));
                        if !falls_through(arm) {
                            guard = inside;
                        }
                    }
                }
                StmtKind::Assign(..)
                | StmtKind::Store { .. }
                | StmtKind::Op { .. }
                | StmtKind::Call { .. }
                | StmtKind::Break
                | StmtKind::Continue
                | StmtKind::Return(_) => {}
            }
        }
        self.sums = before;
    }

    /// The terms of a sum with such a counter, which comes second.
    fn terms(&self, function: &Function, id: ExprId) -> Option<(ExprId, ExprId)> {
        let is_counter = |id: ExprId| function.local(id).is_some_and(|local| self.counters.contains(&local));
        match function.class(id) {
            Class::Arith(Arith::Binary(op, a, b)) if adds(op) => match (is_counter(a), is_counter(b)) {
                (false, true) => Some((a, b)),
                (true, false) => Some((b, a)),
                (true, true) | (false, false) => None,
            },
            Class::Leaf(Leaf::Local(local)) => self.sums.get(&local).copied(),
            Class::Leaf(_) | Class::Arith(_) | Class::Address { .. } | Class::Load(_) => None,
        }
    }
}

/// Where a statement is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Guard {
    /// In no loop that LLVM unrolls fully.
    Outside,
    /// In such a loop.
    Window,
    /// In such a loop, under a branch.
    Tested,
}

fn adds(op: BinaryOp) -> bool {
    matches!(op, BinaryOp::Add | BinaryOp::AddExact)
}

/// The locals of [`Addresses::beside`].
fn beside(function: &Function, varying: &BTreeSet<LocalId>) -> BTreeSet<LocalId> {
    let mut found = BTreeSet::new();
    for_each_expr_of_block(function, &function.body, &mut |id| {
        if let Class::Address { base, by, .. } = function.class(id)
            && !is_own(function.exprs[base].ty)
            && let Class::Arith(Arith::Binary(BinaryOp::Add, row, column)) = function.class(by)
            && let Class::Arith(Arith::Binary(BinaryOp::Mul, counter, _)) = function.class(row)
            && function.local(counter).is_some_and(|counter| varying.contains(&counter))
        {
            found.extend(function.local(column).filter(|column| !varying.contains(column)));
        }
    });
    found
}

/// Memory of the block or the thread, whose addresses are not LLVM's pointers.
pub(super) fn is_own(ty: Type) -> bool {
    matches!(ty, Type::Ptr(_, Space::Shared | Space::Local))
}

/// The locals of [`Addresses::varying`].
fn varying(function: &Function, narrow: &dyn Fn(LocalId) -> bool) -> BTreeSet<LocalId> {
    let mut in_loops = Vec::new();
    let mut found = BTreeSet::new();
    collect(&function.body, false, &mut in_loops, &mut found);
    found.retain(|counter| !narrow(*counter));
    in_loops.retain(|(local, _)| !narrow(*local));
    for &(local, value) in &in_loops {
        if is_linear_in(function, value, &|other| other == local) {
            found.insert(local);
        }
    }
    loop {
        let before = found.len();
        for &(local, value) in &in_loops {
            if is_linear_in(function, value, &|other| found.contains(&other)) {
                found.insert(local);
            }
        }
        if found.len() == before {
            return found;
        }
    }
}

/// Collects the assignments in loops, and the induction variables.
fn collect(block: &Block, inside: bool, values: &mut Vec<(LocalId, ExprId)>, counters: &mut BTreeSet<LocalId>) {
    for Stmt { kind, .. } in block {
        match kind {
            StmtKind::Assign(local, value) if inside => values.push((*local, *value)),
            StmtKind::If { then, otherwise, .. } => {
                collect(then, inside, values, counters);
                collect(otherwise, inside, values, counters);
            }
            StmtKind::Loop { body, step } => {
                counters.extend(step.iter().flat_map(|stmt| stmt.kind.assigned()));
                collect(body, true, values, counters);
                collect(step, true, values, counters);
            }
            StmtKind::Assign(..)
            | StmtKind::Store { .. }
            | StmtKind::Op { .. }
            | StmtKind::Call { .. }
            | StmtKind::Break
            | StmtKind::Continue
            | StmtKind::Return(_) => {}
        }
    }
}

/// Whether an expression is such a local, or computed from one by sums, differences, products and conversions.
fn is_linear_in(function: &Function, id: ExprId, is: &dyn Fn(LocalId) -> bool) -> bool {
    match function.class(id) {
        Class::Leaf(Leaf::Local(local)) => is(local),
        Class::Arith(Arith::Convert(from)) => is_linear_in(function, from, is),
        Class::Arith(Arith::Binary(op, a, b)) if is_linear(op) => {
            is_linear_in(function, a, is) || is_linear_in(function, b, is)
        }
        Class::Leaf(_) | Class::Arith(_) | Class::Address { .. } | Class::Load(_) => false,
    }
}

/// Whether an operation is a sum, difference or product: its lower half depends only on the lower halves of the
/// operands, and LLVM strength-reduces it with its induction variable.
fn is_linear(op: BinaryOp) -> bool {
    match op {
        BinaryOp::Add
        | BinaryOp::AddExact
        | BinaryOp::Sub
        | BinaryOp::SubExact
        | BinaryOp::Mul
        | BinaryOp::MulExact => true,
        BinaryOp::Div
        | BinaryOp::FloorDiv
        | BinaryOp::FloorMod
        | BinaryOp::DivNonneg
        | BinaryOp::ModNonneg
        | BinaryOp::Pow
        | BinaryOp::Min
        | BinaryOp::Max
        | BinaryOp::Shl
        | BinaryOp::Shr
        | BinaryOp::And
        | BinaryOp::Or
        | BinaryOp::Xor => false,
    }
}

impl Addresses {
    /// Whether the offset of an accessed address from its base is known to fit 32 bits.
    pub(super) fn is_narrow(&self, address: ExprId) -> bool {
        self.bases.get(address.index()).is_some_and(Option::is_some)
    }
}

impl Narrow<'_> {
    /// An address with a 32-bit offset from its base, if the offset is known to fit.
    pub(super) fn address(&mut self, id: ExprId, base: ExprId, by: ExprId) -> ExprId {
        let reach = self.addresses.and_then(|addresses| addresses.bases.get(id.index()).copied().flatten());
        let Some(reach) = reach.filter(|reach| self.step(id, base) >= reach.unit) else { return self.rebuilt(id) };
        let used = if reach.starts { FROM_START } else { FROM_ANYWHERE };
        if let Some(address) = self.in_window(id, (base, by), used) {
            return address;
        }
        let distance = self.distance(by, used, !is_own(self.ty(base)));
        let kind = self.function.exprs[id].kind.clone();
        let kind = kind.map_operands(&mut |operand| if operand == by { distance } else { self.wide(operand) });
        self.function.exprs[id].kind = kind;
        id
    }

    /// The number of bytes of one unit of an address's offset.
    fn step(&self, id: ExprId, base: ExprId) -> u64 {
        let scale =
            if let ExprKind::Offset { scale, .. } = self.function.exprs[id].kind { u64::from(scale) } else { 0 };
        match self.ty(base) {
            Type::Ptr(element, _) if scale > 0 => element.size_bytes() * scale,
            // The offset is in bytes.
            Type::Ptr(..) | Type::Scalar(_) => 1,
        }
    }

    /// A 64-bit offset, or a term or factor of one, extended from 32 bits where it fits. `used` is its range at
    /// accesses of the address. In addresses of LLVM's `pointers`, induction variables remain wide.
    fn distance(&mut self, id: ExprId, used: Interval, pointers: bool) -> ExprId {
        let sum = match self.function.class(id) {
            Class::Arith(Arith::Binary(op, a, b)) if is_linear(op) => Some((op, a, b)),
            Class::Leaf(_) | Class::Arith(_) | Class::Address { .. } | Class::Load(_) => None,
        };
        let Some((op, a, b)) = sum else { return self.wide(id) };
        // It fits at every use.
        if self.fits(id) && !self.goes_with_counter(id) {
            return self.wide(id);
        }
        let beside = self.addresses.map(|addresses| &addresses.beside);
        let is_beside = |id| {
            let local = self.function.local(id);
            local.is_some_and(|local| beside.is_some_and(|beside| beside.contains(&local)))
        };
        let is_split = pointers && op == BinaryOp::Add && (is_beside(a) || is_beside(b));
        if is_split || self.varies(id, pointers) {
            let left = |part| if adds(op) { self.without(used, part) } else { ANYTHING };
            let (of_a, of_b) = (left(b), left(a));
            let (a, b) = (self.distance(a, of_a, pointers), self.distance(b, of_b, pointers));
            self.function.exprs[id].kind = ExprKind::Binary(op, a, b);
            return id;
        }
        if !used.fits(Type::I32) {
            return self.wide(id);
        }
        let span = self.span(id);
        let lower = self.narrow(id);
        self.push(ExprKind::Convert(lower), Type::I64, span)
    }

    /// An address in a window, with the window's counter added last. The accessed offset bounds the rest.
    fn in_window(&mut self, address: ExprId, (base, by): (ExprId, ExprId), used: Interval) -> Option<ExprId> {
        let GuardedAddress { start, counter, is_known_before } = *self.addresses?.windows.guarded.get(&address)?;
        let ExprKind::Offset { scale, .. } = self.function.exprs[address].kind else { return None };
        let Class::Arith(Arith::Binary(_, row, _)) = self.function.class(by) else { return None };
        let near = self.range(counter).within(Interval::new(-LARGEST_TERM, LARGEST_TERM));
        if !used.fits(Type::I32) || self.fits(by) || self.varies(by, true) {
            return None;
        }
        if !near || !self.without(used, counter).fits(Type::I32) {
            return None;
        }
        let (span, ty) = (self.span(address), self.ty(address));
        let [row, start, counter] = [row, start, counter].map(|term| {
            let copy = self.function.copy_expr(term);
            self.narrow(copy)
        });
        let rest = self.push(ExprKind::Binary(BinaryOp::Add, row, start), Type::I32, span);
        if self.guard != Guard::Tested || !is_known_before {
            let offset = self.push(ExprKind::Binary(BinaryOp::AddExact, rest, counter), Type::I32, span);
            let index = self.push(ExprKind::Convert(offset), Type::I64, span);
            return Some(self.push(ExprKind::Offset { base, index, scale }, ty, span));
        }
        let index = self.push(ExprKind::Convert(rest), Type::I64, span);
        let first = self.push(ExprKind::Offset { base, index, scale }, ty, span);
        let local = self.function.locals.push(Local::new("t", LocalKind::Temp, ty));
        self.before_branch.push(Stmt { kind: StmtKind::Assign(local, first), span });
        let base = self.push(ExprKind::Local(local), ty, span);
        let index = self.push(ExprKind::Convert(counter), Type::I64, span);
        Some(self.push(ExprKind::Offset { base, index, scale }, ty, span))
    }

    /// The range of a sum without one of its operands. The other operand is the only 64-bit number that gives the sum
    /// with it, so if the exact difference fits in 64 bits, it is that operand.
    fn without(&self, sum: Interval, part: ExprId) -> Interval {
        let left = sum.minus(self.range(part));
        if left.fits(Type::I64) { left } else { ANYTHING }
    }

    /// Whether an expression contains an induction variable.
    fn varies(&self, id: ExprId, pointers: bool) -> bool {
        let varying = self.addresses.map(|addresses| &addresses.varying);
        is_linear_in(self.function, id, &|local| {
            self.kept.contains(&local) || (pointers && varying.is_some_and(|varying| varying.contains(&local)))
        })
    }
}
