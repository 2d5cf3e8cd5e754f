//! Limits of code growth by inlining. A chain of functions that each call the next one twice grows exponentially: the
//! function at depth n would be copied 2^n times.

use crate::ir::{FuncId, Module, StmtKind, for_each_stmt};

/// The maximum number of expressions of a function after inlining. LLVM needs about ten seconds for a function of this
/// size.
const MOST_EXPRS: u64 = 16_000;
/// A function that is called once is moved, not copied. So the limit is at least this multiple of the whole module's
/// size.
const MOST_TIMES: u64 = 4;

/// The maximum number of expressions of a function after inlining.
fn most(module: &Module) -> u64 {
    let written: u64 = module.functions.iter().map(|(_, function)| function.exprs.len() as u64).sum();
    MOST_EXPRS.max(written.saturating_mul(MOST_TIMES))
}

/// The number of expressions of a function after inlining. `known` has the sizes of the functions before it.
fn size(module: &Module, id: FuncId, known: &[u64], in_place: &dyn Fn(FuncId) -> bool) -> u64 {
    let function = &module.functions[id];
    let mut size = function.exprs.len() as u64;
    for_each_stmt(&function.body, &mut |stmt| {
        if let StmtKind::Call { func, .. } = stmt.kind
            && in_place(func)
        {
            size = size.saturating_add(known.get(func.index()).copied().unwrap_or(0));
        }
    });
    size
}

/// Whether inlining the calls of the chosen functions makes a function too large.
pub(crate) fn too_many(module: &Module, in_place: &dyn Fn(FuncId) -> bool) -> bool {
    let most = most(module);
    let mut sizes = Vec::with_capacity(module.functions.len());
    // Callees come before their callers.
    for (id, _) in module.functions.iter() {
        sizes.push(size(module, id, &sizes, in_place));
    }
    sizes.into_iter().any(|size| size > most)
}

/// By the function's index: whether its calls are inlined. The result is false if the function is too large.
pub(crate) fn inlined(module: &Module) -> Vec<bool> {
    let most = most(module);
    let mut sizes = Vec::with_capacity(module.functions.len());
    let mut inlined = Vec::with_capacity(module.functions.len());
    for (id, function) in module.functions.iter() {
        let size = size(module, id, &sizes, &|callee| inlined.get(callee.index()).copied().unwrap_or(false));
        inlined.push(function.inline && size <= most);
        sizes.push(size);
    }
    inlined
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir::{Function, FunctionKind, Stmt};

    use crate::{ir::Builder, source::Span};

    const SPAN: Span = Span { file: 0, start: 0, end: 8 };

    /// Functions that each call the previous one `calls` times.
    fn chain(n: usize, calls: usize) -> Module {
        let mut module = Module::default();
        for at in 0..n {
            let mut b = Builder::new(Function::new(format!("f{at}"), FunctionKind::Device, SPAN));
            let _ = b.i64(1, SPAN);
            let mut function = b.finish();
            function.inline = true;
            for _ in 0..calls.min(at * calls) {
                let kind = StmtKind::Call { results: Vec::new(), func: FuncId::new(at as u32 - 1), args: Vec::new() };
                function.body.push(Stmt { kind, span: SPAN });
            }
            module.functions.push(function);
        }
        module
    }

    #[test]
    fn functions_that_grow_with_the_power_of_their_number_stay() {
        for (calls, grows) in [(1, false), (2, true)] {
            let module = chain(100, calls);
            assert_eq!(too_many(&module, &|_| true), grows);
            assert!(!too_many(&module, &|_| false));
            assert_eq!(inlined(&module).contains(&false), grows);
        }
        // Function 13 would have 2^13 copies of function 0, in addition to the expressions of the functions between
        // them.
        assert_eq!(inlined(&chain(100, 2)).iter().position(|inlined| !inlined), Some(13));
        assert!(inlined(&chain(13, 2)).iter().all(|&inlined| inlined));
        // A function that is not inlined does not count into the sizes of its callers, so sizes start over after it.
        assert_eq!(inlined(&chain(100, 2)).iter().filter(|&inlined| !inlined).count(), 7);
    }
}
