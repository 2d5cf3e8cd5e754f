//! Narrows 64-bit locals of which only the lower halves are used.
//!
//! ```text
//! for … { $total = $total + int64(load …) }
//! store $out.data[$i] = int32($total)
//! ```
//!
//! By Numba's rules the sum of an `int32` and a Python integer is `int64`, but most such sums are stored as `int32` in
//! the end. The lower half of a sum, difference, product or bit operation depends only on the lower halves of its
//! operands, so such a local can be `int32`, whatever its value. LLVM narrows expressions for the same reason, but not
//! variables that a loop carries.
//!
//! The index of an access to a small array fits 32 bits, too: `while p[i] != i: i = p[i]` narrows `i`, whatever is known of
//! its first value.

use std::collections::BTreeSet;

use crate::{
    analysis::{Interval, Ranges},
    ir::{Arith, BinaryOp, Class, ExprId, Function, Leaf, LocalId, StmtKind, Type, UnaryOp, for_each_stmt},
};

/// The candidates of which each use reads only the lower half, or at which the value fits 32 bits. `is_narrow` says whether
/// the offset of an address is known to fit 32 bits.
pub(super) fn lower_halves(
    function: &Function,
    ranges: &Ranges,
    is_narrow: &dyn Fn(ExprId) -> bool,
    candidates: BTreeSet<LocalId>,
) -> BTreeSet<LocalId> {
    // An expression, and the local that it is assigned to.
    let mut roots: Vec<(ExprId, Option<LocalId>)> = Vec::new();
    for_each_stmt(&function.body, &mut |stmt| match stmt.kind {
        StmtKind::Assign(local, value) => roots.push((value, Some(local))),
        StmtKind::Store { .. }
        | StmtKind::Op { .. }
        | StmtKind::Call { .. }
        | StmtKind::If { .. }
        | StmtKind::Loop { .. }
        | StmtKind::Break
        | StmtKind::Continue
        | StmtKind::Return(_) => roots.extend(stmt.kind.exprs().into_iter().map(|id| (id, None))),
    });
    let mut uses = Uses { function, ranges, is_narrow, left: candidates };
    loop {
        let before = uses.left.len();
        // In reverse order, since the uses of a local decide which halves of its operands are used.
        for (root, to) in roots.iter().rev() {
            uses.read(*root, to.is_some_and(|to| uses.left.contains(&to)));
        }
        if uses.left.len() == before {
            return uses.left;
        }
    }
}

struct Uses<'a> {
    function: &'a Function,
    ranges: &'a Ranges,
    /// Whether the offset of an address is known to fit 32 bits.
    is_narrow: &'a dyn Fn(ExprId) -> bool,
    /// The locals that may still be narrowed.
    left: BTreeSet<LocalId>,
}

impl Uses<'_> {
    /// Visits an expression; with `lower`, only the lower half of a 64-bit integer is used.
    fn read(&mut self, id: ExprId, lower: bool) {
        let lower = lower && self.function.exprs[id].ty == Type::I64;
        match self.function.class(id) {
            Class::Leaf(Leaf::Local(local)) => {
                if !lower && !self.ranges.expr(self.function, id).fits(Type::I32) {
                    self.left.remove(&local);
                }
            }
            Class::Leaf(_) => {}
            Class::Arith(Arith::Binary(
                BinaryOp::Add
                | BinaryOp::Sub
                | BinaryOp::Mul
                | BinaryOp::AddExact
                | BinaryOp::SubExact
                | BinaryOp::MulExact
                | BinaryOp::And
                | BinaryOp::Or
                | BinaryOp::Xor,
                a,
                b,
            )) => {
                self.read(a, lower);
                self.read(b, lower);
            }
            Class::Arith(Arith::Binary(BinaryOp::Shl, a, by)) => {
                let amount = self.ranges.expr(self.function, by);
                self.read(a, lower && amount.within(Interval::new(0, 31)));
                self.read(by, false);
            }
            Class::Arith(Arith::Unary(UnaryOp::Neg | UnaryOp::Not, a)) => self.read(a, lower),
            Class::Arith(Arith::Select(cond, a, b)) => {
                self.read(cond, false);
                self.read(a, lower);
                self.read(b, lower);
            }
            Class::Arith(Arith::Convert(from)) => {
                self.read(from, lower || super::keeps_lower_half(self.function.exprs[id].ty));
            }
            Class::Arith(
                arith @ (Arith::Binary(..)
                | Arith::Unary(..)
                | Arith::Compare(..)
                | Arith::Math(..)
                | Arith::Wrap { .. }),
            ) => {
                for operand in arith.operands() {
                    self.read(operand, false);
                }
            }
            Class::Address { base, by, .. } => {
                self.read(base, false);
                if (self.is_narrow)(id) { self.read_offset(by) } else { self.read(by, false) }
            }
            Class::Load(pointer) => self.read(pointer, false),
        }
    }

    /// Visits the offset of an access to a small array. An index along an axis that does not fit 32 bits is out of bounds.
    fn read_offset(&mut self, id: ExprId) {
        match self.function.class(id) {
            Class::Arith(Arith::Binary(BinaryOp::Add, a, b)) => {
                self.read_offset(a);
                self.read_offset(b);
            }
            Class::Arith(Arith::Wrap { index, extent }) if self.function.local(index).is_some() => {
                self.read(extent, false);
            }
            Class::Leaf(_) | Class::Arith(_) | Class::Address { .. } | Class::Load(_) => self.read(id, false),
        }
    }
}
