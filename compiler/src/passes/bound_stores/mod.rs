//! Confines a kernel's writes to its arrays: one that lies beside its array does nothing. An array of the host's can then
//! be written where it is.
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
//! `least` and `limit`, `start` and `room` come with the launch, and are the memory of the argument that the pointer leads to,
//! or all there is, of an array that has room behind it. What compares an element's number is a guard like those that
//! programs have: the back end makes it a bound of its loop over the threads. A write that a guard of the kernel's own shows
//! to be inside ([`proven_indices`]) stays as it is.
//!
//! Each pointer that is written must lead to one argument of the kernel ([`roots`]). Where one may lead to several, comes
//! from the program as an address, or is handed to code of another language, nothing is confined; nor where a thread beside
//! its array might wait for ever for what it wrote there ([`store_waits`]). What is possible is found out for every kernel, and
//! done where the request has it.

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

/// What a function needs of its callers, and what it does.
#[derive(Clone, Debug, Default)]
struct Summary {
    /// Places of pointers among its parameters: [`SlotField::BOUNDS`] of each were added, in this order.
    bounded: Vec<usize>,
    /// It has a write that may lie beside its array, or calls a function that has.
    unproven: bool,
    /// Where the pointers among its results lead to: its own parameters' locals stand for what they lead to.
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

/// The functions with confined writes, and whether a write of theirs had to be; `None` where that is not possible.
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

/// The parameters of a function that say where it may write.
#[derive(Default)]
struct Bounds {
    /// For each pointer of a parameter: [`SlotField::BOUNDS`].
    of: BTreeMap<LocalId, [LocalId; 4]>,
    /// Those pointers in the order in which they were asked for.
    order: Vec<LocalId>,
}

impl Bounds {
    /// Those of a pointer of a parameter, which are added where they are not there yet.
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
