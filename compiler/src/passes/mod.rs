//! The passes over the IR, in order.
//!
//! A pass is a file with one function that changes a module and cannot fail, and a row of [`PASSES`]. Passes prove
//! properties and drop dead code; they never change the results of a kernel. LLVM does the optimizations that it is
//! good at: folding, hoisting, inlining.

mod access;
mod assumptions;
mod bound_stores;
mod coarsen;
mod combine_additions;
mod drop_dead;
mod drop_dead_params;
mod fold_temps;
mod lower_reductions;
mod narrow;
mod prove_nonneg;
mod reproduce;
mod sanitize;
mod split_signs;
#[cfg(test)]
mod tests;
mod unroll;

pub(crate) use self::combine_additions::{Counted, counted};
use crate::{
    diagnostic::{Code, Diagnostic},
    inline,
    ir::{self, Module},
    normalize::split_live_ranges,
    request::Target,
    source::Span,
    stop,
};

/// One row of [`PASSES`].
#[derive(Clone, Copy, Debug)]
pub struct Pass {
    /// Its name, for messages.
    pub name: &'static str,
    /// The function that runs it.
    pub run: fn(&mut Module),
    /// The targets that need it.
    pub targets: Targets,
    /// Whether instrumented code needs it, too. Other passes could move or remove accesses.
    pub sanitized: bool,
    /// Whether it estimates coarsening factors if they are to be [chosen](Module::choose).
    pub estimates: bool,
    /// The reason for its position in the order.
    pub why_here: &'static str,
}

/// The targets for which a pass runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Targets {
    /// Every target.
    All,
    /// GPUs only.
    Nvptx,
    /// The CPU only.
    Host,
}

/// Every pass, in order.
pub const PASSES: &[Pass] = &[
    Pass {
        name: "reproduce",
        run: reproduce::run,
        targets: Targets::All,
        sanitized: true,
        estimates: false,
        why_here: "first: the front end's output is the same for every target; does nothing unless requested",
    },
    Pass {
        name: "sanitize",
        run: sanitize::run,
        targets: Targets::Host,
        sanitized: true,
        estimates: false,
        why_here: "before the others: annotates the program before it is lowered; does nothing unless requested",
    },
    Pass {
        name: "inline",
        run: inline::small_functions,
        targets: Targets::Host,
        sanitized: false,
        estimates: false,
        why_here: "before the proofs and narrow: what a function computes of its arguments is known where it is called; a GPU's code is inlined by LLVM",
    },
    Pass {
        name: "split_live_ranges",
        run: split_live_ranges::run,
        targets: Targets::Nvptx,
        sanitized: false,
        estimates: false,
        why_here: "before the proofs and narrow, which describe a local by all its assignments; the CPU's planner splits them later, after it has inlined functions with barriers",
    },
    Pass {
        name: "split_signs",
        run: split_signs::run,
        targets: Targets::All,
        sanitized: false,
        estimates: false,
        why_here: "before the proofs, which find what it makes provable",
    },
    Pass {
        name: "prove_nonneg",
        run: prove_nonneg::run,
        targets: Targets::All,
        sanitized: false,
        estimates: false,
        why_here: "before all that reads what it makes dead: an index without its wrap no longer reads the extent, which may then be dead",
    },
    Pass {
        name: "fold_temps",
        run: fold_temps::run,
        targets: Targets::All,
        sanitized: false,
        estimates: false,
        why_here: "after the proofs, which may rest on a mark of a temporary; leaves dead assignments",
    },
    Pass {
        name: "drop_dead",
        run: drop_dead::run,
        targets: Targets::All,
        sanitized: false,
        estimates: false,
        why_here: "after passes that make code dead, before passes that depend on which locals are read",
    },
    Pass {
        name: "coarsen",
        run: coarsen::run,
        targets: Targets::All,
        sanitized: false,
        estimates: true,
        why_here: "after the proofs, which know the threads of the program; before what writes guards of its own, unrolls or narrows",
    },
    Pass {
        name: "bound_stores",
        run: bound_stores::run,
        targets: Targets::Host,
        sanitized: false,
        estimates: false,
        why_here: "after the proofs and with few temporaries; before drop_dead_params, since it needs extents that \
            may be unread",
    },
    Pass {
        name: "drop_dead_params",
        run: drop_dead_params::run,
        targets: Targets::All,
        sanitized: false,
        estimates: false,
        why_here: "needs dead assignments gone; a slot that is not passed costs nothing at launch",
    },
    Pass {
        name: "combine_additions",
        run: combine_additions::run,
        targets: Targets::Nvptx,
        sanitized: false,
        estimates: false,
        why_here: "after drop_dead, so that a combined addition is live; before unroll, which sees the size of bodies with it",
    },
    Pass {
        name: "unroll",
        run: unroll::run,
        targets: Targets::Nvptx,
        sanitized: false,
        estimates: false,
        why_here: "after what makes loop bodies small; the CPU hides latency by itself and vectorises over threads",
    },
    Pass {
        name: "narrow",
        run: narrow::run,
        targets: Targets::Nvptx,
        sanitized: false,
        estimates: false,
        why_here: "after unroll, which looks for 64-bit counters",
    },
    Pass {
        name: "narrow_on_host",
        run: narrow::run_on_host,
        targets: Targets::Host,
        sanitized: false,
        estimates: false,
        why_here: "after bound_stores, which clamps indices of 64 bits; before lower_reductions, whose masks have their width",
    },
    Pass {
        name: "lower_reductions",
        run: lower_reductions::run,
        targets: Targets::Host,
        sanitized: true,
        estimates: false,
        why_here: "after drop_dead, which finds unread values; the CPU's barriers carry none",
    },
    Pass {
        name: "access",
        run: access::run,
        targets: Targets::All,
        sanitized: true,
        estimates: false,
        why_here: "after all passes that change code: describes the remaining accesses",
    },
    Pass {
        name: "assumptions",
        run: assumptions::run,
        targets: Targets::Nvptx,
        sanitized: false,
        estimates: false,
        why_here: "last: computes what is read and written",
    },
    Pass {
        name: "assumptions_on_host",
        run: assumptions::run_on_host,
        targets: Targets::Host,
        sanitized: false,
        estimates: false,
        why_here: "as assumptions; alignment is nothing to a CPU",
    },
];

impl Targets {
    /// Whether `target` is one of them.
    pub fn contains(self, target: &Target) -> bool {
        match self {
            Self::All => true,
            Self::Nvptx => matches!(target, Target::Sm(..)),
            Self::Host => matches!(target, Target::Host(_)),
        }
    }
}

/// Simplifies a module that is not the final one: what the front end wrote for all programs is simpler for this one.
pub(crate) fn simplify(module: &mut Module) {
    prove_nonneg::run(module);
    fold_temps::run(module);
    drop_dead::run(module);
}

/// Runs every pass for `target`, and verifies the module before the first and after the last one, in debug builds after
/// each. `on_pass` is called at the start of each pass.
///
/// # Errors
///
/// `E0901` with the IR attached if the front end or a pass left an invalid module.
pub fn run(module: &mut Module, target: &Target, on_pass: impl Fn(&Pass)) -> Result<(), Diagnostic> {
    check(module, "the front end")?;
    let is_plain = module.sanitize.is_empty();
    let needed = |pass: &&Pass| pass.targets.contains(target) && (is_plain || pass.sanitized);
    for pass in PASSES.iter().filter(needed) {
        stop::check();
        on_pass(pass);
        (pass.run)(module);
        if cfg!(debug_assertions) {
            check(module, pass.name)?;
        }
    }
    if cfg!(debug_assertions) { Ok(()) } else { check(module, "a pass") }
}

fn check(module: &Module, after: &str) -> Result<(), Diagnostic> {
    ir::verify(module).map_err(|errors| invalid(module, after, &errors))
}

/// The report of an internal error.
fn invalid(module: &Module, after: &str, errors: &[String]) -> Diagnostic {
    let span = module.kernel().map_or_else(Span::default, |kernel| kernel.span);
    let first = errors.first().map_or("", String::as_str);
    let mut diagnostic = Diagnostic::error(Code::Internal, span, format!("{after} made an invalid IR: {first}"));
    for error in errors.iter().skip(1) {
        diagnostic = diagnostic.note(error);
    }
    diagnostic.note(format!("the IR:\n{module}"))
}
