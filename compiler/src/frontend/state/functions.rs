//! The device functions of a lowering: those whose types are known or looked for, and those that are lowered.

use std::sync::Arc;

use super::loops::LoopTable;
use crate::{
    diagnostic::Diagnostic,
    frontend::{promote, ty::Ty},
    ir::FuncId,
    request::FunctionDef,
    source::Span,
};

/// So many walks of a function that calls itself may change what it returns to something else; from then on that grows.
const FREE_CHANGES: usize = 8;

/// Changes after which it grows for ever, as that of `return (n, f(n - 1))` does.
pub(in crate::frontend) const MOST_CHANGES: usize = 64;

/// Sets of argument types that a function that calls itself may have.
const MOST_INSTANCES: usize = 128;

/// The device functions.
#[derive(Debug, Default)]
pub(in crate::frontend) struct Functions {
    /// Their types by definition and argument types.
    pub(in crate::frontend) typed: Vec<Typed>,
    /// Those that are being typed.
    pub(in crate::frontend) calls: Calls,
    /// Those that were lowered, by definition and argument types.
    pub(in crate::frontend) lowered: Vec<Compiled>,
    /// Those that are being lowered, each called by the one before.
    pub(in crate::frontend) lowering: Vec<Lowering>,
    /// One calls itself, directly or through others.
    pub(in crate::frontend) has_circles: bool,
    /// Those that say no typing, and the same with that of their callers.
    pub(in crate::frontend) following: Vec<(Arc<FunctionDef>, Arc<FunctionDef>)>,
    /// How many were given a name.
    pub(in crate::frontend) n_named: usize,
}

impl Functions {
    /// Whether a function that is being typed or lowered has so many sets of argument types that there is no end to them.
    pub(in crate::frontend) fn has_too_many(&self, def: &Arc<FunctionDef>) -> bool {
        let is = |other: &Arc<FunctionDef>| Arc::ptr_eq(other, def);
        let open = self.calls.open.iter().filter(|open| is(&open.instance.def)).count();
        let lowering = self.lowering.iter().filter(|open| is(&open.def)).count();
        if open + lowering == 0 {
            return false;
        }
        let known = if open > 0 {
            self.typed.iter().filter(|typed| is(&typed.def)).count()
        } else {
            self.lowered.iter().filter(|compiled| is(&compiled.def)).count()
        };
        known + open + lowering > MOST_INSTANCES
    }
}

/// A device function whose types are known.
#[derive(Debug)]
pub(in crate::frontend) struct Typed {
    pub(in crate::frontend) def: Arc<FunctionDef>,
    pub(in crate::frontend) args: Vec<Ty>,
    pub(in crate::frontend) loops: LoopTable,
    /// `Ty::Bottom` if it has errors, which the walk for real reports.
    pub(in crate::frontend) returns: Ty,
    /// Something in it may end the thread, which its callers must be told.
    pub(in crate::frontend) may_end_thread: bool,
    /// `false` if it calls itself, and what it returns grows with each call.
    pub(in crate::frontend) settles: bool,
}

impl Typed {
    pub(in crate::frontend) fn is(&self, def: &Arc<FunctionDef>, args: &[Ty]) -> bool {
        Arc::ptr_eq(&self.def, def) && self.args == args
    }

    pub(in crate::frontend) fn result(&self) -> (Ty, bool) {
        (self.returns.clone(), self.may_end_thread)
    }
}

/// A device function whose types are being looked for.
#[derive(Debug)]
pub(in crate::frontend) struct Open {
    pub(in crate::frontend) instance: Instance,
    /// The outermost of [`Calls::open`] whose types those found here rest on; its own place if they rest on none.
    pub(in crate::frontend) rests_on: usize,
    /// One of those that it calls has called it.
    pub(in crate::frontend) called_back: bool,
}

/// A device function for argument types, and what its calls are taken to give.
#[derive(Clone, Debug)]
pub(in crate::frontend) struct Instance {
    pub(in crate::frontend) def: Arc<FunctionDef>,
    pub(in crate::frontend) args: Vec<Ty>,
    pub(in crate::frontend) returns: Ty,
    pub(in crate::frontend) may_end_thread: bool,
    /// How often that has changed.
    pub(in crate::frontend) changes: usize,
}

impl Instance {
    pub(in crate::frontend) fn is(&self, def: &Arc<FunctionDef>, args: &[Ty]) -> bool {
        Arc::ptr_eq(&self.def, def) && self.args == args
    }

    /// Notes what a walk has found; `true` if that is something else.
    pub(in crate::frontend) fn note(&mut self, returns: Ty, may_end_thread: bool) -> bool {
        let here = self.def.ast.name_span;
        let grows = self.changes >= FREE_CHANGES;
        let typing = self.def.typing.unwrap_or_default();
        let returns = if grows { promote::join(&self.returns, here, &returns, here, typing) } else { returns };
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
pub(in crate::frontend) struct Calls {
    /// Each called by the one before.
    pub(in crate::frontend) open: Vec<Open>,
    /// Walked in this round; their types rest on one of `open`.
    pub(in crate::frontend) walked: Vec<(Typed, usize)>,
    /// What the walks of the last rounds found.
    pub(in crate::frontend) known: Vec<Instance>,
    /// How often a walk has found something else than the one before.
    pub(in crate::frontend) n_changes: usize,
}

/// A device function that was lowered.
#[derive(Clone, Debug)]
pub(in crate::frontend) struct Compiled {
    pub(in crate::frontend) def: Arc<FunctionDef>,
    pub(in crate::frontend) args: Vec<Ty>,
    /// `None` if it has errors.
    pub(in crate::frontend) func: Option<FuncId>,
    pub(in crate::frontend) returns: Ty,
    /// One more result says whether the thread has ended.
    pub(in crate::frontend) may_end_thread: bool,
    /// Its errors, to be reported wherever it is called.
    pub(in crate::frontend) errors: Vec<Diagnostic>,
}

/// A device function that is being lowered.
#[derive(Debug)]
pub(in crate::frontend) struct Lowering {
    pub(in crate::frontend) def: Arc<FunctionDef>,
    pub(in crate::frontend) args: Vec<Ty>,
    /// Its place in the module, once something that it calls has called it.
    pub(in crate::frontend) func: Option<FuncId>,
    pub(in crate::frontend) returns: Ty,
    pub(in crate::frontend) may_end_thread: bool,
}

/// The returns of a device function.
#[derive(Debug, Default)]
pub(in crate::frontend) struct Returns {
    /// What the typing found; `None` in a dry walk.
    pub(in crate::frontend) expected: Option<Ty>,
    /// One more result says whether the thread has ended: so the typing found.
    pub(in crate::frontend) may_end_thread: bool,
    /// What this walk finds.
    pub(in crate::frontend) found: Vec<(Ty, Span)>,
}
