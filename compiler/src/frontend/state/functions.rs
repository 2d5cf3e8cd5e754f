//! The device functions of a lowering: those that are typed or being typed, and those that are lowered.

use std::sync::Arc;

use super::loops::LoopTable;
use crate::{
    diagnostic::Diagnostic,
    frontend::{promote, ty::Ty},
    ir::FuncId,
    request::FunctionDef,
    source::Span,
};

/// The number of runs of a recursive function that may change its result type arbitrarily; after that the type only
/// grows.
const FREE_CHANGES: usize = 8;

/// The number of changes after which a type is assumed to grow forever, like that of `return (n, f(n - 1))`.
pub(in crate::frontend) const MOST_CHANGES: usize = 64;

/// The maximum number of argument types of a recursive function.
const MOST_INSTANCES: usize = 128;

/// The device functions.
#[derive(Debug, Default)]
pub(in crate::frontend) struct Functions {
    /// Their types by definition and argument types.
    pub(in crate::frontend) typed: Vec<Typed>,
    /// The functions that are being typed.
    pub(in crate::frontend) calls: Calls,
    /// The lowered functions, by definition and argument types.
    pub(in crate::frontend) lowered: Vec<Compiled>,
    /// The functions that are being lowered, each called by the one before.
    pub(in crate::frontend) lowering: Vec<Lowering>,
    /// Whether there is a recursive function.
    pub(in crate::frontend) has_circles: bool,
    /// The functions without typing rules of their own, and the same with those of their callers.
    pub(in crate::frontend) following: Vec<(Arc<FunctionDef>, Arc<FunctionDef>)>,
    /// The number of functions that have been named.
    pub(in crate::frontend) n_named: usize,
}

impl Functions {
    /// Whether a recursive function has too many different argument types.
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
    /// `Ty::Bottom` if it has errors, which the final run reports.
    pub(in crate::frontend) returns: Ty,
    /// Whether it may end the thread, which its callers must test.
    pub(in crate::frontend) may_end_thread: bool,
    /// `false` if it is recursive and its result type grows with each call.
    pub(in crate::frontend) converges: bool,
}

impl Typed {
    pub(in crate::frontend) fn is(&self, def: &Arc<FunctionDef>, args: &[Ty]) -> bool {
        Arc::ptr_eq(&self.def, def) && self.args == args
    }

    pub(in crate::frontend) fn result(&self) -> (Ty, bool) {
        (self.returns.clone(), self.may_end_thread)
    }
}

/// A device function that is being typed.
#[derive(Debug)]
pub(in crate::frontend) struct Open {
    pub(in crate::frontend) instance: Instance,
    /// The index of the outermost function of [`Calls::open`] on whose types this result depends; its own index if
    /// there is none.
    pub(in crate::frontend) rests_on: usize,
    /// Whether one of its callees has called it.
    pub(in crate::frontend) called_back: bool,
}

/// A device function for argument types, and the assumed results of its calls.
#[derive(Clone, Debug)]
pub(in crate::frontend) struct Instance {
    pub(in crate::frontend) def: Arc<FunctionDef>,
    pub(in crate::frontend) args: Vec<Ty>,
    pub(in crate::frontend) returns: Ty,
    pub(in crate::frontend) may_end_thread: bool,
    /// The number of changes of these results.
    pub(in crate::frontend) changes: usize,
}

impl Instance {
    pub(in crate::frontend) fn is(&self, def: &Arc<FunctionDef>, args: &[Ty]) -> bool {
        Arc::ptr_eq(&self.def, def) && self.args == args
    }

    /// Records the result of a run; returns whether it has changed.
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
/// A recursive call returns the current result: none at first, then the result of the last run. The outermost function
/// of a call cycle is repeated together with all functions that call back to it, until no result changes.
#[derive(Debug, Default)]
pub(in crate::frontend) struct Calls {
    /// The functions, each called by the one before.
    pub(in crate::frontend) open: Vec<Open>,
    /// Functions that were run in this pass; their types depend on a function of `open`.
    pub(in crate::frontend) traversed: Vec<(Typed, usize)>,
    /// The results of the previous passes.
    pub(in crate::frontend) known: Vec<Instance>,
    /// The number of runs whose result has changed.
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
    /// Whether an additional result says if the thread has ended.
    pub(in crate::frontend) may_end_thread: bool,
    /// Its errors, to be reported wherever it is called.
    pub(in crate::frontend) errors: Vec<Diagnostic>,
}

/// A device function that is being lowered.
#[derive(Debug)]
pub(in crate::frontend) struct Lowering {
    pub(in crate::frontend) def: Arc<FunctionDef>,
    pub(in crate::frontend) args: Vec<Ty>,
    /// Its id in the module, if one of its callees has called it.
    pub(in crate::frontend) func: Option<FuncId>,
    pub(in crate::frontend) returns: Ty,
    pub(in crate::frontend) may_end_thread: bool,
}

/// The returns of a device function.
#[derive(Debug, Default)]
pub(in crate::frontend) struct Returns {
    /// The inferred type; `None` in a dry run.
    pub(in crate::frontend) expected: Option<Ty>,
    /// Whether an additional result says if the thread has ended, by the type inference.
    pub(in crate::frontend) may_end_thread: bool,
    /// The results of this run.
    pub(in crate::frontend) found: Vec<(Ty, Span)>,
}
