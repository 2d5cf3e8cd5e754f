//! The types of a function, found by walking it dry.
//!
//! A walk types a function from top to bottom with what is known of its loops: the variables at their heads. What it
//! finds at the end of a turn is joined to that, and the function is walked again until nothing changes. A join only
//! ever makes a type more general and there are few steps from the least type to the most general one, so this ends.
//! Calls of device functions give a type, found in the same way; the functions are lowered when the walk for real
//! calls them.

use std::{collections::BTreeMap, sync::Arc};

use super::{
    env::{self, Env},
    function::{same_function, walk_device},
    lowerer::{FnLowerer, Lowerer},
    promote,
    ty::Ty,
};
use crate::{
    ir::{Builder, Function, FunctionKind},
    request::FunctionDef,
    source::Span,
};

/// Walks after which something is wrong with a join: each widens the type of at least one variable.
const MOST_WALKS: usize = 20_000;

/// The variables at a loop's head and after it.
#[derive(Clone, Debug)]
pub(super) struct LoopTypes {
    pub(super) header: Env,
    pub(super) exit: Env,
}

/// The types of a function's loops, by their places.
pub(super) type Loops = BTreeMap<Span, LoopTypes>;

/// A device function whose types are known.
#[derive(Debug)]
pub(super) struct Typed {
    pub(super) def: Arc<FunctionDef>,
    pub(super) args: Vec<Ty>,
    pub(super) loops: Loops,
    /// `Ty::Bottom` if it has errors, which the walk for real reports.
    pub(super) returns: Ty,
}

/// Walks a function dry until its types do not change, and gives those of its loops. `walk` declares the parameters
/// and walks the body.
pub(super) fn find_types(cx: &mut Lowerer, def: &Arc<FunctionDef>, mut walk: impl FnMut(&mut FnLowerer<'_>)) -> Loops {
    let mut loops = Loops::new();
    for _ in 0..MOST_WALKS {
        let function = Function::new("", FunctionKind::Device, def.ast.span);
        let mut lowerer = FnLowerer::new(cx, Arc::clone(def), Builder::dry(function), loops);
        walk(&mut lowerer);
        let changed = lowerer.changed;
        loops = lowerer.known_loops;
        if !changed {
            return loops;
        }
    }
    cx.fault(def.ast.span, "the types of a function do not settle");
    loops
}

impl FnLowerer<'_> {
    /// What is known of the loop at a place: the variables at its head, where `entry` leads, and those after it.
    pub(super) fn loop_types(&self, place: Span, entry: &Env) -> LoopTypes {
        match self.known_loops.get(&place) {
            Some(known) => LoopTypes { header: env::join(&[entry, &known.header]), exit: known.exit.clone() },
            None => LoopTypes { header: entry.clone(), exit: None },
        }
    }

    /// Compares what a walk of a loop used with what it found.
    pub(super) fn learn_loop(&mut self, place: Span, used: &LoopTypes, found: LoopTypes) {
        let stable = env::same(&used.header, &found.header);
        if self.is_dry() {
            self.changed |= !stable;
            self.known_loops.insert(place, found);
        } else if (!stable || !env::same(&used.exit, &found.exit)) && !self.cx.explained() {
            self.cx.fault(self.at(place), "the types of a loop are not what they were found to be");
        }
    }

    /// The type that a device function gives for argument types; nothing is known of recursive calls.
    pub(super) fn result_type(&mut self, def: &Arc<FunctionDef>, args: &[Ty]) -> Ty {
        if self.is_active(def) {
            return Ty::Bottom;
        }
        self.cx.active.push(Arc::clone(&self.def));
        let index = typed(self.cx, def, args);
        self.cx.active.pop();
        self.cx.typed[index].returns.clone()
    }

    /// Whether a call of a function from here is recursive.
    pub(super) fn is_active(&self, def: &Arc<FunctionDef>) -> bool {
        same_function(&self.def, def) || self.cx.active.iter().any(|active| same_function(active, def))
    }
}

/// The types of a device function for argument types, as an index into [`Lowerer::typed`].
pub(super) fn typed(cx: &mut Lowerer, def: &Arc<FunctionDef>, args: &[Ty]) -> usize {
    if let Some(known) = cx.typed.iter().position(|known| Arc::ptr_eq(&known.def, def) && known.args == args) {
        return known;
    }
    let mut returns = Ty::Bottom;
    let loops = find_types(cx, def, |lowerer| {
        let found = walk_device(lowerer, args, None);
        returns = joined_returns(&found).map_or(Ty::None, |(ty, _)| ty);
    });
    if let Some(declared) = super::function::declared_result(def, args) {
        returns = declared;
    }
    if matches!(returns, Ty::Conflict(_)) {
        returns = Ty::Bottom;
    }
    cx.typed.push(Typed { def: Arc::clone(def), args: args.to_vec(), loops, returns });
    cx.typed.len() - 1
}

/// The type that holds what all `return`s give, and where the first one is.
pub(super) fn joined_returns(found: &[(Ty, Span)]) -> Option<(Ty, Span)> {
    let mut found = found.iter().map(|(ty, span)| (ty.widened(), *span));
    let first = found.next()?;
    Some(found.fold(first, |(before, at), (ty, span)| (promote::join(&before, at, &ty, span), at)))
}
