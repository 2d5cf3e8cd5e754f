//! Coarsens threads: one does the work of several, its *copies*, along the axes of [`Module::coarsen`]. The copies are
//! adjacent threads of a block, or the threads with the same index in adjacent blocks, which are *merged*.
//!
//! ```text
//! $i = threadIdx.x + …                 $i = threadIdx.x * 2 + 0 + …
//! if $i < $n {                         $i' = threadIdx.x * 2 + 1 + …
//!     store $y[$i] = load $x[$i]       $t = $i < $n; $t' = $i' < $n
//! }                                    if $t and $t' {
//!                                          store $y[$i] = load $x[$i]
//!                                          store $y[$i'] = load $x[$i']
//!                                      } else {
//!                                          if $t { store $y[$i] = load $x[$i] }
//!                                          if $t' { store $y[$i'] = load $x[$i'] }
//!                                      }
//! ```
//!
//! The factors divide the extents of the launch's block or grid; `threadIdx`, `blockDim`, `blockIdx` and `gridDim` keep
//! the values of the original launch. Values that are uniform over the copies ([`vary`]) are computed once. Uniform
//! control flow is jammed: one flow, with each varying statement replicated once per copy. A varying condition is
//! tested for agreement; the statement is replicated per copy for the case that the copies disagree ([`emit`]). There
//! is one barrier for all copies. After some copies have returned, the others run under guards ([`guarded`]); if copies
//! may be in different arms or iterations, they run under masks ([`masked`]).
//!
//! Threads of a block are independent between barriers, so the order of their statements does not matter to a program
//! without races. If it may matter, the kernel is not changed, and a remark reports the reason ([`refuse`]).

mod callees;
mod emit;
mod guarded;
mod masked;
mod model;
mod order;
mod refuse;
mod returns;
mod vary;

use std::cell::OnceCell;

use weft_artifact::{Coarsening, Factors, Scalar};

use crate::ir::{
    BinaryOp, Circles, Const, Effects, Expr, ExprId, ExprKind, FuncId, Function, Local, LocalId, LocalKind, Module,
    SpecialRegister, Type,
};

/// How the copies of a thread are arranged along an axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Order {
    /// Copy `k` of thread `t` of the launch is thread `t * factor + k`: adjacent threads, whose accesses merge into
    /// wider ones.
    Contiguous,
    /// Copy `k` is thread `t + k * n`, for a launch of `n`: adjacent threads of the launch have adjacent original
    /// indices.
    Strided,
    /// Copy `k` in block `b` of the launch is the same thread of block `b * factor + k`.
    Blocks,
}

/// How a kernel is coarsened.
#[derive(Clone, Copy, Debug)]
struct Plan {
    factors: Factors,
    /// By axis.
    orders: [Order; 3],
}

/// By axis: the local with the index of the copy; `None` along an axis with one copy.
type CopyLocals = [Option<LocalId>; 3];

/// Runs the pass.
pub(super) fn run(module: &mut Module) {
    let factors = module.coarsen;
    if factors == Factors::NONE {
        if module.choose {
            module.coarsening = match model::candidates(module) {
                Ok((candidates, note)) => Coarsening { factors, note, candidates },
                Err(why) => refused(&why),
            };
        }
        return;
    }
    module.coarsening = match coarsen(module, factors) {
        Ok(note) => Coarsening { factors, note, candidates: Vec::new() },
        Err(why) => refused(&why),
    };
}

fn refused(why: &str) -> Coarsening {
    Coarsening { note: format!("not coarsened: {why}"), ..Coarsening::default() }
}

/// A module whose kernel has locals for the indices of its copies, and special registers with the values of the
/// original launch.
struct Prepared {
    changed: Module,
    kernel: FuncId,
    copies: CopyLocals,
    plan: Plan,
    /// The number of the kernel's own expressions. Expressions that replace special registers come after them.
    own: usize,
    /// The values that vary over the copies, computed on first use.
    varied: OnceCell<model::Varied>,
}

/// The analyses of a kernel that are the same for all factors.
struct Base {
    /// Its functions, normalized for coarsening: the read-only parameters of the kernel are known, and it returns only
    /// at its end.
    module: Module,
    kernel: FuncId,
    /// Whether its blocks can be merged, or the reason against it.
    merging: Result<(), String>,
    waits: refuse::Waits,
}

impl Base {
    /// Normalizes a copy of a module, or returns the reason why the kernel is not coarsened.
    fn of(module: &Module) -> Result<Self, String> {
        let Some(kernel) = module.kernel else { return Err("there is no kernel".to_owned()) };
        let (circles, effects) = (Circles::of(module), Effects::of_module(module));
        refuse::module(module, &circles, &effects)?;
        let merging = refuse::merging(module);
        let mut module = module.clone();
        super::access::run(&mut module);
        let waits = refuse::waits(&module, &circles);
        returns::structure(&mut module.functions[kernel]);
        super::drop_dead::clean(&mut module.functions[kernel]);
        Ok(Self { module, kernel, merging, waits })
    }
}

/// Prepares a copy of a module for some factors, or returns the reason why the kernel is not coarsened.
fn prepare(base: &Base, factors: Factors) -> Result<Prepared, String> {
    let Base { module, kernel, merging, waits } = base;
    if factors.blocks_in_one() > 1 {
        merging.clone()?;
    }
    waits.refuse(factors)?;
    let (kernel, mut changed) = (*kernel, module.clone());
    let own = changed.functions[kernel].exprs.len();
    let copies = callees::number_copies(&mut changed, factors);
    refuse::size(&changed.functions[kernel], factors.copies() as usize)?;
    let orders = factors.blocks.map(|blocks| if blocks > 1 { Order::Blocks } else { Order::Contiguous });
    let along_x = |x: Order| Plan { factors, orders: [x, orders[1], orders[2]] };
    let x = if factors.threads[0] > 1 { order::along_x(&changed, copies) } else { orders[0] };
    let of = |changed: Module, plan| Prepared { changed, kernel, copies, plan, own, varied: OnceCell::new() };
    let prepared = of(changed, along_x(x));
    if x != Order::Contiguous || factors.threads[0] == 1 {
        return Ok(prepared.renamed());
    }
    // If the accesses of adjacent copies cannot merge, adjacent copies would make the launch's coalesced accesses
    // strided.
    let strided = of(prepared.changed.clone(), along_x(Order::Strided));
    let contiguous = prepared.renamed();
    Ok(if model::merges(&contiguous) { contiguous } else { strided.renamed() })
}

impl Prepared {
    /// Gives the special registers the values of the original launch.
    fn renamed(mut self) -> Self {
        for (id, function) in self.changed.functions.iter_mut() {
            let locals = if id == self.kernel { self.copies } else { callees::params(function, self.plan.factors) };
            rename(function, &self.plan, locals);
        }
        self
    }
}

/// Coarsens the kernel and returns a remark, or returns the reason why it is left unchanged.
fn coarsen(module: &mut Module, factors: Factors) -> Result<String, String> {
    let Prepared { mut changed, kernel, copies, plan, own: _, varied: _ } = prepare(&Base::of(module)?, factors)?;
    let vary = vary::Vary::of(&changed, kernel, copies);
    emit::copies(&mut changed.functions[kernel], &vary, &plan, copies);
    super::drop_dead::clean(&mut changed.functions[kernel]);
    *module = changed;
    Ok(plan.summary())
}

impl Plan {
    /// The remark for users.
    fn summary(&self) -> String {
        let Factors { threads, blocks } = self.factors;
        let one = |what: &str, [x, y, z]: [u32; 3]| format!("{x}x{y}x{z} {what}");
        let what = match (threads == [1; 3], blocks == [1; 3]) {
            (_, true) => one("threads", threads),
            (true, false) => one("blocks", blocks),
            (false, false) => format!("{} and {}", one("threads", threads), one("blocks", blocks)),
        };
        let order = match (threads[0], self.orders[0]) {
            (1, _) | (_, Order::Blocks) => "",
            (_, Order::Contiguous) => ", contiguous in x",
            (_, Order::Strided) => ", strided in x",
        };
        format!("{what} in one{order}")
    }
}

/// A special register of a coarsened axis.
struct Coarsened {
    axis: usize,
    /// The number of copies along it.
    factor: u32,
    /// Whether the register is an index of a thread or block; otherwise it is a number of threads or blocks.
    numbers: bool,
}

/// The register of a coarsened axis; `None` for other registers.
fn coarsened(Factors { threads, blocks }: Factors, register: SpecialRegister) -> Option<Coarsened> {
    let (axis, factors, numbers) = match register {
        SpecialRegister::ThreadIdx(axis) => (axis, threads, true),
        SpecialRegister::BlockDim(axis) => (axis, threads, false),
        SpecialRegister::BlockIdx(axis) => (axis, blocks, true),
        SpecialRegister::GridDim(axis) => (axis, blocks, false),
        SpecialRegister::LaneId
        | SpecialRegister::WarpSize
        | SpecialRegister::DynamicSharedBytes
        | SpecialRegister::OfRow(_) => return None,
    };
    let axis = usize::from(axis);
    let factor = factors[axis];
    (factor > 1).then_some(Coarsened { axis, factor, numbers })
}

/// Computes the special registers of the original launch from those of the coarsened launch.
fn rename(function: &mut Function, plan: &Plan, copies: CopyLocals) {
    for id in (0..function.exprs.len()).map(|index| ExprId::new(index as u32)) {
        let ExprKind::Special(register) = function.exprs[id].kind else { continue };
        let Some(Coarsened { axis, factor, numbers }) = coarsened(plan.factors, register) else { continue };
        let span = function.exprs[id].span;
        let mut push = |kind| function.exprs.push(Expr { kind, ty: Type::I32, span });
        let own = push(ExprKind::Special(register));
        function.exprs[id].kind = match (numbers, copies[axis]) {
            (true, Some(copy)) => {
                let mut push = |kind| function.exprs.push(Expr { kind, ty: Type::I32, span });
                let copy = push(ExprKind::Local(copy));
                match plan.orders[axis] {
                    Order::Contiguous | Order::Blocks => {
                        let factor = push(ExprKind::Const(Const::Int(i128::from(factor))));
                        let first = push(ExprKind::Binary(BinaryOp::Mul, own, factor));
                        ExprKind::Binary(BinaryOp::Add, first, copy)
                    }
                    Order::Strided => {
                        let extent = push(ExprKind::Special(SpecialRegister::BlockDim(axis as u8)));
                        let far = push(ExprKind::Binary(BinaryOp::Mul, copy, extent));
                        ExprKind::Binary(BinaryOp::Add, own, far)
                    }
                }
            }
            // The function does not read its thread index.
            (true, None) => ExprKind::Special(register),
            (false, _) => {
                let factor = function.exprs.push(Expr::int(Scalar::I32, i128::from(factor), span));
                ExprKind::Binary(BinaryOp::Mul, own, factor)
            }
        };
    }
}

/// Adds a local for the index of the copy along an axis.
fn copy_local(function: &mut Function, axis: usize) -> LocalId {
    let name = format!("copy.{}", ["x", "y", "z"][axis]);
    let local = Local { nonneg: true, ..Local::new(name, LocalKind::Part, Type::I32) };
    function.locals.push(local)
}
