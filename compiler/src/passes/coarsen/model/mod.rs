//! Profitability: estimates the time of each tuple of factors from the work of a thread ([`work`]), the registers that
//! it needs ([`live`]), and the resulting occupancy.
//!
//! The model has four resources that are used concurrently: memory bandwidth, issue slots and load/store units, the
//! latencies that the resident warps hide, and block launches. A norm combines them, in which the largest one
//! dominates, as they never overlap perfectly. The overhead of starting and ending a thread is added:
//!
//! ```text
//! time = (memory^4 + issue^4 + waits^4 + launch^4)^(1/4) + start      each per warp of the original launch
//! memory = bytes / bandwidth                                          issue = instructions / 4 + transactions
//! waits = latency of a warp / resident warps                          launch = cycles between two block launches
//! start = cycles / resident warps, 0 for kernels with barriers
//! ```
//!
//! A GPU launches one block per cycle, over all of its multiprocessors. Kernels of 2^18 blocks of 256 threads with
//! little work took 161 microseconds on an H100 and an H200, however many threads were coarsened; only merged blocks
//! took less.
//!
//! In kernels with barriers (a transpose, a sum, a softmax on an H200), a smaller launch overhead gained nothing: other
//! blocks of the multiprocessor fill the time.
//!
//! The launch configuration is unknown here. The launch tests whether the factors divide its block, and whether it is
//! large enough. The figures are those of an H100, in cycles, from its documentation or published measurements;
//! `tests/benchmarks/coarsening.py` measures the quality of the estimates.

mod copy_addresses;
mod data;
mod live;
mod merged;
mod work;

use std::{
    cell::{LazyCell, RefCell},
    collections::HashMap,
    rc::Rc,
};

use weft_artifact::{ALIGNED, Candidate, Factors};

use self::{copy_addresses::CopyAddresses, work::Work};
use super::{Base, Order, Prepared, prepare, vary::Vary};
use crate::ir::{
    Class, ExprId, ExprKind, Function, Module, Space, SpecialRegister, StmtKind, Type, for_each_expr,
    for_each_expr_of_block, for_each_stmt,
};

/// The maximum number of copies of a thread that is estimated.
const MOST_COPIES: u32 = 4;
/// The number of candidates that are retained.
const MOST_CANDIDATES: usize = 6;
/// The assumed number of threads of a block.
const BLOCK: f64 = 256.0;
/// Warp instructions that a multiprocessor issues per cycle: one in each of its four partitions.
const ISSUES: f64 = 4.0;
/// Bytes of device memory per multiprocessor and cycle, for 132 multiprocessors, 1.7 GHz and 4.8 TB/s.
const BYTES: f64 = 21.0;
/// Latencies in cycles: of device memory; of the multiprocessor's caches; of a barrier.
const FAR: f64 = 600.0;
const NEAR: f64 = 33.0;
const BARRIER: f64 = 30.0;
/// Fixed cycles of a thread: the block is scheduled, its arguments are loaded, its index is computed, and the block
/// retires.
const START: f64 = 500.0;
/// Cycles between two block launches on the same multiprocessor: one of 132 multiprocessors gets a block per cycle.
const LAUNCH: f64 = 132.0;
/// The resources of a multiprocessor: warps, 32-bit registers, bytes of shared memory, blocks; and the overhead of a
/// block's shared memory.
const WARPS: f64 = 64.0;
const REGISTERS: f64 = 65_536.0;
const SHARED: f64 = 233_472.0;
const BLOCKS: f64 = 32.0;
const SHARED_OF_BLOCK: f64 = 1024.0;
/// The fraction of the estimated gain that is assumed in loops of unknown trip count: each copy has its own loads
/// there, and LLVM and ptxas unroll a longer body less.
const GAIN_IN_LOOPS: f64 = 0.5;
/// The cost factor of copies along x whose accesses do not merge.
const STRIDED_COST: f64 = 1.1;
/// The minimum number of threads of a block, and of a block with barriers: while some warps wait, others must have
/// work.
const FEWEST: u32 = 32;
const FEWEST_WITH_BARRIERS: u32 = 128;
/// The maximum number of registers for which the estimate is trusted: beyond it occupancy is low, and values may be
/// spilled.
const MOST_REGISTERS: f64 = 128.0;

/// The estimate for one tuple of factors.
#[derive(Clone, Copy, Debug)]
struct Estimate {
    factors: Factors,
    /// Cycles per warp of the original launch, by resource.
    memory: f64,
    issue: f64,
    waits: f64,
    launch: f64,
    start: f64,
    registers: f64,
    warps: f64,
    /// Loads from memory in loops whose address depends on the thread, per thread of the original launch.
    loads: f64,
    /// It has barriers; loops of unknown trip count; copies along x whose accesses do not merge.
    has_barriers: bool,
    has_loops: bool,
    is_strided: bool,
}

impl Estimate {
    /// Whether launches may have the factors: in kernels with barriers, adjacent threads along x mostly access shared
    /// memory with unit stride, so copies along x cause bank conflicts.
    fn is_allowed(&self) -> bool {
        self.registers <= MOST_REGISTERS && !(self.has_barriers && self.factors.threads[0] > 1)
    }

    /// The minimum number of threads of a coarsened block. Merged blocks have all their threads.
    fn fewest(&self) -> u32 {
        if self.factors.threads_in_one() == 1 {
            1
        } else if self.has_barriers {
            FEWEST_WITH_BARRIERS
        } else {
            FEWEST
        }
    }

    /// Its time relative to the unchanged kernel.
    fn share(&self, plain: &Self) -> f64 {
        let share = self.time() / plain.time();
        let believed = match (self.has_loops, self.factors.blocks_in_one()) {
            (false, _) => share,
            (true, 1) => 1.0 - (1.0 - share) * GAIN_IN_LOOPS,
            (true, _) => 1.0 - (1.0 - share) * merged::GAIN_IN_LOOPS,
        };
        if self.is_strided { believed * STRIDED_COST } else { believed }
    }

    fn time(&self) -> f64 {
        let fourth = |part: f64| part.powi(4);
        (fourth(self.memory) + fourth(self.issue) + fourth(self.waits) + fourth(self.launch)).sqrt().sqrt() + self.start
    }

    /// The resource that bounds its time.
    fn bound(&self) -> &'static str {
        if self.start.max(self.launch) >= self.memory.max(self.issue).max(self.waits) {
            "the startup of threads and blocks"
        } else if self.waits >= self.memory.max(self.issue) {
            "memory latency"
        } else if self.memory >= self.issue {
            "memory bandwidth"
        } else {
            "instruction throughput"
        }
    }
}

/// The factors that are worth considering, the best ones first, and a remark on them; or why the kernel is not
/// coarsened.
pub(super) fn candidates(module: &Module) -> Result<(Vec<Candidate>, String), String> {
    let axes = axes(module);
    let base = Base::of(module)?;
    let queried = prepare(&base, Factors::of_threads(axes.map(|queried| if queried { 2 } else { 1 })))?;
    let queried = KernelQueries::of(&queried);
    let estimate = |factors| estimate(module, &prepare(&base, factors)?, &queried, factors);
    let plain = estimate(Factors::NONE)?;
    let factors = |queried: bool| if queried { &[1, 2, 4][..] } else { &[1][..] };
    let mut found = Vec::new();
    for &z in factors(axes[2]) {
        for &y in factors(axes[1]) {
            for &x in factors(axes[0]) {
                if (2..=MOST_COPIES).contains(&(x * y * z)) {
                    found.push(estimate(Factors::of_threads([x, y, z]))?);
                }
            }
        }
    }
    let wide: Vec<Factors> =
        found.iter().filter(|one| one.factors.threads[0] > 1 && !one.is_strided).map(|one| one.factors).collect();
    let refusal = refusal(&found);
    let threads = ranked(found, &plain);
    // Copies whose accesses merge already use the full memory bandwidth.
    let is_wide = threads.first().is_some_and(|best| wide.contains(&best.factors));
    let merged = ranked(merged::promising(module, &plain, axes, is_wide, &estimate)?, &plain);
    let merged = if merged::win(&plain, &merged, &threads) { merged } else { Vec::new() };
    let candidates: Vec<Candidate> =
        merged.into_iter().take(merged::MOST_CANDIDATES).chain(threads).take(MOST_CANDIDATES).collect();
    let sentence = match candidates.first() {
        None => format!("not coarsened: {refusal}"),
        Some(best) if best.is_worth_it() => format!("worth coarsening: {}", best.note),
        Some(best) => format!("not coarsened: limited by {}; the best estimate: {}", plain.bound(), best.note),
    };
    Ok((candidates, sentence))
}

/// The reason if launches may have none of these factors.
fn refusal(found: &[Estimate]) -> String {
    if found.is_empty() {
        "it does not read its thread index".to_owned()
    } else if found.iter().any(|one| one.registers > MOST_REGISTERS) {
        format!("coarsened threads would need more than {MOST_REGISTERS} registers")
    } else {
        "it has barriers, and threads along x are then not coarsened".to_owned()
    }
}

/// The candidates that launches may have, the best ones first; among about equal ones the one with the fewest copies.
fn ranked(mut found: Vec<Estimate>, plain: &Estimate) -> Vec<Candidate> {
    let share = |estimate: &Estimate| (estimate.share(plain) * 1000.0).round() as u32;
    found.retain(Estimate::is_allowed);
    found.sort_by_key(|one| (share(one) / 20, one.factors.copies(), share(one), one.factors));
    let candidate = |one: &Estimate| Candidate {
        factors: one.factors,
        time: share(one),
        fewest: one.fewest(),
        at_once: (one.warps * 32.0) as u32,
        note: summary(one, plain, share(one)),
    };
    found.iter().map(candidate).collect()
}

/// One line of the remark.
fn summary(one: &Estimate, plain: &Estimate, share: u32) -> String {
    let factors = one.factors;
    let percent = |part: f64, whole: f64| if whole > 0.0 { (part / whole * 100.0).round() } else { 100.0 };
    format!(
        "{factors} is estimated at {}.{} % of the time (memory {} %, instruction throughput {} %, waits {} %; {} \
         instead of {} registers, {} instead of {} warps)",
        share / 10,
        share % 10,
        percent(one.memory, plain.memory),
        percent(one.issue, plain.issue),
        percent(one.waits, plain.waits),
        one.registers.round(),
        plain.registers.round(),
        one.warps,
        plain.warps,
    )
}

/// Whether the accesses to global memory of copies adjacent along x can merge into one, if the arrays are aligned for
/// accesses of any width: whether the offset of each access is a multiple of the width.
pub(super) fn merges(prepared: &Prepared) -> bool {
    let (function, vary) = (prepared.function(), &prepared.varied().along);
    let mut places = CopyAddresses::new(function, prepared.copies, vary);
    let mut all = true;
    let mut look = |pointer: ExprId| {
        if let Type::Ptr(elem, Space::Global | Space::Generic) = function.exprs[pointer].ty
            && vary[0].expr(function, pointer)
        {
            let width = i128::from(elem.size_bytes()) * i128::from(prepared.plan.factors.threads[0]);
            let at = places.sum(pointer, [0; 3]);
            all &= at.terms().all(|(atoms, factor)| factor % width == 0 || atoms.len() == 1 && factor == 1);
        }
    };
    for_each_stmt(&function.body, &mut |stmt| {
        if let StmtKind::Store { pointer, .. } = &stmt.kind {
            look(*pointer);
        }
        for root in stmt.kind.exprs() {
            for_each_expr(function, root, &mut |id| {
                if let Class::Load(pointer) = function.class(id) {
                    look(pointer);
                }
            });
        }
    });
    all
}

/// The uniformity of values over the copies of a prepared kernel. All axes without copies share one result.
pub(super) struct Varied {
    /// By axis.
    along: [Rc<Vary>; 3],
    /// Over all copies.
    any: Rc<Vary>,
}

impl Prepared {
    fn function(&self) -> &Function {
        &self.changed.functions[self.kernel]
    }

    fn varied(&self) -> &Varied {
        self.varied.get_or_init(|| {
            let of = |copies| Rc::new(Vary::of(&self.changed, self.kernel, copies));
            let none = LazyCell::new(|| of([None; 3]));
            let along = [0, 1, 2].map(|axis| {
                let mut only = [None; 3];
                only[axis] = self.copies[axis];
                if only == [None; 3] { Rc::clone(&none) } else { of(only) }
            });
            let axes: Vec<usize> = (0..3).filter(|axis| self.copies[*axis].is_some()).collect();
            let any = match axes[..] {
                [] => Rc::clone(&none),
                [axis] => Rc::clone(&along[axis]),
                _ => of(self.copies),
            };
            Varied { along, any }
        })
    }
}

/// Results that the estimates of all factors share. They are computed for a kernel that is prepared for two copies
/// along each axis; its expressions have the same numbers for all factors.
struct KernelQueries<'a> {
    prepared: &'a Prepared,
    places: RefCell<CopyAddresses<'a>>,
    differs: RefCell<HashMap<ExprId, Rc<[bool]>>>,
    /// By expression: whether it depends on the thread.
    of_thread: Vec<bool>,
}

impl<'a> KernelQueries<'a> {
    fn of(prepared: &'a Prepared) -> Self {
        let (function, vary) = (prepared.function(), &prepared.varied().along);
        let mut of_thread = vec![false; function.exprs.len()];
        for vary in vary {
            of_thread.iter_mut().zip(vary.exprs(function)).for_each(|(any, varies)| *any |= varies);
        }
        let places = RefCell::new(CopyAddresses::new(function, prepared.copies, vary));
        Self { prepared, places, differs: RefCell::default(), of_thread }
    }

    /// By axis along which the kernel reads an index: whether the address varies over the threads along it. The address
    /// must be one of the kernel's own.
    fn differs(&self, id: ExprId) -> Rc<[bool]> {
        if let Some(known) = self.differs.borrow().get(&id) {
            return Rc::clone(known);
        }
        let mut places = self.places.borrow_mut();
        let first = places.sum(id, [0; 3]);
        let axes = self.prepared.copies.iter().enumerate().filter(|(_, copy)| copy.is_some());
        let differs = |(axis, _)| {
            let mut next = [0; 3];
            next[axis] = 1;
            places.sum(id, next) != first
        };
        let differs: Rc<[bool]> = axes.map(differs).collect();
        self.differs.borrow_mut().insert(id, Rc::clone(&differs));
        differs
    }
}

fn estimate(module: &Module, of: &Prepared, queried: &KernelQueries<'_>, factors: Factors) -> Result<Estimate, String> {
    let (function, copies, Varied { along, any }) = (of.function(), of.copies, of.varied());
    let differs = |id| queried.differs(id);
    // Expressions that replace special registers have other indices in that kernel, or do not exist there.
    let is_of_thread = |id: ExprId| id.index() >= of.own || queried.of_thread.get(id.index()).copied().unwrap_or(true);
    let varies = [0, 1, 2].map(|axis| along[axis].exprs(function));
    let analysed = work::Kernel {
        function,
        vary: along,
        varies: &varies,
        any,
        factors: factors.by_axis(),
        copies_of: copies,
        differs: &differs,
        is_of_thread: &is_of_thread,
        alignment: alignment(module),
    };
    let of_load = |id| analysed.of_expr(id);
    let of_local = |id| analysed.of_local(id);
    let registers = live::registers(function, &live::Copies { of_local: &of_local, of_load: &of_load });
    let work = work::of(&analysed, &mut CopyAddresses::new(function, copies, along))?;
    let shared: u64 = module.shared.iter().map(|(_, array)| array.len.saturating_mul(array.elem.size_bytes())).sum();
    let warps = warps(registers, shared as f64, f64::from(factors.threads_in_one()));
    let is_strided = factors.threads[0] > 1 && of.plan.orders[0] == Order::Strided;
    Ok(Estimate { is_strided, ..timed(&work, factors, registers, warps) })
}

fn timed(work: &Work, factors: Factors, registers: f64, warps: f64) -> Estimate {
    let n = f64::from(factors.copies());
    let waits = work.far_waits * FAR + work.near_waits * NEAR + work.barriers * BARRIER;
    Estimate {
        factors,
        memory: work.bytes * 32.0 / BYTES / n,
        issue: (work.issues / ISSUES + work.transactions) / n,
        waits: waits / warps / n,
        launch: LAUNCH / (BLOCK / 32.0) / f64::from(factors.blocks_in_one()),
        start: if work.barriers > 0.0 { 0.0 } else { START / warps / n },
        registers,
        warps,
        loads: work.loads / n,
        has_barriers: work.barriers > 0.0,
        has_loops: work.has_loops,
        is_strided: false,
    }
}

/// The number of resident warps of a multiprocessor, for original blocks of [`BLOCK`] threads, with `in_one` threads
/// coarsened into one.
fn warps(registers: f64, shared: f64, in_one: f64) -> f64 {
    let allocated = (registers / 8.0).ceil() * 8.0;
    let of_block = (BLOCK / in_one / 32.0).max(1.0);
    let by_registers = (REGISTERS / (allocated * 32.0)).floor();
    let blocks = (SHARED / (shared + SHARED_OF_BLOCK)).floor().clamp(1.0, BLOCKS);
    let blocks = blocks.min((WARPS.min(by_registers) / of_block).floor().max(1.0));
    blocks * of_block
}

/// The assumed alignment of arrays in bytes, besides that of their elements.
fn alignment(module: &Module) -> i128 {
    if module.assumptions.aligned { i128::from(ALIGNED) } else { 1 }
}

/// The axes of the block along which the kernel, or a callee, reads its thread index.
fn axes(module: &Module) -> [bool; 3] {
    let mut axes = [false; 3];
    for (_, function) in module.functions.iter() {
        for_each_expr_of_block(function, &function.body, &mut |id| {
            if let ExprKind::Special(SpecialRegister::ThreadIdx(axis)) = function.exprs[id].kind {
                axes[usize::from(axis)] = true;
            }
        });
    }
    axes
}
