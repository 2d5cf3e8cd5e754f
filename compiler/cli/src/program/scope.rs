//! Carries out the top level of a file: imports, definitions, assignments, in order, as Python would.
//!
//! Statements whose outcome the text does not decide (loops, calls, a condition that cannot be evaluated) make the
//! names that they bind opaque.

use std::{collections::BTreeMap, sync::Arc};

use weft_compiler::{
    diagnostic::{Code, Diagnostic},
    request::Captured,
    source::{SourceFile, Span},
    syntax::{
        ast::{self, Expr, ExprKind, ModuleItem, Stmt, StmtKind},
        parse_module,
    },
};

use super::{Function, Module, Program, Value, eval};

/// Modules that weft knows; their members have canonical paths.
const KNOWN_MODULES: [&str; 7] = ["weft", "numba", "math", "cmath", "numpy", "operator", "builtins"];

/// Files that import each other are read this deep.
const MAX_FILES: usize = 100;

impl Program {
    /// Reads a file and gives its index.
    pub(super) fn load(&mut self, name: &str, source: Arc<SourceFile>) -> usize {
        let index = self.modules.len();
        let items = parse_module(&source, index as u32);
        let names = BTreeMap::from([
            ("__name__".to_owned(), Value::Const(Captured::Str(name.to_owned()))),
            ("__file__".to_owned(), Value::Const(Captured::Str(source.name.clone()))),
        ]);
        self.modules.push(Module { name: name.to_owned(), source, names, stars: Vec::new() });
        for item in items {
            self.item(index, item);
        }
        index
    }

    fn item(&mut self, module: usize, item: ModuleItem) {
        match item {
            ModuleItem::Function(function) => self.define(module, function),
            ModuleItem::Import { module: path, bound, binds_root, span: _ } => {
                let path = if binds_root { bound.clone() } else { path };
                let value = self.import(&path);
                self.bind(module, bound, value);
            }
            ModuleItem::ImportFrom { module: path, name, bound: _, span: _ } if name == "*" => {
                self.import_star(module, &path);
            }
            ModuleItem::ImportFrom { module: path, name, bound, span: _ } => {
                let value = match self.import(&path) {
                    Value::Opaque(what, _) => match self.import(&format!("{path}.{name}")) {
                        Value::Module(index) => Value::Module(index),
                        _ => Value::Opaque(format!("member of a {what}"), None),
                    },
                    from => self.member(from, &name),
                };
                self.bind(module, bound, value);
            }
            ModuleItem::Stmt(stmt) => self.stmt(module, stmt),
            ModuleItem::Unparsed { message, at, span } => self.unparsed(module, message, at, span),
        }
    }

    fn bind(&mut self, module: usize, name: String, value: Value) {
        if let Some(module) = self.modules.get_mut(module) {
            module.names.insert(name, value);
        }
    }

    fn define(&mut self, module: usize, function: ast::Function) {
        let name = function.name.clone();
        let index = self.add_function(module, function, None);
        self.bind(module, name, Value::Function(index));
    }

    /// Adds a function; `decorator` is the `cuda.jit` of `k = cuda.jit(f)`.
    fn add_function(&mut self, module: usize, function: ast::Function, decorator: Option<&Expr>) -> usize {
        let (jit, faults) = match decorator {
            Some(decorator) => self.read_decorators(module, std::slice::from_ref(decorator)),
            None => self.read_decorators(module, &function.decorators),
        };
        self.faults.extend(faults);
        let with_defaults = function.params.iter().filter_map(|param| Some((param, param.default.as_ref()?)));
        let defaults = with_defaults.map(|(param, default)| (param.name.clone(), self.eval(module, default))).collect();
        self.functions.push(Function { module, ast: function, jit, defaults });
        self.functions.len() - 1
    }

    fn stmts(&mut self, module: usize, stmts: Vec<Stmt>) {
        for stmt in stmts {
            self.stmt(module, stmt);
        }
    }

    fn stmt(&mut self, module: usize, stmt: Stmt) {
        match stmt.kind {
            StmtKind::Assign { targets, value } => {
                let value = self.assigned(module, value);
                for target in targets {
                    self.assign(module, &target, value.clone());
                }
            }
            StmtKind::AnnAssign { target, annotation: _, value: Some(value) } => {
                let value = self.assigned(module, value);
                self.assign(module, &target, value);
            }
            StmtKind::AugAssign { target, op, value } => {
                let sum = Expr {
                    span: stmt.span,
                    kind: ExprKind::Binary { op, left: Box::new(target.clone()), right: Box::new(value) },
                };
                let value = self.eval(module, &sum);
                self.assign(module, &target, value);
            }
            StmtKind::If { test, body, orelse } => match eval::truth(&self.eval(module, &test)) {
                Some(true) => self.stmts(module, body),
                Some(false) => self.stmts(module, orelse),
                None => {
                    self.forget(module, &body);
                    self.forget(module, &orelse);
                }
            },
            StmtKind::FunctionDef(function) => self.define(module, *function),
            StmtKind::For { ref target, iter: _, ref body, ref orelse } => {
                self.assign(module, target, Value::Opaque("loop variable".into(), None));
                self.forget(module, body);
                self.forget(module, orelse);
            }
            StmtKind::While { test: _, ref body, ref orelse } => {
                self.forget(module, body);
                self.forget(module, orelse);
            }
            StmtKind::AnnAssign { value: None, .. }
            | StmtKind::Expr(_)
            | StmtKind::Break
            | StmtKind::Continue
            | StmtKind::Return(_)
            | StmtKind::Pass
            | StmtKind::Assert { .. }
            | StmtKind::Raise(_)
            | StmtKind::Unsupported(_) => {}
        }
    }

    /// The value of an assignment's right side, which may make a kernel: `k = cuda.jit(f)`, `cuda.jit("…")(f)`.
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
        match self.eval(module, &value) {
            Value::Opaque(what, _) => Value::Opaque(what, Some(Box::new(value))),
            known => known,
        }
    }

    fn assign(&mut self, module: usize, target: &Expr, value: Value) {
        match &target.kind {
            ExprKind::Name(name) => self.bind(module, name.clone(), value),
            ExprKind::Tuple(targets) | ExprKind::List(targets) => {
                let items = match value {
                    Value::Const(Captured::Tuple(items)) if items.len() == targets.len() => items,
                    _ => Vec::new(),
                };
                let unknown = || Value::Opaque("value that only Python can compute".into(), None);
                let mut items = items.into_iter().map(Value::Const);
                for target in targets {
                    self.assign(module, target, items.next().unwrap_or_else(unknown));
                }
            }
            ExprKind::Starred(target) => {
                self.assign(module, target, Value::Opaque("list".into(), None));
            }
            // An attribute or an element: of nothing that the command follows.
            _ => {}
        }
    }

    /// Makes the names opaque that statements would bind.
    fn forget(&mut self, module: usize, stmts: &[Stmt]) {
        let opaque = || Value::Opaque("value that depends on a condition or a loop of the file".into(), None);
        for stmt in stmts {
            match &stmt.kind {
                StmtKind::Assign { targets, .. } => {
                    for target in targets {
                        self.assign(module, target, opaque());
                    }
                }
                StmtKind::AnnAssign { target, .. } | StmtKind::AugAssign { target, .. } => {
                    self.assign(module, target, opaque());
                }
                StmtKind::If { body, orelse, .. } | StmtKind::While { body, orelse, .. } => {
                    self.forget(module, body);
                    self.forget(module, orelse);
                }
                StmtKind::For { target, body, orelse, .. } => {
                    self.assign(module, target, opaque());
                    self.forget(module, body);
                    self.forget(module, orelse);
                }
                // A function is taken as defined, whatever the condition was.
                StmtKind::FunctionDef(function) => self.define(module, (**function).clone()),
                _ => {}
            }
        }
    }

    /// A module by its dotted path: one that weft knows, or a file beside the file that was asked for.
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
            if let Ok(text) = std::fs::read_to_string(&file) {
                let source = SourceFile::new(file.display().to_string(), text);
                return Value::Module(self.load(name, Arc::new(source)));
            }
        }
        opaque()
    }

    fn import_star(&mut self, module: usize, path: &str) {
        match self.import(path) {
            Value::Const(Captured::Known(path)) => {
                if let Some(module) = self.modules.get_mut(module) {
                    module.stars.insert(0, path);
                }
            }
            Value::Module(from) => {
                let names = self.modules.get(from).map(|from| from.names.clone()).unwrap_or_default();
                for (name, value) in names.into_iter().filter(|(name, _)| !name.starts_with('_')) {
                    self.bind(module, name, value);
                }
            }
            Value::Function(_) | Value::Const(_) | Value::Opaque(..) => {}
        }
    }

    /// A statement that does not parse is an error if it is a kernel; what it would bind is opaque.
    fn unparsed(&mut self, module: usize, message: String, at: Span, span: Span) {
        let text = self.modules.get(module).map(|module| &module.source.text);
        let text = text.and_then(|text| text.get(span.start as usize..span.end as usize)).unwrap_or("").to_owned();
        let mut lines = text.lines();
        if lines.clone().any(|line| line.starts_with('@') && line.contains("jit")) {
            self.faults.push(Diagnostic::error(Code::Syntax, at, message));
        }
        let bound = lines.find_map(|line| {
            let word = |text: &str| text.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect::<String>();
            let definition = ["def ", "class "].iter().find_map(|keyword| line.strip_prefix(keyword)).map(word);
            let assigned = word(line);
            let rest = line.get(assigned.len()..).unwrap_or("").trim_start();
            definition.or((rest.starts_with('=') && !rest.starts_with("==")).then_some(assigned))
        });
        if let Some(name) = bound {
            self.bind(module, name, Value::Opaque("value of a statement that weft cannot read".into(), None));
        }
    }
}
