//! Operations on elements of arrays: the atomic operations of `cuda.atomic`, loads and stores with a cache operator.

use weft_artifact::{Number, Scalar};

use super::super::{
    expr::{Args, Index},
    function::count,
    lowerer::FnLowerer,
    object::{ObjectKind, Static},
    refusals,
    ty::{ArrayTy, Ty, shown_path},
    value::Value,
};
use crate::{
    diagnostic::{Code, Diagnostic},
    intrinsics::{Arg, Intrinsic, Returns, Signature},
    ir::{AtomicOp, ExprId, LocalId, Op, Order, Scope, StmtKind as Ir, Type},
    source::Span,
};

/// The element that an operation accesses.
pub(super) struct Element {
    /// The element's address.
    pub(super) pointer: ExprId,
    /// The array that contains it.
    pub(super) of: ArrayTy,
    /// The arguments after the index.
    pub(super) values: Vec<Value>,
}

impl FnLowerer<'_> {
    /// An atomic operation on an element, with the memory order and scope that the call sets.
    pub(super) fn atomic(&mut self, row: &'static Intrinsic, op: AtomicOp, mut args: Args, span: Span) -> Value {
        let order = self.choice(row, "order", &Order::ALL, Order::name, Order::Relaxed, &mut args);
        let scope = self.choice(row, "scope", &Scope::ALL, Scope::name, Scope::Device, &mut args);
        let (Some(order), Some(scope)) = (order, scope) else { return Value::Poison };
        let Some((element, sig)) = self.element_argument(row, true, args, span) else { return Value::Poison };
        let op = Op::Atomic { op, order, scope };
        let numbers = sig.args.iter().rev().take(element.values.len()).rev();
        let mut operands: Vec<Vec<LocalId>> = Vec::new();
        for (value, arg) in element.values.iter().zip(numbers) {
            let parts = match arg {
                Arg::Scalar(scalar) => self.number(value, *scalar, span).map(|value| vec![value]),
                Arg::Complex(complex) => self.complex(value, *complex, span).map(|(real, imag)| vec![real, imag]),
                Arg::Array(_) | Arg::Records(_) | Arg::Index | Arg::Const(_) | Arg::DType(_) | Arg::Text(_) => None,
            };
            let Some(parts) = parts else { return Value::Poison };
            if let [value] = parts[..]
                && element.values.len() == 1
            {
                // The pointer and the value are each used once, in this order.
                let Some(Number::Real(scalar)) = element.of.dtype.number() else { return Value::Poison };
                let old = self.b.new_temp(Type::Scalar(scalar));
                self.stmt(Ir::Op { op, results: vec![old], args: vec![element.pointer, value] }, span);
                return Value::Scalar(self.b.read(old, span), scalar);
            }
            operands.push(parts.into_iter().map(|part| self.b.temp(part, span)).collect());
        }
        let pointer = self.b.temp(element.pointer, span);
        let step = |this: &mut Self, part: usize, scalar| {
            let base = this.b.read(pointer, span);
            let mut args = vec![this.part_pointer(base, part as i64, span)];
            args.extend(operands.iter().filter_map(|parts| parts.get(part)).map(|value| this.b.read(*value, span)));
            let old = this.b.new_temp(Type::Scalar(scalar));
            this.stmt(Ir::Op { op, results: vec![old], args }, span);
            old
        };
        match element.of.dtype.number() {
            Some(Number::Real(scalar)) => {
                let old = step(self, 0, scalar);
                Value::Scalar(self.b.read(old, span), scalar)
            }
            Some(Number::Complex(complex)) => {
                let [real, imag] = [0, 1].map(|part| step(self, part, complex.part()));
                Value::Complex(self.b.read(real, span), self.b.read(imag, span), complex)
            }
            None => Value::Poison,
        }
    }

    /// Any other operation on an element.
    pub(super) fn on_element(&mut self, row: &'static Intrinsic, op: Op, args: Args, span: Span) -> Value {
        let writes = op.row().memory.writes();
        let Some((element, sig)) = self.element_argument(row, writes, args, span) else { return Value::Poison };
        let mut operands = vec![element.pointer];
        for (value, arg) in element.values.iter().zip(sig.args.iter().skip(2)) {
            let Arg::Scalar(scalar) = arg else { return Value::Poison };
            let Some(value) = self.number(value, *scalar, span) else { return Value::Poison };
            operands.push(value);
        }
        let Returns::Scalar(scalar) = sig.returns else {
            self.stmt(Ir::Op { op, results: Vec::new(), args: operands }, span);
            return Value::NONE;
        };
        let local = self.b.new_temp(Type::Scalar(scalar));
        self.stmt(Ir::Op { op, results: vec![local], args: operands }, span);
        Value::Scalar(self.b.read(local, span), scalar)
    }

    /// The choice of a keyword argument, which must be a compile-time constant; the argument is removed.
    pub(super) fn choice<T: Copy>(
        &mut self,
        row: &Intrinsic,
        keyword: &str,
        choices: &[T],
        name: impl Fn(T) -> &'static str,
        usual: T,
        args: &mut Args,
    ) -> Option<T> {
        let Some(index) = args.keywords.iter().position(|(name, ..)| name == keyword) else { return Some(usual) };
        let (_, value, at) = args.keywords.remove(index);
        if let Value::Static(Static::Str(text)) = &value
            && let Some(found) = choices.iter().find(|choice| name(**choice) == text.as_str())
        {
            return Some(*found);
        }
        if value.ty().is_poison() {
            return None;
        }
        let given =
            if let Value::Static(Static::Str(text)) = &value { format!("\"{text}\"") } else { value.ty().to_string() };
        let message = format!("`{}` has no {keyword} {given}", shown_path(row.path));
        let names: Vec<String> = choices.iter().map(|choice| format!("\"{}\"", name(*choice))).collect();
        let help = format!("write one of {}", names.join(", "));
        self.report(Diagnostic::error(Code::NoMatchingOverload, at, message).help(help));
        None
    }

    /// The element that the first arguments select, and the overload for its array; reports a mismatch. An overload
    /// without an index uses the array's first element.
    pub(super) fn element_argument(
        &mut self,
        row: &'static Intrinsic,
        writes: bool,
        args: Args,
        span: Span,
    ) -> Option<(Element, &'static Signature)> {
        self.no_keywords(row, &args)?;
        let values: Vec<Value> = args.positional.into_iter().map(|(value, _)| value).collect();
        let types: Vec<Ty> = values.iter().map(Value::ty).collect();
        let arity = row.signatures.first().map_or(0, |sig| sig.args.len());
        let mut values = values.into_iter();
        let (Some(array), true) = (values.next(), types.len() == arity) else {
            let message = format!("`{}` takes {}, not {}", shown_path(row.path), count(arity, "argument"), types.len());
            let diagnostic = Diagnostic::error(Code::ArgumentCount, span, message);
            let operands = match (arity, row.path.ends_with("compare_and_swap")) {
                (3, true) => "array, old, value",
                (4, _) => "array, index, old, value",
                _ => "array, index, value",
            };
            self.report(diagnostic.help(format!("write `{}({operands})`", shown_path(row.path))));
            return None;
        };
        let (array, is_pointer) = match array {
            Value::Array(array) => (array, false),
            Value::Object(ObjectKind::Pointer, ref items) if let [Value::Array(place)] = items.as_slice() => {
                (place.clone(), true)
            }
            Value::Scalar(..)
            | Value::Complex(..)
            | Value::Int(_)
            | Value::Bool(_)
            | Value::Object(..)
            | Value::Static(_)
            | Value::Poison => {
                self.no_overload(row, &types, span);
                return None;
            }
        };
        let elements = array.ty.dtype.number().map(Arg::Array);
        let known = elements.and_then(|of| row.signatures.iter().find(|sig| sig.args.first() == Some(&of)));
        let Some(sig) = known else {
            self.no_overload(row, &types, span);
            return None;
        };
        let indexed = sig.args.get(1) == Some(&Arg::Index);
        let takes_complex = matches!(sig.args.last(), Some(Arg::Complex(_)));
        let fits = |ty: &Ty| if takes_complex { ty.number().is_some() } else { ty.scalar().is_some() };
        if !types.iter().skip(1 + usize::from(indexed)).all(fits) {
            self.no_overload(row, &types, span);
            return None;
        }
        if writes && array.ty.readonly {
            self.report(refusals::readonly(Ty::Array(array.ty), span));
            return None;
        }
        if array.ty.packed {
            let (name, align) = (shown_path(row.path), array.ty.dtype.access_align());
            let message = format!(
                "`{name}` takes elements at multiples of {align} bytes, which a packed record does not guarantee"
            );
            let help = "align the record's dtype: `np.dtype(fields, align=True)`";
            self.report(Diagnostic::error(Code::NoMatchingOverload, span, message).help(help));
            return None;
        }
        let indices = if indexed {
            let index = self.truncated(values.next()?, span);
            self.index_values(index, span)?
        } else {
            (0..array.ty.ndim).map(|_| Index::at(self.b.i64(0, span))).collect()
        };
        let pointer = if is_pointer && indexed {
            self.pointed_to(&array, &indices, span)?
        } else {
            self.element(&array, &indices, span)?
        };
        Some((Element { pointer, of: array.ty, values: values.collect() }, sig))
    }

    /// As in Numba, float indices of atomic operations are truncated.
    fn truncated(&mut self, index: Value, span: Span) -> Value {
        match index {
            Value::Object(ObjectKind::Tuple, items) => {
                Value::Object(ObjectKind::Tuple, items.into_iter().map(|item| self.truncated(item, span)).collect())
            }
            Value::Scalar(_, scalar) if scalar.is_float() => {
                self.number(&index, Scalar::I64, span).map_or(Value::Poison, |expr| Value::Scalar(expr, Scalar::I64))
            }
            other @ (Value::Scalar(..)
            | Value::Complex(..)
            | Value::Int(_)
            | Value::Bool(_)
            | Value::Array(_)
            | Value::Object(..)
            | Value::Static(_)
            | Value::Poison) => other,
        }
    }
}
