//! Forward mode: from a tape to a kernel that computes a tangent next to each active value.
//!
//! | tape | tangent kernel |
//! |---|---|
//! | `v = f(a, b)` | `v = f(a, b); v' = a' * df/da + b' * df/db` |
//! | `v = load p` | `v = load p; v' = load p'` |
//! | `store p = v` | `store p = v; store p' = v'` |
//! | `atomic.add p, v` | `atomic.add p, v; atomic.add p', v'` |
//! | `v = f(a, b)` of `cuda.custom_vjp` | `v = f(a, b); p, q = backward(a, b, v, 1); v' = a' * p + b' * q` |
//!
//! Control flow is the kernel's, and nothing is kept, so each loop and each update in place has tangents. It executes the
//! kernel's writes and barriers.

use std::collections::BTreeMap;

use super::{
    activity::edges,
    arrays::Memory,
    build::{adjoint_type, converted, is_float},
    calls,
    refusals::unsupported,
    rules::{self, Evaluated},
    shadow,
    sums::Tape,
    tape::{Branch, Call, Callee, Definition, Exchange, List, Node, Repeat, Values, Write},
};
use crate::{
    diagnostic::Diagnostic,
    ir::{
        Align, BinaryOp, Block, Class, Const, ExprId, ExprKind, FuncId, Function, Local, LocalId, LocalKind, Module,
        Op, Rule, Stmt, StmtKind, Type,
    },
    source::Span,
};

/// Emits the tangent kernel of a tape as the body of a function.
pub(super) fn emit(tape: Tape<'_>, list: &List, function: &mut Function, module: &Module) -> Result<(), Diagnostic> {
    let mut emitter = Emitter { tape, function, module, tangents: BTreeMap::new(), blocks: vec![Block::new()] };
    for (value, array) in tape.arrays.scalars() {
        if tape.activity.is_active(value) {
            let span = emitter.function.span;
            let pointer = emitter.read(array, span);
            let ty = emitter.function.locals[value].ty;
            let tangent = emitter.load(pointer, ty, span);
            let tangent = converted(emitter.function, tangent, adjoint_type(ty));
            emitter.assign_tangent(value, tangent, span);
        }
    }
    emitter.list(list)?;
    let body = emitter.blocks.pop().unwrap_or_default();
    function.body = body;
    Ok(())
}

struct Emitter<'a> {
    tape: Tape<'a>,
    function: &'a mut Function,
    module: &'a Module,
    /// The tangent of each value.
    tangents: BTreeMap<LocalId, LocalId>,
    blocks: Vec<Block>,
}

impl Emitter<'_> {
    fn push(&mut self, kind: StmtKind, span: Span) {
        if let Some(block) = self.blocks.last_mut() {
            block.push(Stmt { kind, span });
        }
    }

    fn expr(&mut self, kind: ExprKind, ty: Type, span: Span) -> ExprId {
        self.function.edit(span).expr(kind, ty)
    }

    fn read(&mut self, local: LocalId, span: Span) -> ExprId {
        self.function.edit(span).read(local)
    }

    fn load(&mut self, pointer: ExprId, ty: Type, span: Span) -> ExprId {
        self.expr(ExprKind::Load(pointer, Align::Natural), ty, span)
    }

    fn in_block(&mut self, emit: impl FnOnce(&mut Self) -> Result<(), Diagnostic>) -> Result<Block, Diagnostic> {
        self.blocks.push(Block::new());
        let result = emit(self);
        let block = self.blocks.pop().unwrap_or_default();
        result.map(|()| block)
    }

    fn is_active(&self, value: LocalId) -> bool {
        self.tape.activity.is_active(value)
    }

    /// The local that holds the tangent of a value.
    fn tangent(&mut self, value: LocalId) -> LocalId {
        if let Some(&local) = self.tangents.get(&value) {
            return local;
        }
        let Local { name, ty, .. } = &self.function.locals[value];
        let local = Local::new(format!("{name}.tangent"), LocalKind::Temp, adjoint_type(*ty));
        let local = self.function.locals.push(local);
        self.tangents.insert(value, local);
        local
    }

    /// The tangent of a value of a type, 0 if it is not active.
    fn tangent_of(&mut self, value: Option<LocalId>, ty: Type, span: Span) -> ExprId {
        match value.filter(|&value| self.is_active(value)) {
            Some(value) => {
                let local = self.tangent(value);
                self.read(local, span)
            }
            None => self.expr(ExprKind::Const(Const::Float(0.0)), adjoint_type(ty), span),
        }
    }

    fn assign_tangent(&mut self, value: LocalId, tangent: ExprId, span: Span) {
        let local = self.tangent(value);
        self.push(StmtKind::Assign(local, tangent), span);
    }

    /// Assigns a value, and its tangent if it is active, from another value.
    fn assign(&mut self, to: LocalId, from: LocalId, span: Span) {
        let value = self.read(from, span);
        self.push(StmtKind::Assign(to, value), span);
        if self.is_active(to) {
            let ty = self.function.locals[to].ty;
            let tangent = self.tangent_of(Some(from), ty, span);
            self.assign_tangent(to, tangent, span);
        }
    }

    fn list(&mut self, list: &List) -> Result<(), Diagnostic> {
        for node in list {
            match node {
                Node::Define { to, value, span } => self.define(*to, *value, *span),
                Node::Unrepeatable { span, .. } => {
                    let help = "leave out the operation, or compute the value in another kernel";
                    return Err(unsupported(*span, "a kernel with this operation", help));
                }
                Node::Exchange(exchange) => self.exchange(exchange),
                Node::Call(call) => self.call(call),
                Node::Store(write) | Node::Add(write) => self.write(write)?,
                Node::Barrier { scope, span, .. } => {
                    let barrier = scope.stmt(self.function, *span);
                    self.push(barrier, *span);
                }
                Node::If(branch) => self.branch(branch)?,
                Node::Loop(repeat) => self.repeat(repeat)?,
            }
        }
        Ok(())
    }

    fn exchange(&mut self, exchange: &Exchange) {
        let span = exchange.span;
        let args = exchange.operands().map(|operand| self.function.copy_expr(operand)).to_vec();
        self.push(StmtKind::Op { op: Op::Shuffle(exchange.shuffle), results: vec![exchange.to], args }, span);
        if self.is_active(exchange.to) {
            let [mask, _, by, width] = exchange.operands().map(|operand| self.function.copy_expr(operand));
            let ty = self.function.locals[exchange.to].ty;
            let given = self.tangent_of(self.tape.function.local(exchange.value), ty, span);
            let results = vec![self.tangent(exchange.to)];
            let args = vec![mask, given, by, width];
            self.push(StmtKind::Op { op: Op::Shuffle(exchange.shuffle), results, args }, span);
        }
    }

    fn call(&mut self, call: &Call) {
        let args = call.args.iter().map(|&arg| self.function.copy_expr(arg)).collect();
        self.push(call.stmt(args), call.span);
        if let Callee::Function(_, Rule::Backward { func, of_all }) = call.callee {
            let active: Vec<LocalId> = call.results.iter().copied().filter(|&to| self.is_active(to)).collect();
            for to in active {
                self.tangent_of_result(to, (call, func, of_all));
            }
        }
    }

    /// The tangent of a result: the backward function, with the adjoint 1 of this result and 0 of the others, gives the
    /// partial derivatives.
    fn tangent_of_result(&mut self, to: LocalId, (call, func, of_all): (&Call, FuncId, bool)) {
        let span = call.span;
        let floats: Vec<LocalId> =
            call.results.iter().copied().filter(|&result| is_float(self.function.locals[result].ty)).collect();
        let mut adjoints = Vec::new();
        for result in floats {
            let adjoint = Const::Float(if result == to { 1.0 } else { 0.0 });
            let ty = self.function.locals[result].ty;
            adjoints.push(self.expr(ExprKind::Const(adjoint), ty, span));
        }
        let backward = calls::backward(self.function, self.module, (call, func, of_all), adjoints);
        self.push(backward.stmt, span);
        let ty = adjoint_type(self.function.locals[to].ty);
        let mut sum: Option<ExprId> = None;
        for (value, partial) in backward.adjoints {
            if !self.is_active(value) {
                continue;
            }
            let (local, partial) = (self.tangent(value), self.read(partial, span));
            let tangent = self.read(local, span);
            let [partial, tangent] = [partial, tangent].map(|factor| converted(self.function, factor, ty));
            let term = self.function.edit(span).binary(BinaryOp::Mul, partial, tangent);
            sum = Some(match sum {
                Some(sum) => self.function.edit(span).binary(BinaryOp::Add, sum, term),
                None => term,
            });
        }
        let tangent = match sum {
            Some(sum) => sum,
            None => self.tangent_of(None, ty, span),
        };
        self.assign_tangent(to, tangent, span);
    }

    fn define(&mut self, to: LocalId, value: ExprId, span: Span) {
        let copy = self.function.copy_expr(value);
        self.push(StmtKind::Assign(to, copy), span);
        if !self.is_active(to) {
            return;
        }
        let ty = self.function.locals[to].ty;
        if let Class::Load(pointer) = self.function.class(value) {
            let shadow = shadow::address(self.tape, self.function, pointer);
            let tangent = self.load(shadow, ty, span);
            let tangent = converted(self.function, tangent, adjoint_type(ty));
            return self.assign_tangent(to, tangent, span);
        }
        let mut sum: Option<ExprId> = None;
        for (number, operand) in edges(self.tape.function, value) {
            if !self.is_active(operand) {
                continue;
            }
            let adjoint = self.tangent(operand);
            let term = if self.function.locals[operand].ty == ty {
                let evaluated = Evaluated { id: value, result: to, adjoint };
                let Some(term) = rules::partial(self.function, evaluated, number) else { continue };
                term
            } else {
                // A conversion.
                let tangent = self.read(adjoint, span);
                converted(self.function, tangent, adjoint_type(ty))
            };
            sum = Some(match sum {
                Some(sum) => self.function.edit(span).binary(BinaryOp::Add, sum, term),
                None => term,
            });
        }
        let tangent = match sum {
            Some(sum) => sum,
            None => self.tangent_of(None, ty, span),
        };
        self.assign_tangent(to, tangent, span);
    }

    fn write(&mut self, write: &Write) -> Result<(), Diagnostic> {
        let span = write.span;
        if !write.is_repeatable() {
            return Err(unsupported(span, "a kernel with this operation", "use another atomic operation"));
        }
        let value = self.function.copy_expr(write.value);
        let pointer = self.function.copy_expr(write.pointer);
        self.store(write, pointer, value);
        let memory = self.tape.arrays.memory(self.tape.function, write.pointer);
        let takes = match memory {
            Memory::Param(param) => self.tape.arrays.has_adjoint(param),
            Memory::Shared(_) | Memory::Local(_) | Memory::Dynamic => self.tape.activity.is_active_memory(memory),
            Memory::Captured | Memory::Other => false,
        };
        let active = self.tape.function.local(write.value).filter(|&value| self.is_active(value));
        if takes && (active.is_some() || write.atomic.is_none()) {
            let ty = self.function.exprs[write.value].ty;
            let tangent = self.tangent_of(active, ty, span);
            let tangent = converted(self.function, tangent, ty);
            let shadow = shadow::address(self.tape, self.function, write.pointer);
            self.store(write, shadow, tangent);
        }
        Ok(())
    }

    fn store(&mut self, write: &Write, pointer: ExprId, value: ExprId) {
        let kind = match write.atomic {
            Some(op) => StmtKind::Op { op, results: Vec::new(), args: vec![pointer, value] },
            None => StmtKind::Store { pointer, value, align: Align::Natural },
        };
        self.push(kind, write.span);
    }

    fn branch(&mut self, branch: &Branch) -> Result<(), Diagnostic> {
        let span = branch.span;
        let then = self.in_block(|emitter| {
            emitter.list(&branch.then)?;
            branch.joins.iter().for_each(|join| emitter.assign(join.to, join.then, span));
            Ok(())
        })?;
        let otherwise = self.in_block(|emitter| {
            emitter.list(&branch.otherwise)?;
            branch.joins.iter().for_each(|join| emitter.assign(join.to, join.otherwise, span));
            Ok(())
        })?;
        let cond = self.function.copy_expr(branch.cond);
        self.push(StmtKind::If { cond, then, otherwise }, span);
        Ok(())
    }

    fn repeat(&mut self, repeat: &Repeat) -> Result<(), Diagnostic> {
        let span = repeat.span;
        for carried in &repeat.carried {
            if let Some(init) = carried.init {
                self.assign(carried.header, init, span);
            }
        }
        let mut step = Block::new();
        let body = self.in_block(|emitter| {
            emitter.list(&repeat.head)?;
            let cond = emitter.function.copy_expr(repeat.exit);
            let then = vec![Stmt { kind: StmtKind::Break, span }];
            emitter.push(StmtKind::If { cond, then, otherwise: Block::new() }, span);
            emitter.list(&repeat.body)?;
            step = emitter.step(repeat)?;
            Ok(())
        })?;
        self.push(StmtKind::Loop { body, step }, span);
        Ok(())
    }

    /// The statements between two iterations. Assigns in the body what another header's new value is read from.
    fn step(&mut self, repeat: &Repeat) -> Result<Block, Diagnostic> {
        let span = repeat.span;
        let headers: Values = repeat.carried.iter().map(|carried| carried.header).collect();
        let mut moved = Vec::new();
        for carried in repeat.carried.iter().filter(|carried| carried.next != carried.header) {
            let mut from = carried.next;
            if headers.contains(&from) {
                let ty = self.function.locals[from].ty;
                let temp = self.function.locals.push(Local::new("t", LocalKind::Temp, ty));
                let value = self.read(from, span);
                self.push(StmtKind::Assign(temp, value), span);
                if self.is_active(carried.header) {
                    let tangent = self.tangent_of(Some(from), ty, span);
                    self.assign_tangent(temp, tangent, span);
                }
                from = temp;
            }
            moved.push((carried, from));
        }
        self.in_block(|emitter| {
            for (carried, from) in moved {
                let counter = emitter.tape.counter(repeat, carried);
                if counter.is_some()
                    && let Some(&Definition::Expr(value, _)) = emitter.tape.definitions.get(&carried.next)
                {
                    // As the kernel does, so that a counter is seen as one.
                    let value = emitter.function.copy_expr(value);
                    emitter.push(StmtKind::Assign(carried.header, value), span);
                } else {
                    let value = emitter.read(from, span);
                    emitter.push(StmtKind::Assign(carried.header, value), span);
                    if emitter.is_active(carried.header) {
                        let ty = emitter.function.locals[from].ty;
                        let tangent = match emitter.tangents.get(&from) {
                            Some(&tangent) => emitter.read(tangent, span),
                            None => emitter.tangent_of(Some(from), ty, span),
                        };
                        emitter.assign_tangent(carried.header, tangent, span);
                    }
                }
            }
            Ok(())
        })
    }
}
