//! `inline_ptx(text, constraint, operand, …)`: inline PTX in a kernel.
//!
//! Constraints are those of CUDA C++'s `asm` ("Inline PTX Assembly in CUDA"): a letter for the register; with `=` a
//! result, whose operand is a type; with `+` a value that the assembly modifies. `%0` is the first operand.

use weft_artifact::{DType, Scalar};

use super::super::{
    expr::Args,
    lowerer::{FnLowerer, wrap_int},
    object::Static,
    ty::Ty,
    value::{ArrayValue, Value},
};
use crate::{
    diagnostic::{Code, Diagnostic},
    ir::{ExprId, InlinePtx, Op, PtxId, Space, Type},
    request::{FunctionDef, PtxBody},
    source::Span,
};

/// A PTX register class, by the letter of its constraint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Register {
    letter: char,
    /// Its description in messages.
    words: &'static str,
    /// The types that it holds without conversion.
    holds: &'static [Scalar],
}

/// The registers that have constraints.
const REGISTERS: &[Register] = &[
    Register { letter: 'h', words: "a 16-bit register", holds: &[Scalar::I16, Scalar::U16, Scalar::F16, Scalar::BF16] },
    Register { letter: 'r', words: "a 32-bit register", holds: &[Scalar::I32, Scalar::U32] },
    Register { letter: 'l', words: "a 64-bit register", holds: &[Scalar::I64, Scalar::U64] },
    Register { letter: 'f', words: "a register for a float32", holds: &[Scalar::F32] },
    Register { letter: 'd', words: "a register for a float64", holds: &[Scalar::F64] },
];

impl Register {
    /// The register class for a type's values, unchanged or widened.
    fn of(scalar: Scalar) -> Option<Self> {
        let narrow = matches!(scalar, Scalar::Bool | Scalar::I8 | Scalar::U8);
        let scalar = if narrow { Scalar::I16 } else { scalar };
        REGISTERS.iter().find(|register| register.holds.contains(&scalar)).copied()
    }
}

/// An operand's constraint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Constraint {
    /// `=r`
    Result(Register),
    /// `+r`
    Changed(Register),
    /// `r`
    Read(Register),
    /// `n`: a literal number in the assembly text.
    Number,
}

/// The meaning of a `%k` in inline PTX.
#[derive(Clone, Debug)]
enum Placeholder {
    Result(usize),
    Operand(usize),
    Text(String),
}

/// The parts of an `inline_ptx` call.
#[derive(Default)]
struct PtxCall {
    shown: Vec<Placeholder>,
    results: Vec<Scalar>,
    /// The operands that are read, each with its constraint: a letter, or the result that shares its register.
    operands: Vec<(ExprId, Type, String)>,
    constraints: Vec<String>,
}

impl PtxCall {
    fn result(&mut self, scalar: Scalar, register: Register) {
        self.shown.push(Placeholder::Result(self.results.len()));
        self.results.push(scalar);
        self.constraints.push(format!("={}", register.letter));
    }
}

impl FnLowerer<'_> {
    pub(super) fn inline_ptx(&mut self, args: Args, span: Span) -> Value {
        let mut pure = false;
        for (name, value, at) in args.keywords {
            match (name.as_str(), value) {
                ("pure", Value::Bool(value)) => pure = value,
                ("pure", _) => {
                    return self.error(Code::NotConstant, at, "`pure` must be a compile-time constant");
                }
                _ => return self.error(Code::ArgumentCount, at, format!("`inline_ptx` has no parameter `{name}`")),
            }
        }
        if !self.cx.ptx {
            let diagnostic =
                Diagnostic::error(Code::NotCallable, span, "`inline_ptx` needs a GPU: a CPU cannot run PTX");
            return self.report(diagnostic.help(
                "write it in Python, too: `@cuda.intrinsic(signature, ptx)` uses the PTX on a GPU and the decorated \
                 function on a CPU",
            ));
        }
        let mut positional = args.positional.into_iter();
        let Some((Value::Static(Static::Str(text)), text_span)) = positional.next() else {
            let message = "the first argument of `inline_ptx` must be the PTX, as a compile-time string";
            return self.error(Code::NotConstant, span, message);
        };
        let mut parts = PtxCall::default();
        while let Some((constraint, at)) = positional.next() {
            let Some((operand, operand_span)) = positional.next() else {
                let message = "`inline_ptx` takes pairs of a constraint and an operand; the last constraint has no \
                    operand";
                return self.error(Code::ArgumentCount, at, message);
            };
            let Some(constraint) = self.constraint(&constraint, at) else { return Value::Poison };
            if self.ptx_operand(constraint, operand, &mut parts, operand_span).is_none() {
                return Value::Poison;
            }
        }
        let Some(text) = self.ptx_text(&text, &parts, text_span) else { return Value::Poison };
        let mut values = self.ptx(text, parts, pure, span);
        if values.len() > 1 { Value::tuple(values) } else { values.pop().unwrap_or(Value::NONE) }
    }

    /// A call of a function that is inline PTX on GPUs. Its arguments have the types of its signature.
    pub(in crate::frontend) fn ptx_function(
        &mut self,
        def: &FunctionDef,
        body: &PtxBody,
        values: Vec<Value>,
        span: Span,
    ) -> Value {
        let returns = def.signatures.first().and_then(|signature| signature.returns.as_ref()).map(Ty::of_arg);
        let (gives, is_tuple) = match returns {
            None => (Vec::new(), true),
            Some(Ty::Object(kind, items)) if kind.is_tuple() => (items, true),
            Some(other) => (vec![other], false),
        };
        let mut parts = PtxCall::default();
        let mut narrow = Vec::new();
        for ty in &gives {
            let Some((scalar, register)) = ty.scalar().and_then(|scalar| Some((scalar, Register::of(scalar)?))) else {
                let message = format!("`{}` is PTX, which cannot return {ty}", def.ast.name);
                return self.error(Code::BadSignature, span, message);
            };
            let held = register.holds.contains(&scalar);
            parts.result(if held { scalar } else { Scalar::I16 }, register);
            narrow.push((!held).then_some(scalar));
        }
        for value in values {
            let scalar = if matches!(value, Value::Array(_)) { Some(Scalar::U64) } else { value.ty().scalar() };
            let register = scalar.and_then(Register::of);
            let Some(register) = register else {
                let message = format!("`{}` is PTX, which has no register for {}", def.ast.name, value.ty());
                return self.error(Code::BadSignature, span, message);
            };
            if self.ptx_operand(Constraint::Read(register), value, &mut parts, span).is_none() {
                return Value::Poison;
            }
        }
        let Some(text) = self.ptx_text(&body.text, &parts, span) else { return Value::Poison };
        let mut given = self.ptx(text, parts, body.pure, span);
        for (value, scalar) in given.iter_mut().zip(narrow) {
            if let Some(scalar) = scalar
                && let Some(expr) = self.number(value, scalar, span)
            {
                *value = Value::Scalar(expr, scalar);
            }
        }
        if is_tuple && !gives.is_empty() { Value::tuple(given) } else { given.pop().unwrap_or(Value::NONE) }
    }

    /// Emits inline PTX with its operands; returns its results.
    fn ptx(&mut self, text: String, parts: PtxCall, pure: bool, span: Span) -> Vec<Value> {
        let PtxCall { results, operands, mut constraints, .. } = parts;
        constraints.extend(operands.iter().map(|(.., constraint)| constraint.clone()));
        let types = results.iter().map(|scalar| Type::Scalar(*scalar)).collect();
        let (args, operands) = operands.into_iter().map(|(expr, ty, _)| (expr, ty)).unzip();
        let text = if self.is_dry() {
            PtxId::new(u32::MAX)
        } else {
            self.cx.module.inline_ptx.push(InlinePtx { text, constraints, operands, results: types, span })
        };
        let locals: Vec<_> = results.iter().map(|scalar| self.b.new_temp(Type::Scalar(*scalar))).collect();
        self.b.op(Op::Ptx { text, pure }, locals.clone(), args, span);
        let values =
            locals.into_iter().zip(&results).map(|(local, scalar)| Value::Scalar(self.b.read(local, span), *scalar));
        values.collect()
    }

    fn constraint(&mut self, value: &Value, span: Span) -> Option<Constraint> {
        let Value::Static(Static::Str(text)) = value else {
            let message = "a constraint must be a compile-time string, such as `\"=r\"`";
            self.error(Code::NotConstant, span, message);
            return None;
        };
        let letters: Vec<char> = text.chars().collect();
        let register = |letter: char| REGISTERS.iter().find(|register| register.letter == letter).copied();
        let found = match letters.as_slice() {
            ['n'] => Some(Constraint::Number),
            ['=', letter] => register(*letter).map(Constraint::Result),
            ['+', letter] => register(*letter).map(Constraint::Changed),
            [letter] => register(*letter).map(Constraint::Read),
            _ => None,
        };
        if found.is_none() {
            let all: Vec<String> =
                REGISTERS.iter().map(|register| format!("`{}` {}", register.letter, register.words)).collect();
            let diagnostic = Diagnostic::error(Code::BadOperand, span, format!("`{text}` is not a PTX constraint"));
            self.report(diagnostic.note(format!("{}; `n` is an integer in the PTX", all.join(", "))).note(
                "write `=` before the letter of a result, `+` before that of an operand that is read and written",
            ));
        }
        found
    }

    /// Adds an operand; reports an unsupported one.
    fn ptx_operand(&mut self, constraint: Constraint, value: Value, parts: &mut PtxCall, span: Span) -> Option<()> {
        match constraint {
            Constraint::Number => {
                let text = match value {
                    Value::Int(value) => value.to_string(),
                    Value::Bool(value) => u8::from(value).to_string(),
                    other @ (Value::Scalar(..)
                    | Value::Complex(..)
                    | Value::Array(_)
                    | Value::Object(..)
                    | Value::Static(_)
                    | Value::Poison) => {
                        let message = format!("`n` takes a compile-time integer, not {}", other.ty());
                        self.error(Code::NotConstant, span, message);
                        return None;
                    }
                };
                parts.shown.push(Placeholder::Text(text));
            }
            Constraint::Result(register) => {
                let ty =
                    if let Value::Static(Static::DType(DType::Number(number))) = &value { number.real() } else { None };
                let Some(scalar) = ty.filter(|scalar| register.holds.contains(scalar)) else {
                    let held: Vec<&str> = register.holds.iter().map(|scalar| scalar.name()).collect();
                    let message = format!(
                        "the operand of `={}` must be the type of the result, {}, not {}",
                        register.letter,
                        held.join(" or "),
                        value.ty(),
                    );
                    self.error(Code::BadOperand, span, message);
                    return None;
                };
                parts.result(scalar, register);
            }
            Constraint::Changed(register) => {
                let (expr, ty) = self.in_register(value, register, span)?;
                let Type::Scalar(scalar) = ty else {
                    self.error(Code::BadOperand, span, "PTX cannot change the address of an array");
                    return None;
                };
                let result = parts.results.len();
                parts.result(scalar, register);
                parts.operands.push((expr, ty, result.to_string()));
            }
            Constraint::Read(register) => {
                let (expr, ty) = self.in_register(value, register, span)?;
                parts.shown.push(Placeholder::Operand(parts.operands.len()));
                parts.operands.push((expr, ty, register.letter.to_string()));
            }
        }
        Some(())
    }

    /// A value in a register: unchanged, or a widened integer; reports others.
    fn in_register(&mut self, value: Value, register: Register, span: Span) -> Option<(ExprId, Type)> {
        let pointer = register.holds.contains(&Scalar::U64);
        if let (Value::Array(array), true) = (&value, pointer) {
            return Some(self.address(array, span));
        }
        let widest = *register.holds.first()?;
        let value = value.strong();
        let to = match &value {
            Value::Int(known) => {
                register.holds.iter().copied().find(|scalar| scalar.is_int() && wrap_int(*known, *scalar) == *known)
            }
            Value::Bool(_) => widest.is_int().then_some(widest),
            Value::Scalar(_, scalar) if register.holds.contains(scalar) => Some(*scalar),
            Value::Scalar(_, scalar)
                if widest.is_int()
                    && (scalar.is_int() || *scalar == Scalar::Bool)
                    && scalar.size_bytes() < widest.size_bytes() =>
            {
                register.holds.iter().copied().find(|held| held.is_unsigned_int() == scalar.is_unsigned_int())
            }
            Value::Scalar(_, scalar) if widest == Scalar::F64 && scalar.is_float() => Some(widest),
            Value::Poison => return None,
            Value::Scalar(..) | Value::Complex(..) | Value::Array(_) | Value::Object(..) | Value::Static(_) => None,
        };
        let converted = to.and_then(|to| Some((self.number(&value, to, span)?, Type::Scalar(to))));
        if converted.is_none() {
            let held: Vec<&str> = register.holds.iter().map(|scalar| scalar.name()).collect();
            let message = format!("`{}` is {}, which cannot hold {}", register.letter, register.words, value.ty());
            let diagnostic = Diagnostic::error(Code::BadOperand, span, message);
            self.report(diagnostic.help(format!("convert the operand: the register holds {}", held.join(", "))));
        }
        converted
    }

    /// The start address of an array, in any address space.
    pub(in crate::frontend) fn address(&mut self, array: &ArrayValue, span: Span) -> (ExprId, Type) {
        let data = self.use_atom(array.data, span);
        let ty = match self.b.ty(data) {
            Type::Ptr(element, _) => Type::Ptr(element, Space::Generic),
            scalar @ Type::Scalar(_) => scalar,
        };
        (self.b.convert(data, ty, span), ty)
    }

    /// The assembly text with LLVM's operand syntax.
    fn ptx_text(&mut self, text: &str, parts: &PtxCall, span: Span) -> Option<String> {
        let mut out = String::new();
        let mut letters = text.chars().peekable();
        while let Some(letter) = letters.next() {
            match (letter, letters.peek()) {
                ('$', _) => out.push_str("$$"),
                ('%', Some('%')) => {
                    letters.next();
                    out.push('%');
                }
                ('%', Some(digit)) if digit.is_ascii_digit() => {
                    let mut number = String::new();
                    while let Some(digit) = letters.next_if(char::is_ascii_digit) {
                        number.push(digit);
                    }
                    let shown = number.parse::<usize>().ok().and_then(|index| parts.shown.get(index));
                    let place = |index: usize| format!("${index}");
                    match shown {
                        Some(Placeholder::Result(index)) => out.push_str(&place(*index)),
                        Some(Placeholder::Operand(index)) => out.push_str(&place(parts.results.len() + index)),
                        Some(Placeholder::Text(text)) => out.push_str(text),
                        None => {
                            let count = parts.shown.len();
                            let message = format!("`%{number}` names no operand: there are {count}, starting at `%0`");
                            let diagnostic = Diagnostic::error(Code::BadOperand, span, message);
                            self.report(diagnostic.help("write a PTX register with two percent signs: `%%tid.x`"));
                            return None;
                        }
                    }
                }
                _ => out.push(letter),
            }
        }
        Some(out)
    }
}
