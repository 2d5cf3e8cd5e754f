//! Which gradients need no atomic operations.
//!
//! ```text
//! y[i] = a * x[i]       x.adjoint[i] += a * y.adjoint[i]
//! ```
//!
//! Legal if each thread loads an array only at indices at which it also stores to one other array: the kernel has no
//! races, so no two threads store to the same element, and so no two threads load the same element.
//!
//! Profitable always: an atomic operation is never faster than a load and a store.

use std::collections::BTreeSet;

use super::{
    arrays::Memory,
    sums::Tape,
    tape::{List, Node},
};
use crate::{
    analysis::same,
    ir::{Class, ExprId},
};

/// Indices of an element, with the array's parameter.
type Element = (u32, Vec<ExprId>);

/// The arrays whose gradients need no atomic operations, by the number of the parameter.
pub(super) fn plain(tape: Tape<'_>, list: &List) -> Vec<u32> {
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
    fn list(&self, list: &List, stores: &mut Vec<Element>, found: &mut Option<BTreeSet<u32>>) {
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
                Node::Unrepeatable { .. } | Node::Store(_) | Node::Add(_) => {}
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

    fn load(&self, pointer: ExprId, stores: &[Element], found: &mut Option<BTreeSet<u32>>) {
        let indices = self.tape.arrays.indices(self.tape.function, pointer);
        let matches = |(_, stored): &&Element| {
            indices.as_ref().is_some_and(|(_, own)| {
                own.len() == stored.len() && own.iter().zip(stored).all(|(&a, &b)| same(self.tape.function, a, b))
            })
        };
        let here: BTreeSet<u32> = stores.iter().filter(matches).map(|&(param, _)| param).collect();
        *found = Some(match found.take() {
            Some(before) => before.intersection(&here).copied().collect(),
            None => here,
        });
    }
}
