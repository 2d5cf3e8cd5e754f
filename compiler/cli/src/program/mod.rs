//! The analysis of a Python file without running it: its functions, and the values of its global names.
//!
//! [`scope`] interprets the file's top-level statements in order, [`eval`] evaluates constant expressions, [`jit`]
//! reads decorators and [`rules`] their launch rules and output rules, [`hint`] reads `# weft:` comments, and [`capture`] passes a function and its captured globals to
//! the compiler. An expression that cannot be evaluated becomes a [`Value::Opaque`] with a description of it. It is an
//! error only when a kernel uses it.

mod arith;
mod backward;
mod capture;
mod eval;
mod hint;
mod jit;
mod matrix;
mod rules;
mod scope;
#[cfg(test)]
mod tests;

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
    sync::Arc,
};

pub(crate) use capture::Captures;
pub(crate) use jit::Jit;
use weft_compiler::{
    diagnostic::{Code, Diagnostic},
    request::{Captured, Signature},
    source::{SourceFile, SourceMap, Span},
    syntax::ast,
};

/// A file, the project files that it imports, and their functions.
#[derive(Debug, Default)]
pub(crate) struct Program {
    /// The first one is the file named on the command line.
    modules: Vec<Module>,
    functions: Vec<Function>,
    /// The folder in which imports are resolved.
    folder: PathBuf,
    /// Errors that do not depend on how the file is used.
    faults: Vec<Diagnostic>,
    /// Whether a file is not valid Python.
    is_broken: bool,
    /// Jitted functions that are not compiled because they are not at the top level.
    missed: Vec<Missed>,
}

/// A jitted function that is not compiled because it is not at the top level.
#[derive(Debug)]
pub(crate) struct Missed {
    pub(crate) name: String,
    /// The enclosing scope as a message names it: ``the function `make` ``.
    pub(crate) inside: String,
    /// The span of its name.
    pub(crate) span: Span,
}

impl Missed {
    /// The warning for the user.
    pub(crate) fn warning(&self) -> Diagnostic {
        let message = format!("`{}` is skipped: it is in {}", self.name, self.inside);
        let warning = Diagnostic::warning(Code::NoKernel, self.span, message);
        warning
            .help("define it as a function at the top level of the file: the command does not run the file to find it")
    }
}

/// One file.
#[derive(Debug)]
struct Module {
    name: String,
    source: Arc<SourceFile>,
    names: BTreeMap<String, Value>,
    /// The span of each name's last binding.
    places: BTreeMap<String, Span>,
    /// Names that functions bind with `global`.
    rebound: BTreeSet<String>,
    /// Modules imported with `from module import *`, last first.
    stars: Vec<String>,
}

impl Module {
    fn new(name: &str, source: Arc<SourceFile>, names: BTreeMap<String, Value>) -> Self {
        let (places, rebound, stars) = (BTreeMap::new(), BTreeSet::new(), Vec::new());
        Self { name: name.to_owned(), source, names, places, rebound, stars }
    }
}

/// A function at the top level of a file.
#[derive(Clone, Debug)]
pub(crate) struct Function {
    module: usize,
    pub(crate) ast: ast::Function,
    /// `None` for a plain Python function.
    pub(crate) jit: Option<Jit>,
    /// Values of the parameters' defaults.
    defaults: BTreeMap<String, Value>,
    /// The function that computes its adjoints, from `cuda.custom_vjp`.
    backward: Option<Value>,
}

/// The value of a name.
#[derive(Clone, Debug, PartialEq)]
enum Value {
    /// A constant, or an object that weft knows by its qualified name. Never a `Function` or a `Module`.
    Const(Captured),
    /// A module of the user's project.
    Module(usize),
    /// A function of the user's project.
    Function(usize),
    /// Any other value: a description, and the expression that produced it.
    Opaque(String, Option<Box<ast::Expr>>),
    /// A value that depends on running the file: the reason (a sentence), and the file and span that cause it.
    Unknown(String, usize, Span),
}

/// A kernel to compile.
#[derive(Clone, Copy, Debug)]
pub(crate) struct KernelDef<'a> {
    /// The name that the file binds it to.
    pub(crate) name: &'a str,
    /// Its index in `Program::functions`.
    pub(crate) index: usize,
    pub(crate) function: &'a Function,
    pub(crate) jit: &'a Jit,
}

impl Program {
    /// Parses a file's bytes. `path` is shown in messages, and imports are resolved in its folder.
    pub(crate) fn read(path: &Path, bytes: &[u8]) -> Self {
        let folder = path.parent().unwrap_or(Path::new("")).to_path_buf();
        let mut program = Self { folder, ..Self::default() };
        let name = path.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
        program.load(&name, path, bytes);
        program
    }

    /// The files, in the order of the file indices of spans.
    pub(crate) fn sources(&self) -> SourceMap {
        let mut sources = SourceMap::default();
        for module in &self.modules {
            sources.add(&module.source);
        }
        sources
    }

    /// The paths of the files.
    pub(crate) fn paths(&self) -> Vec<PathBuf> {
        self.modules.iter().map(|module| PathBuf::from(&module.source.name)).collect()
    }

    /// Whether the file or a module that it imports is not valid Python. Its kernels cannot be checked then.
    pub(crate) fn is_broken(&self) -> bool {
        self.is_broken
    }

    /// Errors that do not depend on how the file is used: invalid decorators and statements that do not parse.
    pub(crate) fn faults(&self) -> &[Diagnostic] {
        &self.faults
    }

    /// Jitted functions of the main file that are not compiled, each with its enclosing scope.
    pub(crate) fn missed(&self) -> impl Iterator<Item = &Missed> {
        self.missed.iter().filter(|missed| missed.span.file == 0)
    }

    /// The jitted functions of the main file, including device functions, in the order of their definitions.
    pub(crate) fn jitted(&self) -> Vec<KernelDef<'_>> {
        let Some(main) = self.modules.first() else { return Vec::new() };
        let mut jitted: Vec<KernelDef<'_>> = main
            .names
            .iter()
            .filter_map(|(name, value)| {
                let Value::Function(index) = *value else { return None };
                let function = self.functions.get(index)?;
                let own = function.module == 0;
                own.then_some(KernelDef { name, index, function, jit: function.jit.as_ref()? })
            })
            .collect();
        jitted.sort_by_key(|kernel| kernel.function.ast.span);
        jitted
    }

    /// The kernels: all jitted functions except device functions. A function is a device function if it is declared as
    /// one, or if it has no signature and another jitted function calls it.
    pub(crate) fn kernels(&self) -> Vec<KernelDef<'_>> {
        let jitted = self.jitted();
        let called: Vec<usize> = jitted.iter().flat_map(|kernel| self.callees(kernel.index)).collect();
        let is_kernel = |kernel: &KernelDef<'_>| {
            !kernel.jit.options.device && (!called.contains(&kernel.index) || !self.signatures(kernel).is_empty())
        };
        jitted.into_iter().filter(is_kernel).collect()
    }

    /// The signatures of a kernel in the source: those of its decorator, else the one of its annotations.
    pub(crate) fn signatures(&self, kernel: &KernelDef<'_>) -> Vec<Signature> {
        if !kernel.jit.signatures.is_empty() {
            return kernel.jit.signatures.clone();
        }
        self.annotated(kernel.function).map(|args| Signature { args, returns: None }).into_iter().collect()
    }

    /// Whether a function's module defines a name. A builtin counts only if the module rebinds its name.
    pub(crate) fn defines(&self, kernel: &KernelDef<'_>, name: &str) -> bool {
        let builtin = Value::Const(Captured::Known(format!("builtins.{name}")));
        self.lookup(kernel.function.module, name).is_some_and(|value| value != builtin)
    }

    /// The source text of a function's file.
    pub(crate) fn text(&self, kernel: &KernelDef<'_>) -> &str {
        self.modules.get(kernel.function.module).map_or("", |module| &module.source.text)
    }
}
