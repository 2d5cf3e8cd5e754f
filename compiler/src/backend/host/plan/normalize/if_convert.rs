//! If-conversion: replaces short branches whose arms only compute by selects.
//!
//! ```text
//! if $c { $a = $x } else { $b = $y }            $a' = $x
//!                                               $b' = $y
//!                                               $a = select $c, $a', $a
//!                                               $b = select $c, $b, $b'
//! ```
//!
//! Legal if the arms consist of assignments of scalars, whose loads are in bounds also for threads for which the
//! condition does not hold ([`in_bounds`](crate::backend::host::plan::analysis::in_bounds)). Excluded are divisions,
//! remainders, powers and math functions, which cost more than a branch, and loop counters whose additions saturate.
//!
//! Profitable because LLVM then sees a thread loop without control flow. LLVM converts some branches itself, but makes
//! a `switch` of `if` and `elif` over one value, and does not vectorize loops with a `switch`. A load under a condition
//! is a masked load; where the CPU has none for the type, LLVM does not vectorize the loop. A branch with loads stays if
//!
//! - its condition is uniform;
//! - a load is neither uniform nor contiguous: LLVM would gather elements that few threads may need;
//! - the CPU has masked loads for the type, which access no memory that no thread needs, unless LLVM would make a
//!   `switch` of the branch, and the load is from memory that the threads access in any case.

use weft_artifact::Scalar;

use crate::{
    analysis::{
        Rematerializable,
        affine::{Stride, estimated_stride, estimated_strides},
        any_expr, for_each_mention, same,
    },
    backend::host::plan::analysis::{
        block_uniformity::shared_by_block,
        divergence::Uniformity,
        in_bounds::{SpeculativeLoads, speculative_loads},
    },
    ir::{
        Arith, BinaryOp, Block, Class, CompareOp, Expr, ExprId, ExprKind, Function, Leaf, Local, LocalId, LocalKind,
        Module, Stmt, StmtKind, Type, for_each_expr, for_each_stmt,
    },
    source::Span,
};

/// Highest cost of both arms together. An assignment and an operation cost 1 each; reads of locals and constants are
/// free.
const MAX_COST: u32 = 32;

/// The cost of a load.
const LOAD_COST: u32 = 2;

/// The size in bytes from which on elements have masked loads on CPUs with AVX2.
const MASKED_BYTES: u64 = 4;

/// Most passes over a body, each of which converts the innermost branches.
const MAX_PASSES: u32 = 8;

/// Converts the short branches of a kernel's body, from the inside out.
pub(crate) fn convert(module: &Module, function: &mut Function, body: &mut Block, has_masks: bool) {
    for _ in 0..MAX_PASSES {
        let fixed = Rematerializable::of(function, body);
        let loads = Loads::of(module, function, &fixed, body, has_masks);
        let mut mentions = vec![0_u32; function.locals.len()];
        for_each_mention(function, body, &mut |local| mentions[local.index()] += 1);
        if !(Convert { function, fixed, mentions, loads }).list(body) {
            return;
        }
    }
}

struct Convert<'a> {
    function: &'a mut Function,
    fixed: Rematerializable,
    /// How often the body mentions a local, by index, for the locals that it had at first.
    mentions: Vec<u32>,
    /// The loads that may be made without a condition; `None` if there are none.
    loads: Option<Loads>,
}

/// The loads of a kernel's body that may be made without the condition around them.
struct Loads {
    speculative: SpeculativeLoads,
    /// Estimates of the strides of locals between threads.
    strides: Vec<Stride>,
    uniformity: Uniformity,
    /// The CPU has masked loads of all types.
    has_masks: bool,
}

impl Loads {
    /// Analyzes a body, if a branch that only assigns locals has loads.
    fn of(
        module: &Module,
        function: &Function,
        fixed: &Rematerializable,
        body: &[Stmt],
        has_masks: bool,
    ) -> Option<Self> {
        let mut some = false;
        for_each_stmt(body, &mut |stmt| {
            let StmtKind::If { then, otherwise, .. } = &stmt.kind else { return };
            for inner in then.iter().chain(otherwise) {
                let StmtKind::Assign(_, value) = inner.kind else { return };
                some |= any_expr(function, value, &|kind| matches!(kind, ExprKind::Load(..)));
            }
        });
        some.then(|| Self {
            speculative: speculative_loads(module, function, fixed, body),
            strides: estimated_strides(function, body, 0, &[], &[]),
            uniformity: shared_by_block(function, body, fixed).1,
            has_masks,
        })
    }

    /// Whether LLVM would not vectorize the branch around a load, and threads load few elements more without it.
    fn pays(&self, function: &Function, cond: ExprId, (load, pointer): (ExprId, ExprId)) -> bool {
        let Type::Ptr(element, _) = function.exprs[pointer].ty else { return false };
        let size = element.size_bytes();
        let has_mask = self.has_masks || size >= MASKED_BYTES;
        let by = match estimated_stride(function, 0, &self.strides, pointer) {
            Stride::Constant(by) => by.unsigned_abs(),
            Stride::Undefined | Stride::Uniform | Stride::Unknown => return false,
        };
        if has_mask {
            by == size && self.speculative.near.contains(&load) && is_case(function, cond)
        } else {
            by == size || by == 0
        }
    }
}

/// Whether a condition compares an integer with a constant for equality. LLVM may make a `switch` of it.
fn is_case(function: &Function, cond: ExprId) -> bool {
    let ExprKind::Compare(CompareOp::Eq | CompareOp::Ne, a, b) = function.exprs[cond].kind else { return false };
    function.int(a).is_some() || function.int(b).is_some()
}

/// An arm, renamed so that each assignment has a local of its own.
struct Arm {
    body: Block,
    /// Each assigned local, with the local that has its value at the arm's end.
    assigned: Vec<(LocalId, LocalId)>,
}

impl Convert<'_> {
    /// Converts the innermost branches of a list. Returns whether there were any.
    fn list(&mut self, list: &mut Block) -> bool {
        let mut changed = false;
        let mut out = Block::with_capacity(list.len());
        for mut stmt in std::mem::take(list) {
            let mut inside = false;
            if let StmtKind::If { then: first, otherwise: second, .. } | StmtKind::Loop { body: first, step: second } =
                &mut stmt.kind
            {
                inside = self.list(first) | self.list(second);
            }
            changed |= inside;
            let short = match &stmt.kind {
                StmtKind::If { cond, then, otherwise } => !inside && self.is_short(*cond, then, otherwise),
                StmtKind::Assign(..)
                | StmtKind::Store { .. }
                | StmtKind::Op { .. }
                | StmtKind::Call { .. }
                | StmtKind::Loop { .. }
                | StmtKind::Break
                | StmtKind::Continue
                | StmtKind::Return(_) => false,
            };
            if let (true, StmtKind::If { cond, then, otherwise }) = (short, &stmt.kind) {
                self.branch(*cond, then, otherwise, stmt.span, &mut out);
                changed = true;
            } else {
                out.push(stmt);
            }
        }
        *list = out;
        changed
    }

    fn is_short(&self, cond: ExprId, then: &[Stmt], otherwise: &[Stmt]) -> bool {
        let mut cost = 0_u32;
        let loads = self.loads.as_ref().filter(|loads| loads.uniformity.varies(self.function, cond));
        let mut pure = !(then.is_empty() && otherwise.is_empty());
        for stmt in then.iter().chain(otherwise) {
            let StmtKind::Assign(local, value) = stmt.kind else { return false };
            cost += 1;
            pure &= matches!(self.function.locals[local].ty, Type::Scalar(_));
            for_each_expr(self.function, value, &mut |id| match self.function.class(id) {
                Class::Leaf(_) => {}
                Class::Arith(arith) => {
                    cost += 1;
                    pure &= is_cheap(arith);
                }
                Class::Address { .. } => {}
                Class::Load(pointer) => {
                    cost += LOAD_COST;
                    pure &= loads.is_some_and(|loads| {
                        loads.pays(self.function, cond, (id, pointer))
                            && legal!("if_convert.in-bounds", loads.speculative.in_bounds.contains(&id))
                    });
                }
            });
        }
        pure && cost <= MAX_COST
    }

    fn branch(&mut self, cond: ExprId, then: &[Stmt], otherwise: &[Stmt], span: Span, out: &mut Block) {
        let decided = self.function.locals.push(Local::new("cond", LocalKind::Variable, Type::BOOL));
        let mut kept = Vec::new();
        for stmt in then.iter().chain(otherwise) {
            kept.extend(stmt.kind.assigned().into_iter().filter(|&local| {
                self.fixed.value(local).is_some()
                    || self.stays_inside(local, then)
                    || self.stays_inside(local, otherwise)
            }));
        }
        out.push(Stmt { kind: StmtKind::Assign(decided, cond), span });
        let then = self.arm(then, &kept);
        let otherwise = self.arm(otherwise, &kept);
        let mut changed: Vec<LocalId> =
            then.assigned.iter().chain(&otherwise.assigned).map(|&(local, _)| local).collect();
        changed.sort_unstable();
        changed.dedup();
        out.extend(then.body.iter().cloned());
        out.extend(otherwise.body.iter().cloned());
        for local in changed {
            let ty = self.function.locals[local].ty;
            let cond = self.function.edit(span).read(decided);
            let (yes, no) = (self.end(&then, local, span), self.end(&otherwise, local, span));
            let value = self.function.exprs.push(Expr { kind: ExprKind::Select(cond, yes, no), ty, span });
            out.push(Stmt { kind: StmtKind::Assign(local, value), span });
        }
    }

    /// The value of a local at an arm's end. A constant is inlined: a select of constants is an `and` or `or` of
    /// comparisons, from which later passes make bounds.
    fn end(&mut self, arm: &Arm, local: LocalId, span: Span) -> ExprId {
        let last = arm.assigned.iter().find(|(of, _)| *of == local).map_or(local, |&(_, at)| at);
        let constant = arm.body.iter().find_map(|stmt| match stmt.kind {
            StmtKind::Assign(to, value) if to == last => match self.function.class(value) {
                Class::Leaf(Leaf::Const(constant)) => Some(constant),
                Class::Leaf(_) | Class::Arith(_) | Class::Address { .. } | Class::Load(_) => None,
            },
            StmtKind::Assign(..)
            | StmtKind::Store { .. }
            | StmtKind::Op { .. }
            | StmtKind::Call { .. }
            | StmtKind::If { .. }
            | StmtKind::Loop { .. }
            | StmtKind::Break
            | StmtKind::Continue
            | StmtKind::Return(_) => None,
        });
        let ty = self.function.locals[local].ty;
        match constant {
            Some(constant) => self.function.exprs.push(Expr { kind: ExprKind::Const(constant), ty, span }),
            None => self.function.edit(span).read(last),
        }
    }

    /// Whether no code outside of an arm mentions a local. The arm then assigns it before it reads it: code never reads a
    /// local before that.
    fn stays_inside(&self, local: LocalId, arm: &[Stmt]) -> bool {
        let Some(&everywhere) = self.mentions.get(local.index()) else { return false };
        let mut inside = 0;
        for_each_mention(self.function, arm, &mut |seen| inside += u32::from(seen == local));
        legal!("if_convert.one-arm", inside == everywhere)
    }

    /// Copies an arm's statements, with a new local for each assignment except those to locals in `kept`.
    fn arm(&mut self, arm: &[Stmt], kept: &[LocalId]) -> Arm {
        let mut body = Block::new();
        let mut now: Vec<(LocalId, LocalId)> = Vec::new();
        for stmt in arm {
            let StmtKind::Assign(local, value) = stmt.kind else { continue };
            let mut reads = Vec::new();
            for_each_expr(self.function, value, &mut |id| {
                if let ExprKind::Local(read) = self.function.exprs[id].kind
                    && let Some(&(_, at)) = now.iter().find(|(of, _)| *of == read)
                {
                    reads.push((id, at));
                }
            });
            // Expressions are trees, so that only this arm reads these.
            for (id, at) in reads {
                self.function.exprs[id].kind = ExprKind::Local(at);
            }
            let to = if kept.contains(&local) {
                local
            } else {
                let new = Local::new(
                    self.function.locals[local].name.clone(),
                    LocalKind::Variable,
                    self.function.locals[local].ty,
                );
                let new = self.function.locals.push(new);
                now.retain(|(of, _)| *of != local);
                now.push((local, new));
                new
            };
            body.push(Stmt { kind: StmtKind::Assign(to, value), span: stmt.span });
        }
        Arm { body, assigned: now }
    }
}

/// Whether an operation takes about as long as a branch at most, whatever its operands are.
fn is_cheap(arith: Arith<'_>) -> bool {
    match arith {
        Arith::Unary(..) | Arith::Compare(..) | Arith::Select(..) | Arith::Convert(_) | Arith::Wrap { .. } => true,
        Arith::Binary(op, ..) => is_cheap_operator(op),
        Arith::Math(..) => false,
    }
}

const fn is_cheap_operator(op: BinaryOp) -> bool {
    match op {
        BinaryOp::Add
        | BinaryOp::Sub
        | BinaryOp::Mul
        | BinaryOp::AddExact
        | BinaryOp::SubExact
        | BinaryOp::MulExact
        | BinaryOp::Shl
        | BinaryOp::Shr
        | BinaryOp::And
        | BinaryOp::Or
        | BinaryOp::Xor
        | BinaryOp::Min
        | BinaryOp::Max => true,
        BinaryOp::Div
        | BinaryOp::FloorDiv
        | BinaryOp::FloorMod
        | BinaryOp::DivNonneg
        | BinaryOp::ModNonneg
        | BinaryOp::Pow => false,
    }
}

/// Recognizes the min/max idiom: integer selects such as `w if a < w else a` become minima and maxima, the form of a
/// clamp that index-set splitting recognizes.
pub(crate) fn extrema(function: &mut Function) {
    let ids: Vec<ExprId> = function.exprs.iter().map(|(id, _)| id).collect();
    for id in ids {
        let ExprKind::Select(cond, yes, no) = function.exprs[id].kind else { continue };
        let ExprKind::Compare(op, a, b) = function.exprs[cond].kind else { continue };
        let ty = function.exprs[id].ty;
        let is_int = ty.scalar().is_some_and(Scalar::is_int) && ty != Type::BOOL && function.exprs[a].ty == ty;
        // Spin loops load a value twice on purpose, to see another thread's store in between.
        let loads = any_expr(function, cond, &|kind| matches!(kind, ExprKind::Load(..)));
        if !legal!("extrema.integer", is_int) || loads {
            continue;
        }
        let (same_order, swapped) =
            (same(function, a, yes) && same(function, b, no), same(function, a, no) && same(function, b, yes));
        let less = match op {
            CompareOp::Lt | CompareOp::Le => true,
            CompareOp::Gt | CompareOp::Ge => false,
            CompareOp::Eq | CompareOp::Ne => continue,
        };
        if same_order || swapped {
            let op = if less == same_order { BinaryOp::Min } else { BinaryOp::Max };
            function.exprs[id].kind = ExprKind::Binary(op, a, b);
        }
    }
}
