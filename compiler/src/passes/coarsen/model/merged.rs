//! Chooses the blocks that are worth merging: in kernels whose copies load the same operands in loops, as the rows and
//! columns of a matrix product, and in kernels without loops, where launching many blocks often dominates the time.
//! Copies in different blocks share nothing else: their elements are not contiguous, so accesses do not widen.

use std::collections::BTreeSet;

use weft_artifact::{Candidate, Factors};

use super::{Estimate, MOST_COPIES};
use crate::{
    ir::{ExprKind, Module, SpecialRegister, for_each_expr_of_block},
    passes::coarsen::refuse,
};

/// The maximum number of merged blocks that is estimated, for kernels whose blocks share operands.
const MOST_BLOCKS: u32 = 8;
/// The number of candidates that are retained.
pub(super) const MOST_CANDIDATES: usize = 3;
/// Blocks share operands if merging reduces a thread's loads in loops to this fraction or less.
const SHARED_LOADS: f64 = 0.8;
/// The fraction of the estimated gain that is assumed in loops of unknown trip count. Loads are shared there, so it is
/// larger than for other copies: a naive matrix product with 2x2 blocks merged by hand takes 0.67 of its time on an
/// H200, which agrees with this factor.
pub(super) const GAIN_IN_LOOPS: f64 = 0.75;
/// In a kernel without loops, block launches matter if their time times this factor dominates.
const BEGINNINGS: f64 = 2.0;
/// Merging is considered if its time is at most this many thousandths of that of the best other candidate: in loops,
/// where the estimate is rough, and without.
const CLEARLY_IN_LOOPS: u32 = 900;
const CLEARLY: u32 = 970;

/// Estimates of factors of blocks along x and y, for kernels in which blocks share loads, and for short ones.
/// `threads`: the axes along which the kernel reads its thread index; `is_wide`: the best candidates without merging
/// have wide accesses.
pub(super) fn promising(
    module: &Module,
    plain: &Estimate,
    threads: [bool; 3],
    is_wide: bool,
    estimate: &dyn Fn(Factors) -> Result<Estimate, String>,
) -> Result<Vec<Estimate>, String> {
    let [along_x, along_y] = axes(module);
    if refuse::merging(module).is_err() || !(along_x || along_y) {
        return Ok(Vec::new());
    }
    if !plain.has_loops {
        let blocks = [along_x, along_y];
        return Ok(if is_wide { Vec::new() } else { of_light(plain, blocks, threads, estimate) });
    }
    let two = |along: bool| if along { 2 } else { 1 };
    // After blocks are merged, a loop may be one in which they wait for each other.
    let Ok(first) = estimate(Factors::of_blocks([two(along_x), two(along_y), 1])) else { return Ok(Vec::new()) };
    let shares = |one: &Estimate| plain.loads > 0.0 && one.loads <= plain.loads * SHARED_LOADS;
    if !shares(&first) {
        return Ok(Vec::new());
    }
    let factors = |along: bool| if along { &[1, 2, 4][..] } else { &[1][..] };
    let mut found = Vec::new();
    for &y in factors(along_y) {
        for &x in factors(along_x) {
            if (2..=MOST_BLOCKS).contains(&(x * y)) {
                found.push(estimate(Factors::of_blocks([x, y, 1]))?);
            }
        }
    }
    found.retain(shares);
    Ok(found)
}

/// The estimates for a kernel without loops: factors of blocks, also with factors of threads along another axis.
fn of_light(
    plain: &Estimate,
    blocks: [bool; 2],
    threads: [bool; 3],
    estimate: &dyn Fn(Factors) -> Result<Estimate, String>,
) -> Vec<Estimate> {
    if plain.launch * BEGINNINGS < plain.memory.max(plain.issue).max(plain.waits) {
        return Vec::new();
    }
    let factors = |along: bool| if along { &[1, 2, 4][..] } else { &[1][..] };
    let mut wanted = BTreeSet::new();
    for &y in factors(blocks[1]) {
        for &x in factors(blocks[0]).iter().filter(|x| **x * y > 1) {
            let merged = Factors::of_blocks([x, y, 1]);
            wanted.insert(merged);
            for axis in (0..3).filter(|axis| threads[*axis] && merged.blocks[*axis] == 1) {
                for of_axis in [2, 4] {
                    let mut both = merged;
                    both.threads[axis] = of_axis;
                    wanted.insert(both);
                }
            }
        }
    }
    wanted.into_iter().filter(|one| one.copies() <= MOST_COPIES).filter_map(|one| estimate(one).ok()).collect()
}

/// Whether the best of the candidates that merge blocks is clearly better than the best of the others.
pub(super) fn win(plain: &Estimate, merged: &[Candidate], others: &[Candidate]) -> bool {
    let clearly = if plain.has_loops { CLEARLY_IN_LOOPS } else { CLEARLY };
    let best = others.first().map_or(1000, |best| best.time.min(1000));
    merged.first().is_some_and(|first| first.is_worth_it() && first.time * 1000 <= best * clearly)
}

/// Whether the kernel, or a callee, reads its block index along x, and along y.
fn axes(module: &Module) -> [bool; 2] {
    let mut axes = [false; 2];
    for (_, function) in module.functions.iter() {
        for_each_expr_of_block(function, &function.body, &mut |id| {
            if let ExprKind::Special(SpecialRegister::BlockIdx(axis @ (0 | 1))) = function.exprs[id].kind {
                axes[usize::from(axis)] = true;
            }
        });
    }
    axes
}
