//! Interprets the top level of a file (imports, definitions and assignments) in order, as Python would.
//!
//! A name is unknown if its value depends on running the file: if it is bound in a loop, under a condition that cannot
//! be evaluated, in an exception handler, or by a function with `global`, or unbound by `del`.

use std::{collections::BTreeMap, path::Path, sync::Arc};

use weft_compiler::{
    diagnostic::{Code, Diagnostic},
    intrinsics::is_exception,
    request::{Captured, External, GpuBody},
    source::{SourceFile, Span},
    syntax::{
        Parsed,
        ast::{self, Expr, ExprKind, ModuleItem, Stmt, StmtKind},
        parse_function, parse_module,
    },
};

use super::{Function, Jit, Missed, Module, Program, Value, eval};
use crate::encoding;

/// Modules that weft knows. Their members have canonical paths.
const KNOWN_MODULES: [&str; 8] = ["weft", "numba", "math", "cmath", "numpy", "operator", "builtins", "cffi"];

/// The reason for an unknown name that is bound under a condition.
const CONDITION: &str = "a condition decides whether it is bound here";

/// The reason for an unknown name that is bound in a loop or a `match`.
const REPEATED: &str = "it is bound here, in a loop or a `match`";

/// The maximum number of modules to load, for files that import each other.
const MAX_FILES: usize = 100;

impl Program {
    /// Loads a file and returns its index. A file that is not valid Python has no names.
    pub(super) fn load(&mut self, name: &str, path: &Path, bytes: &[u8]) -> usize {
        let index = self.modules.len();
        let shown = path.display().to_string();
        let (source, parsed) = match encoding::decode(bytes) {
            Ok(text) => {
                let source = Arc::new(SourceFile::new(shown, text));
                let parsed = parse_module(&source, index as u32);
                (source, parsed)
            }
            Err(wrong) => {
                let span = Span { file: index as u32, start: wrong.at.start as u32, end: wrong.at.end as u32 };
                let fault = Diagnostic::error(Code::Syntax, span, wrong.message);
                let help = "declare the encoding in the first line: `# -*- coding: latin-1 -*-`";
                (Arc::new(SourceFile::new(shown, wrong.text)), Err(fault.help(help)))
            }
        };
        let Parsed { items, faults } = parsed.unwrap_or_else(|fault| {
            self.is_broken = true;
            Parsed { items: Vec::new(), faults: vec![fault] }
        });
        self.faults.extend(faults);
        let names = BTreeMap::from([
            ("__name__".to_owned(), Value::Const(Captured::Str(name.to_owned()))),
            ("__file__".to_owned(), Value::Const(Captured::Str(source.name.clone()))),
        ]);
        self.modules.push(Module::new(name, source, names));
        self.items(index, items);
        index
    }

    fn items(&mut self, module: usize, items: Vec<ModuleItem>) {
        for item in items {
            self.item(module, item);
        }
    }

    fn item(&mut self, module: usize, item: ModuleItem) {
        match item {
            ModuleItem::Function(function) => self.define(module, function),
            ModuleItem::Class { name, bases, span } => {
                let value = self.class(module, &name, bases.as_deref().unwrap_or_default());
                self.bind(module, name, value, span);
            }
            ModuleItem::Import { .. } | ModuleItem::ImportFrom { .. } => {
                if let Some((name, value, span)) = self.imported(module, item) {
                    self.bind(module, name, value, span);
                }
            }
            ModuleItem::If { branches, orelse } => self.choose(module, branches, orelse),
            ModuleItem::Try { body, handlers } => {
                self.items(module, body);
                for handler in handlers {
                    self.handle(module, handler);
                }
            }
            ModuleItem::Maybe(items) => self.forget(module, items, REPEATED),
            ModuleItem::Binds { name, why, always, span } => {
                self.bind(module, name.clone(), Value::Unknown(why, module, span), span);
                if always && let Some(module) = self.modules.get_mut(module) {
                    module.rebound.insert(name);
                }
            }
            ModuleItem::Inner { name, decorators, inside, span } => {
                if decorators.iter().any(|decorator| self.may_be_jit(module, decorator)) {
                    self.missed.push(Missed { name, inside, span });
                }
            }
            ModuleItem::Stmt(stmt) => self.stmt(module, stmt),
            ModuleItem::Unparsed { message, at, span } => self.unparsed(module, message, at, span),
        }
    }

    /// Interprets the branch of an `if` whose condition is true. If a condition cannot be evaluated, the names that the
    /// remaining branches assign become unknown.
    fn choose(&mut self, module: usize, branches: Vec<(Expr, Vec<ModuleItem>)>, orelse: Vec<ModuleItem>) {
        let mut branches = branches.into_iter();
        while let Some((test, body)) = branches.next() {
            self.walrus(module, &test);
            match eval::truth(&self.eval(module, &test)) {
                Some(true) => {
                    self.items(module, body);
                    let rest = branches.flat_map(|(_, body)| body).chain(orelse).collect::<Vec<_>>();
                    return self.skip(module, &rest, "the `else` of a condition that is true here");
                }
                Some(false) => {
                    let range = test.span.start as usize..test.span.end as usize;
                    let text = self.modules.get(module).and_then(|module| module.source.text.get(range));
                    let inside = format!("`if {}:`, which is false here", text.unwrap_or("…"));
                    self.skip(module, &body, &inside);
                }
                None => {
                    for body in std::iter::once(body).chain(branches.map(|(_, body)| body)).chain([orelse]) {
                        self.forget(module, body, CONDITION);
                    }
                    return;
                }
            }
        }
        self.items(module, orelse);
    }

    /// The name and value that an import binds. `None` for `import *`, which binds its names itself.
    fn imported(&mut self, module: usize, item: ModuleItem) -> Option<(String, Value, Span)> {
        match item {
            ModuleItem::Import { module: path, bound, binds_root, span } => {
                let path = if binds_root { bound.clone() } else { path };
                Some((bound, self.import(&path), span))
            }
            ModuleItem::ImportFrom { module: path, name, bound: _, span } if name == "*" => {
                self.import_star(module, &path, span);
                None
            }
            ModuleItem::ImportFrom { module: path, name, bound, span } => {
                let value = match self.import(&path) {
                    Value::Opaque(what, _) => {
                        if let Value::Module(index) = self.import(&format!("{path}.{name}")) {
                            Value::Module(index)
                        } else {
                            Value::Opaque(format!("member of {} {what}", weft_artifact::article(&what)), None)
                        }
                    }
                    from @ (Value::Const(_) | Value::Module(_) | Value::Function(_) | Value::Unknown(..)) => {
                        self.member(from, &name)
                    }
                };
                Some((bound, value, span))
            }
            ModuleItem::Function(_)
            | ModuleItem::Class { .. }
            | ModuleItem::If { .. }
            | ModuleItem::Try { .. }
            | ModuleItem::Maybe(_)
            | ModuleItem::Binds { .. }
            | ModuleItem::Inner { .. }
            | ModuleItem::Stmt(_)
            | ModuleItem::Unparsed { .. } => None,
        }
    }

    /// Binds a name. If a function of the module rebinds the name with `global`, its data values are unknown;
    /// functions, modules and known objects are bound nevertheless.
    fn bind(&mut self, module: usize, name: String, value: Value, span: Span) {
        if let Some(module) = self.modules.get_mut(module)
            && !(module.rebound.contains(&name) && is_data(&value))
        {
            module.places.insert(name.clone(), span);
            module.names.insert(name, value);
        }
    }

    fn define(&mut self, module: usize, function: ast::Function) {
        let name = function.name.clone();
        let span = function.name_span;
        let index = self.add_function(module, function, None);
        self.bind(module, name, Value::Function(index), span);
    }

    /// The value of a class for kernels. A class derived from an exception is an exception.
    fn class(&self, module: usize, name: &str, bases: &[Expr]) -> Value {
        let of = self.modules.get(module).map_or("", |module| &module.name);
        for base in bases {
            match self.eval(module, base) {
                Value::Const(Captured::Exception(_)) => {
                    return Value::Const(Captured::Exception(format!("{of}.{name}")));
                }
                Value::Const(Captured::Known(path)) if path.strip_prefix("builtins.").is_some_and(is_exception) => {
                    return Value::Const(Captured::Exception(format!("{of}.{name}")));
                }
                Value::Const(_) | Value::Module(_) | Value::Function(_) | Value::Opaque(..) | Value::Unknown(..) => {}
            }
        }
        Value::Opaque("class".into(), None)
    }

    /// Adds a function. `decorator` is the `cuda.jit` of `k = cuda.jit(f)`.
    fn add_function(&mut self, module: usize, function: ast::Function, decorator: Option<&Expr>) -> usize {
        let (mut jit, mut faults) = match decorator {
            Some(decorator) => self.read_decorators(module, std::slice::from_ref(decorator)),
            None => self.read_decorators(module, &function.decorators),
        };
        if let (Some(jit), Some(source)) = (&mut jit, self.modules.get(module).map(|module| &module.source))
            && jit.signatures.is_empty()
            && !jit.options.device
        {
            match super::hint::signatures(source, module as u32, &function) {
                Ok(hinted) => jit.signatures = hinted,
                Err(fault) => faults.push(fault),
            }
        }
        if let Some(jit) = &mut jit {
            let decorators = decorator.map_or(function.decorators.as_slice(), std::slice::from_ref);
            faults.extend(self.read_rules(module, decorators, &function, jit));
        }
        self.faults.extend(faults);
        let with_defaults = function.params.iter().filter_map(|param| Some((param, param.default.as_ref()?)));
        let defaults = with_defaults.map(|(param, default)| (param.name.clone(), self.eval(module, default))).collect();
        let decorators = if decorator.is_none() { function.decorators.clone() } else { Vec::new() };
        self.functions.push(Function { module, ast: function, jit, defaults, backward: None });
        let index = self.functions.len() - 1;
        self.add_backward(module, index, &decorators);
        index
    }

    fn stmt(&mut self, module: usize, stmt: Stmt) {
        match stmt.kind {
            StmtKind::Assign { targets, value } => {
                self.walrus(module, &value);
                let value = self.assigned(module, value);
                for target in targets {
                    self.assign(module, &target, value.clone());
                }
            }
            StmtKind::AnnAssign { target, annotation: _, value: Some(value) } => {
                self.walrus(module, &value);
                let value = self.assigned(module, value);
                self.assign(module, &target, value);
            }
            StmtKind::AugAssign { target, op, value } => {
                self.walrus(module, &value);
                let sum = Expr {
                    span: stmt.span,
                    kind: ExprKind::Binary { op, left: Box::new(target.clone()), right: Box::new(value) },
                };
                let value = self.eval(module, &sum);
                self.assign(module, &target, value);
            }
            StmtKind::Expr(value) | StmtKind::Assert { test: value, message: _ } => self.walrus(module, &value),
            // The parser represents blocks as module items.
            StmtKind::AnnAssign { .. }
            | StmtKind::If { .. }
            | StmtKind::While { .. }
            | StmtKind::For { .. }
            | StmtKind::Break
            | StmtKind::Continue
            | StmtKind::Return(_)
            | StmtKind::Pass
            | StmtKind::Raise(_)
            | StmtKind::FunctionDef(_)
            | StmtKind::Delete(_)
            | StmtKind::Global(_)
            | StmtKind::Nonlocal(_)
            | StmtKind::Unsupported(_) => {}
        }
    }

    /// Marks the names that `:=` binds in an expression as unknown.
    fn walrus(&mut self, module: usize, expr: &Expr) {
        if let ExprKind::Named { target, value: _ } = &expr.kind {
            self.assign(module, target, Value::Unknown("`:=` binds it".into(), module, target.span));
        }
        for child in expr.children() {
            self.walrus(module, child);
        }
    }

    /// The value of the right side of an assignment. It may define a kernel: `k = cuda.jit(f)`, `cuda.jit(sig)(f)`.
    fn assigned(&mut self, module: usize, value: Expr) -> Value {
        if let ExprKind::Call { func, args, keywords } = &value.kind
            && let [Expr { kind: ExprKind::Name(name), .. }] = args.as_slice()
            && keywords.is_empty()
            && self.is_jit(module, func)
            && let Some(Value::Function(index)) = self.modules.get(module).and_then(|module| module.names.get(name))
            && let Some(function) = self.functions.get(*index)
        {
            let function = function.ast.clone();
            return Value::Function(self.add_function(module, function, Some(func)));
        }
        if let Some((jit, faults)) = self.declaration(module, &value) {
            self.faults.extend(faults);
            return self.declared(jit).unwrap_or_else(|| Value::Opaque("declaration of a function".into(), None));
        }
        if let Some(made) = self.with_backward(module, &value) {
            return made;
        }
        match self.eval(module, &value) {
            Value::Opaque(what, _) => Value::Opaque(what, Some(Box::new(value))),
            known @ (Value::Const(_) | Value::Module(_) | Value::Function(_) | Value::Unknown(..)) => known,
        }
    }

    /// A function declared with `cuda.declare_device`. Its stub gets a source text of its own.
    fn declared(&mut self, jit: Jit) -> Option<Value> {
        let Some(GpuBody::External(external)) = &jit.options.gpu else { return None };
        let (name, text) = External::stub(&external.symbol, jit.signatures.first()?.args.len());
        let module = self.modules.len();
        let source = Arc::new(SourceFile::new(format!("<{name}>"), text));
        let ast = parse_function(&source, module as u32, None).ok()?;
        self.modules.push(Module::new(&name, source, BTreeMap::new()));
        self.functions.push(Function { module, ast, jit: Some(jit), defaults: BTreeMap::new(), backward: None });
        Some(Value::Function(self.functions.len() - 1))
    }

    fn assign(&mut self, module: usize, target: &Expr, value: Value) {
        match &target.kind {
            ExprKind::Name(name) => self.bind(module, name.clone(), value, target.span),
            ExprKind::Tuple(targets) | ExprKind::List(targets) => {
                let (items, each) = match value {
                    Value::Const(Captured::Tuple(items)) if items.len() == targets.len() => (items, None),
                    unknown @ Value::Unknown(..) => (Vec::new(), Some(unknown)),
                    Value::Const(_) | Value::Module(_) | Value::Function(_) | Value::Opaque(..) => (Vec::new(), None),
                };
                let each = each.unwrap_or_else(|| Value::Opaque("value that only Python can compute".into(), None));
                let mut items = items.into_iter().map(Value::Const);
                for target in targets {
                    self.assign(module, target, items.next().unwrap_or_else(|| each.clone()));
                }
            }
            ExprKind::Starred(target) => {
                self.assign(module, target, Value::Opaque("list".into(), None));
            }
            // `config.N = 4`, where `config` is a module of the project.
            ExprKind::Attribute { value: object, attr } => {
                if let Value::Module(of) = self.eval(module, object) {
                    self.bind(of, attr.clone(), value, target.span);
                }
            }
            // An element assignment. The command does not track containers.
            ExprKind::Constant(_)
            | ExprKind::Binary { .. }
            | ExprKind::Unary { .. }
            | ExprKind::Bool { .. }
            | ExprKind::Compare { .. }
            | ExprKind::IfExp { .. }
            | ExprKind::Call { .. }
            | ExprKind::Subscript { .. }
            | ExprKind::Slice { .. }
            | ExprKind::Named { .. }
            | ExprKind::Lambda(_)
            | ExprKind::Comprehension { .. }
            | ExprKind::Unsupported(_) => {}
        }
    }

    /// Interprets statements that may run zero times or several times: the names that they assign become unknown.
    /// Functions and imports are bound as if they ran.
    fn forget(&mut self, module: usize, items: Vec<ModuleItem>, why: &str) {
        let unknown = |span| Value::Unknown(why.into(), module, span);
        for item in items {
            match item {
                ModuleItem::Import { .. } | ModuleItem::ImportFrom { .. } => {
                    let Some((name, value, span)) = self.imported(module, item) else { continue };
                    let known = self.modules.get(module).and_then(|module| module.names.get(&name));
                    let counts = known.is_none_or(|known| *known == value || is_data(known));
                    let value = if counts { value } else { unknown(span) };
                    self.bind(module, name, value, span);
                }
                ModuleItem::If { branches, orelse } => {
                    for (test, body) in branches {
                        self.walrus(module, &test);
                        self.forget(module, body, why);
                    }
                    self.forget(module, orelse, why);
                }
                ModuleItem::Try { body, handlers } => {
                    self.forget(module, body, why);
                    for handler in handlers {
                        self.forget(module, handler, why);
                    }
                }
                ModuleItem::Maybe(items) => self.forget(module, items, why),
                ModuleItem::Class { name, bases: _, span } => self.bind(module, name, unknown(span), span),
                ModuleItem::Stmt(stmt) => match stmt.kind {
                    StmtKind::Assign { targets, value: _ } => {
                        for target in targets {
                            if !self.is_defined(module, &target) {
                                self.assign(module, &target, unknown(target.span));
                            }
                        }
                    }
                    StmtKind::AnnAssign { target, annotation: _, value: Some(_) }
                    | StmtKind::AugAssign { target, .. } => self.assign(module, &target, unknown(target.span)),
                    StmtKind::AnnAssign { .. }
                    | StmtKind::Expr(_)
                    | StmtKind::If { .. }
                    | StmtKind::While { .. }
                    | StmtKind::For { .. }
                    | StmtKind::Break
                    | StmtKind::Continue
                    | StmtKind::Return(_)
                    | StmtKind::Pass
                    | StmtKind::Assert { .. }
                    | StmtKind::Raise(_)
                    | StmtKind::FunctionDef(_)
                    | StmtKind::Delete(_)
                    | StmtKind::Global(_)
                    | StmtKind::Nonlocal(_)
                    | StmtKind::Unsupported(_) => self.stmt(module, stmt),
                },
                ModuleItem::Function(_)
                | ModuleItem::Binds { .. }
                | ModuleItem::Inner { .. }
                | ModuleItem::Unparsed { .. } => self.item(module, item),
            }
        }
    }

    /// Whether a target is the name of a function or an import, as in `else: cuda = None`.
    fn is_defined(&self, module: usize, target: &Expr) -> bool {
        let ExprKind::Name(name) = &target.kind else { return false };
        let known = self.modules.get(module).and_then(|module| module.names.get(name));
        known.is_some_and(|known| !is_data(known))
    }

    /// Interprets an exception handler. Functions and imports of the `try` block are bound as if nothing was raised. A
    /// constant becomes unknown if the handler changes its value.
    fn handle(&mut self, module: usize, handler: Vec<ModuleItem>) {
        let Some(before) = self.modules.get(module).map(|module| module.names.clone()) else { return };
        self.items(module, handler);
        let Some(this) = self.modules.get_mut(module) else { return };
        let after = std::mem::replace(&mut this.names, before);
        for (name, value) in after {
            let span = this.places.get(&name).copied().unwrap_or_default();
            match this.names.get(&name) {
                Some(known) if *known == value || !is_data(known) => {}
                None if !is_data(&value) => {
                    this.names.insert(name, value);
                }
                _ => {
                    let why = "it is bound here only if an exception is raised";
                    this.names.insert(name, Value::Unknown(why.into(), module, span));
                }
            }
        }
    }

    /// Records the kernels in statements that are not interpreted.
    fn skip(&mut self, module: usize, items: &[ModuleItem], inside: &str) {
        for item in items {
            match item {
                ModuleItem::Function(function)
                    if function.decorators.iter().any(|decorator| self.may_be_jit(module, decorator)) =>
                {
                    let (name, span) = (function.name.clone(), function.name_span);
                    self.missed.push(Missed { name, inside: inside.to_owned(), span });
                }
                ModuleItem::Inner { .. } => self.item(module, item.clone()),
                ModuleItem::If { branches, orelse } => {
                    for (_, body) in branches {
                        self.skip(module, body, inside);
                    }
                    self.skip(module, orelse, inside);
                }
                ModuleItem::Try { body, handlers: _ } => self.skip(module, body, inside),
                ModuleItem::Maybe(items) => self.skip(module, items, inside),
                ModuleItem::Function(_)
                | ModuleItem::Class { .. }
                | ModuleItem::Import { .. }
                | ModuleItem::ImportFrom { .. }
                | ModuleItem::Binds { .. }
                | ModuleItem::Stmt(_)
                | ModuleItem::Unparsed { .. } => {}
            }
        }
    }

    /// Imports a module by its dotted path: one that weft knows, or a file in the main file's folder.
    fn import(&mut self, path: &str) -> Value {
        let root = path.split('.').next().unwrap_or(path);
        if KNOWN_MODULES.contains(&root) {
            return Value::Const(Captured::Known(eval::canonical(path)));
        }
        let name = path.trim_start_matches('.');
        if let Some(index) = self.modules.iter().position(|module| module.name == name) {
            return Value::Module(index);
        }
        let opaque = || Value::Opaque(format!("module (`{name}`) that weft does not know"), None);
        if name.is_empty() || self.modules.len() >= MAX_FILES {
            return opaque();
        }
        let base = self.folder.join(name.replace('.', "/"));
        for file in [base.with_extension("py"), base.join("__init__.py")] {
            if let Ok(bytes) = std::fs::read(&file) {
                return Value::Module(self.load(name, &file, &bytes));
            }
        }
        opaque()
    }

    /// Binds the names of `from path import *`.
    fn import_star(&mut self, module: usize, path: &str, span: Span) {
        match self.import(path) {
            Value::Const(Captured::Known(path)) => {
                let Some(this) = self.modules.get_mut(module) else { return };
                let known = |name: &str| eval::known_member(&path, name);
                let hidden: Vec<(String, Value)> =
                    this.names.keys().filter_map(|name| Some((name.clone(), known(name)?))).collect();
                this.stars.insert(0, path);
                for (name, value) in hidden {
                    self.bind(module, name, value, span);
                }
            }
            Value::Module(from) => {
                let names = self.modules.get(from).map(|from| from.names.clone()).unwrap_or_default();
                for (name, value) in names.into_iter().filter(|(name, _)| !name.starts_with('_')) {
                    self.bind(module, name, value, span);
                }
            }
            // The module's names are unknown. It is assumed not to rebind functions and modules.
            Value::Opaque(..) => {
                let names = self.modules.get(module).map(|module| module.names.clone()).unwrap_or_default();
                let own = |name: &str| name.starts_with("__") && name.ends_with("__");
                for (name, _) in names.into_iter().filter(|(name, value)| is_data(value) && !own(name)) {
                    let why = "this `import *` of a module that weft does not know may bind it";
                    self.bind(module, name, Value::Unknown(why.into(), module, span), span);
                }
            }
            Value::Function(_) | Value::Const(_) | Value::Unknown(..) => {}
        }
    }

    /// Reports a statement that weft cannot parse: an error if it looks like a kernel, else a warning. The names that
    /// it binds become unknown.
    fn unparsed(&mut self, module: usize, message: String, at: Span, span: Span) {
        let text = self.modules.get(module).map(|module| &module.source.text);
        let text = text.and_then(|text| text.get(span.start as usize..span.end as usize)).unwrap_or("").to_owned();
        if text.lines().any(|line| line.starts_with('@') && line.contains("jit")) {
            self.faults.push(Diagnostic::error(Code::Syntax, at, message));
        } else {
            let warning = Diagnostic::warning(Code::Syntax, at, message);
            self.faults.push(warning.note("this statement is skipped: kernels cannot use names that it defines"));
        }
        for (name, always) in names_in(&text) {
            let why = "weft cannot read this statement, which binds it".to_owned();
            self.item(module, ModuleItem::Binds { name, why, always, span: at });
        }
    }
}

/// The names that an unparsable statement appears to bind at the top level, and whether a function binds them with
/// `global`.
fn names_in(text: &str) -> Vec<(String, bool)> {
    let word = |text: &str| text.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect::<String>();
    let starts = |words: &[&str]| words.iter().find_map(|start| text.lines().find_map(|line| line.strip_prefix(start)));
    if let Some(rest) = starts(&["def ", "class ", "async def "]) {
        let globals = text.lines().filter_map(|line| line.trim_start().strip_prefix("global "));
        let globals = globals.flat_map(|names| names.split(',')).map(|name| (word(name.trim()), true));
        return std::iter::once((word(rest), false)).chain(globals).collect();
    }
    let assigned = text.lines().filter_map(|line| {
        let line = line.trim_start();
        let name = word(line);
        let rest = line.get(name.len()..).unwrap_or("").trim_start();
        (!name.is_empty() && rest.starts_with('=') && !rest.starts_with("==")).then_some((name, false))
    });
    assigned.collect()
}

/// Whether a value is a constant of the file. Functions, modules and objects that weft knows by path are not.
fn is_data(value: &Value) -> bool {
    match value {
        Value::Const(value) => !matches!(value, Captured::Known(_)),
        Value::Opaque(..) | Value::Unknown(..) => true,
        Value::Module(_) | Value::Function(_) => false,
    }
}
