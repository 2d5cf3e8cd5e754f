//! Addresses whose distance from their base is computed in 32 bits.
//!
//! ```text
//! $x.data[$row * $x.shape1 + $column]        $x.data[int64(add_exact(mul_exact($row, $x.shape1), $column))]
//! ```
//!
//! A program reads and writes nothing but elements of its arrays. So of an array with fewer than 2^31 elements, as
//! [`Reaches`] knows it, the distance of each address that is used is a value of `int32`, and its lower half says it all. What
//! is added and multiplied to it may still be anything: sums and products of lower halves have the right lower half. Where
//! the parts are known to fit, too, which often follows from the sum ([`Narrow::parts`]), they are marked as exact.
//!
//! What a loop counts up stays as wide as it is in addresses of global memory, with the sums and products that it is in: LLVM
//! makes pointers of them.

use std::collections::BTreeSet;

use weft_artifact::{ArgItem, Layout, SlotField, SlotSource};

use super::{Narrow, is_short};
use crate::{
    analysis::{Interval, Ranges, Reach, Reaches},
    ir::{
        Arith, BinaryOp, Block, Class, ExprId, ExprKind, FuncId, Function, Leaf, LocalId, Module, Space, Stmt, StmtKind,
        Type, for_each_expr_of_block, for_each_stmt,
    },
};

/// Distances that are used, from where an array starts.
const FROM_START: Interval = Interval::new(0, i32::MAX as i128 - 1);

/// Distances that are used, from anywhere in an array.
const FROM_ANYWHERE: Interval = Interval::new(-(i32::MAX as i128), i32::MAX as i128);

/// Dimensions of the arrays whose elements' numbers are taken apart by their extents: sums and products of as many indices
/// and extents below 2^31 do not wrap in 64 bits, but for the last product, of which the element tells.
const DIMS: usize = 3;

/// What is known of a function's addresses.
pub(super) struct Addresses {
    /// By the index of an address: what its base points into.
    bases: Vec<Option<Reach>>,
    /// By the position of a parameter that is an array's data: the extents that its elements' numbers are made with, the one
    /// of the last product at the end.
    extents: Vec<Vec<LocalId>>,
    /// What a loop counts up, and what is computed of it by sums and products.
    varying: BTreeSet<LocalId>,
    /// What is added to such a row in addresses of global memory, `x[$counter * $x.shape1 + $column]`. A pointer is made with
    /// it, so that it is there in 64 bits; where it was there in 32, too, for other addresses, ptxas put the loads of an
    /// unrolled matrix product apart.
    beside: BTreeSet<LocalId>,
}

impl Addresses {
    pub(super) fn of(
        module: &Module,
        reaches: &Reaches,
        ranges: &Ranges,
        (id, function): (FuncId, &Function),
    ) -> Self {
        let mut bases = vec![None; function.exprs.len()];
        for_each_expr_of_block(function, &function.body, &mut |address| {
            if let Class::Address { base, .. } = function.class(address) {
                bases[address.index()] = reaches.get(module, id.index(), function, base);
            }
        });
        let mut assigned = BTreeSet::new();
        for_each_stmt(&function.body, &mut |stmt| assigned.extend(stmt.kind.assigned()));
        let extents = (0..function.slots.len()).map(|at| extents(module, function, at, &assigned)).collect();
        let varying = varying(function, ranges);
        let beside = beside(function, &varying);
        Self { bases, extents, varying, beside }
    }
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
fn is_own(ty: Type) -> bool {
    matches!(ty, Type::Ptr(_, Space::Shared | Space::Local))
}

/// The extents of [`Addresses::extents`]; none if some are not there.
fn extents(module: &Module, function: &Function, at: usize, assigned: &BTreeSet<LocalId>) -> Vec<LocalId> {
    let Some(SlotSource::Argument { param, path, field: SlotField::Data }) = function.slots.get(at) else {
        return Vec::new();
    };
    let Some(ArgItem::Array(array)) = module.params.get(*param as usize).and_then(|param| param.ty.leaf(path)) else {
        return Vec::new();
    };
    let dims: Vec<u8> = match array.layout {
        Layout::C => (1..array.ndim).collect(),
        Layout::F => (0..array.ndim.saturating_sub(1)).rev().collect(),
        Layout::Any => return Vec::new(),
    };
    let extent = |dim: &u8| {
        let wanted = SlotSource::Argument { param: *param, path: path.clone(), field: SlotField::Shape(*dim) };
        let local = *function.params.get(function.slots.iter().position(|slot| *slot == wanted)?)?;
        (!assigned.contains(&local)).then_some(local)
    };
    let data_changes = function.params.get(at).is_none_or(|data| assigned.contains(data));
    if data_changes || usize::from(array.ndim) > DIMS {
        return Vec::new();
    }
    dims.iter().map(extent).collect::<Option<_>>().unwrap_or_default()
}

/// The locals of [`Addresses::varying`].
fn varying(function: &Function, ranges: &Ranges) -> BTreeSet<LocalId> {
    let mut in_loops = Vec::new();
    let mut found = BTreeSet::new();
    collect(&function.body, false, &mut in_loops, &mut found);
    let is_short = |local| is_short(ranges.local(function, local));
    found.retain(|counter| !is_short(*counter));
    in_loops.retain(|(local, _)| !is_short(*local));
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

/// The assignments in loops, and what the loops count with.
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

/// Whether an expression is such a local, or made of one by sums, differences, products and conversions.
fn is_linear_in(function: &Function, id: ExprId, is: &dyn Fn(LocalId) -> bool) -> bool {
    match function.class(id) {
        Class::Leaf(Leaf::Local(local)) => is(local),
        Class::Arith(Arith::Convert(from)) => is_linear_in(function, from, is),
        Class::Arith(Arith::Binary(op, a, b)) if forms(op).is_some() => {
            is_linear_in(function, a, is) || is_linear_in(function, b, is)
        }
        Class::Leaf(_) | Class::Arith(_) | Class::Address { .. } | Class::Load(_) => false,
    }
}

/// Of a sum, difference or product the one that wraps, and the one that is known not to.
fn forms(op: BinaryOp) -> Option<(BinaryOp, BinaryOp)> {
    match op {
        BinaryOp::Add | BinaryOp::AddExact => Some((BinaryOp::Add, BinaryOp::AddExact)),
        BinaryOp::Sub | BinaryOp::SubExact => Some((BinaryOp::Sub, BinaryOp::SubExact)),
        BinaryOp::Mul | BinaryOp::MulExact => Some((BinaryOp::Mul, BinaryOp::MulExact)),
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
        | BinaryOp::Xor => None,
    }
}

/// What is known of a part of a distance.
#[derive(Clone, Copy)]
struct Part<'a> {
    /// What it can be where the address is used.
    value: Interval,
    /// It is made of indices with these extents.
    extents: &'a [LocalId],
    /// What loops count up is left as it is.
    pointers: bool,
}

impl Narrow<'_> {
    /// An address with its distance from the base in 32 bits, if that is known to fit.
    pub(super) fn address(&mut self, id: ExprId, base: ExprId, by: ExprId) -> ExprId {
        let addresses = self.addresses;
        let reach = addresses.bases.get(id.index()).copied().flatten();
        let Some(reach) = reach.filter(|reach| self.step(id, base) >= reach.unit) else { return self.rebuilt(id) };
        let value = if reach.starts { FROM_START } else { FROM_ANYWHERE };
        let extents = reach.param.and_then(|param| addresses.extents.get(param)).map_or(&[][..], Vec::as_slice);
        let extents = if self.is_made_with(by, extents) { extents } else { &[] };
        let pointers = !is_own(self.ty(base));
        let distance = self.distance(by, Part { value, extents, pointers });
        let kind = self.function.exprs[id].kind.clone();
        let kind = kind.map_operands(&mut |operand| if operand == by { distance } else { self.wide(operand) });
        self.function.exprs[id].kind = kind;
        id
    }

    /// The bytes that one more of an address's distance goes on by.
    fn step(&self, id: ExprId, base: ExprId) -> u64 {
        let scale = if let ExprKind::Offset { scale, .. } = self.function.exprs[id].kind { u64::from(scale) } else { 0 };
        match self.ty(base) {
            Type::Ptr(element, _) if scale > 0 => element.size_bytes() * scale,
            // Bytes.
            Type::Ptr(..) | Type::Scalar(_) => 1,
        }
    }

    /// Whether an element's number is `(i * n1 + j) * n2 + k` with these extents, and its indices are below 2^31. Its sums are
    /// then numbers of elements, too, and as an array without elements has none that is used, no extent is 0.
    fn is_made_with(&self, id: ExprId, extents: &[LocalId]) -> bool {
        let is_index = |id: ExprId| {
            let is_wrapped = matches!(self.function.class(id), Class::Arith(Arith::Wrap { .. }));
            let range = self.range(id);
            range.fits(Type::I32) && (is_wrapped || range.is_nonneg())
        };
        let Some((last, rest)) = extents.split_last() else { return is_index(id) };
        let Class::Arith(Arith::Binary(BinaryOp::Add, row, index)) = self.function.class(id) else { return false };
        let Class::Arith(Arith::Binary(BinaryOp::Mul, before, extent)) = self.function.class(row) else { return false };
        self.function.local(extent) == Some(*last) && is_index(index) && self.is_made_with(before, rest)
    }

    /// Whether an expression goes with what a loop counts up.
    fn varies(&self, id: ExprId, pointers: bool) -> bool {
        let varying = &self.addresses.varying;
        is_linear_in(self.function, id, &|local| self.kept.contains(&local) || (pointers && varying.contains(&local)))
    }

    /// A distance, or a part of it, in 64 bits: from 32 what fits.
    fn distance(&mut self, id: ExprId, part: Part<'_>) -> ExprId {
        let sum = match self.function.class(id) {
            Class::Arith(Arith::Binary(op, a, b)) => forms(op).map(|_| (op, a, b)),
            Class::Leaf(_) | Class::Arith(_) | Class::Address { .. } | Class::Load(_) => None,
        };
        let Some((op, a, b)) = sum else { return self.wide(id) };
        // It fits wherever it stands.
        if self.fits(id) && !self.goes_with_counter(id) {
            return self.wide(id);
        }
        let known = part.value.meet(self.range(id));
        let is_beside = |id| self.function.local(id).is_some_and(|local| self.addresses.beside.contains(&local));
        let is_split = part.pointers && op == BinaryOp::Add && (is_beside(a) || is_beside(b));
        if is_split || self.varies(id, part.pointers) {
            let (one, other) = self.parts(op, a, b, Part { value: known, ..part });
            let (a, b) = (self.distance(a, one), self.distance(b, other));
            self.function.exprs[id].kind = ExprKind::Binary(op, a, b);
            return id;
        }
        if !known.fits(Type::I32) {
            return self.wide(id);
        }
        let span = self.span(id);
        let near = self.lower(id, part);
        self.push(ExprKind::Convert(near), Type::I64, span)
    }

    /// The lower half of a part of a distance.
    fn lower(&mut self, id: ExprId, part: Part<'_>) -> ExprId {
        let Class::Arith(Arith::Binary(op, a, b)) = self.function.class(id) else { return self.narrow(id) };
        let Some((wraps, exact)) = forms(op) else { return self.narrow(id) };
        let (span, known) = (self.span(id), part.value.meet(self.range(id)));
        let (one, other) = self.parts(op, a, b, Part { value: known, ..part });
        let fits = |value: Interval| !value.is_none() && value.fits(Type::I32);
        let op = if fits(known) && fits(one.value) && fits(other.value) { exact } else { wraps };
        let (a, b) = (self.lower(a, one), self.lower(b, other));
        self.push(ExprKind::Binary(op, a, b), Type::I32, span)
    }

    /// What the operands of a sum, difference or product can be, given what it is.
    fn parts<'a>(&self, op: BinaryOp, a: ExprId, b: ExprId, part: Part<'a>) -> (Part<'a>, Part<'a>) {
        let (of_a, of_b, known) = (self.range(a), self.range(b), part.value);
        let whole = |value: Interval| Part { value, extents: &[], ..part };
        // The one number of 64 bits that gives the result, if what gives it exactly is one.
        let solved = |own: Interval, exact: Interval| {
            whole(if !known.is_none() && exact.fits(Type::I64) { own.meet(exact) } else { own })
        };
        match (op, part.extents.split_last()) {
            (BinaryOp::Add | BinaryOp::AddExact, Some(_)) => {
                (Part { value: of_a.meet(FROM_START), ..part }, whole(of_b.meet(FROM_START)))
            }
            (BinaryOp::Mul | BinaryOp::MulExact, Some((_, rest))) => {
                (Part { value: of_a.meet(FROM_START), extents: rest, ..part }, whole(of_b))
            }
            (BinaryOp::Add | BinaryOp::AddExact, None) => {
                (solved(of_a, known.minus(of_b)), solved(of_b, known.minus(of_a)))
            }
            (BinaryOp::Sub | BinaryOp::SubExact, None) => {
                (solved(of_a, known.plus(of_b)), solved(of_b, of_a.minus(known)))
            }
            // A factor is at most the product where the other one is at least 1 and nothing wraps.
            (BinaryOp::Mul | BinaryOp::MulExact, None) if of_a.times(of_b).fits(Type::I64) => {
                let below = |own: Interval, other: Interval| {
                    let holds = !known.is_none() && own.is_nonneg() && other.low >= 1;
                    whole(if holds { own.meet(Interval::new(i128::MIN, known.high)) } else { own })
                };
                (below(of_a, of_b), below(of_b, of_a))
            }
            (_, _) => (whole(of_a), whole(of_b)),
        }
    }
}
