//! The size of a kernel as LLVM sees it, with its callees inlined.
//!
//! Some of LLVM's passes take time quadratic or cubic in the loops or addresses of a function. They are skipped
//! (`gate.cpp`) for a kernel beyond [`LOOPS`] or [`EXPRS`], so that its compile time is roughly linear. Usual kernels
//! are far below both limits.

use crate::{
    ir::{Function, Module, StmtKind, for_each_stmt},
    stage,
};

/// A kernel with more loops is large. LLVM's loop strength reduction takes a second for 20 loops, half a minute for 80.
const LOOPS: u64 = 16;
/// A kernel with more expressions is large: about 400 lines of Python.
const EXPRS: u64 = 4000;
/// A kernel with more expressions is huge. LLVM's loop vectorizer takes 1.3 seconds for 9000 in one chain.
const HUGE_EXPRS: u64 = 8000;

/// A module with more instructions after LLVM's passes has grown, for example by scalarized gathers or interleaved
/// iterations. LLVM's loop strength reduction takes time quadratic in the addresses of a loop: half a second for 10,000
/// instructions.
const GROWN: u64 = 4000;

/// Whether the module is so long after LLVM's passes that the code generator should skip its slowest pass.
pub(crate) const fn has_grown(left: stage::Size) -> bool {
    left.instructions > GROWN
}

/// The size class of a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Bulk {
    /// LLVM runs all of its passes.
    Ordinary,
    /// LLVM skips the slowest passes.
    Large,
    /// LLVM also skips loop vectorization.
    Huge,
}

/// The size of a function with its callees inlined.
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

/// The size class of a module's kernel; `more_loops` is the number of loops that the back end adds.
pub(crate) fn bulk(module: &Module, more_loops: u64) -> Bulk {
    // Callees precede their callers.
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
