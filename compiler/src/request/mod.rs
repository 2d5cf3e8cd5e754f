//! The input of a compilation: a function, the values of its free names, argument types, a target and options.
//!
//! The compiler is pure: everything that a compilation depends on is in the request.

mod captured;
mod derivative;
mod function;
mod jit;
mod options;
mod overloads;
mod target;

pub use captured::{Captured, CapturedArray, Unsupported, dtype_of_path, number_of_path};
pub use derivative::{Derivative, Incoming, Scratch};
pub use function::{External, FunctionDef, GpuBody, MAX_CALL_DEPTH, PtxBody, Signature, Typing};
pub use jit::{Flag, JIT_OPTIONS, JitOption, JitOptions, OptionValue, ReadOption, Refusal};
pub use options::{Abi, CpuThreads, Entry, Foreign, GpuCode, LaunchBounds, Options, Role};
pub use overloads::{Answer, Outcome, OverloadArgument, OverloadQuery, Overloaded, Overloads};
pub use target::{HostCpu, PlannedCpu, Target};

use std::sync::Arc;

use weft_artifact::ArgType;

/// One compilation: one kernel for one tuple of argument types.
#[derive(Clone, Debug)]
pub struct Request {
    /// The kernel.
    pub function: Arc<FunctionDef>,
    /// The overloaded functions, and the overloads selected for them.
    pub overloads: Overloads,
    /// The argument types, one per parameter.
    pub args: Vec<ArgType>,
    /// The target.
    pub target: Target,
    /// Options.
    pub options: Options,
    /// The intermediate code to return with the artifact.
    pub keep: Keep,
}

/// The intermediate code to return with the artifact.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "independent flags")]
pub struct Keep {
    /// weft's IR after its passes.
    pub ir: bool,
    /// LLVM IR after LLVM's passes.
    pub llvm: bool,
    /// Assembly of the host target (for GPUs, PTX is the artifact's own code).
    pub asm: bool,
    /// Only LLVM IR, as LLVM's passes get it: there is no code then.
    pub unoptimized: bool,
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::{source::SourceFile, syntax};

    fn function(number: u32, globals: Vec<Captured>) -> Arc<FunctionDef> {
        let source = Arc::new(SourceFile::new("k.py", "def f():\n    pass\n"));
        let ast = syntax::parse_function(&source, 0, None).expect("the text of a function");
        let globals = globals.into_iter().enumerate().map(|(index, value)| (format!("g{index}"), value)).collect();
        Arc::new(FunctionDef {
            ast,
            source,
            globals,
            defaults: BTreeMap::new(),
            signatures: Vec::new(),
            inline: false,
            typing: None,
            gpu: None,
            backward: None,
            number,
        })
    }

    #[test]
    fn a_function_is_found_wherever_a_name_leads_to_it() {
        let inner = function(2, vec![Captured::Recursive(1)]);
        let members = BTreeMap::from([("f".to_owned(), Captured::Tuple(vec![Captured::Function(Arc::clone(&inner))]))]);
        let outer = function(1, vec![Captured::None, Captured::Module("m".into(), members)]);
        let kernel = function(0, vec![Captured::Function(Arc::clone(&outer))]);
        let chosen = function(3, Vec::new());
        let query = OverloadQuery { function: 0, args: Vec::new() };
        let answers = vec![Answer { query, chosen: Ok(Arc::clone(&chosen)) }];
        let overloads = Overloads { answers, ..Overloads::default() };
        for (number, expected) in [(0, &kernel), (1, &outer), (2, &inner), (3, &chosen)] {
            assert!(overloads.find(&kernel, number).is_some_and(|found| Arc::ptr_eq(&found, expected)), "{number}");
        }
        assert_eq!(overloads.next_number(&kernel), 4);
        assert!(Overloads::default().find(&inner, 1).is_none());
    }
}
