//! Traversals of statements and expressions.
//!
//! [`ExprKind::operands`], [`StmtKind::exprs`], [`StmtKind::assigned`] and [`StmtKind::blocks`], and their mutable
//! forms, list the parts of a node. They suffice for most traversals.

use super::{Block, ExprId, ExprKind, Function, LocalId, Stmt, StmtKind};
use crate::stop;

impl ExprKind {
    /// The same kind with its operands replaced by `map`, in order of evaluation.
    #[must_use]
    pub fn map_operands(self, map: &mut dyn FnMut(ExprId) -> ExprId) -> Self {
        match self {
            Self::Unary(op, a) => Self::Unary(op, map(a)),
            Self::Convert(a) => Self::Convert(map(a)),
            Self::Load(a, align) => Self::Load(map(a), align),
            Self::Binary(op, a, b) => Self::Binary(op, map(a), map(b)),
            Self::Compare(op, a, b) => Self::Compare(op, map(a), map(b)),
            Self::Offset { base, index, scale } => Self::Offset { base: map(base), index: map(index), scale },
            Self::ByteOffset { base, bytes } => Self::ByteOffset { base: map(base), bytes: map(bytes) },
            Self::Wrap { index, extent } => Self::Wrap { index: map(index), extent: map(extent) },
            Self::Select(a, b, c) => Self::Select(map(a), map(b), map(c)),
            Self::Math(function, args) => Self::Math(function, args.into_iter().map(map).collect()),
            leaf @ (Self::Const(_)
            | Self::Local(_)
            | Self::Special(_)
            | Self::SharedBase(_)
            | Self::ConstBase(_)
            | Self::DynamicShared
            | Self::LocalBase(_)) => leaf,
        }
    }
}

impl StmtKind {
    /// The roots of the expressions in the statement itself, not of those in nested blocks.
    pub fn exprs(&self) -> Vec<ExprId> {
        match self {
            Self::Assign(_, value) | Self::If { cond: value, .. } => vec![*value],
            Self::Store { pointer, value, .. } => vec![*pointer, *value],
            Self::Op { args: values, .. } | Self::Call { args: values, .. } | Self::Return(values) => values.clone(),
            Self::Loop { .. } | Self::Break | Self::Continue => Vec::new(),
        }
    }

    /// The locals that the statement itself assigns.
    pub fn assigned(&self) -> Vec<LocalId> {
        match self {
            Self::Assign(local, _) => vec![*local],
            Self::Op { results, .. } | Self::Call { results, .. } => results.clone(),
            Self::Store { .. }
            | Self::If { .. }
            | Self::Loop { .. }
            | Self::Break
            | Self::Continue
            | Self::Return(_) => Vec::new(),
        }
    }

    /// The condition of `if condition { break }`, as which a loop's exit test is lowered.
    pub fn exit_condition(&self) -> Option<ExprId> {
        match self {
            Self::If { cond, then, otherwise } => match then.as_slice() {
                [Stmt { kind: Self::Break, .. }] if otherwise.is_empty() => Some(*cond),
                _ => None,
            },
            Self::Assign(..)
            | Self::Store { .. }
            | Self::Op { .. }
            | Self::Call { .. }
            | Self::Loop { .. }
            | Self::Break
            | Self::Continue
            | Self::Return(_) => None,
        }
    }

    /// The nested blocks: `then` and `otherwise`, or `body` and `step`.
    pub fn blocks(&self) -> Option<[&Block; 2]> {
        match self {
            Self::If { then: a, otherwise: b, .. } | Self::Loop { body: a, step: b } => Some([a, b]),
            Self::Assign(..)
            | Self::Store { .. }
            | Self::Op { .. }
            | Self::Call { .. }
            | Self::Break
            | Self::Continue
            | Self::Return(_) => None,
        }
    }

    /// Mutable version of [`StmtKind::blocks`].
    pub fn blocks_mut(&mut self) -> Option<[&mut Block; 2]> {
        match self {
            Self::If { then: a, otherwise: b, .. } | Self::Loop { body: a, step: b } => Some([a, b]),
            Self::Assign(..)
            | Self::Store { .. }
            | Self::Op { .. }
            | Self::Call { .. }
            | Self::Break
            | Self::Continue
            | Self::Return(_) => None,
        }
    }

    /// Calls `visit` on each local that the statement itself assigns, to replace it.
    pub fn for_each_assigned_mut(&mut self, visit: &mut dyn FnMut(&mut LocalId)) {
        match self {
            Self::Assign(local, _) => visit(local),
            Self::Op { results, .. } | Self::Call { results, .. } => results.iter_mut().for_each(visit),
            Self::Store { .. }
            | Self::If { .. }
            | Self::Loop { .. }
            | Self::Break
            | Self::Continue
            | Self::Return(_) => {}
        }
    }

    /// The same statement with its expressions replaced by `map`, in order of evaluation, including those of nested
    /// blocks.
    #[must_use]
    pub fn map_exprs(self, map: &mut dyn FnMut(ExprId) -> ExprId) -> Self {
        match self {
            Self::Assign(local, value) => Self::Assign(local, map(value)),
            Self::Store { pointer, value, align } => Self::Store { pointer: map(pointer), value: map(value), align },
            Self::Op { op, results, args } => Self::Op { op, results, args: args.into_iter().map(map).collect() },
            Self::Call { results, func, args } => {
                Self::Call { results, func, args: args.into_iter().map(map).collect() }
            }
            Self::If { cond, then, otherwise } => {
                Self::If { cond: map(cond), then: map_block(then, map), otherwise: map_block(otherwise, map) }
            }
            Self::Loop { body, step } => Self::Loop { body: map_block(body, map), step: map_block(step, map) },
            Self::Return(values) => Self::Return(values.into_iter().map(map).collect()),
            jump @ (Self::Break | Self::Continue) => jump,
        }
    }

    /// Whether control can reach the next statement.
    pub fn falls_through(&self) -> bool {
        match self {
            Self::Break | Self::Continue | Self::Return(_) => false,
            Self::If { then, otherwise, .. } => falls_through(then) || falls_through(otherwise),
            Self::Loop { body, .. } => has_break(body),
            Self::Assign(..) | Self::Store { .. } | Self::Op { .. } | Self::Call { .. } => true,
        }
    }
}

fn map_block(block: Block, map: &mut dyn FnMut(ExprId) -> ExprId) -> Block {
    block.into_iter().map(|Stmt { kind, span }| Stmt { kind: kind.map_exprs(map), span }).collect()
}

/// Whether control can reach the end of a block.
pub fn falls_through(block: &[Stmt]) -> bool {
    block.iter().all(|stmt| stmt.kind.falls_through())
}

/// Whether a loop's body has a `Break` of this loop.
fn has_break(body: &[Stmt]) -> bool {
    body.iter().any(|stmt| match &stmt.kind {
        StmtKind::Break => true,
        StmtKind::If { then, otherwise, .. } => has_break(then) || has_break(otherwise),
        StmtKind::Assign(..)
        | StmtKind::Store { .. }
        | StmtKind::Op { .. }
        | StmtKind::Call { .. }
        | StmtKind::Loop { .. }
        | StmtKind::Continue
        | StmtKind::Return(_) => false,
    })
}

/// Calls `visit` on every statement of a block and of nested blocks, outer before inner.
pub fn for_each_stmt<'a>(block: &'a [Stmt], visit: &mut dyn FnMut(&'a Stmt)) {
    // Checking here suffices, because a pass over a large function consists of many traversals.
    stop::check();
    for stmt in block {
        visit(stmt);
        for inner in stmt.kind.blocks().into_iter().flatten() {
            for_each_stmt(inner, visit);
        }
    }
}

/// Mutable version of [`for_each_stmt`]. A statement is visited before the statements nested in it.
pub fn for_each_stmt_mut(block: &mut Block, visit: &mut dyn FnMut(&mut Stmt)) {
    for stmt in block {
        visit(stmt);
        for inner in stmt.kind.blocks_mut().into_iter().flatten() {
            for_each_stmt_mut(inner, visit);
        }
    }
}

/// Calls `visit` on an expression and its operands, recursively, parents before children.
pub fn for_each_expr(function: &Function, root: ExprId, visit: &mut dyn FnMut(ExprId)) {
    visit(root);
    for child in function.exprs[root].kind.operands() {
        for_each_expr(function, child, visit);
    }
}

/// Calls `visit` on every expression of the statements of a block, in program order.
pub fn for_each_expr_of_block(function: &Function, block: &Block, visit: &mut dyn FnMut(ExprId)) {
    for_each_stmt(block, &mut |stmt| for_each_expr_of_stmt(function, &stmt.kind, visit));
}

/// Calls `visit` on every expression in a statement itself, not on those in nested blocks.
pub fn for_each_expr_of_stmt(function: &Function, kind: &StmtKind, visit: &mut dyn FnMut(ExprId)) {
    for root in kind.exprs() {
        for_each_expr(function, root, visit);
    }
}
