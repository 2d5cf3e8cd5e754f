//! Converts the parser's tree to weft's tree, node by node.

use rustpython_parser::ast::{self as py, Ranged};
use unicode_normalization::UnicodeNormalization;

use super::formatted::Formatteds;
use crate::{
    diagnostic::{Code, Diagnostic},
    source::Span,
    syntax::{
        ast::{
            BinOp, CmpOp, ComprehensionLoop, Constant, Expr, ExprKind, Function, Param, ParamKind, Stmt, StmtKind,
            UnaryOp,
        },
        fold::folded,
    },
};

/// The error is boxed to keep the frames of the recursion small.
pub(super) type Result<T> = std::result::Result<T, Box<Diagnostic>>;

/// The maximum nesting depth, which bounds the recursion of later stages over the tree.
const MAX_DEPTH: u32 = 150;

/// The longest chain of `elif`s, or of operators without parentheses.
const MAX_CHAIN: usize = 2000;

/// Converts the trees of one source text.
pub(super) struct Converter<'a> {
    pub(super) text: &'a str,
    /// The number of bytes that precede the text in the parser's input.
    shift: u32,
    pub(super) file: u32,
    /// The enclosing class, whose name becomes part of private names.
    class: Option<&'a str>,
    /// The formatted strings that the parser sees as plain strings.
    pub(super) formatted: &'a Formatteds,
    depth: u32,
    too_deep: bool,
}

impl<'a> Converter<'a> {
    pub(super) fn new(text: &'a str, shift: u32, file: u32, formatted: &'a Formatteds) -> Self {
        Self { text, shift, file, class: None, formatted, depth: 0, too_deep: false }
    }

    /// Sets the enclosing class.
    pub(super) fn within(self, class: Option<&'a str>) -> Self {
        Self { class, ..self }
    }

    /// The mangled name: in a class `C`, a private name (`__x`, but not `__x__`) is `_C__x`.
    fn name(&self, name: &py::Identifier) -> String {
        let name = identifier(name);
        match self.class.map(|class| class.trim_start_matches('_')) {
            Some(class) if !class.is_empty() && name.starts_with("__") && !name.ends_with("__") => {
                format!("_{class}{name}")
            }
            _ => name,
        }
    }

    /// Whether a tree was nested so deeply that dropping it could exhaust the stack.
    pub(super) fn is_too_deep(&self) -> bool {
        self.too_deep
    }

    /// Drops a parser's tree, unless it is nested so deeply that dropping it could exhaust the stack: then it leaks.
    pub(super) fn release<T>(&self, tree: T) {
        if self.too_deep {
            std::mem::forget(tree);
        }
    }

    pub(super) fn span(&self, node: &impl Ranged) -> Span {
        let shifted = |offset: u32| offset.saturating_sub(self.shift).min(self.text.len() as u32);
        let range = node.range();
        Span { file: self.file, start: shifted(range.start().into()), end: shifted(range.end().into()) }
    }

    pub(super) fn nested<T>(&mut self, span: Span, convert: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        if self.depth >= MAX_DEPTH {
            self.too_deep = true;
            let message = format!("the code is nested more than {MAX_DEPTH} levels deep here");
            let diagnostic = Diagnostic::error(Code::Syntax, Span { end: span.start, ..span }, message);
            return Err(Box::new(diagnostic.help("assign a part of it to a variable")));
        }
        self.depth += 1;
        let converted = convert(self);
        self.depth -= 1;
        converted
    }

    /// A function definition.
    pub(super) fn function(&mut self, def: &py::StmtFunctionDef) -> Result<Function> {
        let span = self.span(def);
        Ok(Function {
            name: identifier(&def.name),
            params: self.params(&def.args)?,
            body: self.nested(span, |this| this.stmts(&def.body))?,
            decorators: self.exprs(&def.decorator_list)?,
            returns: self.maybe(def.returns.as_deref())?,
            name_span: self.name_span(&def.name, span),
            span,
        })
    }

    /// A `lambda`: its body returns its value.
    fn lambda(&mut self, node: &py::ExprLambda, span: Span) -> Result<Function> {
        let value = self.expr(&node.body)?;
        let at = value.span;
        Ok(Function {
            name: "<lambda>".to_owned(),
            params: self.params(&node.args)?,
            body: vec![Stmt { kind: StmtKind::Return(Some(value)), span: at }],
            decorators: Vec::new(),
            returns: None,
            name_span: span,
            span,
        })
    }

    /// `element for … in … if …`.
    fn comprehension(&mut self, element: &py::Expr, generators: &[py::Comprehension]) -> Result<ExprKind> {
        let mut loops = Vec::new();
        for generator in generators {
            if generator.is_async {
                return Ok(ExprKind::Unsupported("coroutine (`async for`)"));
            }
            loops.push(ComprehensionLoop {
                target: self.target(&generator.target)?,
                iter: self.items(&generator.iter)?,
                tests: self.exprs(&generator.ifs)?,
            });
        }
        Ok(ExprKind::Comprehension { element: self.boxed(element)?, loops })
    }

    fn params(&mut self, args: &py::Arguments) -> Result<Vec<Param>> {
        let mut params = Vec::new();
        for arg in &args.posonlyargs {
            params.push(self.param(&arg.def, arg.default.as_deref(), ParamKind::PositionalOnly)?);
        }
        for arg in &args.args {
            params.push(self.param(&arg.def, arg.default.as_deref(), ParamKind::Plain)?);
        }
        if let Some(arg) = &args.vararg {
            params.push(self.param(arg, None, ParamKind::VarArgs)?);
        }
        for arg in &args.kwonlyargs {
            params.push(self.param(&arg.def, arg.default.as_deref(), ParamKind::KeywordOnly)?);
        }
        if let Some(arg) = &args.kwarg {
            params.push(self.param(arg, None, ParamKind::VarKeywords)?);
        }
        Ok(params)
    }

    /// The span of a function's name: its first occurrence as a word after `def`.
    pub(super) fn name_span(&self, name: &str, def: Span) -> Span {
        let from = def.start as usize + "def".len();
        let found = self.text.get(from..).and_then(|rest| rest.find(name));
        let start = found.map_or(def.start as usize, |at| from + at) as u32;
        Span { file: self.file, start, end: start + name.len() as u32 }
    }

    fn param(&mut self, arg: &py::Arg, default: Option<&py::Expr>, kind: ParamKind) -> Result<Param> {
        let whole = self.span(arg);
        Ok(Param {
            name: self.name(&arg.arg),
            annotation: self.maybe(arg.annotation.as_deref())?,
            default: self.maybe(default)?,
            kind,
            span: Span { end: whole.start + arg.arg.len() as u32, ..whole },
        })
    }

    fn stmts(&mut self, stmts: &[py::Stmt]) -> Result<Vec<Stmt>> {
        stmts.iter().map(|stmt| self.stmt(stmt)).collect()
    }

    pub(super) fn stmt(&mut self, stmt: &py::Stmt) -> Result<Stmt> {
        let span = self.span(stmt);
        let kind = self.nested(span, |this| this.stmt_kind(stmt))?;
        Ok(Stmt { kind, span })
    }

    /// An `if` with all its `elif`s. In Python's tree each is in the `orelse` of the one before, but in the source they
    /// are not nested.
    fn if_chain(&mut self, first: &py::StmtIf) -> Result<StmtKind> {
        let mut chain = vec![first];
        let mut last = first;
        while let [py::Stmt::If(next)] = last.orelse.as_slice() {
            chain.push(next);
            last = next;
        }
        self.check_chain(chain.len(), self.span(first))?;
        let mut converted = Vec::new();
        for node in &chain {
            converted.push((self.expr(&node.test)?, self.stmts(&node.body)?, self.span(*node)));
        }
        let mut orelse = self.stmts(&last.orelse)?;
        let mut whole = None;
        for (test, body, span) in converted.into_iter().rev() {
            if let Some((kind, span)) = whole.take() {
                orelse = vec![Stmt { kind, span }];
            }
            whole = Some((StmtKind::If { test, body, orelse: std::mem::take(&mut orelse) }, span));
        }
        // The chain has at least one link.
        Ok(whole.map_or(StmtKind::Pass, |(kind, _)| kind))
    }

    /// Rejects chains that are too long for the stack of later stages.
    fn check_chain(&mut self, links: usize, span: Span) -> Result<()> {
        if links <= MAX_CHAIN {
            return Ok(());
        }
        self.too_deep = true;
        let message = format!("a chain of more than {MAX_CHAIN} `elif`s or operators");
        let diagnostic = Diagnostic::error(Code::Syntax, Span { end: span.start, ..span }, message);
        Err(Box::new(diagnostic.help("assign a part of it to a variable")))
    }

    fn stmt_kind(&mut self, stmt: &py::Stmt) -> Result<StmtKind> {
        Ok(match stmt {
            py::Stmt::Assign(node) => {
                let targets = node.targets.iter().map(|target| self.target(target)).collect::<Result<_>>()?;
                StmtKind::Assign { targets, value: self.expr(&node.value)? }
            }
            py::Stmt::AnnAssign(node) => StmtKind::AnnAssign {
                target: self.target(&node.target)?,
                annotation: self.expr(&node.annotation)?,
                value: self.maybe(node.value.as_deref())?,
            },
            py::Stmt::AugAssign(node) => {
                if !matches!(*node.target, py::Expr::Name(_) | py::Expr::Attribute(_) | py::Expr::Subscript(_)) {
                    return Err(Box::new(self.not_a_target(&node.target)));
                }
                let target = self.target(&node.target)?;
                StmtKind::AugAssign { target, op: bin_op(node.op), value: self.expr(&node.value)? }
            }
            py::Stmt::Expr(node) => StmtKind::Expr(self.expr(&node.value)?),
            py::Stmt::If(node) => self.if_chain(node)?,
            py::Stmt::While(node) => StmtKind::While {
                test: self.expr(&node.test)?,
                body: self.stmts(&node.body)?,
                orelse: self.stmts(&node.orelse)?,
            },
            py::Stmt::For(node) => StmtKind::For {
                target: self.target(&node.target)?,
                iter: self.items(&node.iter)?,
                body: self.stmts(&node.body)?,
                orelse: self.stmts(&node.orelse)?,
            },
            py::Stmt::Break(_) => StmtKind::Break,
            py::Stmt::Continue(_) => StmtKind::Continue,
            py::Stmt::Return(node) => StmtKind::Return(self.maybe(node.value.as_deref())?),
            py::Stmt::Pass(_) => StmtKind::Pass,
            py::Stmt::Assert(node) => {
                StmtKind::Assert { test: self.expr(&node.test)?, message: self.maybe(node.msg.as_deref())? }
            }
            py::Stmt::Raise(node) if node.cause.is_some() => StmtKind::Unsupported("a `raise … from`"),
            py::Stmt::Raise(node) => StmtKind::Raise(self.maybe(node.exc.as_deref())?),
            py::Stmt::FunctionDef(node) => StmtKind::FunctionDef(Box::new(self.function(node)?)),
            py::Stmt::AsyncFunctionDef(_) => StmtKind::Unsupported("a nested `async def`"),
            py::Stmt::ClassDef(_) => StmtKind::Unsupported("a `class` definition"),
            py::Stmt::Delete(node) => {
                StmtKind::Delete(node.targets.iter().map(|target| self.target(target)).collect::<Result<_>>()?)
            }
            py::Stmt::TypeAlias(_) => StmtKind::Unsupported("a `type` statement"),
            py::Stmt::AsyncFor(_) => StmtKind::Unsupported("a coroutine's `async for`"),
            py::Stmt::With(_) => StmtKind::Unsupported("a `with` statement"),
            py::Stmt::AsyncWith(_) => StmtKind::Unsupported("a coroutine's `async with`"),
            py::Stmt::Match(node) => self.match_chain(node)?,
            py::Stmt::Try(_) | py::Stmt::TryStar(_) => StmtKind::Unsupported("a `try` statement"),
            py::Stmt::Import(_) | py::Stmt::ImportFrom(_) => StmtKind::Unsupported("a local `import`"),
            py::Stmt::Global(node) => StmtKind::Global(node.names.iter().map(ToString::to_string).collect()),
            py::Stmt::Nonlocal(node) => StmtKind::Nonlocal(node.names.iter().map(ToString::to_string).collect()),
        })
    }

    /// The target of an assignment. The parser accepts any expression; Python does not.
    fn target(&mut self, expr: &py::Expr) -> Result<Expr> {
        self.check_target(expr)?;
        self.expr(expr)
    }

    pub(super) fn check_target(&self, expr: &py::Expr) -> Result<()> {
        match expr {
            py::Expr::Name(_) | py::Expr::Attribute(_) | py::Expr::Subscript(_) => Ok(()),
            py::Expr::Tuple(node) => node.elts.iter().try_for_each(|item| self.check_target(item)),
            py::Expr::List(node) => node.elts.iter().try_for_each(|item| self.check_target(item)),
            py::Expr::Starred(node) => self.check_target(&node.value),
            other => Err(Box::new(self.not_a_target(other))),
        }
    }

    fn not_a_target(&self, expr: &py::Expr) -> Diagnostic {
        let span = self.span(expr);
        let text = self.text.get(span.start as usize..span.end as usize).unwrap_or("");
        let diagnostic = Diagnostic::error(Code::Syntax, span, format!("`{text}` cannot be assigned to"));
        match expr {
            py::Expr::Compare(_) => diagnostic.help("write `==` to compare"),
            _ => diagnostic,
        }
    }

    fn maybe(&mut self, expr: Option<&py::Expr>) -> Result<Option<Expr>> {
        expr.map(|expr| self.expr(expr)).transpose()
    }

    fn boxed(&mut self, expr: &py::Expr) -> Result<Box<Expr>> {
        self.expr(expr).map(Box::new)
    }

    fn maybe_boxed(&mut self, expr: Option<&py::Expr>) -> Result<Option<Box<Expr>>> {
        expr.map(|expr| self.boxed(expr)).transpose()
    }

    pub(super) fn exprs(&mut self, exprs: &[py::Expr]) -> Result<Vec<Expr>> {
        exprs.iter().map(|expr| self.expr(expr)).collect()
    }

    /// A list literal that is only iterated over. It cannot be distinguished from a tuple, and CPython's compiler
    /// converts it to one, too.
    fn items(&mut self, expr: &py::Expr) -> Result<Expr> {
        let mut items = self.expr(expr)?;
        if let ExprKind::List(list) = items.kind {
            items.kind = ExprKind::Tuple(list);
        }
        Ok(items)
    }

    /// An expression.
    pub(super) fn expr(&mut self, expr: &py::Expr) -> Result<Expr> {
        let span = self.span(expr);
        let kind = self.nested(span, |this| this.expr_kind(expr, span))?;
        let target = matches!(expr, py::Expr::Subscript(node) if node.ctx != py::ExprContext::Load);
        Ok(Expr { kind: if target { kind } else { folded(kind) }, span })
    }

    fn expr_kind(&mut self, expr: &py::Expr, span: Span) -> Result<ExprKind> {
        Ok(match expr {
            py::Expr::Name(node) => ExprKind::Name(self.name(&node.id)),
            py::Expr::Constant(node) if node.value.is_str() && self.is_formatted(span) => {
                self.formatted_literal(span)?
            }
            py::Expr::Constant(node) => ExprKind::Constant(constant(&node.value)),
            py::Expr::BinOp(node) => self.binary(node)?,
            py::Expr::UnaryOp(node) => ExprKind::Unary { op: unary_op(node.op), operand: self.boxed(&node.operand)? },
            py::Expr::BoolOp(node) => {
                ExprKind::Bool { and: node.op == py::BoolOp::And, values: self.exprs(&node.values)? }
            }
            py::Expr::Compare(node) => self.compare(node)?,
            py::Expr::IfExp(node) => self.conditional(node)?,
            py::Expr::Call(node) => self.call(node)?,
            py::Expr::Attribute(node) => {
                ExprKind::Attribute { value: self.boxed(&node.value)?, attr: self.name(&node.attr) }
            }
            py::Expr::Subscript(node) => {
                ExprKind::Subscript { value: self.boxed(&node.value)?, index: self.boxed(&node.slice)? }
            }
            py::Expr::Slice(node) => self.slice(node)?,
            py::Expr::Tuple(node) => ExprKind::Tuple(self.exprs(&node.elts)?),
            py::Expr::List(node) => ExprKind::List(self.exprs(&node.elts)?),
            py::Expr::Starred(node) => ExprKind::Starred(self.boxed(&node.value)?),
            py::Expr::NamedExpr(node) => {
                ExprKind::Named { target: self.boxed(&node.target)?, value: self.boxed(&node.value)? }
            }
            py::Expr::Lambda(node) => ExprKind::Lambda(Box::new(self.lambda(node, span)?)),
            py::Expr::Dict(_) => ExprKind::Unsupported("dictionary"),
            py::Expr::Set(_) => ExprKind::Unsupported("set"),
            py::Expr::ListComp(_) => ExprKind::Unsupported("list comprehension"),
            py::Expr::SetComp(_) => ExprKind::Unsupported("set comprehension"),
            py::Expr::DictComp(_) => ExprKind::Unsupported("dictionary comprehension"),
            py::Expr::GeneratorExp(node) => self.comprehension(&node.elt, &node.generators)?,
            py::Expr::Await(_) => ExprKind::Unsupported("coroutine (`await`)"),
            py::Expr::Yield(_) => ExprKind::Unsupported("`yield`"),
            py::Expr::YieldFrom(_) => ExprKind::Unsupported("`yield from`"),
            py::Expr::JoinedStr(_) | py::Expr::FormattedValue(_) => {
                // The parser sees plain strings, so this does not occur.
                return Err(Box::new(Diagnostic::error(Code::Syntax, span, "weft cannot read this f-string")));
            }
        })
    }

    fn binary(&mut self, node: &py::ExprBinOp) -> Result<ExprKind> {
        // `a + b + c` is `(a + b) + c`: collect the operators down to `a` without recursion.
        let mut chain = vec![node];
        let mut first = &*node.left;
        while let py::Expr::BinOp(inner) = first {
            chain.push(inner);
            first = &inner.left;
        }
        self.check_chain(chain.len(), self.span(node))?;
        let mut left = self.expr(first)?;
        let outer = chain.len() - 1;
        for (index, node) in chain.into_iter().rev().enumerate() {
            let right = self.boxed(&node.right)?;
            let kind = ExprKind::Binary { op: bin_op(node.op), left: Box::new(left), right };
            if index == outer {
                return Ok(kind);
            }
            left = Expr { kind: folded(kind), span: self.span(node) };
        }
        Ok(left.kind)
    }

    fn compare(&mut self, node: &py::ExprCompare) -> Result<ExprKind> {
        let left = self.boxed(&node.left)?;
        let pairs = node.ops.iter().zip(&node.comparators);
        let rest = pairs.map(|(op, right)| {
            let is_among = matches!(op, py::CmpOp::In | py::CmpOp::NotIn);
            Ok((cmp_op(*op), if is_among { self.items(right)? } else { self.expr(right)? }))
        });
        let rest = rest.collect::<Result<_>>()?;
        Ok(ExprKind::Compare { left, rest })
    }

    fn conditional(&mut self, node: &py::ExprIfExp) -> Result<ExprKind> {
        let test = self.boxed(&node.test)?;
        let body = self.boxed(&node.body)?;
        Ok(ExprKind::IfExp { test, body, orelse: self.boxed(&node.orelse)? })
    }

    fn call(&mut self, node: &py::ExprCall) -> Result<ExprKind> {
        let func = self.boxed(&node.func)?;
        let args = self.exprs(&node.args)?;
        let named = node.keywords.iter();
        let keywords = named
            .map(|keyword| Ok((keyword.arg.as_ref().map(|name| self.name(name)), self.expr(&keyword.value)?)))
            .collect::<Result<_>>()?;
        Ok(ExprKind::Call { func, args, keywords })
    }

    fn slice(&mut self, node: &py::ExprSlice) -> Result<ExprKind> {
        Ok(ExprKind::Slice {
            lower: self.maybe_boxed(node.lower.as_deref())?,
            upper: self.maybe_boxed(node.upper.as_deref())?,
            step: self.maybe_boxed(node.step.as_deref())?,
        })
    }
}

fn constant(constant: &py::Constant) -> Constant {
    match constant {
        py::Constant::None => Constant::None,
        py::Constant::Bool(value) => Constant::Bool(*value),
        py::Constant::Str(value) => Constant::Str(value.clone()),
        py::Constant::Bytes(value) => Constant::Bytes(value.clone()),
        py::Constant::Int(value) => Constant::Int(value.clone()),
        py::Constant::Float(value) => Constant::Float(*value),
        py::Constant::Complex { real, imag } => Constant::Complex(*real, *imag),
        py::Constant::Ellipsis => Constant::Ellipsis,
        // The parser does not fold tuples.
        py::Constant::Tuple(_) => Constant::Ellipsis,
    }
}

/// An identifier as Python normalizes it: NFKC, so that the micro sign of keyboards is the Greek mu.
pub(super) fn identifier(name: &py::Identifier) -> String {
    if name.as_str().is_ascii() { name.to_string() } else { name.as_str().nfkc().collect() }
}

fn bin_op(op: py::Operator) -> BinOp {
    match op {
        py::Operator::Add => BinOp::Add,
        py::Operator::Sub => BinOp::Sub,
        py::Operator::Mult => BinOp::Mul,
        py::Operator::MatMult => BinOp::MatMul,
        py::Operator::Div => BinOp::Div,
        py::Operator::Mod => BinOp::Mod,
        py::Operator::Pow => BinOp::Pow,
        py::Operator::LShift => BinOp::LShift,
        py::Operator::RShift => BinOp::RShift,
        py::Operator::BitOr => BinOp::BitOr,
        py::Operator::BitXor => BinOp::BitXor,
        py::Operator::BitAnd => BinOp::BitAnd,
        py::Operator::FloorDiv => BinOp::FloorDiv,
    }
}

fn unary_op(op: py::UnaryOp) -> UnaryOp {
    match op {
        py::UnaryOp::Invert => UnaryOp::Invert,
        py::UnaryOp::Not => UnaryOp::Not,
        py::UnaryOp::UAdd => UnaryOp::Plus,
        py::UnaryOp::USub => UnaryOp::Minus,
    }
}

fn cmp_op(op: py::CmpOp) -> CmpOp {
    match op {
        py::CmpOp::Eq => CmpOp::Eq,
        py::CmpOp::NotEq => CmpOp::NotEq,
        py::CmpOp::Lt => CmpOp::Lt,
        py::CmpOp::LtE => CmpOp::LtE,
        py::CmpOp::Gt => CmpOp::Gt,
        py::CmpOp::GtE => CmpOp::GtE,
        py::CmpOp::Is => CmpOp::Is,
        py::CmpOp::IsNot => CmpOp::IsNot,
        py::CmpOp::In => CmpOp::In,
        py::CmpOp::NotIn => CmpOp::NotIn,
    }
}
