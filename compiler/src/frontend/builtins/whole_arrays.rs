//! Functions of whole arrays with NumPy's parameters: `axis`, `dtype`, `out`, `keepdims`, `initial`, `ddof`.
//!
//! An array result is stored in the argument `out`, since a kernel cannot create arrays with run-time extents. With an
//! axis, the function is called for each row of a view that has the axis as its last dimension.

use std::sync::Arc;

use weft_artifact::{DType, Layout, Number, Scalar};

use super::super::{
    expr::{Args, Index},
    lowerer::FnLowerer,
    object::Static,
    prelude, refusals,
    ty::{ArrayTy, Ty, shown_path},
    value::{ArrayValue, Atom, LibraryName, Value},
};
use crate::{
    diagnostic::{Code, Diagnostic},
    intrinsics::{Intrinsic, More, Returns, Whole},
    request::FunctionDef,
    source::Span,
};

/// The arguments after the array in a call of an array function.
#[derive(Default)]
pub(super) struct ArrayFunctionArgs {
    pub(super) axis: Option<usize>,
    dtype: Option<Number>,
    pub(super) out: Option<ArrayValue>,
    initial: Option<Value>,
    ddof: Option<Value>,
}

impl ArrayFunctionArgs {
    /// Whether it has arguments other than the array for the results.
    pub(super) fn is_general(&self) -> bool {
        self.dtype.is_some() || self.initial.is_some() || self.ddof.is_some()
    }
}

impl FnLowerer<'_> {
    /// A function of a whole array, or along an axis of it.
    pub(super) fn whole(&mut self, row: &'static Intrinsic, of: &'static Whole, args: Args, span: Span) -> Value {
        let running = matches!(of.more, More::Running(_));
        if args.positional.len() <= 1 && args.keywords.is_empty() && !running {
            return self.own_function(row, of.function, args, span);
        }
        let Some((array, given)) = self.given(row, of, args, span) else { return Value::Poison };
        let Some(sig) = self.choose_overload(row, &[Value::Array(array.clone())], span) else { return Value::Poison };
        let general = given.is_general() || running;
        let name = if general { of.general } else { of.function };
        let Some(function) = prelude::function(name) else {
            self.cx.fault(self.at(span), &format!("the prelude lacks `{name}`"));
            return Value::Poison;
        };
        let result = match (given.dtype, sig.returns) {
            (Some(Number::Complex(to)), Returns::Scalar(_)) if matches!(of.more, More::Spread) => {
                Returns::Scalar(to.part())
            }
            (Some(Number::Real(to)), _) => Returns::Scalar(to),
            (Some(Number::Complex(to)), _) => Returns::Complex(to),
            (None, returns) => returns,
        };
        let Some(more) = self.more(&array, of, &given, result, general, span) else { return Value::Poison };
        let Some(out) = given.out else {
            if running || given.axis.is_some_and(|_| array.ty.ndim > 1) {
                return self.needs_out(row, given.axis, span);
            }
            let values = std::iter::once(Value::Array(array)).chain(more).collect();
            return self.own_result(row, &function, values, result, span);
        };
        let result = Value::Array(out.clone());
        match self.stored_results(row, &function, array, given.axis, out, running, more, span) {
            Some(()) => result,
            None => Value::Poison,
        }
    }

    /// Stores the results of a function, of a whole array or along an axis, in another array; `None` after an error.
    #[expect(clippy::too_many_arguments, reason = "all parts of one call")]
    pub(super) fn stored_results(
        &mut self,
        row: &'static Intrinsic,
        function: &Arc<FunctionDef>,
        array: ArrayValue,
        axis: Option<usize>,
        out: ArrayValue,
        running: bool,
        more: Vec<Value>,
        span: Span,
    ) -> Option<()> {
        if out.ty.readonly {
            self.report(refusals::readonly(Ty::Array(out.ty), span));
            return None;
        }
        self.holds_results(&array, axis, &out, running, span)?;
        if self.is_dry() {
            return Some(());
        }
        let types = [Ty::Array(array.ty), Ty::Array(out.ty)];
        if self.store_into(function, array, axis, out, running, more, span).is_err() {
            self.no_overload(row, &types, span);
            return None;
        }
        Some(())
    }

    /// Ends the thread unless the array for results has their shape: that of the array without the axis, or with extent
    /// 1 for the axis.
    fn holds_results(
        &mut self,
        array: &ArrayValue,
        axis: Option<usize>,
        out: &ArrayValue,
        running: bool,
        span: Span,
    ) -> Option<()> {
        let along = axis.filter(|_| array.ty.ndim > 1);
        if running && along.is_some() && out.ty.ndim != array.ty.ndim {
            let message = format!("the result type {} does not match {}", Ty::Array(array.ty), Ty::Array(out.ty));
            self.error(Code::NoMatchingOverload, span, message);
            return None;
        }
        let shape = match along {
            Some(_) if running => array.shape.clone(),
            None if running => vec![self.product_of(&array.shape, span)],
            None => vec![Atom::Int(1); out.ty.ndim],
            Some(axis) if out.ty.ndim == array.ty.ndim => {
                let with = |(dim, extent): (usize, &Atom)| if dim == axis { Atom::Int(1) } else { *extent };
                array.shape.iter().enumerate().map(with).collect()
            }
            Some(axis) => {
                let without = |(dim, extent): (usize, &Atom)| (dim != axis).then_some(*extent);
                array.shape.iter().enumerate().filter_map(without).collect()
            }
        };
        self.end_unless_alike(&out.shape, &shape, span)
    }

    #[expect(clippy::too_many_arguments, reason = "all parts of one call")]
    fn store_into(
        &mut self,
        function: &Arc<FunctionDef>,
        array: ArrayValue,
        axis: Option<usize>,
        out: ArrayValue,
        running: bool,
        more: Vec<Value>,
        span: Span,
    ) -> Result<(), Diagnostic> {
        let along = axis.filter(|_| array.ty.ndim > 1);
        let (array, out) = match along {
            None => (array, out),
            Some(axis) if running => {
                let out = if out.ty.ndim == array.ty.ndim { self.with_last(&out, axis, span) } else { out };
                (self.with_last(&array, axis, span), out)
            }
            Some(axis) => (self.with_last(&array, axis, span), out),
        };
        let (array, out) = (Value::Array(array), Value::Array(out));
        let of = Value::Static(Static::Function(Arc::clone(function)));
        let (name, first) = match (along.is_some(), running) {
            (false, true) => {
                return self.call_own(function, [array, out].into_iter().chain(more).collect(), span).map(drop);
            }
            (false, false) => ("all_into", vec![of, array, out]),
            (true, false) => ("rows_into", vec![of, array, out]),
            (true, true) => ("rows_along", vec![of, array, out]),
        };
        let Some(each) = prelude::function(name) else { return Ok(()) };
        self.call_own(&each, first.into_iter().chain(more).collect(), span).map(drop)
    }

    /// The arguments that the prelude's function takes after the array.
    fn more(
        &mut self,
        array: &ArrayValue,
        of: &Whole,
        given: &ArrayFunctionArgs,
        result: Returns,
        general: bool,
        span: Span,
    ) -> Option<Vec<Value>> {
        if !general {
            return Some(Vec::new());
        }
        // 16-bit floats are summed as float32.
        let to = match result {
            Returns::Scalar(Scalar::F16 | Scalar::BF16) => Number::F32,
            Returns::Scalar(scalar) => Number::Real(scalar),
            Returns::Complex(complex) => Number::Complex(complex),
            Returns::Nothing | Returns::Tuple(_) | Returns::Array(_) => return None,
        };
        let elements = array.ty.dtype.number()?;
        let (to, start) = match of.more {
            More::None => return Some(Vec::new()),
            More::Start(number) | More::Running(number) => (to, Value::Int(i128::from(number))),
            More::Best => (to, Value::Int(0)),
            // The deviations of complex numbers are complex, although their squares are not.
            More::Spread if given.dtype.is_none() && elements.is_complex() => (elements, Value::Int(0)),
            More::Spread | More::Mean => (given.dtype.unwrap_or(to), Value::Int(0)),
        };
        let start = given.initial.clone().unwrap_or(start);
        let start = match to {
            Number::Real(scalar) => Value::Scalar(self.number(&start, scalar, span)?, scalar),
            Number::Complex(complex) => {
                let (real, imag) = self.complex(&start, complex, span)?;
                Value::Complex(real, imag, complex)
            }
        };
        let mut more = vec![start];
        if matches!(of.more, More::Spread) {
            more.push(given.ddof.clone().unwrap_or(Value::Int(0)));
        }
        Some(more)
    }

    /// The array and the other arguments of a call.
    pub(super) fn given(
        &mut self,
        row: &Intrinsic,
        of: &Whole,
        args: Args,
        span: Span,
    ) -> Option<(ArrayValue, ArrayFunctionArgs)> {
        let name = shown_path(row.path);
        let mut positional = args.positional.into_iter();
        let first = positional.next().map(|(value, _)| value);
        let Some(Value::Array(array)) = first else {
            let types: Vec<Ty> = first.iter().map(Value::ty).collect();
            self.no_overload(row, &types, span);
            return None;
        };
        let mut named: Vec<(String, Value, Span)> = Vec::new();
        let mut params = of.params.iter();
        for (value, at) in positional {
            let Some(param) = params.next() else {
                let message = format!("`{name}` takes at most {} arguments", of.params.len() + 1);
                self.error(Code::ArgumentCount, at, message);
                return None;
            };
            named.push(((*param).to_owned(), value, at));
        }
        named.extend(args.keywords);
        let mut given = ArrayFunctionArgs::default();
        for (number, (param, value, at)) in named.iter().enumerate() {
            if named.iter().take(number).any(|(other, ..)| other == param) {
                self.error(Code::ArgumentCount, *at, format!("`{name}` got multiple values for `{param}`"));
                return None;
            }
            if !of.params.contains(&param.as_str()) {
                self.error(Code::ArgumentCount, *at, format!("`{name}` has no parameter `{param}`"));
                return None;
            }
            if matches!(value, Value::Static(Static::None)) {
                continue;
            }
            self.give(row, &array, &mut given, param, value, *at)?;
        }
        if named.iter().any(|(param, value, _)| param == "keepdims" && matches!(value, Value::Bool(true)))
            && given.out.is_none()
        {
            self.needs_out(row, given.axis, span);
            return None;
        }
        Some((array, given))
    }

    /// Adds one argument after the array.
    fn give(
        &mut self,
        row: &Intrinsic,
        array: &ArrayValue,
        given: &mut ArrayFunctionArgs,
        param: &str,
        value: &Value,
        at: Span,
    ) -> Option<()> {
        let ndim = array.ty.ndim as i128;
        match (param, value) {
            ("axis", Value::Int(axis)) if (-ndim..ndim).contains(axis) => {
                given.axis = usize::try_from(axis.rem_euclid(ndim)).ok();
            }
            ("axis", Value::Int(axis)) => {
                let message = format!("{} has no axis {axis}", Ty::Array(array.ty));
                self.error(Code::BadIndex, at, message);
                return None;
            }
            ("axis", other) if other.ty().scalar().is_some_and(Scalar::is_int) => {
                let message = "an axis must be a compile-time constant";
                let diagnostic = Diagnostic::error(Code::NotConstant, at, message);
                self.report(diagnostic.help("write a literal, a global or a closure variable that is an int"));
                return None;
            }
            ("dtype", Value::Static(Static::DType(DType::Number(number)))) => given.dtype = Some(*number),
            ("dtype", Value::Static(Static::Known(LibraryName::Row(row)))) if python_type(row.path).is_some() => {
                given.dtype = python_type(row.path);
            }
            ("out", Value::Array(out)) => given.out = Some(out.clone()),
            ("keepdims", Value::Bool(_)) => {}
            ("initial", number) if number.ty().number().is_some() => {
                given.initial = Some(self.settle(number.clone(), at));
            }
            ("ddof", number) if number.ty().scalar().is_some() => {
                given.ddof = Some(self.settle(number.clone(), at));
            }
            (param, other) => {
                let message = format!("`{}` does not take {} as `{param}`", shown_path(row.path), other.ty());
                self.error(Code::NoMatchingOverload, at, message);
                return None;
            }
        }
        Some(())
    }

    pub(super) fn needs_out(&mut self, row: &Intrinsic, axis: Option<usize>, span: Span) -> Value {
        let name = shown_path(row.path);
        let message = format!("`{name}` would return an array here, which a kernel cannot allocate");
        let along = axis.map(|axis| format!("axis={axis}, ")).unwrap_or_default();
        let help = format!("pass an array for the results, `{name}(a, {along}out=r)`, or loop over the rows");
        self.report(Diagnostic::error(Code::NoMatchingOverload, span, message).help(help))
    }

    /// A view with one of the dimensions moved to the end.
    fn with_last(&mut self, array: &ArrayValue, axis: usize, span: Span) -> ArrayValue {
        if axis + 1 == array.ty.ndim {
            return array.clone();
        }
        let order = (0..array.ty.ndim).filter(|dim| *dim != axis).chain([axis]);
        let (mut shape, mut strides) = (Vec::new(), Vec::new());
        for dim in order {
            shape.extend(array.shape.get(dim));
            strides.push(self.stride(array, dim, span));
        }
        let ty = ArrayTy { layout: Layout::Any, ..array.ty };
        ArrayValue { ty, data: array.data, shape, strides }
    }

    /// The row at a linear position in C order, along an array's last dimension.
    pub(super) fn nth_row(&mut self, array: &ArrayValue, number: &Value, span: Span) -> Value {
        let Some(number) = self.number(number, Scalar::I64, span) else { return Value::Poison };
        let Some(outer) = array.ty.ndim.checked_sub(1) else { return Value::Poison };
        let number = self.atom(number, span);
        let extents = array.shape[..outer].to_vec();
        let at = self.indices_at(&extents, number, span);
        let indices: Vec<Index> = at.into_iter().map(|at| Index::at(self.use_atom(at, span))).collect();
        self.subscript(Value::Array(array.clone()), &indices, span)
    }
}

/// The number type of a Python type.
pub(super) fn python_type(path: &str) -> Option<Number> {
    match path {
        "builtins.int" => Some(Number::I64),
        "builtins.float" => Some(Number::F64),
        "builtins.complex" => Some(Number::C128),
        "builtins.bool" => Some(Number::BOOL),
        _ => None,
    }
}
