//! `carray` and `farray`: arrays over the memory that a pointer points to.
//!
//! Only the address of the memory is known. The program guarantees that the memory has the elements of the shape, with
//! their alignment. A negative extent counts as 0.

use weft_artifact::{DType, EXTENT_BITS, Layout, MAX_NDIM, Number, Scalar};

use crate::{
    diagnostic::{Code, Diagnostic},
    frontend::{
        expr::Args,
        lowerer::FnLowerer,
        object::{ObjectKind, Static},
        promote,
        ty::{ArrayTy, shown_path},
        value::{ArrayValue, Atom, Value},
    },
    intrinsics::Intrinsic,
    ir::BinaryOp,
    source::Span,
};

/// The largest extent of an array.
const LARGEST: i64 = (1 << EXTENT_BITS) - 1;

impl FnLowerer<'_> {
    /// `carray(ptr, shape, dtype=None)`, in C order, or `farray` in Fortran order.
    pub(super) fn pointed_array(&mut self, row: &Intrinsic, layout: Layout, args: Args, span: Span) -> Value {
        let Some([Some(ptr), Some(shape), dtype]) = self.named(row, ["ptr", "shape", "dtype"], 2, args, span) else {
            return Value::Poison;
        };
        let (place, known) = match &ptr {
            Value::Object(ObjectKind::Pointer, items) if let [Value::Array(place)] = items.as_slice() => {
                (place.clone(), Some(place.ty.dtype))
            }
            Value::Object(ObjectKind::VoidPointer, items) if let [Value::Array(place)] = items.as_slice() => {
                (place.clone(), None)
            }
            Value::Poison => return Value::Poison,
            Value::Scalar(..)
            | Value::Complex(..)
            | Value::Int(_)
            | Value::Bool(_)
            | Value::Array(_)
            | Value::Object(..)
            | Value::Static(_) => {
                let message = format!("`{}` takes a pointer, not {}", shown_path(row.path), ptr.ty());
                let diagnostic = Diagnostic::error(Code::NoMatchingOverload, span, message);
                return self.report(diagnostic.help("declare the argument as `types.CPointer(…)` or `types.voidptr`"));
            }
        };
        let Some(dtype) = self.pointed_dtype(row, &ptr, known, dtype, span) else { return Value::Poison };
        let Some(shape) = self.pointed_shape(row, shape, span) else { return Value::Poison };
        // A single contiguous dimension has C layout, as for slices.
        let layout = if shape.len() <= 1 { Layout::C } else { layout };
        let ty = ArrayTy { dtype, ndim: shape.len(), layout, ..place.ty };
        let data = self.use_atom(place.data, span);
        let data = self.b.convert(data, ty.pointer(), span);
        let data = Atom::Local(self.b.temp(data, span));
        Value::Array(ArrayValue { ty, data, shape, strides: Vec::new() })
    }

    /// The element type: the pointer's, or for a `void *` the argument.
    fn pointed_dtype(
        &mut self,
        row: &Intrinsic,
        ptr: &Value,
        known: Option<DType>,
        given: Option<Value>,
        span: Span,
    ) -> Option<DType> {
        let given = match given {
            None | Some(Value::Static(Static::None)) => None,
            Some(Value::Static(Static::DType(dtype))) => Some(dtype),
            Some(Value::Static(Static::Str(name))) if let Some(number) = Number::from_name(&name) => {
                Some(number.into())
            }
            Some(Value::Poison) => return None,
            Some(other) => {
                let message = format!("`{}` takes a type as its dtype, not {}", shown_path(row.path), other.ty());
                let diagnostic = Diagnostic::error(Code::NoMatchingOverload, span, message);
                self.report(diagnostic.help("write a type such as `weft.float32` or `np.float32`"));
                return None;
            }
        };
        match (known, given) {
            (Some(known), Some(given)) if known != given => {
                let message = format!("the dtype {given} does not match {}", ptr.ty());
                self.error(Code::NoMatchingOverload, span, message);
                None
            }
            (Some(dtype), _) | (None, Some(dtype)) => Some(dtype),
            (None, None) => {
                let message = format!("`{}` of {} needs a dtype", shown_path(row.path), ptr.ty());
                self.error(Code::ArgumentCount, span, message);
                None
            }
        }
    }

    /// The extents: an integer, or a tuple of them.
    fn pointed_shape(&mut self, row: &Intrinsic, shape: Value, span: Span) -> Option<Vec<Atom>> {
        let items = shape.as_tuple().map_or_else(|| vec![shape.clone()], <[Value]>::to_vec);
        if items.len() > MAX_NDIM {
            let message = format!("a shape has 0 to {MAX_NDIM} dimensions, not {}", items.len());
            self.error(Code::NoMatchingOverload, span, message);
            return None;
        }
        let mut extents = Vec::new();
        for item in items {
            let ty = item.ty();
            if ty.is_poison() {
                return None;
            }
            if !ty.scalar().is_some_and(|scalar| promote::is_integral(scalar) && scalar != Scalar::Bool) {
                let message =
                    format!("the dimensions in the shape of `{}` must be integers, not {ty}", shown_path(row.path));
                self.error(Code::NoMatchingOverload, span, message);
                return None;
            }
            if let Value::Int(known) = item {
                extents.push(Atom::Int(known.clamp(0, i128::from(LARGEST)) as i64));
                continue;
            }
            let extent = self.number(&item, Scalar::I64, span)?;
            let zero = self.b.i64(0, span);
            let extent = self.b.binary(BinaryOp::Max, extent, zero, span);
            let largest = self.b.i64(LARGEST, span);
            let extent = self.b.binary(BinaryOp::Min, extent, largest, span);
            extents.push(self.nonneg_atom(extent, span));
        }
        Some(extents)
    }
}
