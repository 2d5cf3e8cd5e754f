//! The functions of `operator`: each is lowered like its symbol.

use weft_artifact::Scalar;

use super::super::{expr::Args, lowerer::FnLowerer, ty::shown_path, value::Value};
use crate::{
    diagnostic::Code,
    frontend::function::count,
    intrinsics::Intrinsic,
    source::Span,
    syntax::ast::{BinOp, CmpOp, UnaryOp},
};

/// The operation of a symbol.
#[derive(Clone, Copy, Debug)]
enum Operator {
    Binary(BinOp),
    Compare(CmpOp),
    Unary(UnaryOp),
    /// The truth value.
    Truth,
    /// An integer, unchanged.
    Index,
    /// `item in container`.
    Contains,
    GetItem,
    SetItem,
}

impl Operator {
    fn of(symbol: &str) -> Option<Self> {
        Some(match symbol {
            "+" => Self::Binary(BinOp::Add),
            "-" => Self::Binary(BinOp::Sub),
            "*" => Self::Binary(BinOp::Mul),
            "/" => Self::Binary(BinOp::Div),
            "//" => Self::Binary(BinOp::FloorDiv),
            "%" => Self::Binary(BinOp::Mod),
            "**" => Self::Binary(BinOp::Pow),
            "@" => Self::Binary(BinOp::MatMul),
            "<<" => Self::Binary(BinOp::LShift),
            ">>" => Self::Binary(BinOp::RShift),
            "&" => Self::Binary(BinOp::BitAnd),
            "|" => Self::Binary(BinOp::BitOr),
            "^" => Self::Binary(BinOp::BitXor),
            "==" => Self::Compare(CmpOp::Eq),
            "!=" => Self::Compare(CmpOp::NotEq),
            "<" => Self::Compare(CmpOp::Lt),
            "<=" => Self::Compare(CmpOp::LtE),
            ">" => Self::Compare(CmpOp::Gt),
            ">=" => Self::Compare(CmpOp::GtE),
            "is" => Self::Compare(CmpOp::Is),
            "is not" => Self::Compare(CmpOp::IsNot),
            "not" => Self::Unary(UnaryOp::Not),
            "unary -" => Self::Unary(UnaryOp::Minus),
            "unary +" => Self::Unary(UnaryOp::Plus),
            "~" => Self::Unary(UnaryOp::Invert),
            "bool" => Self::Truth,
            "index" => Self::Index,
            "in" => Self::Contains,
            "[]" => Self::GetItem,
            "[]=" => Self::SetItem,
            _ => return None,
        })
    }

    fn arity(self) -> usize {
        match self {
            Self::Unary(_) | Self::Truth | Self::Index => 1,
            Self::Binary(_) | Self::Compare(_) | Self::Contains | Self::GetItem => 2,
            Self::SetItem => 3,
        }
    }
}

impl FnLowerer<'_> {
    /// A call of a function of `operator`.
    pub(super) fn operator(&mut self, row: &'static Intrinsic, symbol: &str, args: Args, span: Span) -> Value {
        let Some(operator) = Operator::of(symbol) else {
            self.cx.fault(self.at(span), &format!("Python has no operator `{symbol}`"));
            return Value::Poison;
        };
        if self.no_keywords(row, &args).is_none() {
            return Value::Poison;
        }
        let values: Vec<Value> = args.positional.into_iter().map(|(value, _)| value).collect();
        let types: Vec<_> = values.iter().map(Value::ty).collect();
        match (operator, <[Value; 1]>::try_from(values)) {
            (Operator::Unary(op), Ok([value])) => self.unary(op, value, span),
            (Operator::Truth, Ok([value])) => self.truth_value(value, span),
            (Operator::Index, Ok([value])) if value.ty().scalar().is_some_and(Scalar::is_int) => value,
            (Operator::Index, Ok(_)) => self.no_overload(row, &types, span),
            (operator, Err(values)) if values.len() == operator.arity() => {
                let mut values = values.into_iter();
                let (Some(first), Some(second)) = (values.next(), values.next()) else { return Value::Poison };
                match operator {
                    Operator::Binary(op) => self.binary(op, first, second, span),
                    Operator::Compare(op) => self.compare(op, first, second, span),
                    Operator::Contains => self.compare(CmpOp::In, second, first, span),
                    Operator::GetItem => match self.index_values(second, span) {
                        Some(indices) => self.subscript(first, &indices, span),
                        None => Value::Poison,
                    },
                    Operator::SetItem => {
                        let (Some(indices), Some(value)) = (self.index_values(second, span), values.next()) else {
                            return Value::Poison;
                        };
                        self.store_subscript(first, &indices, value, span);
                        Value::NONE
                    }
                    Operator::Unary(_) | Operator::Truth | Operator::Index => Value::Poison,
                }
            }
            (operator, _) => {
                let (name, arity) = (shown_path(row.path), operator.arity());
                let message = format!("`{name}` takes {}, not {}", count(arity, "argument"), types.len());
                self.error(Code::ArgumentCount, span, message)
            }
        }
    }
}
