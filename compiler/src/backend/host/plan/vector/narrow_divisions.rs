//! Divides the 64-bit index of a row's first thread once, and a 32-bit number for each thread.
//!
//! ```text
//! for x in row:                             q, r = first // 9, first % 9
//!     i = first + x                         for x in row:
//!     a[x] = i % 9                              a[x] = (r + x) % 9
//!     b[x] = i // 9                             b[x] = q + (r + x) // 9
//! ```
//!
//! A division by a constant is a multiplication whose high half is the quotient. No CPU has one for vectors of 64-bit
//! integers, so LLVM divides such an index lane by lane, and a segment that only holds vectors otherwise stores each
//! lane's value by itself. `r + x` has few bits.
//!
//! Legal if the dividend has unit stride along the row and does not wrap, and if the divisor is a constant:
//! `first // n` and `first % n` round to minus infinity, so `first` may be negative. A row has at most [`MAX_ROW`]
//! threads, except in a tile.
//!
//! Pays for each thread loop: the two divisions per thread become narrower, and the others are loop-invariant. A
//! division by a power of two is a shift or a mask already.

use crate::{
    backend::host::plan::{
        analysis::strides::{Form, Forms},
        plan_ir::{MAX_ROW, Runs, Segment, guards::Peeler},
    },
    ir::{
        Arith, BinaryOp, Block, Class, Const, Expr, ExprId, ExprKind, Leaf, SpecialRegister, Type, for_each_expr,
        for_each_stmt,
    },
};

/// The largest divisor: its sum with a thread index is a small 32-bit integer.
const MAX_DIVISOR: i128 = 1 << 20;

/// Most expressions of the first thread's index, whose rematerializable locals are replaced by their values.
const MAX_EXPRS: u32 = 64;

const _: () = assert!(MAX_ROW as i128 + MAX_DIVISOR < i32::MAX as i128, "the narrow dividend is a 32-bit integer");

/// Rewrites the divisions of a segment that runs for each thread of the block.
pub(crate) fn narrow(peeler: &mut Peeler<'_>, segment: &Segment) {
    if segment.runs != Runs::EachThread || segment.shape.is_some() {
        return;
    }
    let mut found = Vec::new();
    for body in segment.bodies() {
        collect(peeler, body, &mut found);
    }
    for Division { id, dividend, by, is_quotient } in found {
        // A copy may share its expressions with the body.
        if matches!(peeler.function.exprs[id].kind, ExprKind::Binary(_, value, _) if value == dividend)
            && let Some(first) = (Copy { peeler: &mut *peeler, left: MAX_EXPRS }).first(dividend)
        {
            rewrite(peeler, id, first, by, is_quotient);
        }
    }
}

/// A division of a value with unit stride.
struct Division {
    id: ExprId,
    dividend: ExprId,
    by: i128,
    is_quotient: bool,
}

fn collect(peeler: &Peeler<'_>, body: &Block, found: &mut Vec<Division>) {
    let Peeler { function, uniformity, fixed, .. } = peeler;
    let shared = |local| !uniformity.local_varies(local);
    let forms = Forms { function, fixed, shared: &shared, sole: &|_| None, axis: 0 };
    for_each_stmt(body, &mut |stmt| {
        for root in stmt.kind.exprs() {
            for_each_expr(function, root, &mut |id| {
                let ExprKind::Binary(op, dividend, by) = function.exprs[id].kind else { return };
                let is_quotient = matches!(op, BinaryOp::DivNonneg | BinaryOp::FloorDiv);
                let divides = is_quotient || matches!(op, BinaryOp::ModNonneg | BinaryOp::FloorMod);
                if !divides || function.exprs[id].ty != Type::I64 {
                    return;
                }
                let Some(by) = function.int(by) else { return };
                let pays = (3..=MAX_DIVISOR).contains(&by) && by & (by - 1) != 0;
                // Other dividends, such as `x + x`, are `first + threadIdx.x` only with a value that varies.
                if pays
                    && forms.form(dividend) == Form::Step
                    && legal!("narrow_divisions.no-wrap", !forms.wraps(dividend))
                {
                    found.push(Division { id, dividend, by, is_quotient });
                }
            });
        }
    });
}

/// Replaces a division by one of `first % by + threadIdx.x`.
fn rewrite(peeler: &mut Peeler<'_>, id: ExprId, first: ExprId, by: i128, is_quotient: bool) {
    let exprs = &mut peeler.function.exprs;
    let span = exprs[id].span;
    let mut push = |kind, ty| exprs.push(Expr { kind, ty, span });
    let wide_by = push(ExprKind::Const(Const::Int(by)), Type::I64);
    let rest = push(ExprKind::Binary(BinaryOp::FloorMod, first, wide_by), Type::I64);
    let rest = push(ExprKind::Convert(rest), Type::I32);
    let x = push(ExprKind::Special(SpecialRegister::ThreadIdx(0)), Type::I32);
    let sum = push(ExprKind::Binary(BinaryOp::AddExact, rest, x), Type::I32);
    let narrow_by = push(ExprKind::Const(Const::Int(by)), Type::I32);
    let op = if is_quotient { BinaryOp::DivNonneg } else { BinaryOp::ModNonneg };
    let narrow = push(ExprKind::Binary(op, sum, narrow_by), Type::I32);
    let kind = if is_quotient {
        // An expression has one parent.
        let again = peeler.function.copy_expr(first);
        let exprs = &mut peeler.function.exprs;
        let mut push = |kind, ty| exprs.push(Expr { kind, ty, span });
        let wide_by = push(ExprKind::Const(Const::Int(by)), Type::I64);
        let quotient = push(ExprKind::Binary(BinaryOp::FloorDiv, again, wide_by), Type::I64);
        let narrow = push(ExprKind::Convert(narrow), Type::I64);
        ExprKind::Binary(BinaryOp::Add, quotient, narrow)
    } else {
        ExprKind::Convert(narrow)
    };
    peeler.function.exprs[id].kind = kind;
}

/// A copy of an index for the first thread of the row.
struct Copy<'a, 'b> {
    peeler: &'a mut Peeler<'b>,
    /// The number of expressions that may still be copied.
    left: u32,
}

impl Copy<'_, '_> {
    /// The value of an index with unit stride for `threadIdx.x == 0`. `None` if its form is not supported.
    fn first(&mut self, id: ExprId) -> Option<ExprId> {
        self.left = self.left.checked_sub(1)?;
        let (ty, span) = (self.peeler.function.exprs[id].ty, self.peeler.function.exprs[id].span);
        let kind = match self.peeler.function.class(id) {
            Class::Leaf(Leaf::Special(SpecialRegister::ThreadIdx(0))) => ExprKind::Const(Const::Int(0)),
            Class::Leaf(Leaf::Local(local)) => return self.first(self.peeler.fixed.value(local)?),
            Class::Arith(Arith::Convert(a)) => ExprKind::Convert(self.first(a)?),
            // A 32-bit sum is exact for each thread, but may not be for the first one if it has other operands.
            Class::Arith(Arith::Binary(BinaryOp::AddExact, a, b)) if ty == Type::I32 => {
                return match (self.is_thread_index(a), self.is_thread_index(b)) {
                    (true, false) => self.uniform(b),
                    (false, true) => self.uniform(a),
                    (true, true) | (false, false) => None,
                };
            }
            Class::Arith(Arith::Binary(BinaryOp::Add, a, b)) if self.form(a) == Form::Same => {
                ExprKind::Binary(BinaryOp::Add, self.uniform(a)?, self.first(b)?)
            }
            Class::Arith(Arith::Binary(op @ (BinaryOp::Add | BinaryOp::Sub), a, b)) => {
                ExprKind::Binary(op, self.first(a)?, self.uniform(b)?)
            }
            Class::Leaf(_) | Class::Arith(_) | Class::Address { .. } | Class::Load(_) => return None,
        };
        Some(self.peeler.function.exprs.push(Expr { kind, ty, span }))
    }

    /// A copy of a value that is uniform in the row, without varying locals, which a segment need not have computed.
    fn uniform(&mut self, id: ExprId) -> Option<ExprId> {
        self.left = self.left.checked_sub(1)?;
        let Expr { kind, ty, span } = self.peeler.function.exprs[id].clone();
        if let ExprKind::Local(local) = kind
            && self.peeler.uniformity.local_varies(local)
        {
            return self.uniform(self.peeler.fixed.value(local)?);
        }
        let mut complete = true;
        let kind = kind.map_operands(&mut |child| {
            let copy = self.uniform(child);
            complete &= copy.is_some();
            copy.unwrap_or(child)
        });
        complete.then(|| self.peeler.function.exprs.push(Expr { kind, ty, span }))
    }

    fn is_thread_index(&self, id: ExprId) -> bool {
        self.peeler.function.exprs[id].kind == ExprKind::Special(SpecialRegister::ThreadIdx(0))
    }

    fn form(&self, id: ExprId) -> Form {
        let Peeler { function, uniformity, fixed, .. } = &*self.peeler;
        let shared = |local| !uniformity.local_varies(local);
        Forms { function, fixed, shared: &shared, sole: &|_| None, axis: 0 }.form(id)
    }
}
