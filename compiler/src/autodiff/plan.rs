//! What the reverse sweep needs: which values each part of it computes again, and how it runs each loop.

use std::collections::BTreeMap;

use super::{
    activity::{Written, edges},
    arrays::Memory,
    refusals::{not_recomputable, unsupported},
    rules::{self, Evaluated},
    shadow,
    sums::{Counter, Tape},
    tape::{Branch, Carried, Definition, List, Node, Repeat, Values, for_each_use, for_each_value},
};
use crate::{
    diagnostic::{Code, Diagnostic},
    ir::{Class, ExprId, Function, LocalId, Type, for_each_expr},
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
    /// Values that the forward sweep keeps in a local array, with the array's length.
    pub(super) kept: Vec<(LocalId, u64)>,
}

/// The plan of one loop.
#[derive(Debug, Default)]
pub(super) struct LoopPlan {
    pub(super) order: Order,
    /// The values that an iteration of the reverse sweep computes again.
    pub(super) again: Values,
}

/// The plan of the adjoint kernel.
#[derive(Debug)]
pub(super) struct Plan {
    /// By the index of the loop.
    pub(super) loops: Vec<LoopPlan>,
    /// The values that the forward sweep computes.
    pub(super) forward: Values,
}

/// Makes the plan of a tape.
pub(super) fn plan(
    tape: Tape<'_>,
    scratch: &mut Function,
    written: &Written,
    list: &List,
    loops: usize,
) -> Result<Plan, Diagnostic> {
    let mut planner = Planner { tape, scratch, written, loops: (0..loops).map(|_| LoopPlan::default()).collect() };
    let mut forward = planner.needs(list)?;
    planner.close(list, &mut forward);
    planner.check(list, &forward)?;
    Ok(Plan { loops: planner.loops, forward })
}

struct Planner<'a> {
    tape: Tape<'a>,
    /// A copy of the function in which partial derivatives are built to see what they use.
    scratch: &'a mut Function,
    written: &'a Written,
    loops: Vec<LoopPlan>,
}

impl Planner<'_> {
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
                Node::Unrepeatable { .. } => {}
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
        let mut again = self.needs(&repeat.body)?;
        let own = repeat.defined();
        let mut outer = Values::new();
        if self.tape.is_order_free(repeat) {
            self.values_of(repeat.exit, &mut again);
            self.close_loop(repeat, &mut again);
            for carried in repeat.carried.iter().filter(|carried| again.contains(&carried.header)) {
                outer.extend(carried.init);
            }
            self.check_expr(repeat.exit, repeat.span)?;
            self.check(&repeat.head, &again)?;
            self.check(&repeat.body, &again)?;
            outer.extend(again.iter().filter(|value| !own.contains(value)));
            self.loops[repeat.id] = LoopPlan { order: Order::Forward, again };
            return Ok(outer);
        }
        self.close(&repeat.body, &mut again);
        self.close(&repeat.head, &mut again);
        self.check(&repeat.head, &again)?;
        self.check(&repeat.body, &again)?;
        let restored = self.restored(repeat, &again)?;
        for (_, counter) in &restored.counted {
            outer.insert(counter.init);
            self.values_of(counter.step, &mut outer);
        }
        outer.extend(restored.kept.iter().map(|&(value, _)| value));
        outer.insert(repeat.count);
        outer.extend(again.iter().filter(|value| !own.contains(value)));
        self.loops[repeat.id] = LoopPlan { order: Order::Backward(restored), again };
        Ok(outer)
    }

    /// Where the values at the start of an iteration come from.
    fn restored(&self, repeat: &Repeat, again: &Values) -> Result<Restored, Diagnostic> {
        let mut restored = Restored::default();
        let length = self.tape.most_iterations(repeat);
        for carried in repeat.carried.iter().filter(|carried| again.contains(&carried.header)) {
            if let Some(counter) = self.tape.counter(repeat, carried) {
                restored.counted.push((carried.header, counter));
                continue;
            }
            let Type::Scalar(scalar) = self.tape.function.locals[carried.header].ty else { continue };
            let name = &self.tape.function.locals[carried.header].name;
            match length.map(|length| (length, length.saturating_mul(scalar.size_bytes()))) {
                Some((length, bytes)) if bytes <= MOST_KEPT => restored.kept.push((carried.header, length)),
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
            Some(&(Definition::Expr(_, span) | Definition::Unrepeatable(span))) => span,
            Some(Definition::Join { .. } | Definition::Header { .. }) | None => repeat.span,
        };
        let message = format!("the reverse sweep needs `{name}` of each iteration, but {why}");
        let help = format!(
            "give the loop a constant trip count, so that a local array of up to {MOST_KEPT} bytes has the values, or \
             let the loop only add to `{name}`"
        );
        Diagnostic::error(Code::NotRecomputable, span, message).label("assigned here").help(help)
    }

    /// Adds the values that the values of a set are computed from, in a list.
    fn close(&self, list: &List, values: &mut Values) {
        for node in list.iter().rev() {
            match node {
                Node::Define { to, value, .. } => {
                    if values.contains(to) {
                        self.values_of(*value, values);
                    }
                }
                Node::Unrepeatable { .. } | Node::Store(_) | Node::Add(_) => {}
                Node::If(branch) => self.close_branch(branch, values),
                Node::Loop(repeat) => {
                    if repeat.defined().iter().any(|value| values.contains(value)) {
                        self.close_loop(repeat, values);
                    }
                }
            }
        }
    }

    fn close_branch(&self, branch: &Branch, values: &mut Values) {
        for join in &branch.joins {
            if values.contains(&join.to) {
                values.extend([join.then, join.otherwise]);
            }
        }
        self.close(&branch.then, values);
        self.close(&branch.otherwise, values);
        if branch.defined().iter().any(|value| values.contains(value)) {
            self.values_of(branch.cond, values);
        }
    }

    /// The same for a loop that runs.
    fn close_loop(&self, repeat: &Repeat, values: &mut Values) {
        loop {
            let before = values.len();
            self.values_of(repeat.exit, values);
            for carried in &repeat.carried {
                if values.contains(&carried.header) {
                    values.insert(carried.next);
                    values.extend(carried.init);
                }
            }
            self.close(&repeat.body, values);
            self.close(&repeat.head, values);
            if values.len() == before {
                return;
            }
        }
    }

    /// Refuses values that cannot be computed again: loads from arrays that the kernel writes, and results of
    /// operations that another run does not reproduce.
    fn check(&self, list: &List, values: &Values) -> Result<(), Diagnostic> {
        for node in list {
            match node {
                Node::Define { to, value, span } => {
                    let function = self.tape.function;
                    if values.contains(to) {
                        self.check_expr(*value, *span)?;
                    } else if let Class::Load(pointer) = function.class(*value)
                        && self.is_reversed(node)
                    {
                        self.check_expr(pointer, *span)?;
                    }
                    if let Class::Load(pointer) = function.class(*value)
                        && self.is_reversed(node)
                    {
                        shadow::check(self.tape, pointer, *span)?;
                    }
                }
                Node::Unrepeatable { to, span } => {
                    if values.contains(to) {
                        let why = "it depends on the order of the threads";
                        return Err(not_recomputable(*span, why, "do not compute floats or conditions from it"));
                    }
                }
                Node::Store(write) | Node::Add(write) => {
                    if self.is_reversed(node) {
                        self.check_expr(write.pointer, write.span)?;
                        shadow::check(self.tape, write.pointer, write.span)?;
                    }
                }
                Node::If(branch) => {
                    if self.is_reversed(node) || branch.defined().iter().any(|value| values.contains(value)) {
                        self.check_expr(branch.cond, branch.span)?;
                        self.check(&branch.then, values)?;
                        self.check(&branch.otherwise, values)?;
                    }
                }
                Node::Loop(repeat) => {
                    if repeat.defined().iter().any(|value| values.contains(value)) {
                        self.check_expr(repeat.exit, repeat.span)?;
                        self.check(&repeat.head, values)?;
                        self.check(&repeat.body, values)?;
                    }
                }
            }
        }
        Ok(())
    }

    fn check_expr(&self, id: ExprId, span: Span) -> Result<(), Diagnostic> {
        let function = self.tape.function;
        let mut found = Ok(());
        for_each_expr(function, id, &mut |id| {
            let Class::Load(pointer) = function.class(id) else { return };
            let memory = self.tape.arrays.memory(function, pointer);
            if !self.written.contains(memory) || found.is_err() {
                return;
            }
            found = Err(match memory {
                Memory::Param(param) => {
                    let name = &self.tape.arrays.param(param).name;
                    let why = format!("the kernel overwrites elements of `{name}`");
                    not_recomputable(span, &why, "write the results to another array")
                }
                Memory::Captured => {
                    not_recomputable(span, "the kernel writes a captured array", "pass the arrays as arguments")
                }
                Memory::Other => unsupported(
                    span,
                    "an element of an array that is not an argument",
                    "keep the values in variables, and load elements from the kernel's arguments",
                ),
            });
        });
        found
    }
}

/// The number of uses of each value of a tape.
pub(super) fn uses(function: &Function, list: &List) -> BTreeMap<LocalId, usize> {
    let mut uses = BTreeMap::new();
    for_each_use(function, list, &mut |value| *uses.entry(value).or_insert(0) += 1);
    uses
}
