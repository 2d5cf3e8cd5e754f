//! `cuda.grid`, `cuda.gridsize`, and the array constructors `cuda.shared.array` and `cuda.local.array`.

use weft_artifact::{DType, Layout, Number, Scalar};

use crate::{
    diagnostic::{Code, Diagnostic, closest},
    frontend::{
        expr::Args,
        lowerer::FnLowerer,
        object::{ObjectKind, Static},
        swizzle::{self, Swizzle},
        ty::{ArrayTy, Sites, shown_path},
        value::{ArrayValue, Atom, Value},
    },
    intrinsics::Intrinsic,
    ir::{BinaryOp, Built, Const, ExprId, ExprKind, LocalArray, SharedArray, SharedKind, Space, SpecialRegister, Type},
    source::Span,
};

/// The limit of sums of array sizes, in bytes: 1 TiB.
const LARGEST_ARRAY: u64 = 1 << 40;

/// A declaration of memory.
pub(super) struct Declared {
    pub(super) name: String,
    pub(super) elem: Scalar,
    pub(super) len: u64,
    pub(super) align: u64,
}

impl FnLowerer<'_> {
    /// `cuda.grid(n)` or `cuda.gridsize(n)`.
    pub(super) fn grid(&mut self, row: &Intrinsic, size: bool, args: Args, span: Span) -> Value {
        let Some([dims]) = self.exactly(row, args, span) else { return Value::Poison };
        let dims = match dims {
            Value::Int(dims @ 1..=3) => dims as u8,
            Value::Int(other) => {
                let message = format!("`{}` takes 1, 2 or 3 dimensions, not {other}", shown_path(row.path));
                return self.error(Code::NoMatchingOverload, span, message);
            }
            other @ (Value::Scalar(..)
            | Value::Complex(..)
            | Value::Bool(_)
            | Value::Array(_)
            | Value::Object(..)
            | Value::Static(_)
            | Value::Poison) => {
                let diagnostic = Diagnostic::error(
                    Code::NotConstant,
                    span,
                    format!("the number of dimensions must be a compile-time constant, not {}", other.ty()),
                )
                .numba(format!("RequireLiteralValue: an argument of `{}` must be a literal", shown_path(row.path)))
                .help(format!("write `{}(1)`, `(2)` or `(3)`", shown_path(row.path)));
                return self.report(diagnostic);
            }
        };
        let mut items: Vec<Value> = (0..dims)
            .map(|axis| {
                let expr = if size { self.grid_size(axis, span) } else { self.grid_index(axis, span) };
                Value::Scalar(expr, Scalar::I64)
            })
            .collect();
        if dims == 1 { items.pop().unwrap_or(Value::Poison) } else { Value::tuple(items) }
    }

    pub(super) fn wide(&mut self, register: SpecialRegister, span: Span) -> ExprId {
        let value = self.b.special(register, span);
        self.b.convert(value, Type::I64, span)
    }

    fn grid_index(&mut self, axis: u8, span: Span) -> ExprId {
        let block = self.wide(SpecialRegister::BlockIdx(axis), span);
        let size = self.wide(SpecialRegister::BlockDim(axis), span);
        let thread = self.wide(SpecialRegister::ThreadIdx(axis), span);
        let base = self.b.binary(BinaryOp::Mul, block, size, span);
        self.b.binary(BinaryOp::Add, base, thread, span)
    }

    fn grid_size(&mut self, axis: u8, span: Span) -> ExprId {
        let size = self.wide(SpecialRegister::BlockDim(axis), span);
        let blocks = self.wide(SpecialRegister::GridDim(axis), span);
        self.b.binary(BinaryOp::Mul, size, blocks, span)
    }

    /// `array(shape, dtype, alignment=None, swizzle=None)` in shared memory, or `array(shape, dtype, alignment=None)` in
    /// local memory.
    pub(super) fn make_array(&mut self, row: &Intrinsic, shared: bool, args: Args, span: Span) -> Value {
        let hint = self.hint.take().unwrap_or_else(|| if shared { "shared".to_owned() } else { "local".to_owned() });
        let Some([shape, dtype, alignment, swizzle]) = self.array_args(row, shared, args, span) else {
            return Value::Poison;
        };
        let Some(shape) = shape else {
            let message = format!("`{}` needs a shape", shown_path(row.path));
            return self.error(Code::ArgumentCount, span, message);
        };
        let dtype = match dtype {
            Some(Value::Static(Static::DType(number))) => number,
            Some(Value::Poison) => return Value::Poison,
            Some(Value::Static(Static::Str(name))) if let Some(number) = Number::from_name(&name) => number.into(),
            Some(Value::Static(Static::Str(name))) => {
                let names = || Number::all().map(Number::name);
                let diagnostic =
                    Diagnostic::error(Code::NoMatchingOverload, span, format!("there is no dtype `{name}`"))
                        .numba(format!("Invalid NumPy dtype specified: '{name}'"));
                return self.report(match closest(&name, names()) {
                    Some(near) => diagnostic.help(format!("did you mean `{near}`?")),
                    None => diagnostic.note(format!("the dtypes are {}", names().collect::<Vec<_>>().join(", "))),
                });
            }
            Some(other) => {
                let message =
                    format!("`{}` takes a scalar type as its dtype, not {}", shown_path(row.path), other.ty());
                let diagnostic = Diagnostic::error(Code::NoMatchingOverload, span, message)
                    .help("write a type such as `weft.float32` or `np.float32`; Python's `float` is `np.float64`");
                return self.report(diagnostic);
            }
            None => {
                let message = format!("`{}` needs a dtype", shown_path(row.path));
                return self.error(Code::ArgumentCount, span, message);
            }
        };
        let words = no_implementation(row, &shape, dtype);
        let Some(shape) = self.known_shape(row, shape, &words, span) else { return Value::Poison };
        let align = match alignment {
            None | Some(Value::Static(Static::None)) => dtype.access_align().max(if shared { 16 } else { 1 }),
            Some(Value::Int(align)) if align > 0 && align % 8 == 0 && (align as u64).is_power_of_two() => {
                (align as u64).max(dtype.access_align())
            }
            Some(_) => {
                return self.error(
                    Code::NoMatchingOverload,
                    span,
                    "the alignment must be a constant power of two and a multiple of 8 bytes",
                );
            }
        };
        let swizzle = match swizzle {
            None | Some(Value::Static(Static::None)) => None,
            Some(width) => match Self::swizzle_of(&width, &shape, dtype) {
                Ok(swizzle) => Some(swizzle),
                Err(message) => return self.error(Code::NoMatchingOverload, span, message),
            },
        };
        let align = swizzle.map_or(align, |swizzle| align.max(swizzle.align()));
        if shared && shape == [0] {
            return self.dynamic_shared(dtype, align, span);
        }
        if let Some(bad) = shape.iter().find(|extent| **extent <= 0) {
            let what = if shared { "; only the one-dimensional shape 0 means dynamic shared memory" } else { "" };
            let message = format!("an array cannot have the size {bad}{what}");
            return self.error(Code::NoMatchingOverload, span, message);
        }
        let space = if shared { Space::Shared } else { Space::Local };
        let ty = ArrayTy {
            dtype,
            ndim: shape.len(),
            layout: Layout::C,
            readonly: false,
            space,
            packed: false,
            own: !shared,
            sites: Sites::NONE,
        };
        let (elem, parts) = dtype.access();
        let len = shape.iter().try_fold(parts, |len: u64, extent| len.checked_mul(*extent as u64));
        let Some(len) = len.filter(|len| *len <= LARGEST_ARRAY / elem.size_bytes()) else {
            let (code, whose) = if shared {
                (Code::SharedTooLarge, "shared memory")
            } else {
                (Code::LocalTooLarge, "a thread's local memory")
            };
            return self.error(code, span, format!("the array `{hint}` does not fit into {whose} on any target"));
        };
        let array = self.allocate(ty, shape, Declared { name: hint, elem, len, align }, span);
        match swizzle {
            Some(swizzle) => Value::Object(ObjectKind::Swizzled(swizzle), vec![array]),
            None => array,
        }
    }

    /// The swizzle of an array; a sentence if it cannot have it.
    fn swizzle_of(width: &Value, shape: &[i64], dtype: DType) -> Result<Swizzle, String> {
        let Value::Int(width) = width else {
            return Err(format!("the swizzle must be a compile-time integer, not {}", width.ty()));
        };
        let size = dtype.size_bytes();
        let (&[.., rows, columns], true) = (shape, Swizzle::fits(size)) else {
            return Err(
                "a swizzled array has two dimensions or more, and elements of 1, 2, 4, 8 or 16 bytes".to_owned()
            );
        };
        if shape.len() > 2 && rows % swizzle::ROWS as i64 != 0 {
            return Err(format!(
                "a swizzled array of {} dimensions has a multiple of {} rows, its last dimension but one, not {rows}",
                shape.len(),
                swizzle::ROWS
            ));
        }
        let extent = |extent: i64| u64::try_from(extent).unwrap_or(0);
        Swizzle::new(*width, extent(rows), extent(columns).saturating_mul(size))
    }

    /// `swizzled(array, width)`: shared memory as a swizzled array.
    pub(super) fn shared_swizzled(&mut self, row: &Intrinsic, args: Args, span: Span) -> Value {
        let Some([array, width]) = self.exactly(row, args, span) else { return Value::Poison };
        let types = [array.ty(), width.ty()];
        let Value::Array(array) = array else { return self.no_overload(row, &types, span) };
        if array.ty.space != Space::Shared || array.ty.layout != Layout::C || array.ty.readonly {
            return self.no_overload(row, &types, span);
        }
        let shape = array.shape.iter().map(|extent| match self.fixed(*extent) {
            Atom::Int(known) => known,
            Atom::Local(_) => 0,
        });
        let shape: Vec<i64> = shape.collect();
        match Self::swizzle_of(&width, &shape, array.ty.dtype) {
            Ok(swizzle) => {
                if !self.is_dry() {
                    let align = &mut self.cx.module.dynamic_shared_align;
                    *align = (*align).max(swizzle.align());
                }
                Value::Object(ObjectKind::Swizzled(swizzle), vec![Value::Array(array)])
            }
            Err(message) => self.error(Code::NoMatchingOverload, span, message),
        }
    }

    /// A thread-local array that the program does not name.
    pub(in crate::frontend) fn local_array(&mut self, dtype: DType, shape: Vec<i64>, name: &str, span: Span) -> Value {
        let (elem, parts) = dtype.access();
        let len = shape.iter().try_fold(parts, |len: u64, extent| len.checked_mul(u64::try_from(*extent).ok()?));
        let Some(len) = len.filter(|len| *len <= LARGEST_ARRAY / elem.size_bytes()) else {
            return self.error(Code::LocalTooLarge, span, "the result does not fit into a thread's local memory");
        };
        let ty = ArrayTy {
            dtype,
            ndim: shape.len(),
            layout: Layout::C,
            readonly: false,
            space: Space::Local,
            packed: false,
            own: true,
            sites: Sites::NONE,
        };
        let align = dtype.access_align();
        self.allocate(ty, shape, Declared { name: name.to_owned(), elem, len, align }, span)
    }

    /// The array value of declared memory.
    pub(super) fn allocate(&mut self, ty: ArrayTy, shape: Vec<i64>, declared: Declared, span: Span) -> Value {
        let Declared { name, elem, len, align } = declared;
        let data = if self.is_dry() || ty.space != Space::Shared {
            self.local_memory(ty.pointer(), LocalArray { name, elem, len, align, span }, span)
        } else {
            let (kind, place) = (SharedKind::Program, self.at(span));
            let extents = shape.iter().map(|extent| extent.unsigned_abs()).collect();
            let declared = SharedArray { name, kind, elem, len, shape: extents, align, span: place };
            let kind = ExprKind::SharedBase(self.cx.module.shared.push(declared));
            let data = self.b.expr(kind, ty.pointer(), span);
            Atom::Local(self.b.temp(data, span))
        };
        let shape = shape.into_iter().map(Atom::Int).collect();
        Value::Array(ArrayValue { ty, data, shape, strides: Vec::new() })
    }

    /// Shape, dtype and alignment, by position or name, and of shared arrays the swizzle by name.
    fn array_args(&mut self, row: &Intrinsic, shared: bool, args: Args, span: Span) -> Option<[Option<Value>; 4]> {
        let mut out = [None, None, None, None];
        let names =
            if shared { &["shape", "dtype", "alignment", "swizzle"][..] } else { &["shape", "dtype", "alignment"] };
        if args.positional.len() > 3 {
            let message = format!("`{}` takes shape, dtype and alignment", shown_path(row.path));
            self.error(Code::ArgumentCount, span, message);
            return None;
        }
        for (place, (value, _)) in out.iter_mut().zip(args.positional) {
            *place = Some(value);
        }
        for (name, value, at) in args.keywords {
            let index = names.iter().position(|known| *known == name);
            match index.and_then(|index| out.get_mut(index)) {
                Some(place) if place.is_none() => *place = Some(value),
                Some(_) => {
                    let message = format!("`{}` got multiple values for `{name}`", shown_path(row.path));
                    let diagnostic = Diagnostic::error(Code::ArgumentCount, at, message);
                    self.report(diagnostic.help("the shape is one argument, a tuple for several dimensions: `(8, 8)`"));
                    return None;
                }
                None => {
                    let message = format!("`{}` has no parameter `{name}`", shown_path(row.path));
                    let diagnostic = Diagnostic::error(Code::ArgumentCount, at, message);
                    self.report(diagnostic.help("it takes `shape`, `dtype` and `alignment`"));
                    return None;
                }
            }
        }
        Some(out)
    }

    /// The extents of a constant shape; `words` is Numba's description of the error if it is not constant.
    pub(super) fn known_shape(&mut self, row: &Intrinsic, shape: Value, words: &str, span: Span) -> Option<Vec<i64>> {
        let items = if let Value::Object(ObjectKind::Tuple, items) = shape { items } else { vec![shape] };
        let mut out = Vec::new();
        for item in items {
            let known = if let Value::Int(known) = &item {
                i64::try_from(*known).ok()
            } else if let Value::Scalar(expr, scalar) = &item
                && scalar.is_int()
            {
                self.constant_int(*expr)
            } else {
                None
            };
            match known {
                Some(known) => out.push(known),
                None if item.ty().number().is_some_and(|number| !number.real().is_some_and(Scalar::is_int)) => {
                    let path = shown_path(row.path);
                    let message = format!("the dimensions in the shape of `{path}` must be ints, not {}", item.ty());
                    let diagnostic = Diagnostic::error(Code::NoMatchingOverload, span, message).numba(words);
                    self.report(diagnostic.help("write a literal, a global or a closure variable that is an int"));
                    return None;
                }
                None => {
                    if !item.ty().is_poison() {
                        let diagnostic = Diagnostic::error(
                            Code::NotConstant,
                            span,
                            format!("the shape of `{}` must be a compile-time constant", shown_path(row.path)),
                        )
                        .label(format!("this dimension is a run-time {}", item.ty()))
                        .numba(words)
                        .help(if row.path.ends_with("shared.array") {
                            "use a literal, a global or closure int, or shape 0 and pass the size at launch \
                             (`kernel[grid, block, stream, shared_bytes]`)"
                        } else {
                            "use a literal, a global or closure int as large as a thread can need, or pass an array \
                             with a row for each thread"
                        });
                        self.report(diagnostic);
                    }
                    return None;
                }
            }
        }
        Some(out)
    }

    fn constant_int(&self, expr: ExprId) -> Option<i64> {
        match self.b.built(expr) {
            Built::Const(Const::Int(value)) => i64::try_from(value).ok(),
            Built::Convert(inner) => self.constant_int(inner),
            Built::Const(_) | Built::Local(_) | Built::Other => None,
        }
    }

    /// The launch's dynamic shared memory as a one-dimensional array; all such arrays start at the same address.
    fn dynamic_shared(&mut self, dtype: DType, align: u64, span: Span) -> Value {
        if !self.is_dry() {
            self.cx.module.dynamic_shared = true;
            self.cx.module.dynamic_shared_align = self.cx.module.dynamic_shared_align.max(align);
        }
        let ty = ArrayTy {
            dtype,
            ndim: 1,
            layout: Layout::C,
            readonly: false,
            space: Space::Shared,
            packed: false,
            own: false,
            sites: Sites::NONE,
        };
        let data = self.b.expr(ExprKind::DynamicShared, ty.pointer(), span);
        let data = Atom::Local(self.b.temp(data, span));
        let bytes = self.wide(SpecialRegister::DynamicSharedBytes, span);
        let size = self.b.i64(dtype.size_bytes() as i64, span);
        let extent = self.b.binary(BinaryOp::DivNonneg, bytes, size, span);
        let extent = self.nonneg_atom(extent, span);
        Value::Array(ArrayValue { ty, data, shape: vec![extent], strides: Vec::new() })
    }
}

/// Numba's message for an array with an unsupported shape.
fn no_implementation(row: &Intrinsic, shape: &Value, dtype: DType) -> String {
    let path = shown_path(row.path);
    let name = path.strip_prefix("cuda.").unwrap_or(path);
    let shape = in_numba(shape);
    format!(
        "No implementation of function Function(<function {name}>) found for signature:\n \n \
         >>> array(shape={shape}, dtype=class({dtype}))"
    )
}

/// A value's type as Numba writes it, with the value if it is a compile-time constant.
fn in_numba(value: &Value) -> String {
    match value {
        Value::Int(known) => format!("Literal[int]({known})"),
        Value::Object(ObjectKind::Tuple, items) => {
            let items: Vec<String> = items.iter().map(in_numba).collect();
            match items.split_first() {
                Some((first, rest)) if rest.iter().all(|item| item == first) => {
                    format!("UniTuple({first} x {})", items.len())
                }
                _ => format!("Tuple({})", items.join(", ")),
            }
        }
        Value::Scalar(..)
        | Value::Complex(..)
        | Value::Bool(_)
        | Value::Array(_)
        | Value::Object(..)
        | Value::Static(_)
        | Value::Poison => value.ty().to_string(),
    }
}
