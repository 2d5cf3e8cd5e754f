//! A Python function as captured at compile time.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use weft_artifact::ArgType;

use super::{Abi, Captured};
use crate::{source::SourceFile, syntax::ast};

/// A Python function as captured at compile time: its syntax tree and the values of its free names.
#[derive(Clone, Debug, PartialEq)]
pub struct FunctionDef {
    /// The parsed definition.
    pub ast: ast::Function,
    /// The source text that it was parsed from; its spans refer to this file.
    pub source: Arc<SourceFile>,
    /// Free names (globals, closure variables, builtins that are not shadowed) and their values at compile time. A name
    /// that is not here and not a Python builtin is undefined.
    pub globals: BTreeMap<String, Captured>,
    /// Default values of parameters, by name, evaluated by the caller (a literal default may be omitted).
    pub defaults: BTreeMap<String, Captured>,
    /// Declared signatures, if the device function has any: the argument types that calls are converted to, and the
    /// declared return type.
    pub signatures: Vec<Signature>,
    /// `inline="always"` or `forceinline=True`.
    pub inline: bool,
    /// `typing=`, if the function sets it. Otherwise the function uses the typing rules of its caller.
    pub typing: Option<Typing>,
    /// The GPU implementation that replaces its statements; the function then has one signature.
    pub gpu: Option<GpuBody>,
    /// The function that computes the adjoints of its arguments, from `cuda.custom_vjp`.
    pub backward: Option<Captured>,
    /// The number by which [`Captured::Recursive`] refers to it; unique among the functions of the request.
    pub number: u32,
}

/// The typing rules of a function.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Typing {
    /// Numba's: integer arithmetic has 64 bits, and a literal is an `int64` or a `float64`.
    #[default]
    Numba,
    /// NumPy 2's (NEP 50): a Python number takes the type of the other operand.
    Numpy,
}

impl Typing {
    /// All rules, by their names in `typing=`.
    pub const NAMES: [(&'static str, Self); 2] = [("numba", Self::Numba), ("numpy", Self::Numpy)];
}

/// The GPU implementation that replaces a function's statements.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GpuBody {
    /// PTX, from `cuda.intrinsic`.
    Ptx(PtxBody),
    /// Code that is linked with the kernel, from `cuda.declare_device`.
    External(External),
}

/// Inline PTX that replaces a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PtxBody {
    /// The PTX text. `%0` and up are the results, followed by the arguments.
    pub text: String,
    /// It has no side effects.
    pub pure: bool,
}

/// A function that is defined elsewhere.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct External {
    /// Its symbol.
    pub symbol: String,
    /// Its calling convention.
    pub abi: Abi,
    /// It synchronizes the grid, so a launch must be cooperative.
    pub cooperative: bool,
    /// The definition has statements, which run on CPUs. Otherwise its body has no meaning.
    pub python: bool,
}

impl External {
    /// The source of a definition without statements, for messages: Python's form of a declaration.
    pub fn stub(symbol: &str, params: usize) -> (String, String) {
        let name: String =
            symbol.chars().map(|letter| if letter.is_ascii_alphanumeric() { letter } else { '_' }).collect();
        let params: Vec<String> = (0..params).map(|param| format!("x{param}")).collect();
        let text = format!("def {name}({}):\n    pass\n", params.join(", "));
        (name, text)
    }
}

impl FunctionDef {
    /// Visits functions and their callees, until `visit` returns false.
    pub(super) fn each(mut open: Vec<Arc<Self>>, visit: &mut dyn FnMut(&Arc<Self>) -> bool) {
        let mut seen = BTreeSet::new();
        while let Some(def) = open.pop() {
            if !visit(&def) {
                return;
            }
            if seen.insert(Arc::as_ptr(&def)) {
                for value in def.globals.values().chain(def.defaults.values()).chain(&def.backward) {
                    value.for_each_function(&mut |callee| open.push(Arc::clone(callee)));
                }
            }
        }
    }
}

/// A declared signature: `void(float32[:], int32)`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Signature {
    /// Argument types.
    pub args: Vec<ArgType>,
    /// `None` for `void`, or if the declaration has no return type.
    pub returns: Option<ArgType>,
}

/// The maximum depth of calls between functions. The caller that captures them and the compiler recurse to this depth.
pub const MAX_CALL_DEPTH: usize = 200;
