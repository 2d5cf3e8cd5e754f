//! Block merging along `x`: decides whether neighboring blocks may run as one block, whose `threadIdx.x` continues past
//! `blockDim.x`.
//!
//! Legal if
//!
//! - no function synchronizes threads, uses shared memory, prints, faults or observes its lane ([`may_move_all`]);
//! - the kernel uses its position along `x` only as the global index `blockIdx.x * blockDim.x + threadIdx.x`, which is
//!   the same in the merged block. `blockIdx.x` may be multiplied by a constant instead, if `blockDim.x` has that value
//!   at the launch ([`extents`] returns it).
//!
//! Profitable because thread loops get longer: rows of 16 threads become rows of 1024 or more.
//!
//! The opposite is splitting: a launch with fewer blocks than the machine has cores runs each block as several, with a
//! shorter `blockDim.x` and a larger `gridDim.x`. Legal if blocks may be merged for any `blockDim.x`, and if also
//!
//! - the kernel uses `blockDim.x` and `gridDim.x` only in `blockIdx.x * blockDim.x` and `gridDim.x * blockDim.x`;
//! - it has no atomic operations: their order in one block does not change from launch to launch.
//!
//! The executor decides whether it is profitable: it knows the launch.

use crate::{
    backend::host::plan::analysis::thread_order::may_move_all,
    ir::{
        Arith, Base, BinaryOp, Class, Const, Effects, ExprId, Function, Leaf, LocalId, Module, Op, SpecialRegister,
        StmtKind, Type, for_each_expr, for_each_stmt,
    },
};

/// Most iterations of the fixpoint over the locals of a function.
const MAX_PASSES: usize = 8;

/// The values that `blockDim.x` must be equal to for a launch's blocks to be merged.
pub(crate) type Extents = Vec<i64>;

/// The dependence of a value on the thread's position along `x`: the lattice of a data-flow analysis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Dependence {
    /// It does not depend on the position, or only on the thread's index in the grid.
    Grid,
    /// It is `blockDim.x`.
    Extent,
    /// It is `gridDim.x`.
    Count,
    /// `threadIdx.x`, possibly plus a value of [`Self::Grid`].
    Thread,
    /// `blockIdx.x`.
    Block,
    /// `blockIdx.x * blockDim.x`, possibly plus a value of [`Self::Grid`].
    First,
    /// Any other dependence, which prevents merging.
    Other,
}

/// Whether a launch's blocks may be merged and split.
pub(crate) struct Merging {
    /// The values that a launch's `blockDim.x` must be equal to for neighboring blocks to be merged; `None` if they may
    /// not be merged.
    pub(crate) extents: Option<Extents>,
    /// Whether blocks may be split along `x`.
    pub(crate) may_split: bool,
}

impl Merging {
    pub(crate) fn of(module: &Module, effects: &[Effects]) -> Self {
        let none = Self { extents: None, may_split: false };
        if effects.iter().any(|effects| effects.synchronizes()) || !legal!("merge_blocks.movable", may_move_all(module))
        {
            return none;
        }
        let (mut extents, mut sees_shape) = (Extents::new(), false);
        for (_, function) in module.functions.iter() {
            let mut walk = Walk::new(function, &mut extents);
            if !walk.stays_in_grid() {
                return none;
            }
            sees_shape |= walk.sees_shape;
        }
        extents.sort_unstable();
        extents.dedup();
        let may_split = legal!("merge_blocks.split-any-extent", extents.is_empty())
            && legal!("merge_blocks.split-unseen-shape", !sees_shape)
            && legal!("merge_blocks.split-no-atomics", !has_atomics(module));
        Self { extents: (extents.len() < 2).then_some(extents), may_split }
    }
}

fn has_atomics(module: &Module) -> bool {
    let mut has = false;
    for (_, function) in module.functions.iter() {
        for_each_stmt(&function.body, &mut |stmt| {
            has |= matches!(stmt.kind, StmtKind::Op { op: Op::Atomic { .. }, .. });
        });
    }
    has
}

struct Walk<'a> {
    function: &'a Function,
    /// By the local's index.
    dependences: Vec<Dependence>,
    /// By the expression's index, for the current `dependences`.
    known: Vec<Option<Dependence>>,
    extents: &'a mut Extents,
    /// A value depends on `blockDim.x` or `gridDim.x` by itself.
    sees_shape: bool,
}

impl<'a> Walk<'a> {
    fn new(function: &'a Function, extents: &'a mut Extents) -> Self {
        let dependences = vec![Dependence::Grid; function.locals.len()];
        Self { function, dependences, known: vec![None; function.exprs.len()], extents, sees_shape: false }
    }

    /// Whether a function depends on the position along `x` only through the thread's index in the grid.
    fn stays_in_grid(&mut self) -> bool {
        let mut assigned = vec![0_u32; self.function.locals.len()];
        for_each_stmt(&self.function.body, &mut |stmt| {
            stmt.kind.assigned().into_iter().for_each(|local| assigned[local.index()] += 1);
        });
        let mut is_final = false;
        for _ in 0..MAX_PASSES {
            let before = self.dependences.clone();
            self.known.fill(None);
            for_each_stmt(&self.function.body, &mut |stmt| {
                if let StmtKind::Assign(local, value) = stmt.kind {
                    let dependence = self.dependence(value);
                    self.dependences[local.index()] = self.join(local, &assigned, dependence);
                }
            });
            is_final = before == self.dependences;
            if is_final {
                break;
            }
        }
        let mut stays = is_final;
        self.known.fill(None);
        self.sees_shape = false;
        for_each_stmt(&self.function.body, &mut |stmt| {
            let assigns = matches!(stmt.kind, StmtKind::Assign(..));
            let assigned_once = matches!(stmt.kind, StmtKind::Assign(local, _) if assigned[local.index()] == 1);
            for root in stmt.kind.exprs() {
                stays &= match self.dependence(root) {
                    Dependence::Grid => true,
                    Dependence::Extent | Dependence::Count => {
                        self.sees_shape |= !assigned_once;
                        true
                    }
                    Dependence::Thread | Dependence::Block | Dependence::First => {
                        legal!("merge_blocks.index-parts", assigns)
                    }
                    Dependence::Other => legal!("merge_blocks.grid-index", false),
                };
                for_each_expr(self.function, root, &mut |id| {
                    stays &= legal!("merge_blocks.shared-memory", !self.is_of_block(id));
                });
            }
        });
        stays
    }

    /// Joins the dependences of the values that are assigned to a local.
    fn join(&self, local: LocalId, assigned: &[u32], value: Dependence) -> Dependence {
        if legal!("merge_blocks.one-assignment", assigned[local.index()] == 1) {
            return value;
        }
        match (self.dependences[local.index()], value) {
            (
                Dependence::Grid | Dependence::Extent | Dependence::Count,
                Dependence::Grid | Dependence::Extent | Dependence::Count,
            ) => Dependence::Grid,
            (
                Dependence::Grid
                | Dependence::Extent
                | Dependence::Count
                | Dependence::Thread
                | Dependence::Block
                | Dependence::First
                | Dependence::Other,
                _,
            ) => Dependence::Other,
        }
    }

    /// Whether an expression is the base of shared memory.
    fn is_of_block(&self, id: ExprId) -> bool {
        match self.function.class(id) {
            Class::Leaf(Leaf::Base(Base::Shared(_) | Base::Dynamic)) => true,
            Class::Leaf(_) | Class::Arith(_) | Class::Address { .. } | Class::Load(_) => false,
        }
    }

    fn dependence(&mut self, id: ExprId) -> Dependence {
        if let Some(dependence) = self.known[id.index()] {
            return dependence;
        }
        let dependence = self.find(id);
        self.known[id.index()] = Some(dependence);
        dependence
    }

    fn find(&mut self, id: ExprId) -> Dependence {
        let ty = self.function.exprs[id].ty;
        match self.function.class(id) {
            Class::Leaf(Leaf::Special(SpecialRegister::ThreadIdx(0))) => Dependence::Thread,
            Class::Leaf(Leaf::Special(SpecialRegister::BlockIdx(0))) => Dependence::Block,
            Class::Leaf(Leaf::Special(SpecialRegister::BlockDim(0))) => Dependence::Extent,
            Class::Leaf(Leaf::Special(SpecialRegister::GridDim(0))) => Dependence::Count,
            Class::Leaf(Leaf::Local(local)) => self.dependences[local.index()],
            Class::Leaf(_) => Dependence::Grid,
            Class::Arith(Arith::Convert(a)) => self.converted(a, ty),
            Class::Arith(Arith::Binary(BinaryOp::Mul | BinaryOp::MulExact, a, b)) => self.product(a, b),
            Class::Arith(Arith::Binary(BinaryOp::Add | BinaryOp::AddExact, a, b)) => self.sum(id, a, b),
            Class::Arith(arith) => self.all_of_grid(&arith.operands()),
            Class::Address { base, by, .. } => self.all_of_grid(&[base, by]),
            Class::Load(pointer) => self.all_of_grid(&[pointer]),
        }
    }

    fn converted(&mut self, id: ExprId, to: Type) -> Dependence {
        match self.dependence(id) {
            // A 32-bit value of these kinds is the register itself: `Thread` sums have 64 bits. A 32-bit product `First`
            // may have wrapped.
            dependence @ (Dependence::Grid | Dependence::Extent | Dependence::Count | Dependence::Block)
                if to == Type::I64 || to == Type::I32 =>
            {
                dependence
            }
            Dependence::Thread if to == Type::I64 => Dependence::Thread,
            Dependence::Grid => Dependence::Grid,
            Dependence::Extent | Dependence::Count => self.seen(),
            Dependence::Thread | Dependence::Block | Dependence::First | Dependence::Other => Dependence::Other,
        }
    }

    fn product(&mut self, a: ExprId, b: ExprId) -> Dependence {
        let both = [self.dependence(a), self.dependence(b)];
        let are = |one, other| both == [one, other] || both == [other, one];
        if are(Dependence::Block, Dependence::Extent) {
            Dependence::First
        } else if are(Dependence::Count, Dependence::Extent) {
            Dependence::Grid
        } else if are(Dependence::Block, Dependence::Grid) {
            self.by_constant(if both[0] == Dependence::Grid { a } else { b })
        } else {
            self.all_of_grid(&[a, b])
        }
    }

    fn sum(&mut self, id: ExprId, a: ExprId, b: ExprId) -> Dependence {
        let both = [self.dependence(a), self.dependence(b)];
        if both == [Dependence::Thread, Dependence::First] || both == [Dependence::First, Dependence::Thread] {
            return Dependence::Grid;
        }
        let is_part = |part: &Dependence| matches!(part, Dependence::Thread | Dependence::First);
        let is_shape = |part: &Dependence| matches!(part, Dependence::Extent | Dependence::Count);
        let of_grid = |part: &Dependence| *part == Dependence::Grid || is_shape(part);
        let part = both.into_iter().find(is_part).filter(|_| both.iter().any(of_grid));
        if let Some(part) = part
            && legal!("merge_blocks.wide-sum", self.function.exprs[id].ty == Type::I64)
            && legal!("merge_blocks.wrapping-sum", self.wraps(id))
        {
            self.sees_shape |= both.iter().any(is_shape);
            return part;
        }
        self.all_of_grid(&[a, b])
    }

    /// The dependence of a value that is computed from `blockDim.x` or `gridDim.x`.
    fn seen(&mut self) -> Dependence {
        self.sees_shape = true;
        Dependence::Grid
    }

    /// Whether a sum is defined to wrap on overflow, so that it may be reassociated.
    fn wraps(&self, id: ExprId) -> bool {
        matches!(self.function.class(id), Class::Arith(Arith::Binary(BinaryOp::Add, ..)))
    }

    /// The dependence of `blockIdx.x` times a value: if the value is a constant, `blockDim.x` is required to be equal
    /// to it, and the product is the index of the block's first thread.
    fn by_constant(&mut self, id: ExprId) -> Dependence {
        match self.function.class(id) {
            Class::Leaf(Leaf::Const(Const::Int(value))) => match i64::try_from(value) {
                Ok(value) => {
                    self.extents.push(value);
                    Dependence::First
                }
                Err(_) => Dependence::Other,
            },
            Class::Leaf(_) | Class::Arith(_) | Class::Address { .. } | Class::Load(_) => Dependence::Other,
        }
    }

    /// `Grid` if all values are the same for all threads or depend on the index in the grid.
    fn all_of_grid(&mut self, ids: &[ExprId]) -> Dependence {
        let mut all = Dependence::Grid;
        for &id in ids {
            match self.dependence(id) {
                Dependence::Grid => {}
                Dependence::Extent | Dependence::Count => self.sees_shape = true,
                Dependence::Thread | Dependence::Block | Dependence::First | Dependence::Other => {
                    all = Dependence::Other;
                }
            }
        }
        all
    }
}
