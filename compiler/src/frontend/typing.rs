//! The types of a function, found by walking it dry.
//!
//! A loop is walked again, with what the ends of its turns gave the variables at its head, until that is what it was
//! walked with; then comes what follows the loop, which so sees final types only. A join makes a type more general and
//! there are few steps from the least type to the most general one, so this ends. Calls of device functions give a
//! type, found in the same way, that of one which calls itself as a loop's is; the functions are lowered when the walk
//! for real calls them.

use std::{collections::BTreeMap, sync::Arc};

use super::{
    env::{self, Env},
    function::{declared_result, walk_device},
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

/// So many walks of a function that calls itself may change what it returns to something else; from then on that grows.
const FREE_CHANGES: usize = 8;

/// Changes after which it grows for ever, as that of `return (n, f(n - 1))` does.
const MOST_CHANGES: usize = 64;

/// Sets of argument types that a function that calls itself may have.
const MOST_INSTANCES: usize = 128;

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
    /// `false` if it calls itself, and what it returns grows with each call.
    pub(super) settles: bool,
}

impl Typed {
    pub(super) fn is(&self, def: &Arc<FunctionDef>, args: &[Ty]) -> bool {
        Arc::ptr_eq(&self.def, def) && self.args == args
    }

    fn result(&self) -> (Ty, bool) {
        (self.returns.clone(), self.may_end_thread)
    }
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
}

/// A device function whose types are being looked for.
#[derive(Debug)]
pub(super) struct Open {
    instance: Instance,
    /// The outermost of [`Calls::open`] whose types those found here rest on; its own place if they rest on none.
    rests_on: usize,
    /// One of those that it calls has called it.
    called_back: bool,
}

/// A device function for argument types, and what its calls are taken to give.
#[derive(Clone, Debug)]
struct Instance {
    def: Arc<FunctionDef>,
    args: Vec<Ty>,
    returns: Ty,
    may_end_thread: bool,
    /// How often that has changed.
    changes: usize,
}

impl Instance {
    fn is(&self, def: &Arc<FunctionDef>, args: &[Ty]) -> bool {
        Arc::ptr_eq(&self.def, def) && self.args == args
    }

    /// Notes what a walk has found; `true` if that is something else.
    fn note(&mut self, returns: Ty, may_end_thread: bool) -> bool {
        let here = self.def.ast.name_span;
        let grows = self.changes >= FREE_CHANGES;
        let returns = if grows { promote::join(&self.returns, here, &returns, here) } else { returns };
        let may_end_thread = self.may_end_thread || may_end_thread;
        if self.changes >= MOST_CHANGES || (returns == self.returns && may_end_thread == self.may_end_thread) {
            return false;
        }
        (self.returns, self.may_end_thread) = (returns, may_end_thread);
        self.changes += 1;
        true
    }
}

/// The device functions that are being typed.
///
/// A call of one of them, from those that it calls, gives what is known so far: nothing at first, and then what its last
/// walk found. The outermost function on a circle of calls is walked, and with it all that call back to it, until no
/// walk finds anything else.
#[derive(Debug, Default)]
pub(super) struct Calls {
    /// Each called by the one before.
    open: Vec<Open>,
    /// Walked in this round; their types rest on one of `open`.
    walked: Vec<(Typed, usize)>,
    /// What the walks of the last rounds found.
    known: Vec<Instance>,
    /// How often a walk has found something else than the one before.
    n_changes: usize,
}

/// What a call of a device function gives for argument types, and whether it may end the thread.
pub(super) fn result_type(cx: &mut Lowerer, def: &Arc<FunctionDef>, args: &[Ty]) -> (Ty, bool) {
    if let Some(known) = cx.typed.iter().find(|known| known.is(def, args)) {
        return known.result();
    }
    let too_many = cx.has_too_many(def);
    let calls = &mut cx.calls;
    let (rests_on, result) = if let Some(at) = calls.open.iter().position(|open| open.instance.is(def, args)) {
        calls.open[at].called_back = true;
        let Instance { returns, may_end_thread, .. } = &calls.open[at].instance;
        (at, (returns.clone(), *may_end_thread))
    } else if let Some((typed, rests_on)) = calls.walked.iter().find(|(typed, _)| typed.is(def, args)) {
        (*rests_on, typed.result())
    } else if too_many {
        // The walk for real comes here, too, and reports it.
        return (Ty::Bottom, false);
    } else {
        return find_result(cx, def, args);
    };
    if let Some(caller) = calls.open.last_mut() {
        caller.rests_on = caller.rests_on.min(rests_on);
    }
    result
}

/// Walks a device function until its types are stable.
fn find_result(cx: &mut Lowerer, def: &Arc<FunctionDef>, args: &[Ty]) -> (Ty, bool) {
    let place = cx.calls.open.len();
    let known = cx.calls.known.iter().find(|known| known.is(def, args)).cloned();
    let instance = known.unwrap_or_else(|| Instance {
        def: Arc::clone(def),
        args: args.to_vec(),
        returns: declared_result(def, args).unwrap_or(Ty::Bottom),
        may_end_thread: false,
        changes: 0,
    });
    let (first_known, first_walked) = (cx.calls.known.len(), cx.calls.walked.len());
    cx.calls.open.push(Open { instance, rests_on: place, called_back: false });
    loop {
        let changes_before = cx.calls.n_changes;
        let (loops, returns, may_end_thread) = walk(cx, def, args);
        let calls = &mut cx.calls;
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
            settles: instance.changes < MOST_CHANGES,
        };
        if rests_on < place {
            // One further out is walked again, and this one with it.
            calls.open.pop();
            for (_, other) in calls.walked.iter_mut().skip(first_walked) {
                *other = rests_on.min(*other);
            }
            calls.walked.push((typed, rests_on));
            match calls.known.iter_mut().find(|known| known.is(def, args)) {
                Some(known) => *known = instance,
                None => calls.known.push(instance),
            }
            if let Some(caller) = calls.open.last_mut() {
                caller.rests_on = caller.rests_on.min(rests_on);
            }
            return result;
        }
        let walked = calls.walked.split_off(first_walked);
        if calls.n_changes == changes_before || !calls.open[place].called_back {
            calls.open.pop();
            calls.known.truncate(first_known);
            cx.typed.extend(walked.into_iter().map(|(typed, _)| typed));
            cx.typed.push(typed);
            return result;
        }
    }
}

/// Walks a device function dry, once: the types of its loops, what it returns, and whether it may end the thread.
fn walk(cx: &mut Lowerer, def: &Arc<FunctionDef>, args: &[Ty]) -> (Loops, Ty, bool) {
    let (mut returns, mut may_end_thread) = (Ty::Bottom, false);
    let declared = declared_result(def, args);
    let loops = find_types(cx, def, |lowerer| {
        let found = walk_device(lowerer, args, declared.clone(), false);
        may_end_thread = lowerer.ends_thread;
        returns = joined_returns(&found).map_or(Ty::Static(Static::None), |(ty, _)| ty);
    });
    if let Some(declared) = declared {
        returns = declared;
    }
    if matches!(returns, Ty::Conflict(_)) {
        returns = Ty::Poison;
    }
    (loops, returns, may_end_thread)
}

/// The types of a device function for argument types, as an index into [`Lowerer::typed`]; `None` if it has too many.
pub(super) fn typed(cx: &mut Lowerer, def: &Arc<FunctionDef>, args: &[Ty]) -> Option<usize> {
    result_type(cx, def, args);
    cx.typed.iter().position(|known| known.is(def, args))
}

impl Lowerer {
    /// Whether a function that is being typed or lowered has so many sets of argument types that there is no end to them.
    pub(super) fn has_too_many(&self, def: &Arc<FunctionDef>) -> bool {
        let is = |other: &Arc<FunctionDef>| Arc::ptr_eq(other, def);
        let open = self.calls.open.iter().filter(|open| is(&open.instance.def)).count();
        let lowering = self.lowering.iter().filter(|open| is(&open.def)).count();
        if open + lowering == 0 {
            return false;
        }
        let known = if open > 0 {
            self.typed.iter().filter(|typed| is(&typed.def)).count()
        } else {
            self.functions.iter().filter(|compiled| is(&compiled.def)).count()
        };
        known + open + lowering > MOST_INSTANCES
    }
}

/// The type that holds what all `return`s give, and where the first one is. What is known when the kernel is compiled stays
/// known if all of them give it, so that a function can name a constant.
pub(super) fn joined_returns(found: &[(Ty, Span)]) -> Option<(Ty, Span)> {
    let (first, first_at) = found.first()?;
    if found.iter().all(|(ty, _)| ty == first) {
        return Some((first.clone(), *first_at));
    }
    let mut found = found.iter().map(|(ty, span)| (ty.widened(), *span));
    let first = found.next()?;
    Some(found.fold(first, |(before, at), (ty, span)| (promote::join(&before, at, &ty, span), at)))
}
