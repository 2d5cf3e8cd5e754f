//! `np.zeros`, `np.ones`, `np.empty`, `np.full`, their `_like` variants, and copies: arrays in the thread's local
//! memory.
//!
//! Local memory is declared at compile time, so a shape must be a constant. An array like another one may have run-time
//! extents: memory is declared for [`MOST_BYTES_LIKE`] bytes, and a thread that needs more ends with a `MemoryError`.

use weft_artifact::{DType, Layout, Number};

use super::whole_arrays::python_type;
use crate::{
    diagnostic::{Code, Diagnostic},
    frontend::{
        allocations::NewArray,
        expr::Args,
        lowerer::FnLowerer,
        object::{Exception, Static},
        ty::{ArrayTy, Sites, Ty, shown_path},
        value::{ArrayValue, Atom, LibraryName, Value},
    },
    intrinsics::Intrinsic,
    ir::{BinaryOp, CompareOp},
    source::Span,
};

/// The maximum size of an array with a constant shape. Each resident thread has its own, and a GPU runs about 100,000
/// threads.
const MOST_BYTES: u64 = 16 << 10;

/// The maximum size of an array whose shape is not constant.
const MOST_BYTES_LIKE: u64 = 4 << 10;

/// The initial content of a new array.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Content {
    /// Uninitialized.
    Nothing,
    /// A number everywhere.
    Number(i128),
    /// An argument's value.
    Given,
}

impl FnLowerer<'_> {
    /// `np.zeros(shape, dtype=float, order="C")` and similar functions; `np.full` has the fill value after the shape.
    pub(super) fn made_of_shape(&mut self, row: &'static Intrinsic, content: Content, args: Args, span: Span) -> Value {
        let name = self.hint.take().unwrap_or_else(|| "array".to_owned());
        let (shape, given, dtype, order) = if content == Content::Given {
            let names = ["shape", "fill_value", "dtype", "order"];
            let Some([shape, given, dtype, order]) = self.named(row, names, 2, args, span) else {
                return Value::Poison;
            };
            (shape, given, dtype, order)
        } else {
            let Some([shape, dtype, order]) = self.named(row, ["shape", "dtype", "order"], 1, args, span) else {
                return Value::Poison;
            };
            (shape, None, dtype, order)
        };
        let Some(shape) = shape else { return Value::Poison };
        let default = given.as_ref().map_or(Some(Number::F64), |given| given.ty().number());
        let Some(dtype) = self.made_dtype(row, dtype, default.map(DType::from), span) else { return Value::Poison };
        let Some(layout) = self.order(row, order, "C", Layout::C, span) else { return Value::Poison };
        let words = format!("No implementation of function Function(<built-in function {}>)", shown_path(row.path));
        let Some(shape) = self.known_shape(row, shape, &words, span) else { return Value::Poison };
        if let Some(bad) = shape.iter().find(|extent| **extent < 0) {
            return self.error(Code::NoMatchingOverload, span, format!("an array cannot have the size {bad}"));
        }
        let room = shape.iter().try_fold(1, |len: u64, extent| len.checked_mul(extent.unsigned_abs()));
        let Some(room) = self.room(row, dtype, room, span) else { return Value::Poison };
        let shape = shape.into_iter().map(Atom::Int).collect();
        let made = NewArray { dtype, layout, shape, room };
        self.filled(row, &made, content, given, &name, span)
    }

    /// `np.zeros_like(a, dtype=None, order="K")` and similar functions.
    pub(super) fn made_like(&mut self, row: &'static Intrinsic, content: Content, args: Args, span: Span) -> Value {
        let name = self.hint.take().unwrap_or_else(|| "array".to_owned());
        let (source, given, dtype, order) = if content == Content::Given {
            let names = ["a", "fill_value", "dtype", "order"];
            let Some([source, given, dtype, order]) = self.named(row, names, 2, args, span) else {
                return Value::Poison;
            };
            (source, given, dtype, order)
        } else {
            let first = if content == Content::Nothing { "prototype" } else { "a" };
            let Some([source, dtype, order]) = self.named(row, [first, "dtype", "order"], 1, args, span) else {
                return Value::Poison;
            };
            (source, None, dtype, order)
        };
        let Some(Value::Array(source)) = source else {
            let types: Vec<Ty> = source.iter().map(Value::ty).collect();
            return self.no_overload(row, &types, span);
        };
        let Some(dtype) = self.made_dtype(row, dtype, Some(source.ty.dtype), span) else { return Value::Poison };
        let Some(layout) = self.order(row, order, "K", source.ty.layout, span) else { return Value::Poison };
        let Some(made) = self.like(row, &source, dtype, layout, span) else { return Value::Poison };
        self.filled(row, &made, content, given, &name, span)
    }

    /// `a.copy(order="C")`, and `np.copy(a, order="K")`.
    pub(super) fn copied(&mut self, row: &'static Intrinsic, args: Args, span: Span) -> Value {
        let name = self.hint.take().unwrap_or_else(|| "copy".to_owned());
        let Some([source, order]) = self.named(row, ["a", "order"], 1, args, span) else { return Value::Poison };
        let Some(Value::Array(source)) = source else {
            let types: Vec<Ty> = source.iter().map(Value::ty).collect();
            return self.no_overload(row, &types, span);
        };
        let default = if row.path == "numpy.copy" { "K" } else { "C" };
        let Some(layout) = self.order(row, order, default, source.ty.layout, span) else { return Value::Poison };
        let Some(made) = self.like(row, &source, source.ty.dtype, layout, span) else { return Value::Poison };
        let source = ArrayValue { shape: made.shape.clone(), ..source };
        let read = source.ty.sites;
        let copy = self.new_array_of(&made, read, &name, span, |this, array| {
            this.store_view(array.clone(), Value::Array(source), span);
        });
        Value::Array(copy)
    }

    /// A new array with this content.
    fn filled(
        &mut self,
        row: &'static Intrinsic,
        made: &NewArray,
        content: Content,
        given: Option<Value>,
        name: &str,
        span: Span,
    ) -> Value {
        let value = match content {
            Content::Nothing => return Value::Array(self.new_array(made, name, span)),
            Content::Number(number) => Value::Int(number),
            Content::Given => given.unwrap_or(Value::Poison),
        };
        let real = made.dtype.number().map(|number| number.real().is_some());
        let fits = match (real, value.ty().number()) {
            (Some(true), Some(number)) => number.real().is_some(),
            (Some(false), Some(_)) => true,
            // A zero of any type has only zero bits.
            (None, Some(_)) => content == Content::Number(0),
            (_, None) => false,
        };
        if !fits {
            return self.no_overload(row, &[Ty::Array(plain(made)), value.ty()], span);
        }
        let value = self.settle(value, span);
        let array = self.new_array(made, name, span);
        if self.is_dry() {
            return Value::Array(array);
        }
        let filled = if real.is_some() { array.clone() } else { self.as_units(&array, made, span) };
        self.own_of_array(row, "fill", vec![Value::Array(filled), value], span);
        Value::Array(array)
    }

    /// The memory of an array as an array of the numbers that compose its elements.
    fn as_units(&mut self, array: &ArrayValue, made: &NewArray, span: Span) -> ArrayValue {
        let (elem, parts) = made.dtype.access();
        let size = self.product_of(&made.shape, span);
        let size = match size {
            Atom::Int(size) => Atom::Int(size * parts as i64),
            Atom::Local(_) => {
                let (size, parts) = (self.use_atom(size, span), self.b.i64(parts as i64, span));
                let all = self.b.binary(BinaryOp::Mul, size, parts, span);
                self.nonneg_atom(all, span)
            }
        };
        let ty = ArrayTy { dtype: Number::Real(elem).into(), ndim: 1, layout: Layout::C, ..array.ty };
        ArrayValue { ty, data: array.data, shape: vec![size], strides: Vec::new() }
    }

    /// The shape and size of an array like another one. The thread ends if it does not fit in local memory.
    fn like(
        &mut self,
        row: &Intrinsic,
        source: &ArrayValue,
        dtype: DType,
        layout: Layout,
        span: Span,
    ) -> Option<NewArray> {
        let shape: Vec<Atom> = source.shape.iter().map(|extent| self.fixed(*extent)).collect();
        let known: Option<Vec<u64>> = shape
            .iter()
            .map(|extent| if let Atom::Int(known) = extent { Some(known.unsigned_abs()) } else { None })
            .collect();
        if let Some(known) = known {
            let room = known.into_iter().try_fold(1, |len: u64, extent| len.checked_mul(extent));
            let room = self.room(row, dtype, room, span)?;
            return Some(NewArray { dtype, layout, shape, room });
        }
        let size = dtype.size_bytes().max(1);
        let room = MOST_BYTES_LIKE / size;
        if room == 0 {
            return self.too_large(row, size, MOST_BYTES_LIKE, span);
        }
        // Extents and products saturate above the limit, so none overflows.
        let too_many = room as i64 + 1;
        let mut elements = self.b.i64(1, span);
        for extent in &shape {
            let (extent, most) = (self.use_atom(*extent, span), self.b.i64(too_many, span));
            let extent = self.b.binary(BinaryOp::Min, extent, most, span);
            let product = self.b.binary(BinaryOp::Mul, elements, extent, span);
            let most = self.b.i64(too_many, span);
            elements = self.b.binary(BinaryOp::Min, product, most, span);
        }
        let most = self.b.i64(room as i64, span);
        let cond = self.b.compare(CompareOp::Gt, elements, most, span);
        let name = shown_path(row.path);
        let message = format!(
            "`{name}` of an array of more than {room} elements of {size} bytes: use `cuda.local.array(shape, dtype)`, or pass an array with a row for each thread"
        );
        self.end_thread_always_if(cond, Exception::builtin("MemoryError", &message), span);
        Some(NewArray { dtype, layout, shape, room })
    }

    /// The number of elements of an array; `None` if they exceed a thread's memory, which is reported.
    fn room(&mut self, row: &Intrinsic, dtype: DType, elements: Option<u64>, span: Span) -> Option<u64> {
        let bytes = elements.and_then(|elements| elements.checked_mul(dtype.size_bytes().max(1)));
        match bytes {
            Some(bytes) if bytes <= MOST_BYTES => elements,
            bytes => self.too_large(row, bytes.unwrap_or(u64::MAX), MOST_BYTES, span),
        }
    }

    fn too_large<T>(&mut self, row: &Intrinsic, bytes: u64, most: u64, span: Span) -> Option<T> {
        let name = shown_path(row.path);
        let message = format!("`{name}` makes an array of {bytes} bytes in each thread; the limit is {most}");
        let help = "use `cuda.local.array(shape, dtype)` if each thread needs that much, or pass an array with a row \
                    for each thread";
        self.report(Diagnostic::error(Code::LocalTooLarge, span, message).help(help));
        None
    }

    /// The element type: the argument, or the default.
    fn made_dtype(
        &mut self,
        row: &Intrinsic,
        dtype: Option<Value>,
        default: Option<DType>,
        span: Span,
    ) -> Option<DType> {
        let found = match dtype {
            None | Some(Value::Static(Static::None)) if default.is_some() => return default,
            Some(Value::Poison) => return None,
            Some(Value::Static(Static::DType(dtype))) => return Some(dtype),
            Some(Value::Static(Static::Known(LibraryName::Row(of)))) if python_type(of.path).is_some() => {
                return python_type(of.path).map(DType::from);
            }
            Some(Value::Static(Static::Str(ref name))) => {
                Number::from_name(name).or_else(|| Number::from_numpy_name(name)).map(DType::from)
            }
            None | Some(_) => None,
        };
        if found.is_none() {
            let given = dtype.map_or_else(|| "nothing".to_owned(), |dtype| dtype.ty().to_string());
            let message = format!("`{}` takes a type as its dtype, not {given}", shown_path(row.path));
            let diagnostic = Diagnostic::error(Code::NoMatchingOverload, span, message);
            self.report(diagnostic.help("write a type such as `np.float32`, `float` or `\"float32\"`"));
        }
        found
    }

    /// The layout for an order, for an array like one of another layout.
    fn order(
        &mut self,
        row: &Intrinsic,
        order: Option<Value>,
        default: &str,
        like: Layout,
        span: Span,
    ) -> Option<Layout> {
        let order = match order {
            None => default.to_owned(),
            Some(Value::Poison) => return None,
            Some(Value::Static(Static::Str(order))) => order,
            Some(other) => {
                let message = format!("`{}` takes a string as its order, not {}", shown_path(row.path), other.ty());
                self.error(Code::NoMatchingOverload, span, message);
                return None;
            }
        };
        match (order.as_str(), like) {
            ("C", _) | ("A" | "K", Layout::C | Layout::Any) => Some(Layout::C),
            ("F", _) | ("A" | "K", Layout::F) => Some(Layout::F),
            _ => {
                let message = format!(
                    "`{}` takes \"C\", \"F\", \"A\" or \"K\" as its order, not {order:?}",
                    shown_path(row.path)
                );
                self.error(Code::NoMatchingOverload, span, message);
                None
            }
        }
    }
}

/// The type of a new array, for messages.
fn plain(made: &NewArray) -> ArrayTy {
    ArrayTy {
        dtype: made.dtype,
        ndim: made.shape.len(),
        layout: made.layout,
        readonly: false,
        space: crate::ir::Space::Local,
        packed: false,
        own: true,
        sites: Sites::NONE,
    }
}
