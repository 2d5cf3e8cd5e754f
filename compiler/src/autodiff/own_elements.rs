//! Which gradients need no atomic operations.
//!
//! ```text
//! y[i] = a * x[i]       x.adjoint[i] += a * y.adjoint[i]
//! ```
//!
//! Legal if each thread loads an array only at indices among which are all those of an element of one other array that it
//! stores to, in the same dimensions for all loads, such as `a[i, k]` beside `y[i]`: the kernel has no races, so no two
//! threads store to the same element, and so no two threads load the same element. Two threads may store to an element
//! before and after a barrier. So the stores are all between the same two barriers, where each thread runs them once.
//!
//! A thread that runs a list of statements runs all of it. If the list has two loops whose counters have the same values,
//! the loads of one are beside the stores of the other: `y[k] = x[k] / s` after `s += x[k]` for the same `k`.
//!
//! Profitable always: an atomic operation is never faster than a load and a store.

use std::collections::BTreeSet;

use super::{
    arrays::Memory,
    ranges::SameRange,
    sums::Tape,
    tape::{List, Node, Repeat, for_each_value, has_barrier},
};
use crate::{
    analysis::same,
    ir::{Class, ExprId},
};

/// An element that a thread stores to if it runs a list.
#[derive(Clone)]
struct Element<'a> {
    /// The array's parameter.
    param: u32,
    /// The number of barriers and loops with barriers before the store.
    phase: usize,
    indices: Vec<ExprId>,
    /// The loop of the store, beside a loop of the list.
    range: Option<SameRange<'a>>,
}

/// An array to which a thread stores, the phase, and the dimensions of the loaded array that have the stored element's
/// indices.
type Stored = (u32, usize, Vec<usize>);

/// The arrays whose gradients need no atomic operations, by the number of the parameter.
pub(super) fn plain(tape: Tape<'_>, list: &List) -> Vec<u32> {
    let is_plain = |param: &u32| {
        let mut stored_arrays = None;
        let mut n_barriers = 0;
        let phases: Vec<Option<usize>> = list
            .iter()
            .map(|node| {
                let has_barrier = has_barrier(std::slice::from_ref(node), None);
                n_barriers += usize::from(has_barrier);
                (!has_barrier).then_some(n_barriers)
            })
            .collect();
        Finder { tape, param: *param }.list(list, &phases, &[], &mut stored_arrays);
        stored_arrays.is_some_and(|arrays| !arrays.is_empty())
    };
    tape.activity.loaded.iter().copied().filter(is_plain).collect()
}

struct Finder<'a> {
    tape: Tape<'a>,
    /// The array.
    param: u32,
}

impl<'a> Finder<'a> {
    /// Finds the arrays to which a thread stores wherever it loads an element of the array. `phases` are those of the
    /// nodes, `None` for nodes with barriers; `around` are the stores of the lists around.
    fn list(
        &self,
        list: &'a [Node],
        phases: &[Option<usize>],
        around: &[Element<'a>],
        found: &mut Option<BTreeSet<Stored>>,
    ) {
        let mut stores = around.to_vec();
        for (node, phase) in list.iter().zip(phases) {
            stores.extend(phase.and_then(|phase| self.store(node, phase)));
        }
        for (node, phase) in list.iter().zip(phases) {
            let nested = |inner: &[Node]| vec![*phase; inner.len()];
            match node {
                Node::Define { to, value, .. } => {
                    if let Class::Load(pointer) = self.tape.function.class(*value)
                        && self.tape.arrays.memory(self.tape.function, pointer) == Memory::Param(self.param)
                        && self.tape.activity.is_active(*to)
                    {
                        self.load(pointer, &stores, found);
                    }
                }
                Node::Unrepeatable { .. }
                | Node::Exchange(_)
                | Node::Call(_)
                | Node::Store(_)
                | Node::Add(_)
                | Node::Barrier { .. } => {}
                Node::If(branch) => {
                    self.list(&branch.then, &nested(&branch.then), &stores, found);
                    self.list(&branch.otherwise, &nested(&branch.otherwise), &stores, found);
                }
                Node::Loop(repeat) => {
                    let stores = self.beside(repeat, list, phases, &stores);
                    // The head runs once more than the body.
                    self.list(&repeat.head, &nested(&repeat.head), &stores, found);
                    self.list(&repeat.body, &nested(&repeat.body), &stores, found);
                }
            }
        }
    }

    fn store(&self, node: &Node, phase: usize) -> Option<Element<'a>> {
        let Node::Store(write) = node else { return None };
        let (param, indices) = self.tape.arrays.indices(self.tape.function, write.pointer)?;
        Some(Element { param, phase, indices, range: None })
    }

    /// The stores of a thread that runs a loop of a list: those around it, whose indices have the same values in the
    /// loop, and those of other loops of the list over the same range.
    fn beside(
        &self,
        repeat: &'a Repeat,
        list: &'a [Node],
        phases: &[Option<usize>],
        around: &[Element<'a>],
    ) -> Vec<Element<'a>> {
        let own = repeat.defined();
        let is_known = |element: &&Element<'a>| {
            let mut is_known = true;
            for &index in &element.indices {
                for_each_value(self.tape.function, index, &mut |value| is_known &= !own.contains(&value));
            }
            is_known
        };
        let mut stores: Vec<Element<'a>> = around.iter().filter(is_known).cloned().collect();
        for (node, phase) in list.iter().zip(phases) {
            let (Node::Loop(other), Some(phase)) = (node, *phase) else { continue };
            if other.id != repeat.id
                && let Some(range) = SameRange::of(self.tape, repeat, other)
            {
                let elements = other.body.iter().filter_map(|node| self.store(node, phase));
                stores.extend(elements.map(|element| Element { range: Some(range.clone()), ..element }));
            }
        }
        stores
    }

    fn load(&self, pointer: ExprId, stores: &[Element<'a>], found: &mut Option<BTreeSet<Stored>>) {
        let indices = self.tape.arrays.indices(self.tape.function, pointer);
        let own = indices.map(|(_, own)| own).unwrap_or_default();
        let here: BTreeSet<Stored> = stores
            .iter()
            .filter_map(|element| Some((element.param, element.phase, self.dimensions(&own, element)?)))
            .collect();
        *found = Some(match found.take() {
            Some(before) => before.intersection(&here).cloned().collect(),
            None => here,
        });
    }

    /// The dimensions in which a load has the indices of a stored element, if it has all of them.
    fn dimensions(&self, own: &[ExprId], stored: &Element<'a>) -> Option<Vec<usize>> {
        let mut dimensions: Vec<usize> = Vec::new();
        for &index in &stored.indices {
            let is_free = |dimension: &usize| !dimensions.contains(dimension);
            let is_same = |&dimension: &usize| match &stored.range {
                Some(range) => range.has_same(own[dimension], index),
                None => same(self.tape.function, own[dimension], index),
            };
            let found = (0..own.len()).filter(is_free).find(is_same)?;
            dimensions.push(found);
        }
        Some(dimensions)
    }
}
