//! Warps that have nothing to do with each other, as blocks of their own.
//!
//! Where each warp works on a row of its own and waits for no other (`analysis::gains_by_warps`), a block of whole warps is the
//! same program as so many blocks of 32 threads. Then `cuda.grid(1) // 32` is a number that all threads of such a block share, as
//! are `threadIdx.y`, the row's bounds that are loaded by it, and whether there is such a row; the row's loop is one that a block's
//! threads take together, and how many threads there are is a constant.
//!
//! | the program's | becomes |
//! |---|---|
//! | `threadIdx.x` | the warp's place in its row of the block times 32, and the lane |
//! | `threadIdx.y`, `threadIdx.z` | the warp's |
//! | `laneid` | `threadIdx.x` of the block of 32 |
//! | `(… + threadIdx.x) // 32`, `>> 5` | what all lanes share, if what is added is a multiple of 32 |
//! | `(… + threadIdx.x) % 32`, `& 31` | the lane |

use crate::{
    analysis::Rematerializable,
    backend::host::plan::plan_ir::{Node, Runs, for_each_segment},
    ir::{
        Arith, BinaryOp, Block, Class, Const, Expr, ExprId, ExprKind, Function, Leaf, SpecialRegister, Type,
        for_each_expr_of_block,
    },
};

/// Lanes of a warp, and its binary logarithm.
const LANES: i128 = crate::backend::host::plan::LANES as i128;
const LOG_LANES: i128 = 5;

/// Which of [`SpecialRegister::OfRow`] are the warp's place along each axis: `threadIdx.x / 32`, `threadIdx.y`, `threadIdx.z`.
const PLACE: [u8; 3] = [0, 1, 2];

/// And which is `blockDim.x / 32`.
const PER_ROW: u8 = 3;

/// How many expressions are looked through for one quotient.
const EFFORT: u32 = 64;

/// Bits of a sum that does not wrap in 64.
const MOST_BITS: u32 = 62;

/// A value that is so many times 32, and perhaps the lane more.
struct Parts {
    /// The factor, of `I64`.
    times: ExprId,
    has_lane: bool,
    /// The value is below two to the power of this, and not negative.
    bits: u32,
}

/// Rewrites a kernel's body for blocks of one warp; whether it takes `threadIdx.x` for the lane.
pub(crate) fn rewrite(function: &mut Function, body: &Block) -> bool {
    let fixed = Rematerializable::of(function, body);
    let mut all = Vec::new();
    for_each_expr_of_block(function, body, &mut |id| all.push(id));
    // All that is asked is asked of the body as it was.
    let mut done = Vec::new();
    for &id in &all {
        if let Some(kind) = of_lanes(function, &fixed, id) {
            done.push((id, kind));
        }
    }
    let (mut narrow, mut asks) = (done.is_empty(), false);
    for id in all {
        let ExprKind::Special(register) = function.exprs[id].kind else { continue };
        let kind = match register {
            SpecialRegister::LaneId => {
                narrow = false;
                ExprKind::Special(SpecialRegister::ThreadIdx(0))
            }
            SpecialRegister::ThreadIdx(0) => {
                asks = true;
                let mut make = Make { function, of: id };
                let (warp, lanes) = (make.of_row(PLACE[0]), make.int(LANES, Type::I64));
                let first = make.push(ExprKind::Binary(BinaryOp::Mul, warp, lanes), Type::I64);
                let first = make.push(ExprKind::Convert(first), Type::I32);
                let lane = make.push(ExprKind::Special(SpecialRegister::ThreadIdx(0)), Type::I32);
                ExprKind::Binary(BinaryOp::AddExact, first, lane)
            }
            SpecialRegister::ThreadIdx(axis) => {
                let mut make = Make { function, of: id };
                ExprKind::Convert(make.of_row(PLACE[usize::from(axis.min(2))]))
            }
            SpecialRegister::BlockIdx(_)
            | SpecialRegister::BlockDim(_)
            | SpecialRegister::GridDim(_)
            | SpecialRegister::WarpSize
            | SpecialRegister::DynamicSharedBytes
            | SpecialRegister::OfRow(_) => continue,
        };
        done.push((id, kind));
    }
    for (id, kind) in done {
        function.exprs[id].kind = kind;
    }
    narrow && asks
}

/// Has each lane asked whether it runs a segment: how many lanes there are in a loop over them is then a constant.
pub(crate) fn ask_lanes(nodes: &mut [Node]) {
    for_each_segment(nodes, &mut |segment| {
        if matches!(segment.runs, Runs::EachThread | Runs::OneThread) && segment.guard.is_some() {
            segment.some = segment.guard.take();
            // Who does not run it puts back what was there.
            let (load, store) = (&mut segment.load, &segment.store);
            load.extend(store.iter().filter(|local| !load.contains(local)).copied().collect::<Vec<_>>());
        }
    });
}

/// What a quotient by 32, or a remainder, is in a block of one warp.
fn of_lanes(function: &mut Function, fixed: &Rematerializable, id: ExprId) -> Option<ExprKind> {
    let ExprKind::Binary(op, value, by) = function.exprs[id].kind else { return None };
    let is_size = function.exprs[by].kind == ExprKind::Special(SpecialRegister::WarpSize);
    let by = if is_size { LANES } else { function.int(by)? };
    let divides = match (op, by) {
        (BinaryOp::FloorDiv | BinaryOp::DivNonneg, LANES) | (BinaryOp::Shr, LOG_LANES) => true,
        (BinaryOp::FloorMod | BinaryOp::ModNonneg, LANES) => false,
        (BinaryOp::And, by) if by == LANES - 1 => false,
        _ => return None,
    };
    let ty = function.exprs[id].ty;
    if !matches!(ty, Type::I32 | Type::I64) {
        return None;
    }
    let Parts { times, has_lane, .. } = Search { function, fixed, of: id }.parts(value, &mut EFFORT.clone())?;
    let mut make = Make { function, of: id };
    Some(if divides {
        if ty == Type::I64 { make.function.exprs[times].kind.clone() } else { ExprKind::Convert(times) }
    } else if !has_lane {
        ExprKind::Const(Const::Int(0))
    } else if ty == Type::I64 {
        ExprKind::Convert(make.push(ExprKind::Special(SpecialRegister::ThreadIdx(0)), Type::I32))
    } else {
        ExprKind::Special(SpecialRegister::ThreadIdx(0))
    })
}

/// Looks for the parts of a value. Expressions are trees: what is found is made of new ones.
struct Search<'a> {
    function: &'a mut Function,
    fixed: &'a Rematerializable,
    /// The expression in whose place the result stands.
    of: ExprId,
}

impl Search<'_> {
    fn make(&mut self) -> Make<'_> {
        Make { function: self.function, of: self.of }
    }

    fn parts(&mut self, id: ExprId, effort: &mut u32) -> Option<Parts> {
        *effort = effort.checked_sub(1)?;
        let ty = self.function.exprs[id].ty;
        match self.function.exprs[id].kind.class() {
            Class::Leaf(Leaf::Special(SpecialRegister::ThreadIdx(0))) => {
                Some(Parts { times: self.make().of_row(PLACE[0]), has_lane: true, bits: 10 })
            }
            Class::Leaf(Leaf::Special(SpecialRegister::BlockDim(0))) => {
                Some(Parts { times: self.make().of_row(PER_ROW), has_lane: false, bits: 11 })
            }
            Class::Leaf(Leaf::Const(Const::Int(value))) if value >= 0 && value % LANES == 0 => {
                let bits = i128::BITS - value.leading_zeros();
                let times = self.make().int(value / LANES, Type::I64);
                (bits <= MOST_BITS).then_some(Parts { times, has_lane: false, bits })
            }
            Class::Leaf(Leaf::Local(local)) => {
                let value = self.fixed.value(local)?;
                self.parts(value, effort)
            }
            Class::Arith(Arith::Convert(inner)) if ty == Type::I64 && self.function.exprs[inner].ty == Type::I32 => {
                self.parts(inner, effort)
            }
            Class::Arith(Arith::Binary(op @ (BinaryOp::Add | BinaryOp::AddExact), a, b)) => {
                let (a, b) = (self.parts(a, effort)?, self.parts(b, effort)?);
                let bits = a.bits.max(b.bits) + 1;
                if (a.has_lane && b.has_lane) || (op == BinaryOp::Add && bits > most(ty)) {
                    return None;
                }
                let times = self.make().push(ExprKind::Binary(BinaryOp::Add, a.times, b.times), Type::I64);
                Some(Parts { times, has_lane: a.has_lane || b.has_lane, bits: bits.min(most(ty)) })
            }
            Class::Arith(Arith::Binary(op @ (BinaryOp::Mul | BinaryOp::MulExact), a, b)) => {
                let (of, by) = match self.factor(a, effort) {
                    Some(by) => (b, by),
                    None => (a, self.factor(b, effort)?),
                };
                let (of, (by, by_bits)) = (self.parts(of, effort)?, by);
                let bits = of.bits + by_bits;
                if of.has_lane || (op == BinaryOp::Mul && bits > most(ty)) {
                    return None;
                }
                let times = self.make().push(ExprKind::Binary(BinaryOp::Mul, of.times, by), Type::I64);
                Some(Parts { times, has_lane: false, bits: bits.min(most(ty)) })
            }
            Class::Leaf(_) | Class::Arith(_) | Class::Address { .. } | Class::Load(_) => None,
        }
    }

    /// A number of blocks, as `I64`, and its bits: what `blockDim.x` is multiplied with.
    fn factor(&mut self, id: ExprId, effort: &mut u32) -> Option<(ExprId, u32)> {
        *effort = effort.checked_sub(1)?;
        let ty = self.function.exprs[id].ty;
        match self.function.exprs[id].kind.class() {
            Class::Leaf(Leaf::Special(register @ (SpecialRegister::BlockIdx(_) | SpecialRegister::GridDim(_)))) => {
                let mut make = self.make();
                let value = make.push(ExprKind::Special(register), Type::I32);
                Some((make.push(ExprKind::Convert(value), Type::I64), i32::BITS - 1))
            }
            Class::Leaf(Leaf::Local(local)) => {
                let value = self.fixed.value(local)?;
                self.factor(value, effort)
            }
            Class::Arith(Arith::Convert(inner)) if ty == Type::I64 && self.function.exprs[inner].ty == Type::I32 => {
                self.factor(inner, effort)
            }
            Class::Leaf(_) | Class::Arith(_) | Class::Address { .. } | Class::Load(_) => None,
        }
    }
}

/// Bits of the largest value of a type, which sums of small ones stay below.
fn most(ty: Type) -> u32 {
    if ty == Type::I64 { MOST_BITS } else { i32::BITS - 1 }
}

/// Makes expressions where another one stands.
struct Make<'a> {
    function: &'a mut Function,
    of: ExprId,
}

impl Make<'_> {
    fn push(&mut self, kind: ExprKind, ty: Type) -> ExprId {
        let span = self.function.exprs[self.of].span;
        self.function.exprs.push(Expr { kind, ty, span })
    }

    fn int(&mut self, value: i128, ty: Type) -> ExprId {
        self.push(ExprKind::Const(Const::Int(value)), ty)
    }

    fn of_row(&mut self, number: u8) -> ExprId {
        self.push(ExprKind::Special(SpecialRegister::OfRow(number)), Type::I64)
    }
}
