//! Queries about types, which are evaluated at compile time: `isinstance`, `type`, `hasattr`, `getattr`, `callable`.

use weft_artifact::{DType, Number, Scalar};

use super::super::{
    expr::{Args, Text},
    function::count,
    lowerer::FnLowerer,
    object::{ObjectKind, Static},
    promote,
    ty::{Ty, shown_path},
    value::{LibraryName, Value},
};
use crate::{diagnostic::Code, intrinsics::Intrinsic, source::Span};

impl FnLowerer<'_> {
    /// `isinstance(x, T)`, where T may be a tuple of types.
    pub(super) fn isinstance(&mut self, row: &Intrinsic, args: Args, span: Span) -> Value {
        let Some([value, class]) = self.exactly(row, args, span) else { return Value::Poison };
        if let Value::Object(ObjectKind::Optional, items) = &value
            && let [given, value] = items.as_slice()
        {
            // `None` is not an instance of any class that kernels support.
            return match is_a(value, &class) {
                Some(true) => given.clone(),
                Some(false) => Value::Bool(false),
                None => self.no_overload(row, &[value.ty(), class.ty()], span),
            };
        }
        match is_a(&value, &class) {
            Some(known) => Value::Bool(known),
            None => self.no_overload(row, &[value.ty(), class.ty()], span),
        }
    }

    /// `type(x)`.
    pub(super) fn type_of(&mut self, row: &Intrinsic, args: Args, span: Span) -> Value {
        let Some([value]) = self.exactly(row, args, span) else { return Value::Poison };
        let ty = value.ty();
        let class = match (&ty, ty.number()) {
            (_, Some(number)) => return Value::Static(Static::DType(number.into())),
            (Ty::Array(_), _) => "numpy.ndarray",
            (Ty::Object(kind, _), _) if kind.is_tuple() => "builtins.tuple",
            (Ty::Static(Static::Str(_)), _) => "builtins.str",
            (_, None) => return self.no_overload(row, &[ty], span),
        };
        Value::Static(Static::Known(LibraryName::of(class.to_owned())))
    }

    /// `hasattr(x, "name")`.
    pub(super) fn hasattr(&mut self, row: &Intrinsic, args: Args, span: Span) -> Value {
        let Some([value, name]) = self.exactly(row, args, span) else { return Value::Poison };
        let Value::Static(Static::Str(name)) = name else {
            return self.no_overload(row, &[value.ty(), name.ty()], span);
        };
        let method = Self::method_row(&value, &name).is_some();
        Value::Bool(method || self.attribute_if_there(value, &name, span).is_some())
    }

    /// `getattr(x, "name")` and `getattr(x, "name", default)`.
    pub(super) fn getattr(&mut self, row: &Intrinsic, args: Args, span: Span) -> Value {
        if self.no_keywords(row, &args).is_none() {
            return Value::Poison;
        }
        let given = args.positional.len();
        let mut values = args.positional.into_iter().map(|(value, _)| value);
        match (values.next(), values.next(), values.next(), values.next()) {
            (Some(value), Some(Value::Static(Static::Str(name))), None, None) => self.attribute_of(value, &name, span),
            (Some(value), Some(Value::Static(Static::Str(name))), Some(default), None) => {
                self.attribute_if_there(value, &name, span).unwrap_or(default)
            }
            (Some(value), Some(name), _, None) => self.no_overload(row, &[value.ty(), name.ty()], span),
            _ => {
                let message = format!("`{}` takes {}, not {given}", shown_path(row.path), count(2, "argument"));
                self.error(Code::ArgumentCount, span, message)
            }
        }
    }

    /// The value of an attribute; `None` if there is none.
    fn attribute_if_there(&mut self, value: Value, name: &str, span: Span) -> Option<Value> {
        let before = self.cx.diagnostics.len();
        let found = self.attribute_of(value, name, span);
        let missing = self.cx.diagnostics.len() > before || matches!(found, Value::Poison);
        self.cx.diagnostics.truncate(before);
        (!missing).then_some(found)
    }

    /// `callable(x)`.
    pub(super) fn callable(&mut self, row: &Intrinsic, args: Args, span: Span) -> Value {
        let Some([value]) = self.exactly(row, args, span) else { return Value::Poison };
        Value::Bool(matches!(
            value,
            Value::Static(
                Static::Known(LibraryName::Row(_)) | Static::DType(_) | Static::Function(_) | Static::Overloaded(_)
            )
        ))
    }

    /// `ord("a")`.
    pub(super) fn ord(&mut self, row: &Intrinsic, args: Args, span: Span) -> Value {
        let Some([value]) = self.exactly(row, args, span) else { return Value::Poison };
        let Some(text) = Text::of(&value) else { return self.no_overload(row, &[value.ty()], span) };
        let message = "`ord` takes a string of one character";
        self.code_of(&text, span).unwrap_or_else(|| self.error(Code::NoMatchingOverload, span, message))
    }
}

/// Whether a value is an instance of a class; `None` if the second operand is not a class.
///
/// Numba's rule: a Python class includes all of NumPy's number types of its kind. Python's rule: a bool is an int.
fn is_a(value: &Value, class: &Value) -> Option<bool> {
    let number = value.ty().number();
    let real = number.and_then(Number::real);
    let complex = number.is_some_and(Number::is_complex);
    let known = match (class, class.as_tuple()) {
        (_, Some(classes)) => {
            let each: Option<Vec<bool>> = classes.iter().map(|class| is_a(value, class)).collect();
            return Some(each?.contains(&true));
        }
        (Value::Static(Static::DType(of)), None) => return Some(number.map(DType::from) == Some(*of)),
        (Value::Static(Static::Class(class, _)), None) => {
            let own = match value {
                Value::Object(ObjectKind::Struct(own) | ObjectKind::Enum(own), _) => own == class,
                Value::Object(..)
                | Value::Scalar(..)
                | Value::Complex(..)
                | Value::Int(_)
                | Value::Bool(_)
                | Value::Array(_)
                | Value::Static(_)
                | Value::Poison => false,
            };
            return Some(own);
        }
        (Value::Static(Static::Known(known)), None) => known,
        (_, None) => return None,
    };
    Some(match known.path() {
        "builtins.object" => true,
        "builtins.int" => real.is_some_and(promote::is_integral),
        "builtins.float" | "numpy.floating" => real.is_some_and(Scalar::is_float),
        "builtins.complex" | "numpy.complexfloating" => complex,
        "builtins.bool" => real == Some(Scalar::Bool),
        "builtins.str" => Text::of(value).is_some_and(|text| text.is_wide()),
        "builtins.bytes" => Text::of(value).is_some_and(|text| !text.is_wide()),
        "builtins.tuple" => value.as_tuple().is_some(),
        "numpy.ndarray" => matches!(value, Value::Array(_)),
        "numpy.generic" => number.is_some(),
        "numpy.number" => number.is_some_and(|number| number != Number::BOOL),
        "numpy.integer" => real.is_some_and(Scalar::is_int),
        "numpy.signedinteger" => real.is_some_and(Scalar::is_signed_int),
        "numpy.unsignedinteger" => real.is_some_and(Scalar::is_unsigned_int),
        "numpy.inexact" => complex || real.is_some_and(Scalar::is_float),
        _ => return None,
    })
}
