//! Bounds-checks a kernel's stores: an out-of-bounds store does nothing. A host array can then be written in place.
//!
//! ```text
//! store $x.data[$i] = $v        if $i < $x.limit {
//!                                   store $x.data[$i] = $v
//!                               }
//!
//! store $row.data[$j] = $v      $t = $row.data[$j]
//!                               if uint64($t) - $x.start <= $x.room - 8 {
//!                                   store $t = $v
//!                               }
//! ```
//!
//! The launch passes `least`, `limit`, `start` and `room`: the bounds of the argument's memory, or of all memory if the
//! array has room after it. The comparison of an element's number is a guard like those in programs: the back end moves
//! it into the bounds of its thread loop. A store that a guard of the kernel proves to be in bounds
//! ([`proven_indices`]) is not changed.
//!
//! Each stored-to pointer must point into one argument of the kernel ([`roots`]). If one may point into several, is an
//! address from the program, or is passed to code of another language, the pass changes nothing; nor if a thread with
//! an out-of-bounds store might wait forever for the stored value ([`store_waits`]). Whether the pass is possible is
//! computed for every kernel; it is applied if the request requires it.

mod element_addresses;
mod proven_indices;
mod roots;
mod store_waits;
mod stores;

use std::collections::BTreeMap;

use weft_artifact::{Scalar, SlotField, SlotSource};

use self::{
    roots::{Root, Ties},
    stores::Writer,
};
use crate::{
    analysis::WaitAnalysis,
    ir::{Circles, Function, FunctionKind, Local, LocalId, LocalKind, Module, Type},
};

/// The bounds that a function needs from its callers, and its effects.
#[derive(Clone, Debug, Default)]
struct Summary {
    /// Indices of the pointers among its parameters for which [`SlotField::BOUNDS`] were added, in this order.
    bounded: Vec<usize>,
    /// Whether it, or one of its callees, has a store that may be out of bounds.
    unproven: bool,
    /// The memory that the pointers among its results point into, in terms of its own parameters.
    results: Vec<Root>,
    /// The locals of its parameters.
    params: Vec<LocalId>,
}

/// Runs the pass.
pub(super) fn run(module: &mut Module) {
    let circles = Circles::of(module);
    let bounded_stores = if circles.is_empty() { bound_stores(module) } else { None };
    module.can_bound_stores = bounded_stores.is_some_and(|(functions, unproven)| {
        let waits = unproven && WaitAnalysis::of(module, &circles).in_module(module);
        if module.bounded_stores && !waits {
            for ((_, function), bounded_stores) in module.functions.iter_mut().zip(functions) {
                *function = bounded_stores;
            }
        }
        !waits
    });
}

/// The functions with bounds-checked stores, and whether any store needed a check; `None` if a store cannot be checked.
fn bound_stores(module: &Module) -> Option<(Vec<Function>, bool)> {
    let ties = Ties::of_module(module);
    let mut summaries: Vec<Summary> = Vec::new();
    let mut functions = Vec::new();
    for ((_, function), ties) in module.functions.iter().zip(ties) {
        if function.kind == FunctionKind::Export {
            return None;
        }
        let (function, summary) = Writer::new(module, function.clone(), ties, &summaries)?.bound_stores()?;
        functions.push(function);
        summaries.push(summary);
    }
    let unproven = summaries.iter().any(|summary| summary.unproven);
    Some((functions, unproven))
}

/// The parameters of a function with the bounds of its stores.
#[derive(Default)]
struct Bounds {
    /// For each pointer parameter: its [`SlotField::BOUNDS`].
    of: BTreeMap<LocalId, [LocalId; 4]>,
    /// Those pointers, in the order in which the bounds were requested.
    order: Vec<LocalId>,
}

impl Bounds {
    /// The bounds of a pointer parameter, which are added on first use.
    fn get(&mut self, function: &mut Function, data: LocalId) -> [LocalId; 4] {
        if let Some(known) = self.of.get(&data) {
            return *known;
        }
        let place = function.params.iter().position(|param| *param == data);
        let source = place.and_then(|place| function.slots.get(place)).cloned();
        let name = function.locals[data].name.trim_end_matches(".data").to_owned();
        let made = SlotField::BOUNDS.map(|field| {
            let ty = Type::Scalar(field.bound_type().unwrap_or(Scalar::U64));
            let local = Local::new(format!("{name}{}", field.suffix()), LocalKind::Part, ty);
            let local = function.locals.push(local);
            function.params.push(local);
            if let Some(SlotSource::Argument { param, path, .. }) = &source {
                function.slots.push(SlotSource::Argument { param: *param, path: path.clone(), field });
            }
            local
        });
        self.of.insert(data, made);
        self.order.push(data);
        made
    }
}
