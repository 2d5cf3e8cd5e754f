//! The derivatives of operators and math functions, as data: one row per operation.
//!
//! A row has the partial derivatives by the operands, times the adjoint `g` of the result. A partial may use the
//! operands `a`, `b` and `c` and the result `y`; what it uses, the reverse sweep computes again.
//!
//! The quotients of a partial in float32 are [`MathFn::FullDiv`], whose error is at most two units in the last place: on a
//! GPU it is a few instructions, where the rounded quotient has a branch, which also keeps the iterations of an unrolled
//! loop from overlapping. The values of the kernel, which the reverse sweep computes again, have the kernel's quotients, so
//! that its conditions are the same. [`rounded`] restores the rounded quotients where they are needed or cheap.

use weft_artifact::Scalar;

use super::build::{adjoint_type, converted};
use crate::ir::{
    BinaryOp, CompareOp, Const, Expr, ExprId, ExprKind, Function, LocalId, MathFn, Type, UnaryOp, for_each_expr,
};

/// A formula.
#[derive(Debug)]
pub(super) enum Formula {
    /// The adjoint of the result.
    G,
    /// The first operand.
    A,
    /// The second operand.
    B,
    /// The result.
    Y,
    /// A constant.
    K(f64),
    /// An operator of two operands.
    Op(BinaryOp, &'static Formula, &'static Formula),
    /// The negative value.
    Neg(&'static Formula),
    /// A function of one argument.
    Of(MathFn, &'static Formula),
    /// A function of two arguments.
    Of2(MathFn, &'static Formula, &'static Formula),
    /// `left op right ? yes : no`.
    If(CompareOp, &'static [Formula; 4]),
}

/// The derivative of an operation.
#[derive(Debug)]
pub(super) enum Rule {
    /// One formula per operand. Operands without one have the derivative 0.
    Partials(&'static [Formula]),
    /// The derivative is 0, or the operation is not one on floats.
    Zero,
    /// The operation that has none, and what to write instead.
    Refuse(&'static str, &'static str),
}

use BinaryOp::{Add, Div, Mul, Sub};
use Formula::{A, B, G, If, K, Neg, Of, Of2, Op, Y};
use Rule::{Partials, Refuse, Zero};

/// `g / (1 - a²)`, without cancellation.
const OVER_ONE_MINUS_SQUARE: Formula = Op(Div, &G, &Op(Mul, &Op(Sub, &K(1.0), &A), &Op(Add, &K(1.0), &A)));
/// `g / sqrt(1 - a²)`.
const OVER_ROOT: Formula = Op(Div, &G, &Of(MathFn::Sqrt, &Op(Mul, &Op(Sub, &K(1.0), &A), &Op(Add, &K(1.0), &A))));
/// `g * 2/sqrt(pi) * exp(-a²)`.
const OF_ERF: Formula =
    Op(Mul, &Op(Mul, &G, &K(std::f64::consts::FRAC_2_SQRT_PI)), &Of(MathFn::Exp, &Neg(&Op(Mul, &A, &A))));
/// `a / y` and `b / y` of `hypot`, 0 at the origin.
const OF_HYPOT: [Formula; 2] = [
    If(CompareOp::Eq, &[Y, K(0.0), K(0.0), Op(Mul, &G, &Op(Div, &A, &Y))]),
    If(CompareOp::Eq, &[Y, K(0.0), K(0.0), Op(Mul, &G, &Op(Div, &B, &Y))]),
];
/// `hypot(a, b)`.
const RADIUS: Formula = Of2(MathFn::Hypot, &A, &B);
const INSTEAD: &str = "compute it outside the kernel, or with functions that have derivatives";

/// The rows of the unary operators.
pub(super) const fn unary(op: UnaryOp) -> Rule {
    match op {
        UnaryOp::Neg => Partials(&[Neg(&G)]),
        UnaryOp::Abs => {
            Partials(&[If(CompareOp::Gt, &[A, K(0.0), G, If(CompareOp::Lt, &[A, K(0.0), Neg(&G), K(0.0)])])])
        }
        UnaryOp::Not => Zero,
    }
}

/// The rows of the binary operators.
pub(super) const fn binary(op: BinaryOp) -> Rule {
    const HALF: Formula = Op(Mul, &G, &K(0.5));
    match op {
        Add => Partials(&[G, G]),
        Sub => Partials(&[G, Neg(&G)]),
        Mul => Partials(&[Op(Mul, &G, &B), Op(Mul, &G, &A)]),
        Div => Partials(&[Op(Div, &G, &B), Neg(&Op(Mul, &Op(Div, &G, &B), &Y))]),
        BinaryOp::FloorMod => Partials(&[G, Neg(&Op(Mul, &G, &Op(BinaryOp::FloorDiv, &A, &B)))]),
        // The winner has the adjoint; at a tie, each operand has half of it.
        BinaryOp::Min => Partials(&[
            If(CompareOp::Lt, &[A, B, G, If(CompareOp::Eq, &[A, B, HALF, K(0.0)])]),
            If(CompareOp::Lt, &[B, A, G, If(CompareOp::Eq, &[A, B, HALF, K(0.0)])]),
        ]),
        BinaryOp::Max => Partials(&[
            If(CompareOp::Gt, &[A, B, G, If(CompareOp::Eq, &[A, B, HALF, K(0.0)])]),
            If(CompareOp::Gt, &[B, A, G, If(CompareOp::Eq, &[A, B, HALF, K(0.0)])]),
        ]),
        BinaryOp::FloorDiv
        | BinaryOp::AddExact
        | BinaryOp::SubExact
        | BinaryOp::MulExact
        | BinaryOp::DivNonneg
        | BinaryOp::ModNonneg
        | BinaryOp::Pow
        | BinaryOp::Shl
        | BinaryOp::Shr
        | BinaryOp::And
        | BinaryOp::Or
        | BinaryOp::Xor => Zero,
    }
}

/// The rows of the math functions.
pub(super) const fn math(function: MathFn) -> Rule {
    use std::f64::consts::{LN_2, LN_10};
    match function {
        MathFn::Sqrt | MathFn::SqrtRn | MathFn::SqrtRz | MathFn::SqrtRd | MathFn::SqrtRu => {
            // The numerator is not the adjoint, which is often 0: a GPU divides 0 by a slow path.
            Partials(&[Op(Mul, &G, &Op(Div, &K(0.5), &Y))])
        }
        MathFn::Cbrt => Partials(&[Op(Div, &G, &Op(Mul, &K(3.0), &Op(Mul, &Y, &Y)))]),
        MathFn::Exp => Partials(&[Op(Mul, &G, &Y)]),
        MathFn::Exp2 => Partials(&[Op(Mul, &Op(Mul, &G, &Y), &K(LN_2))]),
        MathFn::FastExp2 => Partials(&[Op(Mul, &Op(Mul, &G, &Y), &K(LN_2))]),
        MathFn::Expm1 => Partials(&[Op(Mul, &G, &Of(MathFn::Exp, &A))]),
        MathFn::Log => Partials(&[Op(Div, &G, &A)]),
        MathFn::Log2 | MathFn::FastLog2 => Partials(&[Op(Div, &G, &Op(Mul, &A, &K(LN_2)))]),
        MathFn::Log10 => Partials(&[Op(Div, &G, &Op(Mul, &A, &K(LN_10)))]),
        MathFn::Log1p => Partials(&[Op(Div, &G, &Op(Add, &K(1.0), &A))]),
        MathFn::Sin => Partials(&[Op(Mul, &G, &Of(MathFn::Cos, &A))]),
        MathFn::Cos => Partials(&[Neg(&Op(Mul, &G, &Of(MathFn::Sin, &A)))]),
        MathFn::FastSin => Partials(&[Op(Mul, &G, &Of(MathFn::FastCos, &A))]),
        MathFn::FastCos => Partials(&[Neg(&Op(Mul, &G, &Of(MathFn::FastSin, &A)))]),
        MathFn::Tan => Partials(&[Op(Mul, &G, &Op(Add, &K(1.0), &Op(Mul, &Y, &Y)))]),
        MathFn::Sinh => Partials(&[Op(Mul, &G, &Of(MathFn::Cosh, &A))]),
        MathFn::Cosh => Partials(&[Op(Mul, &G, &Of(MathFn::Sinh, &A))]),
        MathFn::Tanh => Partials(&[Op(Mul, &G, &Op(Mul, &Op(Sub, &K(1.0), &Y), &Op(Add, &K(1.0), &Y)))]),
        MathFn::Asin => Partials(&[OVER_ROOT]),
        MathFn::Acos => Partials(&[Neg(&OVER_ROOT)]),
        MathFn::Atan => Partials(&[Op(Div, &G, &Op(Add, &K(1.0), &Op(Mul, &A, &A)))]),
        MathFn::Asinh => Partials(&[Op(Div, &G, &Of2(MathFn::Hypot, &K(1.0), &A))]),
        MathFn::Acosh => Partials(&[Op(
            Div,
            &G,
            &Op(Mul, &Of(MathFn::Sqrt, &Op(Sub, &A, &K(1.0))), &Of(MathFn::Sqrt, &Op(Add, &A, &K(1.0)))),
        )]),
        MathFn::Atanh => Partials(&[OVER_ONE_MINUS_SQUARE]),
        MathFn::Atan2 => Partials(&[
            If(CompareOp::Eq, &[RADIUS, K(0.0), K(0.0), Op(Mul, &G, &Op(Div, &Op(Div, &B, &RADIUS), &RADIUS))]),
            If(CompareOp::Eq, &[RADIUS, K(0.0), K(0.0), Neg(&Op(Mul, &G, &Op(Div, &Op(Div, &A, &RADIUS), &RADIUS)))]),
        ]),
        MathFn::Hypot => Partials(&OF_HYPOT),
        MathFn::Pow => Partials(&[
            If(
                CompareOp::Eq,
                &[B, K(0.0), K(0.0), Op(Mul, &G, &Op(Mul, &B, &Of2(MathFn::Pow, &A, &Op(Sub, &B, &K(1.0)))))],
            ),
            If(CompareOp::Eq, &[Y, K(0.0), K(0.0), Op(Mul, &G, &Op(Mul, &Y, &Of(MathFn::Log, &A)))]),
        ]),
        MathFn::Erf => Partials(&[OF_ERF]),
        MathFn::Erfc => Partials(&[Neg(&OF_ERF)]),
        MathFn::Fma | MathFn::FmaRn | MathFn::FmaRz | MathFn::FmaRd | MathFn::FmaRu => {
            Partials(&[Op(Mul, &G, &B), Op(Mul, &G, &A), G])
        }
        MathFn::AddRn | MathFn::AddRz | MathFn::AddRd | MathFn::AddRu => Partials(&[G, G]),
        MathFn::MulRn | MathFn::MulRz | MathFn::MulRd | MathFn::MulRu => Partials(&[Op(Mul, &G, &B), Op(Mul, &G, &A)]),
        MathFn::DivRn | MathFn::DivRz | MathFn::DivRd | MathFn::DivRu | MathFn::FastDiv | MathFn::FullDiv => {
            Partials(&[Op(Div, &G, &B), Neg(&Op(Mul, &Op(Div, &G, &B), &Y))])
        }
        MathFn::Fmod | MathFn::Remainder => {
            Partials(&[G, Neg(&Op(Mul, &G, &Of(MathFn::RoundEven, &Op(Div, &Op(Sub, &A, &Y), &B))))])
        }
        MathFn::Copysign => {
            Partials(&[Op(Mul, &G, &Op(Mul, &Of2(MathFn::Copysign, &K(1.0), &A), &Of2(MathFn::Copysign, &K(1.0), &B)))])
        }
        MathFn::Nextafter | MathFn::CanonicalNan | MathFn::ConvertRz | MathFn::ConvertRd | MathFn::ConvertRu => {
            Partials(&[G])
        }
        MathFn::Ldexp => Partials(&[Of2(MathFn::Ldexp, &G, &B)]),
        MathFn::Gamma | MathFn::Lgamma => Refuse("the gamma function", INSTEAD),
        MathFn::FrexpMantissa => Refuse("`frexp`", INSTEAD),
        MathFn::Bits | MathFn::OfBits => Refuse("the bits of a float", INSTEAD),
        MathFn::OfE4M3 | MathFn::ToE4M3 | MathFn::ToE5M2 => Refuse("a float of 8 bits", INSTEAD),
        MathFn::Ceil
        | MathFn::Floor
        | MathFn::RoundEven
        | MathFn::Trunc
        | MathFn::FrexpExponent
        | MathFn::Isfinite
        | MathFn::Isinf
        | MathFn::Isnan
        | MathFn::BytePerm
        | MathFn::FunnelLeft
        | MathFn::FunnelRight
        | MathFn::LeadingZeros
        | MathFn::MulHigh
        | MathFn::Popcount
        | MathFn::ReverseBits
        | MathFn::TrailingZeros => Zero,
    }
}

/// The rule of an expression, with its operands. `None` for a load, a constant, an address or a read of a value.
pub(super) fn of(function: &Function, id: ExprId) -> Option<(Rule, Vec<ExprId>)> {
    match &function.exprs[id].kind {
        ExprKind::Unary(op, a) => Some((unary(*op), vec![*a])),
        ExprKind::Binary(op, a, b) => Some((binary(*op), vec![*a, *b])),
        ExprKind::Math(name, args) => Some((math(*name), args.clone())),
        ExprKind::Convert(a) => Some((Partials(&[G]), vec![*a])),
        ExprKind::Compare(..) | ExprKind::Wrap { .. } => Some((Zero, Vec::new())),
        ExprKind::Select(_, a, b) => Some((Partials(&[G, G]), vec![*a, *b])),
        ExprKind::Const(_)
        | ExprKind::Local(_)
        | ExprKind::Special(_)
        | ExprKind::Load(..)
        | ExprKind::Offset { .. }
        | ExprKind::ByteOffset { .. }
        | ExprKind::SharedBase(_)
        | ExprKind::ConstBase(_)
        | ExprKind::DynamicShared
        | ExprKind::LocalBase(_) => None,
    }
}

/// An operation whose derivative is evaluated.
#[derive(Clone, Copy, Debug)]
pub(super) struct Evaluated {
    /// The expression.
    pub(super) id: ExprId,
    /// The value that it defines.
    pub(super) result: LocalId,
    /// The adjoint of the result.
    pub(super) adjoint: LocalId,
}

/// Builds the partial derivative by an operand, times the adjoint; `None` if it is 0.
pub(super) fn partial(function: &mut Function, of_op: Evaluated, operand: usize) -> Option<ExprId> {
    let (rule, operands) = of(function, of_op.id)?;
    let Partials(partials) = rule else { return None };
    let formula = partials.get(operand)?;
    let to = adjoint_type(function.exprs[*operands.get(operand)?].ty);
    let span = function.exprs[of_op.id].span;
    let of_this = function.exprs[of_op.id].kind.clone();
    let build = |function: &mut Function| Evaluator { function, operands: &operands, of_op }.build(formula);
    let mut value = build(function);
    if let ExprKind::Select(cond, ..) = of_this {
        let zero = function.exprs.push(Expr { kind: ExprKind::Const(Const::Float(0.0)), ty: to, span });
        let cond = function.copy_expr(cond);
        let (yes, no) = if operand == 0 { (value, zero) } else { (zero, value) };
        value = function.exprs.push(Expr { kind: ExprKind::Select(cond, yes, no), ty: to, span });
    }
    Some(converted(function, value, to))
}

/// The values that the partial derivatives by some operands use, except the adjoint.
pub(super) fn needs(function: &mut Function, of_op: Evaluated, operands: &[usize], visit: &mut dyn FnMut(LocalId)) {
    for &operand in operands {
        if let Some(value) = partial(function, of_op, operand) {
            for_each_expr(function, value, &mut |id| {
                if let Some(local) = function.local(id)
                    && local != of_op.adjoint
                {
                    visit(local);
                }
            });
        }
    }
}

/// Rounds the quotients of the partial derivatives in a function.
pub(super) fn rounded(function: &mut Function) {
    for (_, expr) in function.exprs.iter_mut() {
        if let ExprKind::Math(MathFn::FullDiv, args) = &expr.kind
            && let &[a, b] = args.as_slice()
        {
            expr.kind = ExprKind::Binary(Div, a, b);
        }
    }
}

struct Evaluator<'a> {
    function: &'a mut Function,
    operands: &'a [ExprId],
    of_op: Evaluated,
}

impl Evaluator<'_> {
    fn push(&mut self, kind: ExprKind, ty: Type) -> ExprId {
        let span = self.function.exprs[self.of_op.id].span;
        self.function.exprs.push(Expr { kind, ty, span })
    }

    fn read(&mut self, local: LocalId) -> ExprId {
        self.push(ExprKind::Local(local), self.function.locals[local].ty)
    }

    fn operand(&mut self, number: usize) -> ExprId {
        let value = self.function.copy_expr(self.operands[number]);
        self.wide(value)
    }

    /// A 16-bit float as a float32.
    fn wide(&mut self, value: ExprId) -> ExprId {
        let ty = adjoint_type(self.function.exprs[value].ty);
        converted(self.function, value, ty)
    }

    fn build(&mut self, formula: &Formula) -> ExprId {
        let ty = adjoint_type(self.function.exprs[self.of_op.id].ty);
        match formula {
            G => self.read(self.of_op.adjoint),
            A => self.operand(0),
            B => self.operand(1),
            Y => {
                let value = self.read(self.of_op.result);
                self.wide(value)
            }
            K(value) => {
                let rounded = ty.scalar().map_or(*value, |scalar| scalar.nearest(*value));
                self.push(ExprKind::Const(Const::Float(rounded)), ty)
            }
            Op(op, a, b) => {
                let (a, b) = (self.build(a), self.build(b));
                let is_full = *op == Div && ty == Type::Scalar(Scalar::F32);
                let kind =
                    if is_full { ExprKind::Math(MathFn::FullDiv, vec![a, b]) } else { ExprKind::Binary(*op, a, b) };
                self.push(kind, ty)
            }
            Neg(a) => {
                let a = self.build(a);
                self.push(ExprKind::Unary(UnaryOp::Neg, a), ty)
            }
            Of(function, a) => {
                let a = self.build(a);
                self.push(ExprKind::Math(*function, vec![a]), ty)
            }
            Of2(function, a, b) => {
                let (a, b) = (self.build(a), self.build(b));
                self.push(ExprKind::Math(*function, vec![a, b]), ty)
            }
            If(op, [left, right, yes, no]) => {
                let (left, right) = (self.build(left), self.build(right));
                let cond = self.push(ExprKind::Compare(*op, left, right), Type::BOOL);
                let (yes, no) = (self.build(yes), self.build(no));
                self.push(ExprKind::Select(cond, yes, no), ty)
            }
        }
    }
}
