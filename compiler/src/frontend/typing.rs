//! Type inference for a function, by dry runs of the lowering.
//!
//! The fixpoint iteration of a loop repeats it with the types at its head joined with those at the ends of its
//! iterations, until they no longer change. Only then follow the statements after the loop, which see final types. A
//! join makes a type more general, and the lattice has few levels, so this terminates. A call of a device function
//! gives a type that is inferred in the same way; for recursive functions as for loops. The functions are lowered when
//! the final run calls them.

use std::sync::Arc;

use super::{
    function::{declared_result, traverse_device},
    lowerer::{FnLowerer, Lowerer},
    object::Static,
    promote,
    state::{self, Env, Instance, LoopTable, LoopTypes, MOST_CHANGES, Open, Typed},
    ty::Ty,
};
use crate::{
    ir::{Builder, Function, FunctionKind},
    request::{FunctionDef, Typing},
    source::Span,
};

/// The limit of the fixpoint iteration of a loop. Each pass widens the type of at least one variable, so a loop that
/// reaches the limit indicates a bug in a join.
const MOST_TRAVERSALS: usize = 20_000;

/// The number of passes that may also make a type less general: `x + 1` of a uint8 that becomes an int16 is not a
/// uint64. After that, types only grow.
const FREE_TRAVERSALS: usize = 24;

/// Runs a function dry and returns the types of its loops. `traverse` declares the parameters and lowers the body.
pub(super) fn find_types(
    cx: &mut Lowerer,
    def: &Arc<FunctionDef>,
    traverse: impl FnOnce(&mut FnLowerer<'_>),
) -> LoopTable {
    let function = Function::new("", FunctionKind::Device, def.ast.span);
    let mut lowerer = FnLowerer::new(cx, Arc::clone(def), Builder::dry(function), LoopTable::new());
    traverse(&mut lowerer);
    lowerer.loops.known
}

impl FnLowerer<'_> {
    /// The types with which a loop starts: the result of the dry runs or, in a dry run, the last result for the same
    /// entry types.
    pub(super) fn loop_types(&self, place: Span, entry: &Env) -> LoopTypes {
        match self.loops.types(place) {
            Some(known) if !self.is_dry() || state::same(&known.entry, entry) => known.clone(),
            _ => LoopTypes { entry: entry.clone(), header: entry.clone(), exit: None },
        }
    }

    /// Compares the types at a loop's head before and after a pass. Returns the types for the next pass, if one is
    /// needed.
    pub(super) fn next_types(
        &mut self,
        place: Span,
        traversals: usize,
        used: &LoopTypes,
        mut found: LoopTypes,
    ) -> Option<LoopTypes> {
        let wider = state::join(&[&used.header, &found.header], self.typing());
        if !self.is_dry() {
            let stable = state::same(&used.header, &wider) && state::same(&used.exit, &found.exit);
            if !stable && !self.cx.explained() {
                self.cx.fault(self.at(place), "the types of a loop differ from those that were inferred");
            }
            return None;
        }
        if traversals >= FREE_TRAVERSALS {
            found.header = wider;
        }
        if traversals >= MOST_TRAVERSALS {
            self.cx.fault(self.at(place), "the types of a loop do not converge");
            return None;
        }
        let stable = state::same(&used.header, &found.header);
        self.loops.note(place, found.clone());
        (!stable).then_some(found)
    }
}

/// The result type of a device function for argument types, and whether it may end the thread.
pub(super) fn result_type(cx: &mut Lowerer, def: &Arc<FunctionDef>, args: &[Ty]) -> (Ty, bool) {
    if let Some(known) = cx.functions.typed.iter().find(|known| known.is(def, args)) {
        return known.result();
    }
    let too_many = cx.functions.has_too_many(def);
    let calls = &mut cx.functions.calls;
    let (rests_on, result) = if let Some(at) = calls.open.iter().position(|open| open.instance.is(def, args)) {
        calls.open[at].called_back = true;
        let Instance { returns, may_end_thread, .. } = &calls.open[at].instance;
        (at, (returns.clone(), *may_end_thread))
    } else if let Some((typed, rests_on)) = calls.traversed.iter().find(|(typed, _)| typed.is(def, args)) {
        (*rests_on, typed.result())
    } else if too_many {
        // The final run reports the error.
        return (Ty::Bottom, false);
    } else {
        return find_result(cx, def, args);
    };
    if let Some(caller) = calls.open.last_mut() {
        caller.rests_on = caller.rests_on.min(rests_on);
    }
    result
}

/// Repeats a device function until its types reach a fixpoint.
fn find_result(cx: &mut Lowerer, def: &Arc<FunctionDef>, args: &[Ty]) -> (Ty, bool) {
    let place = cx.functions.calls.open.len();
    let known = cx.functions.calls.known.iter().find(|known| known.is(def, args)).cloned();
    let instance = known.unwrap_or_else(|| Instance {
        def: Arc::clone(def),
        args: args.to_vec(),
        returns: declared_result(def, args).unwrap_or(Ty::Bottom),
        may_end_thread: false,
        changes: 0,
    });
    let (first_known, first_traversed) = (cx.functions.calls.known.len(), cx.functions.calls.traversed.len());
    cx.functions.calls.open.push(Open { instance, rests_on: place, called_back: false });
    loop {
        let changes_before = cx.functions.calls.n_changes;
        let (loops, returns, may_end_thread) = traverse(cx, def, args);
        let calls = &mut cx.functions.calls;
        let open = &mut calls.open[place];
        if open.instance.note(returns, may_end_thread) {
            calls.n_changes += 1;
        }
        let (rests_on, instance) = (open.rests_on, open.instance.clone());
        let result = (instance.returns.clone(), instance.may_end_thread);
        let typed = Typed {
            def: Arc::clone(def),
            args: args.to_vec(),
            loops,
            returns: result.0.clone(),
            may_end_thread: result.1,
            converges: instance.changes < MOST_CHANGES,
        };
        if rests_on < place {
            // The outer function is repeated, and this function with it.
            calls.open.pop();
            for (_, other) in calls.traversed.iter_mut().skip(first_traversed) {
                *other = rests_on.min(*other);
            }
            calls.traversed.push((typed, rests_on));
            match calls.known.iter_mut().find(|known| known.is(def, args)) {
                Some(known) => *known = instance,
                None => calls.known.push(instance),
            }
            if let Some(caller) = calls.open.last_mut() {
                caller.rests_on = caller.rests_on.min(rests_on);
            }
            return result;
        }
        let traversed = calls.traversed.split_off(first_traversed);
        if calls.n_changes == changes_before || !calls.open[place].called_back {
            calls.open.pop();
            calls.known.truncate(first_known);
            cx.functions.typed.extend(traversed.into_iter().map(|(typed, _)| typed));
            cx.functions.typed.push(typed);
            return result;
        }
    }
}

/// Runs a device function dry, once. Returns the types of its loops, its result type, and whether it may end the
/// thread.
fn traverse(cx: &mut Lowerer, def: &Arc<FunctionDef>, args: &[Ty]) -> (LoopTable, Ty, bool) {
    let (mut returns, mut may_end_thread) = (Ty::Bottom, false);
    let declared = declared_result(def, args);
    let loops = find_types(cx, def, |lowerer| {
        let found = traverse_device(lowerer, args, declared.clone(), false);
        may_end_thread = lowerer.ends_thread;
        returns = joined_returns(&found, def.typing.unwrap_or_default()).map_or(Ty::Static(Static::None), |(ty, _)| ty);
    });
    if let Some(declared) = declared {
        returns = declared;
    }
    if matches!(returns, Ty::Conflict(_)) {
        returns = Ty::Poison;
    }
    (loops, returns, may_end_thread)
}

/// The types of a device function for argument types, as an index into [`Functions::typed`](state::Functions::typed);
/// `None` if the function has too many.
pub(super) fn typed(cx: &mut Lowerer, def: &Arc<FunctionDef>, args: &[Ty]) -> Option<usize> {
    result_type(cx, def, args);
    cx.functions.typed.iter().position(|known| known.is(def, args))
}

/// The join of the types of all `return` statements, and the span of the first. A compile-time constant stays one if
/// all of them return it, so that a function can return a constant.
pub(super) fn joined_returns(found: &[(Ty, Span)], typing: Typing) -> Option<(Ty, Span)> {
    let (first, first_at) = found.first()?;
    if found.iter().all(|(ty, _)| ty == first) {
        return Some((first.clone(), *first_at));
    }
    let mut found = found.iter().map(|(ty, span)| (ty.widened(typing), *span));
    let first = found.next()?;
    Some(found.fold(first, |(before, at), (ty, span)| (promote::join(&before, at, &ty, span, typing), at)))
}
