//! Arrays of a thread in lanes: a kernel that indexes such arrays by values that change runs in strips of threads, with
//! the same element of all lanes side by side.
//!
//! ```text
//! for each thread t:                          for each strip of lanes:
//!     for p in range(5):                          a: [element][lane]
//!         for q in range(p, 5):                   for p in range(5):
//!             a[p, q] = x[p * 5 + q, t]               for q in range(p, 5):
//!     k = 4                                               for each lane: a[p, q][lane] = x[p * 5 + q, t]
//!     while k >= 0 and a[k, k] > y[t]:            for each lane: alive, k = 1, 4
//!         k -= 1                                  loop:
//!                                                     for each lane: if alive: test
//!                                                     if no lane is alive: break
//!                                                     for each lane: if alive: k -= 1
//! ```
//!
//! An access with an index that is uniform in a strip is a contiguous vector. Any other index is a gather or a scatter
//! in the nearest cache. This is the structure of arrays that scalar expansion makes, with a strip as the vector.
//!
//! The pass runs all statements of the kernel in lockstep ([`predicate`]): loops of which all threads run the same
//! iterations become loops of the strip, each other loop runs while any lane is active, and a branch around a loop becomes
//! a predicate. Innermost loops of few iterations are unrolled instead. Uniform values ([`lockstep`]) are computed for
//! all lanes, so that loop bounds and indices stay uniform below predicates.
//!
//! Legal for a kernel without barriers, calls and operations, if each use of the arrays is a load or a store of an element
//! in the type of the array, and all nodes that mention an array are in one strip; the caller plans again if they are not.
//!
//! Pays if a loop that is not unrolled accesses an element at an index that changes and is uniform (LLVM makes registers of
//! arrays with constant indices), if a strip's
//! arrays fit into the nearest cache, and if most accesses are uniform or contiguous.

mod accesses;
mod blend;
mod lockstep;
mod predicate;

use crate::{
    analysis::Rematerializable,
    backend::host::plan::{
        analysis::{candidates, divergence::Uniformity, strides::Forms, structure::sole_values, vectorizable},
        plan_ir::{CountMasks, InterchangedLoops, MaskedLoop, Refusal, Strips, bytes_of},
    },
    ir::{
        Arena, Block, Class, ConstantArray, ExprId, ExprKind, Function, LocalArrayId, LocalId, Stmt, StmtKind,
        for_each_expr_of_stmt,
    },
    normalize::unroll,
    source::Span,
};
use accesses::Accesses;
use lockstep::Lockstep;

/// Most bytes of the arrays of a strip.
const MAX_STRIP_BYTES: u64 = 16 << 10;

/// The assumed trip count of loops.
const ITERATIONS: u64 = 4;

/// Most loops around an access that count.
const MAX_DEPTH: u32 = 6;

/// A kernel whose arrays are in lanes.
#[derive(Debug)]
pub(crate) struct Rewritten {
    /// The arrays.
    pub arrays: Vec<LocalArrayId>,
    /// The loops of which all threads run the same iterations.
    pub interchanged: InterchangedLoops,
    /// The other loops.
    pub masked_loops: Vec<MaskedLoop>,
}

/// Rewrites a kernel's body. `None` if it has no arrays of the thread.
///
/// # Errors
///
/// Why the kernel's loops are left as they are.
pub(crate) fn rewrite(
    function: &mut Function,
    constants: &Arena<ConstantArray>,
    body: &mut Block,
    (masks, has_masks): (CountMasks, bool),
) -> Result<Option<Rewritten>, Refusal> {
    if !accesses::has_arrays(function, body) {
        return Ok(None);
    }
    let found = Accesses::of(function, body)?;
    let arrays: Vec<LocalArrayId> = found.arrays().into_iter().collect();
    if bytes_of(function, &arrays).saturating_mul(Strips::BLOCK_WIDTH.into()) > MAX_STRIP_BYTES {
        return Err(Refusal::LargeArrays);
    }
    let before = masks(function, body);
    let (mut attempt, mut lowered) = (function.clone(), body.clone());
    found.canonicalize(&mut attempt, &mut lowered);
    let fixed = Rematerializable::of(&attempt, &lowered);
    let lockstep = Lockstep::of(&attempt, &fixed, &lowered);
    let lowered = predicate::lower(&mut attempt, &lockstep, &lowered, has_masks)?;
    let predicate::Lowered { body: mut lowered, counters, masked_loops } = lowered;
    let max_trip_count = lockstep::MAX_SHORT_TRIP_COUNT as usize;
    unroll::write_out_up_to(&mut attempt, constants, &mut lowered, max_trip_count);
    let (fixed, uniformity) = candidates::uniformity(&attempt, &lowered);
    let indices = accesses::variable_indices_in_loops(&attempt, &lowered);
    // LLVM makes registers of arrays with constant indices.
    if indices.is_empty() {
        return Ok(None);
    }
    if indices.iter().all(|&index| uniformity.varies(&attempt, index)) {
        return Err(Refusal::OwnIndices);
    }
    let divergence = masks(&attempt, &lowered).excess(&before);
    if !legal!("lane_arrays.no-mask", divergence.is_none()) {
        return Err(divergence.unwrap_or(Refusal::Mask));
    }
    let mut seen = counters.clone();
    seen.sort_unstable();
    if !legal!("lane_arrays.own-counter", seen.windows(2).all(|pair| pair[0] != pair[1])) {
        return Err(Refusal::NotCounted);
    }
    pays(&attempt, &lowered, (&fixed, &uniformity))?;
    (*function, *body) = (attempt, lowered);
    let interchanged = InterchangedLoops { any: true, counters, ..InterchangedLoops::default() };
    Ok(Some(Rewritten { arrays, interchanged, masked_loops }))
}

/// Whether at least two thirds of the accesses of a body in lockstep are uniform or contiguous, where those in a loop count
/// [`ITERATIONS`] times.
///
/// # Errors
///
/// The first access that is not, if most are not.
fn pays(
    function: &Function,
    body: &Block,
    (fixed, uniformity): (&Rematerializable, &Uniformity),
) -> Result<(), Refusal> {
    let shared = |local: LocalId| !uniformity.local_varies(local);
    let sole = sole_values(function, body);
    let sole = |local: LocalId| sole[local.index()];
    let forms = Forms { function, fixed, shared: &shared, sole: &sole, axis: 0 };
    let is_good = |pointer: ExprId| match function.class(pointer) {
        Class::Address { base, by, .. } if matches!(function.exprs[base].kind, ExprKind::LocalBase(_)) => {
            !uniformity.varies(function, by)
        }
        Class::Address { .. } | Class::Leaf(_) | Class::Arith(_) | Class::Load(_) => {
            vectorizable::is_unit_stride_or_uniform(&forms, pointer)
        }
    };
    let mut counts = Counts { function, is_good: &is_good, good: 0, other: 0, first: None, nested: None };
    counts.block(body, 0);
    if let Some(span) = counts.nested {
        return Err(Refusal::Strided(span));
    }
    match counts.first {
        Some(span) if counts.good < 2 * counts.other => Err(Refusal::Strided(span)),
        Some(_) | None => Ok(()),
    }
}

/// Counts accesses.
struct Counts<'a> {
    function: &'a Function,
    /// Whether an address is uniform or contiguous.
    is_good: &'a dyn Fn(ExprId) -> bool,
    good: u64,
    other: u64,
    /// The first of the others.
    first: Option<Span>,
    /// The first of the others that is to memory of other threads, too, in a loop in a loop.
    nested: Option<Span>,
}

impl Counts<'_> {
    /// Whether a pointer is an element of an array of the thread.
    fn is_element(&self, pointer: ExprId) -> bool {
        let Class::Address { base, .. } = self.function.class(pointer) else { return false };
        matches!(self.function.exprs[base].kind, ExprKind::LocalBase(_))
    }

    fn block(&mut self, block: &[Stmt], depth: u32) {
        for stmt in block {
            let mut found = Vec::new();
            if let StmtKind::Store { pointer, .. } = stmt.kind {
                found.push((pointer, stmt.span));
            }
            for_each_expr_of_stmt(self.function, &stmt.kind, &mut |id| {
                if let ExprKind::Load(pointer, _) = self.function.exprs[id].kind {
                    found.push((pointer, self.function.exprs[id].span));
                }
            });
            for (pointer, span) in found {
                let is_good = (self.is_good)(pointer);
                let count = if is_good { &mut self.good } else { &mut self.other };
                *count += ITERATIONS.pow(depth);
                self.first = self.first.or((!is_good).then_some(span));
                let is_nested = !is_good && depth > 1 && !self.is_element(pointer);
                self.nested = self.nested.or(is_nested.then_some(span));
            }
            let inside = (depth + u32::from(matches!(stmt.kind, StmtKind::Loop { .. }))).min(MAX_DEPTH);
            stmt.kind.blocks().into_iter().flatten().for_each(|inner| self.block(inner, inside));
        }
    }
}
