//! The size of a kernel as LLVM sees it, with its callees inlined.
//!
//! Some of LLVM's passes take time quadratic or cubic in the loops or addresses of a function. They are skipped
//! (`gate.cpp`) for a kernel beyond [`LOOPS`] or [`EXPRS`], so that its compile time is roughly linear. Usual kernels
//! are far below both limits; tiles of matrix instructions exceed [`EXPRS`] with few loops and addresses.

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

/// A module with more instructions after LLVM's passes is long, for example by scalarized gathers or interleaved
/// iterations. LLVM's loop strength reduction takes time quadratic in the addresses of a loop: half a second for 10,000
/// instructions. NVPTX's vectorizer of loads and stores takes 0.3 s for 7,500 instructions.
const INSTRUCTIONS: u64 = 4000;

/// The size class of a kernel by its expressions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
enum Class {
    #[default]
    Ordinary,
    Large,
    Huge,
}

/// What of a kernel is large.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Bulk {
    exprs: Class,
    many_loops: bool,
}

impl Bulk {
    /// Whether LLVM skips the passes whose time is quadratic in the addresses.
    pub(crate) fn is_large(self) -> bool {
        self.exprs >= Class::Large || self.many_loops
    }

    /// Whether LLVM also skips loop vectorization.
    pub(crate) fn is_huge(self) -> bool {
        self.exprs == Class::Huge
    }

    /// Whether the code generator skips loop strength reduction and the vectorizer of loads and stores, for a module of
    /// this size after LLVM's passes.
    pub(crate) const fn keeps_addresses(self, left: stage::Size) -> bool {
        self.many_loops || left.instructions > INSTRUCTIONS
    }
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

/// What of a module's kernel is large; `more_loops` is the number of loops that the back end adds.
pub(crate) fn bulk(module: &Module, more_loops: u64) -> Bulk {
    // Callees precede their callers.
    let mut sizes = Vec::with_capacity(module.functions.len());
    for (_, function) in module.functions.iter() {
        let size = Size::of(function, &sizes);
        sizes.push(size);
    }
    let kernel = module.kernel.and_then(|kernel| sizes.get(kernel.index()).copied()).unwrap_or_default();
    let exprs = if kernel.exprs > HUGE_EXPRS {
        Class::Huge
    } else if kernel.exprs > EXPRS {
        Class::Large
    } else {
        Class::Ordinary
    };
    Bulk { exprs, many_loops: kernel.loops.saturating_add(more_loops) > LOOPS }
}
