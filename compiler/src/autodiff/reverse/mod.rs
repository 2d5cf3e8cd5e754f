//! From a tape and its plan to the statements of the adjoint kernel.
//!
//! The adjoint of a list computes the values that its reverse needs, and then reverses its nodes from the last one to
//! the first. The adjoint of a value is a local: the first contribution assigns it, later ones add to it.

mod calls;
mod clear;
mod exchange;
mod extremes;
mod loops;
mod quotients;
mod scratch;

use std::collections::BTreeMap;

use self::{
    extremes::Equal,
    quotients::Sums,
    scratch::{Kept, Stack},
};
use super::{
    activity::edges,
    build::{adjoint_type, converted},
    needed::Needed,
    plan::{LoopPlan, Order, Plan},
    rules::{self, Evaluated},
    shadow,
    sums::Tape,
    tape::{Barrier, Branch, List, Node, Values, Write, for_each_use},
};
use crate::{
    ir::{
        self, Align, AtomicOp, BinaryOp, Block, Class, Const, Expr, ExprId, ExprKind, Function, Local, LocalArrayId,
        LocalId, LocalKind, Module, Op, Scope, Space, Stmt, StmtKind, Type, UnaryOp,
    },
    request::Scratch,
    source::Span,
};

/// Emits the adjoint of a tape as the body of a function, or the kernel that counts the bytes that it stores.
pub(super) fn emit(
    tape: Tape<'_>,
    plan: &Plan,
    list: &List,
    (function, module): (&mut Function, &Module),
    scratch: Scratch,
) {
    let mut emitter = Emitter {
        tape,
        plan,
        function,
        module,
        adjoints: BTreeMap::new(),
        assigned: Values::new(),
        constant: Values::new(),
        arrays: BTreeMap::new(),
        kept: BTreeMap::new(),
        equal: BTreeMap::new(),
        quotients: BTreeMap::new(),
        stack: None,
        blocks: vec![Block::new()],
    };
    match scratch {
        Scratch::None => emitter.both_sweeps(list),
        Scratch::Given => {
            emitter.begin_stack(list);
            emitter.both_sweeps(list);
        }
        Scratch::Counted => emitter.count(list),
    }
    let body = emitter.close();
    function.body = body;
}

struct Emitter<'a> {
    /// The tape, with the function as it was when the tape was planned.
    tape: Tape<'a>,
    plan: &'a Plan,
    function: &'a mut Function,
    /// The module, with its shared arrays and the functions of rules.
    module: &'a Module,
    /// The adjoint of each value.
    adjoints: BTreeMap<LocalId, LocalId>,
    /// The values whose adjoints have contributions.
    assigned: Values,
    /// The values whose adjoints are the same in each iteration of the loop around.
    constant: Values,
    /// The local arrays that keep values of loops.
    arrays: BTreeMap<LocalId, LocalArrayId>,
    /// The values that the loops around keep: the number of the loop, where, and the current iteration.
    kept: BTreeMap<LocalId, (usize, Kept, LocalId)>,
    /// By the value at the end of an iteration: running maxima and minima of loops that run backward.
    equal: BTreeMap<LocalId, Equal>,
    /// The sums of the current loop for the adjoints of divisors.
    quotients: Sums,
    /// The thread's stack in the scratch memory.
    stack: Option<Stack>,
    blocks: Vec<Block>,
}

impl Emitter<'_> {
    fn both_sweeps(&mut self, list: &List) {
        let plan = self.plan;
        self.clear();
        self.adjoint(list, &plan.forward, true);
    }

    fn open(&mut self) {
        self.blocks.push(Block::new());
    }

    fn close(&mut self) -> Block {
        self.blocks.pop().unwrap_or_default()
    }

    fn push(&mut self, kind: StmtKind, span: Span) {
        if let Some(block) = self.blocks.last_mut() {
            block.push(Stmt { kind, span });
        }
    }

    fn expr(&mut self, kind: ExprKind, ty: Type, span: Span) -> ExprId {
        self.function.exprs.push(Expr { kind, ty, span })
    }

    fn read(&mut self, local: LocalId, span: Span) -> ExprId {
        let ty = self.function.locals[local].ty;
        self.expr(ExprKind::Local(local), ty, span)
    }

    fn int(&mut self, value: i128, span: Span) -> ExprId {
        self.expr(ExprKind::Const(Const::Int(value)), Type::I64, span)
    }

    fn zero(&mut self, ty: Type, span: Span) -> ExprId {
        self.expr(ExprKind::Const(Const::Float(0.0)), ty, span)
    }

    fn binary(&mut self, op: BinaryOp, a: ExprId, b: ExprId, span: Span) -> ExprId {
        let ty = self.function.exprs[a].ty;
        self.expr(ExprKind::Binary(op, a, b), ty, span)
    }

    fn temp(&mut self, name: &str, ty: Type) -> LocalId {
        self.function.locals.push(Local::new(name, LocalKind::Temp, ty))
    }

    fn is_reversed(&self, node: &Node) -> bool {
        self.tape.activity.is_reversed(self.tape.function, self.tape.arrays, node)
    }

    /// The local that holds the adjoint of a value.
    fn local(&mut self, value: LocalId) -> LocalId {
        if let Some(&local) = self.adjoints.get(&value) {
            return local;
        }
        let Local { name, ty, .. } = &self.function.locals[value];
        let local = Local::new(format!("{name}.adjoint"), LocalKind::Temp, adjoint_type(*ty));
        let local = self.function.locals.push(local);
        self.adjoints.insert(value, local);
        local
    }

    /// Adds a term to the adjoint of a value.
    fn contribute(&mut self, value: LocalId, term: ExprId, span: Span) {
        if !self.receives(value) {
            return;
        }
        let local = self.local(value);
        let sum = if self.assigned.insert(value) {
            term
        } else {
            let before = self.read(local, span);
            self.binary(BinaryOp::Add, before, term, span)
        };
        self.push(StmtKind::Assign(local, sum), span);
    }

    /// Whether a value has an adjoint that contributions change.
    fn receives(&self, value: LocalId) -> bool {
        self.tape.activity.is_active(value) && !self.constant.contains(&value)
    }

    /// Gives the adjoint of a value the value 0 if it has no contribution yet.
    fn ensure(&mut self, value: LocalId, span: Span) {
        if self.assigned.insert(value) {
            let local = self.local(value);
            let ty = self.function.locals[local].ty;
            let zero = self.zero(ty, span);
            self.push(StmtKind::Assign(local, zero), span);
        }
    }

    /// The adjoint of a value, which gets no contributions any more; `None` if it has none.
    fn take(&mut self, value: LocalId) -> Option<LocalId> {
        self.assigned.remove(&value).then(|| self.local(value))
    }

    /// Emits the values that the reverse of a list needs, and the reverse. With `flushes`, adds the adjoints of the
    /// scalar parameters to their arrays.
    fn adjoint(&mut self, list: &List, needed: &Needed, flushes: bool) {
        let Some(last) = list.iter().rposition(|node| self.is_reversed(node)) else {
            return self.forward(list, needed);
        };
        let (before, rest) = list.split_at(last);
        let Some((node, after)) = rest.split_first() else { return };
        self.forward(before, needed);
        let only = !before.iter().any(|node| self.is_reversed(node));
        match node {
            // The values of a branch and their reverse are emitted in one branch.
            Node::If(branch) if is_merged(branch, after, needed) => {
                self.forward(after, needed);
                self.branch(branch, Some((needed, flushes && only)));
                if flushes && only {
                    return;
                }
            }
            Node::If(_)
            | Node::Loop(_)
            | Node::Define { .. }
            | Node::Unrepeatable { .. }
            | Node::Exchange(_)
            | Node::Call(_)
            | Node::Store(_)
            | Node::Add(_)
            | Node::Barrier { .. } => {
                self.forward(std::slice::from_ref(node), needed);
                self.forward(after, needed);
                self.reverse(node);
            }
        }
        for node in before.iter().rev() {
            self.reverse(node);
        }
        if flushes {
            self.flush();
        }
    }

    /// Adds the adjoints of the scalar parameters to their arrays.
    fn flush(&mut self) {
        for (value, array) in self.tape.arrays.scalars() {
            let span = self.function.span;
            if let Some(local) = self.take(value) {
                let pointer = self.read(array, span);
                let term = self.read(local, span);
                self.accumulate(pointer, term, span);
            }
        }
    }

    /// `*pointer += term`. Sums are rounded to the type of the element.
    fn accumulate(&mut self, pointer: ExprId, term: ExprId, span: Span) {
        let wide = self.function.exprs[term].ty;
        let elem = match self.function.exprs[pointer].ty {
            Type::Ptr(elem, _) => Type::Scalar(elem),
            Type::Scalar(_) => wide,
        };
        let op = match self.function.exprs[pointer].ty {
            Type::Ptr(_, Space::Local) => {
                let again = self.function.copy_expr(pointer);
                let old = self.expr(ExprKind::Load(again, Align::Natural), elem, span);
                let old = converted(self.function, old, wide);
                let value = self.binary(BinaryOp::Add, old, term, span);
                let value = converted(self.function, value, elem);
                return self.push(StmtKind::Store { pointer, value, align: Align::Natural }, span);
            }
            Type::Ptr(_, Space::Shared) => {
                Op::Atomic { op: AtomicOp::Add, order: ir::Order::Relaxed, scope: Scope::Block }
            }
            Type::Ptr(..) | Type::Scalar(_) => Op::atomic(AtomicOp::Add),
        };
        let term = converted(self.function, term, elem);
        self.push(StmtKind::Op { op, results: Vec::new(), args: vec![pointer, term] }, span);
    }

    /// The address of the adjoint of an element.
    fn shadow(&mut self, pointer: ExprId) -> ExprId {
        shadow::address(self.tape, self.function, pointer)
    }

    /// Emits the values of a list that are needed.
    fn forward(&mut self, list: &[Node], needed: &Needed) {
        for node in list {
            match node {
                Node::Define { to, value, span } => {
                    self.count_pushed(*to, *span);
                    if let Some(&repeat) = needed.popped.get(to) {
                        self.pop(*to, repeat, *span);
                        self.keep_loaded(*to, *span);
                    } else if needed.computes(*to) {
                        let value = self.function.copy_expr(*value);
                        self.count_equal(*to, *span);
                        self.push(StmtKind::Assign(*to, value), *span);
                        self.keep_loaded(*to, *span);
                    }
                }
                Node::Unrepeatable { .. } => {}
                Node::Exchange(exchange) => {
                    if needed.computes(exchange.to) {
                        let args = exchange.operands().map(|operand| self.function.copy_expr(operand)).to_vec();
                        let results = vec![exchange.to];
                        self.push(StmtKind::Op { op: Op::Shuffle(exchange.shuffle), results, args }, exchange.span);
                    }
                }
                Node::Call(call) => {
                    if needed.calls(call) {
                        self.call(call);
                    }
                }
                Node::Store(write) | Node::Add(write) if needed.events.contains(&write.event) => self.write(write),
                Node::Barrier { event, scope, span } if needed.events.contains(event) => self.barrier(*scope, *span),
                Node::Store(_) | Node::Add(_) | Node::Barrier { .. } => {}
                Node::If(branch) => {
                    if needed.has_branch(branch) {
                        self.forward_branch(branch, needed);
                    }
                }
                Node::Loop(repeat) => {
                    if needed.has_loop(repeat) {
                        self.forward_loop(repeat, needed);
                    }
                }
            }
        }
    }

    fn write(&mut self, write: &Write) {
        let (pointer, value) = (self.function.copy_expr(write.pointer), self.function.copy_expr(write.value));
        let kind = match write.atomic {
            Some(op) => StmtKind::Op { op, results: Vec::new(), args: vec![pointer, value] },
            None => StmtKind::Store { pointer, value, align: Align::Natural },
        };
        self.push(kind, write.span);
    }

    fn barrier(&mut self, scope: Barrier, span: Span) {
        let barrier = scope.stmt(self.function, span);
        self.push(barrier, span);
    }

    fn forward_branch(&mut self, branch: &Branch, needed: &Needed) {
        let mut arms = [(&branch.then, true), (&branch.otherwise, false)].map(|(list, is_then)| {
            self.open();
            self.forward(list, needed);
            for join in branch.joins.iter().filter(|join| needed.values.contains(&join.to)) {
                let value = self.read(if is_then { join.then } else { join.otherwise }, branch.span);
                self.push(StmtKind::Assign(join.to, value), branch.span);
            }
            self.close()
        });
        let [then, otherwise] = arms.each_mut().map(std::mem::take);
        for join in branch.joins.iter().filter(|join| needed.values.contains(&join.to)) {
            self.count_equal(join.to, branch.span);
        }
        let cond = self.function.copy_expr(branch.cond);
        self.push(StmtKind::If { cond, then, otherwise }, branch.span);
    }

    fn reverse_list(&mut self, list: &[Node]) {
        for node in list.iter().rev() {
            self.reverse(node);
        }
    }

    /// Emits the reverse of a node.
    fn reverse(&mut self, node: &Node) {
        if !self.is_reversed(node) {
            return;
        }
        match node {
            Node::Define { to, value, span } => self.reverse_define(*to, *value, *span),
            Node::Unrepeatable { .. } => {}
            Node::Barrier { scope, span, .. } => self.barrier(*scope, *span),
            Node::Exchange(exchange) => self.reverse_exchange(exchange),
            Node::Call(call) => self.reverse_call(call),
            Node::Store(write) => self.reverse_write(write, true),
            Node::Add(write) => self.reverse_write(write, false),
            Node::If(branch) => self.branch(branch, None),
            Node::Loop(repeat) => match &self.plan.loops[repeat.id] {
                LoopPlan { order: Order::Forward, again } => self.same_order(repeat, again),
                LoopPlan { order: Order::Backward(restored), again } => self.backward(repeat, restored, again),
            },
        }
    }

    fn reverse_define(&mut self, to: LocalId, value: ExprId, span: Span) {
        let Some(adjoint) = self.take(to) else { return };
        if let Class::Load(pointer) = self.function.class(value) {
            let shadow = self.shadow(pointer);
            let term = self.read(adjoint, span);
            return self.accumulate(shadow, term, span);
        }
        self.restore_extreme(to, span);
        let mut edges = edges(self.tape.function, value);
        let adjoint = if let ExprKind::Binary(BinaryOp::Mul, ..) = self.tape.function.exprs[value].kind
            && let &[(_, a), (_, b)] = edges.as_slice()
            && a == b
        {
            // `a * a`: one term with twice the adjoint, which the terms of a sum of squares share.
            edges.truncate(1);
            self.doubled(adjoint, span)
        } else {
            adjoint
        };
        for (operand, of) in edges {
            let evaluated = Evaluated { id: value, result: to, adjoint };
            if operand == 1 && self.sums_quotient((evaluated, of), span) {
                continue;
            }
            if self.receives(of)
                && let Some(term) = rules::partial(self.function, evaluated, operand)
            {
                self.contribute(of, term, span);
            }
        }
    }

    /// A local with twice the value of another one.
    fn doubled(&mut self, adjoint: LocalId, span: Span) -> LocalId {
        let [one, other] = [(); 2].map(|()| self.read(adjoint, span));
        let sum = self.binary(BinaryOp::Add, one, other, span);
        let doubled = self.temp("g", self.function.locals[adjoint].ty);
        self.push(StmtKind::Assign(doubled, sum), span);
        doubled
    }

    /// The adjoint of what is written is that of the element, which an assignment makes 0.
    fn reverse_write(&mut self, write: &Write, overwrites: bool) {
        let span = write.span;
        let shadow = self.shadow(write.pointer);
        let ty = self.function.exprs[write.value].ty;
        let active = self.tape.function.local(write.value).filter(|&value| self.receives(value));
        if let Some(value) = active {
            let load = self.expr(ExprKind::Load(shadow, Align::Natural), ty, span);
            let temp = self.temp("g", ty);
            self.push(StmtKind::Assign(temp, load), span);
            let term = self.read(temp, span);
            let wide = adjoint_type(ty);
            let mut term = converted(self.function, term, wide);
            if write.is_negative() {
                term = self.expr(ExprKind::Unary(UnaryOp::Neg, term), wide, span);
            }
            if overwrites {
                self.overwrite(shadow, ty, span);
            }
            self.contribute(value, term, span);
        } else if overwrites {
            self.overwrite(shadow, ty, span);
        }
    }

    fn overwrite(&mut self, shadow: ExprId, ty: Type, span: Span) {
        let pointer = self.function.copy_expr(shadow);
        let value = self.zero(ty, span);
        self.push(StmtKind::Store { pointer, value, align: Align::Natural }, span);
    }

    /// Gives the adjoints of outer values that nested lists contribute to a value.
    fn ensure_outer<'n>(&mut self, lists: impl IntoIterator<Item = &'n List>, own: &Values, flushed: bool, span: Span) {
        let mut outer = Values::new();
        for list in lists {
            for_each_use(self.tape.function, list, &mut |value| {
                if !own.contains(&value) {
                    outer.insert(value);
                }
            });
        }
        let scalars = self.tape.arrays.scalars();
        for value in outer {
            let is_flushed = flushed && scalars.iter().any(|&(scalar, _)| scalar == value);
            if self.receives(value) && !is_flushed {
                self.ensure(value, span);
            }
        }
    }

    /// Emits the reverse of a branch; with `merged`, after the values that it needs.
    fn branch(&mut self, branch: &Branch, merged: Option<(&Needed, bool)>) {
        let span = branch.span;
        let flushes = merged.is_some_and(|(_, flushes)| flushes);
        let own = branch.defined();
        self.ensure_outer([&branch.then, &branch.otherwise], &own, flushes, span);
        for join in &branch.joins {
            for value in [join.then, join.otherwise] {
                if self.receives(value) && !own.contains(&value) {
                    self.ensure(value, span);
                }
            }
        }
        let joins: Vec<_> = branch.joins.iter().filter_map(|join| Some((join, self.take(join.to)?))).collect();
        for &(join, _) in &joins {
            self.restore_extreme(join.to, span);
        }
        let before = self.assigned.clone();
        let mut arms = [(&branch.then, true), (&branch.otherwise, false)].map(|(list, is_then)| {
            self.assigned.clone_from(&before);
            self.open();
            for &(join, adjoint) in &joins {
                let term = self.read(adjoint, span);
                self.contribute(if is_then { join.then } else { join.otherwise }, term, span);
            }
            match merged {
                Some((needed, flushes)) => self.adjoint(list, needed, flushes),
                None => self.reverse_list(list),
            }
            self.close()
        });
        self.assigned = before.into_iter().filter(|value| !own.contains(value)).collect();
        let [then, otherwise] = arms.each_mut().map(std::mem::take);
        if !then.is_empty() || !otherwise.is_empty() {
            let cond = self.function.copy_expr(branch.cond);
            self.push(StmtKind::If { cond, then, otherwise }, span);
        }
    }
}

/// Whether the values of a branch and their reverse are emitted in one branch, after the values of the nodes that
/// follow: those do not use values of the branch, and do not write arrays that it loads from. Values that both pop must
/// be popped in order.
fn is_merged(branch: &Branch, after: &[Node], needed: &Needed) -> bool {
    let writes = |node: &Node| match node {
        Node::Store(write) | Node::Add(write) => needed.events.contains(&write.event),
        Node::Barrier { event, .. } => needed.events.contains(event),
        Node::Call(call) => call.event.is_some() && needed.calls(call),
        Node::Define { .. } | Node::Unrepeatable { .. } | Node::Exchange(_) => false,
        Node::If(branch) => needed.has_events(&branch.then) || needed.has_events(&branch.otherwise),
        Node::Loop(repeat) => needed.has_events(&repeat.head) || needed.has_events(&repeat.body),
    };
    let own = needed.has_events(&branch.then) || needed.has_events(&branch.otherwise);
    !own && !needed.pops_in(branch)
        && !after.iter().any(writes)
        && !branch.joins.iter().any(|join| needed.values.contains(&join.to))
}
