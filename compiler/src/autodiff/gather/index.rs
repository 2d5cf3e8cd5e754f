//! Indices that are one of the thread in the grid and a distance that does not depend on the thread.

use std::collections::{BTreeMap, BTreeSet};

use super::slice::Slice;
use crate::{
    analysis::for_each_read,
    ir::{
        BinaryOp, Block, Class, ExprId, ExprKind, Function, Leaf, LocalId, SpecialRegister, StmtKind, Type,
        for_each_stmt,
    },
};

/// The most locals that are resolved after each other.
const DEEPEST: usize = 32;

/// An index: `grid(axis) + constant + the sum of the other terms`.
pub(super) struct Index {
    pub(super) axis: u8,
    pub(super) constant: i128,
    /// Values that are the same in all threads, and whether they are subtracted.
    pub(super) rest: Vec<(ExprId, bool)>,
    /// The counters that they read.
    pub(super) counters: BTreeSet<LocalId>,
}

/// The values of locals with one assignment, and the number of assignments of all.
pub(super) struct Values {
    sole: BTreeMap<LocalId, ExprId>,
    pub(super) counts: BTreeMap<LocalId, usize>,
}

impl Values {
    pub(super) fn of(function: &Function, body: &Block) -> Self {
        let (mut sole, mut counts) = (BTreeMap::new(), BTreeMap::new());
        for_each_stmt(body, &mut |stmt| {
            for local in stmt.kind.assigned() {
                *counts.entry(local).or_insert(0) += 1;
            }
            if let StmtKind::Assign(local, value) = stmt.kind {
                sole.insert(local, value);
            }
        });
        sole.retain(|local, _| counts[local] == 1 && !function.params.contains(local));
        Self { sole, counts }
    }

    /// The value of a local with one assignment.
    pub(super) fn sole(&self, local: LocalId) -> Option<ExprId> {
        self.sole.get(&local).copied()
    }

    /// Whether a local is a parameter.
    pub(super) fn is_param(&self, function: &Function, local: LocalId) -> bool {
        function.params.contains(&local) && !self.counts.contains_key(&local)
    }

    /// The expression of which locals and conversions make a value.
    fn resolved(&self, function: &Function, mut id: ExprId) -> ExprId {
        for _ in 0..DEEPEST {
            id = if let ExprKind::Convert(inner) = function.exprs[id].kind
                && is_integer(function, id)
                && is_integer(function, inner)
            {
                inner
            } else if let Some(value) = function.local(id).and_then(|local| self.sole(local)) {
                value
            } else {
                return id;
            }
        }
        id
    }

    /// The axis of a thread's index in the grid: `blockIdx * blockDim + threadIdx`.
    pub(super) fn axis(&self, function: &Function, id: ExprId) -> Option<u8> {
        let (sum, product) = (&[BinaryOp::Add, BinaryOp::AddExact], &[BinaryOp::Mul, BinaryOp::MulExact]);
        let operands = |id: ExprId, ops: &[BinaryOp]| {
            let ExprKind::Binary(op, a, b) = function.exprs[self.resolved(function, id)].kind else { return None };
            ops.contains(&op).then_some([(a, b), (b, a)])
        };
        let register = |id: ExprId| {
            if let ExprKind::Special(register) = function.exprs[self.resolved(function, id)].kind {
                Some(register)
            } else {
                None
            }
        };
        let is_first = |id: ExprId, axis: u8| {
            operands(id, product).is_some_and(|pairs| {
                pairs.into_iter().any(|(block, extent)| {
                    register(block) == Some(SpecialRegister::BlockIdx(axis))
                        && register(extent) == Some(SpecialRegister::BlockDim(axis))
                })
            })
        };
        operands(id, sum)?.into_iter().find_map(|(first, thread)| {
            let Some(SpecialRegister::ThreadIdx(axis)) = register(thread) else { return None };
            is_first(first, axis).then_some(axis)
        })
    }

    /// An index of an element.
    pub(super) fn index(&self, function: &Function, id: ExprId) -> Option<Index> {
        let mut found = Index { axis: 0, constant: 0, rest: Vec::new(), counters: BTreeSet::new() };
        let mut axis = None;
        self.add(function, id, false, (&mut found, &mut axis), 0)?;
        found.axis = axis?;
        Some(found)
    }

    fn add(
        &self,
        function: &Function,
        id: ExprId,
        negative: bool,
        (found, axis): (&mut Index, &mut Option<u8>),
        depth: usize,
    ) -> Option<()> {
        if depth > DEEPEST {
            return None;
        }
        if let Some(own) = self.axis(function, id) {
            let is_only = !negative && axis.replace(own).is_none();
            return is_only.then_some(());
        }
        let wraps = function.exprs[id].ty == Type::I64;
        let mut open = Vec::new();
        if let Some(value) = function.int(id) {
            found.constant += if negative { -value } else { value };
        } else if let ExprKind::Binary(op, a, b) = function.exprs[id].kind
            && let Some(is_difference) = sum(op, wraps)
        {
            open.extend([(a, negative), (b, negative != is_difference)]);
        } else if let ExprKind::Convert(inner) = function.exprs[id].kind
            && wraps
            && matches!(function.exprs[inner].ty, Type::I32 | Type::I64)
        {
            open.push((inner, negative));
        } else if let Some(value) = function.local(id).and_then(|local| self.sole(local)) {
            open.push((value, negative));
        } else if self.is_uniform(function, id, &mut found.counters, 0) {
            found.rest.push((id, negative));
        } else {
            return None;
        }
        open.into_iter().try_for_each(|(id, negative)| self.add(function, id, negative, (found, axis), depth + 1))
    }

    /// Whether an integer is the same in all threads, but for counters, which are collected.
    pub(super) fn is_uniform(
        &self,
        function: &Function,
        id: ExprId,
        counters: &mut BTreeSet<LocalId>,
        depth: usize,
    ) -> bool {
        if depth > DEEPEST || !is_integer(function, id) {
            return false;
        }
        match function.class(id) {
            Class::Leaf(Leaf::Const(_)) => true,
            Class::Leaf(Leaf::Special(register)) => {
                matches!(register, SpecialRegister::BlockDim(_) | SpecialRegister::GridDim(_))
            }
            Class::Leaf(Leaf::Local(local)) => {
                if let Some(value) = self.sole(local) {
                    return self.is_uniform(function, value, counters, depth + 1);
                }
                if !self.is_param(function, local) {
                    counters.insert(local);
                }
                true
            }
            Class::Arith(arith) => {
                arith.operands().iter().all(|&operand| self.is_uniform(function, operand, counters, depth + 1))
            }
            Class::Leaf(Leaf::Base(_)) | Class::Address { .. } | Class::Load(_) => false,
        }
    }
}

impl Index {
    /// Whether the bounds of loops give the largest distance: it adds counters to values that no loop changes.
    pub(super) fn has_limit(&self, function: &Function, slice: &Slice) -> bool {
        self.rest.iter().all(|&(id, _)| {
            let is_counter = |local: LocalId| slice.loops.iter().any(|own| own.counter == local);
            let mut has_counter = false;
            for_each_read(function, id, &mut |local| has_counter |= self.counters.contains(&local));
            !has_counter || counter_of(function, id).is_some_and(is_counter)
        })
    }
}

/// The local that an expression reads, apart from conversions.
pub(super) fn counter_of(function: &Function, mut id: ExprId) -> Option<LocalId> {
    while let ExprKind::Convert(inner) = function.exprs[id].kind {
        id = inner;
    }
    function.local(id)
}

/// Whether an operation is a difference, if it is a sum or a difference that does not overflow, or whose overflow has no
/// effect on an address.
fn sum(op: BinaryOp, wraps: bool) -> Option<bool> {
    if op == BinaryOp::AddExact || wraps && op == BinaryOp::Add {
        Some(false)
    } else if op == BinaryOp::SubExact || wraps && op == BinaryOp::Sub {
        Some(true)
    } else {
        None
    }
}

/// Whether an expression is an integer of 32 or 64 bits, or a condition.
fn is_integer(function: &Function, id: ExprId) -> bool {
    matches!(function.exprs[id].ty, Type::I32 | Type::I64 | Type::BOOL)
}
