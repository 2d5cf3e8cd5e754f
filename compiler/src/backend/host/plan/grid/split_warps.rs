//! Work-group splitting: runs each warp as a block of 32 threads.
//!
//! Legal if no warp of a block synchronizes with another one (`analysis::gains_by_warps`) and `blockDim.x` is a
//! multiple of 32 (the launch assumption *warps*): a block of whole warps is then the same program as several blocks of
//! 32 threads.
//!
//! Profitable because values that are uniform in a warp become uniform in the block, such as `cuda.grid(1) // 32`,
//! `threadIdx.y`, the loop bounds that are loaded at such an index, and guards on it. A loop with such bounds can be
//! interchanged with the thread loop, whose trip count is the constant 32.
//!
//! | in the program | becomes |
//! |---|---|
//! | `threadIdx.x` | 32 times the warp's index along `x`, plus the lane |
//! | `threadIdx.y`, `threadIdx.z` | the warp's index along that axis |
//! | `laneid` | `threadIdx.x` in the block of 32 |
//! | `(… + threadIdx.x) // 32`, `>> 5` | a uniform value, if the other terms are multiples of 32 |
//! | `(… + threadIdx.x) % 32`, `& 31` | the lane, under the same condition |

use crate::{
    analysis::Rematerializable,
    backend::host::plan::plan_ir::{self, Node, Runs, for_each_segment},
    ir::{
        Arith, BinaryOp, Block, Class, Const, Editor, ExprId, ExprKind, Function, Leaf, SpecialRegister, Type,
        for_each_expr_of_block,
    },
};

/// The warp size and its binary logarithm.
const LANES: i128 = plan_ir::LANES as i128;
const LOG_LANES: i128 = 5;

/// Numbers of the [`SpecialRegister::OfRow`] that contain the warp's position: `threadIdx.x / 32`, `threadIdx.y` and
/// `threadIdx.z` of its first thread.
const WARP_POSITION: [u8; 3] = [0, 1, 2];

/// Number of the [`SpecialRegister::OfRow`] that contains `blockDim.x / 32`.
const WARPS_PER_ROW: u8 = 3;

/// Most expressions that the search for one quotient or remainder visits.
const MAX_VISITED: u32 = 64;

/// Most bits of a 64-bit sum that cannot wrap.
const MAX_BITS: u32 = 62;

/// A value of the form `32 * times`, or `32 * times + lane`.
struct WarpParts {
    /// The factor, of type `I64`.
    times: ExprId,
    has_lane: bool,
    /// The value is less than `2.pow(bits)` and not negative.
    bits: u32,
}

/// Rewrites a kernel's body for blocks of one warp. Returns whether it reads `threadIdx.x`, other than to compute a
/// lane or the index of a warp.
pub(crate) fn rewrite(function: &mut Function, body: &Block) -> bool {
    let fixed = Rematerializable::of(function, body);
    let mut all = Vec::new();
    for_each_expr_of_block(function, body, &mut |id| all.push(id));
    // The patterns are matched in the original body, before any expression is replaced.
    let mut done = Vec::new();
    for &id in &all {
        if let Some(kind) = of_lanes(function, &fixed, id) {
            done.push((id, kind));
        }
    }
    let mut reads_index = false;
    for id in all {
        let ExprKind::Special(register) = function.exprs[id].kind else { continue };
        let kind = match register {
            SpecialRegister::LaneId => ExprKind::Special(SpecialRegister::ThreadIdx(0)),
            SpecialRegister::ThreadIdx(0) => {
                reads_index = true;
                let mut editor = function.edit(function.exprs[id].span);
                let (warp, lanes) = (of_row(&mut editor, WARP_POSITION[0]), editor.int(LANES, Type::I64));
                let first = editor.expr(ExprKind::Binary(BinaryOp::Mul, warp, lanes), Type::I64);
                let first = editor.expr(ExprKind::Convert(first), Type::I32);
                let lane = editor.expr(ExprKind::Special(SpecialRegister::ThreadIdx(0)), Type::I32);
                ExprKind::Binary(BinaryOp::AddExact, first, lane)
            }
            SpecialRegister::ThreadIdx(axis) => {
                let mut editor = function.edit(function.exprs[id].span);
                ExprKind::Convert(of_row(&mut editor, WARP_POSITION[usize::from(axis.min(2))]))
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
    reads_index
}

/// Replaces the guards of segments by a test in each lane, so that their thread loops have the constant trip count 32.
pub(crate) fn guard_lanes(nodes: &mut [Node]) {
    for_each_segment(nodes, &mut |segment| {
        if matches!(segment.runs, Runs::EachThread | Runs::OneThread) && segment.guard.is_some() {
            segment.lane_guard = segment.guard.take();
            // A lane that does not run the segment stores the old values again, so they must be loaded.
            let (load, store) = (&mut segment.load, &segment.store);
            load.extend(store.iter().filter(|local| !load.contains(local)).copied().collect::<Vec<_>>());
        }
    });
}

/// The replacement of a quotient or remainder by 32 in a block of one warp.
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
    let WarpParts { times, has_lane, .. } =
        Search { function, fixed, of: id }.parts(value, &mut MAX_VISITED.clone())?;
    let mut editor = function.edit(function.exprs[id].span);
    Some(if divides {
        if ty == Type::I64 { editor.function.exprs[times].kind.clone() } else { ExprKind::Convert(times) }
    } else if !has_lane {
        ExprKind::Const(Const::Int(0))
    } else if ty == Type::I64 {
        ExprKind::Convert(editor.expr(ExprKind::Special(SpecialRegister::ThreadIdx(0)), Type::I32))
    } else {
        ExprKind::Special(SpecialRegister::ThreadIdx(0))
    })
}

/// Splits values into [`WarpParts`]. Expressions are trees, so that each result consists of new expressions.
struct Search<'a> {
    function: &'a mut Function,
    fixed: &'a Rematerializable,
    /// The expression that the result replaces.
    of: ExprId,
}

impl Search<'_> {
    fn edit(&mut self) -> Editor<'_> {
        self.function.edit(self.function.exprs[self.of].span)
    }

    fn parts(&mut self, id: ExprId, effort: &mut u32) -> Option<WarpParts> {
        *effort = effort.checked_sub(1)?;
        let ty = self.function.exprs[id].ty;
        match self.function.exprs[id].kind.class() {
            Class::Leaf(Leaf::Special(SpecialRegister::ThreadIdx(0))) => {
                Some(WarpParts { times: of_row(&mut self.edit(), WARP_POSITION[0]), has_lane: true, bits: 10 })
            }
            Class::Leaf(Leaf::Special(SpecialRegister::BlockDim(0))) => {
                Some(WarpParts { times: of_row(&mut self.edit(), WARPS_PER_ROW), has_lane: false, bits: 11 })
            }
            Class::Leaf(Leaf::Const(Const::Int(value))) if value >= 0 && value % LANES == 0 => {
                let bits = i128::BITS - value.leading_zeros();
                let times = self.edit().int(value / LANES, Type::I64);
                (bits <= MAX_BITS).then_some(WarpParts { times, has_lane: false, bits })
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
                let times = self.edit().expr(ExprKind::Binary(BinaryOp::Add, a.times, b.times), Type::I64);
                Some(WarpParts { times, has_lane: a.has_lane || b.has_lane, bits: bits.min(most(ty)) })
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
                let times = self.edit().expr(ExprKind::Binary(BinaryOp::Mul, of.times, by), Type::I64);
                Some(WarpParts { times, has_lane: false, bits: bits.min(most(ty)) })
            }
            Class::Leaf(_) | Class::Arith(_) | Class::Address { .. } | Class::Load(_) => None,
        }
    }

    /// A block index or an extent of the grid, as `I64`, with its bits: a factor of `blockDim.x`.
    fn factor(&mut self, id: ExprId, effort: &mut u32) -> Option<(ExprId, u32)> {
        *effort = effort.checked_sub(1)?;
        let ty = self.function.exprs[id].ty;
        match self.function.exprs[id].kind.class() {
            Class::Leaf(Leaf::Special(register @ (SpecialRegister::BlockIdx(_) | SpecialRegister::GridDim(_)))) => {
                let mut editor = self.edit();
                let value = editor.expr(ExprKind::Special(register), Type::I32);
                Some((editor.expr(ExprKind::Convert(value), Type::I64), i32::BITS - 1))
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

/// Most bits of a value of a type that has not wrapped.
fn most(ty: Type) -> u32 {
    if ty == Type::I64 { MAX_BITS } else { i32::BITS - 1 }
}

/// A register of the warp's position.
fn of_row(editor: &mut Editor<'_>, number: u8) -> ExprId {
    editor.expr(ExprKind::Special(SpecialRegister::OfRow(number)), Type::I64)
}
