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

use crate::ir::{
    Arith, Base, BinaryOp, Class, Const, Effects, ExprId, ExprKind, Function, Leaf, LocalId, Module, Op,
    SpecialRegister, StmtKind, Type, for_each_expr, for_each_stmt,
};

/// Most iterations of the fixpoint over the locals of a function.
const ROUNDS: usize = 8;

/// The values that `blockDim.x` must be equal to for a launch's blocks to be merged.
pub(crate) type Extents = Vec<i64>;

/// The dependence of a value on the thread's position along `x`: the lattice of a data-flow analysis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    /// It does not depend on the position, or only on the thread's index in the grid.
    Grid,
    /// It is `blockDim.x`.
    Extent,
    /// `threadIdx.x`, possibly plus a value of [`Self::Grid`].
    Thread,
    /// `blockIdx.x`.
    Block,
    /// `blockIdx.x * blockDim.x`, possibly plus a value of [`Self::Grid`].
    First,
    /// Any other dependence, which prevents merging.
    More,
}

/// The values that a launch's `blockDim.x` must be equal to for neighboring blocks to be merged; `None` if they may not
/// be merged.
pub(crate) fn extents(module: &Module, effects: &[Effects]) -> Option<Extents> {
    if effects.iter().any(|effects| effects.synchronizes()) || !may_move_all(module) {
        return None;
    }
    let mut extents = Extents::new();
    for (_, function) in module.functions.iter() {
        if !Walk::new(function, &mut extents).stays_in_grid() {
            return None;
        }
    }
    extents.sort_unstable();
    extents.dedup();
    (extents.len() < 2).then_some(extents)
}

struct Walk<'a> {
    function: &'a Function,
    /// By the local's index.
    places: Vec<Place>,
    /// By the expression's index, for the current `places`.
    known: Vec<Option<Place>>,
    extents: &'a mut Extents,
}

impl<'a> Walk<'a> {
    fn new(function: &'a Function, extents: &'a mut Extents) -> Self {
        let places = vec![Place::Grid; function.locals.len()];
        Self { function, places, known: vec![None; function.exprs.len()], extents }
    }

    /// Whether a function depends on the position along `x` only through the thread's index in the grid.
    fn stays_in_grid(mut self) -> bool {
        let mut assigned = vec![0_u32; self.function.locals.len()];
        for_each_stmt(&self.function.body, &mut |stmt| {
            stmt.kind.assigned().into_iter().for_each(|local| assigned[local.index()] += 1);
        });
        let mut stable = false;
        for _ in 0..ROUNDS {
            let before = self.places.clone();
            self.known.fill(None);
            for_each_stmt(&self.function.body, &mut |stmt| {
                if let StmtKind::Assign(local, value) = stmt.kind {
                    let place = self.place(value);
                    self.places[local.index()] = self.join(local, &assigned, place);
                }
            });
            stable = before == self.places;
            if stable {
                break;
            }
        }
        let mut stays = stable && !self.places.contains(&Place::More);
        self.known.fill(None);
        for_each_stmt(&self.function.body, &mut |stmt| {
            let assigns = matches!(stmt.kind, StmtKind::Assign(..));
            for root in stmt.kind.exprs() {
                stays &= match self.place(root) {
                    Place::Grid | Place::Extent => true,
                    Place::Thread | Place::Block | Place::First => assigns,
                    Place::More => false,
                };
                for_each_expr(self.function, root, &mut |id| {
                    stays &= self.place(id) != Place::More && !self.is_of_block(id);
                });
            }
        });
        stays
    }

    /// Joins the dependences of the values that are assigned to a local.
    fn join(&self, local: LocalId, assigned: &[u32], value: Place) -> Place {
        if assigned[local.index()] == 1 {
            return value;
        }
        match (self.places[local.index()], value) {
            (Place::Grid | Place::Extent, Place::Grid | Place::Extent) => Place::Grid,
            (Place::Grid | Place::Extent | Place::Thread | Place::Block | Place::First | Place::More, _) => Place::More,
        }
    }

    /// Whether an expression is the base of shared memory.
    fn is_of_block(&self, id: ExprId) -> bool {
        match self.function.class(id) {
            Class::Leaf(Leaf::Base(Base::Shared(_) | Base::Dynamic)) => true,
            Class::Leaf(_) | Class::Arith(_) | Class::Address { .. } | Class::Load(_) => false,
        }
    }

    fn place(&mut self, id: ExprId) -> Place {
        if let Some(place) = self.known[id.index()] {
            return place;
        }
        let place = self.find(id);
        self.known[id.index()] = Some(place);
        place
    }

    fn find(&mut self, id: ExprId) -> Place {
        let ty = self.function.exprs[id].ty;
        match self.function.class(id) {
            Class::Leaf(Leaf::Special(SpecialRegister::ThreadIdx(0))) => Place::Thread,
            Class::Leaf(Leaf::Special(SpecialRegister::BlockIdx(0))) => Place::Block,
            Class::Leaf(Leaf::Special(SpecialRegister::BlockDim(0))) => Place::Extent,
            Class::Leaf(Leaf::Special(SpecialRegister::LaneId)) => Place::More,
            Class::Leaf(Leaf::Local(local)) => self.places[local.index()],
            Class::Leaf(_) => Place::Grid,
            Class::Arith(Arith::Convert(a)) => match self.place(a) {
                Place::Grid | Place::Extent if ty != Type::I64 && ty != Type::I32 => Place::Grid,
                // A 32-bit value of these kinds is the register itself: `Thread` sums have 64 bits. A 32-bit product
                // `First` may have wrapped.
                place @ (Place::Grid | Place::Extent | Place::Thread | Place::Block) if ty == Type::I64 => place,
                place @ (Place::Grid | Place::Extent | Place::Block) if ty == Type::I32 => place,
                Place::Grid | Place::Extent | Place::Thread | Place::Block | Place::First | Place::More => Place::More,
            },
            Class::Arith(Arith::Binary(BinaryOp::Mul | BinaryOp::MulExact, a, b)) => {
                match (self.place(a), self.place(b)) {
                    (Place::Block, Place::Extent) | (Place::Extent, Place::Block) => Place::First,
                    (Place::Block, Place::Grid) => self.by_constant(b),
                    (Place::Grid, Place::Block) => self.by_constant(a),
                    (Place::Grid | Place::Extent, Place::Grid | Place::Extent) => Place::Grid,
                    (Place::Grid | Place::Extent | Place::Thread | Place::Block | Place::First | Place::More, _) => {
                        Place::More
                    }
                }
            }
            Class::Arith(Arith::Binary(BinaryOp::Add | BinaryOp::AddExact, a, b)) => {
                match (self.place(a), self.place(b)) {
                    (Place::Thread, Place::First) | (Place::First, Place::Thread) => Place::Grid,
                    (Place::Grid | Place::Extent, Place::Grid | Place::Extent) => Place::Grid,
                    (place @ (Place::Thread | Place::First), Place::Grid | Place::Extent)
                    | (Place::Grid | Place::Extent, place @ (Place::Thread | Place::First))
                        if ty == Type::I64 && self.wraps(id) =>
                    {
                        place
                    }
                    (Place::Grid | Place::Extent | Place::Thread | Place::Block | Place::First | Place::More, _) => {
                        Place::More
                    }
                }
            }
            Class::Arith(arith) => self.all_of_grid(&arith.operands()),
            Class::Address { base, by, .. } => self.all_of_grid(&[base, by]),
            Class::Load(pointer) => self.all_of_grid(&[pointer]),
        }
    }

    /// Whether a sum is defined to wrap on overflow, so that it may be reassociated.
    fn wraps(&self, id: ExprId) -> bool {
        matches!(self.function.class(id), Class::Arith(Arith::Binary(BinaryOp::Add, ..)))
    }

    /// The dependence of `blockIdx.x` times a value: if the value is a constant, `blockDim.x` is required to be equal
    /// to it, and the product is the index of the block's first thread.
    fn by_constant(&mut self, id: ExprId) -> Place {
        match self.function.class(id) {
            Class::Leaf(Leaf::Const(Const::Int(value))) => match i64::try_from(value) {
                Ok(value) => {
                    self.extents.push(value);
                    Place::First
                }
                Err(_) => Place::More,
            },
            Class::Leaf(_) | Class::Arith(_) | Class::Address { .. } | Class::Load(_) => Place::More,
        }
    }

    fn all_of_grid(&mut self, ids: &[ExprId]) -> Place {
        let of_grid = ids.iter().all(|&id| matches!(self.place(id), Place::Grid | Place::Extent));
        if of_grid { Place::Grid } else { Place::More }
    }
}

/// Whether a module's threads may run in any order and in any block position: only their indices along the axes
/// distinguish them.
pub(crate) fn may_move_all(module: &Module) -> bool {
    let mut may = true;
    for (_, function) in module.functions.iter() {
        for_each_stmt(&function.body, &mut |stmt| {
            if let StmtKind::Op { op, .. } = stmt.kind {
                may &= may_move(op);
            }
            for root in stmt.kind.exprs() {
                for_each_expr(function, root, &mut |id| {
                    may &= function.exprs[id].kind != ExprKind::Special(SpecialRegister::LaneId);
                });
            }
        });
    }
    may
}

/// Whether an operation has the same effect in any thread position and in any order of the threads.
fn may_move(op: Op) -> bool {
    match op {
        Op::Atomic { .. } | Op::Load(_) | Op::Store(_) | Op::Barrier | Op::BarrierReduce(_) => true,
        Op::Ptx { pure, .. } => pure,
        Op::GridBarrier
        | Op::WarpBarrier
        | Op::Shuffle(_)
        | Op::Vote(_)
        | Op::MatchAny
        | Op::MatchAll
        | Op::WarpReduce(_)
        | Op::ActiveMask
        | Op::LaneBits(_)
        | Op::OfWarps
        | Op::Fence(_)
        | Op::Print(_)
        | Op::External(_)
        | Op::Clock(_)
        | Op::Nanosleep
        | Op::Breakpoint
        | Op::Fault(_)
        | Op::FaultCall(_)
        | Op::Check(_) => false,
    }
}
