//! Scalar promotion: an accumulator in memory, such as `out[i] += …` in a loop that does not change `i`, becomes a
//! local while the loop runs.
//!
//! ```text
//!                                               if goes_on { $total = load $p }
//! loop { if !goes_on { break }                  loop { if !goes_on { break }
//!        store $p, load $p + $x                        $total = $total + $x
//!        … }                                           … }
//!                                               if goes_on { store $p, $total }
//! ```
//!
//! Legal if
//!
//! - each iteration stores to the element: the load before the loop and the store after it execute only for threads
//!   that have an iteration;
//! - no other access in the loop may alias the element;
//! - the loop has no barrier, atomic operation, call or return, so that another thread that accesses the element while
//!   the loop runs has a race.
//!
//! Profitable because a loop that is interchanged with the thread loop then has its accumulators in vector registers,
//! and in any other loop an iteration need not wait for the store of the one before. LLVM does not promote them: it
//! would have to know that the arrays do not overlap.

use std::collections::{BTreeMap, BTreeSet};

use crate::{
    analysis::{Rematerializable, any_expr, escapes, for_each_read, same},
    backend::host::plan::analysis::{
        dependence::{Root, root},
        structure::counter_by,
    },
    ir::{
        Align, BinaryOp, Block, Class, Const, Expr, ExprId, ExprKind, Function, Local, LocalId, LocalKind, Space, Stmt,
        StmtKind, Type, UnaryOp, for_each_expr_of_stmt, for_each_stmt,
    },
    normalize::unroll::assigned_once,
    source::Span,
};
use weft_artifact::Scalar;

/// Most accumulators that are promoted in a loop.
const MAX_ACCUMULATORS: usize = 8;

/// Most memory accesses of a loop: each is compared with each accumulator.
const MAX_ACCESSES: usize = 96;

/// Promotes the accumulators of a body's loops, inner ones first. No thread writes to the memory of the parameters
/// `read_only` while the kernel runs.
pub(crate) fn keep(function: &mut Function, read_only: &[LocalId], body: &mut Block) {
    let fixed = Rematerializable::of(function, body);
    Promoter { function, fixed: &fixed, read_only }.list(body);
}

/// A load or store in a loop.
struct Access {
    /// The load, or the pointer of the store.
    id: ExprId,
    pointer: ExprId,
    /// The pointer as an expression of locals that the loop does not assign, if it has that form.
    address: Option<ExprId>,
    /// The alignment, if this is a store that every iteration executes.
    each_turn: Option<Align>,
    is_store: bool,
}

/// A promoted accumulator.
struct Accumulator {
    address: ExprId,
    align: Align,
    local: LocalId,
}

/// The threads that have an iteration of a loop.
#[derive(Clone, Copy, Debug)]
enum ActiveThreads {
    All,
    /// Threads for which this condition holds, before the loop and after it.
    Some(ExprId),
}

struct Promoter<'a> {
    function: &'a mut Function,
    fixed: &'a Rematerializable,
    read_only: &'a [LocalId],
}

impl Promoter<'_> {
    fn list(&mut self, list: &mut Block) {
        let mut done = Block::with_capacity(list.len());
        for mut stmt in std::mem::take(list) {
            stmt.kind.blocks_mut().into_iter().flatten().for_each(|inner| self.list(inner));
            let active = self.active(&done, &stmt);
            let totals = if active.is_some() { self.totals(&mut stmt) } else { Vec::new() };
            match active {
                Some(active) if !totals.is_empty() => self.around(stmt, active, &totals, &mut done),
                Some(_) | None => done.push(stmt),
            }
        }
        *list = done;
    }

    /// The threads that have an iteration of a loop that begins with an exit test. `None` for other statements, for
    /// loops without a store of their own, and for loops that no thread enters.
    fn active(&mut self, before: &[Stmt], stmt: &Stmt) -> Option<ActiveThreads> {
        let StmtKind::Loop { body, step } = &stmt.kind else { return None };
        let cond = body.first()?.kind.exit_condition()?;
        // A quick check: most loops have no store that could qualify.
        if !body.iter().any(|stmt| matches!(stmt.kind, StmtKind::Store { .. })) {
            return None;
        }
        if let Some((counter, limit, _)) = counter_by(self.function, body, step)
            && let (Some(first), Some(limit)) = (self.value_before(before, counter), self.function.int(limit))
            && let Some(first) = self.function.int(first)
        {
            return legal!("promote_scalars.has-iteration", first < limit).then_some(ActiveThreads::All);
        }
        let (assigned, mut values) = (assigned(stmt), BTreeMap::new());
        for_each_read(self.function, cond, &mut |local| {
            if let (true, Some(value)) = (assigned.contains(&local), self.value_before(before, local)) {
                values.insert(local, value);
            }
        });
        let leaves = self.copied(cond, &values);
        // The condition is evaluated again after the loop. Its value there is the same only if it reads neither memory
        // nor locals that the loop assigns.
        if !legal!("promote_scalars.test-not-loaded", !self.loads(leaves))
            || !legal!("promote_scalars.same-test", !self.reads(leaves, &|local| assigned.contains(&local)))
        {
            return None;
        }
        if let ExprKind::Unary(UnaryOp::Not, goes_on) = self.function.exprs[leaves].kind {
            return Some(ActiveThreads::Some(goes_on));
        }
        let not = ExprKind::Unary(UnaryOp::Not, leaves);
        Some(ActiveThreads::Some(self.function.exprs.push(Expr { kind: not, ty: Type::BOOL, span: stmt.span })))
    }

    /// The value that some statements assign to a local, if it would be the same after them.
    fn value_before(&self, before: &[Stmt], local: LocalId) -> Option<ExprId> {
        let at = before.iter().rposition(|stmt| assigned(stmt).contains(&local))?;
        let StmtKind::Assign(_, value) = before[at].kind else { return None };
        let later: BTreeSet<LocalId> = before[at..].iter().flat_map(assigned).collect();
        legal!("promote_scalars.same-first", !self.reads(value, &|read| later.contains(&read))).then_some(value)
    }

    /// Promotes the accumulators of a loop to locals, inside the loop.
    fn totals(&mut self, stmt: &mut Stmt) -> Vec<Accumulator> {
        let StmtKind::Loop { body, step } = &stmt.kind else { return Vec::new() };
        let Some(accesses) = self.accesses(body, step, &assigned(stmt)) else { return Vec::new() };
        let mut totals: Vec<Accumulator> = Vec::new();
        for access in &accesses {
            let (Some(align), Some(address)) = (access.each_turn, access.address) else { continue };
            let is_known = totals.iter().any(|total| same(self.function, total.address, address));
            if is_known || totals.len() == MAX_ACCUMULATORS || !self.is_alone(address, &accesses) {
                continue;
            }
            let ty = match self.function.exprs[address].ty {
                Type::Ptr(scalar, _) => Type::Scalar(scalar),
                Type::Scalar(_) => continue,
            };
            let local = self.function.locals.push(Local::new("total", LocalKind::Variable, ty));
            totals.push(Accumulator { address, align, local });
        }
        for access in accesses {
            let Some(address) = access.address else { continue };
            let Some(total) = totals.iter().find(|total| same(self.function, total.address, address)) else { continue };
            if access.is_store {
                store_to(stmt, access.pointer, total.local);
            } else {
                self.function.exprs[access.id].kind = ExprKind::Local(total.local);
            }
        }
        totals
    }

    /// The memory accesses of a loop; `None` if it has an operation, a call or a return, or too many accesses.
    fn accesses(&mut self, body: &[Stmt], step: &[Stmt], assigned: &BTreeSet<LocalId>) -> Option<Vec<Access>> {
        let once = assigned_once(body);
        let (mut values, mut accesses) = (BTreeMap::new(), Vec::new());
        let mut each_turn = true;
        for (index, stmt) in body.iter().chain(step).enumerate() {
            let mut found = Vec::new();
            let mut simple = true;
            for_each_stmt(std::slice::from_ref(stmt), &mut |inner| {
                for_each_expr_of_stmt(self.function, &inner.kind, &mut |id| {
                    if let Class::Load(pointer) = self.function.class(id) {
                        found.push((id, pointer, false));
                    }
                });
                match inner.kind {
                    StmtKind::Store { pointer, .. } => found.push((pointer, pointer, true)),
                    StmtKind::Op { .. } => simple &= legal!("promote_scalars.no-operation", false),
                    StmtKind::Call { .. } => simple &= legal!("promote_scalars.no-call", false),
                    StmtKind::Return(_) => simple &= legal!("promote_scalars.no-return", false),
                    StmtKind::Assign(..)
                    | StmtKind::If { .. }
                    | StmtKind::Loop { .. }
                    | StmtKind::Break
                    | StmtKind::Continue => {}
                }
            });
            if !simple || accesses.len() + found.len() > MAX_ACCESSES {
                return None;
            }
            for (id, pointer, is_store) in found {
                let here = if let StmtKind::Store { pointer: to, align, .. } = stmt.kind
                    && to == pointer
                    && is_store
                    && each_turn
                {
                    Some(align)
                } else {
                    None
                };
                let address = self.unchanged(pointer, assigned, &values);
                accesses.push(Access { id, pointer, address, each_turn: here, is_store });
            }
            // The exit test at the start is no escape: it is evaluated before the loop, too.
            each_turn &=
                index == 0 || legal!("promote_scalars.each-iteration", !escapes(std::slice::from_ref(stmt)).any());
            if let StmtKind::Assign(local, value) = stmt.kind
                && index < body.len()
                && legal!("promote_scalars.one-assignment", once.contains(&local))
                && let Some(value) = self.unchanged(value, assigned, &values)
            {
                values.insert(local, value);
            }
        }
        Some(accesses)
    }

    /// Rewrites an expression to read only locals that the loop does not assign, by substituting `values`; `None` if
    /// that is not possible or it has a load.
    fn unchanged(
        &mut self,
        id: ExprId,
        assigned: &BTreeSet<LocalId>,
        values: &BTreeMap<LocalId, ExprId>,
    ) -> Option<ExprId> {
        let changes = self.reads(id, &|local| assigned.contains(&local) && !values.contains_key(&local));
        (legal!("promote_scalars.same-address", !changes)
            && legal!("promote_scalars.address-not-loaded", !self.loads(id)))
        .then(|| self.copied(id, values))
    }

    /// Whether a loop loads an element that it stores to in each iteration, and no other access may alias it. Elements
    /// of shared memory are not promoted if the loop also accesses global memory. They are in the L1 cache anyway, and
    /// the promoted loop would be strip-mined, so that its threads would no longer access the global memory a whole row
    /// at a time.
    fn is_alone(&self, address: ExprId, accesses: &[Access]) -> bool {
        let is_far = |access: &Access| {
            !matches!(
                self.function.exprs[access.pointer].ty,
                Type::Ptr(_, Space::Shared | Space::Local | Space::Constant)
            )
        };
        if matches!(root(self.function, self.fixed, address), Root::Shared(_)) && accesses.iter().any(is_far) {
            return false;
        }
        let is_it = |access: &Access| access.address.is_some_and(|other| same(self.function, address, other));
        accesses.iter().any(|access| !access.is_store && is_it(access))
            && accesses
                .iter()
                .all(|access| is_it(access) || legal!("promote_scalars.no-alias", self.are_apart(address, access)))
    }

    fn are_apart(&self, address: ExprId, access: &Access) -> bool {
        let memory = |pointer: ExprId| {
            let Type::Ptr(_, space) = self.function.exprs[pointer].ty else { return (Root::Unknown, Space::Generic) };
            (root(self.function, self.fixed, pointer), space)
        };
        let ((root, space), (other, other_space)) = (memory(address), memory(access.pointer));
        if !root.may_be(space, other, other_space, self.read_only) {
            return true;
        }
        access.address.is_some_and(|other| match (self.element(address), self.element(other)) {
            (Some((a, before, at)), Some((b, other, other_at))) => {
                same(self.function, a, b) && same(self.function, before, other) && at != other_at
            }
            (None, _) | (_, None) => false,
        })
    }

    /// The base of an element's address, and its index as a sum of an expression and a constant.
    fn element(&self, address: ExprId) -> Option<(ExprId, ExprId, i128)> {
        let ExprKind::Offset { base, index, scale: 1 } = self.function.exprs[address].kind else { return None };
        let ExprKind::Binary(BinaryOp::Add, before, constant) = self.function.exprs[index].kind else { return None };
        Some((base, before, self.function.int(constant)?))
    }

    /// Emits a loop whose accumulators are promoted, with the loads before it and the stores after it.
    fn around(&mut self, stmt: Stmt, active: ActiveThreads, totals: &[Accumulator], done: &mut Block) {
        let span = stmt.span;
        let at = |kind: StmtKind| Stmt { kind, span };
        let loads: Block =
            totals.iter().map(|total| at(StmtKind::Assign(total.local, self.load(total, span)))).collect();
        let store = |keep: &mut Self, total: &Accumulator| {
            let pointer = keep.function.copy_expr(total.address);
            let value = keep.function.edit(span).read(total.local);
            at(StmtKind::Store { pointer, value, align: total.align })
        };
        let stores: Block = totals.iter().map(|total| store(self, total)).collect();
        let ActiveThreads::Some(cond) = active else {
            done.extend(loads);
            done.push(stmt);
            done.extend(stores);
            return;
        };
        for total in totals {
            let ty = self.function.locals[total.local].ty;
            let zero = match ty.scalar() {
                Some(scalar) if scalar.is_int() => Const::Int(0),
                Some(Scalar::Bool) => Const::Bool(false),
                Some(_) | None => Const::Float(0.0),
            };
            let zero = self.function.exprs.push(Expr { kind: ExprKind::Const(zero), ty, span });
            done.push(at(StmtKind::Assign(total.local, zero)));
        }
        let again = self.function.copy_expr(cond);
        done.push(at(StmtKind::If { cond, then: loads, otherwise: Block::new() }));
        done.push(stmt);
        done.push(at(StmtKind::If { cond: again, then: stores, otherwise: Block::new() }));
    }

    fn load(&mut self, total: &Accumulator, span: Span) -> ExprId {
        let pointer = self.function.copy_expr(total.address);
        let ty = self.function.locals[total.local].ty;
        self.function.exprs.push(Expr { kind: ExprKind::Load(pointer, total.align), ty, span })
    }

    /// Copies an expression and substitutes copies of values for locals.
    fn copied(&mut self, id: ExprId, values: &BTreeMap<LocalId, ExprId>) -> ExprId {
        self.function.copy_with(id, &mut |function, id| {
            let &value = values.get(&function.local(id)?)?;
            Some(function.copy_expr(value))
        })
    }

    fn loads(&self, id: ExprId) -> bool {
        any_expr(self.function, id, &|kind| matches!(kind, ExprKind::Load(..)))
    }

    fn reads(&self, id: ExprId, which: &dyn Fn(LocalId) -> bool) -> bool {
        any_expr(self.function, id, &|kind| matches!(kind, ExprKind::Local(local) if which(*local)))
    }
}

/// The locals that a statement, or a nested one, assigns.
fn assigned(stmt: &Stmt) -> BTreeSet<LocalId> {
    let mut all = BTreeSet::new();
    for_each_stmt(std::slice::from_ref(stmt), &mut |inner| all.extend(inner.kind.assigned()));
    all
}

/// Replaces a store by an assignment to a local.
fn store_to(stmt: &mut Stmt, to: ExprId, local: LocalId) {
    if let StmtKind::Store { pointer, value, .. } = stmt.kind
        && pointer == to
    {
        stmt.kind = StmtKind::Assign(local, value);
    }
    stmt.kind.blocks_mut().into_iter().flatten().flatten().for_each(|inner| store_to(inner, to, local));
}
