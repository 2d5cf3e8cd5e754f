//! Other views of an array's elements: `reshape`, `ravel`, `view`, `transpose`; and `slice` as a value.

use weft_artifact::{Layout, MAX_NDIM, Scalar};

use crate::{
    diagnostic::{Code, Diagnostic},
    frontend::{
        expr::Args,
        function::count,
        lowerer::FnLowerer,
        object::{ObjectKind, Static},
        promote,
        swizzle::Swizzle,
        ty::{ArrayTy, Ty, shown_path},
        value::{ArrayValue, Atom, Value},
    },
    intrinsics::Intrinsic,
    ir::{BinaryOp, CompareOp, LocalId},
    source::Span,
};

impl FnLowerer<'_> {
    /// The array of a method's or function's first argument, and the other arguments.
    fn array_and_rest(&mut self, row: &Intrinsic, args: Args, span: Span) -> Option<(ArrayValue, Vec<Value>)> {
        self.no_keywords(row, &args)?;
        let types: Vec<Ty> = args.positional.iter().map(|(value, _)| value.ty()).collect();
        let mut values = args.positional.into_iter().map(|(value, _)| value);
        if let Some(Value::Array(array)) = values.next() {
            return Some((array, values.collect()));
        }
        self.no_overload(row, &types, span);
        None
    }

    /// Reports an array that is not contiguous in C order.
    fn needs_c(&mut self, row: &Intrinsic, array: &ArrayValue, span: Span) -> Option<()> {
        if array.ty.layout == Layout::C {
            return Some(());
        }
        let message = format!("`{}` needs an array in C order, not {}", shown_path(row.path), Ty::Array(array.ty));
        let diagnostic = Diagnostic::error(Code::BadOperand, span, message);
        self.report(
            diagnostic.note("it returns a view, never a copy").help("index the array as it is, or pass a copy"),
        );
        None
    }

    /// `a.reshape(shape)` or `a.reshape(n, m)`; one extent may be -1.
    pub(super) fn reshape(&mut self, row: &Intrinsic, args: Args, span: Span) -> Value {
        let Some((mut array, rest)) = self.array_and_rest(row, args, span) else { return Value::Poison };
        array.shape = array.shape.iter().map(|extent| self.fixed(*extent)).collect();
        let extents = match rest.as_slice() {
            [one] => one.as_tuple().map_or_else(|| rest.clone(), <[Value]>::to_vec),
            _ => rest,
        };
        if extents.is_empty() || extents.len() > MAX_NDIM {
            let message = format!("a shape has 1 to {MAX_NDIM} dimensions, not {}", extents.len());
            return self.error(Code::NoMatchingOverload, span, message);
        }
        if self.needs_c(row, &array, span).is_none() {
            return Value::Poison;
        }
        let mut shape: Vec<Option<Atom>> = Vec::new();
        // The extents that only the launch knows: any of them may be the -1.
        let mut given: Vec<(usize, LocalId)> = Vec::new();
        for extent in extents {
            let whole =
                extent.ty().scalar().is_some_and(|scalar| promote::is_integral(scalar) && scalar != Scalar::Bool);
            if !whole {
                let message = format!("the dimensions of a shape must be integers, not {}", extent.ty());
                return self.error(Code::NoMatchingOverload, span, message);
            }
            if matches!(extent, Value::Int(-1)) {
                shape.push(None);
                continue;
            }
            if let Value::Int(known) = extent
                && let Ok(known) = u32::try_from(known)
            {
                shape.push(Some(Atom::Int(i64::from(known))));
                continue;
            }
            let Some(expr) = self.number(&extent, Scalar::I64, span) else { return Value::Poison };
            let signed = extent.ty().scalar().is_some_and(Scalar::is_signed_int);
            let atom = self.atom(expr, span);
            match atom {
                Atom::Int(-1) => {
                    shape.push(None);
                    continue;
                }
                Atom::Local(local) if signed && !self.b.function.locals[local].nonneg => {
                    given.push((shape.len(), local));
                }
                Atom::Local(local) => self.b.function.locals[local].nonneg = true,
                Atom::Int(_) => {}
            }
            shape.push(Some(atom));
        }
        // `a.reshape(-1)` is all elements in one dimension.
        let is_flat = matches!(shape[..], [None]);
        self.infer_given(&array.shape, &mut shape, &given, span);
        match shape.iter().filter(|extent| extent.is_none()).count() {
            0 => {}
            1 => {
                let all = self.product_of(&array.shape, span);
                let known: Vec<Atom> = shape.iter().copied().flatten().collect();
                let others = self.product_of(&known, span);
                let inferred = match (all, others) {
                    (Atom::Int(all), Atom::Int(others)) => Atom::Int(all.checked_div(others).unwrap_or(0)),
                    (all, others) => {
                        let (all, others) = (self.use_atom(all, span), self.use_atom(others, span));
                        let inferred = self.b.binary(BinaryOp::DivNonneg, all, others, span);
                        self.nonneg_atom(inferred, span)
                    }
                };
                for extent in &mut shape {
                    extent.get_or_insert(inferred);
                }
            }
            _ => return self.error(Code::NoMatchingOverload, span, "only one dimension of a shape can be -1"),
        }
        let shape: Vec<Atom> = shape.into_iter().flatten().collect();
        if let (Atom::Int(old), Atom::Int(new)) = (self.product_of(&array.shape, span), self.product_of(&shape, span))
            && old != new
        {
            let message = format!("an array of {} cannot be reshaped to {new}", count(old as usize, "element"));
            return self.error(Code::NoMatchingOverload, span, message);
        }
        if !is_flat {
            self.end_unless_reshapes(&array, &shape, span);
        }
        let ty = ArrayTy { ndim: shape.len(), ..array.ty };
        Value::Array(ArrayValue { ty, data: array.data, shape, strides: Vec::new() })
    }

    /// Computes the inferred extents of a shape, which are passed as negative numbers, from the array's element count.
    fn infer_given(&mut self, array: &[Atom], shape: &mut [Option<Atom>], given: &[(usize, LocalId)], span: Span) {
        if given.is_empty() {
            return;
        }
        let is_negative = |this: &mut Self, local: LocalId| {
            let (extent, zero) = (this.b.read(local, span), this.b.i64(0, span));
            this.b.compare(CompareOp::Lt, extent, zero, span)
        };
        for &(at, local) in given {
            let (negative, one, extent) = (is_negative(self, local), self.b.i64(1, span), self.b.read(local, span));
            let counted = self.b.select(negative, one, extent, span);
            shape[at] = Some(self.nonneg_atom(counted, span));
        }
        let known: Vec<Atom> = shape.iter().copied().flatten().collect();
        let (all, others) = (self.product_of(array, span), self.product_of(&known, span));
        let (all, others) = (self.use_atom(all, span), self.use_atom(others, span));
        let rest = self.b.binary(BinaryOp::DivNonneg, all, others, span);
        let rest = self.b.temp(rest, span);
        for &(at, local) in given {
            let (negative, rest, extent) =
                (is_negative(self, local), self.b.read(rest, span), self.b.read(local, span));
            let extent = self.b.select(negative, rest, extent, span);
            shape[at] = Some(self.nonneg_atom(extent, span));
        }
    }

    /// The product of extents.
    pub(in crate::frontend) fn product_of(&mut self, extents: &[Atom], span: Span) -> Atom {
        let mut known: i64 = 1;
        let mut product = None;
        for extent in extents {
            match extent {
                Atom::Int(extent) => known = known.saturating_mul(*extent),
                Atom::Local(_) => {
                    let extent = self.use_atom(*extent, span);
                    product = Some(match product {
                        None => extent,
                        Some(before) => self.b.binary(BinaryOp::Mul, before, extent, span),
                    });
                }
            }
        }
        match product {
            None => Atom::Int(known),
            Some(product) => {
                let known = self.b.i64(known, span);
                let all = self.b.binary(BinaryOp::Mul, product, known, span);
                self.nonneg_atom(all, span)
            }
        }
    }

    /// `a.ravel()`: all elements in one dimension.
    pub(super) fn ravel(&mut self, row: &Intrinsic, args: Args, span: Span) -> Value {
        let Some((array, rest)) = self.array_and_rest(row, args, span) else { return Value::Poison };
        if !rest.is_empty() {
            let message = format!("`{}` takes no arguments in a kernel", shown_path(row.path));
            return self.error(Code::ArgumentCount, span, message);
        }
        if array.ty.ndim == 1 {
            return Value::Array(array);
        }
        if self.needs_c(row, &array, span).is_none() {
            return Value::Poison;
        }
        let all = self.product_of(&array.shape, span);
        let ty = ArrayTy { ndim: 1, ..array.ty };
        Value::Array(ArrayValue { ty, data: array.data, shape: vec![all], strides: Vec::new() })
    }

    /// `a.view(dtype)`: the same bytes as elements of another type. As in Numba, they must be aligned for it.
    pub(super) fn view(&mut self, row: &Intrinsic, mut args: Args, span: Span) -> Value {
        if let Some((Value::Object(ObjectKind::Swizzled(swizzle), items), _)) = args.positional.first_mut() {
            let (swizzle, array) = (*swizzle, items.pop().unwrap_or(Value::Poison));
            args.positional[0].0 = array;
            return self.view_of_swizzled(row, swizzle, args, span);
        }
        let Some((array, rest)) = self.array_and_rest(row, args, span) else { return Value::Poison };
        let [Value::Static(Static::DType(dtype))] = rest.as_slice() else {
            let types: Vec<Ty> = rest.iter().map(Value::ty).collect();
            return self.no_overload(row, &types, span);
        };
        let (old, new) = (array.ty.dtype.size_bytes().max(1), dtype.size_bytes().max(1));
        let mut shape = array.shape.clone();
        if old != new {
            let last = array.ty.ndim.checked_sub(1);
            let Some(last) = last.filter(|_| array.ty.layout == Layout::C) else {
                let message = format!(
                    "{} cannot be viewed as elements of {new} bytes: its last dimension is not contiguous",
                    Ty::Array(array.ty)
                );
                return self.error(Code::BadOperand, span, message);
            };
            shape[last] = match self.fixed(shape[last]) {
                Atom::Int(extent) if last > 0 && extent * old as i64 % new as i64 != 0 => {
                    let message =
                        format!("a row of {} bytes is not a whole number of elements of {new}", extent * old as i64);
                    return self.error(Code::BadOperand, span, message);
                }
                Atom::Int(extent) => Atom::Int(extent * old as i64 / new as i64),
                own @ Atom::Local(_) => {
                    let (extent, size) = (self.use_atom(own, span), self.b.i64(old as i64, span));
                    let bytes = self.b.binary(BinaryOp::Mul, extent, size, span);
                    let size = self.b.i64(new as i64, span);
                    let extent = self.b.binary(BinaryOp::DivNonneg, bytes, size, span);
                    let extent = self.nonneg_atom(extent, span);
                    if last > 0 {
                        // With another element size, rows after the first would start at wrong addresses.
                        self.end_unless_refits(own, old as i64, extent, new as i64, span);
                    }
                    extent
                }
            };
        }
        let ty = ArrayTy { dtype: *dtype, ..array.ty };
        let data = self.use_atom(array.data, span);
        let data = self.b.convert(data, ty.pointer(), span);
        let data = Atom::Local(self.b.temp(data, span));
        Value::Array(ArrayValue { ty, data, shape, strides: array.strides })
    }

    /// `a.view(dtype)` of a swizzled array: the same rows, of elements that lie in one part.
    fn view_of_swizzled(&mut self, row: &Intrinsic, swizzle: Swizzle, args: Args, span: Span) -> Value {
        let view = self.view(row, args, span);
        let Value::Array(array) = &view else { return view };
        if !Swizzle::fits(array.ty.dtype.size_bytes()) {
            let message = format!("a swizzled array has no elements of type {}", array.ty.dtype);
            return self.error(Code::BadOperand, span, message);
        }
        Value::Object(ObjectKind::Swizzled(swizzle), vec![view])
    }

    /// `a.transpose()`, `a.transpose(axes)`.
    pub(super) fn transpose(&mut self, row: &Intrinsic, args: Args, span: Span) -> Value {
        let Some((array, rest)) = self.array_and_rest(row, args, span) else { return Value::Poison };
        let axes = match rest.as_slice() {
            [] => return Self::transposed(&array),
            [one] => one.as_tuple().map_or_else(|| rest.clone(), <[Value]>::to_vec),
            _ => rest,
        };
        let ndim = array.ty.ndim as i128;
        let known: Option<Vec<usize>> =
            axes.iter()
                .map(|axis| {
                    if let Value::Int(axis) = axis { usize::try_from(axis.rem_euclid(ndim.max(1))).ok() } else { None }
                })
                .collect();
        let mut sorted = known.clone().unwrap_or_default();
        sorted.sort_unstable();
        let Some(axes) = known.filter(|_| sorted == (0..array.ty.ndim).collect::<Vec<_>>()) else {
            let message = format!("the axes of a transposition must be the {ndim} dimensions, each once, as constants");
            return self.error(Code::NoMatchingOverload, span, message);
        };
        let strides = axes.iter().map(|axis| self.stride(&array, *axis, span)).collect();
        let shape = axes.iter().map(|axis| array.shape[*axis]).collect();
        let ty = ArrayTy { layout: Layout::Any, ..array.ty };
        Value::Array(ArrayValue { ty, data: array.data, shape, strides })
    }

    /// `slice(stop)`, `slice(start, stop[, step])`.
    pub(super) fn slice_value(&mut self, row: &Intrinsic, args: Args, span: Span) -> Value {
        if self.no_keywords(row, &args).is_none() {
            return Value::Poison;
        }
        let mut items: Vec<Value> = args.positional.into_iter().map(|(value, at)| self.settle(value, at)).collect();
        if items.is_empty() || items.len() > 3 {
            let message = format!("`slice` takes 1 to 3 arguments, not {}", items.len());
            return self.error(Code::ArgumentCount, span, message);
        }
        if items.len() == 1 {
            items.insert(0, Value::NONE);
        }
        items.resize(3, Value::NONE);
        Value::Object(ObjectKind::Slice, items)
    }
}
