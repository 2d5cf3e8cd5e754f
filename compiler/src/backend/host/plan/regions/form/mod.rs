//! Region formation: cuts a kernel's body at its barriers into parallel regions ([`Segment`]) and the control flow
//! between them ([`Node`]).
//!
//! ```text
//! a                                       Segment { a }
//! if uniform:                             If uniform:
//!     b                                       Segment { b }
//!     barrier                                 Barrier
//!     c                                       Segment { c }
//! if varying:                             Segment { cond = varying }
//!     d                                   Split cond:
//!     barrier                                 Segment { d }  (with a mask)
//!     e                                       Barrier
//!                                             Segment { e }  (with a mask)
//! ```
//!
//! Control flow that contains a barrier moves out of the thread loops, to the level of the block. If its condition is
//! uniform, it becomes ordinary control flow that runs once. If it is a guard that does not change, each segment inside
//! takes the guard. Otherwise a mask holds the threads that take part: one mask for each arm of a branch, one for the
//! threads still in a loop, one for those that have not skipped the rest of an iteration, and one for those that have
//! not returned. A uniform branch without a barrier moves out too if it contains a jump out of control flow of the
//! block, because that jump then needs no mask. Statements that only compute uniform values run once for the block
//! ([`Node::Once`]).

pub(crate) mod distribute;

use crate::{
    analysis::{Rematerializable, escapes, for_each_mention},
    backend::host::plan::{
        analysis::{
            block_uniformity::{lifts, runs_once, shared_by_block},
            divergence::Uniformity,
            guarded::Regions,
            structure::{holds_barrier, induction_variable, is_barrier},
        },
        plan_ir::{Cut, Divergence, Guard, MaskId, MaskedLoop, Masks, Node, Runs, Segment},
        regions::form::distribute::{Groups, Place},
    },
    ir::{
        Block, ExprKind, Function, Local, LocalId, LocalKind, Op, Stmt, StmtKind, Type, for_each_expr_of_stmt,
        for_each_stmt,
    },
    source::Span,
};

/// A kernel without barriers: one segment, or one for each arm if the body is a branch that versions it for a launch.
pub(crate) fn whole(mut body: Block, is_choice: bool) -> Cut {
    let segment = |body: Block| vec![Node::Segment(Box::new(Segment { body, ..Segment::default() }))];
    let nodes = match body.pop() {
        Some(Stmt { kind: StmtKind::If { cond, then, otherwise }, .. }) if is_choice => {
            vec![Node::If { cond, then: segment(then), otherwise: segment(otherwise) }]
        }
        last => {
            body.extend(last);
            segment(body)
        }
    };
    Cut { nodes, ..Cut::default() }
}

/// Cuts a body. Adds locals for the conditions of varying branches to the function. With `groups`, distributes the
/// segments into parts, of which some need not run for each thread.
///
/// `together` holds the counters and offsets of loops whose only barrier was inserted by
/// [`crate::backend::host::plan::loops::interchange`]; `masked_loops` describes the loops that
/// [`crate::backend::host::plan::loops::masked_exits`] rewrote. The barrier at the end of their bodies is dropped.
pub(crate) fn cut(
    function: &mut Function,
    body: &[Stmt],
    uniformity: &Uniformity,
    regions: &Regions,
    (together, masked_loops): (&[LocalId], &[MaskedLoop]),
    groups: Option<&Groups<'_>>,
) -> Cut {
    let locals = function.locals.len();
    let mut cutter = Cutter {
        function,
        uniformity,
        regions,
        together,
        masked_loops,
        groups,
        guards: Vec::new(),
        masks: Vec::new(),
        next_mask: 0,
        mask_count: 0,
        divergences: Vec::new(),
        return_mask_needed: false,
        loops: 0,
        in_interchanged: false,
    };
    let nodes = cutter.list(body, true);
    if !cutter.return_mask_needed {
        return Cut { nodes, masks: cutter.mask_count, alive: None, divergences: cutter.divergences };
    }
    // Some threads return while others go on: cut again, with an outermost mask for the threads that have not returned.
    let function = cutter.function;
    function.locals.truncate(locals);
    let mut cutter = Cutter {
        function,
        uniformity,
        regions,
        together,
        masked_loops,
        groups,
        guards: Vec::new(),
        masks: vec![(0, Kind::Alive)],
        next_mask: 1,
        mask_count: 1,
        divergences: Vec::new(),
        return_mask_needed: false,
        loops: 0,
        in_interchanged: false,
    };
    let nodes = cutter.list(body, true);
    Cut { nodes, masks: cutter.mask_count, alive: Some(0), divergences: cutter.divergences }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Alive,
    Arm,
    Loop,
    Iteration,
}

/// The first statement for which `is` holds, at any depth.
fn first<'a>(block: &'a [Stmt], is: &dyn Fn(&Stmt) -> bool) -> Option<&'a Stmt> {
    block.iter().find_map(|stmt| {
        if is(stmt) {
            return Some(stmt);
        }
        stmt.kind.blocks().into_iter().flatten().find_map(|inner| first(inner, is))
    })
}

struct Cutter<'a> {
    function: &'a mut Function,
    uniformity: &'a Uniformity,
    regions: &'a Regions,
    together: &'a [LocalId],
    masked_loops: &'a [MaskedLoop],
    groups: Option<&'a Groups<'a>>,
    /// The guards around the position.
    guards: Vec<Guard>,
    /// The masks around the position, innermost last.
    masks: Vec<(MaskId, Kind)>,
    /// The next free mask; the masks of a construct are free again after it.
    next_mask: MaskId,
    mask_count: u32,
    divergences: Vec<Divergence>,
    return_mask_needed: bool,
    /// The number of block-level loops around the position.
    loops: u32,
    /// One of them has no barrier of the program.
    in_interchanged: bool,
}

impl Cutter<'_> {
    fn new_mask(&mut self) -> MaskId {
        self.next_mask += 1;
        self.mask_count = self.mask_count.max(self.next_mask);
        self.next_mask - 1
    }

    fn active(&self) -> Option<MaskId> {
        self.masks.last().map(|&(mask, _)| mask)
    }

    /// The conjunction of all guards around the position.
    fn guard(&self) -> Option<Guard> {
        let mut all = Guard::default();
        for guard in &self.guards {
            all.add(guard);
        }
        (!all.is_empty()).then_some(all)
    }

    /// The masks from the innermost one out to the innermost one of a kind.
    fn masks_to(&self, kind: Kind) -> Vec<MaskId> {
        let from = self.masks.iter().rposition(|&(_, at)| at == kind).unwrap_or(0);
        self.masks[from..].iter().map(|&(mask, _)| mask).collect()
    }

    /// The nodes of a list of statements; `tail` if the kernel ends after it.
    fn list(&mut self, block: &[Stmt], tail: bool) -> Vec<Node> {
        let mut nodes = Vec::new();
        let mut pending = Block::new();
        let ends_kernel = tail;
        let mut of_warps = false;
        for (index, stmt) in block.iter().enumerate() {
            let tail = tail && index + 1 == block.len();
            let rest = &block[index + 1..];
            if std::mem::take(&mut of_warps)
                && let StmtKind::If { then, .. } = &stmt.kind
            {
                let (body, repeats) = (then.clone(), self.loops > 0);
                let segment = Segment { body, runs: Runs::Warps, repeats, ..Segment::default() };
                nodes.push(Node::Segment(Box::new(segment)));
            } else if let StmtKind::Op { op: Op::WarpRegion(number), .. } = stmt.kind {
                self.flush(&mut pending, &mut nodes, false);
                nodes.push(Node::WarpRegion(number));
            } else if is_barrier(stmt) {
                self.flush(&mut pending, &mut nodes, false);
                nodes.push(Node::Barrier);
                of_warps = matches!(stmt.kind, StmtKind::Op { op: Op::OfWarps, .. });
            } else if let Some(guard) = self.early_return(stmt, rest, ends_kernel) {
                self.flush(&mut pending, &mut nodes, false);
                nodes.push(self.guarded(guard, rest, true));
                return nodes;
            } else if lifts(self.function, self.uniformity, stmt) {
                self.lift(stmt, &mut pending, &mut nodes, tail);
            } else if runs_once(self.function, self.uniformity, stmt) {
                self.once(stmt, &mut pending, &mut nodes);
            } else {
                let jump = match stmt.kind {
                    StmtKind::Break => Some(Node::Break),
                    StmtKind::Continue => Some(Node::Continue),
                    StmtKind::Return(_) => Some(Node::Return),
                    StmtKind::Assign(..)
                    | StmtKind::Store { .. }
                    | StmtKind::Op { .. }
                    | StmtKind::Call { .. }
                    | StmtKind::If { .. }
                    | StmtKind::Loop { .. } => None,
                };
                let Some(jump) = jump else {
                    pending.push(stmt.clone());
                    continue;
                };
                // Statements after a jump are unreachable.
                if self.uniformity.splits_jump(stmt) {
                    pending.push(stmt.clone());
                    self.flush(&mut pending, &mut nodes, tail);
                } else {
                    self.flush(&mut pending, &mut nodes, tail);
                    nodes.push(jump);
                }
                return nodes;
            }
        }
        self.flush(&mut pending, &mut nodes, tail);
        nodes
    }

    /// The guard of `rest`, if `stmt` is an early return before it and the kernel ends after `rest`, which is in no loop
    /// then.
    fn early_return(&self, stmt: &Stmt, rest: &[Stmt], ends_kernel: bool) -> Option<Guard> {
        let guard = self.regions.after(stmt)?;
        (legal!("form.end-of-kernel", ends_kernel) && rest.iter().any(holds_barrier)).then(|| guard.clone())
    }

    /// A segment without a body, with the mask and the guard of the position.
    fn bare(&self) -> Segment {
        Segment { active: self.active(), guard: self.guard(), repeats: self.loops > 0, ..Segment::default() }
    }

    fn flush(&mut self, pending: &mut Block, nodes: &mut Vec<Node>, tail: bool) {
        if pending.is_empty() {
            return;
        }
        let mut body = std::mem::take(pending);
        if let Some(groups) = self.groups {
            let uniformity = self.uniformity;
            let place = Place { masked: self.active().is_some(), interchanged: self.in_interchanged };
            let mut parts = groups.parts(self.function, &|local| !uniformity.local_varies(local), place, body);
            let last = parts.pop();
            for (runs, body) in parts {
                nodes.push(Node::Segment(Box::new(Segment { body, runs, ..self.bare() })));
            }
            let Some((runs, last)) = last else { return };
            if runs != Runs::EachThread {
                nodes.push(Node::Segment(Box::new(Segment { body: last, runs, ..self.bare() })));
                return;
            }
            body = last;
        }
        let ways_out = escapes(&body);
        let mut segment = Segment { body, ..self.bare() };
        if ways_out.returns && !tail {
            self.return_mask_needed = true;
            let returns = |stmt: &Stmt| matches!(stmt.kind, StmtKind::Return(_));
            self.divergences.extend(first(&segment.body, &returns).map(|stmt| Divergence::Return(stmt.span)));
            segment.on_return = self.masks_to(Kind::Alive);
        }
        if ways_out.breaks {
            segment.on_break = self.masks_to(Kind::Loop);
        }
        if ways_out.continues {
            segment.on_continue = self.masks_to(Kind::Iteration);
        }
        nodes.push(Node::Segment(Box::new(segment)));
    }

    /// Adds a statement that runs once for the block. It runs before the threads' pending statements, unless these
    /// mention a local that it assigns.
    fn once(&mut self, stmt: &Stmt, pending: &mut Block, nodes: &mut Vec<Node>) {
        let mut changes = Vec::new();
        for_each_stmt(std::slice::from_ref(stmt), &mut |inner| changes.extend(inner.kind.assigned()));
        // A loop may terminate, and a load may be in bounds, only for values of threads that are still active. Such
        // statements remain after the jumps of pending statements.
        let mut of_threads = false;
        for_each_stmt(std::slice::from_ref(stmt), &mut |inner| {
            of_threads |= matches!(inner.kind, StmtKind::Loop { .. });
            for_each_expr_of_stmt(self.function, &inner.kind, &mut |id| {
                of_threads |= matches!(self.function.exprs[id].kind, ExprKind::Load(..));
            });
        });
        let mut seen = !legal!("form.no-jump-before", !of_threads || !escapes(pending).any());
        for_each_mention(self.function, pending, &mut |local| seen |= changes.contains(&local));
        if seen {
            self.flush(pending, nodes, false);
        }
        // Without a mask every thread of the region is active, because a divergent jump creates a mask.
        let active = if legal!("form.unmasked", !of_threads) { None } else { self.active() };
        match nodes.last_mut() {
            Some(Node::Once { active: None, block, .. }) if active.is_none() => block.push(stmt.clone()),
            _ => {
                let guard = if active.is_some() { self.guard() } else { None };
                nodes.push(Node::Once { active, guard, block: vec![stmt.clone()] });
            }
        }
    }

    /// The condition of the innermost divergent branch around a loop's first divergent jump of a kind.
    fn divergent_jump(&self, stmt: &Stmt, is_jump: &dyn Fn(&StmtKind) -> bool) -> Span {
        let StmtKind::Loop { body, .. } = &stmt.kind else { return stmt.span };
        self.condition_of_jump(body, is_jump, stmt.span).unwrap_or(stmt.span)
    }

    fn condition_of_jump(&self, block: &[Stmt], is_jump: &dyn Fn(&StmtKind) -> bool, around: Span) -> Option<Span> {
        block.iter().find_map(|stmt| match &stmt.kind {
            StmtKind::If { cond, then, otherwise } => {
                let varies = self.uniformity.varies(self.function, *cond);
                let around = if varies { self.function.exprs[*cond].span } else { around };
                [then, otherwise].into_iter().find_map(|part| self.condition_of_jump(part, is_jump, around))
            }
            StmtKind::Break | StmtKind::Continue => {
                (is_jump(&stmt.kind) && self.uniformity.splits_jump(stmt)).then_some(around)
            }
            // Jumps in an inner loop are not those of this loop.
            StmtKind::Assign(..)
            | StmtKind::Store { .. }
            | StmtKind::Op { .. }
            | StmtKind::Call { .. }
            | StmtKind::Loop { .. }
            | StmtKind::Return(_) => None,
        })
    }

    fn guarded(&mut self, guard: Guard, block: &[Stmt], tail: bool) -> Node {
        self.guards.push(guard.clone());
        let inside = self.list(block, tail);
        self.guards.pop();
        Node::Guarded { guard, inside }
    }

    fn lift(&mut self, stmt: &Stmt, pending: &mut Block, nodes: &mut Vec<Node>, tail: bool) {
        if let (StmtKind::If { then, .. }, Some(guard)) = (&stmt.kind, self.regions.inside(stmt)) {
            self.flush(pending, nodes, false);
            let guard = guard.clone();
            nodes.push(self.guarded(guard, then, tail));
            return;
        }
        match &stmt.kind {
            StmtKind::If { cond, then, otherwise } if !self.uniformity.varies(self.function, *cond) => {
                self.flush(pending, nodes, false);
                let then = self.list(then, tail);
                let otherwise = self.list(otherwise, tail);
                nodes.push(Node::If { cond: *cond, then, otherwise });
            }
            StmtKind::If { cond, then, otherwise } => {
                let local = Local::new("cond", LocalKind::Variable, Type::BOOL);
                let local = self.function.locals.push(local);
                pending.push(Stmt { kind: StmtKind::Assign(local, *cond), span: stmt.span });
                self.flush(pending, nodes, false);
                let (active, guard, outer) = (self.active(), self.guard(), self.next_mask);
                let (then_mask, else_mask) = (self.new_mask(), self.new_mask());
                self.divergences.push(Divergence::Branch(self.function.exprs[*cond].span));
                self.masks.push((then_mask, Kind::Arm));
                let then = self.list(then, tail);
                self.masks.pop();
                self.masks.push((else_mask, Kind::Arm));
                let otherwise = self.list(otherwise, tail);
                self.masks.pop();
                self.next_mask = outer;
                nodes.push(Node::Split { active, guard, cond: local, then_mask, else_mask, then, otherwise });
            }
            StmtKind::Loop { body, step } => {
                self.flush(pending, nodes, false);
                let (active, guard) = (self.active(), self.guard());
                let (outer, depth) = (self.next_mask, self.masks.len());
                let mask = self.uniformity.splits_loop(stmt).then(|| self.new_mask());
                let continue_mask = self.uniformity.splits_iteration(stmt).then(|| self.new_mask());
                if mask.is_some() {
                    let is_exit = |kind: &StmtKind| matches!(kind, StmtKind::Break);
                    self.divergences.push(Divergence::Exit(self.divergent_jump(stmt, &is_exit)));
                }
                if continue_mask.is_some() {
                    let is_continue = |kind: &StmtKind| matches!(kind, StmtKind::Continue);
                    self.divergences.push(Divergence::Continue(self.divergent_jump(stmt, &is_continue)));
                }
                self.loops += 1;
                self.masks.extend(mask.map(|mask| (mask, Kind::Loop)));
                self.masks.extend(continue_mask.map(|mask| (mask, Kind::Iteration)));
                let counter = induction_variable(self.function, body, step);
                // The barrier at the end of the body was inserted by a loop transformation.
                let mut is_marked = body.iter().any(|stmt| {
                    matches!(stmt.kind, StmtKind::If { cond, .. } if self.masked_loops.iter().any(|of| of.few_active == cond))
                });
                for_each_stmt(step, &mut |stmt| {
                    is_marked |= stmt.kind.assigned().iter().any(|local| self.together.contains(local));
                });
                let around = self.in_interchanged;
                self.in_interchanged |= is_marked;
                let body = match body.split_last() {
                    Some((_, iteration)) if is_marked => self.list(iteration, false),
                    _ => self.list(body, false),
                };
                if continue_mask.is_some() {
                    self.masks.pop();
                }
                let step = self.list(step, false);
                self.in_interchanged = around;
                self.masks.truncate(depth);
                self.loops -= 1;
                self.next_mask = outer;
                let span = stmt.span;
                nodes.push(Node::Loop { counter, active, guard, mask, continue_mask, body, step, span });
            }
            StmtKind::Assign(..)
            | StmtKind::Store { .. }
            | StmtKind::Op { .. }
            | StmtKind::Call { .. }
            | StmtKind::Break
            | StmtKind::Continue
            | StmtKind::Return(_) => pending.push(stmt.clone()),
        }
    }
}

/// The number of masks that a body needs.
pub(crate) fn masks(function: &Function, body: &[Stmt]) -> Masks {
    let mut function = function.clone();
    let fixed = Rematerializable::of(&function, body);
    let (regions, uniformity) = shared_by_block(&function, body, &fixed);
    let Cut { masks: count, divergences, .. } = cut(&mut function, body, &uniformity, &regions, (&[], &[]), None);
    Masks { count, divergences }
}
