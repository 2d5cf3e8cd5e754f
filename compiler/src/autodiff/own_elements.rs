//! Which gradients need no atomic operations.
//!
//! ```text
//! y[i] = a * x[i]       x.adjoint[i] += a * y.adjoint[i]
//! ```
//!
//! Legal if each thread loads an array only at indices among which are all those of an element of one other array that it
//! stores to, in the same dimensions for all loads, such as `a[i, k]` beside `y[i]`: the kernel has no races, so no two
//! threads store to the same element, and so no two threads load the same element. It has no barriers either: two threads
//! may store to an element before and after one.
//!
//! Profitable always: an atomic operation is never faster than a load and a store.

use std::collections::BTreeSet;

use super::{
    arrays::Memory,
    sums::Tape,
    tape::{List, Node, has_barrier},
};
use crate::{
    analysis::same,
    ir::{Class, ExprId},
};

/// Indices of an element, with the array's parameter.
type Element = (u32, Vec<ExprId>);

/// An array to which a thread stores, and the dimensions of the loaded array that have the stored element's indices.
type Stored = (u32, Vec<usize>);

/// The arrays whose gradients need no atomic operations, by the number of the parameter.
pub(super) fn plain(tape: Tape<'_>, list: &List) -> Vec<u32> {
    if has_barrier(list, None) {
        return Vec::new();
    }
    let is_plain = |param: &u32| {
        let mut stored_arrays = None;
        let finder = Finder { tape, param: *param };
        finder.list(list, &mut Vec::new(), &mut stored_arrays);
        stored_arrays.is_some_and(|arrays| !arrays.is_empty())
    };
    tape.activity.loaded.iter().copied().filter(is_plain).collect()
}

struct Finder<'a> {
    tape: Tape<'a>,
    /// The array.
    param: u32,
}

impl Finder<'_> {
    /// Finds the arrays to which a thread stores wherever it loads an element of the array. `stores` are those of the
    /// lists around: a thread that runs a list runs all of it.
    fn list(&self, list: &List, stores: &mut Vec<Element>, found: &mut Option<BTreeSet<Stored>>) {
        let outer = stores.len();
        for node in list {
            if let Node::Store(write) = node {
                stores.extend(self.tape.arrays.indices(self.tape.function, write.pointer));
            }
        }
        for node in list {
            match node {
                Node::Define { to, value, .. } => {
                    if let Class::Load(pointer) = self.tape.function.class(*value)
                        && self.tape.arrays.memory(self.tape.function, pointer) == Memory::Param(self.param)
                        && self.tape.activity.is_active(*to)
                    {
                        self.load(pointer, stores, found);
                    }
                }
                Node::Unrepeatable { .. }
                | Node::Exchange(_)
                | Node::Call(_)
                | Node::Store(_)
                | Node::Add(_)
                | Node::Barrier { .. } => {}
                Node::If(branch) => {
                    self.list(&branch.then, stores, found);
                    self.list(&branch.otherwise, stores, found);
                }
                Node::Loop(repeat) => {
                    // The head runs once more than the body.
                    self.list(&repeat.head, stores, found);
                    self.list(&repeat.body, stores, found);
                }
            }
        }
        stores.truncate(outer);
    }

    fn load(&self, pointer: ExprId, stores: &[Element], found: &mut Option<BTreeSet<Stored>>) {
        let indices = self.tape.arrays.indices(self.tape.function, pointer);
        let own = indices.map(|(_, own)| own).unwrap_or_default();
        let here: BTreeSet<Stored> =
            stores.iter().filter_map(|(param, stored)| Some((*param, self.dimensions(&own, stored)?))).collect();
        *found = Some(match found.take() {
            Some(before) => before.intersection(&here).cloned().collect(),
            None => here,
        });
    }

    /// The dimensions in which a load has the indices of a stored element, if it has all of them.
    fn dimensions(&self, own: &[ExprId], stored: &[ExprId]) -> Option<Vec<usize>> {
        let mut dimensions: Vec<usize> = Vec::new();
        for &index in stored {
            let is_free = |dimension: &usize| !dimensions.contains(dimension);
            let same = |&dimension: &usize| same(self.tape.function, own[dimension], index);
            let found = (0..own.len()).filter(is_free).find(same)?;
            dimensions.push(found);
        }
        Some(dimensions)
    }
}
