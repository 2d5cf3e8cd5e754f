//! Additions of a loop to the elements to which a later loop adds, too: the later loop adds once.
//!
//! ```text
//! loop over k {                          loop over k {
//!     $g = load y.adjoint[k]                 $g = load y.adjoint[k]
//!     $s = $s + $g * f(k)                    $s = $s + $g * f(k)
//!     x.adjoint[k] += $g * h(k)          }
//!     store y.adjoint[k] = 0             …
//! }                                      loop over k {
//! …                                          $h = load y.adjoint[k]
//! loop over k {                              x.adjoint[k] += $h * h(k) + $s * f(k)
//!     x.adjoint[k] += $s * f(k)              store y.adjoint[k] = 0
//! }                                      }
//! ```
//!
//! Legal if the counters of the loops have the same values, and the addition is the only access of the array in each of
//! them, and between them. The later loop computes the term again: its operands do not change until then, and what it loads
//! is not written, or only by a store that moves with it, to an element of its own in each iteration of an array that no
//! other statement accesses. Barriers between the loops change nothing: no other thread accesses these elements. In a loop
//! around the barriers it could, so both loops are directly in the kernel's body.
//!
//! Profitable because an iteration loads and stores the element once. It computes the term twice, so this is done for terms
//! of few operations beside those that the later loop computes anyway.

use std::collections::{BTreeMap, BTreeSet};

use super::arrays::{Arrays, Memory};
use crate::{
    analysis::{Access, any_expr, differs_by, escapes, for_each_access, for_each_read, same},
    ir::{
        Arith, BinaryOp, Block, Class, ExprId, ExprKind, Function, Local, LocalId, LocalKind, MathFn, Stmt, StmtKind,
        for_each_expr, for_each_stmt,
    },
};

/// The most operations of a term that the later loop computes again.
const MOST_COMPUTED: usize = 24;

/// Moves additions of a function's body to gradients of parameters that need no atomic operations.
pub(super) fn run(function: &mut Function, arrays: &Arrays, plain: &[u32]) {
    let mut body = std::mem::take(&mut function.body);
    Fuser { definitions: definitions(&body), function, arrays, plain }.body(&mut body);
    function.body = body;
}

/// The values of the locals that are assigned once.
fn definitions(body: &Block) -> BTreeMap<LocalId, ExprId> {
    let mut counts: BTreeMap<LocalId, usize> = BTreeMap::new();
    let mut values = BTreeMap::new();
    for_each_stmt(body, &mut |stmt| {
        for local in stmt.kind.assigned() {
            *counts.entry(local).or_default() += 1;
        }
        if let StmtKind::Assign(local, value) = stmt.kind {
            values.insert(local, value);
        }
    });
    values.retain(|local, _| counts.get(local) == Some(&1));
    values
}

/// The only assignment of a local in an iteration, if it is an assignment of the list.
fn assignment(iteration: &[Stmt], local: LocalId) -> Option<usize> {
    let mut count = 0;
    for_each_stmt(iteration, &mut |stmt| {
        count += stmt.kind.assigned().iter().filter(|&&assigned| assigned == local).count();
    });
    let at = iteration.iter().position(|stmt| matches!(stmt.kind, StmtKind::Assign(to, _) if to == local))?;
    (count == 1).then_some(at)
}

/// A loop with a counter.
struct Counted<'b> {
    counter: LocalId,
    init: ExprId,
    step: ExprId,
    exit: ExprId,
    /// The statements after the test.
    iteration: &'b [Stmt],
}

/// Two loops of a list whose counters have the same values.
struct Pair<'b> {
    one: Counted<'b>,
    other: Counted<'b>,
    /// The locals that the loops and the statements between assign.
    changed: BTreeSet<LocalId>,
    /// By the local of a term: the local of the later loop that has the same value.
    of: BTreeMap<LocalId, LocalId>,
}

/// An addition that moves.
struct Plan {
    /// The indices in the first loop's iteration: of the addition, and of the stores that move with it.
    addition: usize,
    stores: Vec<usize>,
    /// The statements that compute the term, by their index in the first loop's iteration.
    term: BTreeSet<usize>,
    /// The index of the addition in the later loop's iteration.
    to: usize,
    counters: (LocalId, LocalId),
    /// By the local of the term: the local of the later loop that has the same value.
    of: BTreeMap<LocalId, LocalId>,
}

/// A load that the later loop can repeat.
enum Loaded {
    /// No statement writes the array.
    Unwritten,
    /// The statement with this index stores to the element afterwards, and moves with the load.
    Before(usize),
}

struct Fuser<'a> {
    function: &'a mut Function,
    arrays: &'a Arrays,
    /// The parameters whose gradients need no atomic operations.
    plain: &'a [u32],
    definitions: BTreeMap<LocalId, ExprId>,
}

impl Fuser<'_> {
    /// Moves the additions of the loops of the kernel's body.
    fn body(&mut self, body: &mut Block) {
        for later in 0..body.len() {
            for first in (0..later).rev() {
                if let Some(plan) = self.plan(body, first, later) {
                    self.apply(body, first, later, &plan);
                }
            }
        }
    }

    /// The plan for an addition of one loop of the kernel's body to another one.
    fn plan(&self, block: &Block, first: usize, later: usize) -> Option<Plan> {
        let (one, other) = (self.counted(block, first)?, self.counted(block, later)?);
        let between = &block[first..=later];
        let mut changed = BTreeSet::new();
        for_each_stmt(between, &mut |stmt| changed.extend(stmt.kind.assigned()));
        let mut pair = Pair { one, other, changed, of: BTreeMap::new() };
        let is_same_range = self.has_same(&pair, pair.one.init, pair.other.init)
            && self.has_same(&pair, pair.one.step, pair.other.step)
            && self.has_same(&pair, pair.one.exit, pair.other.exit);
        if !is_same_range || escapes(between).any() {
            return None;
        }
        let (addition, to) = self.additions(&pair, between)?;
        let (term, stores) = self.term(&pair, block, addition)?;
        self.is_cheap(&mut pair, &term, to).then_some(())?;
        Some(Plan { addition, stores, term, to, counters: (pair.one.counter, pair.other.counter), of: pair.of })
    }

    fn counted<'b>(&self, block: &'b Block, at: usize) -> Option<Counted<'b>> {
        let StmtKind::Loop { body, step } = &block[at].kind else { return None };
        let (head, iteration) = body.split_first()?;
        let exit = head.kind.exit_condition()?;
        let [Stmt { kind: StmtKind::Assign(counter, next), .. }] = step.as_slice() else { return None };
        let ExprKind::Binary(BinaryOp::Add | BinaryOp::AddExact, now, step) = self.function.exprs[*next].kind else {
            return None;
        };
        let assigns = |stmt: &Stmt| {
            let mut assigns = false;
            for_each_stmt(std::slice::from_ref(stmt), &mut |stmt| assigns |= stmt.kind.assigned().contains(counter));
            assigns
        };
        let start = block[..at].iter().rfind(|stmt| assigns(stmt))?;
        let StmtKind::Assign(_, init) = start.kind else { return None };
        let is_plain = self.function.local(now) == Some(*counter) && !iteration.iter().any(assigns);
        (is_plain && !escapes(iteration).any()).then_some(Counted { counter: *counter, init, step, exit, iteration })
    }

    /// Whether an expression of the first loop has the value of one of the later loop, in iterations with the same counter.
    fn has_same(&self, pair: &Pair<'_>, one: ExprId, other: ExprId) -> bool {
        let function = &*self.function;
        let reads = |id: ExprId| any_expr(function, id, &|kind| matches!(kind.class(), Class::Load(_)));
        let definition = |local: LocalId| self.definitions.get(&local).copied().filter(|&id| !reads(id));
        match (function.local(one), function.local(other)) {
            (Some(a), Some(b)) => {
                (a, b) == (pair.one.counter, pair.other.counter)
                    || pair.of.get(&a) == Some(&b)
                    || a == b && !pair.changed.contains(&a)
                    || a != b && definition(a).zip(definition(b)).is_some_and(|(a, b)| self.has_same(pair, a, b))
            }
            (Some(_), None) | (None, Some(_)) => false,
            (None, None) => {
                let (a, b) = (&function.exprs[one], &function.exprs[other]);
                let (of_a, of_b) = (a.kind.operands(), b.kind.operands());
                let head = |kind: &ExprKind| kind.clone().map_operands(&mut |_| one);
                a.ty == b.ty
                    && of_a.len() == of_b.len()
                    && head(&a.kind) == head(&b.kind)
                    && of_a.iter().zip(of_b.iter()).all(|(&p, &q)| self.has_same(pair, p, q))
            }
        }
    }

    /// The address, the array's parameter and the term of an addition without an atomic operation.
    fn addition(&self, stmt: &Stmt) -> Option<(ExprId, u32, ExprId)> {
        let StmtKind::Store { pointer, value, .. } = stmt.kind else { return None };
        let ExprKind::Binary(BinaryOp::Add, old, term) = self.function.exprs[value].kind else { return None };
        let Class::Load(from) = self.function.class(old) else { return None };
        let Memory::Param(param) = self.arrays.memory(self.function, pointer) else { return None };
        let is_plain = self.arrays.adjoints().any(|(of, own)| own == param && self.plain.contains(&of));
        (is_plain && same(self.function, from, pointer)).then_some((pointer, param, term))
    }

    /// The indices of two additions to one element, in the iterations of both loops.
    fn additions(&self, pair: &Pair<'_>, between: &[Stmt]) -> Option<(usize, usize)> {
        pair.one.iteration.iter().enumerate().find_map(|(at, stmt)| {
            let (pointer, param, _) = self.addition(stmt)?;
            let to =
                pair.other.iteration.iter().position(|stmt| {
                    self.addition(stmt).is_some_and(|(other, ..)| self.has_same(pair, pointer, other))
                })?;
            // Each of them loads and stores.
            (self.accesses(between, param) == Some(4)).then_some((at, to))
        })
    }

    /// The number of accesses of an array; `None` if it is not known.
    fn accesses(&self, stmts: &[Stmt], param: u32) -> Option<usize> {
        let (mut count, mut is_known) = (0, true);
        for_each_access(self.function, stmts, &mut |access| match access {
            Access::Read(pointer) | Access::Write(pointer) | Access::Add(pointer) => {
                count += usize::from(self.arrays.may_be(self.function, pointer, param));
            }
            Access::Order => {}
            Access::Any => is_known = false,
        });
        is_known.then_some(count)
    }

    /// The statements that compute the term of an addition, and the stores that move with it.
    fn term(&self, pair: &Pair<'_>, all: &Block, addition: usize) -> Option<(BTreeSet<usize>, Vec<usize>)> {
        let iteration = pair.one.iteration;
        let (_, _, term) = self.addition(&iteration[addition])?;
        let (mut needed, mut stores) = (BTreeSet::new(), Vec::new());
        let mut rest = vec![(term, addition)];
        while let Some((id, user)) = rest.pop() {
            for pointer in self.loads(id) {
                if let Loaded::Before(store) = self.store_of(pair, all, pointer, user)? {
                    let StmtKind::Store { pointer, value, .. } = iteration[store].kind else { return None };
                    if !stores.contains(&store) {
                        stores.push(store);
                        rest.extend([(pointer, store), (value, store)]);
                    }
                }
            }
            let mut locals = BTreeSet::new();
            for_each_read(self.function, id, &mut |local| {
                locals.insert(local);
            });
            for local in locals.into_iter().filter(|&local| local != pair.one.counter) {
                if !pair.changed.contains(&local) {
                    continue;
                }
                let at = assignment(iteration, local).filter(|&at| at < user)?;
                let StmtKind::Assign(_, value) = iteration[at].kind else { return None };
                if needed.insert(at) {
                    rest.push((value, at));
                }
            }
        }
        Some((needed, stores))
    }

    fn loads(&self, id: ExprId) -> Vec<ExprId> {
        let mut pointers = Vec::new();
        for_each_expr(self.function, id, &mut |id| {
            if let Class::Load(pointer) = self.function.class(id) {
                pointers.push(pointer);
            }
        });
        pointers
    }

    /// The store that moves with a load of a statement, if the array is written. `None` if the later loop cannot load the
    /// value.
    fn store_of(&self, pair: &Pair<'_>, all: &Block, pointer: ExprId, user: usize) -> Option<Loaded> {
        let function = &*self.function;
        let Memory::Param(param) = self.arrays.memory(function, pointer) else { return None };
        if !self.is_written(all, param)? {
            return Some(Loaded::Unwritten);
        }
        let iteration = pair.one.iteration;
        let is_store = |stmt: &Stmt| match stmt.kind {
            StmtKind::Store { pointer: to, .. } => same(function, to, pointer),
            StmtKind::Assign(..)
            | StmtKind::Op { .. }
            | StmtKind::Call { .. }
            | StmtKind::If { .. }
            | StmtKind::Loop { .. }
            | StmtKind::Break
            | StmtKind::Continue
            | StmtKind::Return(_) => false,
        };
        let store = user + 1 + iteration.get(user + 1..)?.iter().position(is_store)?;
        let mut are_own = true;
        for_each_access(function, iteration, &mut |access| match access {
            Access::Read(other) | Access::Write(other) | Access::Add(other) => {
                are_own &= !self.arrays.may_be(function, other, param) || same(function, other, pointer);
            }
            Access::Order | Access::Any => are_own = false,
        });
        let stores = iteration.iter().filter(|stmt| is_store(stmt)).count();
        let all_here = self.accesses(iteration, param)? == self.accesses(all, param)?;
        let is_own = are_own && all_here && stores == 1 && self.differs(pair, pointer);
        is_own.then_some(Loaded::Before(store))
    }

    fn is_written(&self, all: &Block, param: u32) -> Option<bool> {
        let (mut is_written, mut is_known) = (false, true);
        for_each_access(self.function, all, &mut |access| match access {
            Access::Write(pointer) | Access::Add(pointer) => {
                is_written |= self.arrays.may_be(self.function, pointer, param);
            }
            Access::Read(_) | Access::Order => {}
            Access::Any => is_known = false,
        });
        is_known.then_some(is_written)
    }

    /// Whether an address is another one in each iteration of the first loop.
    fn differs(&self, pair: &Pair<'_>, id: ExprId) -> bool {
        let is_nonzero = self.function.int(pair.one.step).is_some_and(|step| step != 0);
        is_nonzero && differs_by(self.function, id, pair.one.counter, &pair.changed)
    }

    /// Whether a term has few operations beside those that the later loop computes before its addition, which are noted.
    fn is_cheap(&self, pair: &mut Pair<'_>, term: &BTreeSet<usize>, to: usize) -> bool {
        let mut cost = 0;
        for &at in term {
            let StmtKind::Assign(local, value) = pair.one.iteration[at].kind else { return false };
            let own = pair.other.iteration[..to].iter().find_map(|stmt| {
                let StmtKind::Assign(other, of) = stmt.kind else { return None };
                let is_only = assignment(pair.other.iteration, other).is_some();
                (is_only && self.has_same(pair, value, of)).then_some(other)
            });
            match own {
                Some(own) => {
                    pair.of.insert(local, own);
                }
                None => for_each_expr(self.function, value, &mut |id| {
                    cost += match self.function.class(id) {
                        Class::Arith(Arith::Math(MathFn::FullDiv, _)) => 4,
                        Class::Arith(Arith::Math(..)) => 20,
                        Class::Arith(Arith::Binary(BinaryOp::Div, ..)) => 8,
                        Class::Arith(_) | Class::Address { .. } | Class::Load(_) => 1,
                        Class::Leaf(_) => 0,
                    };
                }),
            }
        }
        cost <= MOST_COMPUTED
    }

    /// Moves an addition of one loop of a list to another one.
    fn apply(&mut self, block: &mut Block, first: usize, later: usize, plan: &Plan) {
        let StmtKind::Loop { body, .. } = &mut block[first].kind else { return };
        // The first statement of a body is the test.
        let stmts = std::mem::take(body);
        let is_moved = |at: usize| at > 0 && (at - 1 == plan.addition || plan.stores.contains(&(at - 1)));
        let (moved, kept): (Vec<_>, Vec<_>) = stmts.iter().cloned().enumerate().partition(|&(at, _)| is_moved(at));
        body.extend(kept.into_iter().map(|(_, stmt)| stmt));
        let mut of = plan.of.clone();
        of.insert(plan.counters.0, plan.counters.1);
        let mut copies = Block::new();
        for at in &plan.term {
            let Some(Stmt { kind: StmtKind::Assign(local, value), span }) = stmts.get(at + 1).cloned() else {
                continue;
            };
            if plan.of.contains_key(&local) {
                continue;
            }
            let value = self.copied(value, &of);
            let Local { name, ty, .. } = self.function.locals[local].clone();
            let copy = self.function.locals.push(Local::new(name, LocalKind::Temp, ty));
            of.insert(local, copy);
            copies.push(Stmt { kind: StmtKind::Assign(copy, value), span });
        }
        let (mut term, mut stores) = (None, Block::new());
        for (at, stmt) in moved {
            if at - 1 == plan.addition {
                term = self.addition(&stmt).map(|(.., term)| self.copied(term, &of));
            } else {
                let kind = stmt.kind.map_exprs(&mut |id| self.copied(id, &of));
                stores.push(Stmt { kind, span: stmt.span });
            }
        }
        let StmtKind::Loop { body, .. } = &mut block[later].kind else { return };
        let StmtKind::Store { value, .. } = body[plan.to + 1].kind else { return };
        if let (Some(term), ExprKind::Binary(op, old, own)) = (term, self.function.exprs[value].kind.clone()) {
            let sum = self.function.edit(body[plan.to + 1].span).binary(BinaryOp::Add, term, own);
            self.function.exprs[value].kind = ExprKind::Binary(op, old, sum);
        }
        let at = plan.to + 1;
        copies.push(body.remove(at));
        copies.append(&mut stores);
        body.splice(at..at, copies);
    }

    /// A copy of an expression of the first loop, for the later one.
    fn copied(&mut self, id: ExprId, of: &BTreeMap<LocalId, LocalId>) -> ExprId {
        self.function.copy_with(id, &mut |function, id| {
            let own = function.local(id).and_then(|local| of.get(&local)).copied()?;
            let span = function.exprs[id].span;
            Some(function.edit(span).read(own))
        })
    }
}
