//! Segments whose threads load and store elements that are nowhere near each other, and do little else: trees of sums.
//!
//! Where a CPU gathers element by element, vectors of such threads only collect and distribute; a loop over single threads does the same
//! loads and stores without that.

use super::{forms::Form, forms::Forms, guards::Peeler, shape::Segment};
use crate::ir::{Arith, BinaryOp, Class, ExprId, Leaf, MathFn, StmtKind, Type, for_each_expr_of_stmt, for_each_stmt};

/// Operations for each element that lies apart; with more of them vectors are worth what it takes to collect them.
const MOST_OPERATIONS: usize = 8;

/// How often a place is looked for in what locals stand for.
const DEPTH: u32 = 12;

/// Whether all that a segment's threads load and store lies apart, and they do little else.
pub(super) fn is(peeler: &Peeler<'_>, segment: &Segment) -> bool {
    let function = &*peeler.function;
    let forms = Forms {
        function,
        fixed: peeler.fixed,
        shared: &|local| !peeler.uniformity.local_varies(local),
        sole: &|_| None,
        axis: 0,
    };
    let (mut apart, mut stores, mut near, mut operations, mut computes) = (0, 0, 0, 0, false);
    let mut touch = |pointer: ExprId, is_store: bool| {
        let Class::Address { base, by, .. } = function.class(pointer) else { return };
        if forms.form(base) != Form::Same || !is_regular(&forms, by, DEPTH) {
            apart += 1;
            stores += usize::from(is_store);
        } else if forms.form(by) != Form::Same {
            near += 1;
        }
    };
    for_each_stmt(&segment.body, &mut |stmt| {
        if let StmtKind::Store { pointer, .. } = stmt.kind {
            touch(pointer, true);
        }
        for_each_expr_of_stmt(function, &stmt.kind, &mut |id| match function.class(id) {
            Class::Load(pointer) => touch(pointer, false),
            Class::Arith(Arith::Math(of, _)) => {
                computes |= !matches!(of, MathFn::Fma | MathFn::Sqrt | MathFn::Bits | MathFn::OfBits);
            }
            Class::Arith(_) => operations += usize::from(function.exprs[id].ty != Type::BOOL),
            Class::Leaf(_) | Class::Address { .. } => {}
        });
    });
    stores > 0 && apart > stores && near == 0 && operations <= MOST_OPERATIONS * apart && !computes
}

/// Whether an index is a sum of what all threads share and of the thread's number, perhaps so many times: LLVM loads such
/// elements in vectors, too, and sorts them.
fn is_regular(forms: &Forms<'_>, id: ExprId, depth: u32) -> bool {
    let Some(depth) = depth.checked_sub(1) else { return false };
    if forms.form(id) != Form::Other {
        return true;
    }
    let function = forms.function;
    match function.class(id) {
        Class::Leaf(Leaf::Local(local)) => {
            // Counters of a thread's loops are the same for neighbors, mostly.
            forms.fixed.value(local).is_none_or(|value| is_regular(forms, value, depth))
        }
        Class::Arith(Arith::Convert(a)) => is_regular(forms, a, depth),
        Class::Arith(Arith::Wrap { index, .. }) => is_regular(forms, index, depth),
        Class::Arith(Arith::Binary(BinaryOp::Add | BinaryOp::AddExact | BinaryOp::Sub | BinaryOp::SubExact, a, b)) => {
            is_regular(forms, a, depth) && is_regular(forms, b, depth)
        }
        Class::Arith(Arith::Binary(BinaryOp::Mul | BinaryOp::MulExact, a, b)) => {
            (function.int(a).is_some() && is_regular(forms, b, depth))
                || (function.int(b).is_some() && is_regular(forms, a, depth))
        }
        Class::Leaf(_) | Class::Arith(_) | Class::Address { .. } | Class::Load(_) => false,
    }
}
