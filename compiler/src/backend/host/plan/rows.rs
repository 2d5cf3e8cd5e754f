//! Blocks of short rows: tiles of 16x16 threads.
//!
//! A row of 16 threads is one vector, but a loop of any number of threads costs several times as much to begin and to end. So rows
//! that have just as many threads as the kernel seems to be written for have a loop of so many turns, which becomes straight
//! code; who launches other blocks has the other loop.

use crate::{
    analysis::Fixed,
    ir::{
        Arith, BinaryOp, Class, ExprId, ExprKind, Function, Leaf, Module, SharedKind, SpecialRegister, Stmt, StmtKind,
        for_each_expr_of_stmt, for_each_stmt,
    },
};

/// Widths of rows, each the length of tiles' rows or a little less, where these are padded.
const WIDTHS: [(i128, u64); 3] = [(8, 8), (16, 16), (32, 32)];

/// Warps that a block can have.
const WARPS: u32 = 32;

/// Threads of most blocks.
const MOST_COMMON: u32 = 256;

/// By how much rows of tiles are padded at most.
const MOST_PADDING: i128 = 2;

/// Expressions of the largest segment that is there twice.
const MOST_EXPRS: usize = 160;

/// How many threads a block's rows seem to have: what `threadIdx.y` is multiplied with.
pub(crate) fn width(function: &Function, fixed: &Fixed) -> Option<u64> {
    let is_y = |mut id: ExprId| loop {
        id = match function.class(id) {
            Class::Leaf(Leaf::Special(SpecialRegister::ThreadIdx(1))) => return true,
            Class::Leaf(Leaf::Local(local)) => match fixed.value(local) {
                Some(value) => value,
                None => return false,
            },
            Class::Arith(Arith::Convert(inner)) => inner,
            Class::Leaf(_) | Class::Arith(_) | Class::Address { .. } | Class::Load(_) => return false,
        };
    };
    function.exprs.iter().find_map(|(_, expr)| {
        let ExprKind::Binary(BinaryOp::Mul | BinaryOp::MulExact, a, b) = expr.kind else { return None };
        let times = if is_y(a) {
            function.int(b)?
        } else if is_y(b) {
            function.int(a)?
        } else {
            return None;
        };
        let fits = |&&(least, _): &&(i128, u64)| (least..=least + MOST_PADDING).contains(&times);
        WIDTHS.iter().find(fits).map(|&(_, width)| width)
    })
}

/// How many threads a row of a block with barriers seems to have: as many as an array that they share has elements, if that is more
/// than what the warps of a block have.
pub(crate) fn length(module: &Module) -> u32 {
    let own = module.shared.iter().filter(|(_, array)| array.kind != SharedKind::Cells);
    let longest = own.filter_map(|(_, array)| u32::try_from(array.len).ok()).max();
    longest.filter(|longest| *longest > WARPS && longest % WARPS == 0).unwrap_or(MOST_COMMON)
}

/// Whether a segment's body is worth two loops: short, and without loops of its own.
pub(crate) fn is_short(function: &Function, body: &[Stmt]) -> bool {
    let (mut exprs, mut simple) = (0, true);
    for_each_stmt(body, &mut |stmt| {
        simple &= !matches!(stmt.kind, StmtKind::Loop { .. } | StmtKind::Op { .. } | StmtKind::Call { .. });
        for_each_expr_of_stmt(function, &stmt.kind, &mut |_| exprs += 1);
    });
    simple && exprs <= MOST_EXPRS
}
