//! Blocks of short rows: tiles of 16x16 threads.
//!
//! A row of 16 threads is one vector, but a loop of any number of threads costs several times as much to begin and to end. So rows
//! that have just as many threads as the kernel seems to be written for have a loop of so many turns, which becomes straight
//! code; who launches other blocks has the other loop.
//!
//! Of a row with bounds all threads run, too, if they may: those without a part in it do nothing but store what was there. A store
//! with a mask would do the same, but a load soon after it waits until it is in the cache. Nobody sees what is stored, because one
//! thread of the system runs the block, and the memory is the block's own:
//!
//! - What threads carry has an element for each of them.
//! - In a shared array, each thread of the row has an element of its own, in one row of the array (`in_one_row`), and the segment
//!   stores to an array once, after all that it loads from shared memory.

use std::{cell::Cell, collections::HashSet};

use crate::{
    analysis::{Rematerializable, base},
    backend::host::plan::{
        Plan,
        analysis::strides::{Form, Forms},
        plan_ir::{Runs, Segment},
    },
    ir::{
        Align, Arith, Base, BinaryOp, Class, CompareOp, ExprId, ExprKind, Function, Leaf, LocalId, Module, SharedArray,
        SharedId, SharedKind, Space, SpecialRegister, Stmt, StmtKind, Type, for_each_expr, for_each_expr_of_stmt,
        for_each_stmt,
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

/// How many expressions are looked at for one index.
const EFFORT: u32 = 128;

/// How many threads a block's rows seem to have: what `threadIdx.y` is multiplied with.
pub(crate) fn width(function: &Function, fixed: &Rematerializable) -> Option<u64> {
    function.exprs.iter().find_map(|(_, expr)| {
        let ExprKind::Binary(BinaryOp::Mul | BinaryOp::MulExact, a, b) = expr.kind else { return None };
        let times = if is_of_y(function, fixed, a) {
            function.int(b)?
        } else if is_of_y(function, fixed, b) {
            function.int(a)?
        } else {
            return None;
        };
        let fits = |&&(least, _): &&(i128, u64)| (least..=least + MOST_PADDING).contains(&times);
        WIDTHS.iter().find(fits).map(|&(_, width)| width)
    })
}

/// Whether a program has an array, or a function that it calls.
fn is_program(array: &SharedArray) -> bool {
    match array.kind {
        SharedKind::Program | SharedKind::Coop => true,
        SharedKind::Cells | SharedKind::Privatized => false,
    }
}

/// Whether a block's rows seem to come by eights: all arrays that it shares are rows of so many threads, or a little longer, and of
/// these as many as eight or a multiple.
pub(crate) fn come_by(eight: u32, module: &Module, width: Option<u64>) -> bool {
    let Some(width) = width else { return false };
    let mut own = module.shared.iter().filter(|(_, array)| is_program(array)).peekable();
    own.peek().is_some()
        && own.all(|(_, array)| {
            (0..=MOST_PADDING).any(|padding| {
                let (len, length) = (i128::from(array.len), i128::from(width) + padding);
                len % length == 0 && (len / length) % i128::from(eight) == 0
            })
        })
}

/// Whether a value is `threadIdx.y`, or that and something else.
fn is_of_y(function: &Function, fixed: &Rematerializable, root: ExprId) -> bool {
    let (mut left, mut seen) = (vec![root], HashSet::new());
    while let Some(id) = left.pop() {
        match function.class(id) {
            Class::Leaf(Leaf::Special(SpecialRegister::ThreadIdx(1))) => return true,
            Class::Leaf(Leaf::Local(local)) => left.extend(fixed.value(local).filter(|_| seen.insert(local))),
            Class::Arith(Arith::Convert(inner)) => left.push(inner),
            Class::Arith(Arith::Binary(BinaryOp::Add | BinaryOp::AddExact, a, b)) => left.extend([a, b]),
            Class::Leaf(_) | Class::Arith(_) | Class::Address { .. } | Class::Load(_) => {}
        }
    }
    false
}

/// How many threads a row of a block with barriers seems to have: as many as an array that they share has elements, if that is more
/// than what the warps of a block have.
pub(crate) fn length(module: &Module) -> u32 {
    let own = module.shared.iter().filter(|(_, array)| is_program(array));
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

/// How all threads of a row run a body that is for some of them.
#[derive(Debug)]
pub(crate) struct Whole {
    /// Statements of the body that are harmless for all of them, by their places.
    pub first: Vec<usize>,
    /// What the threads with a part load from one element, before anything else; it is there if one of them has a part.
    pub loads: Vec<ExprId>,
}

/// How all threads of a row of so many run a body for some of them, so that those of a segment's shared stores that stand in no
/// branch store what was there for the others; `None` where they may not.
pub(crate) fn whole(plan: &Plan, segment: &Segment, body: &[Stmt], width: u64) -> Option<Whole> {
    let jumps = [&segment.on_return, &segment.on_break, &segment.on_continue];
    let stays = segment.active.is_none() && jumps.iter().all(|masks| masks.is_empty());
    if !stays || segment.runs != Runs::EachThread || !segment.parallel {
        return None;
    }
    let one = segment.guard.iter().flat_map(|guard| &guard.ranges).any(|range| range.op == CompareOp::Eq);
    let function = &plan.module.functions[plan.kernel];
    let rows = Rows { plan, function, width };
    let is_harmless = |local: LocalId| plan.fixed.value(local).is_some_and(|value| rows.is_harmless(value));
    if one || !is_short(function, body) || !segment.recompute.iter().all(|&local| is_harmless(local)) {
        return None;
    }
    let mut whole = Whole { first: harmless(plan, body), loads: Vec::new() };
    let (mut stored, mut stores) = (HashSet::new(), false);
    for (at, stmt) in body.iter().enumerate() {
        if !stored.is_empty() && loads_shared(function, stmt) {
            return None;
        }
        match &stmt.kind {
            StmtKind::Assign(_, value) => {
                if !whole.first.contains(&at) {
                    rows.loads_of_one(*value, stores, &mut whole.loads);
                }
            }
            StmtKind::Store { pointer, value, align } => {
                rows.loads_of_one(*value, stores, &mut whole.loads);
                if may_be_shared(function, *pointer) {
                    let Some(Base::Shared(array)) = base(function, *pointer) else { return None };
                    if *align != Align::Natural || !rows.in_one_row(*pointer, array) || !stored.insert(array) {
                        return None;
                    }
                } else {
                    stores = true;
                }
            }
            StmtKind::If { cond, then, otherwise } => {
                rows.loads_of_one(*cond, stores, &mut whole.loads);
                for part in [then, otherwise] {
                    if !may_stand_in_branch(function, part) || (!stored.is_empty() && loads_shared_in(function, part)) {
                        return None;
                    }
                }
                stores = true;
            }
            StmtKind::Op { .. }
            | StmtKind::Call { .. }
            | StmtKind::Loop { .. }
            | StmtKind::Break
            | StmtKind::Continue
            | StmtKind::Return(_) => return None,
        }
    }
    Some(whole)
}

/// Whether the statements of a branch only assign locals and store to memory that is not the block's.
fn may_stand_in_branch(function: &Function, branch: &[Stmt]) -> bool {
    let mut may = true;
    for_each_stmt(branch, &mut |stmt| {
        may &= match stmt.kind {
            StmtKind::Assign(..) | StmtKind::If { .. } => true,
            StmtKind::Store { pointer, .. } => !may_be_shared(function, pointer),
            StmtKind::Op { .. }
            | StmtKind::Call { .. }
            | StmtKind::Loop { .. }
            | StmtKind::Break
            | StmtKind::Continue
            | StmtKind::Return(_) => false,
        };
    });
    may
}

fn loads_shared_in(function: &Function, branch: &[Stmt]) -> bool {
    let mut loads = false;
    for_each_stmt(branch, &mut |stmt| loads |= loads_shared(function, stmt));
    loads
}

/// The statements of a body, by their places, that only work out fixed locals, and are harmless for threads without a part.
fn harmless(plan: &Plan, body: &[Stmt]) -> Vec<usize> {
    let rows = Rows { plan, function: &plan.module.functions[plan.kernel], width: 0 };
    let is_harmless = |stmt: &Stmt| match stmt.kind {
        StmtKind::Assign(local, _) => plan.fixed.value(local).is_some_and(|value| rows.is_harmless(value)),
        StmtKind::Store { .. }
        | StmtKind::Op { .. }
        | StmtKind::Call { .. }
        | StmtKind::If { .. }
        | StmtKind::Loop { .. }
        | StmtKind::Break
        | StmtKind::Continue
        | StmtKind::Return(_) => false,
    };
    body.iter().enumerate().filter(|(_, stmt)| is_harmless(stmt)).map(|(at, _)| at).collect()
}

/// Whether a pointer may be to the block's memory.
pub(crate) fn may_be_shared(function: &Function, pointer: ExprId) -> bool {
    match function.exprs[pointer].ty {
        Type::Ptr(_, Space::Global | Space::Local | Space::Constant) => false,
        Type::Ptr(_, Space::Shared | Space::Generic) | Type::Scalar(_) => true,
    }
}

fn loads_shared(function: &Function, stmt: &Stmt) -> bool {
    let mut loads = false;
    for_each_expr_of_stmt(function, &stmt.kind, &mut |id| {
        if let Class::Load(pointer) = function.class(id) {
            loads |= may_be_shared(function, pointer);
        }
    });
    loads
}

/// Whether a value may be worked out where the program does not ask for it: it loads nothing, and nothing divides by zero.
pub(crate) fn is_harmless(function: &Function, root: ExprId) -> bool {
    let mut harmless = true;
    for_each_expr(function, root, &mut |id| {
        harmless &= match function.class(id) {
            Class::Arith(Arith::Binary(
                BinaryOp::FloorDiv | BinaryOp::FloorMod | BinaryOp::DivNonneg | BinaryOp::ModNonneg,
                _,
                by,
            )) => function.int(by).is_some_and(|by| by > 0),
            Class::Leaf(_) | Class::Arith(_) | Class::Address { .. } => true,
            Class::Load(_) => false,
        };
    });
    harmless
}

/// What is asked about a row of threads.
pub(crate) struct Rows<'a> {
    pub(crate) plan: &'a Plan,
    pub(crate) function: &'a Function,
    pub(crate) width: u64,
}

/// `thread + ahead`, and something that is the same for all of a row.
#[derive(Clone, Copy, Debug, Default)]
struct Place {
    threads: u32,
    ahead: i128,
    /// What the rest is a multiple of, if there is a rest.
    of: Option<i128>,
}

impl Rows<'_> {
    /// How an expression changes along a row, and whether it is small.
    pub(crate) fn form(&self, id: ExprId) -> (Form, bool) {
        let shared = |local: LocalId| !self.is_own(local);
        let fixed = &self.plan.fixed;
        let forms = Forms { function: self.function, fixed, shared: &shared, sole: &|_| None, axis: 0 };
        (forms.form(id), forms.is_small(id))
    }

    pub(crate) fn is_own(&self, local: LocalId) -> bool {
        self.plan.own.get(local.index()).copied().unwrap_or(true)
    }

    /// Whether a value may be worked out for threads that have no part.
    pub(crate) fn is_harmless(&self, root: ExprId) -> bool {
        is_harmless(self.function, root)
    }

    /// Whether all threads of a row have elements of one row of a shared array, if one of them has: the array consists of rows
    /// no shorter than the threads'.
    fn in_one_row(&self, pointer: ExprId, array: SharedId) -> bool {
        let ExprKind::Offset { base: whole, index: by, scale: 1 } = self.function.exprs[pointer].kind else {
            return false;
        };
        if !matches!(self.function.class(whole), Class::Leaf(Leaf::Base(Base::Shared(_)))) {
            return false;
        }
        let len = i128::from(self.plan.module.shared[array].len);
        let Some(place) = self.place(by, &Cell::new(EFFORT)) else { return false };
        let row = place.of.unwrap_or(len);
        place.threads == 1
            && row > 0
            && len % row == 0
            && place.ahead >= 0
            && i128::from(self.width) + place.ahead <= row
    }

    /// Loads of an expression, outside of what is chosen from, of which all threads of the row load one element: not of memory
    /// that was written before, if it was.
    fn loads_of_one(&self, id: ExprId, written: bool, loads: &mut Vec<ExprId>) {
        match self.function.class(id) {
            Class::Load(pointer) => {
                let may_change = written && !self.is_never_written(pointer);
                if self.is_one(pointer) && !may_change && !loads.contains(&id) {
                    loads.push(id);
                }
            }
            Class::Arith(Arith::Select(..)) | Class::Leaf(_) => {}
            Class::Arith(_) | Class::Address { .. } => {
                self.function.exprs[id]
                    .kind
                    .operands()
                    .iter()
                    .for_each(|&operand| self.loads_of_one(operand, written, loads));
            }
        }
    }

    /// Whether a pointer is to one element for all threads of the row.
    fn is_one(&self, pointer: ExprId) -> bool {
        let ExprKind::Offset { base: whole, index, .. } = self.function.exprs[pointer].kind else { return false };
        let is_known = match self.function.class(whole) {
            // Each thread has a local array of its own.
            Class::Leaf(Leaf::Base(base)) => base.is_of_block(),
            Class::Leaf(Leaf::Local(local)) => self.function.params.contains(&local),
            Class::Leaf(_) | Class::Arith(_) | Class::Address { .. } | Class::Load(_) => false,
        };
        is_known && self.form(index).0 == Form::Same
    }

    fn is_never_written(&self, pointer: ExprId) -> bool {
        let ExprKind::Offset { base: whole, .. } = self.function.exprs[pointer].kind else { return false };
        self.function.local(whole).is_some_and(|local| self.function.locals[local].never_written)
    }

    fn place(&self, id: ExprId, effort: &Cell<u32>) -> Option<Place> {
        effort.set(effort.get().checked_sub(1)?);
        if let Some(value) = self.function.int(id) {
            return Some(Place { ahead: value, ..Place::default() });
        }
        match self.function.class(id) {
            Class::Leaf(Leaf::Special(SpecialRegister::ThreadIdx(0))) => Some(Place { threads: 1, ..Place::default() }),
            Class::Leaf(Leaf::Local(local)) if self.plan.fixed.value(local).is_some() => {
                self.place(self.plan.fixed.value(local)?, effort)
            }
            Class::Arith(Arith::Convert(inner)) => {
                let mut inner = inner;
                while let Some(value) = self.function.local(inner).and_then(|local| self.plan.fixed.value(local)) {
                    inner = value;
                }
                let is_thread =
                    matches!(self.function.class(inner), Class::Leaf(Leaf::Special(SpecialRegister::ThreadIdx(0))));
                is_thread.then_some(Place { threads: 1, ..Place::default() })
            }
            Class::Arith(Arith::Binary(BinaryOp::Add | BinaryOp::AddExact, a, b)) => {
                let (a, b) = (self.place(a, effort)?, self.place(b, effort)?);
                let of = match (a.of, b.of) {
                    (Some(a), Some(b)) => (a == b).then_some(Some(a))?,
                    (of, None) | (None, of) => of,
                };
                let ahead = a.ahead.checked_add(b.ahead)?;
                Some(Place { threads: a.threads + b.threads, ahead, of })
            }
            Class::Arith(Arith::Binary(BinaryOp::Mul | BinaryOp::MulExact, a, b)) => {
                let (times, of) = match (self.function.int(a), self.function.int(b)) {
                    (Some(of), None) => (b, of),
                    (None, Some(of)) => (a, of),
                    (Some(_), Some(_)) | (None, None) => return None,
                };
                (self.form(times) == (Form::Same, true)).then_some(Place { of: Some(of), ..Place::default() })
            }
            Class::Leaf(_) | Class::Arith(_) | Class::Address { .. } | Class::Load(_) => None,
        }
    }
}
