//! Which values depend on something, by data or by control flow.

use super::{
    activity::Written,
    refusals::unsupported,
    sums::Tape,
    tape::{Barrier, List, Node, Repeat, Values, has_barrier},
};
use crate::{
    diagnostic::Diagnostic,
    ir::{Class, ExprId, ExprKind, Leaf, SpecialRegister, for_each_expr},
    source::Span,
};

/// The values that depend on some values and some expressions. What a kernel writes may depend on everything.
pub(super) struct Dependents<'a> {
    tape: Tape<'a>,
    written: &'a Written,
    is_source: fn(&ExprKind) -> bool,
    values: Values,
}

impl<'a> Dependents<'a> {
    /// The values that may differ in the threads of a block.
    pub(super) fn of_threads(tape: Tape<'a>, written: &'a Written, list: &List) -> Self {
        let mut all = Self { tape, written, is_source: differs_in_block, values: Values::new() };
        while all.spread(list) {}
        all
    }

    /// The values that may differ in the iterations of nested loops, which begin with the outermost one.
    pub(super) fn of_iterations(tape: Tape<'a>, written: &'a Written, loops: &[&Repeat]) -> Self {
        let values = loops.iter().flat_map(|repeat| &repeat.carried).map(|carried| carried.header).collect();
        let mut all = Self { tape, written, is_source: |_| false, values };
        if let Some(outermost) = loops.first() {
            while all.spread(&outermost.head) | all.spread(&outermost.body) {}
        }
        all
    }

    /// Whether an expression does.
    pub(super) fn has(&self, id: ExprId) -> bool {
        let function = self.tape.function;
        let mut has = false;
        for_each_expr(function, id, &mut |id| {
            has |= (self.is_source)(&function.exprs[id].kind)
                || function.local(id).is_some_and(|local| self.values.contains(&local));
            if let Class::Load(pointer) = function.class(id) {
                has |= self.written.contains(self.tape.arrays.memory(function, pointer));
            }
        });
        has
    }

    /// Adds values; returns whether there are new ones.
    fn spread(&mut self, list: &List) -> bool {
        let mut changed = false;
        for node in list {
            match node {
                Node::Define { to, value, .. } => changed |= self.has(*value) && self.values.insert(*to),
                Node::Unrepeatable { to, .. } => changed |= self.values.insert(*to),
                Node::Exchange(exchange) => {
                    let differs = exchange.operands().into_iter().any(|operand| self.has(operand));
                    changed |= differs && self.values.insert(exchange.to);
                }
                // Its function may use the index of the thread.
                Node::Call(call) => {
                    for &to in &call.results {
                        changed |= self.values.insert(to);
                    }
                }
                Node::Store(_) | Node::Add(_) | Node::Barrier { .. } => {}
                Node::If(branch) => {
                    changed |= self.spread(&branch.then) | self.spread(&branch.otherwise);
                    let differs = self.has(branch.cond);
                    for join in &branch.joins {
                        let has = differs || self.values.contains(&join.then) || self.values.contains(&join.otherwise);
                        changed |= has && self.values.insert(join.to);
                    }
                }
                Node::Loop(repeat) => {
                    changed |= self.spread(&repeat.head) | self.spread(&repeat.body);
                    let differs = self.has(repeat.exit);
                    for carried in &repeat.carried {
                        let has = differs
                            || self.values.contains(&carried.next)
                            || carried.init.is_some_and(|init| self.values.contains(&init));
                        changed |= has && self.values.insert(carried.header);
                    }
                }
            }
        }
        changed
    }
}

/// Whether it is the index of a thread, a lane, or another value that differs in a block.
pub(super) fn differs_in_block(kind: &ExprKind) -> bool {
    let Class::Leaf(Leaf::Special(register)) = kind.class() else { return false };
    match register {
        SpecialRegister::BlockIdx(_)
        | SpecialRegister::BlockDim(_)
        | SpecialRegister::GridDim(_)
        | SpecialRegister::WarpSize
        | SpecialRegister::DynamicSharedBytes => false,
        SpecialRegister::ThreadIdx(_) | SpecialRegister::LaneId | SpecialRegister::OfRow(_) => true,
    }
}

/// Refuses barriers that not all threads of a block may reach, as far as the compiler sees: both sweeps wait there.
pub(super) fn check_barriers(tape: Tape<'_>, written: &Written, list: &List) -> Result<(), Diagnostic> {
    in_loops(list, None)?;
    let has_barrier = has_barrier(list, Some(Barrier::Block));
    if has_barrier { in_list(&Dependents::of_threads(tape, written, list), list, None) } else { Ok(()) }
}

/// Refuses a barrier under a condition that may differ.
fn reached(under: Option<Span>, span: Span) -> Result<(), Diagnostic> {
    let Some(condition) = under else { return Ok(()) };
    let help = "let all threads of the block reach the barrier: put what depends on the thread's index (a guard, instead \
                of a `return`) around the accesses before and after it";
    let refusal = unsupported(span, "a barrier under a condition that may differ in the block", help);
    Err(refusal.also(condition, "this condition"))
}

/// Refuses barriers of a part of a warp in loops that other lanes may run, too: a reversed iteration begins with one more.
/// `around` is how many lists are around this one, up to the outermost loop.
fn in_loops(list: &List, around: Option<usize>) -> Result<(), Diagnostic> {
    for node in list {
        match node {
            Node::Barrier { scope: Barrier::Warp(mask), span, .. } => {
                if *mask != Barrier::ALL && around.is_some_and(|around| around > 0) {
                    let what = "a barrier of a part of a warp under a condition or a loop in a loop";
                    let help = "put the condition around the loop, and the barrier directly in one loop, or let all \
                                lanes of the warp reach `cuda.syncwarp()` without a mask";
                    return Err(unsupported(*span, what, help));
                }
            }
            Node::Barrier { scope: Barrier::Block, .. }
            | Node::Define { .. }
            | Node::Unrepeatable { .. }
            | Node::Exchange(_)
            | Node::Call(_)
            | Node::Store(_)
            | Node::Add(_) => {}
            Node::If(branch) => {
                let around = around.map(|around| around + 1);
                in_loops(&branch.then, around)?;
                in_loops(&branch.otherwise, around)?;
            }
            Node::Loop(repeat) => {
                let around = Some(around.map_or(0, |around| around + 1));
                in_loops(&repeat.head, around)?;
                in_loops(&repeat.body, around)?;
            }
        }
    }
    Ok(())
}

fn in_list(differing: &Dependents<'_>, list: &List, under: Option<Span>) -> Result<(), Diagnostic> {
    for node in list {
        match node {
            // The lanes of a warp wait for each other in the branches that they all take.
            Node::Barrier { scope: Barrier::Warp(_), .. } => {}
            Node::Barrier { scope: Barrier::Block, span, .. } => reached(under, *span)?,
            Node::Call(call) => {
                if call.event.is_some() {
                    reached(under, call.span)?;
                }
            }
            Node::Define { .. } | Node::Unrepeatable { .. } | Node::Exchange(_) | Node::Store(_) | Node::Add(_) => {}
            Node::If(branch) => {
                let under = if differing.has(branch.cond) { Some(branch.span) } else { under };
                in_list(differing, &branch.then, under)?;
                in_list(differing, &branch.otherwise, under)?;
            }
            Node::Loop(repeat) => {
                let under = if differing.has(repeat.exit) { Some(repeat.span) } else { under };
                in_list(differing, &repeat.head, under)?;
                in_list(differing, &repeat.body, under)?;
            }
        }
    }
    Ok(())
}
