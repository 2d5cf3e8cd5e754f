//! Records for the sanitizer the loops and branches that enclose each statement of a function, and the statements that
//! update an element.

use weft_artifact::Number;

use super::{lowerer::FnLowerer, prelude::is_own, value::Value};
use crate::{
    ir::{AtomicOp, Region, Structure, UpdateStmt},
    source::Span,
    syntax::ast::{BinOp, CmpOp, Expr, ExprKind, Stmt, StmtKind},
};

/// The maximum length of a quoted statement.
const MOST_QUOTED: usize = 60;

impl FnLowerer<'_> {
    /// Records the structure of the function, once, if the code is sanitized.
    pub(super) fn record_structure(&mut self) {
        if !self.cx.sanitize || is_own(&self.def) {
            return;
        }
        let span = Span { file: self.file, ..self.def.ast.span };
        let structure = &mut self.cx.module.structure;
        if structure.functions.contains(&span) {
            return;
        }
        structure.functions.push(span);
        let mut recorder = Recorder { file: self.file, text: &self.def.source.text, structure };
        recorder.stmts(&self.def.ast.body);
    }

    /// Records that an assignment writes an element that is a number, if the code is sanitized.
    pub(super) fn record_element(&mut self, target: Span, value: &Value) {
        let number = match value {
            Value::Scalar(_, scalar) => Number::Real(*scalar),
            Value::Complex(.., complex) => Number::Complex(*complex),
            Value::Int(_) | Value::Bool(_) | Value::Array(_) | Value::Object(..) | Value::Static(_) | Value::Poison => {
                return;
            }
        };
        self.record_number(target, Some(number));
    }

    /// The same for an element of an array, with `n_indices` indices; does nothing if the element is not a number.
    pub(super) fn record_element_of(&mut self, target: Span, array: &Value, n_indices: usize) {
        if let Value::Array(array) = array
            && array.ty.ndim == n_indices
        {
            self.record_number(target, array.ty.dtype.number());
        }
    }

    fn record_number(&mut self, target: Span, number: Option<Number>) {
        if let Some(number) = number.filter(|_| self.cx.sanitize && !is_own(&self.def)) {
            let target = Span { file: self.file, ..target };
            self.cx.module.structure.elements.insert(target, number);
        }
    }
}

struct Recorder<'a> {
    file: u32,
    text: &'a str,
    structure: &'a mut Structure,
}

impl Recorder<'_> {
    fn at(&self, span: Span) -> Span {
        Span { file: self.file, ..span }
    }

    /// The source text of an expression on one line.
    fn text(&self, expr: &Expr) -> String {
        let text = self.text.get(expr.span.start as usize..expr.span.end as usize).unwrap_or_default();
        text.split_whitespace().collect::<Vec<_>>().join(" ")
    }

    fn same(&self, a: &Expr, b: &Expr) -> bool {
        let spaceless = |expr| self.text(expr).replace(' ', "");
        spaceless(a) == spaceless(b)
    }

    fn region(&self, header: Span, body: Span) -> Region {
        Region { header: self.at(header), body: self.at(body) }
    }

    fn stmts(&mut self, stmts: &[Stmt]) {
        for stmt in stmts {
            self.stmt(stmt);
        }
    }

    fn stmt(&mut self, stmt: &Stmt) {
        match &stmt.kind {
            StmtKind::If { test, body, orelse } => {
                self.bound(stmt.span, test, body, orelse);
                self.expr(test);
                for (stmts, is_else) in [(body, false), (orelse, true)] {
                    if let Some(span) = span_of(stmts) {
                        let region = self.region(test.span, span);
                        self.structure.branches.push((region, is_else));
                    }
                    self.stmts(stmts);
                }
            }
            StmtKind::While { test, body, orelse } => {
                let span = span_of(body).map_or(test.span, |body| test.span.to(body));
                let region = self.region(stmt.span, span);
                self.structure.loops.push(region);
                self.expr(test);
                self.stmts(body);
                self.stmts(orelse);
            }
            StmtKind::For { target: _, iter, body, orelse } => {
                self.expr(iter);
                if let Some(span) = span_of(body) {
                    let region = self.region(stmt.span, span);
                    self.structure.loops.push(region);
                }
                self.stmts(body);
                self.stmts(orelse);
            }
            StmtKind::Assign { targets, value } => {
                if let [target] = targets.as_slice() {
                    self.assigned(target, value);
                }
                self.expr(value);
            }
            StmtKind::AnnAssign { target, annotation: _, value: Some(value) } => {
                self.assigned(target, value);
                self.expr(value);
            }
            StmtKind::AugAssign { target, op, value } => {
                let text = format!("{} {}= …", self.text(target), op.symbol());
                self.update(target, Vec::new(), text, atomic(*op));
                self.expr(value);
            }
            StmtKind::FunctionDef(function) => self.stmts(&function.body),
            StmtKind::Expr(value) | StmtKind::Return(Some(value)) | StmtKind::Raise(Some(value)) => self.expr(value),
            StmtKind::Assert { test, message: _ } => self.expr(test),
            StmtKind::AnnAssign { .. }
            | StmtKind::Return(None)
            | StmtKind::Raise(None)
            | StmtKind::Break
            | StmtKind::Continue
            | StmtKind::Pass
            | StmtKind::Delete(_)
            | StmtKind::Global(_)
            | StmtKind::Nonlocal(_)
            | StmtKind::Unsupported(_) => {}
        }
    }

    /// Comprehensions are loops, too.
    fn expr(&mut self, expr: &Expr) {
        if let ExprKind::Comprehension { .. } = expr.kind {
            let region = self.region(expr.span, expr.span);
            self.structure.loops.push(region);
        }
        if let ExprKind::Lambda(function) = &expr.kind {
            self.stmts(&function.body);
        }
        for child in expr.children() {
            self.expr(child);
        }
    }

    fn update(&mut self, target: &Expr, mut accesses: Vec<Span>, text: String, op: Option<AtomicOp>) {
        let Some(element) = self.element(target) else { return };
        accesses.push(self.at(target.span));
        self.structure.updates.push(UpdateStmt { target: self.at(target.span), accesses, text, op, element });
    }

    /// `a[i] = a[i] + x`, `a[i] = max(a[i], x)`.
    fn assigned(&mut self, target: &Expr, value: &Expr) {
        let name = self.text(target);
        match &value.kind {
            ExprKind::Binary { op, left, right } => {
                let (symbol, commutes) = (op.symbol(), matches!(atomic(*op), Some(op) if op != AtomicOp::Sub));
                if self.same(target, left) {
                    self.update(target, vec![self.at(left.span)], format!("{name} = {name} {symbol} …"), atomic(*op));
                } else if self.same(target, right) {
                    let op = atomic(*op).filter(|_| commutes);
                    self.update(target, vec![self.at(right.span)], format!("{name} = … {symbol} {name}"), op);
                }
            }
            ExprKind::Call { func, args, keywords } if keywords.is_empty() => {
                let callee = self.text(func);
                let op = match callee.rsplit('.').next() {
                    Some("max" | "maximum" | "fmax") => AtomicOp::Max,
                    Some("min" | "minimum" | "fmin") => AtomicOp::Min,
                    Some(_) | None => return,
                };
                if let [left, right] = args.as_slice()
                    && let Some(own) = [left, right].into_iter().find(|arg| self.same(target, arg))
                {
                    self.update(target, vec![self.at(own.span)], format!("{name} = {callee}({name}, …)"), Some(op));
                }
            }
            ExprKind::Name(_)
            | ExprKind::Constant(_)
            | ExprKind::Unary { .. }
            | ExprKind::Bool { .. }
            | ExprKind::Compare { .. }
            | ExprKind::IfExp { .. }
            | ExprKind::Call { .. }
            | ExprKind::Attribute { .. }
            | ExprKind::Subscript { .. }
            | ExprKind::Slice { .. }
            | ExprKind::Tuple(_)
            | ExprKind::List(_)
            | ExprKind::Starred(_)
            | ExprKind::Named { .. }
            | ExprKind::Lambda(_)
            | ExprKind::Comprehension { .. }
            | ExprKind::Unsupported(_) => {}
        }
    }

    /// `if x > a[i]: a[i] = x`, an atomic maximum.
    fn bound(&mut self, span: Span, test: &Expr, body: &[Stmt], orelse: &[Stmt]) {
        let ExprKind::Compare { left, rest } = &test.kind else { return };
        let ([(op, right)], [Stmt { kind: StmtKind::Assign { targets, value }, .. }], []) =
            (rest.as_slice(), body, orelse)
        else {
            return;
        };
        let [target] = targets.as_slice() else { return };
        let value_is_left = self.same(left, value) && self.same(right, target);
        if !(value_is_left || self.same(right, value) && self.same(left, target)) {
            return;
        }
        let op = match (op, value_is_left) {
            (CmpOp::Gt | CmpOp::GtE, true) | (CmpOp::Lt | CmpOp::LtE, false) => AtomicOp::Max,
            (CmpOp::Lt | CmpOp::LtE, true) | (CmpOp::Gt | CmpOp::GtE, false) => AtomicOp::Min,
            (CmpOp::Eq | CmpOp::NotEq | CmpOp::Is | CmpOp::IsNot | CmpOp::In | CmpOp::NotIn, _) => return,
        };
        let read = if value_is_left { right } else { &**left };
        let whole = self.text.get(span.start as usize..span.end as usize).unwrap_or_default();
        let whole = whole.split_whitespace().collect::<Vec<_>>().join(" ");
        let text = if whole.len() <= MOST_QUOTED { whole } else { format!("{} = …", self.text(target)) };
        self.update(target, vec![self.at(read.span)], text, Some(op));
    }

    /// An element as the arguments of an atomic operation; `None` if the expression is not an element.
    fn element(&self, target: &Expr) -> Option<String> {
        let (element, field) = if let ExprKind::Attribute { value, attr } = &target.kind {
            (&**value, format!(".{attr}"))
        } else {
            (target, String::new())
        };
        let ExprKind::Subscript { value: array, index } = &element.kind else { return None };
        let mut text = self.text(index);
        if matches!(index.kind, ExprKind::Tuple(_)) && !text.starts_with('(') {
            text = format!("({text})");
        }
        Some(format!("{}{field}, {text}", self.text(array)))
    }
}

fn span_of(stmts: &[Stmt]) -> Option<Span> {
    let (first, last) = (stmts.first()?, stmts.last()?);
    Some(first.span.to(last.span))
}

/// The atomic operation that corresponds to an operator.
const fn atomic(op: BinOp) -> Option<AtomicOp> {
    match op {
        BinOp::Add => Some(AtomicOp::Add),
        BinOp::Sub => Some(AtomicOp::Sub),
        BinOp::BitAnd => Some(AtomicOp::And),
        BinOp::BitOr => Some(AtomicOp::Or),
        BinOp::BitXor => Some(AtomicOp::Xor),
        BinOp::Mul
        | BinOp::Div
        | BinOp::FloorDiv
        | BinOp::Mod
        | BinOp::Pow
        | BinOp::MatMul
        | BinOp::LShift
        | BinOp::RShift => None,
    }
}
