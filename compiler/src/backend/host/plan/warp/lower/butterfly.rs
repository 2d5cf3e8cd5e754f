//! Reductions of a warp by a butterfly of shuffles.
//!
//! ```text
//! $t = shuffle.xor -1, $v, 16, 32           store cells[t] = $v
//! $v = $v + $t                              of_warps: once for the threads from w to w + 31
//! $t = shuffle.xor -1, $v, 8, 32                $total = lane_fold.add cells[w]
//! $v = $v + $t                                  store cells[w..w + 32] = $total
//! …                                         $v = load cells[t]
//! ```
//!
//! All lanes compute the same tree of operations, because the operator is commutative. So once is enough for a warp, in
//! vector registers, with the operations in their order: the results have the same bits, except for the payload of NaNs.
//!
//! Legal if nothing else reads the values that the shuffles return. The mask has all lanes, so all of them run the
//! shuffles. If one is not present, its value is not defined, and with it all results. Not on fibers, where a lane waits
//! at each shuffle.
//!
//! Profitable always: one exchange through memory and one barrier replace five, and 31 operations 160.

use crate::{
    analysis::for_each_mention,
    backend::host::plan::plan_ir::cells::LANES,
    ir::{BinaryOp, ExprKind, Function, LocalId, Op, Shuffle, Stmt, StmtKind, WarpReduction},
    source::Span,
};

/// The distances of the shuffles.
const DISTANCES: [i128; 5] = [16, 8, 4, 2, 1];

/// The number of statements.
pub(super) const LENGTH: usize = 2 * DISTANCES.len();

/// A butterfly that reduces a local.
pub(super) struct Butterfly {
    pub(super) reduction: WarpReduction,
    pub(super) value: LocalId,
    pub(super) span: Span,
}

/// By the local's index: how often statements mention it.
pub(super) fn mentions(function: &Function, body: &[Stmt]) -> Vec<u32> {
    let mut mentions = vec![0; function.locals.len()];
    for_each_mention(function, body, &mut |local| mentions[local.index()] += 1);
    mentions
}

/// The butterfly that some statements start with.
pub(super) fn find(function: &Function, mentions: &[u32], stmts: &[Stmt]) -> Option<Butterfly> {
    let stmts = stmts.get(..LENGTH)?;
    let mut found = None;
    let mut returned = Vec::new();
    for (pair, distance) in stmts.chunks_exact(2).zip(DISTANCES) {
        let [Stmt { kind: StmtKind::Op { op: Op::Shuffle(Shuffle::Xor), results, args }, .. }, next] = pair else {
            return None;
        };
        let (&[other], &[mask, value, by, width]) = (results.as_slice(), args.as_slice()) else { return None };
        let is_whole = matches!(function.int(mask), Some(mask) if mask == -1 || mask == i128::from(u32::MAX));
        if !is_whole || function.int(by) != Some(distance) || function.int(width) != Some(LANES) {
            return None;
        }
        let value = function.local(value)?;
        let StmtKind::Assign(to, combined) = next.kind else { return None };
        let ExprKind::Binary(op, a, b) = function.exprs[combined].kind else { return None };
        let operands = [function.local(a)?, function.local(b)?];
        let this = (reduction(op)?, value);
        if to != value
            || other == value
            || !(operands == [value, other] || operands == [other, value])
            || *found.get_or_insert(this) != this
        {
            return None;
        }
        returned.push(other);
    }
    // Each is mentioned where a shuffle returns it, and where it is combined.
    let is_read_here = |local: &LocalId| {
        let here = returned.iter().filter(|other| *other == local).count();
        mentions.get(local.index()).is_some_and(|&all| all as usize == 2 * here)
    };
    let (reduction, value) = found?;
    let is_number = function.locals[value]
        .ty
        .scalar()
        .is_some_and(|scalar| scalar.is_int() || (scalar.is_float() && !scalar.is_half()));
    (is_number && returned.iter().all(is_read_here)).then_some(Butterfly { reduction, value, span: stmts[0].span })
}

/// The reduction by an operator, if that is commutative.
fn reduction(op: BinaryOp) -> Option<WarpReduction> {
    match op {
        BinaryOp::Add | BinaryOp::AddExact => Some(WarpReduction::Add),
        BinaryOp::Min => Some(WarpReduction::Min),
        BinaryOp::Max => Some(WarpReduction::Max),
        BinaryOp::And => Some(WarpReduction::And),
        BinaryOp::Or => Some(WarpReduction::Or),
        BinaryOp::Xor => Some(WarpReduction::Xor),
        BinaryOp::Sub
        | BinaryOp::SubExact
        | BinaryOp::Mul
        | BinaryOp::MulExact
        | BinaryOp::Div
        | BinaryOp::FloorDiv
        | BinaryOp::FloorMod
        | BinaryOp::DivNonneg
        | BinaryOp::ModNonneg
        | BinaryOp::Pow
        | BinaryOp::Shl
        | BinaryOp::Shr => None,
    }
}
