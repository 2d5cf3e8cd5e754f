//! The loops that may be interchanged with the thread loop: a barrier inside needs no mask because of the control flow
//! around them.

use crate::{
    analysis::{
        Rematerializable,
        affine::{Stride, estimated_stride, estimated_strides},
    },
    backend::host::plan::{
        analysis::{
            block_uniformity::shared_by_block,
            divergence::Uniformity,
            guarded, source_lines,
            structure::{OTHERWISE, Path, cut_here, holds_barrier},
        },
        plan_ir::{Divergence, Refusal, Refused, Transformation},
    },
    ir::{
        Arith, BinaryOp, Block, Class, CompareOp, Const, ExprId, ExprKind, Function, Leaf, Stmt, StmtKind,
        for_each_expr, for_each_stmt,
    },
    source::Span,
};

/// Loops that may be interchanged: a barrier inside needs no mask because of the control flow around them.
pub(crate) fn candidates(function: &Function, body: &Block) -> Found {
    let fixed = Rematerializable::of(function, body);
    let uniformity = optimistic_uniformity(function, body);
    let strides = estimated_strides(function, body, 0, &[], &[]);
    let mut candidates =
        Candidates { function, fixed: &fixed, uniformity: &uniformity, strides, found: Found::default() };
    candidates.collect(body, &mut Vec::new());
    candidates.found
}

/// The loops that may be interchanged, and the other ones.
#[derive(Default)]
pub(crate) struct Found {
    /// The paths to the loops that may be interchanged, and the loops in the program.
    pub loops: Vec<(Path, Span)>,
    /// The other loops, and why they may not.
    pub refused: Vec<Refused>,
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
            StmtKind::Loop { body, step } if simple(function, body).and(simple(function, step)).is_ok() => {
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
    /// Estimates of the strides of locals between threads.
    strides: Vec<Stride>,
    found: Found,
}

impl Candidates<'_> {
    fn collect(&mut self, list: &[Stmt], path: &mut Path) {
        for (index, stmt) in list.iter().enumerate() {
            path.push(index);
            match &stmt.kind {
                StmtKind::Loop { body, .. } if holds_barrier(stmt) => self.collect(body, path),
                StmtKind::Loop { body, step } => {
                    match simple(self.function, body).and_then(|()| simple(self.function, step)) {
                        Ok(()) => self.found.loops.push((path.clone(), stmt.span)),
                        // A loop around an innermost loop is interchanged with it, if its exit is uniform too.
                        Err(why) => {
                            self.refuse(stmt.span, why);
                            self.collect(body, path);
                        }
                    }
                }
                StmtKind::If { cond, then, otherwise } if otherwise.is_empty() && self.is_one_thread(*cond) => {
                    for span in source_lines::loops(then) {
                        self.refuse(span, Refusal::OneThread);
                    }
                }
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
                StmtKind::If { cond, .. } => {
                    let cond = self.function.exprs[*cond].span;
                    for span in source_lines::loops(std::slice::from_ref(stmt)) {
                        // A branch on the loop's own bounds decides whether there is an iteration.
                        let is_own = span.contains(cond);
                        let around = if is_own { Divergence::Exit(cond) } else { Divergence::Branch(cond) };
                        self.refuse(span, Refusal::Divergent(around));
                    }
                }
                StmtKind::Assign(..)
                | StmtKind::Store { .. }
                | StmtKind::Op { .. }
                | StmtKind::Call { .. }
                | StmtKind::Break
                | StmtKind::Continue
                | StmtKind::Return(_) => {}
            }
            path.pop();
        }
    }

    fn refuse(&mut self, span: Span, why: Refusal) {
        self.found.refused.push(Refused { span, what: Transformation::Interchange, why });
    }

    /// Whether at most one thread of a row seems to pass a condition.
    fn is_one_thread(&self, cond: ExprId) -> bool {
        let step = |id: ExprId| estimated_stride(self.function, 0, &self.strides, id);
        match self.function.class(cond) {
            Class::Leaf(Leaf::Local(local)) => self.fixed.value(local).is_some_and(|value| self.is_one_thread(value)),
            Class::Arith(Arith::Binary(BinaryOp::And, a, b)) => self.is_one_thread(a) || self.is_one_thread(b),
            Class::Arith(Arith::Select(a, b, no))
                if self.function.exprs[no].kind == ExprKind::Const(Const::Bool(false)) =>
            {
                self.is_one_thread(a) || self.is_one_thread(b)
            }
            Class::Arith(Arith::Compare(CompareOp::Eq, a, b)) => match (step(a), step(b)) {
                (Stride::Constant(a), Stride::Constant(b)) => a != b,
                (
                    Stride::Undefined | Stride::Uniform | Stride::Unknown | Stride::Constant(_),
                    Stride::Undefined | Stride::Uniform | Stride::Unknown | Stride::Constant(_),
                ) => false,
            },
            Class::Leaf(_) | Class::Arith(_) | Class::Address { .. } | Class::Load(_) => false,
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

/// Whether LLVM can vectorize statements over a row. A reason is about a loop inside, if there is one.
fn simple(function: &Function, block: &[Stmt]) -> Result<(), Refusal> {
    let (mut inner, mut refusal) = (None, None);
    for_each_stmt(block, &mut |stmt| {
        let why = match stmt.kind {
            StmtKind::Assign(..)
            | StmtKind::Store { .. }
            | StmtKind::If { .. }
            | StmtKind::Break
            | StmtKind::Continue => None,
            StmtKind::Op { .. } => Some(Refusal::Operation(stmt.span)),
            StmtKind::Call { .. } => Some(Refusal::Call(stmt.span)),
            StmtKind::Return(_) => Some(Refusal::Return(stmt.span)),
            StmtKind::Loop { .. } => {
                inner = inner.or(Some(Refusal::InnerLoop(stmt.span)));
                None
            }
        };
        refusal = refusal.or(why);
        for root in stmt.kind.exprs() {
            for_each_expr(function, root, &mut |id| {
                let is_simple = match function.class(id) {
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
                if !is_simple {
                    refusal = refusal.or(Some(Refusal::ThreadArray(stmt.span)));
                }
            });
        }
    });
    inner.or(refusal).map_or(Ok(()), Err)
}

/// The rematerializable locals of a body, and its uniformity.
pub(crate) fn uniformity(function: &Function, body: &[Stmt]) -> (Rematerializable, Uniformity) {
    let fixed = Rematerializable::of(function, body);
    let (_, uniformity) = shared_by_block(function, body, &fixed);
    (fixed, uniformity)
}
