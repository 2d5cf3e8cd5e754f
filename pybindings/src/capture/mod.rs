//! From a Python function to a [`FunctionDef`]: its source, and the values of the names that it reads.
//!
//! The source is read once. Names are read for each compilation, including those of the functions that a kernel calls,
//! so that a compilation sees the current values and a failed one has no effect. They are looked up as in Python:
//! closure cells, then globals, then builtins. A name that is not found is left out, so that the compiler reports it at
//! its source location.

mod objects;
mod values;

use std::{collections::BTreeMap, marker::PhantomData, sync::Arc};

use pyo3::{
    PyClass,
    prelude::*,
    pyclass::boolean_struct::True,
    types::{PyDict, PyTuple},
};
use weft_compiler::{
    diagnostic::{self, NameContext},
    request::{Captured, Derivative, FunctionDef, GpuBody, MAX_CALL_DEPTH, Signature, Typing},
    source::{SourceFile, SourceMap},
    syntax::{self, ast},
};

use crate::errors;

/// The part of a function that its source alone determines.
pub(crate) struct Parsed {
    source: Arc<SourceFile>,
    ast: ast::Function,
    /// The names that it reads and does not bind, with their attributes: `a.b.c`.
    chains: Vec<String>,
}

impl Parsed {
    /// Finds a function's text and parses it.
    pub(crate) fn new(py_func: &Bound<'_, PyAny>, given: Option<&str>, kept: Option<&Py<PyAny>>) -> PyResult<Self> {
        let py = py_func.py();
        let (name, text, first_line, class): (String, String, u32, Option<String>) =
            py.import("weft._source")?.call_method1("of", (py_func, given, kept))?.extract()?;
        let source = Arc::new(SourceFile { first_line, ..SourceFile::new(name, text) });
        let ast = syntax::parse_function(&source, 0, class.as_deref()).map_err(|diagnostic| {
            let mut sources = SourceMap::default();
            sources.add(&source);
            errors::diagnostics(py, &[diagnostic], &sources)
        })?;
        let chains = syntax::free_chains(&ast);
        Ok(Self { source, ast, chains })
    }
}

impl Parsed {
    /// The function with the adjoints of some of its parameters.
    pub(crate) fn with_adjoints(mut self, derivative: &Derivative) -> Self {
        derivative.add_adjoints(&mut self.ast);
        self
    }
}

/// A function that is no kernel, with the values of the names that it reads.
pub(crate) struct Plain {
    pub(crate) source: Arc<SourceFile>,
    pub(crate) ast: ast::Function,
    pub(crate) globals: BTreeMap<String, Captured>,
}

/// The class of jitted functions, as far as capturing uses it.
pub(crate) trait Jitted: PyClass<Frozen = True> + Sync {
    /// The Python function.
    fn function<'py>(&self, py: Python<'py>) -> Bound<'py, PyAny>;

    /// The function's syntax tree, parsed on first use.
    fn parsed(&self, py: Python<'_>) -> PyResult<Arc<Parsed>>;

    /// The properties that a caller in another kernel needs.
    fn declared(&self) -> Declared;

    /// The function that computes its adjoints, if the program gives one.
    fn backward<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyAny>>;

    /// Code that is linked with each kernel that leads to it; `None` if there is none.
    fn links<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyTuple>>>;
}

/// The options of a device function's decorator that affect its callers.
pub(crate) struct Declared {
    pub(crate) signatures: Vec<Signature>,
    pub(crate) inline: bool,
    pub(crate) typing: Option<Typing>,
    pub(crate) gpu: Option<GpuBody>,
}

/// Captures functions, and through them the functions that they call: the objects of class `D`.
pub(crate) struct Capturer<'py, D> {
    py: Python<'py>,
    class: PhantomData<fn(D)>,
    /// The dispatchers that are being captured, outermost first, with the numbers of their definitions: one that is met
    /// again is a recursion.
    path: Vec<(Bound<'py, PyAny>, u32)>,
    /// How many there were: the next one's number.
    count: u32,
    /// Device arrays whose addresses were captured.
    pub(crate) kept: Vec<Py<PyAny>>,
    /// Files linked with the kernel: paths and objects, as the functions name them.
    pub(crate) links: Vec<Py<PyAny>>,
    /// Those that were: a function that two others call is one definition.
    done: Vec<(Bound<'py, PyAny>, Arc<FunctionDef>)>,
}

impl<'py, D: Jitted> Capturer<'py, D> {
    /// A capturer that has seen nothing.
    pub(crate) fn new(py: Python<'py>) -> Self {
        Self {
            py,
            class: PhantomData,
            path: Vec::new(),
            count: 0,
            kept: Vec::new(),
            links: Vec::new(),
            done: Vec::new(),
        }
    }

    /// A capturer whose functions have numbers from one on: those before it are others'.
    pub(crate) fn from(py: Python<'py>, number: u32) -> Self {
        Self { count: number, ..Self::new(py) }
    }

    /// The definition of a dispatcher, with the current values of its names.
    pub(crate) fn dispatcher(&mut self, dispatcher: &Bound<'py, D>) -> PyResult<Arc<FunctionDef>> {
        if let Some((_, known)) = self.done.iter().find(|(done, _)| done.is(dispatcher)) {
            return Ok(Arc::clone(known));
        }
        let number = self.count;
        self.count += 1;
        self.path.push((dispatcher.clone().into_any(), number));
        let captured = self.function(dispatcher.get(), number);
        self.path.pop();
        let function = Arc::new(captured?);
        self.done.push((dispatcher.clone().into_any(), Arc::clone(&function)));
        Ok(function)
    }

    /// A dispatcher as the value of a name in another function.
    pub(crate) fn device_function(&mut self, value: &Bound<'py, PyAny>) -> PyResult<Captured> {
        let dispatcher = value.cast::<D>()?;
        if let Some((_, number)) = self.path.iter().find(|(seen, _)| seen.is(value)) {
            return Ok(Captured::Recursive(*number));
        }
        if self.path.len() > MAX_CALL_DEPTH {
            return Ok(Captured::too_deep());
        }
        Ok(Captured::Function(self.dispatcher(dispatcher)?))
    }

    fn function(&mut self, dispatcher: &D, number: u32) -> PyResult<FunctionDef> {
        let py_func = dispatcher.function(self.py);
        let parsed = dispatcher.parsed(self.py)?;
        let globals = self.names(&py_func, &parsed.chains)?;
        let defaults = self.defaults(&py_func)?;
        let Declared { signatures, inline, typing, gpu } = dispatcher.declared();
        if let Some(links) = dispatcher.links(self.py)? {
            self.links.extend(links.iter().map(Bound::unbind));
        }
        let backward = dispatcher.backward(self.py).map(|function| self.device_function(&function)).transpose()?;
        let (ast, source) = (parsed.ast.clone(), Arc::clone(&parsed.source));
        Ok(FunctionDef { ast, source, globals, defaults, signatures, inline, typing, gpu, backward, number })
    }

    /// A function that is no kernel, and the values of the names that it reads: a rule.
    pub(crate) fn plain(
        &mut self,
        py_func: &Bound<'py, PyAny>,
        given: Option<&str>,
        kept: Option<&Py<PyAny>>,
    ) -> PyResult<Plain> {
        let Parsed { source, ast, chains } = Parsed::new(py_func, given, kept)?;
        Ok(Plain { globals: self.names(py_func, &chains)?, source, ast })
    }

    /// The values of the names that a function reads.
    fn names(&mut self, py_func: &Bound<'py, PyAny>, chains: &[String]) -> PyResult<BTreeMap<String, Captured>> {
        let mut roots: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for chain in chains {
            let (root, rest) = chain.split_once('.').unwrap_or((chain, ""));
            let rests = roots.entry(root).or_default();
            if !rest.is_empty() {
                rests.push(rest);
            }
        }
        let scope = Scope::of(py_func)?;
        let mut names = BTreeMap::new();
        for (root, rests) in roots {
            if let Some(value) = scope.look_up(root)? {
                names.insert(root.to_owned(), self.value(&value, &rests, 0)?);
            }
        }
        Ok(names)
    }

    /// The values of parameters' defaults.
    fn defaults(&mut self, py_func: &Bound<'py, PyAny>) -> PyResult<BTreeMap<String, Captured>> {
        let mut found = BTreeMap::new();
        let names = parameter_names(py_func)?;
        let positional = names.len().saturating_sub(keyword_only(py_func)?);
        if let Ok(values) = py_func.getattr(intern!(self.py, "__defaults__"))?.cast::<PyTuple>() {
            let first = positional.saturating_sub(values.len());
            for (name, value) in names.iter().skip(first).zip(values.iter()) {
                found.insert(name.clone(), self.value(&value, &[], 0)?);
            }
        }
        if let Ok(values) = py_func.getattr(intern!(self.py, "__kwdefaults__"))?.cast::<PyDict>() {
            for (name, value) in values.iter() {
                found.insert(name.extract()?, self.value(&value, &[], 0)?);
            }
        }
        Ok(found)
    }
}

/// The names of a Python function's parameters but for `*args` and `**kwargs`, those given by name only last.
pub(crate) fn parameter_names(py_func: &Bound<'_, PyAny>) -> PyResult<Vec<String>> {
    let code = py_func.getattr("__code__")?;
    let count = code.getattr("co_argcount")?.extract::<usize>()? + keyword_only(py_func)?;
    let mut names: Vec<String> = code.getattr("co_varnames")?.extract()?;
    names.truncate(count);
    Ok(names)
}

/// How many of a Python function's parameters, the last ones, are given by name only.
pub(crate) fn keyword_only(py_func: &Bound<'_, PyAny>) -> PyResult<usize> {
    py_func.getattr("__code__")?.getattr("co_kwonlyargcount")?.extract()
}

/// A Python function's `*args` or else `**kwargs`.
pub(crate) fn variadic(py_func: &Bound<'_, PyAny>) -> PyResult<Option<String>> {
    // Bits of `co_flags`; the names come after those of the other parameters.
    let code = py_func.getattr("__code__")?;
    let flags: u32 = code.getattr("co_flags")?.extract()?;
    let stars = match flags {
        flags if flags & 0x4 != 0 => "*",
        flags if flags & 0x8 != 0 => "**",
        _ => return Ok(None),
    };
    let before = code.getattr("co_argcount")?.extract::<usize>()? + keyword_only(py_func)?;
    Ok(Some(format!("{stars}{}", code.getattr("co_varnames")?.get_item(before)?)))
}

/// Where a function's free names are looked up.
struct Scope<'py> {
    cells: Vec<(String, Bound<'py, PyAny>)>,
    globals: Bound<'py, PyDict>,
    builtins: Bound<'py, PyAny>,
}

impl<'py> Scope<'py> {
    fn of(py_func: &Bound<'py, PyAny>) -> PyResult<Self> {
        let py = py_func.py();
        let names: Vec<String> = py_func.getattr("__code__")?.getattr("co_freevars")?.extract()?;
        let closure = py_func.getattr("__closure__")?;
        let cells = closure.cast::<PyTuple>().map_or_else(|_| Vec::new(), |cells| cells.iter().collect());
        Ok(Self {
            cells: names.into_iter().zip(cells).collect(),
            globals: py_func.getattr("__globals__")?.cast_into()?,
            builtins: py.import("builtins")?.into_any(),
        })
    }

    fn look_up(&self, name: &str) -> PyResult<Option<Bound<'py, PyAny>>> {
        if let Some((_, cell)) = self.cells.iter().find(|(cell, _)| cell == name) {
            // An empty cell raises ValueError: the name has no value yet.
            return Ok(cell.getattr("cell_contents").ok());
        }
        if let Some(value) = self.globals.get_item(name)? {
            return Ok(Some(value));
        }
        self.builtins.getattr_opt(name)
    }
}

/// The free names of a function's source: a copy of the function must include them.
#[pyfunction]
pub(crate) fn free_names(py: Python<'_>, file: String, text: String) -> PyResult<Vec<String>> {
    let source = Arc::new(SourceFile::new(file, text));
    let function = syntax::parse_function(&source, 0, None).map_err(|diagnostic| {
        let mut sources = SourceMap::default();
        sources.add(&source);
        errors::diagnostics(py, &[diagnostic], &sources)
    })?;
    let mut names: Vec<String> = syntax::free_chains(&function)
        .iter()
        .map(|chain| chain.split('.').next().unwrap_or_default().to_owned())
        .collect();
    names.dedup();
    Ok(names)
}

/// The end of the message about a missing name, a whole path such as `weft.cuda.gird`: the existing name that is
/// probably meant, or a replacement.
#[pyfunction]
#[expect(clippy::needless_pass_by_value, reason = "PyO3 makes the list")]
pub(crate) fn name_hint(path: &str, known: Vec<String>) -> String {
    diagnostic::hint(NameContext::Host, path, known.iter().map(String::as_str))
}

/// The names that kernels can use, with what they do: `("weft.cuda.grid", "…")`.
#[pyfunction]
pub(crate) fn intrinsics() -> Vec<(&'static str, &'static str)> {
    weft_compiler::intrinsics::rows().map(|row| (row.path, row.doc)).collect()
}
