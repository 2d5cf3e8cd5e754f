//! Whether another execution of an iteration loads the same elements of shared and local arrays as the first one did.
//!
//! The reverse sweep executes the iterations of a loop again, from the last one to the first. A load of an array that
//! the kernel declares then finds its old value if
//!
//! - each write of the array that precedes it in the loops around it writes the same elements in each iteration: its
//!   address and its conditions do not change. The element was then written in this iteration, or by no iteration;
//! - each other write, in these loops or after them, is to the address of one that precedes the load in each iteration.
//!
//! A load from an array of the kernel's arguments that the kernel writes finds its old value if no write of the element
//! precedes it: the adjoint kernel does not write the array, and the launch passes the old contents.

use std::collections::{BTreeMap, BTreeSet};

use super::{
    activity::Written,
    arrays::Memory,
    dependence::Dependents,
    sums::Tape,
    tape::{Barrier, List, Node, Repeat, Values, Write, has_barrier},
};
use crate::{
    analysis::same,
    ir::{Class, ExprId, LocalId},
};

/// A place in a tape.
#[derive(Clone, Debug)]
struct Place {
    /// Its number in the order of the tape.
    at: usize,
    /// The loops and branches around it, from the outermost one on.
    path: Vec<Around>,
}

/// A loop or an arm of a branch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Around {
    /// The loop with this number.
    Loop(usize, ExprId),
    /// An arm of a branch with this condition.
    Arm(ExprId, bool),
}

/// A write, and where it is.
struct Writing<'a> {
    memory: Memory,
    write: &'a Write,
    is_atomic: bool,
    place: Place,
}

/// The loads and writes of a tape.
pub(super) struct Contents<'a> {
    tape: Tape<'a>,
    loads: BTreeMap<LocalId, (Memory, Place)>,
    writes: Vec<Writing<'a>>,
    loops: BTreeMap<usize, &'a Repeat>,
    /// Arguments have their contents from before the launch.
    knows_old: bool,
    /// Arrays of arguments to which the adjoint kernel repeats the kernel's writes.
    rewritten: BTreeSet<Memory>,
    /// By the number of a loop: the values that differ in its iterations or those of the loops around it.
    differing: BTreeMap<usize, Dependents<'a>>,
}

impl<'a> Contents<'a> {
    /// Finds them, where arguments have their old contents or not, for arrays whose writes the adjoint kernel repeats.
    pub(super) fn of(
        tape: Tape<'a>,
        written: &'a Written,
        list: &'a List,
        (has_old_contents, rewritten): (bool, BTreeSet<Memory>),
    ) -> Self {
        let mut all = Self {
            tape,
            knows_old: has_old_contents,
            rewritten,
            loads: BTreeMap::new(),
            writes: Vec::new(),
            loops: BTreeMap::new(),
            differing: BTreeMap::new(),
        };
        all.list(list, &mut 0, &mut Vec::new());
        for node in all.writes.iter().filter(|write| write.memory.is_own() || all.rewritten.contains(&write.memory)) {
            let mut around = Vec::new();
            for id in node.place.path.iter().filter_map(|around| around.of_loop()) {
                around.push(all.loops[&id]);
                all.differing.entry(id).or_insert_with(|| Dependents::of_iterations(tape, written, &around));
            }
        }
        all
    }

    fn list(&mut self, list: &'a List, at: &mut usize, path: &mut Vec<Around>) {
        for node in list {
            *at += 1;
            let place = || Place { at: *at, path: path.clone() };
            match node {
                Node::Define { to, value, .. } => {
                    if let Class::Load(pointer) = self.tape.function.class(*value) {
                        let memory = self.tape.arrays.memory(self.tape.function, pointer);
                        self.loads.insert(*to, (memory, place()));
                    }
                }
                Node::Store(write) | Node::Add(write) => {
                    let memory = self.tape.arrays.memory(self.tape.function, write.pointer);
                    let is_atomic = matches!(node, Node::Add(_));
                    self.writes.push(Writing { memory, write, is_atomic, place: place() });
                }
                Node::Unrepeatable { .. } | Node::Exchange(_) | Node::Call(_) | Node::Barrier { .. } => {}
                Node::If(branch) => {
                    for (arm, is_then) in [(&branch.then, true), (&branch.otherwise, false)] {
                        path.push(Around::Arm(branch.cond, is_then));
                        self.list(arm, at, path);
                        path.pop();
                    }
                }
                Node::Loop(repeat) => {
                    self.loops.insert(repeat.id, repeat);
                    path.push(Around::Loop(repeat.id, repeat.exit));
                    self.list(&repeat.head, at, path);
                    self.list(&repeat.body, at, path);
                    path.pop();
                }
            }
        }
    }

    /// Whether the contents of an array change while the adjoint kernel runs.
    pub(super) fn changes(&self, memory: Memory) -> bool {
        memory.is_own() || self.rewritten.contains(&memory)
    }

    /// Those of some values that another execution of an iteration would load wrong.
    pub(super) fn lost(&self, repeat: &Repeat, values: &Values) -> Vec<LocalId> {
        let is_lost = |value: &&LocalId| {
            self.loads.get(*value).is_some_and(|(memory, place)| {
                self.changes(*memory)
                    && place.depth_in(repeat.id).is_some_and(|depth| !self.is_kept(*memory, place, depth))
            })
        };
        values.iter().filter(is_lost).copied().collect()
    }

    /// Whether an iteration of the loop at a depth of a load's path loads the same value again.
    fn is_kept(&self, memory: Memory, load: &Place, depth: usize) -> bool {
        self.writes.iter().filter(|write| write.memory == memory).all(|write| {
            let common = load.common(&write.place);
            let deeper = load.path[..common].iter().rposition(|around| around.of_loop().is_some());
            let precedes = write.place.at < load.at && deeper.is_none_or(|at| at <= depth);
            let in_loop = load.path[..common.min(depth + 1)].iter().any(|around| around.of_loop().is_some());
            // Another thread may run no iteration of a loop without barriers.
            let together = common > depth
                || matches!(memory, Memory::Local(_))
                || self.has_barrier(&load.path[depth], Some(Barrier::Block));
            let follows_other = |other: &Writing<'_>| {
                together
                    && other.memory == memory
                    && !other.is_atomic
                    && other.place.at < load.at.min(write.place.at)
                    && other.place.path == load.path[..=depth]
                    && same(self.tape.function, other.write.pointer, write.write.pointer)
            };
            (!in_loop || self.writes_same(write, common, depth))
                && (precedes || !write.is_atomic && self.writes.iter().any(follows_other))
        })
    }

    /// Whether a loop has barriers: with those of the block, all its threads run the same iterations.
    fn has_barrier(&self, around: &Around, of: Option<Barrier>) -> bool {
        let repeat = around.of_loop().and_then(|id| self.loops.get(&id));
        repeat.is_some_and(|repeat| has_barrier(&repeat.body, of))
    }

    /// Whether a write in a loop writes the same elements in each iteration of the loops that it has in common with a
    /// load, down to the one at a depth of the load's path.
    fn writes_same(&self, write: &Writing<'_>, common: usize, depth: usize) -> bool {
        let innermost = write.place.path[..common.min(depth + 1)].iter().rev().find_map(|around| around.of_loop());
        let Some(differing) = innermost.and_then(|id| self.differing.get(&id)) else { return false };
        let conditions = write.place.path[common..].iter().map(|around| match *around {
            Around::Loop(_, condition) | Around::Arm(condition, _) => condition,
        });
        !write.is_atomic && !differing.has(write.write.pointer) && !conditions.into_iter().any(|id| differing.has(id))
    }

    /// Whether a load is in the body of a loop, but not in a nested one.
    pub(super) fn is_directly_in(&self, repeat: &Repeat, value: LocalId) -> bool {
        self.loads.get(&value).is_some_and(|(_, place)| {
            let innermost = place.path.iter().rev().find_map(|around| around.of_loop());
            innermost == Some(repeat.id)
        })
    }

    /// Whether a load from an argument's array precedes all writes of its element, by all threads.
    pub(super) fn is_first(&self, value: LocalId) -> bool {
        let Some((memory @ Memory::Param(param), load)) = self.loads.get(&value) else { return false };
        let is_distinct = |around: &Around| {
            let Some(repeat) = around.of_loop().and_then(|id| self.loops.get(&id)) else { return true };
            !self.has_barrier(around, None) && self.tape.writes_distinct(repeat)
        };
        let writes = self.writes.iter().filter(|write| write.memory == *memory);
        self.knows_old
            && !self.changes(*memory)
            && self.tape.arrays.has_adjoint(*param)
            && self.tape.activity.is_active(value)
            && writes.into_iter().all(|write| {
                let common = load.common(&write.place);
                !write.is_atomic && write.place.at > load.at && load.path[..common].iter().all(is_distinct)
            })
    }
}

impl Around {
    fn of_loop(self) -> Option<usize> {
        match self {
            Self::Loop(id, _) => Some(id),
            Self::Arm(..) => None,
        }
    }
}

impl Place {
    /// The index of a loop in the path.
    fn depth_in(&self, id: usize) -> Option<usize> {
        self.path.iter().position(|around| around.of_loop() == Some(id))
    }

    /// The number of loops and branches that two places have in common, from the outermost one on.
    fn common(&self, other: &Self) -> usize {
        self.path.iter().zip(&other.path).take_while(|(one, other)| one == other).count()
    }
}
