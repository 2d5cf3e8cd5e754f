//! Expressions of rules in C. Each operation that may fail sets the variable `error`.

use weft_artifact::{
    Param, Scalar,
    rules::{RuleExpr, RuleOp},
};

use super::{
    cells,
    types::{self, CParam},
};

/// Writes expressions for the parameters of a kernel.
pub(super) struct Exprs<'a> {
    params: &'a [Param],
    firsts: Vec<usize>,
}

impl<'a> Exprs<'a> {
    pub(super) fn of(params: &'a [Param]) -> Self {
        Self { params, firsts: cells::firsts(params) }
    }

    fn ndim(&self, param: u32) -> i64 {
        match self.params.get(param as usize).and_then(CParam::of) {
            Some(CParam::Array(array, _)) => array.ndim.into(),
            Some(CParam::Number(_)) | None => 0,
        }
    }

    fn first(&self, param: u32) -> usize {
        self.firsts.get(param as usize).copied().unwrap_or(0)
    }

    /// An expression of the type `int64_t`.
    pub(super) fn write(&self, expr: &RuleExpr) -> String {
        match expr {
            RuleExpr::Int(value) if *value == i64::MIN => "INT64_MIN".to_owned(),
            RuleExpr::Int(value) => format!("INT64_C({value})"),
            RuleExpr::Scalar(param) => {
                let Some(of) = self.params.get(*param as usize) else { return "0".to_owned() };
                let name = types::name(of);
                match CParam::of(of) {
                    Some(CParam::Number(number)) if number.real().is_some_and(Scalar::is_unsigned_int) => {
                        format!("weft_rule_unsigned(&error, {name})")
                    }
                    Some(CParam::Number(_) | CParam::Array(..)) | None => format!("(int64_t){name}"),
                }
            }
            RuleExpr::Size(param) => {
                format!("weft_rule_size(&error, cells + {}, {})", self.first(*param) + 1, self.ndim(*param))
            }
            RuleExpr::Extent(param, dim) => {
                let dim = if *dim < 0 { dim + self.ndim(*param) } else { *dim };
                format!("(int64_t)cells[{}]", self.first(*param) as i64 + 1 + dim)
            }
            RuleExpr::Ndim(param) => format!("INT64_C({})", self.ndim(*param)),
            RuleExpr::Apply(op, operands) => {
                let operands: Vec<String> = operands.iter().map(|operand| self.write(operand)).collect();
                operation(*op, &operands)
            }
        }
    }
}

fn operation(op: RuleOp, operands: &[String]) -> String {
    let infix = |symbol: &str| format!("({})", operands.join(&format!(" {symbol} ")));
    let call = |name: &str| format!("weft_rule_{name}(&error, {})", operands.join(", "));
    let total = |name: &str| format!("weft_rule_{name}({})", operands.join(", "));
    match op {
        RuleOp::Neg => call("neg"),
        RuleOp::Abs => call("abs"),
        RuleOp::Add => call("add"),
        RuleOp::Sub => call("sub"),
        RuleOp::Mul => call("mul"),
        RuleOp::FloorDiv => call("floordiv"),
        RuleOp::Mod => call("mod"),
        RuleOp::Shl => call("shl"),
        RuleOp::Shr => call("shr"),
        RuleOp::Min => total("min"),
        RuleOp::Max => total("max"),
        RuleOp::Lt => infix("<"),
        RuleOp::Le => infix("<="),
        RuleOp::Eq => infix("=="),
        RuleOp::Ne => infix("!="),
        RuleOp::Select => match operands {
            [test, yes, no] => format!("({test} != 0 ? {yes} : {no})"),
            _ => "0".to_owned(),
        },
    }
}
