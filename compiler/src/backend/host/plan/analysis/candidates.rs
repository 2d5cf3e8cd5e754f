//! The loops that may be interchanged with the thread loop: a barrier inside needs no mask because of the control flow
//! around them.

use crate::{
    analysis::Rematerializable,
    backend::host::plan::analysis::{
        block_uniformity::shared_by_block,
        divergence::Uniformity,
        guarded,
        structure::{OTHERWISE, Path, cut_here, holds_barrier},
    },
    ir::{Arith, Block, Class, ExprId, Function, Leaf, Stmt, StmtKind, for_each_expr, for_each_stmt},
};

/// Loops that may be interchanged: a barrier inside needs no mask because of the control flow around them.
pub(crate) fn candidates(function: &Function, body: &Block) -> Vec<Path> {
    let fixed = Rematerializable::of(function, body);
    let uniformity = optimistic_uniformity(function, body);
    let mut candidates = Candidates { function, fixed: &fixed, uniformity: &uniformity, found: Vec::new() };
    candidates.collect(body, &mut Vec::new());
    candidates.found
}

/// The uniformity if all innermost loops were interchanged.
pub(crate) fn optimistic_uniformity(function: &Function, body: &Block) -> Uniformity {
    let mut cut = body.clone();
    cut_loops(function, &mut cut);
    uniformity(function, &cut).1
}

/// Inserts a barrier into each innermost loop, as if all of them were interchanged.
fn cut_loops(function: &Function, list: &mut Block) {
    for stmt in list {
        match &mut stmt.kind {
            StmtKind::Loop { body, step } if simple(function, body) && simple(function, step) => {
                body.push(cut_here(stmt.span));
            }
            StmtKind::Loop { body, .. } => cut_loops(function, body),
            StmtKind::If { then, otherwise, .. } => {
                cut_loops(function, then);
                cut_loops(function, otherwise);
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

/// A search for loops that may be interchanged.
struct Candidates<'a> {
    function: &'a Function,
    fixed: &'a Rematerializable,
    /// The uniformity if all loops were interchanged.
    uniformity: &'a Uniformity,
    found: Vec<Path>,
}

impl Candidates<'_> {
    fn collect(&mut self, list: &[Stmt], path: &mut Path) {
        for (index, stmt) in list.iter().enumerate() {
            path.push(index);
            match &stmt.kind {
                StmtKind::Loop { body, .. } if holds_barrier(stmt) => self.collect(body, path),
                StmtKind::Loop { body, step } if simple(self.function, body) && simple(self.function, step) => {
                    self.found.push(path.clone());
                }
                // A loop around an innermost loop is interchanged with it, if its exit is uniform too.
                StmtKind::Loop { body, .. } => self.collect(body, path),
                StmtKind::If { cond, then, otherwise }
                    if otherwise.is_empty() && guarded::is_guard_of_iteration(self.function, self.fixed, *cond) =>
                {
                    self.collect(then, path);
                }
                StmtKind::If { cond, then, otherwise } if self.is_uniform(*cond) => {
                    self.collect(then, path);
                    path.pop();
                    path.push(index + OTHERWISE);
                    self.collect(otherwise, path);
                }
                StmtKind::Assign(..)
                | StmtKind::Store { .. }
                | StmtKind::Op { .. }
                | StmtKind::Call { .. }
                | StmtKind::If { .. }
                | StmtKind::Break
                | StmtKind::Continue
                | StmtKind::Return(_) => {}
            }
            path.pop();
        }
    }

    /// Whether a condition is uniform for the launch, or for the block if the loops around it are interchanged.
    fn is_uniform(&self, cond: ExprId) -> bool {
        is_launch_uniform(self.function, cond) || !self.uniformity.varies(self.function, cond)
    }
}

/// Whether a condition has one value for the whole launch.
pub(crate) fn is_launch_uniform(function: &Function, cond: ExprId) -> bool {
    let mut same = true;
    for_each_expr(function, cond, &mut |id| {
        same &= match function.class(id) {
            Class::Leaf(Leaf::Const(_)) | Class::Arith(_) => true,
            Class::Leaf(Leaf::Local(local)) => function.params.contains(&local),
            Class::Leaf(Leaf::Special(register)) => register.is_of_launch(),
            Class::Leaf(Leaf::Base(_)) | Class::Address { .. } | Class::Load(_) => false,
        };
    });
    same
}

/// Whether LLVM can vectorize statements over a row.
fn simple(function: &Function, block: &[Stmt]) -> bool {
    let mut simple = true;
    for_each_stmt(block, &mut |stmt| {
        simple &= matches!(
            stmt.kind,
            StmtKind::Assign(..) | StmtKind::Store { .. } | StmtKind::If { .. } | StmtKind::Break | StmtKind::Continue
        );
        for root in stmt.kind.exprs() {
            for_each_expr(function, root, &mut |id| {
                simple &= match function.class(id) {
                    Class::Leaf(Leaf::Base(base)) => base.is_of_block(),
                    Class::Arith(
                        Arith::Unary(..)
                        | Arith::Binary(..)
                        | Arith::Compare(..)
                        | Arith::Select(..)
                        | Arith::Convert(_)
                        | Arith::Math(..)
                        | Arith::Wrap { .. },
                    )
                    | Class::Leaf(_)
                    | Class::Address { .. }
                    | Class::Load(_) => true,
                };
            });
        }
    });
    simple
}

/// The rematerializable locals of a body, and its uniformity.
pub(crate) fn uniformity(function: &Function, body: &[Stmt]) -> (Rematerializable, Uniformity) {
    let fixed = Rematerializable::of(function, body);
    let (_, uniformity) = shared_by_block(function, body, &fixed);
    (fixed, uniformity)
}
