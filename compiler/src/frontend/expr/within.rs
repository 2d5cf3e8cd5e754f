//! Bounds information for the sanitizer: whether the indices are within the view that they access.

use weft_artifact::{HostChecks, Scalar};

use super::index::Index;
use crate::{
    frontend::{lowerer::FnLowerer, prelude::is_own, value::ArrayValue},
    ir::{Check, CompareOp, Const, ExprId, ExprKind, LocalId, Op, StmtKind as Ir, Type},
    source::Span,
};

impl FnLowerer<'_> {
    /// Emits the test whether indices are within bounds, for the sanitizer. Returns the indices and the local with the
    /// result; `None` without the sanitizer.
    pub(super) fn with_bounds_test(
        &mut self,
        array: &ArrayValue,
        mut indices: Vec<Index>,
        span: Span,
    ) -> (Vec<Index>, Option<LocalId>) {
        if !self.cx.sanitize || is_own(&self.def) || !indices.iter().any(|index| matches!(index, Index::At { .. })) {
            return (indices, None);
        }
        let within = self.b.local("within", Type::BOOL);
        let yes = self.b.bool(true, span);
        self.b.assign(within, yes, span);
        let mut axis = 0;
        for index in &mut indices {
            match index {
                Index::At { expr, wraps, known } => {
                    let Some(extent) = array.shape.get(axis).copied() else { break };
                    let local = self.b.temp(*expr, span);
                    let (wraps, known) = (*wraps, *known);
                    let again = |this: &mut Self| Index::At { expr: this.b.read(local, span), wraps, known };
                    let found = again(self);
                    let at = self.wrapped(&found, extent, span);
                    let unsigned = Type::Scalar(Scalar::U64);
                    let (at, end) = (self.b.convert(at, unsigned, span), self.use_atom(extent, span));
                    let end = self.b.convert(end, unsigned, span);
                    let cond = self.b.compare(CompareOp::Ge, at, end, span);
                    self.b.open();
                    let args = vec![self.b.read(local, span), self.use_atom(extent, span)];
                    self.b.op(Op::Check(Check::Bounds(axis as u8)), Vec::new(), args, span);
                    let no = self.b.bool(false, span);
                    self.b.assign(within, no, span);
                    let then = self.b.close();
                    self.stmt(Ir::If { cond, then, otherwise: Vec::new() }, span);
                    *index = again(self);
                    axis += 1;
                }
                Index::Slice { .. } => axis += 1,
                Index::Ellipsis | Index::NewAxis | Index::Name(_) => {}
            }
        }
        (indices, Some(within))
    }

    /// The pointer, or a null pointer if an index is out of bounds, at which nothing is read or written.
    pub(super) fn if_within(&mut self, pointer: ExprId, within: Option<LocalId>, span: Span) -> ExprId {
        let Some(within) = within else { return pointer };
        let ty = self.b.ty(pointer);
        let nowhere = self.b.expr(ExprKind::Const(Const::Address(HostChecks::NOWHERE)), ty, span);
        let within = self.b.read(within, span);
        self.b.select(within, pointer, nowhere, span)
    }
}
