//! Loop distribution (fission) of a thread loop: splits a parallel region into parts, of which some need not run for
//! every thread ([`Runs`]).
//!
//! ```text
//! base = 0                                  once for the threads w to w + 31:
//! for w in range(tid // 32):                    base = 0; for w in range(tid // 32): base += sums[w]
//!     base += sums[w]                           base of each = base
//! if keep: out[base + before] = x[i]        for each thread: if keep: out[base + before] = x[i]
//! ```
//!
//! Parts of their own are
//!
//! - a branch that stores for one thread (`if tid == 255: …`), or for the first lanes of warps (`if lane == 0: …`);
//! - a branch that fills shared memory for a box of threads, as the halo of a tile (`if tx < 2 and ty < 2: …`);
//! - a loop with loads that is uniform for 32 consecutive threads of a row, with the assignments before it;
//! - a two-armed branch whose condition is a bound of the row: one part for each arm;
//! - the computation of an atomic operation's operands, such as the bin of a histogram. The operands are live across
//!   the parts, in context arrays.
//!
//! A box of threads is the intersection of bounds along `x` with conditions that are uniform in a row. The guard of its
//! part becomes the bounds of a loop over the box (`plan_ir/guards`).
//!
//! Legal because threads have no order between two barriers. The pass rejects statements for which the order of threads
//! is observable: calls, prints and other operations besides atomics, jumps out of the region, and more than one
//! floating-point atomic. It pays because the remaining code has no loop, no branch of few threads and no atomic
//! operation, so that LLVM vectorizes it.

use weft_artifact::Scalar;

use crate::{
    analysis::{Rematerializable, escapes, for_each_mention, for_each_read},
    backend::host::plan::{
        analysis::strides::Forms,
        plan_ir::{self, Runs, SplitCondition},
    },
    ir::{
        Arith, BinaryOp, Block, Class, CompareOp, Const, Expr, ExprId, ExprKind, Function, Leaf, Local, LocalId,
        LocalKind, Op, Space, SpecialRegister, Stmt, StmtKind, Type, UnaryOp, for_each_expr, for_each_expr_of_stmt,
        for_each_stmt,
    },
};

/// Lanes of a warp.
const LANES: i128 = plan_ir::LANES as i128;

/// Least number of operations before an atomic operation that become a part of their own.
const MIN_OPERATIONS: u32 = 8;

/// Cost of a saturating conversion from float to integer, in operations.
const SATURATING_COST: u32 = 5;

/// Inputs of the distribution.
pub(crate) struct Groups<'a> {
    /// The rematerializable locals of the kernel.
    pub fixed: &'a Rematerializable,
    /// By local: the number of its assignments.
    pub assigned: Vec<u32>,
}

/// By local: the number of its assignments in a body.
pub(crate) fn count_assigned(function: &Function, body: &[Stmt]) -> Vec<u32> {
    let mut counts = vec![0; function.locals.len()];
    for_each_stmt(body, &mut |stmt| stmt.kind.assigned().iter().for_each(|local| counts[local.index()] += 1));
    counts
}

/// Where a region is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    /// Under a mask: no thread computes values for other threads.
    pub masked: bool,
    /// In a loop that is interchanged with the thread loop. Strips need regions with the same guard there.
    pub interchanged: bool,
}

impl Groups<'_> {
    /// Splits a region into parts, in order, each with the threads that run it.
    pub(crate) fn parts(
        &self,
        function: &mut Function,
        shared: &dyn Fn(LocalId) -> bool,
        place: Place,
        piece: Block,
    ) -> Vec<(Runs, Block)> {
        if !legal!("distribute.no-jump", !escapes(&piece).any())
            || !legal!("distribute.unordered", piece.iter().all(is_unordered))
            || !legal!("distribute.one-float-sum", steps_of_floats(function, &piece) < 2)
        {
            return vec![(Runs::EachThread, piece)];
        }
        if let Some(parts) = self.behind_guard(function, shared, place, &piece) {
            return parts;
        }
        if let Some(at) = last_branch(&Look { groups: self, function, shared }, &piece) {
            let mut before = piece;
            let branch = before.split_off(at);
            let mut parts = self.parts(function, shared, place, before);
            parts.extend(self.parts(function, shared, place, branch));
            return parts;
        }
        let mut parts: Vec<(Runs, Block)> = Vec::new();
        let halves = halves(&Look { groups: self, function, shared }, &piece);
        let pieces = in_halves(function, piece, &halves);
        for mut piece in pieces.into_iter().flat_map(|piece| before_atomics(function, piece)).collect::<Vec<_>>() {
            while let Some((at, end, runs)) = (Look { groups: self, function, shared }).next(&piece, place) {
                let rest = piece.split_off(end);
                let part = piece.split_off(at);
                parts.push((Runs::EachThread, piece));
                match runs {
                    // A branch for a box of threads may have several parts.
                    Runs::EachThread => parts.extend(self.parts(function, shared, place, part)),
                    Runs::Warps | Runs::Groups | Runs::FirstOfGroups | Runs::FirstLanes | Runs::OneThread => {
                        parts.push((runs, part));
                    }
                }
                piece = rest;
            }
            parts.push((Runs::EachThread, piece));
        }
        parts.retain(|(_, part)| !part.is_empty());
        parts
    }

    /// Splits a region that ends with a guarded branch, if the branch has several parts: each part gets the guard.
    fn behind_guard(
        &self,
        function: &mut Function,
        shared: &dyn Fn(LocalId) -> bool,
        place: Place,
        piece: &[Stmt],
    ) -> Option<Vec<(Runs, Block)>> {
        let (last, before) = piece.split_last()?;
        let StmtKind::If { cond, then, otherwise } = &last.kind else { return None };
        let assigns = before.iter().all(|stmt| matches!(stmt.kind, StmtKind::Assign(..)));
        if !assigns || !otherwise.is_empty() {
            return None;
        }
        let whole = Look { groups: self, function, shared }.guard(*cond)?;
        // A thread that computes a value for its whole warp must not be masked off individually.
        let place = Place { masked: place.masked || !legal!("distribute.whole-guard", whole), ..place };
        let inner = self.parts(function, shared, place, then.clone());
        if let [] | [(Runs::EachThread, _)] = inner.as_slice() {
            return None;
        }
        let mut parts = vec![(Runs::EachThread, before.to_vec())];
        for (index, (runs, then)) in inner.into_iter().enumerate() {
            let cond = function.copy_expr(*cond);
            let stmt = Stmt { kind: StmtKind::If { cond, then, otherwise: Block::new() }, span: last.span };
            match parts.as_mut_slice() {
                [(_, before)] if index == 0 && runs == Runs::EachThread => before.push(stmt),
                _ => parts.push((runs, vec![stmt])),
            }
        }
        parts.retain(|(_, part)| !part.is_empty());
        Some(parts)
    }
}

/// The index of a final branch that stores, whose condition is a guard, and that mentions no local assigned before it,
/// except for rematerializable ones. The assignments before it must include others.
fn last_branch(look: &Look<'_>, piece: &[Stmt]) -> Option<usize> {
    let (last, before) = piece.split_last()?;
    let StmtKind::If { cond, then, otherwise } = &last.kind else { return None };
    let assigns = !before.is_empty() && before.iter().all(|stmt| matches!(stmt.kind, StmtKind::Assign(..)));
    if !assigns || !otherwise.is_empty() || !writes(then) || look.guard(*cond) != Some(true) {
        return None;
    }
    let changes: Vec<LocalId> = before.iter().flat_map(|stmt| stmt.kind.assigned()).collect();
    let mut knows = false;
    for_each_mention(look.function, std::slice::from_ref(last), &mut |local| {
        knows |= changes.contains(&local) && look.groups.fixed.value(local).is_none();
    });
    let all_fixed = changes.iter().all(|&local| look.groups.fixed.value(local).is_some());
    // A value that the branch reads would need a context array.
    (!knows && !all_fixed).then_some(piece.len() - 1)
}

/// The two-armed branches of a region that access memory and whose condition is a bound of the row: one part of the row
/// runs one arm, the rest runs the other, and LLVM needs no masks. The locals that they assign are not mentioned in the
/// statements around them, so that they need no context arrays.
fn halves(look: &Look<'_>, piece: &[Stmt]) -> Vec<usize> {
    let touches = |arm: &[Stmt]| {
        let mut touches = false;
        for_each_stmt(arm, &mut |stmt| {
            touches |= matches!(stmt.kind, StmtKind::Store { .. });
            for_each_expr_of_stmt(look.function, &stmt.kind, &mut |id| {
                touches |= matches!(look.function.exprs[id].kind, ExprKind::Load(..));
            });
        });
        touches
    };
    let is_half = |at: usize| {
        let StmtKind::If { cond, then, otherwise } = &piece[at].kind else { return false };
        let two = !then.is_empty() && !otherwise.is_empty() && (touches(then) || touches(otherwise));
        if !two || !look.is_bound(*cond) {
            return false;
        }
        let (mut changes, mut around) = (Vec::new(), false);
        for_each_stmt(&piece[at..=at], &mut |stmt| changes.extend(stmt.kind.assigned()));
        for part in [&piece[..at], &piece[at + 1..]] {
            for_each_mention(look.function, part, &mut |local| around |= changes.contains(&local));
        }
        legal!("distribute.own-locals", !around)
    };
    (0..piece.len()).filter(|&at| is_half(at)).collect()
}

/// Splits a region around some of its branches, and each of these into a branch for each arm.
fn in_halves(function: &mut Function, piece: Block, halves: &[usize]) -> Vec<Block> {
    let mut pieces = vec![Block::new()];
    for (at, stmt) in piece.into_iter().enumerate() {
        let span = stmt.span;
        if halves.contains(&at)
            && let StmtKind::If { cond, then, otherwise } = stmt.kind
        {
            let not = ExprKind::Unary(UnaryOp::Not, function.copy_expr(cond));
            let not = function.exprs.push(Expr { kind: not, ty: Type::BOOL, span });
            for (cond, then) in [(cond, then), (not, otherwise)] {
                pieces.push(vec![Stmt { kind: StmtKind::If { cond, then, otherwise: Block::new() }, span }]);
            }
            pieces.push(Block::new());
        } else if let Some(last) = pieces.last_mut() {
            last.push(stmt);
        }
    }
    pieces.retain(|piece| !piece.is_empty());
    pieces
}

/// Splits a region before an atomic operation whose operands and preceding statements cost enough. Its operands become
/// locals.
fn before_atomics(function: &mut Function, piece: Block) -> Vec<Block> {
    let is_atomic = |stmt: &Stmt| matches!(stmt.kind, StmtKind::Op { op: Op::Atomic { .. }, .. });
    let mut parts = Vec::new();
    let mut current = Block::new();
    for mut stmt in piece {
        let StmtKind::Op { op: Op::Atomic { .. }, args, .. } = &mut stmt.kind else {
            current.push(stmt);
            continue;
        };
        let start = current.iter().take_while(|stmt| is_atomic(stmt)).count();
        let cost = cost(function, &current[start..], args);
        if cost < MIN_OPERATIONS {
            current.push(stmt);
            continue;
        }
        let rest = current.split_off(start);
        parts.extend([current, rest]);
        let mut assigns = Block::new();
        for arg in args {
            let (value, assign) = named(function, *arg);
            *arg = value;
            assigns.extend(assign);
        }
        if let Some(last) = parts.last_mut() {
            last.extend(assigns);
        }
        current = vec![stmt];
    }
    parts.push(current);
    parts
}

/// The number of operations in statements and values; 0 if LLVM cannot vectorize the statements.
fn cost(function: &Function, body: &[Stmt], values: &[ExprId]) -> u32 {
    let mut cost = 0;
    let is_float = |id: ExprId| function.exprs[id].ty.scalar().is_some_and(Scalar::is_float);
    let mut count = |root: ExprId| {
        for_each_expr(function, root, &mut |id| {
            cost += match function.class(id) {
                Class::Arith(Arith::Convert(a)) if is_float(a) && !is_float(id) => SATURATING_COST,
                Class::Arith(_) => 1,
                Class::Leaf(_) | Class::Address { .. } | Class::Load(_) => 0,
            };
        });
    };
    let mut simple = true;
    for_each_stmt(body, &mut |stmt| {
        simple &= !matches!(stmt.kind, StmtKind::Loop { .. } | StmtKind::Op { .. });
        stmt.kind.exprs().into_iter().for_each(&mut count);
    });
    values.iter().copied().for_each(&mut count);
    if simple { cost } else { 0 }
}

/// Stores a value in a new local, or, for an address, its index. Returns the new operand and the assignment.
fn named(function: &mut Function, value: ExprId) -> (ExprId, Option<Stmt>) {
    let Expr { kind, span, ty } = function.exprs[value].clone();
    let (of, rest) = match kind {
        ExprKind::Offset { base, index, scale } => (index, Some((base, scale))),
        ExprKind::Const(_) | ExprKind::Local(_) => return (value, None),
        ExprKind::Special(_)
        | ExprKind::SharedBase(_)
        | ExprKind::ConstBase(_)
        | ExprKind::DynamicShared
        | ExprKind::LocalBase(_)
        | ExprKind::Unary(..)
        | ExprKind::Binary(..)
        | ExprKind::Compare(..)
        | ExprKind::Select(..)
        | ExprKind::Convert(_)
        | ExprKind::Math(..)
        | ExprKind::Wrap { .. }
        | ExprKind::ByteOffset { .. }
        | ExprKind::Load(..) => (value, None),
    };
    let own = function.exprs[of].ty;
    let local = function.locals.push(Local::new("operand", LocalKind::Variable, own));
    let read = function.exprs.push(Expr { kind: ExprKind::Local(local), ty: own, span });
    let assign = Stmt { kind: StmtKind::Assign(local, of), span };
    let value = match rest {
        Some((base, scale)) => {
            function.exprs.push(Expr { kind: ExprKind::Offset { base, index: read, scale }, ty, span })
        }
        None => read,
    };
    (value, Some(assign))
}

/// The number of atomic operations on floats. If there are several, the order of threads changes their sums.
fn steps_of_floats(function: &Function, piece: &[Stmt]) -> usize {
    let is_float = |id: &ExprId| function.exprs[*id].ty.scalar().is_some_and(Scalar::is_float);
    let mut steps = 0;
    for_each_stmt(piece, &mut |stmt| {
        if let StmtKind::Op { args, .. } = &stmt.kind {
            steps += usize::from(args.iter().any(is_float));
        }
    });
    steps
}

/// Whether the order in which threads run a statement is not observable.
fn is_unordered(stmt: &Stmt) -> bool {
    let mut unordered = true;
    for_each_stmt(std::slice::from_ref(stmt), &mut |inner| {
        unordered &= match inner.kind {
            StmtKind::Op { op: Op::Atomic { .. }, .. }
            | StmtKind::Assign(..)
            | StmtKind::Store { .. }
            | StmtKind::If { .. }
            | StmtKind::Loop { .. }
            | StmtKind::Break
            | StmtKind::Continue => true,
            StmtKind::Op { .. } | StmtKind::Call { .. } | StmtKind::Return(_) => false,
        };
    });
    unordered
}

struct Look<'a> {
    groups: &'a Groups<'a>,
    function: &'a Function,
    shared: &'a dyn Fn(LocalId) -> bool,
}

impl Look<'_> {
    /// The first part that need not run for each thread: its range, and the threads that run it.
    fn next(&self, piece: &[Stmt], place: Place) -> Option<(usize, usize, Runs)> {
        for (index, stmt) in piece.iter().enumerate() {
            match &stmt.kind {
                StmtKind::If { cond, then, otherwise } if otherwise.is_empty() && writes(then) => {
                    if self.is_one_thread(*cond) {
                        return Some((index, index + 1, Runs::OneThread));
                    }
                    if let Some(runs) = self.first_lanes(*cond) {
                        return Some((index, index + 1, runs));
                    }
                    if !place.interchanged && self.is_box(piece, index) {
                        return Some((index, index + 1, Runs::EachThread));
                    }
                }
                StmtKind::Loop { .. } if legal!("distribute.not-masked", !place.masked) => {
                    if let Some(start) = self.alike_until(piece, index) {
                        return Some((start, index + 1, Runs::Groups));
                    }
                }
                StmtKind::If { .. }
                | StmtKind::Loop { .. }
                | StmtKind::Assign(..)
                | StmtKind::Store { .. }
                | StmtKind::Op { .. }
                | StmtKind::Call { .. }
                | StmtKind::Break
                | StmtKind::Continue
                | StmtKind::Return(_) => {}
            }
        }
        None
    }

    /// Whether a statement is a branch that fills shared memory for a box of threads, in a region that has more to do than
    /// to assign locals. It pays to split it off if it needs no value of the thread besides its position: no local needs
    /// a context array.
    fn is_box(&self, piece: &[Stmt], at: usize) -> bool {
        let StmtKind::If { cond, then, .. } = &piece[at].kind else { return false };
        let mut fills = false;
        for_each_stmt(then, &mut |stmt| {
            if let StmtKind::Store { pointer, .. } = stmt.kind {
                fills |= matches!(self.function.exprs[pointer].ty, Type::Ptr(_, Space::Shared));
            }
        });
        let mut others = piece[..at].iter().chain(&piece[at + 1..]);
        let has_others = others.any(|stmt| !matches!(stmt.kind, StmtKind::Assign(..)));
        fills && has_others && self.guard(*cond) == Some(true) && self.needs_position_alone(&piece[at..=at])
    }

    /// Whether statements mention only uniform and rematerializable locals, and locals that no other statement assigns.
    fn needs_position_alone(&self, stmts: &[Stmt]) -> bool {
        let inside = count_assigned(self.function, stmts);
        let is_own = |local: LocalId| {
            let here = inside[local.index()];
            here > 0 && self.groups.assigned.get(local.index()) == Some(&here)
        };
        let mut alone = true;
        for_each_mention(self.function, stmts, &mut |local| {
            alone &= (self.shared)(local) || self.groups.fixed.value(local).is_some() || is_own(local);
        });
        alone
    }

    /// Whether a condition contains a guard and has the same value at each position, and whether all of it is a guard.
    fn guard(&self, cond: ExprId) -> Option<bool> {
        let mut lasts = true;
        for_each_expr(self.function, cond, &mut |id| {
            lasts &= !matches!(self.function.class(id), Class::Load(_));
        });
        for_each_read(self.function, cond, &mut |local| {
            lasts &= (self.shared)(local) || self.groups.fixed.value(local).is_some();
        });
        let parts = self.split(cond);
        (lasts && !parts.guard.is_empty()).then_some(parts.residual.is_empty())
    }

    /// Splits a condition into a guard and the rest.
    fn split(&self, cond: ExprId) -> SplitCondition {
        let forms =
            Forms { function: self.function, fixed: self.groups.fixed, shared: self.shared, sole: &|_| None, axis: 0 };
        let mut parts = SplitCondition::default();
        forms.split(cond, false, &mut parts);
        parts
    }

    /// Whether a condition is a single one-sided bound of the row.
    fn is_bound(&self, cond: ExprId) -> bool {
        let mut lasts = true;
        for_each_expr(self.function, cond, &mut |id| lasts &= !matches!(self.function.class(id), Class::Load(_)));
        for_each_read(self.function, cond, &mut |local| {
            lasts &= (self.shared)(local) || self.groups.fixed.value(local).is_some();
        });
        let SplitCondition { guard, residual } = self.split(cond);
        let one_side = residual.is_empty() && guard.rows.is_empty();
        lasts && one_side && matches!(guard.ranges.as_slice(), [range] if range.op != CompareOp::Eq)
    }

    /// Whether a condition implies that `threadIdx.x` has one value, which is computed before the thread loop.
    fn is_one_thread(&self, cond: ExprId) -> bool {
        self.split(cond).guard.ranges.iter().any(|range| range.op == CompareOp::Eq && !range.wraps)
    }

    /// If a condition holds only for the first threads of warps, or of groups of 32 in a row: which of the two.
    fn first_lanes(&self, cond: ExprId) -> Option<Runs> {
        let cond = self.value(cond);
        let is_false = |id: ExprId| matches!(self.function.exprs[id].kind, ExprKind::Const(Const::Bool(false)));
        match self.function.class(cond) {
            Class::Arith(Arith::Binary(BinaryOp::And, a, b)) => self.first_lanes(a).or_else(|| self.first_lanes(b)),
            Class::Arith(Arith::Select(a, b, no)) if is_false(no) => {
                self.first_lanes(a).or_else(|| self.first_lanes(b))
            }
            Class::Arith(Arith::Compare(CompareOp::Eq, a, b)) => {
                let (number, zero) = if self.function.int(b) == Some(0) { (a, b) } else { (b, a) };
                if self.function.int(zero) != Some(0) {
                    return None;
                }
                let number = self.value(number);
                match self.function.class(number) {
                    Class::Leaf(Leaf::Special(SpecialRegister::LaneId)) => Some(Runs::FirstLanes),
                    Class::Arith(Arith::Binary(BinaryOp::ModNonneg | BinaryOp::FloorMod, a, by)) => {
                        let whole = self.function.int(by).is_some_and(|by| by > 0 && by % LANES == 0);
                        (whole && self.is_x(a)).then_some(Runs::FirstOfGroups)
                    }
                    Class::Arith(Arith::Binary(BinaryOp::And, a, by)) => {
                        let whole = self.function.int(by).is_some_and(|by| by & (LANES - 1) == LANES - 1);
                        (whole && self.is_x(a)).then_some(Runs::FirstOfGroups)
                    }
                    Class::Leaf(_) | Class::Arith(_) | Class::Address { .. } | Class::Load(_) => None,
                }
            }
            Class::Leaf(_) | Class::Arith(_) | Class::Address { .. } | Class::Load(_) => None,
        }
    }

    /// The value of a rematerializable local or of a widened integer.
    fn value(&self, mut root: ExprId) -> ExprId {
        loop {
            root = match self.function.class(root) {
                Class::Leaf(Leaf::Local(local)) if !(self.shared)(local) => match self.groups.fixed.value(local) {
                    Some(value) => value,
                    None => return root,
                },
                Class::Arith(Arith::Convert(a)) if self.widens(root, a) => a,
                Class::Leaf(_) | Class::Arith(_) | Class::Address { .. } | Class::Load(_) => return root,
            };
        }
    }

    /// Whether a conversion preserves every value.
    fn widens(&self, to: ExprId, from: ExprId) -> bool {
        let scalar = |id: ExprId| self.function.exprs[id].ty.scalar();
        match (scalar(to), scalar(from)) {
            (Some(to), Some(from)) => {
                to.is_signed_int() && from.is_signed_int() && to.size_bytes() >= from.size_bytes()
            }
            _ => false,
        }
    }

    fn is_x(&self, root: ExprId) -> bool {
        let root = self.value(root);
        matches!(self.function.exprs[root].kind, ExprKind::Special(SpecialRegister::ThreadIdx(0)))
    }

    /// The start of the longest part that ends with the loop at `end` and is uniform for 32 consecutive threads of a
    /// row, the first of which has a multiple of 32 as its `threadIdx.x`. The loop must load.
    fn alike_until(&self, piece: &[Stmt], end: usize) -> Option<usize> {
        let mut found = None;
        let mut loads = false;
        for_each_stmt(&piece[end..=end], &mut |stmt| {
            for root in stmt.kind.exprs() {
                for_each_expr(self.function, root, &mut |id| {
                    loads |= matches!(self.function.exprs[id].kind, ExprKind::Load(..));
                });
            }
        });
        for start in (0..=end).rev() {
            if start < end && !matches!(piece[start].kind, StmtKind::Assign(..)) {
                break;
            }
            if loads && self.is_alike(&piece[start..=end]) {
                found = Some(start);
            }
        }
        found
    }

    /// Whether statements are uniform for 32 consecutive threads, and no other statement assigns a local that they
    /// assign.
    fn is_alike(&self, part: &[Stmt]) -> bool {
        let inside = count_assigned(self.function, part);
        let own = |local: LocalId| {
            let here = inside[local.index()];
            here > 0 && self.groups.assigned.get(local.index()).is_some_and(|&all| all == here)
        };
        let mut alike = true;
        for_each_stmt(part, &mut |stmt| {
            alike &= match &stmt.kind {
                StmtKind::Assign(local, _) => own(*local),
                StmtKind::If { .. } | StmtKind::Loop { .. } | StmtKind::Break | StmtKind::Continue => true,
                StmtKind::Store { .. } | StmtKind::Op { .. } | StmtKind::Call { .. } | StmtKind::Return(_) => false,
            };
            for root in stmt.kind.exprs() {
                alike = alike && self.is_same(root, &own, 64);
            }
        });
        alike
    }

    /// Whether a value is uniform for 32 consecutive threads.
    fn is_same(&self, root: ExprId, own: &dyn Fn(LocalId) -> bool, depth: u32) -> bool {
        let Some(depth) = depth.checked_sub(1) else { return false };
        let function = self.function;
        let same = |id: ExprId| self.is_same(id, own, depth);
        match function.class(root) {
            Class::Leaf(Leaf::Const(_)) => true,
            Class::Leaf(Leaf::Base(base)) => base.is_of_block(),
            Class::Leaf(Leaf::Special(SpecialRegister::ThreadIdx(axis))) => axis > 0,
            Class::Leaf(Leaf::Special(register)) => register.is_of_block(),
            Class::Leaf(Leaf::Local(local)) if own(local) || (self.shared)(local) => true,
            Class::Leaf(Leaf::Local(local)) => self.groups.fixed.value(local).is_some_and(same),
            Class::Arith(Arith::Binary(BinaryOp::DivNonneg | BinaryOp::FloorDiv, a, by))
                if function.int(by).is_some_and(|by| by > 0 && by % LANES == 0) && self.is_x(a) =>
            {
                true
            }
            Class::Arith(Arith::Binary(BinaryOp::Shr, a, by))
                if function.int(by).is_some_and(|by| (5..31).contains(&by)) && self.is_x(a) =>
            {
                true
            }
            Class::Arith(arith) => arith.operands().iter().all(|&id| same(id)),
            Class::Address { base, by, .. } => same(base) && same(by),
            Class::Load(pointer) => same(pointer),
        }
    }
}

/// Whether statements store to memory or have operations such as atomics.
fn writes(body: &[Stmt]) -> bool {
    let mut writes = false;
    for_each_stmt(body, &mut |stmt| writes |= matches!(stmt.kind, StmtKind::Store { .. } | StmtKind::Op { .. }));
    writes
}
