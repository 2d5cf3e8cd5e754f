//! Dynamic shared memory: the launch of an adjoint or tangent kernel passes the kernel's bytes, rounded up to a multiple
//! of 16, and as many bytes as the kernel has once more, for the adjoints
//! ([`Derivative::shared_bytes`](crate::request::Derivative::shared_bytes)).

use crate::{
    ir::{BinaryOp, Const, ExprId, ExprKind, Function, SpecialRegister, Type, for_each_expr_of_block},
    source::Span,
};

/// The alignment of the adjoints.
const ALIGN: i128 = 16;

/// The bytes in front of the adjoints: `((all + 1) / 2 + 15) & -16`, for `all` bytes of the launch.
pub(super) fn first_adjoint(function: &mut Function, ty: Type, span: Span) -> ExprId {
    let all = register(function, ty, span);
    let mut edit = function.edit(span);
    let int = |value| ExprKind::Const(Const::Int(value));
    let (one, bit, rest, mask) =
        (edit.expr(int(1), ty), edit.expr(int(1), ty), edit.expr(int(ALIGN - 1), ty), edit.expr(int(-ALIGN), ty));
    let more = edit.binary(BinaryOp::Add, all, one);
    let half = edit.binary(BinaryOp::Shr, more, bit);
    let above = edit.binary(BinaryOp::Add, half, rest);
    edit.binary(BinaryOp::And, above, mask)
}

/// The bytes that the launch of the kernel has, an `I64`.
pub(super) fn size(function: &mut Function, span: Span) -> ExprId {
    let all = register(function, Type::I64, span);
    let before = first_adjoint(function, Type::I64, span);
    function.edit(span).binary(BinaryOp::Sub, all, before)
}

/// Makes the kernel's reads of the number of bytes those of its own bytes.
pub(super) fn without_adjoints(function: &mut Function) {
    let mut reads = Vec::new();
    let is_read = |kind: &ExprKind| matches!(kind, ExprKind::Special(SpecialRegister::DynamicSharedBytes));
    for_each_expr_of_block(function, &function.body, &mut |id| {
        if is_read(&function.exprs[id].kind) {
            reads.push(id);
        }
    });
    for id in reads {
        let (ty, span) = (function.exprs[id].ty, function.exprs[id].span);
        let all = register(function, ty, span);
        let before = first_adjoint(function, ty, span);
        function.exprs[id].kind = ExprKind::Binary(BinaryOp::Sub, all, before);
    }
}

/// The bytes of the launch.
fn register(function: &mut Function, ty: Type, span: Span) -> ExprId {
    let mut edit = function.edit(span);
    let all = edit.expr(ExprKind::Special(SpecialRegister::DynamicSharedBytes), Type::I32);
    if ty == Type::I32 { all } else { edit.expr(ExprKind::Convert(all), ty) }
}
