//! A Python function as captured at compile time.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use weft_artifact::ArgType;

use super::{Abi, Captured};
use crate::{source::SourceFile, syntax::ast};

/// A Python function as captured at compile time: its tree and what its free names mean.
#[derive(Clone, Debug, PartialEq)]
pub struct FunctionDef {
    /// The parsed definition.
    pub ast: ast::Function,
    /// The text that it was parsed from; its spans refer to this file.
    pub source: Arc<SourceFile>,
    /// Free names (globals, closure variables, builtins that are not shadowed) and their values at compile time.
    /// A name that is not here and not a Python builtin is undefined.
    pub globals: BTreeMap<String, Captured>,
    /// Default values of parameters, by name, evaluated by the caller (a literal default may be left out).
    pub defaults: BTreeMap<String, Captured>,
    /// Declared signatures, if the device function has some: the argument types that calls are converted to, and the
    /// declared return type.
    pub signatures: Vec<Signature>,
    /// `inline="always"` or `forceinline=True`.
    pub inline: bool,
    /// `typing=`, where the function says it: the types that its numbers have. Else it follows its caller.
    pub typing: Option<Typing>,
    /// What the function is on GPUs instead of its statements; it has one signature then.
    pub gpu: Option<GpuBody>,
    /// What [`Captured::Recursive`] calls it: no other function that the request leads to has this number.
    pub number: u32,
}

/// The types that a function's numbers have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Typing {
    /// Numba's: integers compute as 64 bits, and a literal is an `int64` or a `float64`.
    #[default]
    Numba,
    /// NumPy 2's (NEP 50): a number of Python's takes the type of what it meets.
    Numpy,
}

impl Typing {
    /// All, by the names that `typing=` has for them.
    pub const NAMES: [(&'static str, Self); 2] = [("numba", Self::Numba), ("numpy", Self::Numpy)];
}

/// What a function is on GPUs instead of its statements.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GpuBody {
    /// PTX, from `cuda.intrinsic`.
    Ptx(PtxBody),
    /// Code that is linked with the kernel, from `cuda.declare_device`.
    External(External),
}

/// PTX in place of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PtxBody {
    /// The text: `%0` and on are the results and then the arguments.
    pub text: String,
    /// It only computes.
    pub pure: bool,
}

/// A function that is defined elsewhere.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct External {
    /// Its symbol.
    pub symbol: String,
    /// How it is called.
    pub abi: Abi,
    /// It waits for all threads of the grid, which must run at a time.
    pub cooperative: bool,
    /// The definition has statements, which are what it does on a CPU. Else they mean nothing.
    pub python: bool,
}

impl External {
    /// The text of a definition without statements, for messages: Python's form of a declaration.
    pub fn stub(symbol: &str, params: usize) -> (String, String) {
        let name: String =
            symbol.chars().map(|letter| if letter.is_ascii_alphanumeric() { letter } else { '_' }).collect();
        let params: Vec<String> = (0..params).map(|param| format!("x{param}")).collect();
        let text = format!("def {name}({}):\n    pass\n", params.join(", "));
        (name, text)
    }
}

impl FunctionDef {
    /// Visits functions and those that they lead to, as long as it is told to go on.
    pub(super) fn each(mut open: Vec<Arc<Self>>, visit: &mut dyn FnMut(&Arc<Self>) -> bool) {
        let mut seen = BTreeSet::new();
        while let Some(def) = open.pop() {
            if !visit(&def) {
                return;
            }
            if seen.insert(Arc::as_ptr(&def)) {
                for value in def.globals.values().chain(def.defaults.values()) {
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
    /// `None` for `void` or where the text has no return type.
    pub returns: Option<ArgType>,
}

/// How deep functions may call functions; whoever captures them and the compiler recurse as deep.
pub const MAX_CALL_DEPTH: usize = 200;
