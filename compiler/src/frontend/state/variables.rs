//! The names and the locals of a function's variables.

use std::collections::{BTreeMap, BTreeSet};

use crate::{
    frontend::ty::{ArrayTy, Ty},
    ir::LocalId,
    request::FunctionDef,
    syntax::{assigns_from_inside, bound_names},
};

/// Sets of locals, one for each type that a variable has.
pub(in crate::frontend) type Stored = Vec<(Ty, Vec<LocalId>)>;

/// The locals that hold a function's variables.
#[derive(Debug, Default)]
pub(in crate::frontend) struct Variables {
    /// The locals of each variable.
    pub(in crate::frontend) storage: BTreeMap<String, Stored>,
    /// The extents of arrays in variables, by the locals that hold them: a constant, if all assignments give the same.
    pub(in crate::frontend) extents: BTreeMap<LocalId, Option<i64>>,
    /// Locals that may be read before they are assigned.
    pub(in crate::frontend) zeroed: BTreeSet<LocalId>,
    /// Those of them that point to strings.
    pub(in crate::frontend) zeroed_strings: BTreeMap<LocalId, ArrayTy>,
}

/// The names of a function.
#[derive(Debug)]
pub(in crate::frontend) struct Names {
    /// Names that the body binds.
    pub(in crate::frontend) assigned: BTreeSet<String>,
    /// The names that the function binds, including its parameters.
    pub(in crate::frontend) bound: BTreeSet<String>,
    /// The variables that an earlier assignment has assigned.
    pub(in crate::frontend) given: BTreeSet<String>,
    /// Names of the enclosing function that an inner function assigns: they are parameters of it, and it returns them
    /// after its result.
    pub(in crate::frontend) writes: Vec<String>,
    /// Whether a call can assign to a name of this function: an inner function's `nonlocal`.
    pub(in crate::frontend) calls_bind: bool,
}

impl Names {
    pub(in crate::frontend) fn of(def: &FunctionDef, writes: Vec<String>) -> Self {
        let assigned = bound_names(&def.ast.body);
        let mut bound = assigned.clone();
        bound.extend(def.ast.params.iter().map(|param| param.name.clone()));
        Self { assigned, bound, given: BTreeSet::new(), writes, calls_bind: assigns_from_inside(&def.ast) }
    }
}
