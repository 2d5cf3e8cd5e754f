//! Coarsens the threads of a block: one does the work of several neighbours, its *copies*, along the axes that
//! [`Module::coarsen`] says.
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
//! The launch has a block whose extents are divided by the factors; `threadIdx` and `blockDim` keep the values that the
//! program asked for. What is the same for the copies ([`vary`]) is computed once. Control flow that is the same for them
//! is jammed: one flow, in which each statement stands once a copy. What may differ is tested for agreement, with a copy of
//! the statement for each where they do not agree ([`emit`]). A barrier is made once, for all; where some of the copies have
//! returned, the others go on under guards ([`guarded`]), and where they may be in different arms or turns, under masks
//! ([`masked`]).
//!
//! Threads of a block are independent between barriers, so the order of their statements does not matter to a program
//! without races. Where it may, the kernel is left alone, and the reason is told ([`refuse`]).

mod callees;
mod emit;
mod guarded;
mod masked;
mod model;
mod order;
mod refuse;
mod returns;
mod vary;

use weft_artifact::{Coarsening, Scalar};

use crate::ir::{
    BinaryOp, Circles, Const, Effects, Expr, ExprId, ExprKind, FuncId, Function, Local, LocalId, LocalKind, Module,
    SpecialRegister, Type,
};

/// How the copies of a thread lie along an axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Order {
    /// Copy `k` of thread `t` of the launch is thread `t * factor + k`: neighbours, whose accesses merge into wider ones.
    Neighbors,
    /// It is thread `t + k * n`, of the launch's `n`: neighbours of the launch stay neighbours.
    Strided,
}

/// How the threads are coarsened.
#[derive(Clone, Copy, Debug)]
struct Plan {
    /// By axis: copies of a thread.
    factors: [u32; 3],
    /// By axis.
    orders: [Order; 3],
}

/// The locals, by axis, that stand for the number of the copy; none where there is one copy.
type CopyLocals = [Option<LocalId>; 3];

/// Runs the pass.
pub(super) fn run(module: &mut Module) {
    // A module that nobody has told of has zeros.
    let factors = module.coarsen.map(|factor| factor.max(1));
    if factors == Coarsening::NONE {
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

/// A module whose kernel has the registers of the program, and numbers of its copies.
struct Prepared {
    changed: Module,
    kernel: FuncId,
    copies: CopyLocals,
    plan: Plan,
}

/// Prepares a copy of a module, or says why it is left as it is.
fn prepare(module: &Module, factors: [u32; 3], circles: &Circles, effects: &[Effects]) -> Result<Prepared, String> {
    let Some(kernel) = module.kernel else { return Err("there is no kernel".to_owned()) };
    refuse::module(module, circles, effects)?;
    let mut changed = module.clone();
    // Which arrays are only read.
    super::access::run(&mut changed);
    refuse::waits(&changed, circles)?;
    returns::structure(&mut changed.functions[kernel]);
    super::drop_dead::clean(&mut changed.functions[kernel]);
    let copies = callees::number_copies(&mut changed, factors);
    refuse::size(&changed.functions[kernel], factors.iter().product::<u32>() as usize)?;
    let x = order::along_x(&changed, copies);
    let prepared =
        Prepared { changed, kernel, copies, plan: Plan { factors, orders: [x, Order::Neighbors, Order::Neighbors] } };
    if x == Order::Strided || factors[0] == 1 {
        return Ok(prepared.renamed());
    }
    // Neighbors whose accesses cannot merge would take apart what the launch's neighbors access together.
    let strided = Plan { factors, orders: [Order::Strided, Order::Neighbors, Order::Neighbors] };
    let apart = Prepared { changed: prepared.changed.clone(), plan: strided, ..prepared };
    let neighbors = prepared.renamed();
    Ok(if model::merges(&neighbors) { neighbors } else { apart.renamed() })
}

impl Prepared {
    /// With the registers of the program.
    fn renamed(mut self) -> Self {
        for (id, function) in self.changed.functions.iter_mut() {
            let locals = if id == self.kernel { self.copies } else { callees::params(function, self.plan.factors) };
            rename(function, &self.plan, locals);
        }
        self
    }
}

/// Coarsens the kernel and says how, or leaves the module as it is and says why.
fn coarsen(module: &mut Module, factors: [u32; 3]) -> Result<String, String> {
    let (circles, effects) = (Circles::of(module), Effects::of_module(module));
    let Prepared { mut changed, kernel, copies, plan } = prepare(module, factors, &circles, &effects)?;
    let vary = vary::Vary::of(&changed, kernel, copies);
    emit::copies(&mut changed.functions[kernel], &vary, &plan, copies);
    super::drop_dead::clean(&mut changed.functions[kernel]);
    *module = changed;
    let [x, y, z] = factors;
    let order = match (plan.factors, plan.orders) {
        ([1, ..], _) => "",
        (_, [Order::Neighbors, ..]) => ", neighbors in x",
        (_, [Order::Strided, ..]) => ", strided in x",
    };
    Ok(format!("{x}x{y}x{z} threads in one{order}"))
}

/// Makes the registers of the launch's threads those of the program's.
fn rename(function: &mut Function, plan: &Plan, copies: CopyLocals) {
    for id in (0..function.exprs.len()).map(|index| ExprId::new(index as u32)) {
        let ExprKind::Special(register) = function.exprs[id].kind else { continue };
        let (axis, is_index) = match register {
            SpecialRegister::ThreadIdx(axis) => (axis, true),
            SpecialRegister::BlockDim(axis) => (axis, false),
            SpecialRegister::BlockIdx(_)
            | SpecialRegister::GridDim(_)
            | SpecialRegister::LaneId
            | SpecialRegister::WarpSize
            | SpecialRegister::DynamicSharedBytes => continue,
        };
        let factor = plan.factors[usize::from(axis)];
        if factor == 1 {
            continue;
        }
        let span = function.exprs[id].span;
        let mut push = |kind| function.exprs.push(Expr { kind, ty: Type::I32, span });
        let own = push(ExprKind::Special(register));
        function.exprs[id].kind = match (is_index, copies[usize::from(axis)]) {
            (true, Some(copy)) => {
                let mut push = |kind| function.exprs.push(Expr { kind, ty: Type::I32, span });
                let copy = push(ExprKind::Local(copy));
                match plan.orders[usize::from(axis)] {
                    Order::Neighbors => {
                        let factor = push(ExprKind::Const(Const::Int(i128::from(factor))));
                        let first = push(ExprKind::Binary(BinaryOp::Mul, own, factor));
                        ExprKind::Binary(BinaryOp::Add, first, copy)
                    }
                    Order::Strided => {
                        let extent = push(ExprKind::Special(SpecialRegister::BlockDim(axis)));
                        let far = push(ExprKind::Binary(BinaryOp::Mul, copy, extent));
                        ExprKind::Binary(BinaryOp::Add, own, far)
                    }
                }
            }
            // A function that does not ask for its thread.
            (true, None) => ExprKind::Special(register),
            (false, _) => {
                let factor = function.exprs.push(Expr::int(Scalar::I32, i128::from(factor), span));
                ExprKind::Binary(BinaryOp::Mul, own, factor)
            }
        };
    }
}

/// A local that stands for the number of the copy along an axis.
fn copy_local(function: &mut Function, axis: usize) -> LocalId {
    let name = format!("copy.{}", ["x", "y", "z"][axis]);
    let local = Local { nonneg: true, ..Local::new(name, LocalKind::Part, Type::I32) };
    function.locals.push(local)
}
