//! Threads that wait for others of their warp.
//!
//! A divergent warp runs one part of its threads until that part reaches a point where the hardware switches to the
//! others. ptxas inserts such a point into a loop with a volatile load or an atomic operation; a loop with plain loads
//! has none, so the threads that it waits for may never run. So loads that the end of a wait depends on are volatile,
//! which also makes each iteration read memory. If a function or an operation reads for the loop, its iterations end
//! with a zero-length pause.

use std::collections::BTreeSet;

use crate::{
    analysis::WaitAnalysis,
    backend::llvm::{FunctionEmitter, Result},
    ir::{Circles, ExprId, FuncId, Function, Module, Stmt, StmtKind, for_each_stmt},
};

/// The first SM version with independent thread scheduling (CUDA C++ Programming Guide, "Independent Thread
/// Scheduling").
const INDEPENDENT: u32 = 70;

/// Lets the hardware switch to other threads.
const PAUSE: &str = "nanosleep.u32 0;";

/// The loads that the waits of a function depend on.
#[derive(Default)]
pub(super) struct FunctionWaits {
    /// Loads of the function itself.
    pub loads: BTreeSet<ExprId>,
    /// Whether a called function or an operation reads memory for a loop that waits.
    pub calls: bool,
}

/// The loops of a module in which threads wait for each other.
pub(super) struct Waits {
    waiting: WaitAnalysis,
    circles: Circles,
    /// The SM schedules the threads of a warp independently.
    independent: bool,
}

impl Waits {
    /// Analyzes a module for an SM.
    pub(super) fn of(module: &Module, sm: u32) -> Self {
        let circles = Circles::of(module);
        Self { waiting: WaitAnalysis::of(module, &circles), circles, independent: sm >= INDEPENDENT }
    }

    /// The loads on which the waits of a function depend, over all its loops.
    pub(super) fn of_function(&self, function: &Function) -> FunctionWaits {
        let mut all = FunctionWaits::default();
        for_each_stmt(&function.body, &mut |stmt| {
            if let StmtKind::Loop { body, step } = &stmt.kind
                && let Some(wait) = self.waiting.wait(function, body, step)
            {
                all.loads.extend(wait.loads);
                all.calls |= wait.calls;
            }
        });
        all
    }

    /// Emits code at the beginning of a function.
    pub(super) fn enter(&self, emitter: &FunctionEmitter<'_, '_>, func: FuncId) -> Result<()> {
        if self.waiting.circles && self.circles.contains(func) { self.pause(emitter) } else { Ok(()) }
    }

    /// Emits code at the end of an iteration of a loop, in a function in which functions or operations read for a loop.
    pub(super) fn iteration(&self, emitter: &FunctionEmitter<'_, '_>, body: &[Stmt], step: &[Stmt]) -> Result<()> {
        let wait = self.waiting.wait(emitter.function, body, step);
        if wait.is_some_and(|wait| wait.calls) { self.pause(emitter) } else { Ok(()) }
    }

    fn pause(&self, emitter: &FunctionEmitter<'_, '_>) -> Result<()> {
        if !self.independent {
            return Ok(());
        }
        let context = emitter.cx.types.context;
        let ty = context.void_type().fn_type(&[], false);
        let clobbers = "~{memory}".to_owned();
        let asm = context.create_inline_asm(ty, PAUSE.to_owned(), clobbers, true, false, None, false);
        emitter.builder.build_indirect_call(ty, asm, &[], "")?;
        Ok(())
    }
}
