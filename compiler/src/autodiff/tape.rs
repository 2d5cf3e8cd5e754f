//! The kernel as a tape: statements whose values are assigned once per execution of their list, in structured control
//! flow. A variable that the kernel assigns several times becomes several values: a join where two branches meet, a
//! header where a loop's iterations meet.
//!
//! Writes and barriers are *events*, which have numbers in the order of the tape: what a second execution of a part of the
//! tape must do again, so that it loads the same values from shared and local arrays.

use std::collections::{BTreeMap, BTreeSet};

use super::build::is_float;
use crate::{
    ir::{AtomicOp, ExprId, FuncId, Function, LocalId, Op, Rule, Shuffle, StmtKind, Type, for_each_expr},
    source::Span,
};

/// A set of values.
pub(super) type Values = BTreeSet<LocalId>;

/// Nodes in order of execution.
pub(super) type List = Vec<Node>;

/// A statement of the tape.
#[derive(Debug)]
pub(super) enum Node {
    /// The only assignment of a value. An operation on floats has values and constants as operands.
    Define {
        /// The value.
        to: LocalId,
        /// Its expression.
        value: ExprId,
        /// The statement's location.
        span: Span,
    },
    /// A result of an operation that a second run does not reproduce.
    Unrepeatable {
        /// The value.
        to: LocalId,
        /// The operation's location.
        span: Span,
    },
    /// A value of another lane of the warp.
    Exchange(Exchange),
    /// A call of a function that is differentiated by a rule, or an operation of a warp on integers.
    Call(Call),
    /// An assignment of a value to an element.
    Store(Write),
    /// An atomic addition to an element; of integers, any atomic operation.
    Add(Write),
    /// A barrier.
    Barrier {
        /// The number of the event.
        event: usize,
        /// The threads that wait for each other.
        scope: Barrier,
        /// Its location.
        span: Span,
    },
    /// A branch.
    If(Branch),
    /// A loop.
    Loop(Box<Repeat>),
}

/// The threads that a barrier waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Barrier {
    /// All of the block.
    Block,
    /// The lanes of the warp that a mask has.
    Warp(i32),
}

impl Barrier {
    /// All lanes.
    pub(super) const ALL: i32 = -1;

    /// The statement.
    pub(super) fn stmt(self, function: &mut Function, span: Span) -> StmtKind {
        let (op, args) = match self {
            Self::Block => (Op::Barrier, Vec::new()),
            Self::Warp(mask) => (Op::WarpBarrier, vec![function.edit(span).int(mask.into(), Type::I32)]),
        };
        StmtKind::Op { op, results: Vec::new(), args }
    }
}

/// What must be done again so that an execution loads the same values.
#[derive(Clone, Copy)]
pub(super) enum Event<'a> {
    Write(&'a Write),
    Barrier(Barrier),
}

/// A write of a float to an element of an array.
#[derive(Debug)]
pub(super) struct Write {
    /// The element's address.
    pub(super) pointer: ExprId,
    /// The value: a read of a value, or an expression without a derivative.
    pub(super) value: ExprId,
    /// The operation, if it is atomic.
    pub(super) atomic: Option<Op>,
    /// The number of the event.
    pub(super) event: usize,
    /// The statement's location.
    pub(super) span: Span,
}

/// A shuffle of a warp.
#[derive(Debug)]
pub(super) struct Exchange {
    /// The value that a lane gets.
    pub(super) to: LocalId,
    pub(super) shuffle: Shuffle,
    /// The value that a lane gives: a read of a value, or an expression without a derivative.
    pub(super) value: ExprId,
    /// The mask of the lanes.
    pub(super) mask: ExprId,
    /// The lane or the distance.
    pub(super) by: ExprId,
    /// The lanes of a segment.
    pub(super) width: ExprId,
    /// The statement's location.
    pub(super) span: Span,
}

impl Exchange {
    /// The operands, in order.
    pub(super) fn operands(&self) -> [ExprId; 4] {
        [self.mask, self.value, self.by, self.width]
    }
}

/// What a call calls.
#[derive(Clone, Copy, Debug)]
pub(super) enum Callee {
    /// A function with a rule.
    Function(FuncId, Rule),
    /// An operation of a warp whose results have no derivatives, such as a vote.
    Op(Op),
}

/// A call of a function that is differentiated by a rule, or of an operation of a warp. It has no effects other than
/// barriers.
#[derive(Debug)]
pub(super) struct Call {
    pub(super) callee: Callee,
    /// Of floats: reads of values, or expressions without a derivative.
    pub(super) args: Vec<ExprId>,
    pub(super) results: Vec<LocalId>,
    /// The number of the event, if the function has barriers of the block.
    pub(super) event: Option<usize>,
    pub(super) span: Span,
}

impl Call {
    /// The statement, with arguments.
    pub(super) fn stmt(&self, args: Vec<ExprId>) -> StmtKind {
        let results = self.results.clone();
        match self.callee {
            Callee::Function(func, _) => StmtKind::Call { results, func, args },
            Callee::Op(op) => StmtKind::Op { op, results, args },
        }
    }

    /// The arguments that have adjoints: values that are floats.
    pub(super) fn floats(&self, function: &Function) -> impl Iterator<Item = LocalId> {
        let is_active = matches!(self.callee, Callee::Function(_, Rule::Backward { .. } | Rule::Symmetric));
        let floats = self.args.iter().filter(move |&&arg| is_active && is_float(function.exprs[arg].ty));
        floats.filter_map(|&arg| function.local(arg))
    }
}

/// A branch.
#[derive(Debug)]
pub(super) struct Branch {
    pub(super) cond: ExprId,
    pub(super) then: List,
    pub(super) otherwise: List,
    pub(super) joins: Vec<Join>,
    pub(super) span: Span,
}

/// A value that has one of two values after a branch.
#[derive(Debug)]
pub(super) struct Join {
    pub(super) to: LocalId,
    pub(super) then: LocalId,
    pub(super) otherwise: LocalId,
}

/// `loop { head; if exit { break }; body }`.
#[derive(Debug)]
pub(super) struct Repeat {
    /// The index of the loop in the tape.
    pub(super) id: usize,
    /// Nodes before the test.
    pub(super) head: List,
    /// The condition that ends the loop.
    pub(super) exit: ExprId,
    pub(super) body: List,
    pub(super) carried: Vec<Carried>,
    /// The number of iterations, an `I64`, where the reverse sweep needs it.
    pub(super) count: LocalId,
    pub(super) span: Span,
}

/// A variable that a loop assigns.
#[derive(Debug)]
pub(super) struct Carried {
    /// Its value before the loop, if it has one.
    pub(super) init: Option<LocalId>,
    /// Its value at the start of an iteration, and after the loop.
    pub(super) header: LocalId,
    /// Its value at the end of an iteration.
    pub(super) next: LocalId,
}

/// How a value is defined.
#[derive(Clone, Copy, Debug)]
pub(super) enum Definition {
    Expr(ExprId, Span),
    Unrepeatable(Span),
    /// A value of another lane, or of a call.
    Opaque(Span),
    Join {
        then: LocalId,
        otherwise: LocalId,
    },
    Header {
        init: Option<LocalId>,
        next: LocalId,
    },
}

/// The definitions of all values other than parameters.
pub(super) fn definitions(list: &List, all: &mut BTreeMap<LocalId, Definition>) {
    for node in list {
        match node {
            Node::Define { to, value, span } => {
                all.insert(*to, Definition::Expr(*value, *span));
            }
            Node::Unrepeatable { to, span } => {
                all.insert(*to, Definition::Unrepeatable(*span));
            }
            Node::Exchange(exchange) => {
                all.insert(exchange.to, Definition::Opaque(exchange.span));
            }
            Node::Call(call) => all.extend(call.results.iter().map(|&to| (to, Definition::Opaque(call.span)))),
            Node::Store(_) | Node::Add(_) | Node::Barrier { .. } => {}
            Node::If(branch) => {
                definitions(&branch.then, all);
                definitions(&branch.otherwise, all);
                for &Join { to, then, otherwise } in &branch.joins {
                    all.insert(to, Definition::Join { then, otherwise });
                }
            }
            Node::Loop(repeat) => {
                definitions(&repeat.head, all);
                definitions(&repeat.body, all);
                for &Carried { init, header, next } in &repeat.carried {
                    all.insert(header, Definition::Header { init, next });
                }
            }
        }
    }
}

/// The values that a list defines, including those of nested lists.
fn defined(list: &List, values: &mut Values) {
    let mut all = BTreeMap::new();
    definitions(list, &mut all);
    values.extend(all.into_keys());
    for_each_loop(list, &mut |repeat| {
        values.insert(repeat.count);
    });
}

/// Calls `visit` on each loop of a list, an outer one first.
pub(super) fn for_each_loop<'a>(list: &'a List, visit: &mut dyn FnMut(&'a Repeat)) {
    for node in list {
        match node {
            Node::Define { .. }
            | Node::Unrepeatable { .. }
            | Node::Exchange(_)
            | Node::Call(_)
            | Node::Store(_)
            | Node::Add(_)
            | Node::Barrier { .. } => {}
            Node::If(branch) => {
                for_each_loop(&branch.then, visit);
                for_each_loop(&branch.otherwise, visit);
            }
            Node::Loop(repeat) => {
                visit(repeat);
                for_each_loop(&repeat.head, visit);
                for_each_loop(&repeat.body, visit);
            }
        }
    }
}

impl Write {
    /// Whether it subtracts the value.
    pub(super) fn is_negative(&self) -> bool {
        matches!(self.atomic, Some(Op::Atomic { op: AtomicOp::Sub, .. }))
    }

    /// Whether it can be executed again as it is: a comparison has one more operand.
    pub(super) fn is_repeatable(&self) -> bool {
        !matches!(self.atomic, Some(Op::Atomic { op: AtomicOp::Cas, .. }))
    }
}

/// Calls `visit` on each event of a list, with its number.
pub(super) fn for_each_event<'a>(list: &'a [Node], visit: &mut dyn FnMut(usize, Event<'a>)) {
    for node in list {
        match node {
            Node::Store(write) | Node::Add(write) => visit(write.event, Event::Write(write)),
            Node::Barrier { event, scope, .. } => visit(*event, Event::Barrier(*scope)),
            Node::Call(call) => {
                if let Some(event) = call.event {
                    visit(event, Event::Barrier(Barrier::Block));
                }
            }
            Node::Define { .. } | Node::Unrepeatable { .. } | Node::Exchange(_) => {}
            Node::If(branch) => {
                for_each_event(&branch.then, visit);
                for_each_event(&branch.otherwise, visit);
            }
            Node::Loop(repeat) => {
                for_each_event(&repeat.head, visit);
                for_each_event(&repeat.body, visit);
            }
        }
    }
}

/// Whether a list has barriers of some threads; by default of any.
pub(super) fn has_barrier(list: &[Node], of: Option<Barrier>) -> bool {
    let mut has = false;
    for_each_event(list, &mut |_, event| {
        has |= match event {
            Event::Barrier(scope) => of.is_none_or(|of| of == scope),
            Event::Write(_) => false,
        };
    });
    has
}

/// Whether a list has calls of functions with barriers.
pub(super) fn has_calls_with_barriers(list: &[Node]) -> bool {
    list.iter().any(|node| match node {
        Node::Call(call) => call.event.is_some(),
        Node::If(branch) => has_calls_with_barriers(&branch.then) || has_calls_with_barriers(&branch.otherwise),
        Node::Loop(repeat) => has_calls_with_barriers(&repeat.head) || has_calls_with_barriers(&repeat.body),
        Node::Define { .. }
        | Node::Unrepeatable { .. }
        | Node::Exchange(_)
        | Node::Store(_)
        | Node::Add(_)
        | Node::Barrier { .. } => false,
    })
}

impl Branch {
    /// The values that the branch defines.
    pub(super) fn defined(&self) -> Values {
        let mut values: Values = self.joins.iter().map(|join| join.to).collect();
        defined(&self.then, &mut values);
        defined(&self.otherwise, &mut values);
        values
    }
}

impl Repeat {
    /// The values that the loop defines.
    pub(super) fn defined(&self) -> Values {
        let mut values: Values = self.carried.iter().map(|carried| carried.header).collect();
        values.insert(self.count);
        defined(&self.head, &mut values);
        defined(&self.body, &mut values);
        values
    }
}

/// Calls `visit` on each value that an expression reads.
pub(super) fn for_each_value(function: &Function, id: ExprId, visit: &mut dyn FnMut(LocalId)) {
    for_each_expr(function, id, &mut |id| {
        if let Some(local) = function.local(id) {
            visit(local);
        }
    });
}

/// Calls `visit` on each use of a value in a list: in expressions, joins and loops.
pub(super) fn for_each_use(function: &Function, list: &List, visit: &mut dyn FnMut(LocalId)) {
    for node in list {
        match node {
            Node::Define { value, .. } => for_each_value(function, *value, visit),
            Node::Unrepeatable { .. } | Node::Barrier { .. } => {}
            Node::Exchange(exchange) => {
                exchange.operands().into_iter().for_each(|operand| for_each_value(function, operand, visit));
            }
            Node::Call(call) => call.args.iter().for_each(|&arg| for_each_value(function, arg, visit)),
            Node::Store(write) | Node::Add(write) => {
                for_each_value(function, write.pointer, visit);
                for_each_value(function, write.value, visit);
            }
            Node::If(branch) => {
                for_each_value(function, branch.cond, visit);
                for_each_use(function, &branch.then, visit);
                for_each_use(function, &branch.otherwise, visit);
                for join in &branch.joins {
                    visit(join.then);
                    visit(join.otherwise);
                }
            }
            Node::Loop(repeat) => {
                for carried in &repeat.carried {
                    carried.init.into_iter().for_each(&mut *visit);
                    visit(carried.next);
                }
                for_each_use(function, &repeat.head, visit);
                for_each_value(function, repeat.exit, visit);
                for_each_use(function, &repeat.body, visit);
            }
        }
    }
}

/// The number of uses of each value of a tape.
pub(super) fn uses(function: &Function, list: &List) -> BTreeMap<LocalId, usize> {
    let mut uses = BTreeMap::new();
    for_each_use(function, list, &mut |value| *uses.entry(value).or_insert(0) += 1);
    uses
}
