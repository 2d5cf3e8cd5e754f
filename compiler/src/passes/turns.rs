//! What the test at the start of a loop says about a turn.

use crate::ir::{
    BinaryOp, Block, CompareOp, ExprId, ExprKind, Function, LocalId, Stmt, StmtKind, UnaryOp, for_each_stmt,
};

/// The innermost loop around a statement, which starts with `if not test { break }`: without `test`, there is no turn.
#[derive(Clone, Copy)]
pub(super) struct Around<'a> {
    test: ExprId,
    blocks: [&'a Block; 2],
}

impl<'a> Around<'a> {
    /// The loop, if it starts with such a test.
    pub(super) fn of(function: &Function, body: &'a Block, step: &'a Block) -> Option<Self> {
        let StmtKind::If { cond, then, otherwise } = &body.first()?.kind else { return None };
        let leaves = matches!(then.as_slice(), [Stmt { kind: StmtKind::Break, .. }]) && otherwise.is_empty();
        let ExprKind::Unary(UnaryOp::Not, test) = function.exprs[*cond].kind else { return None };
        leaves.then_some(Self { test, blocks: [body, step] })
    }

    /// Whether a turn gives a local a value in one place, and at most once: until then it is what the test saw.
    pub(super) fn assigns_once(self, local: LocalId) -> bool {
        let mut assignments = 0;
        let mut in_inner_loop = false;
        for block in self.blocks {
            for_each_stmt(block, &mut |stmt| {
                assignments += usize::from(stmt.kind.assigned().contains(&local));
                if let StmtKind::Loop { body, step } = &stmt.kind {
                    for inner in [body, step] {
                        for_each_stmt(inner, &mut |stmt| in_inner_loop |= stmt.kind.assigned().contains(&local));
                    }
                }
            });
        }
        assignments == 1 && !in_inner_loop
    }

    /// Whether the test shows that a local is below something for which `holds`; its second argument says that the
    /// local may also be equal to it.
    pub(super) fn is_below(
        self,
        function: &Function,
        local: LocalId,
        holds: &mut dyn FnMut(ExprId, bool) -> bool,
    ) -> bool {
        below(function, self.test, local, holds)
    }
}

fn below(function: &Function, test: ExprId, local: LocalId, holds: &mut dyn FnMut(ExprId, bool) -> bool) -> bool {
    if let ExprKind::Binary(BinaryOp::And, a, b) = function.exprs[test].kind {
        return below(function, a, local, holds) || below(function, b, local, holds);
    }
    let ExprKind::Compare(op, a, b) = function.exprs[test].kind else { return false };
    let (lesser, greater, or_equal) = match op {
        CompareOp::Lt => (a, b, false),
        CompareOp::Le => (a, b, true),
        CompareOp::Gt => (b, a, false),
        CompareOp::Ge => (b, a, true),
        CompareOp::Eq | CompareOp::Ne => return false,
    };
    function.exprs[lesser].kind == ExprKind::Local(local) && holds(greater, or_equal)
}
