//! The work of a coarsened thread: instructions, memory accesses, and how often it waits for them, each weighted by its
//! trip count.

use std::{
    collections::{BTreeMap, HashSet},
    rc::Rc,
};

use super::{
    copy_addresses::CopyAddresses,
    data::{Data, is_float},
};
use crate::{
    analysis::affine::{Polynomial, Stride, estimated_stride},
    ir::{
        Arith, BinaryOp, Block, Class, CompareOp, Const, ExprId, ExprKind, Function, Leaf, LocalId, Op, Space,
        StmtKind, Type, UnaryOp, for_each_expr, for_each_stmt,
    },
    passes::coarsen::{CopyLocals, order, vary::Vary},
};

/// The assumed trip count of a loop of unknown trip count, and the maximum that is counted for a constant one.
const UNKNOWN_TRIP_COUNT: f64 = 16.0;
const MOST_ITERATIONS: f64 = 64.0;
/// The number of iterations of an innermost loop whose loads are in flight together: LLVM, or a pass, unrolls it.
const OVERLAPPED_ITERATIONS: f64 = 4.0;
/// Bytes per thread of a warp that the L1 cache delivers in one transaction.
const BYTES_A_THREAD: i64 = 4;
/// The most bytes of one access.
const WIDEST: i128 = 16;
/// The number of transactions of an access that is not known to have unit stride over threads.
const SCATTERED: f64 = 8.0;

/// The total work of a thread of the launch.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Work {
    /// Instructions of a warp, and transactions of its accesses.
    pub(super) issues: f64,
    pub(super) transactions: f64,
    /// Bytes that a thread loads or stores beyond those that it shares with other threads.
    pub(super) bytes: f64,
    /// The number of waits: for memory, for caches, for barriers.
    pub(super) far_waits: f64,
    pub(super) near_waits: f64,
    pub(super) barriers: f64,
    /// Loads from memory in loops whose address depends on the thread; equal loads of several copies count once.
    pub(super) loads: f64,
    /// There are loops with an unknown trip count.
    pub(super) has_loops: bool,
}

/// The reason why a kernel is not coarsened, whatever the factors.
pub(super) type Refusal = &'static str;

/// The analyses of a kernel that has locals for the indices of copies, and special registers with the original launch's
/// values.
pub(super) struct Kernel<'a> {
    pub(super) function: &'a Function,
    /// By axis: the values that vary over the copies along it.
    pub(super) vary: &'a [Rc<Vary>; 3],
    /// By axis and expression: whether the expression varies.
    pub(super) varies: &'a [Vec<bool>; 3],
    /// The values that vary over any copies.
    pub(super) any: &'a Vary,
    /// By axis: the number of copies.
    pub(super) factors: [u32; 3],
    /// The locals with the indices of the copy.
    pub(super) copies_of: CopyLocals,
    /// For each axis that the kernel reads: whether the address varies over the original threads along it.
    pub(super) differs: &'a dyn Fn(ExprId) -> Rc<[bool]>,
    /// Whether an expression depends on the thread at all.
    pub(super) is_of_thread: &'a dyn Fn(ExprId) -> bool,
    /// The alignment of each array argument in bytes, if it is larger than that of its elements.
    pub(super) alignment: i128,
}

impl Kernel<'_> {
    /// The number of different values of something over the copies of a thread.
    fn times(&self, varies: impl Fn(usize) -> bool) -> f64 {
        (0..3).filter(|axis| varies(*axis)).map(|axis| f64::from(self.factors[axis])).product()
    }

    pub(super) fn of_local(&self, local: LocalId) -> f64 {
        self.times(|axis| self.vary[axis].local(local))
    }

    pub(super) fn of_expr(&self, id: ExprId) -> f64 {
        self.times(|axis| self.varies[axis][id.index()])
    }

    fn copies(&self) -> f64 {
        self.factors.iter().map(|factor| f64::from(*factor)).product()
    }
}

/// Estimates the work of a thread.
pub(super) fn of(kernel: &Kernel<'_>, places: &mut CopyAddresses<'_>) -> Result<Work, Refusal> {
    let data = Data::of(kernel.function);
    let strides = order::strides(kernel.function, kernel.copies_of);
    let mut estimate = WorkEstimate { kernel, places, data, strides, work: Work::default() };
    estimate.block(&kernel.function.body, 1.0, false)?;
    Ok(estimate.work)
}

struct WorkEstimate<'a, 'b> {
    kernel: &'a Kernel<'a>,
    places: &'a mut CopyAddresses<'b>,
    data: Data,
    /// By the local's index: its stride along x.
    strides: Vec<Stride>,
    work: Work,
}

impl WorkEstimate<'_, '_> {
    /// Statements that run `weight` times. `divergent`: each copy runs them separately.
    fn block(&mut self, block: &Block, weight: f64, divergent: bool) -> Result<(), Refusal> {
        let kernel = self.kernel;
        let function = kernel.function;
        let (mut loads, mut stores) = (Vec::new(), Vec::new());
        let together = if weight >= UNKNOWN_TRIP_COUNT && is_innermost(block) { OVERLAPPED_ITERATIONS } else { 1.0 };
        for stmt in block {
            for root in stmt.kind.exprs() {
                for_each_expr(function, root, &mut |id| {
                    let times = if divergent { kernel.copies() } else { kernel.of_expr(id) };
                    // A value that is uniform over copies is mostly loop-invariant, too, and computed once per unrolled
                    // body.
                    let once = if (kernel.is_of_thread)(id) { 1.0 } else { together };
                    self.work.issues += weight * times / once * slots(function, id);
                    if let Class::Load(pointer) = function.class(id) {
                        loads.push(pointer);
                    }
                });
            }
            match &stmt.kind {
                StmtKind::Store { pointer, .. } => stores.push(*pointer),
                StmtKind::Op { op: Op::Barrier | Op::BarrierReduce(_), .. } => self.work.barriers += weight,
                StmtKind::Op { args, .. } => {
                    // Each copy has its own operation, and they run one after the other.
                    self.work.issues += weight * kernel.copies();
                    self.work.transactions += weight * kernel.copies() * SCATTERED * args.len().min(1) as f64;
                }
                StmtKind::Call { .. } => self.work.issues += weight * kernel.copies() * CALL,
                StmtKind::If { cond, then, otherwise } => {
                    let parts = kernel.any.expr(function, *cond) && self.data.decides(function, *cond);
                    let weight = if parts { weight / 2.0 } else { weight };
                    self.block(then, weight, divergent || parts)?;
                    self.block(otherwise, weight, divergent || parts)?;
                }
                StmtKind::Loop { body, step } => {
                    if kernel.any.splits(function, body) && self.data.leaves(kernel.any, function, body) {
                        return Err("its threads leave a loop on conditions that depend on data");
                    }
                    let known = trip_count(function, body);
                    self.work.has_loops |= known.is_none();
                    let weight = weight * known.map_or(UNKNOWN_TRIP_COUNT, |count| count.clamp(1.0, MOST_ITERATIONS));
                    self.block(body, weight, divergent)?;
                    self.block(step, weight, divergent)?;
                }
                StmtKind::Assign(..) | StmtKind::Break | StmtKind::Continue | StmtKind::Return(_) => {}
            }
        }
        let far = self.accesses(&loads, weight, divergent, true);
        let times = if divergent { kernel.copies() } else { 1.0 };
        if far {
            self.work.far_waits += weight * times / together;
        } else if !loads.is_empty() {
            self.work.near_waits += weight * times / together;
        }
        self.accesses(&stores, weight, divergent, false);
        Ok(())
    }

    /// Adds the accesses of adjacent statements; equal addresses of several copies count once. Returns whether one of
    /// them goes to device memory: to an address that threads do not share.
    fn accesses(&mut self, pointers: &[ExprId], weight: f64, divergent: bool, loads: bool) -> bool {
        let [x, y, z] = self.kernel.factors;
        let mut far = false;
        let mut of_threads = HashSet::new();
        let mut bytes_of = BTreeMap::new();
        // Grouped by the variable part of the address: the constant offsets, each with its pointer.
        let mut groups: BTreeMap<(i128, Polynomial), BTreeMap<i128, ExprId>> = BTreeMap::new();
        for &pointer in pointers {
            let Type::Ptr(elem, space) = self.kernel.function.exprs[pointer].ty else { continue };
            let size = i128::from(elem.size_bytes());
            let mut of_thread = false;
            match space {
                Space::Local => continue,
                Space::Global | Space::Generic => {
                    // An address that is uniform along an axis hits the cache for all threads along it but one.
                    let differs = (self.kernel.differs)(pointer);
                    let own = differs.iter().all(|differs| *differs);
                    of_thread = loads && differs.contains(&true);
                    far |= own;
                    if own {
                        bytes_of.insert(root(self.kernel.function, pointer), size);
                    }
                }
                Space::Shared | Space::Constant => {}
            }
            for copy in (0..z).flat_map(|z| (0..y).flat_map(move |y| (0..x).map(move |x| [x, y, z]))) {
                let place = self.places.sum(pointer, copy);
                if of_thread {
                    of_threads.insert(place.clone());
                }
                let (rest, constant) = place.split();
                groups.entry((size, rest)).or_default().insert(constant, pointer);
            }
        }
        let alone = if divergent { self.kernel.copies() } else { 1.0 };
        for ((size, rest), places) in groups {
            let mut places: Vec<(i128, ExprId)> = places.into_iter().collect();
            places.sort_unstable_by_key(|(constant, _)| *constant);
            let mut at = 0;
            while at < places.len() {
                let (first, pointer) = places[at];
                let run = self.run(&rest, &places[at..], size);
                let transactions = self.parts(pointer, size * run as i128);
                self.work.issues += weight;
                self.work.transactions += weight * transactions * if divergent && loads { alone.min(2.0) } else { 1.0 };
                debug_assert!(places[at..].iter().all(|(constant, _)| *constant >= first), "they are in order");
                at += run;
            }
        }
        if weight > 1.0 {
            self.work.loads += weight * of_threads.len() as f64;
        }
        let size: i128 = bytes_of.values().sum();
        self.work.bytes += weight * size as f64 * self.kernel.copies();
        far
    }

    /// The number of adjacent accesses that merge into one: the widest access whose address is known to be aligned to
    /// its width.
    fn run(&self, rest: &Polynomial, places: &[(i128, ExprId)], size: i128) -> usize {
        let first = places[0].0;
        let beside = |(at, (constant, _)): (usize, &(i128, ExprId))| *constant == first + at as i128 * size;
        let side_by_side = places.iter().enumerate().take_while(|place| beside(*place)).count();
        [4, 2]
            .into_iter()
            .find(|run| {
                let width = size * *run as i128;
                let fits = |(atoms, factor): (&[u32], i128)| {
                    // The start of an array is an atom of its own.
                    factor % width == 0 || (atoms.len() == 1 && factor == 1 && self.kernel.alignment % width == 0)
                };
                *run <= side_by_side && width <= WIDEST && first % width == 0 && rest.terms().all(fits)
            })
            .unwrap_or(1)
    }

    /// The number of transactions of an access of a warp.
    fn parts(&self, pointer: ExprId, width: i128) -> f64 {
        let stride = estimated_stride(self.kernel.function, 0, &self.strides, pointer);
        let is_shared = matches!(self.kernel.function.exprs[pointer].ty, Type::Ptr(_, Space::Shared));
        let beside = match stride {
            Stride::Constant(0) => return 1.0,
            // Bank conflicts.
            Stride::Constant(bytes) if is_shared => {
                let words = bytes.unsigned_abs() / BYTES_A_THREAD.unsigned_abs();
                if words == 0 { 1.0 } else { f64::from(1_u32 << words.trailing_zeros().min(5)) }
            }
            Stride::Constant(bytes) => (bytes.unsigned_abs() as f64 / BYTES_A_THREAD as f64).clamp(1.0, 32.0),
            Stride::Undefined | Stride::Uniform | Stride::Unknown => SCATTERED,
        };
        beside.max(width as f64 / BYTES_A_THREAD as f64)
    }
}

/// The cost of an integer operation: some are eliminated as common subexpressions, or become part of an address.
const INTEGER: f64 = 0.5;

/// The overhead of a call.
const CALL: f64 = 40.0;

/// The issue slots of an expression without its operands; the unit is a 32-bit operation.
fn slots(function: &Function, id: ExprId) -> f64 {
    let wide = match function.exprs[id].ty {
        Type::Scalar(scalar) if scalar.size_bytes() == 8 => 2.0,
        Type::Scalar(_) | Type::Ptr(..) => 1.0,
    };
    let is_float = is_float(function, id);
    match function.class(id) {
        Class::Leaf(_) => 0.0,
        Class::Arith(Arith::Convert(_)) => 0.5,
        Class::Arith(Arith::Math(..)) => 12.0 * wide,
        Class::Arith(Arith::Binary(op, ..)) => match op {
            BinaryOp::Div | BinaryOp::FloorDiv | BinaryOp::FloorMod | BinaryOp::DivNonneg | BinaryOp::ModNonneg => {
                if is_float {
                    8.0 * wide
                } else {
                    16.0 * wide
                }
            }
            BinaryOp::Pow => 30.0 * wide,
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
            | BinaryOp::Max => {
                if is_float {
                    wide
                } else {
                    INTEGER
                }
            }
        },
        Class::Arith(Arith::Unary(..) | Arith::Compare(..) | Arith::Select(..)) => 1.0,
        Class::Arith(Arith::Wrap { .. }) | Class::Address { .. } => INTEGER,
        // Loads are counted separately.
        Class::Load(_) => 0.0,
    }
}

/// The trip count of a loop, if the bound of its induction variable is a constant.
fn trip_count(function: &Function, body: &Block) -> Option<f64> {
    let ExprKind::Unary(UnaryOp::Not, goes_on) = function.exprs[body.first()?.kind.exit_condition()?].kind else {
        return None;
    };
    let ExprKind::Compare(CompareOp::Lt, _, bound) = function.exprs[goes_on].kind else { return None };
    match function.class(bound) {
        Class::Leaf(Leaf::Const(Const::Int(count))) => Some(count as f64),
        Class::Leaf(_) | Class::Arith(_) | Class::Address { .. } | Class::Load(_) => None,
    }
}

fn is_innermost(block: &Block) -> bool {
    let mut found = false;
    for_each_stmt(block, &mut |stmt| {
        found |= matches!(stmt.kind, StmtKind::Loop { .. })
            || matches!(stmt.kind, StmtKind::Op { op: Op::Barrier | Op::BarrierReduce(_), .. });
    });
    !found
}

/// The array that a pointer points into.
fn root(function: &Function, pointer: ExprId) -> usize {
    match function.class(pointer) {
        Class::Address { base, .. } | Class::Arith(Arith::Convert(base)) => root(function, base),
        Class::Leaf(Leaf::Local(local)) => local.index(),
        Class::Leaf(_) | Class::Arith(_) | Class::Load(_) => usize::MAX,
    }
}
