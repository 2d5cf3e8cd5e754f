//! In adjoint kernels for GPUs, combines the additions of several threads to one element of a gradient.
//!
//! ```text
//! atomic.add w.adjoint[k], t        mask = active_mask; same = match.all(mask, k)
//!                                   if mask == -1 and same {
//!                                       t = sum of t over the warp
//!                                       if lane == 0 { add(k, t) }
//!                                   } else { add(k, t) }
//! ```
//!
//! `add` adds to a copy of the first elements in shared memory, which is added to the gradient at the end of the kernel,
//! and to the gradient for other elements. An element whose address is the same in the whole grid (the gradient of a
//! scalar, `w[0]`) has a local, which is summed over the block at the end.
//!
//! Legal: nothing observes when an addition is executed, since the kernel does not access these arrays otherwise, and the
//! arrays of an adjoint kernel do not overlap. Whether the lanes of a warp add to the same element is tested at run time,
//! because lanes that are active together may be in different iterations. All threads reach the end of the kernel, and no
//! thread returns before.
//!
//! Profitable if the lanes are likely to add to the same element: the index depends on no `threadIdx.x`. A GPU executes
//! atomic operations on one element one after the other, in 2 to 4 ns each on an H200. `slides`
//! has additions to adjacent elements, `shared` those to shared memory; `rotate`,
//! `transpose` and `interchange` have those of loops.

mod blocks;
mod interchange;
mod loops;
mod rotate;
mod shared;
mod slides;
mod transpose;
mod warps;

use std::collections::BTreeSet;

use weft_artifact::Scalar;

use self::blocks::Copy;
pub(crate) use self::loops::{Counted, counted};
use crate::{
    analysis::{Access, any_expr, escapes, for_each_access, for_each_read},
    ir::{
        AtomicOp, BinaryOp, Block, Class, CompareOp, Const, Expr, ExprId, ExprKind, Function, Local, LocalId,
        LocalKind, Module, Op, Space, SpecialRegister, Stmt, StmtKind, Type, for_each_stmt,
    },
    source::Span,
};

/// The warp size.
const LANES: i128 = 32;

const ALL_LANES: i128 = -1;

/// What differs between the lanes of a warp.
const OF_LANE: &[SpecialRegister] = &[SpecialRegister::ThreadIdx(0), SpecialRegister::LaneId];

/// Runs the pass.
pub(super) fn run(module: &mut Module) {
    let Some(kernel) = module.kernel.filter(|_| module.is_adjoint) else { return };
    let mut function = std::mem::replace(
        &mut module.functions[kernel],
        Function::new("", crate::ir::FunctionKind::Kernel, Span::default()),
    );
    let mut body = std::mem::take(&mut function.body);
    if !escapes(&body).returns {
        let span = function.span;
        let uniform = Uniform::of(&function, &body, OF_LANE);
        let mut combiner = Combiner {
            function: &mut function,
            module,
            uniform,
            copies: Vec::new(),
            only_added_to: BTreeSet::new(),
            of_lane: BTreeSet::new(),
            span,
        };
        let reads = loops::reads_of(combiner.function, &body);
        combiner.interchange(&mut body, &reads);
        combiner.share(&mut body);
        combiner.find_only_added_to(&body);
        let sums = combiner.sums(&mut body);
        combiner.find_copies(&body);
        let reads = loops::reads_of(combiner.function, &body);
        combiner.rotate(&mut body, &reads);
        combiner.uniform = Uniform::of(combiner.function, &body, OF_LANE);
        combiner.find_of_lane(&body);
        combiner.slide(&mut body);
        combiner.block(&mut body);
        combiner.around(&mut body, &sums);
    }
    function.body = body;
    module.functions[kernel] = function;
}

/// Locals that depend on none of some special registers, except by branches.
struct Uniform {
    locals: BTreeSet<LocalId>,
    registers: &'static [SpecialRegister],
}

impl Uniform {
    fn of(function: &Function, body: &Block, registers: &'static [SpecialRegister]) -> Self {
        let mut uniform = Self { locals: function.locals.iter().map(|(local, _)| local).collect(), registers };
        loop {
            let mut varying = Vec::new();
            for_each_stmt(body, &mut |stmt| match stmt.kind {
                StmtKind::Assign(local, value) => {
                    if !uniform.has(function, value) {
                        varying.push(local);
                    }
                }
                StmtKind::Op { .. } | StmtKind::Call { .. } => varying.extend(stmt.kind.assigned()),
                StmtKind::Store { .. }
                | StmtKind::If { .. }
                | StmtKind::Loop { .. }
                | StmtKind::Break
                | StmtKind::Continue
                | StmtKind::Return(_) => {}
            });
            let before = uniform.locals.len();
            for local in &varying {
                uniform.locals.remove(local);
            }
            if uniform.locals.len() == before {
                return uniform;
            }
        }
    }

    fn has(&self, function: &Function, id: ExprId) -> bool {
        let mut has = true;
        for_each_read(function, id, &mut |local| has &= self.locals.contains(&local));
        let is_register = |kind: &ExprKind| {
            if let ExprKind::Special(register) = kind { self.registers.contains(register) } else { false }
        };
        has && !any_expr(function, id, &is_register)
    }
}

struct Combiner<'a> {
    function: &'a mut Function,
    module: &'a mut Module,
    /// What is likely the same in all lanes of a warp.
    uniform: Uniform,
    /// The arrays that the kernel accesses only by additions.
    only_added_to: BTreeSet<LocalId>,
    /// The locals that are computed from `threadIdx.x` without a factor.
    of_lane: BTreeSet<LocalId>,
    copies: Vec<Copy>,
    span: Span,
}

/// The address and the term of an addition of floats in a memory space; of 16-bit floats, a float32.
fn addition_in(function: &Function, stmt: &Stmt, space: Space) -> Option<(ExprId, ExprId)> {
    let StmtKind::Op { op: Op::Atomic { op: AtomicOp::Add, .. }, results, args } = &stmt.kind else { return None };
    let &[pointer, term] = args.as_slice() else { return None };
    let Type::Ptr(elem, of) = function.exprs[pointer].ty else { return None };
    if of != space || !results.is_empty() {
        return None;
    }
    if !elem.is_half() {
        return elem.is_float().then_some((pointer, term));
    }
    // A sum of 16-bit floats is one of float32, which the last addition rounds.
    let ExprKind::Convert(wide) = function.exprs[term].kind else { return None };
    let fits = of == Space::Global && function.exprs[wide].ty == Type::Scalar(Scalar::F32);
    fits.then_some((pointer, wide))
}

/// The type of sums of elements.
fn sum_type(elem: Scalar) -> Scalar {
    if elem.is_half() { Scalar::F32 } else { elem }
}

/// The address and the term of an addition of floats in global memory.
fn addition(function: &Function, stmt: &Stmt) -> Option<(ExprId, ExprId)> {
    addition_in(function, stmt, Space::Global)
}

/// Whether an address depends on a loaded value.
fn reads_memory(function: &Function, pointer: ExprId) -> bool {
    any_expr(function, pointer, &|kind| matches!(kind.class(), Class::Load(_)))
}

/// The parameter and the index of an address of one offset.
fn element(function: &Function, pointer: ExprId) -> Option<(LocalId, ExprId)> {
    let Class::Address { base, by, .. } = function.class(pointer) else { return None };
    function.local(base).filter(|local| function.params.contains(local)).map(|param| (param, by))
}

/// The parameter that an address is computed from.
fn root(function: &Function, pointer: ExprId) -> Option<LocalId> {
    match function.class(pointer) {
        Class::Leaf(_) => function.local(pointer).filter(|local| function.params.contains(local)),
        Class::Address { base, .. } => root(function, base),
        Class::Arith(_) | Class::Load(_) => None,
    }
}

impl Combiner<'_> {
    fn expr(&mut self, kind: ExprKind, ty: Type) -> ExprId {
        self.function.exprs.push(Expr { kind, ty, span: self.span })
    }

    fn read(&mut self, local: LocalId) -> ExprId {
        let ty = self.function.locals[local].ty;
        self.expr(ExprKind::Local(local), ty)
    }

    fn int(&mut self, value: i128, ty: Type) -> ExprId {
        self.expr(ExprKind::Const(Const::Int(value)), ty)
    }

    fn binary(&mut self, op: BinaryOp, a: ExprId, b: ExprId) -> ExprId {
        let ty = self.function.exprs[a].ty;
        self.expr(ExprKind::Binary(op, a, b), ty)
    }

    fn compare(&mut self, op: CompareOp, a: ExprId, b: ExprId) -> ExprId {
        self.expr(ExprKind::Compare(op, a, b), Type::BOOL)
    }

    fn zero(&mut self, ty: Type) -> ExprId {
        self.expr(ExprKind::Const(Const::Float(0.0)), ty)
    }

    /// A special register as an `int64`.
    fn special(&mut self, register: SpecialRegister) -> ExprId {
        let value = self.expr(ExprKind::Special(register), Type::I32);
        self.expr(ExprKind::Convert(value), Type::I64)
    }

    fn temp(&mut self, name: &str, ty: Type) -> LocalId {
        self.function.locals.push(Local::new(name, LocalKind::Temp, ty))
    }

    fn stmt(&self, kind: StmtKind) -> Stmt {
        Stmt { kind, span: self.span }
    }

    fn assign(&self, local: LocalId, value: ExprId) -> Stmt {
        self.stmt(StmtKind::Assign(local, value))
    }

    fn branch(&self, cond: ExprId, then: Block, otherwise: Block) -> Stmt {
        self.stmt(StmtKind::If { cond, then, otherwise })
    }

    fn op(&self, op: Op, results: Vec<LocalId>, args: Vec<ExprId>) -> Stmt {
        self.stmt(StmtKind::Op { op, results, args })
    }

    /// Finds the arrays that the kernel accesses only by additions.
    fn find_only_added_to(&mut self, body: &Block) {
        let function = &*self.function;
        let (mut added, mut accessed, mut unknown) = (BTreeSet::new(), BTreeSet::new(), false);
        for_each_access(function, body, &mut |access| match access {
            Access::Read(pointer) | Access::Write(pointer) => {
                if !matches!(function.exprs[pointer].ty, Type::Ptr(_, Space::Local | Space::Shared | Space::Constant)) {
                    let param = root(function, pointer);
                    unknown |= param.is_none();
                    accessed.extend(param);
                }
            }
            Access::Add(pointer) => added.extend(root(function, pointer)),
            Access::Order => {}
            Access::Any => unknown = true,
        });
        if !unknown {
            self.only_added_to = &added - &accessed;
        }
    }

    fn is_only_added_to(&self, pointer: ExprId) -> bool {
        root(self.function, pointer).is_some_and(|param| self.only_added_to.contains(&param))
    }

    fn atomic(&mut self, pointer: ExprId, term: LocalId) -> Stmt {
        let (pointer, mut term) = (self.function.copy_expr(pointer), self.read(term));
        if let Type::Ptr(elem, _) = self.function.exprs[pointer].ty
            && elem.is_half()
        {
            term = self.expr(ExprKind::Convert(term), Type::Scalar(elem));
        }
        self.op(Op::atomic(AtomicOp::Add), Vec::new(), vec![pointer, term])
    }

    /// `if value != 0 { *pointer += value }`.
    fn add_if_any(&mut self, pointer: ExprId, value: LocalId) -> Stmt {
        let (tested, zero) = (self.read(value), self.zero(self.function.locals[value].ty));
        let cond = self.compare(CompareOp::Ne, tested, zero);
        let add = self.atomic(pointer, value);
        self.branch(cond, vec![add], Block::new())
    }
}
