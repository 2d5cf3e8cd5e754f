//! Expressions of rules.

use weft_artifact::rules::{RuleExpr, RuleOp};

use super::{Builtin, Locals, Translated, Translator, Value, rule_error};
use crate::{
    diagnostic::{Diagnostic, closest},
    request::Captured,
    source::Span,
    syntax::ast::{BinOp, CmpOp, Constant, Expr, ExprKind, UnaryOp},
};

/// What `(a + b - 1) // b` is for.
const ROUND_UP: &str = "integers are divided by `//`; to round up, write `(n + b - 1) // b`";

impl Translator<'_> {
    pub(super) fn value(&mut self, expr: &Expr, locals: &Locals) -> Translated<Value> {
        self.count(expr.span)?;
        let span = expr.span;
        match &expr.kind {
            ExprKind::Constant(constant) => self.constant(constant, span),
            ExprKind::Name(name) => self.name(name, span, locals),
            ExprKind::Attribute { value, attr } => self.attribute(value, attr, span, locals),
            ExprKind::Subscript { value, index } => self.subscript(value, index, span, locals),
            ExprKind::Tuple(items) | ExprKind::List(items) => {
                items.iter().map(|item| self.value(item, locals)).collect::<Translated<_>>().map(Value::Tuple)
            }
            ExprKind::Binary { op, left, right } => {
                let (left, right) = (self.value(left, locals)?, self.value(right, locals)?);
                self.binary(*op, left, right, span)
            }
            ExprKind::Unary { op, operand } => {
                let value = self.int(operand, locals)?;
                match op {
                    UnaryOp::Plus => Ok(Value::Int(value)),
                    UnaryOp::Minus => Ok(apply(RuleOp::Neg, vec![value])),
                    UnaryOp::Not => Ok(apply(RuleOp::Eq, vec![value, RuleExpr::Int(0)])),
                    UnaryOp::Invert => Err(self.no_operator(span, "~")),
                }
            }
            ExprKind::Bool { and, values } => {
                let mut values = values.iter().rev();
                let mut last = match values.next() {
                    Some(last) => self.int(last, locals)?,
                    None => RuleExpr::Int(i64::from(*and)),
                };
                for value in values {
                    let value = self.int(value, locals)?;
                    let operands =
                        if *and { vec![value.clone(), last, value] } else { vec![value.clone(), value, last] };
                    self.count(span)?;
                    last = applied(RuleOp::Select, operands);
                }
                Ok(Value::Int(last))
            }
            ExprKind::Compare { left, rest } => self.compare(left, rest, locals),
            ExprKind::IfExp { test, body, orelse } => {
                let condition = self.condition(test, locals)?;
                let (yes, no) = (self.value(body, locals)?, self.value(orelse, locals)?);
                self.select(&condition, yes, no, span)
            }
            ExprKind::Call { func, args, keywords } => self.call(func, args, !keywords.is_empty(), span, locals),
            ExprKind::Slice { .. } => Err(self.unsupported(span, "slice")),
            ExprKind::Starred(_) => Err(self.unsupported(span, "starred expression")),
            ExprKind::Named { .. } => Err(self.unsupported(span, "`:=`")),
            ExprKind::Lambda(_) => Err(self.unsupported(span, "lambda")),
            ExprKind::Comprehension { .. } => Err(self.unsupported(span, "comprehension")),
            ExprKind::Unsupported(what) => Err(self.unsupported(span, what)),
        }
    }

    fn unsupported(&self, span: Span, what: &str) -> Diagnostic {
        let error = rule_error(span, format!("a {} cannot contain a {what}", self.of.what));
        error.help(
            "it computes integers with `+`, `-`, `*`, `//`, `%`, `min`, `max`, `abs`, comparisons and `a if c else b` \
             from `x.size`, `x.shape[i]`, `x.ndim`, `len(x)`, integer arguments and constants",
        )
    }

    fn no_operator(&self, span: Span, symbol: &str) -> Diagnostic {
        let error = rule_error(span, format!("a {} cannot contain the operator `{symbol}`", self.of.what));
        error.help(if symbol == "/" { ROUND_UP } else { "it has `+`, `-`, `*`, `//`, `%`, `<<` and `>>`" })
    }

    /// An expression as an integer.
    fn int(&mut self, expr: &Expr, locals: &Locals) -> Translated<RuleExpr> {
        let value = self.value(expr, locals)?;
        self.integer(value, expr.span)
    }

    pub(super) fn condition(&mut self, expr: &Expr, locals: &Locals) -> Translated<RuleExpr> {
        self.int(expr, locals)
    }

    fn constant(&self, constant: &Constant, span: Span) -> Translated<Value> {
        match constant {
            Constant::Bool(value) => Ok(Value::Int(RuleExpr::Int(i64::from(*value)))),
            Constant::Int(value) => match i64::try_from(value) {
                Ok(value) => Ok(Value::Int(RuleExpr::Int(value))),
                Err(_) => Err(rule_error(span, "the integer does not fit in 64 bits")),
            },
            Constant::Float(_) => {
                Err(rule_error(span, format!("a {} computes with integers", self.of.what)).help(ROUND_UP))
            }
            Constant::None => Err(self.unsupported(span, "`None`")),
            Constant::Complex(..) => Err(self.unsupported(span, "complex number")),
            Constant::Str(_) => Err(self.unsupported(span, "string")),
            Constant::Bytes(_) => Err(self.unsupported(span, "bytes object")),
            Constant::Ellipsis => Err(self.unsupported(span, "`...`")),
        }
    }

    fn name(&self, name: &str, span: Span, locals: &Locals) -> Translated<Value> {
        if let Some(value) = locals.get(name) {
            return Ok(value.clone());
        }
        if let Some(captured) = self.of.globals.get(name) {
            return self.captured(captured, name, span);
        }
        if let Some(builtin) = Builtin::of(name) {
            return Ok(Value::Builtin(builtin));
        }
        let error = rule_error(span, format!("`{name}` is not defined in the {}", self.of.what));
        if self.of.params.iter().any(|param| param == name) {
            return Err(
                error.help(format!("it is a parameter of `{}`: take it as a parameter here, too", self.of.kernel))
            );
        }
        let known = locals.keys().chain(self.of.globals.keys()).map(String::as_str);
        Err(match closest(name, known) {
            Some(near) => error.help(format!("did you mean `{near}`?")),
            None => error,
        })
    }

    fn captured(&self, captured: &Captured, name: &str, span: Span) -> Translated<Value> {
        match captured {
            Captured::Bool(value) => Ok(Value::Int(RuleExpr::Int(i64::from(*value)))),
            Captured::Int(value) | Captured::NumpyInt(_, value) => match i64::try_from(*value) {
                Ok(value) => Ok(Value::Int(RuleExpr::Int(value))),
                Err(_) => Err(rule_error(span, format!("`{name}` does not fit in 64 bits"))),
            },
            Captured::Tuple(items) => {
                items.iter().map(|item| self.captured(item, name, span)).collect::<Translated<_>>().map(Value::Tuple)
            }
            Captured::Known(path) => match path.strip_prefix("builtins.").and_then(Builtin::of) {
                Some(builtin) => Ok(Value::Builtin(builtin)),
                None => Err(self.no_value(name, span)),
            },
            Captured::None
            | Captured::Float(_)
            | Captured::Complex(..)
            | Captured::NumpyFloat(..)
            | Captured::Time(..)
            | Captured::Str(_)
            | Captured::Bytes(_)
            | Captured::Struct(..)
            | Captured::Enum(..)
            | Captured::Class(..)
            | Captured::Array(_)
            | Captured::DeviceArray(..)
            | Captured::DType(_)
            | Captured::Module(..)
            | Captured::Function(_)
            | Captured::Recursive(_)
            | Captured::Overloaded(_)
            | Captured::Exception(_)
            | Captured::Unsupported(..)
            | Captured::Unknown(..) => Err(self.no_value(name, span)),
        }
    }

    fn no_value(&self, name: &str, span: Span) -> Diagnostic {
        let error = rule_error(span, format!("a {} cannot use the value of `{name}`", self.of.what));
        error.help("it uses integers, tuples of them, and `abs`, `int`, `len`, `max` and `min`")
    }

    fn attribute(&mut self, value: &Expr, attr: &str, span: Span, locals: &Locals) -> Translated<Value> {
        if let Some((captured, name)) = self.member(value, attr, locals) {
            return self.captured(&captured, &name, span);
        }
        match self.value(value, locals)? {
            Value::Param(param) => match attr {
                "size" => Ok(Value::Int(RuleExpr::Size(param))),
                "ndim" => Ok(Value::Int(RuleExpr::Ndim(param))),
                "shape" => Ok(Value::Shape(param)),
                _ => {
                    let error = rule_error(span, format!("a {} cannot use `.{attr}`", self.of.what));
                    Err(match closest(attr, ["size", "shape", "ndim"]) {
                        Some(near) => error.help(format!("did you mean `.{near}`?")),
                        None => error.help("of an array it uses `.size`, `.shape[i]` and `.ndim`"),
                    })
                }
            },
            Value::Int(_) | Value::Shape(_) | Value::Tuple(_) | Value::Builtin(_) => {
                Err(rule_error(span, format!("a {} cannot use `.{attr}` of this value", self.of.what)))
            }
        }
    }

    /// The value of an attribute of a captured module, and its dotted name.
    fn member(&self, value: &Expr, attr: &str, locals: &Locals) -> Option<(Captured, String)> {
        let (root, path) = if let ExprKind::Name(name) = &value.kind {
            let is_local = locals.contains_key(name);
            (self.of.globals.get(name).filter(|_| !is_local)?.clone(), name.clone())
        } else if let ExprKind::Attribute { value, attr } = &value.kind {
            self.member(value, attr, locals)?
        } else {
            return None;
        };
        let name = format!("{path}.{attr}");
        if let Captured::Module(_, members) = root {
            members.get(attr).map(|value| (value.clone(), name))
        } else if let Captured::Known(path) = root {
            Some((Captured::Known(format!("{path}.{attr}")), name))
        } else {
            None
        }
    }

    fn subscript(&mut self, value: &Expr, index: &Expr, span: Span, locals: &Locals) -> Translated<Value> {
        let value = self.value(value, locals)?;
        if let ExprKind::Slice { .. } = index.kind {
            return Err(self.unsupported(index.span, "slice").help("name each extent: `x.shape[0], x.shape[1]`"));
        }
        let Some(index) = self.int(index, locals)?.constant() else {
            return Err(rule_error(index.span, format!("an index in a {} must be a constant", self.of.what)));
        };
        match value {
            Value::Shape(param) => Ok(Value::Int(RuleExpr::Extent(param, index))),
            Value::Tuple(items) => {
                let at = if index < 0 { index + items.len() as i64 } else { index };
                let item = usize::try_from(at).ok().and_then(|at| items.get(at).cloned());
                item.ok_or_else(|| rule_error(span, format!("the tuple has {} items, no item {index}", items.len())))
            }
            Value::Param(param) => {
                let name = &self.of.params[param as usize];
                let error = rule_error(span, format!("a {} cannot read elements of `{name}`", self.of.what));
                Err(error.help("it runs on the host before the launch: pass the value to the kernel as an integer"))
            }
            Value::Int(_) | Value::Builtin(_) => Err(rule_error(span, "an integer has no items")),
        }
    }

    pub(super) fn binary(&mut self, op: BinOp, left: Value, right: Value, span: Span) -> Translated<Value> {
        let op = match op {
            BinOp::Add => RuleOp::Add,
            BinOp::Sub => RuleOp::Sub,
            BinOp::Mul => RuleOp::Mul,
            BinOp::FloorDiv => RuleOp::FloorDiv,
            BinOp::Mod => RuleOp::Mod,
            BinOp::LShift => RuleOp::Shl,
            BinOp::RShift => RuleOp::Shr,
            BinOp::Div | BinOp::Pow | BinOp::MatMul | BinOp::BitAnd | BinOp::BitOr | BinOp::BitXor => {
                return Err(self.no_operator(span, op.symbol()));
            }
        };
        match (op, left, right) {
            (RuleOp::Add, Value::Tuple(mut left), Value::Tuple(right)) => {
                left.extend(right);
                Ok(Value::Tuple(left))
            }
            (op, left, right) => Ok(apply(op, vec![self.integer(left, span)?, self.integer(right, span)?])),
        }
    }

    fn compare(&mut self, left: &Expr, rest: &[(CmpOp, Expr)], locals: &Locals) -> Translated<Value> {
        let mut left = self.int(left, locals)?;
        let mut tests = Vec::new();
        for (op, right) in rest {
            let value = self.int(right, locals)?;
            let (op, swapped) = match op {
                CmpOp::Eq => (RuleOp::Eq, false),
                CmpOp::NotEq => (RuleOp::Ne, false),
                CmpOp::Lt => (RuleOp::Lt, false),
                CmpOp::LtE => (RuleOp::Le, false),
                CmpOp::Gt => (RuleOp::Lt, true),
                CmpOp::GtE => (RuleOp::Le, true),
                CmpOp::Is | CmpOp::IsNot | CmpOp::In | CmpOp::NotIn => {
                    return Err(self.no_operator(right.span, op.symbol()));
                }
            };
            let (a, b) = if swapped { (value.clone(), left) } else { (left, value.clone()) };
            tests.push(applied(op, vec![a, b]));
            left = value;
        }
        let all =
            tests.into_iter().rev().reduce(|after, test| applied(RuleOp::Select, vec![test, after, RuleExpr::Int(0)]));
        Ok(Value::Int(all.unwrap_or(RuleExpr::Int(1))))
    }

    /// One of two values.
    pub(super) fn select(&mut self, test: &RuleExpr, yes: Value, no: Value, span: Span) -> Translated<Value> {
        self.count(span)?;
        if yes == no {
            return Ok(yes);
        }
        match (yes, no) {
            (Value::Tuple(yes), Value::Tuple(no)) if yes.len() == no.len() => {
                let items = yes.into_iter().zip(no).map(|(yes, no)| self.select(test, yes, no, span));
                items.collect::<Translated<_>>().map(Value::Tuple)
            }
            // An extent and a tuple: `(n, m) if two else n`.
            (Value::Tuple(_), _) | (_, Value::Tuple(_)) => {
                Err(rule_error(span, format!("the branches of a {} must have tuples of the same length", self.of.what)))
            }
            (yes, no) => {
                let operands = vec![test.clone(), self.integer(yes, span)?, self.integer(no, span)?];
                Ok(apply(RuleOp::Select, operands))
            }
        }
    }

    fn call(&mut self, func: &Expr, args: &[Expr], keywords: bool, span: Span, locals: &Locals) -> Translated<Value> {
        let dotted = chain(func);
        let ceil = dotted.as_deref().is_some_and(|name| name.ends_with("ceil") || name.ends_with("cdiv"));
        let builtin = match (&func.kind, dotted.as_deref()) {
            (ExprKind::Name(_), _) => match self.value(func, locals) {
                Ok(Value::Builtin(builtin)) => Some(builtin),
                Ok(Value::Int(_) | Value::Param(_) | Value::Shape(_) | Value::Tuple(_)) | Err(_) => None,
            },
            (_, Some("math.prod" | "np.prod" | "numpy.prod")) => return self.product(args, span, locals),
            _ => None,
        };
        let Some(builtin) = builtin.filter(|_| !keywords) else {
            let name = dotted.map_or("this function".to_owned(), |name| format!("`{name}`"));
            let error = rule_error(span, format!("a {} cannot call {name}", self.of.what));
            return Err(if ceil {
                error.help(ROUND_UP)
            } else {
                error.help("it calls `abs`, `int`, `len`, `max` and `min`; write the expression in place")
            });
        };
        let values = args.iter().map(|arg| self.value(arg, locals)).collect::<Translated<Vec<_>>>()?;
        match (builtin, values.as_slice()) {
            (Builtin::Abs, [value]) => Ok(apply(RuleOp::Abs, vec![self.integer(value.clone(), span)?])),
            (Builtin::Int, [value]) => Ok(Value::Int(self.integer(value.clone(), span)?)),
            (Builtin::Len, [Value::Param(param)]) => Ok(Value::Int(RuleExpr::Extent(*param, 0))),
            (Builtin::Len, [Value::Shape(param)]) => Ok(Value::Int(RuleExpr::Ndim(*param))),
            (Builtin::Len, [Value::Tuple(items)]) => Ok(Value::Int(RuleExpr::Int(items.len() as i64))),
            (Builtin::Max | Builtin::Min, [Value::Tuple(items)]) => self.extreme(builtin, items.clone(), span),
            (Builtin::Max | Builtin::Min, [_, _, ..]) => self.extreme(builtin, values, span),
            _ => Err(rule_error(
                span,
                format!("a {} calls a function with arguments that it does not take", self.of.what),
            )),
        }
    }

    fn extreme(&mut self, builtin: Builtin, values: Vec<Value>, span: Span) -> Translated<Value> {
        let op = if builtin == Builtin::Max { RuleOp::Max } else { RuleOp::Min };
        let values = values.into_iter().map(|value| self.integer(value, span)).collect::<Translated<Vec<_>>>()?;
        let all = values.into_iter().reduce(|a, b| applied(op, vec![a, b]));
        all.map(Value::Int).ok_or_else(|| rule_error(span, "`min` and `max` need at least one integer"))
    }

    /// `math.prod(x.shape)`.
    fn product(&mut self, args: &[Expr], span: Span, locals: &Locals) -> Translated<Value> {
        let values = args.iter().map(|arg| self.value(arg, locals)).collect::<Translated<Vec<_>>>()?;
        match values.as_slice() {
            [Value::Shape(param)] => Ok(Value::Int(RuleExpr::Size(*param))),
            [Value::Tuple(items)] => {
                let items =
                    items.iter().map(|item| self.integer(item.clone(), span)).collect::<Translated<Vec<_>>>()?;
                let all = items.into_iter().reduce(|a, b| applied(RuleOp::Mul, vec![a, b]));
                Ok(Value::Int(all.unwrap_or(RuleExpr::Int(1))))
            }
            _ => Err(rule_error(span, "`prod` takes a shape here: `math.prod(x.shape)`")),
        }
    }
}

fn apply(op: RuleOp, operands: Vec<RuleExpr>) -> Value {
    Value::Int(applied(op, operands))
}

/// An operation; its value if its operands are constants.
fn applied(op: RuleOp, operands: Vec<RuleExpr>) -> RuleExpr {
    let is_constant = operands.iter().all(|operand| matches!(operand, RuleExpr::Int(_)));
    let expr = RuleExpr::Apply(op, operands);
    match expr.constant().filter(|_| is_constant) {
        Some(value) => RuleExpr::Int(value),
        None => expr,
    }
}

/// `a.b.c`.
fn chain(expr: &Expr) -> Option<String> {
    if let ExprKind::Name(name) = &expr.kind {
        Some(name.clone())
    } else if let ExprKind::Attribute { value, attr } = &expr.kind {
        chain(value).map(|value| format!("{value}.{attr}"))
    } else {
        None
    }
}
