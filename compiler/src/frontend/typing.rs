//! The types of a function, found by walking it dry.
//!
//! A loop is walked again, with what the ends of its turns gave the variables at its head, until that is what it was
//! walked with; then comes what follows the loop, which so sees final types only. A join makes a type more general and
//! there are few steps from the least type to the most general one, so this ends. Calls of device functions give a
//! type, found in the same way; the functions are lowered when the walk for real calls them.

use std::{collections::BTreeMap, sync::Arc};

use super::{
    env::{self, Env},
    function::{same_function, walk_device},
    lowerer::{FnLowerer, Lowerer},
    object::Static,
    promote,
    ty::Ty,
};
use crate::{
    ir::{Builder, Function, FunctionKind},
    request::FunctionDef,
    source::Span,
};

/// Walks of a loop after which something is wrong with a join: each makes the type of at least one variable wider.
const MOST_WALKS: usize = 20_000;

/// So many walks may also make a type less general: `x + 1` of a uint8 that turns out to be an int16 is no uint64. From
/// then on types only grow.
const FREE_WALKS: usize = 24;

/// The variables before a loop, at its head and after it.
#[derive(Clone, Debug)]
pub(super) struct LoopTypes {
    pub(super) entry: Env,
    pub(super) header: Env,
    pub(super) exit: Env,
}

/// The types of a function's loops, by their places, and by the items that the bodies around them are for where tuples
/// are unrolled.
pub(super) type Loops = BTreeMap<(Span, Vec<usize>), LoopTypes>;

/// A device function whose types are known.
#[derive(Debug)]
pub(super) struct Typed {
    pub(super) def: Arc<FunctionDef>,
    pub(super) args: Vec<Ty>,
    pub(super) loops: Loops,
    /// `Ty::Bottom` if it has errors, which the walk for real reports.
    pub(super) returns: Ty,
    /// Something in it may end the thread, which its callers must be told.
    pub(super) may_end_thread: bool,
}

/// Walks a function dry, and gives the types of its loops. `walk` declares the parameters and walks the body.
pub(super) fn find_types(cx: &mut Lowerer, def: &Arc<FunctionDef>, walk: impl FnOnce(&mut FnLowerer<'_>)) -> Loops {
    let function = Function::new("", FunctionKind::Device, def.ast.span);
    let mut lowerer = FnLowerer::new(cx, Arc::clone(def), Builder::dry(function), Loops::new());
    walk(&mut lowerer);
    lowerer.known_loops
}

impl FnLowerer<'_> {
    /// What a loop is walked with first: what the dry walks found or, in one, what they found for the same entry.
    pub(super) fn loop_types(&self, place: Span, entry: &Env) -> LoopTypes {
        match self.known_loops.get(&(place, self.unrolled.clone())) {
            Some(known) if !self.is_dry() || env::same(&known.entry, entry) => known.clone(),
            _ => LoopTypes { entry: entry.clone(), header: entry.clone(), exit: None },
        }
    }

    /// Compares what a loop was walked with to what the walk found: what it must be walked with again, if it must.
    pub(super) fn next_types(
        &mut self,
        place: Span,
        walks: usize,
        used: &LoopTypes,
        mut found: LoopTypes,
    ) -> Option<LoopTypes> {
        let wider = env::join(&[&used.header, &found.header]);
        if !self.is_dry() {
            let stable = env::same(&used.header, &wider) && env::same(&used.exit, &found.exit);
            if !stable && !self.cx.explained() {
                self.cx.fault(self.at(place), "the types of a loop are not what they were found to be");
            }
            return None;
        }
        if walks >= FREE_WALKS {
            found.header = wider;
        }
        if walks >= MOST_WALKS {
            self.cx.fault(self.at(place), "the types of a loop do not settle");
            return None;
        }
        let stable = env::same(&used.header, &found.header);
        self.known_loops.insert((place, self.unrolled.clone()), found.clone());
        (!stable).then_some(found)
    }

    /// The type that a device function gives for argument types, and whether it may end the thread; nothing is known
    /// of recursive calls.
    pub(super) fn result_type(&mut self, def: &Arc<FunctionDef>, args: &[Ty]) -> (Ty, bool) {
        if self.is_active(def) {
            return (Ty::Bottom, false);
        }
        self.cx.active.push(Arc::clone(&self.def));
        let index = typed(self.cx, def, args);
        self.cx.active.pop();
        let typed = &self.cx.typed[index];
        (typed.returns.clone(), typed.may_end_thread)
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
    let (mut returns, mut may_end_thread) = (Ty::Bottom, false);
    let loops = find_types(cx, def, |lowerer| {
        let found = walk_device(lowerer, args, None, false);
        may_end_thread = lowerer.ends_thread;
        returns = joined_returns(&found).map_or(Ty::Static(Static::None), |(ty, _)| ty);
    });
    if let Some(declared) = super::function::declared_result(def, args) {
        returns = declared;
    }
    if matches!(returns, Ty::Conflict(_)) {
        returns = Ty::Bottom;
    }
    cx.typed.push(Typed { def: Arc::clone(def), args: args.to_vec(), loops, returns, may_end_thread });
    cx.typed.len() - 1
}

/// The type that holds what all `return`s give, and where the first one is.
pub(super) fn joined_returns(found: &[(Ty, Span)]) -> Option<(Ty, Span)> {
    let mut found = found.iter().map(|(ty, span)| (ty.widened(), *span));
    let first = found.next()?;
    Some(found.fold(first, |(before, at), (ty, span)| (promote::join(&before, at, &ty, span), at)))
}
