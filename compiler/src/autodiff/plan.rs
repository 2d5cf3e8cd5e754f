//! What the reverse sweep needs: which values each part of it computes again, and how it runs each loop.

use std::{cell::Cell, collections::BTreeSet};

use super::{
    activity::{Written, edges},
    arrays::Memory,
    contents::Contents,
    needed::Needed,
    refusals::{not_recomputable, unsupported},
    rules::{self, Evaluated},
    scratch::{self, Record},
    shadow,
    sums::{Counter, Extreme, Tape},
    tape::{
        Branch, Carried, Definition, Event, List, Node, Repeat, Values, for_each_event, for_each_value,
        has_calls_with_barriers,
    },
};
use crate::{
    diagnostic::{Code, Diagnostic},
    ir::{Class, ExprId, Function, LocalId, Type, for_each_expr},
    request::{Derivative, Scratch},
    source::Span,
};

/// The most bytes that a thread keeps for one loop.
const MOST_KEPT: u64 = 1024;

/// How the reverse sweep runs a loop.
#[derive(Debug, Default)]
pub(super) enum Order {
    /// In the primal's order: the loop is a sum, or its iterations are independent.
    #[default]
    Forward,
    /// From the last iteration to the first.
    Backward(Restored),
}

/// Where the values at the start of an iteration come from when a loop runs backward.
#[derive(Debug, Default)]
pub(super) struct Restored {
    /// Counters, which are computed from the number of the iteration.
    pub(super) counted: Vec<(LocalId, Counter)>,
    /// Running maxima and minima.
    pub(super) extremes: Vec<Extreme>,
    /// Values that the forward sweep keeps in a local array, with the array's length.
    pub(super) kept: Vec<(LocalId, u64)>,
    /// Values that the forward sweep stores in the scratch memory, and pushes.
    pub(super) stored: Record,
}

/// The plan of one loop.
#[derive(Debug, Default)]
pub(super) struct LoopPlan {
    pub(super) order: Order,
    /// What an iteration of the reverse sweep computes again.
    pub(super) again: Needed,
}

/// The plan of the adjoint kernel.
#[derive(Debug)]
pub(super) struct Plan {
    /// By the index of the loop.
    pub(super) loops: Vec<LoopPlan>,
    /// What the forward sweep computes.
    pub(super) forward: Needed,
    /// What the kernel that counts the bytes of the scratch memory computes.
    pub(super) counted: Needed,
}

/// Makes the plan of a tape of a number of loops.
pub(super) fn plan(
    tape: Tape<'_>,
    scratch: &mut Function,
    written: &Written,
    list: &List,
    (loops, derivative): (usize, &Derivative),
) -> Result<Plan, Diagnostic> {
    let has_scratch = derivative.scratch != Scratch::None;
    let has_calls_with_barriers = has_calls_with_barriers(list);
    let mut rewritten = BTreeSet::new();
    loop {
        let contents = Contents::of(tape, written, list, (derivative.has_old_contents, rewritten.clone()));
        let loops = (0..loops).map(|_| LoopPlan::default()).collect();
        let overwritten = Cell::new(None);
        let planner = Planner {
            tape,
            scratch,
            written,
            contents,
            has_scratch,
            has_calls_with_barriers,
            loops,
            overwritten: &overwritten,
        };
        let error = match planner.plan(list) {
            Ok(plan) => return Ok(plan),
            Err(error) => error,
        };
        // The next plan executes the kernel's writes to the array, from its old contents on.
        let array = overwritten.get().filter(|_| has_scratch && derivative.has_old_contents);
        if !array.is_some_and(|param| rewritten.insert(Memory::Param(param))) {
            return Err(error);
        }
    }
}

struct Planner<'a> {
    tape: Tape<'a>,
    /// A copy of the function in which partial derivatives are built to see what they use.
    scratch: &'a mut Function,
    written: &'a Written,
    contents: Contents<'a>,
    /// The launch passes scratch memory.
    has_scratch: bool,
    /// Calls write shared memory that other statements may still load from, before their own first barrier.
    has_calls_with_barriers: bool,
    loops: Vec<LoopPlan>,
    /// The array whose elements the plan needs, but which the kernel overwrites.
    overwritten: &'a Cell<Option<u32>>,
}

impl Planner<'_> {
    fn plan(mut self, list: &List) -> Result<Plan, Diagnostic> {
        let mut forward = Needed { values: self.needs(list)?, ..Needed::default() };
        self.close(list, &mut forward, true);
        self.check(list, &forward)?;
        let mut counted = scratch::counted(list, &self.loops);
        self.close(list, &mut counted, false);
        self.check(list, &counted)?;
        scratch::check(self.tape.function, list, &counted)?;
        Ok(Plan { loops: self.loops, forward, counted })
    }

    fn is_reversed(&self, node: &Node) -> bool {
        self.tape.activity.is_reversed(self.tape.function, self.tape.arrays, node)
    }

    fn values_of(&self, id: ExprId, values: &mut Values) {
        for_each_value(self.tape.function, id, &mut |value| {
            values.insert(value);
        });
    }

    /// The values that the reverse of a list uses. Plans the list's loops.
    fn needs(&mut self, list: &List) -> Result<Values, Diagnostic> {
        let mut values = Values::new();
        for node in list {
            if !self.is_reversed(node) {
                continue;
            }
            match node {
                Node::Define { to, value, .. } => self.needs_of(*to, *value, &mut values),
                Node::Exchange(exchange) => {
                    for operand in [exchange.mask, exchange.by, exchange.width] {
                        self.values_of(operand, &mut values);
                    }
                }
                Node::Call(call) => {
                    if call.event.is_none() {
                        call.args.iter().for_each(|&arg| self.values_of(arg, &mut values));
                        values.extend(call.results.iter().copied());
                    }
                }
                Node::Unrepeatable { .. } | Node::Barrier { .. } => {}
                Node::Store(write) | Node::Add(write) => self.values_of(write.pointer, &mut values),
                Node::If(branch) => {
                    self.values_of(branch.cond, &mut values);
                    values.extend(self.needs(&branch.then)?);
                    values.extend(self.needs(&branch.otherwise)?);
                }
                Node::Loop(repeat) => values.extend(self.loop_needs(repeat)?),
            }
        }
        Ok(values)
    }

    fn needs_of(&mut self, to: LocalId, value: ExprId, values: &mut Values) {
        if let Class::Load(pointer) = self.tape.function.class(value) {
            return self.values_of(pointer, values);
        }
        let active = edges(self.tape.function, value);
        let operands: Vec<usize> =
            active.iter().filter(|(_, operand)| self.tape.activity.is_active(*operand)).map(|&(at, _)| at).collect();
        // Any local stands for the adjoint, which is not one of the values.
        let adjoint = self.scratch.locals.push(self.scratch.locals[to].clone());
        let evaluated = Evaluated { id: value, result: to, adjoint };
        rules::needs(self.scratch, evaluated, &operands, &mut |value| {
            values.insert(value);
        });
    }

    fn loop_needs(&mut self, repeat: &Repeat) -> Result<Values, Diagnostic> {
        let values = self.needs(&repeat.body)?;
        let is_sum = self.tape.is_order_free(repeat);
        if is_sum {
            let mut again = Needed { values: values.clone(), ..Needed::default() };
            self.values_of(repeat.exit, &mut again.values);
            self.close_loop(repeat, &mut again, true);
            if self.contents.lost(repeat, &again.values).is_empty() {
                return self.in_order(repeat, again);
            }
        }
        self.backward(repeat, values)
    }

    /// The plan of a loop that runs in the primal's order. Gives the values from outside of the loop.
    fn in_order(&mut self, repeat: &Repeat, again: Needed) -> Result<Values, Diagnostic> {
        let own = repeat.defined();
        let mut outer = Values::new();
        for carried in repeat.carried.iter().filter(|carried| again.values.contains(&carried.header)) {
            outer.extend(carried.init);
        }
        self.check_expr(repeat.exit, repeat.span)?;
        self.check(&repeat.head, &again)?;
        self.check(&repeat.body, &again)?;
        outer.extend(again.values.iter().filter(|value| !own.contains(value)));
        self.loops[repeat.id] = LoopPlan { order: Order::Forward, again };
        Ok(outer)
    }

    /// The plan of a loop that runs backward, whose reverse uses some values.
    fn backward(&mut self, repeat: &Repeat, values: Values) -> Result<Values, Diagnostic> {
        let own = repeat.defined();
        let mut again = Needed { values, ..Needed::default() };
        // What another execution of the iteration would load otherwise, the forward sweep keeps.
        loop {
            let mut closed = again.clone();
            self.close(&repeat.body, &mut closed, true);
            self.close(&repeat.head, &mut closed, true);
            let lost = self.contents.lost(repeat, &closed.values);
            if lost.iter().all(|value| again.given.contains(value)) {
                again = closed;
                break;
            }
            again.given.extend(lost);
        }
        again.given.retain(|value| again.values.contains(value));
        self.check(&repeat.head, &again)?;
        self.check(&repeat.body, &again)?;
        let (mut stored, mut pushed) = (Vec::new(), Vec::new());
        let mut restored = self.restored(repeat, &again.values, &mut stored)?;
        for &value in &again.given {
            if self.has_scratch && !self.contents.is_directly_in(repeat, value) {
                pushed.push(value);
            } else {
                self.keep_loaded(repeat, value, &mut restored, &mut stored)?;
            }
        }
        again.popped = pushed.iter().map(|&value| (value, repeat.id)).collect();
        let mut outer: Values = stored.iter().chain(&pushed).copied().collect();
        restored.stored = Record::of(self.tape.function, &stored, pushed);
        for (_, counter) in &restored.counted {
            outer.insert(counter.init);
            self.values_of(counter.step, &mut outer);
        }
        outer.extend(restored.extremes.iter().map(|extreme| extreme.header));
        outer.extend(restored.kept.iter().map(|&(value, _)| value));
        outer.insert(repeat.count);
        outer.extend(again.values.iter().filter(|value| !own.contains(value)));
        self.loops[repeat.id] = LoopPlan { order: Order::Backward(restored), again };
        Ok(outer)
    }

    /// Keeps a value that an iteration loads from a shared or local array.
    fn keep_loaded(
        &self,
        repeat: &Repeat,
        value: LocalId,
        restored: &mut Restored,
        stored: &mut Vec<LocalId>,
    ) -> Result<(), Diagnostic> {
        let Type::Scalar(scalar) = self.tape.function.locals[value].ty else { return Ok(()) };
        let why = match self.tape.most_iterations(repeat) {
            _ if !self.contents.is_directly_in(repeat, value) => "it is in a nested loop".to_owned(),
            Some(length) if length.saturating_mul(scalar.size_bytes()) <= MOST_KEPT => {
                restored.kept.push((value, length));
                return Ok(());
            }
            Some(_) | None if self.has_scratch => {
                stored.push(value);
                return Ok(());
            }
            Some(length) => {
                let bytes = length.saturating_mul(scalar.size_bytes());
                format!("the values of {length} iterations take {bytes} bytes of each thread")
            }
            None => "the trip count has no constant bound".to_owned(),
        };
        let Some(&Definition::Expr(load, span)) = self.tape.definitions.get(&value) else { return Ok(()) };
        let Class::Load(pointer) = self.tape.function.class(load) else { return Ok(()) };
        let name = self.tape.arrays.name(self.tape.arrays.memory(self.tape.function, pointer));
        let message = format!("the reverse sweep needs this element of `{name}` of each iteration, but {why}");
        let help = format!(
            "load the element before the loop if no iteration changes it; or let each iteration first write all elements \
             of `{name}` that it loads, at the same indices in each iteration; or give the loop a constant trip count, so \
             that a local array of up to {MOST_KEPT} bytes has the values; or launch the kernel once for each iteration"
        );
        Err(Diagnostic::error(Code::NotRecomputable, span, message).label("loaded here").help(help))
    }

    /// Where the values at the start of an iteration come from.
    fn restored(&self, repeat: &Repeat, again: &Values, stored: &mut Vec<LocalId>) -> Result<Restored, Diagnostic> {
        let mut restored = Restored::default();
        let length = self.tape.most_iterations(repeat);
        for carried in repeat.carried.iter().filter(|carried| again.contains(&carried.header)) {
            if let Some(counter) = self.tape.counter(repeat, carried) {
                restored.counted.push((carried.header, counter));
                continue;
            }
            if let Some(extreme) = self.tape.extreme(repeat, carried) {
                restored.extremes.push(extreme);
                continue;
            }
            let Type::Scalar(scalar) = self.tape.function.locals[carried.header].ty else { continue };
            let name = &self.tape.function.locals[carried.header].name;
            match length.map(|length| (length, length.saturating_mul(scalar.size_bytes()))) {
                Some((length, bytes)) if bytes <= MOST_KEPT => restored.kept.push((carried.header, length)),
                Some(_) | None if self.has_scratch => stored.push(carried.header),
                Some((length, bytes)) => {
                    let why = format!("the values of {length} iterations take {bytes} bytes of each thread");
                    return Err(self.no_values(repeat, carried, name, &why));
                }
                None => {
                    let why = "the trip count has no constant bound".to_owned();
                    return Err(self.no_values(repeat, carried, name, &why));
                }
            }
        }
        Ok(restored)
    }

    fn no_values(&self, repeat: &Repeat, carried: &Carried, name: &str, why: &str) -> Diagnostic {
        let span = match self.tape.definitions.get(&carried.next) {
            Some(&(Definition::Expr(_, span) | Definition::Unrepeatable(span) | Definition::Opaque(span))) => span,
            Some(Definition::Join { .. } | Definition::Header { .. }) | None => repeat.span,
        };
        let message = format!("the reverse sweep needs `{name}` of each iteration, but {why}");
        let help = format!(
            "give the loop a constant trip count, so that a local array of up to {MOST_KEPT} bytes has the values, or \
             let the loop only add to `{name}`"
        );
        Diagnostic::error(Code::NotRecomputable, span, message).label("assigned here").help(help)
    }

    /// Adds what an execution of a list uses to compute values and contents of arrays; with `reversed`, also the contents
    /// that the reverse of its loops uses.
    fn close(&self, list: &List, needed: &mut Needed, reversed: bool) {
        for node in list.iter().rev() {
            match node {
                Node::Define { to, value, .. } => {
                    if needed.computes(*to) {
                        self.values_of(*value, &mut needed.values);
                        self.contents_of(*value, needed);
                    }
                }
                Node::Store(write) | Node::Add(write) => {
                    if needed.contents.contains(&self.tape.arrays.memory(self.tape.function, write.pointer)) {
                        needed.events.insert(write.event);
                        self.values_of(write.pointer, &mut needed.values);
                        self.values_of(write.value, &mut needed.values);
                    }
                }
                Node::Barrier { event, .. } => {
                    if needed.orders_contents() || self.has_calls_with_barriers {
                        needed.events.insert(*event);
                    }
                }
                Node::Exchange(exchange) => {
                    if needed.computes(exchange.to) {
                        for operand in exchange.operands() {
                            self.values_of(operand, &mut needed.values);
                        }
                    }
                }
                Node::Call(call) => {
                    let is_ordered = needed.orders_contents();
                    needed.events.extend(call.event.filter(|_| is_ordered));
                    if needed.calls(call) {
                        call.args.iter().for_each(|&arg| self.values_of(arg, &mut needed.values));
                    }
                }
                Node::Unrepeatable { .. } => {}
                Node::If(branch) => self.close_branch(branch, needed, reversed),
                Node::Loop(repeat) => {
                    if needed.has_loop(repeat) || self.has_contents(repeat, needed) {
                        self.close_loop(repeat, needed, false);
                    }
                    if reversed && self.is_reversed(node) {
                        needed.contents.extend(self.loops[repeat.id].again.contents.iter().copied());
                    }
                }
            }
        }
    }

    fn contents_of(&self, id: ExprId, needed: &mut Needed) {
        if let Class::Load(pointer) = self.tape.function.class(id) {
            let memory = self.tape.arrays.memory(self.tape.function, pointer);
            if self.contents.changes(memory) {
                needed.contents.insert(memory);
            }
        }
    }

    /// Whether a loop writes contents that are used after it, or has barriers between them and their uses.
    fn has_contents(&self, repeat: &Repeat, needed: &Needed) -> bool {
        let is_shared = needed.orders_contents();
        let mut has = false;
        for list in [&repeat.head, &repeat.body] {
            for_each_event(list, &mut |_, event| {
                has |= match event {
                    Event::Write(write) => {
                        needed.contents.contains(&self.tape.arrays.memory(self.tape.function, write.pointer))
                    }
                    Event::Barrier(_) => is_shared,
                };
            });
        }
        has
    }

    fn close_branch(&self, branch: &Branch, needed: &mut Needed, reversed: bool) {
        for join in &branch.joins {
            if needed.values.contains(&join.to) {
                needed.values.extend([join.then, join.otherwise]);
            }
        }
        self.close(&branch.then, needed, reversed);
        self.close(&branch.otherwise, needed, reversed);
        if needed.has_branch(branch) {
            self.values_of(branch.cond, &mut needed.values);
        }
    }

    /// The same for a loop that runs.
    fn close_loop(&self, repeat: &Repeat, needed: &mut Needed, reversed: bool) {
        loop {
            let before = needed.len();
            self.values_of(repeat.exit, &mut needed.values);
            for carried in &repeat.carried {
                if needed.values.contains(&carried.header) {
                    needed.values.insert(carried.next);
                    needed.values.extend(carried.init);
                }
            }
            self.close(&repeat.body, needed, reversed);
            self.close(&repeat.head, needed, reversed);
            if needed.len() == before {
                return;
            }
        }
    }

    /// Refuses values that cannot be computed again: loads from arrays that the kernel writes, and results of
    /// operations that another run does not reproduce.
    fn check(&self, list: &List, needed: &Needed) -> Result<(), Diagnostic> {
        for node in list {
            match node {
                Node::Define { to, value, span } => self.check_definition(node, (*to, *value, *span), needed)?,
                Node::Unrepeatable { to, span } => {
                    if needed.values.contains(to) {
                        let why = "it depends on the order of the threads";
                        return Err(not_recomputable(*span, why, "do not compute floats or conditions from it"));
                    }
                }
                Node::Exchange(exchange) => {
                    if needed.computes(exchange.to) {
                        self.check_expr(exchange.value, exchange.span)?;
                    }
                    if needed.computes(exchange.to) || self.is_reversed(node) {
                        for operand in [exchange.mask, exchange.by, exchange.width] {
                            self.check_expr(operand, exchange.span)?;
                        }
                    }
                }
                Node::Call(call) => {
                    if self.is_reversed(node) && call.event.is_none() || needed.calls(call) {
                        for &arg in &call.args {
                            self.check_expr(arg, call.span)?;
                        }
                    }
                }
                Node::Barrier { .. } => {}
                Node::Store(write) | Node::Add(write) => {
                    if needed.events.contains(&write.event) {
                        if !write.is_repeatable() {
                            let help = "do not compute floats or conditions from the array";
                            return Err(not_recomputable(write.span, "it depends on the order of the threads", help));
                        }
                        self.check_expr(write.pointer, write.span)?;
                        self.check_expr(write.value, write.span)?;
                    }
                    if self.is_reversed(node) {
                        self.check_expr(write.pointer, write.span)?;
                        shadow::check(self.tape, write.pointer, write.span)?;
                    }
                }
                Node::If(branch) => {
                    if self.is_reversed(node) || needed.has_branch(branch) {
                        self.check_expr(branch.cond, branch.span)?;
                        self.check(&branch.then, needed)?;
                        self.check(&branch.otherwise, needed)?;
                    }
                }
                Node::Loop(repeat) => {
                    if needed.has_loop(repeat) {
                        self.check_expr(repeat.exit, repeat.span)?;
                        self.check(&repeat.head, needed)?;
                        self.check(&repeat.body, needed)?;
                    }
                }
            }
        }
        Ok(())
    }

    fn check_definition(
        &self,
        node: &Node,
        (to, value, span): (LocalId, ExprId, Span),
        needed: &Needed,
    ) -> Result<(), Diagnostic> {
        let load = match self.tape.function.class(value) {
            Class::Load(pointer) => Some(pointer),
            Class::Arith(_) | Class::Leaf(_) | Class::Address { .. } => None,
        };
        let is_reversed = self.is_reversed(node);
        match load {
            Some(pointer) if self.contents.is_first(to) => self.check_expr(pointer, span)?,
            Some(_) | None if needed.computes(to) => self.check_expr(value, span)?,
            Some(pointer) if is_reversed => self.check_expr(pointer, span)?,
            Some(_) | None => {}
        }
        if let Some(pointer) = load
            && is_reversed
        {
            shadow::check(self.tape, pointer, span)?;
        }
        Ok(())
    }

    fn check_expr(&self, id: ExprId, span: Span) -> Result<(), Diagnostic> {
        let function = self.tape.function;
        let mut found = Ok(());
        for_each_expr(function, id, &mut |id| {
            let Class::Load(pointer) = function.class(id) else { return };
            let memory = self.tape.arrays.memory(function, pointer);
            if !self.written.contains(memory) || self.contents.changes(memory) || found.is_err() {
                return;
            }
            found = Err(match memory {
                Memory::Param(param) => {
                    self.overwritten.set(Some(param));
                    let name = &self.tape.arrays.param(param).name;
                    let why = format!("the kernel overwrites elements of `{name}`");
                    not_recomputable(span, &why, "write the results to another array")
                }
                Memory::Captured => {
                    not_recomputable(span, "the kernel writes a captured array", "pass the arrays as arguments")
                }
                Memory::Shared(_) | Memory::Local(_) | Memory::Dynamic => return,
                Memory::Other => unsupported(
                    span,
                    "an access to one of several arrays",
                    "load elements of the kernel's arguments, or of shared and local arrays of a constant shape",
                ),
            });
        });
        found
    }
}
