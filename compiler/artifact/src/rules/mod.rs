//! Launch rules and output rules: integer expressions of a launch's arguments.
//!
//! A launch rule computes the grid and the block of a launch, an output rule the shape of an array that the caller of a
//! kernel does not pass. Both are translated from Python once (`weft_compiler::rules`), are part of an exported kernel,
//! and are evaluated without Python. Their text form is in [`text`].
//!
//! Integers have 64 bits. Where Python's integers would be larger, the evaluation is an error: it never wraps.

mod check;
mod error;
mod launch;
mod output;
mod text;

pub use check::bind_outputs;
pub use error::RuleError;
pub use launch::{LaunchLimit, LaunchRule, LaunchSize};
pub use output::{OutputDType, OutputRule, OutputShape};
pub use text::BadRuleText;

/// An integer expression of a launch's arguments.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum RuleExpr {
    /// A constant.
    Int(i64),
    /// The value of an integer argument, by the parameter's number; a bool is 0 or 1.
    Scalar(u32),
    /// The number of elements of an array argument.
    Size(u32),
    /// An extent of an array argument. A negative dimension counts from the last.
    Extent(u32, i64),
    /// The number of dimensions of an array argument.
    Ndim(u32),
    /// An operation, with as many operands as [`RuleOp::operands`] says.
    Apply(RuleOp, Vec<RuleExpr>),
}

/// An operation on integers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RuleOp {
    /// `-a`.
    Neg,
    /// `abs(a)`.
    Abs,
    /// `a + b`.
    Add,
    /// `a - b`.
    Sub,
    /// `a * b`.
    Mul,
    /// `a // b`, rounded down as in Python.
    FloorDiv,
    /// `a % b`, with the sign of `b` as in Python.
    Mod,
    /// `a << b`.
    Shl,
    /// `a >> b`.
    Shr,
    /// `min(a, b)`.
    Min,
    /// `max(a, b)`.
    Max,
    /// `a < b`: 1 or 0.
    Lt,
    /// `a <= b`: 1 or 0.
    Le,
    /// `a == b`: 1 or 0.
    Eq,
    /// `a != b`: 1 or 0.
    Ne,
    /// `b if a else c`: only one of `b` and `c` is evaluated.
    Select,
}

impl RuleOp {
    /// Every operation.
    pub const ALL: [Self; 16] = [
        Self::Neg,
        Self::Abs,
        Self::Add,
        Self::Sub,
        Self::Mul,
        Self::FloorDiv,
        Self::Mod,
        Self::Shl,
        Self::Shr,
        Self::Min,
        Self::Max,
        Self::Lt,
        Self::Le,
        Self::Eq,
        Self::Ne,
        Self::Select,
    ];

    /// The name in the text form.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Neg => "neg",
            Self::Abs => "abs",
            Self::Add => "+",
            Self::Sub => "-",
            Self::Mul => "*",
            Self::FloorDiv => "//",
            Self::Mod => "%",
            Self::Shl => "<<",
            Self::Shr => ">>",
            Self::Min => "min",
            Self::Max => "max",
            Self::Lt => "<",
            Self::Le => "<=",
            Self::Eq => "==",
            Self::Ne => "!=",
            Self::Select => "if",
        }
    }

    /// The number of operands.
    pub const fn operands(self) -> usize {
        match self {
            Self::Neg | Self::Abs => 1,
            Self::Add
            | Self::Sub
            | Self::Mul
            | Self::FloorDiv
            | Self::Mod
            | Self::Shl
            | Self::Shr
            | Self::Min
            | Self::Max
            | Self::Lt
            | Self::Le
            | Self::Eq
            | Self::Ne => 2,
            Self::Select => 3,
        }
    }

    /// The result of an operation with two operands, or with one, which is then both.
    fn apply(self, a: i64, b: i64) -> Result<i64, RuleError> {
        let shift = || u32::try_from(b).map_err(|_| RuleError::NegativeShift);
        let result = match self {
            Self::Neg => a.checked_neg(),
            Self::Abs => a.checked_abs(),
            Self::Add => a.checked_add(b),
            Self::Sub => a.checked_sub(b),
            Self::Mul => a.checked_mul(b),
            Self::FloorDiv | Self::Mod if b == 0 => return Err(RuleError::ZeroDivisor),
            Self::FloorDiv => a.checked_div_euclid(b).and_then(|_| {
                let quotient = a / b;
                let rounds_up = a % b != 0 && (a < 0) != (b < 0);
                quotient.checked_sub(i64::from(rounds_up))
            }),
            Self::Mod => {
                let rest = a.checked_rem(b).unwrap_or(0);
                Some(if rest != 0 && (rest < 0) != (b < 0) { rest + b } else { rest })
            }
            Self::Shl => match 1_i64.checked_shl(shift()?).filter(|factor| *factor > 0) {
                Some(factor) => a.checked_mul(factor),
                None => (a == 0).then_some(0),
            },
            Self::Shr => Some(a >> shift()?.min(63)),
            Self::Min => Some(a.min(b)),
            Self::Max => Some(a.max(b)),
            Self::Lt => Some(i64::from(a < b)),
            Self::Le => Some(i64::from(a <= b)),
            Self::Eq => Some(i64::from(a == b)),
            Self::Ne | Self::Select => Some(i64::from(a != b)),
        };
        result.ok_or(RuleError::Overflow)
    }
}

/// The arguments of a launch, as far as rules use them, by the parameter's number.
pub trait RuleArgs {
    /// The extents of an array; `None` for other arguments.
    fn shape(&self, param: usize) -> Option<&[i64]>;

    /// The value of an integer or a bool; `None` for other arguments.
    fn integer(&self, param: usize) -> Option<i64>;
}

/// An argument of a launch for [`RuleArgs`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RuleArg {
    /// An array of these extents.
    Array(Vec<i64>),
    /// An integer, or a bool as 0 or 1.
    Int(i64),
    /// Any other argument.
    Other,
}

impl RuleArgs for [RuleArg] {
    fn shape(&self, param: usize) -> Option<&[i64]> {
        match self.get(param)? {
            RuleArg::Array(shape) => Some(shape),
            RuleArg::Int(_) | RuleArg::Other => None,
        }
    }

    fn integer(&self, param: usize) -> Option<i64> {
        match self.get(param)? {
            RuleArg::Int(value) => Some(*value),
            RuleArg::Array(_) | RuleArg::Other => None,
        }
    }
}

impl RuleExpr {
    /// The value for some arguments.
    ///
    /// # Errors
    ///
    /// An argument does not have what the expression uses; a division by zero; a value beyond 64 bits.
    pub fn evaluate<A: RuleArgs + ?Sized>(&self, args: &A) -> Result<i64, RuleError> {
        let shape = |param: u32| args.shape(param as usize).ok_or(RuleError::NoArray { param });
        match self {
            Self::Int(value) => Ok(*value),
            Self::Scalar(param) => args.integer(*param as usize).ok_or(RuleError::NoInteger { param: *param }),
            Self::Size(param) => {
                let sizes = shape(*param)?.iter();
                // The size of an empty array is 0, whatever its other extents are.
                if sizes.clone().any(|extent| *extent == 0) {
                    return Ok(0);
                }
                sizes.copied().try_fold(1, i64::checked_mul).ok_or(RuleError::Overflow)
            }
            Self::Extent(param, dim) => {
                let shape = shape(*param)?;
                let ndim = shape.len();
                let index = if *dim < 0 { dim.checked_add(ndim as i64) } else { Some(*dim) };
                let extent = index.and_then(|index| shape.get(usize::try_from(index).ok()?));
                extent.copied().ok_or(RuleError::NoDimension { param: *param, dim: *dim, ndim })
            }
            Self::Ndim(param) => Ok(shape(*param)?.len() as i64),
            Self::Apply(op, operands) => match operands.as_slice() {
                [test, yes, no] => (if test.evaluate(args)? != 0 { yes } else { no }).evaluate(args),
                [a, b] => op.apply(a.evaluate(args)?, b.evaluate(args)?),
                [a] => a.evaluate(args).and_then(|a| op.apply(a, a)),
                _ => Err(RuleError::Overflow),
            },
        }
    }

    /// Visits the expression and its operands.
    pub fn for_each(&self, visit: &mut dyn FnMut(&Self)) {
        visit(self);
        match self {
            Self::Apply(_, operands) => operands.iter().for_each(|operand| operand.for_each(visit)),
            Self::Int(_) | Self::Scalar(_) | Self::Size(_) | Self::Extent(..) | Self::Ndim(_) => {}
        }
    }

    /// The value, if no argument changes it.
    pub fn constant(&self) -> Option<i64> {
        let mut is_constant = true;
        self.for_each(&mut |expr| {
            is_constant &= match expr {
                Self::Int(_) | Self::Apply(..) => true,
                Self::Scalar(_) | Self::Size(_) | Self::Extent(..) | Self::Ndim(_) => false,
            };
        });
        if is_constant { self.evaluate(&[] as &[RuleArg]).ok() } else { None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn apply(op: RuleOp, operands: &[i64]) -> Result<i64, RuleError> {
        let operands = operands.iter().map(|value| RuleExpr::Int(*value)).collect();
        RuleExpr::Apply(op, operands).evaluate(&[] as &[RuleArg])
    }

    #[test]
    fn division_is_pythons() {
        for (a, b, quotient, rest) in [(7, 2, 3, 1), (-7, 2, -4, 1), (7, -2, -4, -1), (-7, -2, 3, -1), (6, -3, -2, 0)] {
            assert_eq!(apply(RuleOp::FloorDiv, &[a, b]), Ok(quotient), "{a} // {b}");
            assert_eq!(apply(RuleOp::Mod, &[a, b]), Ok(rest), "{a} % {b}");
        }
        assert_eq!(apply(RuleOp::FloorDiv, &[1, 0]), Err(RuleError::ZeroDivisor));
        assert_eq!(apply(RuleOp::FloorDiv, &[i64::MIN, -1]), Err(RuleError::Overflow));
        assert_eq!(apply(RuleOp::Mod, &[i64::MIN, -1]), Ok(0));
    }

    #[test]
    fn values_beyond_64_bits_are_errors() {
        assert_eq!(apply(RuleOp::Add, &[i64::MAX, 1]), Err(RuleError::Overflow));
        assert_eq!(apply(RuleOp::Mul, &[1 << 40, 1 << 40]), Err(RuleError::Overflow));
        assert_eq!(apply(RuleOp::Shl, &[1, 62]), Ok(1 << 62));
        assert_eq!(apply(RuleOp::Shl, &[1, 63]), Err(RuleError::Overflow));
        assert_eq!(apply(RuleOp::Shl, &[0, 200]), Ok(0));
        assert_eq!(apply(RuleOp::Shr, &[-1, 200]), Ok(-1));
        assert_eq!(apply(RuleOp::Shr, &[1, -1]), Err(RuleError::NegativeShift));
    }

    #[test]
    fn only_the_selected_operand_is_evaluated() {
        let zero = RuleExpr::Apply(RuleOp::FloorDiv, vec![RuleExpr::Int(1), RuleExpr::Int(0)]);
        let select = |test| RuleExpr::Apply(RuleOp::Select, vec![RuleExpr::Int(test), RuleExpr::Int(5), zero.clone()]);
        assert_eq!(select(1).evaluate(&[] as &[RuleArg]), Ok(5));
        assert_eq!(select(0).evaluate(&[] as &[RuleArg]), Err(RuleError::ZeroDivisor));
    }

    #[test]
    fn arguments_are_read() {
        let args = [RuleArg::Array(vec![3, 4]), RuleArg::Int(9), RuleArg::Array(vec![0, i64::MAX, 2])];
        let value = |expr: RuleExpr| expr.evaluate(&args[..]);
        assert_eq!(value(RuleExpr::Size(0)), Ok(12));
        assert_eq!(value(RuleExpr::Size(2)), Ok(0));
        assert_eq!(value(RuleExpr::Extent(0, -1)), Ok(4));
        assert_eq!(value(RuleExpr::Extent(0, 2)), Err(RuleError::NoDimension { param: 0, dim: 2, ndim: 2 }));
        assert_eq!(value(RuleExpr::Ndim(0)), Ok(2));
        assert_eq!(value(RuleExpr::Scalar(1)), Ok(9));
        assert_eq!(value(RuleExpr::Scalar(0)), Err(RuleError::NoInteger { param: 0 }));
        assert_eq!(value(RuleExpr::Size(1)), Err(RuleError::NoArray { param: 1 }));
    }
}
