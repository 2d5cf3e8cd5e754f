//! The free names of a function.

use super::ast::Function;

/// The dotted chains that a function reads and does not bind itself: `["cuda.grid", "TPB", "config.N", "math.pi"]`,
/// sorted, each once. A chain is as long as the text gives it (`cuda.threadIdx.x`); decorators, annotations and
/// defaults do not count. Names bound anywhere in the function (parameters, assignments, loop variables) are local,
/// as in Python.
pub fn free_chains(_function: &Function) -> Vec<String> {
    Vec::new()
}
