//! Walks over statements and expressions.
//!
//! [`ExprKind::children`], [`StmtKind::exprs`], [`StmtKind::assigned`] and [`StmtKind::blocks`] are the only places
//! that list what a node holds; every walk goes through them, so a new variant is added here once.

use super::{Block, ExprId, ExprKind, Function, LocalId, Stmt, StmtKind};

impl ExprKind {
    /// The operands, in order of evaluation.
    pub fn children(&self) -> Vec<ExprId> {
        match self {
            Self::Const(_)
            | Self::Local(_)
            | Self::Special(_)
            | Self::SharedBase(_)
            | Self::DynamicShared
            | Self::LocalBase(_) => Vec::new(),
            Self::Unary(_, a) | Self::Convert(a) | Self::Load(a) => vec![*a],
            Self::Binary(_, a, b)
            | Self::Compare(_, a, b)
            | Self::Offset { base: a, index: b, .. }
            | Self::ByteOffset { base: a, bytes: b }
            | Self::Wrap { index: a, extent: b } => vec![*a, *b],
            Self::Select(a, b, c) => vec![*a, *b, *c],
            Self::Math(_, args) => args.clone(),
        }
    }
}

impl ExprKind {
    /// The same operation on what `map` makes of its operands, in order of evaluation.
    #[must_use]
    pub fn map_children(self, map: &mut dyn FnMut(ExprId) -> ExprId) -> Self {
        match self {
            Self::Unary(op, a) => Self::Unary(op, map(a)),
            Self::Convert(a) => Self::Convert(map(a)),
            Self::Load(a) => Self::Load(map(a)),
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
            | Self::DynamicShared
            | Self::LocalBase(_)) => leaf,
        }
    }
}

impl StmtKind {
    /// The roots of the expressions that the statement itself holds, not those of the blocks inside it.
    pub fn exprs(&self) -> Vec<ExprId> {
        match self {
            Self::Assign(_, value) | Self::WarpBarrier(value) | Self::If { cond: value, .. } => vec![*value],
            Self::Store { pointer, value } => vec![*pointer, *value],
            Self::Atomic { pointer, value, compare, .. } => {
                let mut exprs = vec![*pointer];
                exprs.extend(*compare);
                exprs.push(*value);
                exprs
            }
            Self::Call { args, .. } => args.clone(),
            Self::Return(values) => values.clone(),
            Self::Barrier | Self::Fence(_) | Self::Loop { .. } | Self::Break | Self::Continue => Vec::new(),
        }
    }

    /// The locals that the statement itself gives a value.
    pub fn assigned(&self) -> Vec<LocalId> {
        match self {
            Self::Assign(local, _) => vec![*local],
            Self::Atomic { result, .. } => result.iter().copied().collect(),
            Self::Call { results, .. } => results.clone(),
            Self::Store { .. }
            | Self::Barrier
            | Self::WarpBarrier(_)
            | Self::Fence(_)
            | Self::If { .. }
            | Self::Loop { .. }
            | Self::Break
            | Self::Continue
            | Self::Return(_) => Vec::new(),
        }
    }

    /// The blocks directly inside: `then` and `otherwise`, or `body` and `step`.
    pub fn blocks(&self) -> Option<[&Block; 2]> {
        match self {
            Self::If { then: a, otherwise: b, .. } | Self::Loop { body: a, step: b } => Some([a, b]),
            Self::Assign(..)
            | Self::Store { .. }
            | Self::Atomic { .. }
            | Self::Call { .. }
            | Self::Barrier
            | Self::WarpBarrier(_)
            | Self::Fence(_)
            | Self::Break
            | Self::Continue
            | Self::Return(_) => None,
        }
    }

    /// As [`StmtKind::blocks`], to change them.
    pub fn blocks_mut(&mut self) -> Option<[&mut Block; 2]> {
        match self {
            Self::If { then: a, otherwise: b, .. } | Self::Loop { body: a, step: b } => Some([a, b]),
            _ => None,
        }
    }
}

/// Calls `visit` on every statement of a block and of the blocks inside it, outer before inner.
pub fn for_each_stmt<'a>(block: &'a [Stmt], visit: &mut dyn FnMut(&'a Stmt)) {
    for stmt in block {
        visit(stmt);
        for inner in stmt.kind.blocks().into_iter().flatten() {
            for_each_stmt(inner, visit);
        }
    }
}

/// As [`for_each_stmt`], to change statements; a statement is visited before those inside it.
pub fn for_each_stmt_mut(block: &mut Block, visit: &mut dyn FnMut(&mut Stmt)) {
    for stmt in block {
        visit(stmt);
        for inner in stmt.kind.blocks_mut().into_iter().flatten() {
            for_each_stmt_mut(inner, visit);
        }
    }
}

/// Calls `visit` on an expression and everything below it, parents before children.
pub fn for_each_expr(function: &Function, root: ExprId, visit: &mut dyn FnMut(ExprId)) {
    visit(root);
    for child in function.exprs[root].kind.children() {
        for_each_expr(function, child, visit);
    }
}

/// Calls `visit` on every expression that the statements of a block reach, in program order.
pub fn for_each_expr_of_block(function: &Function, block: &Block, visit: &mut dyn FnMut(ExprId)) {
    for_each_stmt(block, &mut |stmt| {
        for root in stmt.kind.exprs() {
            for_each_expr(function, root, visit);
        }
    });
}
