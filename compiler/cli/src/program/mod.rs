//! A Python file as the command sees it: its functions and what its names mean, found without running Python.
//!
//! [`scope`] carries out the file's top level in order, [`eval`] evaluates constant expressions, [`jit`] reads
//! decorators and [`hint`] comments, [`capture`] hands the compiler a function with its captured names. What cannot be evaluated is no
//! error until a kernel needs it: it is a [`Value::Opaque`] that says what it is.

mod arith;
mod capture;
mod eval;
mod hint;
mod jit;
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

/// A file, the files of its own project that it imports, and their functions.
#[derive(Debug, Default)]
pub(crate) struct Program {
    /// The file that was asked for is the first.
    modules: Vec<Module>,
    functions: Vec<Function>,
    /// Where imports are looked for.
    folder: PathBuf,
    /// What is wrong however the file is used.
    faults: Vec<Diagnostic>,
    /// A file is no Python.
    is_broken: bool,
    /// Jitted functions that are not compiled.
    missed: Vec<Missed>,
}

/// A jitted function that is not compiled, because of where it stands.
#[derive(Debug)]
pub(crate) struct Missed {
    pub(crate) name: String,
    /// ``the function `make` ``.
    pub(crate) inside: String,
    /// Where its name stands.
    pub(crate) span: Span,
}

impl Missed {
    /// What a user is told.
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
    /// Where each was bound last.
    places: BTreeMap<String, Span>,
    /// Names that functions bind with `global`.
    rebound: BTreeSet<String>,
    /// Modules of `from module import *`, last first.
    stars: Vec<String>,
}

impl Module {
    fn new(name: &str, source: Arc<SourceFile>, names: BTreeMap<String, Value>) -> Self {
        let (places, rebound, stars) = (BTreeMap::new(), BTreeSet::new(), Vec::new());
        Self { name: name.to_owned(), source, names, places, rebound, stars }
    }
}

/// A function at the top level of a file.
#[derive(Debug)]
pub(crate) struct Function {
    module: usize,
    pub(crate) ast: ast::Function,
    /// `None` for a plain Python function.
    pub(crate) jit: Option<Jit>,
    /// Values of the parameters' defaults.
    defaults: BTreeMap<String, Value>,
}

/// What a name means.
#[derive(Clone, Debug, PartialEq)]
enum Value {
    /// A constant, or something that weft knows by its path; never a `Function` or a `Module`.
    Const(Captured),
    /// A file of the user's own.
    Module(usize),
    /// A function of the user's own.
    Function(usize),
    /// Anything else: what it is, and the expression that gave it.
    Opaque(String, Option<Box<ast::Expr>>),
    /// What the text does not tell: why (a sentence), and the file and the place that make it so.
    Unknown(String, usize, Span),
}

/// A kernel to compile.
#[derive(Clone, Copy, Debug)]
pub(crate) struct KernelDef<'a> {
    /// The name that the file gives it.
    pub(crate) name: &'a str,
    /// Its index among the functions.
    pub(crate) index: usize,
    pub(crate) function: &'a Function,
    pub(crate) jit: &'a Jit,
}

impl Program {
    /// Reads a file's bytes. `path` is shown in messages and says where imports are looked for.
    pub(crate) fn read(path: &Path, bytes: &[u8]) -> Self {
        let folder = path.parent().unwrap_or(Path::new("")).to_path_buf();
        let mut program = Self { folder, ..Self::default() };
        let name = path.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
        program.load(&name, path, bytes);
        program
    }

    /// The files, with the indices that spans have.
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

    /// Whether the file, or one that it imports, is no Python: nothing more can be said of its kernels.
    pub(crate) fn is_broken(&self) -> bool {
        self.is_broken
    }

    /// What is wrong however the file is used: decorators that cannot be read, statements that do not parse.
    pub(crate) fn faults(&self) -> &[Diagnostic] {
        &self.faults
    }

    /// Jitted functions of the file that was asked for which are not compiled, each with what it stands in.
    pub(crate) fn missed(&self) -> impl Iterator<Item = &Missed> {
        self.missed.iter().filter(|missed| missed.span.file == 0)
    }

    /// The jitted functions of the file that was asked for, device functions too, in the order of their definitions.
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

    /// The kernels: jitted functions that are not device functions, by declaration or because they have no signature
    /// and others call them.
    pub(crate) fn kernels(&self) -> Vec<KernelDef<'_>> {
        let jitted = self.jitted();
        let called: Vec<usize> = jitted.iter().flat_map(|kernel| self.callees(kernel.index)).collect();
        let is_kernel = |kernel: &KernelDef<'_>| {
            !kernel.jit.options.device && (!called.contains(&kernel.index) || !self.signatures(kernel).is_empty())
        };
        jitted.into_iter().filter(is_kernel).collect()
    }

    /// The signatures that the text gives a kernel: its decorator's, else the one of its annotations.
    pub(crate) fn signatures(&self, kernel: &KernelDef<'_>) -> Vec<Signature> {
        if !kernel.jit.signatures.is_empty() {
            return kernel.jit.signatures.clone();
        }
        self.annotated(kernel.function).map(|args| Signature { args, returns: None }).into_iter().collect()
    }

    /// Whether a function's module defines a name, be it one of Python's builtins or not.
    pub(crate) fn defines(&self, kernel: &KernelDef<'_>, name: &str) -> bool {
        let builtin = Value::Const(Captured::Known(format!("builtins.{name}")));
        self.lookup(kernel.function.module, name).is_some_and(|value| value != builtin)
    }

    /// The text of a function's file.
    pub(crate) fn text(&self, kernel: &KernelDef<'_>) -> &str {
        self.modules.get(kernel.function.module).map_or("", |module| &module.source.text)
    }
}
