//! From a tape and its plan to the statements of the adjoint kernel.
//!
//! The adjoint of a list computes the values that its reverse needs, and then reverses its nodes from the last one to
//! the first. The adjoint of a value is a local: the first contribution assigns it, later ones add to it.

use std::collections::BTreeMap;

use weft_artifact::Scalar;

use super::{
    activity::edges,
    plan::{LoopPlan, Order, Plan, Restored},
    rules::{self, Evaluated},
    shadow,
    sums::Tape,
    tape::{Branch, Definition, List, Node, Repeat, Values, Write, for_each_use},
};
use crate::{
    ir::{
        Align, AtomicOp, BinaryOp, Block, Class, CompareOp, Const, Expr, ExprId, ExprKind, Function, Leaf, Local,
        LocalArray, LocalArrayId, LocalId, LocalKind, Op, Stmt, StmtKind, Type, UnaryOp,
    },
    source::Span,
};

/// Emits the adjoint of a tape as the body of a function.
pub(super) fn emit(tape: Tape<'_>, plan: &Plan, list: &List, function: &mut Function) {
    let mut emitter = Emitter {
        tape,
        plan,
        function,
        adjoints: BTreeMap::new(),
        assigned: Values::new(),
        constant: Values::new(),
        arrays: BTreeMap::new(),
        blocks: vec![Block::new()],
    };
    emitter.adjoint(list, &plan.forward, true);
    let body = emitter.close();
    function.body = body;
}

struct Emitter<'a> {
    /// The tape, with the function as it was when the tape was planned.
    tape: Tape<'a>,
    plan: &'a Plan,
    function: &'a mut Function,
    /// The adjoint of each value.
    adjoints: BTreeMap<LocalId, LocalId>,
    /// The values whose adjoints have contributions.
    assigned: Values,
    /// The values whose adjoints are the same in each iteration of the loop around.
    constant: Values,
    /// The local arrays that keep values of loops.
    arrays: BTreeMap<LocalId, LocalArrayId>,
    blocks: Vec<Block>,
}

impl Emitter<'_> {
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
        let local = Local::new(format!("{name}.adjoint"), LocalKind::Temp, *ty);
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
    fn adjoint(&mut self, list: &List, needed: &Values, flushes: bool) {
        let Some(last) = list.iter().rposition(|node| self.is_reversed(node)) else {
            return self.forward(list, needed);
        };
        let (before, rest) = list.split_at(last);
        let Some((node, after)) = rest.split_first() else { return };
        self.forward(before, needed);
        let only = !before.iter().any(|node| self.is_reversed(node));
        match node {
            // The values of a branch and their reverse are emitted in one branch.
            Node::If(branch) if !branch.joins.iter().any(|join| needed.contains(&join.to)) => {
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
            | Node::Store(_)
            | Node::Add(_) => {
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

    /// `*pointer += term`.
    fn accumulate(&mut self, pointer: ExprId, term: ExprId, span: Span) {
        let op = Op::atomic(AtomicOp::Add);
        self.push(StmtKind::Op { op, results: Vec::new(), args: vec![pointer, term] }, span);
    }

    /// The address of the adjoint of an element.
    fn shadow(&mut self, pointer: ExprId) -> ExprId {
        shadow::address(self.tape, self.function, pointer)
    }

    /// Emits the values of a list that are needed.
    fn forward(&mut self, list: &[Node], needed: &Values) {
        for node in list {
            match node {
                Node::Define { to, value, span } => {
                    if needed.contains(to) {
                        let value = self.function.copy_expr(*value);
                        self.push(StmtKind::Assign(*to, value), *span);
                    }
                }
                Node::Unrepeatable { .. } | Node::Store(_) | Node::Add(_) => {}
                Node::If(branch) => {
                    if branch.defined().iter().any(|value| needed.contains(value)) {
                        self.forward_branch(branch, needed);
                    }
                }
                Node::Loop(repeat) => {
                    if repeat.defined().iter().any(|value| needed.contains(value)) {
                        self.forward_loop(repeat, needed);
                    }
                }
            }
        }
    }

    fn forward_branch(&mut self, branch: &Branch, needed: &Values) {
        let mut arms = [(&branch.then, true), (&branch.otherwise, false)].map(|(list, is_then)| {
            self.open();
            self.forward(list, needed);
            for join in branch.joins.iter().filter(|join| needed.contains(&join.to)) {
                let value = self.read(if is_then { join.then } else { join.otherwise }, branch.span);
                self.push(StmtKind::Assign(join.to, value), branch.span);
            }
            self.close()
        });
        let [then, otherwise] = arms.each_mut().map(std::mem::take);
        let cond = self.function.copy_expr(branch.cond);
        self.push(StmtKind::If { cond, then, otherwise }, branch.span);
    }

    /// Emits a loop that computes values, counts its iterations where the reverse needs their number, and keeps the
    /// values that it needs of each iteration.
    fn forward_loop(&mut self, repeat: &Repeat, needed: &Values) {
        let span = repeat.span;
        let is_counted = needed.contains(&repeat.count);
        self.begin(repeat, needed);
        if is_counted {
            let zero = self.int(0, span);
            self.push(StmtKind::Assign(repeat.count, zero), span);
        }
        self.open();
        self.forward(&repeat.head, needed);
        self.exit(repeat);
        if is_counted {
            self.keep(repeat);
        }
        self.forward(&repeat.body, needed);
        let step = self.step(repeat, needed);
        self.open();
        if let Some(block) = self.blocks.last_mut() {
            block.extend(step);
        }
        if is_counted {
            let count = self.read(repeat.count, span);
            let one = self.int(1, span);
            let next = self.binary(BinaryOp::Add, count, one, span);
            self.push(StmtKind::Assign(repeat.count, next), span);
        }
        let step = self.close();
        let body = self.close();
        self.push(StmtKind::Loop { body, step }, span);
    }

    /// Assigns the values at the start of the first iteration.
    fn begin(&mut self, repeat: &Repeat, needed: &Values) {
        for carried in repeat.carried.iter().filter(|carried| needed.contains(&carried.header)) {
            if let Some(init) = carried.init {
                let value = self.read(init, repeat.span);
                self.push(StmtKind::Assign(carried.header, value), repeat.span);
            }
        }
    }

    fn exit(&mut self, repeat: &Repeat) {
        let cond = self.function.copy_expr(repeat.exit);
        let then = vec![Stmt { kind: StmtKind::Break, span: repeat.span }];
        self.push(StmtKind::If { cond, then, otherwise: Block::new() }, repeat.span);
    }

    /// The statements between two iterations. Assigns in the body what another header's new value is read from.
    fn step(&mut self, repeat: &Repeat, needed: &Values) -> Block {
        let span = repeat.span;
        let headers: Values = repeat.carried.iter().map(|carried| carried.header).collect();
        let mut step = Block::new();
        for carried in &repeat.carried {
            if !needed.contains(&carried.header) || carried.next == carried.header {
                continue;
            }
            let value = if headers.contains(&carried.next) {
                let ty = self.function.locals[carried.next].ty;
                let (temp, value) = (self.temp("t", ty), self.read(carried.next, span));
                self.push(StmtKind::Assign(temp, value), span);
                self.read(temp, span)
            } else if self.tape.counter(repeat, carried).is_some()
                && let Some(&Definition::Expr(value, _)) = self.tape.definitions.get(&carried.next)
            {
                // As the kernel does, so that a counter is seen as one.
                self.function.copy_expr(value)
            } else {
                self.read(carried.next, span)
            };
            step.push(Stmt { kind: StmtKind::Assign(carried.header, value), span });
        }
        step
    }

    /// Stores the values at the start of an iteration that the reverse needs.
    fn keep(&mut self, repeat: &Repeat) {
        let Order::Backward(restored) = &self.plan.loops[repeat.id].order else { return };
        for &(value, length) in &restored.kept {
            let element = self.element(repeat, value, length, repeat.count);
            let value = self.read(value, repeat.span);
            self.push(StmtKind::Store { pointer: element, value, align: Align::Natural }, repeat.span);
        }
    }

    /// The element of a local array that keeps the value of an iteration.
    fn element(&mut self, repeat: &Repeat, value: LocalId, length: u64, iteration: LocalId) -> ExprId {
        let span = repeat.span;
        let Local { name, ty, .. } = self.function.locals[value].clone();
        let elem = ty.scalar().unwrap_or(Scalar::F64);
        let array = match self.arrays.get(&value) {
            Some(&array) => array,
            None => {
                let (len, align) = (length.max(1), elem.size_bytes());
                let array = self.function.local_arrays.push(LocalArray { name, elem, len, align, span });
                self.arrays.insert(value, array);
                array
            }
        };
        let ty = Type::Ptr(elem, crate::ir::Space::Local);
        let base = self.expr(ExprKind::LocalBase(array), ty, span);
        let index = self.read(iteration, span);
        self.expr(ExprKind::Offset { base, index, scale: 1 }, ty, span)
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
        for (operand, of) in edges(self.tape.function, value) {
            if self.receives(of)
                && let Some(term) = rules::partial(self.function, Evaluated { id: value, result: to, adjoint }, operand)
            {
                self.contribute(of, term, span);
            }
        }
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
            let mut term = self.read(temp, span);
            if write.is_negative {
                term = self.expr(ExprKind::Unary(UnaryOp::Neg, term), ty, span);
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
    fn branch(&mut self, branch: &Branch, merged: Option<(&Values, bool)>) {
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

    /// Prepares the adjoints that a loop's iterations read and contribute to.
    fn enter(&mut self, repeat: &Repeat) -> Vec<usize> {
        let own = repeat.defined();
        self.ensure_outer([&repeat.head, &repeat.body], &own, false, repeat.span);
        let mut active = Vec::new();
        for (number, carried) in repeat.carried.iter().enumerate() {
            if self.tape.activity.is_active(carried.header) {
                self.ensure(carried.header, repeat.span);
                if self.receives(carried.next) && !own.contains(&carried.next) {
                    self.ensure(carried.next, repeat.span);
                }
                active.push(number);
            }
        }
        active
    }

    /// Passes the adjoints at the start of the first iteration to the values before the loop.
    fn leave(&mut self, repeat: &Repeat, active: &[usize]) {
        for &number in active {
            let carried = &repeat.carried[number];
            if let Some(adjoint) = self.take(carried.header)
                && let Some(init) = carried.init
            {
                let term = self.read(adjoint, repeat.span);
                self.contribute(init, term, repeat.span);
            }
        }
    }

    /// The reverse of a loop whose iterations can run in the primal's order.
    fn same_order(&mut self, repeat: &Repeat, again: &Values) {
        let span = repeat.span;
        let active = self.enter(repeat);
        let headers: Vec<LocalId> = active.iter().map(|&number| repeat.carried[number].header).collect();
        self.begin(repeat, again);
        let added: Vec<_> = headers.iter().copied().filter(|&header| self.constant.insert(header)).collect();
        self.open();
        self.forward(&repeat.head, again);
        self.exit(repeat);
        for &number in &active {
            let carried = &repeat.carried[number];
            let adjoint = self.local(carried.header);
            let term = self.read(adjoint, span);
            self.contribute(carried.next, term, span);
        }
        self.adjoint(&repeat.body, again, false);
        let step = self.step(repeat, again);
        let body = self.close();
        self.push(StmtKind::Loop { body, step }, span);
        for header in added {
            self.constant.remove(&header);
        }
        self.leave(repeat, &active);
    }

    /// The reverse of a loop, from its last iteration to the first.
    fn backward(&mut self, repeat: &Repeat, restored: &Restored, again: &Values) {
        let span = repeat.span;
        let active = self.enter(repeat);
        let left = self.temp("left", Type::I64);
        let count = self.read(repeat.count, span);
        self.push(StmtKind::Assign(left, count), span);
        self.open();
        let (now, zero) = (self.read(left, span), self.int(0, span));
        let more = self.expr(ExprKind::Compare(CompareOp::Gt, now, zero), Type::BOOL, span);
        let cond = self.expr(ExprKind::Unary(UnaryOp::Not, more), Type::BOOL, span);
        let then = vec![Stmt { kind: StmtKind::Break, span }];
        self.push(StmtKind::If { cond, then, otherwise: Block::new() }, span);
        let (now, one) = (self.read(left, span), self.int(1, span));
        let less = self.binary(BinaryOp::Sub, now, one, span);
        self.push(StmtKind::Assign(left, less), span);
        self.restore(repeat, restored, left);
        let mut terms = Vec::new();
        for &number in &active {
            let carried = &repeat.carried[number];
            if let Some(adjoint) = self.take(carried.header) {
                let ty = self.function.locals[adjoint].ty;
                let (temp, value) = (self.temp("g", ty), self.read(adjoint, span));
                self.push(StmtKind::Assign(temp, value), span);
                terms.push((carried.next, temp));
            }
        }
        for (next, temp) in terms {
            let term = self.read(temp, span);
            self.contribute(next, term, span);
        }
        self.forward(&repeat.head, again);
        self.adjoint(&repeat.body, again, false);
        for &number in &active {
            self.ensure(repeat.carried[number].header, span);
        }
        let body = self.close();
        self.push(StmtKind::Loop { body, step: Block::new() }, span);
        self.leave(repeat, &active);
    }

    /// Restores the values at the start of an iteration.
    fn restore(&mut self, repeat: &Repeat, restored: &Restored, iteration: LocalId) {
        let span = repeat.span;
        for &(header, counter) in &restored.counted {
            let ty = self.function.locals[header].ty;
            let mut number = self.read(iteration, span);
            if ty != Type::I64 {
                number = self.expr(ExprKind::Convert(number), ty, span);
            }
            let step = self.function.copy_expr(counter.step);
            let is_one = matches!(self.function.class(step), Class::Leaf(Leaf::Const(Const::Int(1))));
            let distance = if is_one { number } else { self.binary(BinaryOp::Mul, number, step, span) };
            let init = self.read(counter.init, span);
            let op = if counter.is_negative { BinaryOp::Sub } else { BinaryOp::Add };
            let value = self.binary(op, init, distance, span);
            self.push(StmtKind::Assign(header, value), span);
        }
        for &(value, length) in &restored.kept {
            let ty = self.function.locals[value].ty;
            let pointer = self.element(repeat, value, length, iteration);
            let load = self.expr(ExprKind::Load(pointer, Align::Natural), ty, span);
            self.push(StmtKind::Assign(value, load), span);
        }
    }
}
