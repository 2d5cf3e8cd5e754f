//! The free names of a function.
//!
//! Scope is static in Python: a name that is bound anywhere in a function is local in all of it.

use std::collections::BTreeSet;

use super::ast::{Expr, ExprKind, Function, Stmt, StmtKind};

/// The dotted chains that a function reads and does not bind itself: `["cuda.grid", "TPB", "config.N", "math.pi"]`,
/// sorted, each once. A chain is as long as the source has it (`cuda.threadIdx.x`); decorators, annotations and
/// defaults do not count. Names bound anywhere in the function (parameters, assignments, loop variables) are local, as
/// in Python. Free names of nested functions count too.
pub fn free_chains(function: &Function) -> Vec<String> {
    free(function).into_iter().collect()
}

/// The suffix of a Python builtin's name that the source cannot shadow: the desugaring of `match` calls these.
pub const OWN_BUILTIN: &str = "@builtins";

fn free(function: &Function) -> BTreeSet<String> {
    let Names { bound, mut read, outer, .. } = Names::of(function);
    read.retain(|chain| !bound.contains(root(chain)) && !chain.ends_with(OWN_BUILTIN));
    read.extend(outer);
    read
}

/// The names of enclosing functions that a function or one nested in it assigns to, as declared by `nonlocal`.
pub fn nonlocal_names(function: &Function) -> BTreeSet<String> {
    Names::of(function).outer
}

/// The names that a function reads and does not bind, without their attributes.
pub fn free_names(function: &Function) -> BTreeSet<String> {
    free(function).iter().map(|chain| root(chain).to_owned()).collect()
}

/// Whether a nested function assigns to names of enclosing functions.
pub fn assigns_from_inside(function: &Function) -> bool {
    let mut names = Names::default();
    names.stmts(&function.body);
    !names.outer.is_empty()
}

/// The names that an expression's targets bind.
pub fn target_names(target: &Expr) -> BTreeSet<String> {
    let mut names = Names::default();
    names.target(target);
    names.bound
}

/// The names that statements bind, including by `:=` in expressions and by `nonlocal` in nested functions.
pub fn bound_names(stmts: &[Stmt]) -> BTreeSet<String> {
    let mut names = Names::default();
    names.stmts(stmts);
    names.bound.extend(names.outer);
    names.bound
}

/// The names that a function's body binds exactly once, without parameters and variables of enclosing functions.
pub fn bound_once(function: &Function) -> BTreeSet<String> {
    let mut names = Names::default();
    names.stmts(&function.body);
    let Names { mut bound, again, outer, .. } = names;
    let declared = declared_nonlocal(&function.body);
    let is_param = |name: &String| function.params.iter().any(|param| param.name == *name);
    bound.retain(|name| !again.contains(name) && !outer.contains(name) && !declared.contains(name) && !is_param(name));
    bound
}

/// The names in the shapes of arrays that a function creates (`….array(shape, …)`, `np.zeros(shape)`), without the
/// names that its body binds. They must be constants.
pub fn shape_names(function: &Function) -> BTreeSet<String> {
    let mut names = Names::default();
    names.stmts(&function.body);
    let Names { bound, mut shapes, .. } = names;
    shapes.retain(|name| !bound.contains(name));
    shapes
}

fn root(chain: &str) -> &str {
    chain.split('.').next().unwrap_or(chain)
}

#[derive(Default)]
struct Names {
    bound: BTreeSet<String>,
    /// Names with more than one binding.
    again: BTreeSet<String>,
    read: BTreeSet<String>,
    shapes: BTreeSet<String>,
    /// Names that are assigned to and belong to an enclosing function.
    outer: BTreeSet<String>,
}

impl Names {
    /// The names of a function; its parameters are bound, names declared `nonlocal` are not.
    fn of(function: &Function) -> Self {
        let mut names = Self::default();
        names.bound.extend(function.params.iter().map(|param| param.name.clone()));
        names.stmts(&function.body);
        let declared = declared_nonlocal(&function.body);
        names.bound.retain(|name| !declared.contains(name));
        names.outer.retain(|name| !names.bound.contains(name));
        names.outer.extend(declared);
        names
    }

    fn stmts(&mut self, stmts: &[Stmt]) {
        for stmt in stmts {
            self.stmt(&stmt.kind);
        }
    }

    fn stmt(&mut self, stmt: &StmtKind) {
        match stmt {
            StmtKind::Assign { targets, value } => {
                self.expr(value);
                for target in targets {
                    self.target(target);
                }
            }
            StmtKind::AnnAssign { target, annotation: _, value } => {
                self.maybe(value.as_ref());
                self.target(target);
            }
            StmtKind::AugAssign { target, op: _, value } => {
                self.expr(value);
                self.target(target);
            }
            StmtKind::Expr(value) => self.expr(value),
            StmtKind::If { test, body, orelse } | StmtKind::While { test, body, orelse } => {
                self.expr(test);
                self.stmts(body);
                self.stmts(orelse);
            }
            StmtKind::For { target, iter, body, orelse } => {
                self.expr(iter);
                self.target(target);
                self.stmts(body);
                self.stmts(orelse);
            }
            StmtKind::Return(value) | StmtKind::Raise(value) => self.maybe(value.as_ref()),
            StmtKind::Assert { test, message } => {
                self.expr(test);
                self.maybe(message.as_ref());
            }
            StmtKind::FunctionDef(inner) => {
                self.bind(&inner.name);
                self.read.extend(free(inner));
                self.outer.extend(nonlocal_names(inner));
                // Defaults of a nested function are evaluated where it is defined.
                for param in &inner.params {
                    self.maybe(param.default.as_ref());
                }
            }
            StmtKind::Delete(targets) => {
                // In Python `del` is a binding: the name is local.
                for target in targets {
                    self.target(target);
                }
            }
            StmtKind::Break
            | StmtKind::Continue
            | StmtKind::Pass
            | StmtKind::Global(_)
            | StmtKind::Nonlocal(_)
            | StmtKind::Unsupported(_) => {}
        }
    }

    fn bind(&mut self, name: &str) {
        if !self.bound.insert(name.to_owned()) {
            self.again.insert(name.to_owned());
        }
    }

    /// Visits a target of an assignment: a plain name is bound, any other target reads its operands.
    fn target(&mut self, target: &Expr) {
        match &target.kind {
            ExprKind::Name(name) => self.bind(name),
            ExprKind::Tuple(items) | ExprKind::List(items) => {
                for item in items {
                    self.target(item);
                }
            }
            ExprKind::Starred(value) => self.target(value),
            ExprKind::Constant(_)
            | ExprKind::Binary { .. }
            | ExprKind::Unary { .. }
            | ExprKind::Bool { .. }
            | ExprKind::Compare { .. }
            | ExprKind::IfExp { .. }
            | ExprKind::Call { .. }
            | ExprKind::Attribute { .. }
            | ExprKind::Subscript { .. }
            | ExprKind::Slice { .. }
            | ExprKind::Named { .. }
            | ExprKind::Lambda(_)
            | ExprKind::Comprehension { .. }
            | ExprKind::Unsupported(_) => self.expr(target),
        }
    }

    fn maybe(&mut self, expr: Option<&Expr>) {
        if let Some(expr) = expr {
            self.expr(expr);
        }
    }

    fn expr(&mut self, expr: &Expr) {
        self.shape(expr);
        match &expr.kind {
            ExprKind::Name(_) | ExprKind::Attribute { .. } => match chain(expr) {
                Ok(chain) => {
                    self.read.insert(chain);
                }
                Err(inner) => self.expr(inner),
            },
            ExprKind::Named { target, value } => {
                self.expr(value);
                self.target(target);
            }
            ExprKind::Lambda(function) => {
                self.read.extend(free(function));
                for child in expr.children() {
                    self.expr(child);
                }
            }
            ExprKind::Comprehension { element, loops } => {
                // Its variables are its own; a `:=` in it binds a variable of the function.
                let mut own = Self::default();
                let mut inner = Self::default();
                for (number, each) in loops.iter().enumerate() {
                    if number == 0 {
                        self.expr(&each.iter);
                    } else {
                        inner.expr(&each.iter);
                    }
                    own.target(&each.target);
                    each.tests.iter().for_each(|test| inner.expr(test));
                }
                inner.expr(element);
                inner.read.retain(|chain| !own.bound.contains(root(chain)));
                self.read.extend(inner.read);
                inner.bound.iter().for_each(|name| self.bind(name));
                self.again.extend(inner.again);
            }
            ExprKind::Constant(_)
            | ExprKind::Binary { .. }
            | ExprKind::Unary { .. }
            | ExprKind::Bool { .. }
            | ExprKind::Compare { .. }
            | ExprKind::IfExp { .. }
            | ExprKind::Call { .. }
            | ExprKind::Subscript { .. }
            | ExprKind::Slice { .. }
            | ExprKind::Tuple(_)
            | ExprKind::List(_)
            | ExprKind::Starred(_)
            | ExprKind::Unsupported(_) => {
                for child in expr.children() {
                    self.expr(child);
                }
            }
        }
    }
}

impl Names {
    /// Adds the names in the shape of an array that a call creates.
    fn shape(&mut self, expr: &Expr) {
        if let ExprKind::Call { func, args, keywords } = &expr.kind
            && makes_array(func)
        {
            let named = keywords.iter().filter(|(name, _)| name.as_deref() == Some("shape")).map(|(_, value)| value);
            for shape in args.first().into_iter().chain(named) {
                let mut inner = Self::default();
                inner.expr(shape);
                self.shapes.extend(inner.read.iter().map(|chain| root(chain).to_owned()));
            }
        }
    }
}

/// Whether the callee creates an array with a shape: `cuda.local.array`, `np.zeros`, or plain `zeros`.
fn makes_array(func: &Expr) -> bool {
    const OF_NUMPY: [&str; 4] = ["empty", "full", "ones", "zeros"];
    match &func.kind {
        ExprKind::Attribute { attr, .. } => attr == "array" || OF_NUMPY.contains(&attr.as_str()),
        ExprKind::Name(name) => OF_NUMPY.contains(&name.as_str()),
        ExprKind::Constant(_)
        | ExprKind::Binary { .. }
        | ExprKind::Unary { .. }
        | ExprKind::Bool { .. }
        | ExprKind::Compare { .. }
        | ExprKind::IfExp { .. }
        | ExprKind::Call { .. }
        | ExprKind::Subscript { .. }
        | ExprKind::Slice { .. }
        | ExprKind::Tuple(_)
        | ExprKind::List(_)
        | ExprKind::Starred(_)
        | ExprKind::Named { .. }
        | ExprKind::Lambda(_)
        | ExprKind::Comprehension { .. }
        | ExprKind::Unsupported(_) => false,
    }
}

/// The names that `nonlocal` statements among these, at any depth of `if` and loops, declare.
fn declared_nonlocal(stmts: &[Stmt]) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for stmt in stmts {
        match &stmt.kind {
            StmtKind::Nonlocal(declared) => names.extend(declared.iter().cloned()),
            StmtKind::If { body, orelse, .. }
            | StmtKind::While { body, orelse, .. }
            | StmtKind::For { body, orelse, .. } => {
                names.extend(declared_nonlocal(body));
                names.extend(declared_nonlocal(orelse));
            }
            StmtKind::Assign { .. }
            | StmtKind::AnnAssign { .. }
            | StmtKind::AugAssign { .. }
            | StmtKind::Expr(_)
            | StmtKind::Break
            | StmtKind::Continue
            | StmtKind::Return(_)
            | StmtKind::Pass
            | StmtKind::Assert { .. }
            | StmtKind::Raise(_)
            | StmtKind::FunctionDef(_)
            | StmtKind::Delete(_)
            | StmtKind::Global(_)
            | StmtKind::Unsupported(_) => {}
        }
    }
    names
}

/// The names of `a.b.c`; for any other expression, its innermost object.
fn chain(expr: &Expr) -> Result<String, &Expr> {
    match &expr.kind {
        ExprKind::Name(name) => Ok(name.clone()),
        ExprKind::Attribute { value, attr } => chain(value).map(|head| format!("{head}.{attr}")),
        ExprKind::Constant(_)
        | ExprKind::Binary { .. }
        | ExprKind::Unary { .. }
        | ExprKind::Bool { .. }
        | ExprKind::Compare { .. }
        | ExprKind::IfExp { .. }
        | ExprKind::Call { .. }
        | ExprKind::Subscript { .. }
        | ExprKind::Slice { .. }
        | ExprKind::Tuple(_)
        | ExprKind::List(_)
        | ExprKind::Starred(_)
        | ExprKind::Named { .. }
        | ExprKind::Lambda(_)
        | ExprKind::Comprehension { .. }
        | ExprKind::Unsupported(_) => Err(expr),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{source::SourceFile, syntax::parse_function};

    fn chains(text: &str) -> Vec<String> {
        free_chains(&parse_function(&SourceFile::new("t.py", text), 0, None).expect("parses"))
    }

    #[test]
    fn chains_are_as_long_as_written_and_locals_are_not_among_them() {
        let text = "@deco(A)\ndef k(x: T, n=D):\n    i = cuda.threadIdx.x + x.shape[N]\n    tile.part[0].y = config.a.b(i).c\n    \
                    for j, k2 in zip(range(3)):\n        acc += j * k2 + z\n    z: U = (w := math.pi)\n    return w, len\n";
        assert_eq!(
            chains(text),
            ["N", "config.a.b", "cuda.threadIdx.x", "len", "math.pi", "range", "tile.part", "zip"]
        );
    }

    #[test]
    fn nested_functions_count_with_what_nobody_binds() {
        let text = "def k(x):\n    def f(a, b=START):\n        y = a + G.h + x + late\n        return f(y)\n    late = 1\n    x[0] = f(2)\n";
        assert_eq!(chains(text), ["G.h", "START"]);
    }
}
