//! How large a kernel is for LLVM, which inlines what it calls.
//!
//! Some of LLVM's passes take time in the square or cube of a function's loops or addresses. A kernel beyond
//! [`LOOPS`] or [`EXPRS`] does without them (`gate.cpp`), so that compiling takes time in proportion. Kernels of
//! ordinary size are far below both.

use crate::{
    ir::{Function, Module, StmtKind, for_each_stmt},
    stage,
};

/// Loops of a kernel from which on it is large. 20 take LLVM's loop strength reduction a second, 80 half a minute.
const LOOPS: u64 = 16;
/// Expressions of a kernel from which on it is large: about 400 lines of Python.
const EXPRS: u64 = 4000;
/// Expressions of a kernel from which on it is huge. 9000 in one chain take LLVM's vectorizer of loops 1.3 seconds.
const HUGE_EXPRS: u64 = 8000;

/// Instructions that LLVM's passes have left of a module from which on it has grown: gathers that are single loads, or turns of
/// loops side by side. LLVM's strength reduction of loops takes time in the square of a loop's addresses, half of a second for
/// 10,000 instructions.
const GROWN: u64 = 4000;

/// Whether LLVM's passes have left so much that the code generator does without its slowest one.
pub(crate) const fn has_grown(left: stage::Size) -> bool {
    left.instructions > GROWN
}

/// How large a kernel is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Bulk {
    /// LLVM has time for all of its passes.
    Ordinary,
    /// It does without the slowest.
    Large,
    /// Not even its loops are vectorized.
    Huge,
}

/// What a function holds, with all that it calls in place of the calls.
#[derive(Clone, Copy, Debug, Default)]
struct Size {
    loops: u64,
    exprs: u64,
}

impl Size {
    fn add(&mut self, other: Self) {
        self.loops = self.loops.saturating_add(other.loops);
        self.exprs = self.exprs.saturating_add(other.exprs);
    }

    fn of(function: &Function, callees: &[Self]) -> Self {
        let mut size = Self { loops: 0, exprs: function.exprs.len() as u64 };
        for_each_stmt(&function.body, &mut |stmt| {
            if let StmtKind::Loop { .. } = stmt.kind {
                size.add(Self { loops: 1, exprs: 0 });
            } else if let StmtKind::Call { func, .. } = stmt.kind {
                size.add(callees.get(func.index()).copied().unwrap_or_default());
            }
        });
        size
    }
}

/// How large a module's kernel is; `more_loops` are those that the back end adds.
pub(crate) fn bulk(module: &Module, more_loops: u64) -> Bulk {
    // A callee stands before its callers.
    let mut sizes = Vec::with_capacity(module.functions.len());
    for (_, function) in module.functions.iter() {
        let size = Size::of(function, &sizes);
        sizes.push(size);
    }
    let kernel = module.kernel.and_then(|kernel| sizes.get(kernel.index()).copied()).unwrap_or_default();
    if kernel.exprs > HUGE_EXPRS {
        Bulk::Huge
    } else if kernel.exprs > EXPRS || kernel.loops.saturating_add(more_loops) > LOOPS {
        Bulk::Large
    } else {
        Bulk::Ordinary
    }
}
