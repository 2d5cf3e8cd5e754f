//! Cuts a kernel's body at its barriers: thread loops ("segments") and the control flow between them.
//!
//! Control flow that holds a barrier is lifted to the level of the block. Where all threads go the same way it is
//! plain control flow, executed once; elsewhere masks say which threads are in it. A branch without a barrier is
//! lifted too if it leaves a lifted level and all threads go the same way, because then no mask is needed.

use super::guards::Guard;
use super::{
    regions::Regions,
    uniform::Uniformity,
    walk::{escapes, for_each_mention},
};
use crate::ir::{Block, ExprId, Function, Local, LocalId, Stmt, StmtKind, Together, Type, for_each_stmt};

/// A byte for each thread that says whether it takes part; by number.
pub(crate) type MaskId = u32;

/// What a block does, in order.
#[derive(Clone, Debug)]
pub(crate) enum Node {
    /// Statements on values that all threads share, executed once.
    Once(Block),
    /// Statements that every thread executes before any goes on.
    Segment(Box<Segment>),
    /// All threads go the same way.
    If {
        /// A uniform `Bool`.
        cond: ExprId,
        /// If true.
        then: Vec<Node>,
        /// If false.
        otherwise: Vec<Node>,
    },
    /// Only the threads of a guard are here; skipped if the block has none.
    Guarded {
        /// Who is here.
        guard: Guard,
        /// What they do; each segment inside has the guard too.
        inside: Vec<Node>,
    },
    /// Threads go different ways: first those of the one arm, then those of the other.
    Split {
        /// Takes part now, of those that the guard lets through.
        active: Option<MaskId>,
        /// The guard of the part around it.
        guard: Option<Guard>,
        /// The condition of each thread; it crosses from the segment before.
        cond: LocalId,
        /// Which threads run `then`.
        then_mask: MaskId,
        /// Which threads run `otherwise`.
        else_mask: MaskId,
        /// If true.
        then: Vec<Node>,
        /// If false.
        otherwise: Vec<Node>,
    },
    /// A loop with a barrier in it.
    Loop {
        /// Takes part when it begins, of those that the guard lets through.
        active: Option<MaskId>,
        /// The guard of the part around it.
        guard: Option<Guard>,
        /// Which threads have not left it yet, if they leave in different turns.
        mask: Option<MaskId>,
        /// Which threads still run this turn's body, if some skip the rest of it.
        turn_mask: Option<MaskId>,
        /// The body.
        body: Vec<Node>,
        /// Between two turns.
        step: Vec<Node>,
    },
    /// All threads leave the innermost [`Node::Loop`].
    Break,
    /// All threads go to the step of the innermost [`Node::Loop`].
    Continue,
    /// All threads leave the kernel.
    Return,
}

/// Statements without a barrier, run for one thread after the other.
///
/// [`cut`] fills the first part; [`super::crossing`] and [`super::guards`] the second.
#[derive(Clone, Debug, Default)]
pub(crate) struct Segment {
    /// The statements.
    pub body: Block,
    /// Only these threads run it; all if `None`.
    pub active: Option<MaskId>,
    /// Masks that a thread leaves by `Return`.
    pub on_return: Vec<MaskId>,
    /// Masks that a thread leaves by `Break`.
    pub on_break: Vec<MaskId>,
    /// Masks that a thread leaves by `Continue`.
    pub on_continue: Vec<MaskId>,
    /// It stands in a lifted loop, so that it may run again for the same thread.
    pub repeats: bool,

    /// Every local of a thread's own that the segment mentions: each has a place while it runs.
    pub locals: Vec<LocalId>,
    /// Fixed locals to compute again first, in this order.
    pub recompute: Vec<LocalId>,
    /// Crossing locals to fetch first.
    pub load: Vec<LocalId>,
    /// Crossing locals to put back last.
    pub store: Vec<LocalId>,
    /// Which threads have anything to do, where that can be said before they start. [`cut`] gives it the guards around
    /// the segment.
    pub guard: Option<Guard>,
    /// Its threads may be run side by side: nothing orders them, and they share no memory but the program's own.
    pub parallel: bool,
}

/// The cut body.
#[derive(Debug)]
pub(crate) struct Cut {
    /// What to do.
    pub nodes: Vec<Node>,
    /// How many masks there are.
    pub masks: u32,
    /// The mask of threads that have not returned, set when the block begins.
    pub alive: Option<MaskId>,
}

/// A kernel without a barrier: one segment.
pub(crate) fn whole(body: Block) -> Cut {
    let segment = Segment { body, ..Segment::default() };
    Cut { nodes: vec![Node::Segment(Box::new(segment))], masks: 0, alive: None }
}

/// Cuts a body. New locals, for conditions, are added to the function.
pub(crate) fn cut(function: &mut Function, body: &[Stmt], uniformity: &Uniformity, regions: &Regions) -> Cut {
    let locals = function.locals.len();
    let mut cutter = Cutter {
        function,
        uniformity,
        regions,
        guards: Vec::new(),
        masks: Vec::new(),
        next_mask: 0,
        mask_count: 0,
        return_mask_needed: false,
        loops: 0,
    };
    let nodes = cutter.list(body, true);
    if !cutter.return_mask_needed {
        return Cut { nodes, masks: cutter.mask_count, alive: None };
    }
    // Some thread returns before others go on: once more, with a mask below all others.
    let function = cutter.function;
    function.locals.truncate(locals);
    let mut cutter = Cutter {
        function,
        uniformity,
        regions,
        guards: Vec::new(),
        masks: vec![(0, Kind::Alive)],
        next_mask: 1,
        mask_count: 1,
        return_mask_needed: false,
        loops: 0,
    };
    let nodes = cutter.list(body, true);
    Cut { nodes, masks: cutter.mask_count, alive: Some(0) }
}

/// Uniform locals that a thread's own code assigns: they have to vary, because only code that runs once a block may
/// assign a local that the block shares.
pub(crate) fn assigned_by_threads(function: &Function, body: &[Stmt], uniformity: &Uniformity) -> Vec<LocalId> {
    let mut found = Vec::new();
    for stmt in body {
        if lifts(function, uniformity, stmt) {
            if let StmtKind::If { then: first, otherwise: second, .. } | StmtKind::Loop { body: first, step: second } =
                &stmt.kind
            {
                found.extend(assigned_by_threads(function, first, uniformity));
                found.extend(assigned_by_threads(function, second, uniformity));
            }
        } else if !runs_once(function, uniformity, stmt) {
            for_each_stmt(std::slice::from_ref(stmt), &mut |inner| {
                found.extend(inner.kind.assigned().into_iter().filter(|&local| !uniformity.local_varies(local)));
            });
        }
    }
    found
}

fn is_barrier(stmt: &Stmt) -> bool {
    match &stmt.kind {
        StmtKind::Op { op, .. } => op.row().together > Together::None,
        StmtKind::Assign(..)
        | StmtKind::Store { .. }
        | StmtKind::Call { .. }
        | StmtKind::If { .. }
        | StmtKind::Loop { .. }
        | StmtKind::Break
        | StmtKind::Continue
        | StmtKind::Return(_) => false,
    }
}

/// `true` if a statement, or one inside it, is a barrier.
pub(crate) fn holds_barrier(stmt: &Stmt) -> bool {
    let mut found = false;
    for_each_stmt(std::slice::from_ref(stmt), &mut |inner| found |= is_barrier(inner));
    found
}

/// `true` if a statement becomes control flow of the block.
fn lifts(function: &Function, uniformity: &Uniformity, stmt: &Stmt) -> bool {
    match &stmt.kind {
        StmtKind::Loop { .. } => holds_barrier(stmt),
        StmtKind::If { cond, .. } => {
            holds_barrier(stmt) || (escapes(std::slice::from_ref(stmt)).any() && !uniformity.varies(function, *cond))
        }
        _ => false,
    }
}

/// `true` if a statement does nothing but compute shared values, so that it runs once a block.
fn runs_once(function: &Function, uniformity: &Uniformity, stmt: &Stmt) -> bool {
    if escapes(std::slice::from_ref(stmt)).any() {
        return false;
    }
    let mut once = true;
    for_each_stmt(std::slice::from_ref(stmt), &mut |inner| {
        once &= match &inner.kind {
            StmtKind::Assign(local, _) => !uniformity.local_varies(*local),
            StmtKind::If { cond, .. } => !uniformity.varies(function, *cond),
            StmtKind::Loop { .. } | StmtKind::Break | StmtKind::Continue => true,
            _ => false,
        };
    });
    once
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Alive,
    Arm,
    Loop,
    Turn,
}

struct Cutter<'a> {
    function: &'a mut Function,
    uniformity: &'a Uniformity,
    regions: &'a Regions,
    /// The guards around the position.
    guards: Vec<Guard>,
    /// The masks around the position, innermost last.
    masks: Vec<(MaskId, Kind)>,
    /// The next free mask; masks of a construct are free again after it.
    next_mask: MaskId,
    mask_count: u32,
    return_mask_needed: bool,
    /// Lifted loops around the position.
    loops: u32,
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

    /// What all guards around the position let through.
    fn guard(&self) -> Option<Guard> {
        let mut all = Guard::default();
        for guard in &self.guards {
            all.add(guard);
        }
        (!all.is_empty()).then_some(all)
    }

    /// The masks from the innermost out to the first of a kind.
    fn masks_to(&self, kind: Kind) -> Vec<MaskId> {
        let from = self.masks.iter().rposition(|&(_, at)| at == kind).unwrap_or(0);
        self.masks[from..].iter().map(|&(mask, _)| mask).collect()
    }

    /// Nodes of a list; `tail` if nothing of the kernel comes after it.
    fn list(&mut self, block: &[Stmt], tail: bool) -> Vec<Node> {
        let mut nodes = Vec::new();
        let mut pending = Block::new();
        let ends_kernel = tail;
        for (index, stmt) in block.iter().enumerate() {
            let tail = tail && index + 1 == block.len();
            let rest = &block[index + 1..];
            if is_barrier(stmt) {
                self.flush(&mut pending, &mut nodes, false);
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
                    _ => None,
                };
                let Some(jump) = jump else {
                    pending.push(stmt.clone());
                    continue;
                };
                // Nothing after a jump is reached.
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

    /// The guard of `rest`, if `stmt` is an early return before it and that ends the kernel.
    fn early_return(&self, stmt: &Stmt, rest: &[Stmt], ends_kernel: bool) -> Option<Guard> {
        let guard = self.regions.after(stmt)?;
        (ends_kernel && self.loops == 0 && rest.iter().any(holds_barrier)).then(|| guard.clone())
    }

    fn flush(&mut self, pending: &mut Block, nodes: &mut Vec<Node>, tail: bool) {
        if pending.is_empty() {
            return;
        }
        let body = std::mem::take(pending);
        let ways_out = escapes(&body);
        let mut segment =
            Segment { body, active: self.active(), guard: self.guard(), repeats: self.loops > 0, ..Segment::default() };
        if ways_out.returns && !tail {
            self.return_mask_needed = true;
            segment.on_return = self.masks_to(Kind::Alive);
        }
        if ways_out.breaks {
            segment.on_break = self.masks_to(Kind::Loop);
        }
        if ways_out.continues {
            segment.on_continue = self.masks_to(Kind::Turn);
        }
        nodes.push(Node::Segment(Box::new(segment)));
    }

    /// A statement that runs once a block: before the threads' statements that wait, if they do not see the difference.
    fn once(&mut self, stmt: &Stmt, pending: &mut Block, nodes: &mut Vec<Node>) {
        let mut changes = Vec::new();
        for_each_stmt(std::slice::from_ref(stmt), &mut |inner| changes.extend(inner.kind.assigned()));
        let mut seen = false;
        for_each_mention(self.function, pending, &mut |local| seen |= changes.contains(&local));
        if seen {
            self.flush(pending, nodes, false);
        }
        if let Some(Node::Once(block)) = nodes.last_mut() {
            block.push(stmt.clone());
        } else {
            nodes.push(Node::Once(vec![stmt.clone()]));
        }
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
                let local = Local { name: "cond".to_owned(), ty: Type::BOOL, nonneg: false, counts: false };
                let local = self.function.locals.push(local);
                pending.push(Stmt { kind: StmtKind::Assign(local, *cond), span: stmt.span });
                self.flush(pending, nodes, false);
                let (active, guard, outer) = (self.active(), self.guard(), self.next_mask);
                let (then_mask, else_mask) = (self.new_mask(), self.new_mask());
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
                let turn_mask = self.uniformity.splits_turn(stmt).then(|| self.new_mask());
                self.loops += 1;
                self.masks.extend(mask.map(|mask| (mask, Kind::Loop)));
                self.masks.extend(turn_mask.map(|mask| (mask, Kind::Turn)));
                let body = self.list(body, false);
                if turn_mask.is_some() {
                    self.masks.pop();
                }
                let step = self.list(step, false);
                self.masks.truncate(depth);
                self.loops -= 1;
                self.next_mask = outer;
                nodes.push(Node::Loop { active, guard, mask, turn_mask, body, step });
            }
            _ => pending.push(stmt.clone()),
        }
    }
}

impl Node {
    /// The nodes inside, if there are some.
    fn parts(&self) -> [&[Self]; 2] {
        match self {
            Self::If { then: first, otherwise: second, .. }
            | Self::Split { then: first, otherwise: second, .. }
            | Self::Loop { body: first, step: second, .. } => [first, second],
            Self::Guarded { inside, .. } => [inside, &[]],
            Self::Segment(_) | Self::Once(_) | Self::Break | Self::Continue | Self::Return => [&[], &[]],
        }
    }

    fn parts_mut(&mut self) -> [&mut [Self]; 2] {
        match self {
            Self::If { then: first, otherwise: second, .. }
            | Self::Split { then: first, otherwise: second, .. }
            | Self::Loop { body: first, step: second, .. } => [first, second],
            Self::Guarded { inside, .. } => [inside, &mut []],
            Self::Segment(_) | Self::Once(_) | Self::Break | Self::Continue | Self::Return => [&mut [], &mut []],
        }
    }
}

/// Calls `visit` on every segment.
pub(crate) fn for_each_segment(nodes: &mut [Node], visit: &mut dyn FnMut(&mut Segment)) {
    for node in nodes {
        if let Node::Segment(segment) = node {
            visit(segment);
        }
        for part in node.parts_mut() {
            for_each_segment(part, visit);
        }
    }
}

/// Calls `visit` on every guard but those of segments.
pub(crate) fn for_each_guard(nodes: &mut [Node], visit: &mut dyn FnMut(&mut Guard)) {
    for node in nodes {
        if let Node::Split { guard: Some(guard), .. }
        | Node::Loop { guard: Some(guard), .. }
        | Node::Guarded { guard, .. } = node
        {
            visit(guard);
        }
        for part in node.parts_mut() {
            for_each_guard(part, visit);
        }
    }
}

/// Calls `visit` on the condition of every [`Node::Split`].
pub(crate) fn for_each_split(nodes: &[Node], visit: &mut dyn FnMut(LocalId)) {
    for node in nodes {
        if let Node::Split { cond, .. } = node {
            visit(*cond);
        }
        for part in node.parts() {
            for_each_split(part, visit);
        }
    }
}
