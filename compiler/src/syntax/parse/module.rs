//! A module's top level: the definitions and bindings of its statements, for the command, which reads files without
//! running them.
//!
//! No binding is lost: if weft's tree cannot represent a statement (`with … as`, `del`, `match`), it still has the
//! names that the statement binds. It also has the names that any function, however nested, binds with `global`.

use rustpython_parser::ast::{self as py, Ranged};

use super::convert::{Converter, Result, identifier};
use crate::{
    source::Span,
    syntax::ast::{Expr, ExprKind, ModuleItem, Stmt, StmtKind},
};

impl Converter<'_> {
    /// A module's statement: its items in order.
    pub(super) fn module_item(&mut self, stmt: &py::Stmt, items: &mut Vec<ModuleItem>) -> Result<()> {
        let span = self.span(stmt);
        match stmt {
            py::Stmt::FunctionDef(def) => {
                items.push(ModuleItem::Function(self.function(def)?));
                self.inner(&def.body, &Outer::function(&def.name), items)?;
            }
            py::Stmt::AsyncFunctionDef(def) => {
                items.push(bound_to(&def.name, "coroutine function", span));
                let name_span = self.name_span(&def.name, Span { start: span.start + "async ".len() as u32, ..span });
                items.push(ModuleItem::Inner {
                    name: identifier(&def.name),
                    decorators: self.exprs(&def.decorator_list)?,
                    inside: "an `async def`".to_owned(),
                    span: name_span,
                });
                self.inner(&def.body, &Outer::function(&def.name), items)?;
            }
            py::Stmt::ClassDef(def) => {
                let plain = def.decorator_list.is_empty() && def.keywords.is_empty();
                let bases = if plain { Some(self.exprs(&def.bases)?) } else { None };
                items.push(ModuleItem::Class { name: identifier(&def.name), bases, span });
                self.inner(&def.body, &Outer { inside: format!("the class `{}`", def.name), name: None }, items)?;
            }
            py::Stmt::Import(import) => items.extend(import.names.iter().map(|alias| {
                let module = identifier(&alias.name);
                let bound = imported(alias);
                ModuleItem::Import { module, bound, binds_root: alias.asname.is_none(), span: self.span(alias) }
            })),
            py::Stmt::ImportFrom(import) => {
                let dots = ".".repeat(import.level.map_or(0, |level| level.to_usize()));
                let module = format!("{dots}{}", import.module.as_ref().map(identifier).unwrap_or_default());
                items.extend(import.names.iter().map(|alias| ModuleItem::ImportFrom {
                    module: module.clone(),
                    name: identifier(&alias.name),
                    bound: identifier(alias.asname.as_ref().unwrap_or(&alias.name)),
                    span,
                }));
            }
            py::Stmt::If(node) => {
                // In Python's tree each `elif` is in the `orelse` of the one before, but in the source they are not
                // nested.
                let (mut branches, mut last) = (Vec::new(), node);
                loop {
                    branches.push((self.expr(&last.test)?, self.module_block(&last.body, span)?));
                    match last.orelse.as_slice() {
                        [py::Stmt::If(next)] => last = next,
                        orelse => {
                            let orelse = self.module_block(orelse, span)?;
                            break items.push(ModuleItem::If { branches, orelse });
                        }
                    }
                }
            }
            py::Stmt::Try(node) => {
                let rest = self.module_block(&node.finalbody, span)?;
                self.guarded(&node.body, &node.handlers, &node.orelse, span, items)?;
                items.extend(rest);
            }
            py::Stmt::TryStar(node) => {
                let rest = self.module_block(&node.finalbody, span)?;
                self.guarded(&node.body, &node.handlers, &node.orelse, span, items)?;
                items.extend(rest);
            }
            py::Stmt::With(node) => {
                self.bindings(stmt, "the `with` statement binds it", items);
                items.extend(self.module_block(&node.body, span)?);
            }
            py::Stmt::For(node) => {
                // The iterable and the target are checked as in a function.
                self.expr(&node.iter)?;
                let mut block = Vec::new();
                self.bindings(stmt, "the loop binds it", &mut block);
                block.extend(self.module_block(&node.body, span)?);
                block.extend(self.module_block(&node.orelse, span)?);
                items.push(ModuleItem::Maybe(block));
            }
            py::Stmt::While(node) => {
                self.expr(&node.test)?;
                let mut block = self.module_block(&node.body, span)?;
                block.extend(self.module_block(&node.orelse, span)?);
                items.push(ModuleItem::Maybe(block));
            }
            py::Stmt::Match(node) => {
                let mut block = Vec::new();
                self.bindings(stmt, "the `match` statement binds it", &mut block);
                for case in &node.cases {
                    block.extend(self.module_block(&case.body, span)?);
                }
                items.push(ModuleItem::Maybe(block));
            }
            py::Stmt::Delete(_) => self.bindings(stmt, "it is deleted here", items),
            py::Stmt::TypeAlias(_) => self.bindings(stmt, "the `type` statement binds it", items),
            _ => items.push(ModuleItem::Stmt(self.stmt(stmt)?)),
        }
        Ok(())
    }

    fn module_block(&mut self, stmts: &[py::Stmt], span: Span) -> Result<Vec<ModuleItem>> {
        self.nested(span, |this| {
            let mut items = Vec::new();
            stmts.iter().try_for_each(|stmt| this.module_item(stmt, &mut items))?;
            Ok(items)
        })
    }

    fn guarded(
        &mut self,
        body: &[py::Stmt],
        handlers: &[py::ExceptHandler],
        orelse: &[py::Stmt],
        span: Span,
        items: &mut Vec<ModuleItem>,
    ) -> Result<()> {
        let mut body = self.module_block(body, span)?;
        body.extend(self.module_block(orelse, span)?);
        let mut instead = Vec::new();
        for py::ExceptHandler::ExceptHandler(handler) in handlers {
            // A handler that ends in `raise` does not reach the code below.
            if !matches!(handler.body.last(), Some(py::Stmt::Raise(_))) {
                instead.push(self.module_block(&handler.body, span)?);
            }
        }
        items.push(ModuleItem::Try { body, handlers: instead });
        Ok(())
    }

    /// The names that a statement binds itself (not those in its blocks), with the reason why their values are unknown.
    fn bindings(&self, stmt: &py::Stmt, why: &str, items: &mut Vec<ModuleItem>) {
        let mut names = Vec::new();
        bound(stmt, &mut names);
        for (name, range) in names {
            let span = self.span(&BareRange(range));
            items.push(ModuleItem::Binds { name, why: why.to_owned(), always: false, span });
        }
    }

    /// The parts of a function or a class that matter to its module: the names that it binds with `global`, and the
    /// decorated functions in it.
    fn inner(&mut self, body: &[py::Stmt], outer: &Outer, items: &mut Vec<ModuleItem>) -> Result<()> {
        let stmts = flatten(body);
        let globals: Vec<String> = stmts
            .iter()
            .filter_map(|stmt| if let py::Stmt::Global(node) = stmt { Some(&node.names) } else { None })
            .flatten()
            .map(identifier)
            .collect();
        for stmt in stmts {
            if let Some(function) = &outer.name
                && !globals.is_empty()
            {
                let mut names = Vec::new();
                bound(stmt, &mut names);
                for (name, range) in names.into_iter().filter(|(name, _)| globals.contains(name)) {
                    let span = self.span(&BareRange(range));
                    let why = format!("the function `{function}` binds it here");
                    items.push(ModuleItem::Binds { name, why, always: true, span });
                }
            }
            let (name, decorators, body, outer_of_it) = match stmt {
                py::Stmt::FunctionDef(def) => (&def.name, &def.decorator_list, &def.body, Outer::function(&def.name)),
                py::Stmt::AsyncFunctionDef(def) => {
                    (&def.name, &def.decorator_list, &def.body, Outer::function(&def.name))
                }
                py::Stmt::ClassDef(def) => {
                    let class = Outer { inside: format!("the class `{}`", def.name), name: None };
                    self.inner(&def.body, &class, items)?;
                    continue;
                }
                _ => continue,
            };
            if !decorators.is_empty() {
                items.push(ModuleItem::Inner {
                    name: identifier(name),
                    decorators: self.exprs(decorators)?,
                    inside: outer.inside.clone(),
                    span: self.name_span(name, self.span(stmt)),
                });
            }
            self.inner(body, &outer_of_it, items)?;
        }
        Ok(())
    }
}

/// A function or a class around statements.
struct Outer {
    inside: String,
    /// A function's name.
    name: Option<String>,
}

impl Outer {
    fn function(name: &py::Identifier) -> Self {
        Self { inside: format!("the function `{name}`"), name: Some(identifier(name)) }
    }
}

/// The statement that binds a name to something that no kernel can use.
fn bound_to(name: &py::Identifier, what: &'static str, span: Span) -> ModuleItem {
    let target = Expr { kind: ExprKind::Name(identifier(name)), span };
    let value = Expr { kind: ExprKind::Unsupported(what), span };
    ModuleItem::Stmt(Stmt { kind: StmtKind::Assign { targets: vec![target], value }, span })
}

/// The name that `import a.b as c` binds.
fn imported(alias: &py::Alias) -> String {
    let root = |name: &py::Identifier| identifier(name).split('.').next().unwrap_or("").to_owned();
    alias.asname.as_ref().map_or_else(|| root(&alias.name), identifier)
}

/// A range in the source, for [`Converter::span`].
struct BareRange(py::text_size::TextRange);

impl Ranged for BareRange {
    fn range(&self) -> py::text_size::TextRange {
        self.0
    }
}

type Names = Vec<(String, py::text_size::TextRange)>;

/// Statements with those in their blocks, without the bodies of functions and classes.
fn flatten(stmts: &[py::Stmt]) -> Vec<&py::Stmt> {
    let (mut found, mut pending) = (Vec::new(), vec![stmts]);
    while let Some(block) = pending.pop() {
        for stmt in block {
            found.push(stmt);
            pending.extend(blocks(stmt));
        }
    }
    found
}

fn blocks(stmt: &py::Stmt) -> Vec<&[py::Stmt]> {
    match stmt {
        py::Stmt::If(node) => vec![&node.body, &node.orelse],
        py::Stmt::For(node) => vec![&node.body, &node.orelse],
        py::Stmt::AsyncFor(node) => vec![&node.body, &node.orelse],
        py::Stmt::While(node) => vec![&node.body, &node.orelse],
        py::Stmt::With(node) => vec![&node.body],
        py::Stmt::AsyncWith(node) => vec![&node.body],
        py::Stmt::Match(node) => node.cases.iter().map(|case| &*case.body).collect(),
        py::Stmt::Try(node) => tried(&node.body, &node.handlers, &node.orelse, &node.finalbody),
        py::Stmt::TryStar(node) => tried(&node.body, &node.handlers, &node.orelse, &node.finalbody),
        _ => Vec::new(),
    }
}

fn tried<'a>(
    body: &'a [py::Stmt],
    handlers: &'a [py::ExceptHandler],
    orelse: &'a [py::Stmt],
    last: &'a [py::Stmt],
) -> Vec<&'a [py::Stmt]> {
    let handled = handlers.iter().map(|py::ExceptHandler::ExceptHandler(handler)| &*handler.body);
    std::iter::once(body).chain(handled).chain([orelse, last]).collect()
}

/// The names that a statement binds or deletes itself.
fn bound(stmt: &py::Stmt, names: &mut Names) {
    match stmt {
        py::Stmt::Assign(node) => node.targets.iter().for_each(|target| bound_by(target, names)),
        py::Stmt::AnnAssign(node) => bound_by(&node.target, names),
        py::Stmt::AugAssign(node) => bound_by(&node.target, names),
        py::Stmt::For(node) => bound_by(&node.target, names),
        py::Stmt::AsyncFor(node) => bound_by(&node.target, names),
        py::Stmt::Delete(node) => node.targets.iter().for_each(|target| bound_by(target, names)),
        py::Stmt::TypeAlias(node) => bound_by(&node.name, names),
        py::Stmt::With(node) => with_items(&node.items, names),
        py::Stmt::AsyncWith(node) => with_items(&node.items, names),
        py::Stmt::Import(node) => names.extend(node.names.iter().map(|alias| (imported(alias), alias.range()))),
        py::Stmt::ImportFrom(node) => names.extend(
            node.names.iter().map(|alias| (identifier(alias.asname.as_ref().unwrap_or(&alias.name)), alias.range())),
        ),
        py::Stmt::FunctionDef(node) => names.push((identifier(&node.name), node.range())),
        py::Stmt::ClassDef(node) => names.push((identifier(&node.name), node.range())),
        py::Stmt::Match(node) => node.cases.iter().for_each(|case| pattern(&case.pattern, names)),
        _ => {}
    }
}

fn with_items(items: &[py::WithItem], names: &mut Names) {
    items.iter().filter_map(|item| item.optional_vars.as_deref()).for_each(|target| bound_by(target, names));
}

fn bound_by(target: &py::Expr, names: &mut Names) {
    match target {
        py::Expr::Name(node) => names.push((identifier(&node.id), node.range())),
        py::Expr::Tuple(node) => node.elts.iter().for_each(|item| bound_by(item, names)),
        py::Expr::List(node) => node.elts.iter().for_each(|item| bound_by(item, names)),
        py::Expr::Starred(node) => bound_by(&node.value, names),
        _ => {}
    }
}

fn pattern(node: &py::Pattern, names: &mut Names) {
    let mut name = |name: &Option<py::Identifier>| {
        names.extend(name.as_ref().map(|name| (identifier(name), node.range())));
    };
    match node {
        py::Pattern::MatchStar(star) => name(&star.name),
        py::Pattern::MatchAs(alias) => {
            name(&alias.name);
            alias.pattern.iter().for_each(|inner| pattern(inner, names));
        }
        py::Pattern::MatchMapping(mapping) => {
            name(&mapping.rest);
            mapping.patterns.iter().for_each(|inner| pattern(inner, names));
        }
        py::Pattern::MatchSequence(sequence) => sequence.patterns.iter().for_each(|inner| pattern(inner, names)),
        py::Pattern::MatchOr(either) => either.patterns.iter().for_each(|inner| pattern(inner, names)),
        py::Pattern::MatchClass(class) => {
            class.patterns.iter().chain(&class.kwd_patterns).for_each(|inner| pattern(inner, names));
        }
        py::Pattern::MatchValue(_) | py::Pattern::MatchSingleton(_) => {}
    }
}
