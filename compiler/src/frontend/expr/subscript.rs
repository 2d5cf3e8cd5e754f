//! Subscripts: elements, views, tuple items.

use weft_artifact::{Layout, MAX_NDIM, Scalar};

use super::{
    index::{Bound, Index},
    object::FieldIndex,
};
use crate::{
    diagnostic::{Code, Diagnostic},
    frontend::{
        function::count,
        lowerer::FnLowerer,
        object::{Exception, ObjectKind, Static},
        promote, refusals,
        ty::{ArrayTy, Ty},
        value::{ArrayValue, Atom, Value},
    },
    ir::{BinaryOp, CompareOp, ExprId, ExprKind, Type},
    source::Span,
};

/// The maximum step of a slice. It exceeds every extent, so longer steps select the same element, and the sum of an
/// extent and a step fits 64 bits.
const LONGEST_STEP: i64 = 1 << 62;

impl FnLowerer<'_> {
    /// `base[indices]` as a value.
    pub(in crate::frontend) fn subscript(&mut self, base: Value, indices: &[Index], span: Span) -> Value {
        if let Some(item) = self.text_item(&base, indices, span).or_else(|| self.barrier_item(&base, indices, span)) {
            return item;
        }
        match base {
            Value::Poison => Value::Poison,
            Value::Array(array) if let [Index::Name(name), rest @ ..] = indices => {
                let Some(view) = self.field_view(&array, name, span) else {
                    return self.report(refusals::no_field(array.ty, name, span));
                };
                if rest.is_empty() { view } else { self.subscript(view, rest, span) }
            }
            Value::Array(array) => match self.selected(&array, indices, span) {
                None => Value::Poison,
                Some(Selected::Element(pointer)) => self.load(pointer, array.ty, span),
                Some(Selected::View(view)) => Value::Array(view),
            },
            Value::Object(kind, items) if kind.is_tuple() => self.tuple_item_at(items, indices, span),
            Value::Object(ObjectKind::Vector(_), lanes) => self.tuple_item_at(lanes, indices, span),
            Value::Object(ObjectKind::Record, ref items)
                if let ([Value::Array(place)], Some(field)) = (items.as_slice(), FieldIndex::of(indices)) =>
            {
                self.record_item(place, &field, span)
            }
            Value::Object(ObjectKind::Pointer, ref items) if let [Value::Array(place)] = items.as_slice() => {
                match self.pointed_to(place, indices, span) {
                    Some(pointer) => self.load(pointer, place.ty, span),
                    None => Value::Poison,
                }
            }
            Value::Object(ObjectKind::Swizzled(swizzle), ref items) if let [Value::Array(array)] = items.as_slice() => {
                if let Some(view) = self.part_of_swizzled(array, swizzle, indices, span) {
                    return view;
                }
                match self.swizzled(array, swizzle, indices, span) {
                    Some(indices) => self.subscript(Value::Array(array.clone()), &indices, span),
                    None => Value::Poison,
                }
            }
            Value::Object(ObjectKind::Flat, ref items) if let [Value::Array(array)] = items.as_slice() => {
                match self.flat_element(array, indices, span) {
                    Some(pointer) => self.load(pointer, array.ty, span),
                    None => Value::Poison,
                }
            }
            Value::Static(Static::Class(class, ref values))
                if let [Index::Name(name)] = indices
                    && let Some(member) = self.class_attribute(class, values, name, span) =>
            {
                member
            }
            range @ Value::Object(ObjectKind::Range(_), _) => self.range_item(range, indices, span),
            other @ (Value::Scalar(..)
            | Value::Complex(..)
            | Value::Int(_)
            | Value::Bool(_)
            | Value::Object(..)
            | Value::Static(_)) => {
                let message = format!("{} cannot be indexed", other.ty());
                let diagnostic = Diagnostic::error(Code::BadIndex, span, message);
                self.report(diagnostic.help_if(refusals::instead_of_index(&other)))
            }
        }
    }

    /// The pointer to the element that indices select, for atomics; `None` after an error.
    pub(in crate::frontend) fn element(&mut self, array: &ArrayValue, indices: &[Index], span: Span) -> Option<ExprId> {
        match self.selected(array, indices, span)? {
            Selected::Element(pointer) => Some(pointer),
            Selected::View(_) => {
                let message = format!(
                    "{} takes {} here, not {}",
                    Ty::Array(array.ty),
                    count(array.ty.ndim, "index").replace("indexs", "indices"),
                    indices.len()
                );
                self.error(Code::IndexCount, span, message);
                None
            }
        }
    }

    /// The element `index` elements past an address: C's `&pointer[index]`. A negative index goes backwards, and none
    /// is bounds-checked: a pointer has no extent.
    pub(in crate::frontend) fn pointed_to(
        &mut self,
        place: &ArrayValue,
        indices: &[Index],
        span: Span,
    ) -> Option<ExprId> {
        let [Index::At { expr: index, .. }] = indices else {
            self.error(Code::BadIndex, span, "a pointer takes one integer as its index");
            return None;
        };
        let base = self.use_atom(place.data, span);
        let (_, scale) = place.ty.dtype.access();
        let kind = ExprKind::Offset { base, index: *index, scale: scale as u32 };
        Some(self.b.expr(kind, place.ty.pointer(), span))
    }

    /// The element or view that indices select.
    pub(super) fn selected(&mut self, array: &ArrayValue, indices: &[Index], span: Span) -> Option<Selected> {
        let indices = self.expand_ellipsis(array, indices, span)?;
        let indices = self.without_wraps(indices, span)?;
        let indices = self.checked(array, indices, span);
        let (indices, within) = self.with_bounds_test(array, indices, span);
        let elements = indices.len() == array.ty.ndim && indices.iter().all(|index| matches!(index, Index::At { .. }));
        if elements && array.ty.layout != Layout::Any {
            let pointer = self.contiguous_element(array, &indices, span);
            return Some(Selected::Element(self.if_within(pointer, within, span)));
        }
        let mut offset: Option<ExprId> = None;
        let mut shape = Vec::new();
        let mut strides = Vec::new();
        let given = indices.iter().filter(|index| !matches!(index, Index::NewAxis)).count();
        let full = Index::Slice { lower: None, upper: None, step: None };
        let all = indices.iter().chain(std::iter::repeat_n(&full, array.ty.ndim - given));
        let mut dim = 0;
        for index in all {
            if matches!(index, Index::NewAxis) {
                shape.push(Atom::Int(1));
                strides.push(Atom::Int(0));
                continue;
            }
            let extent = array.shape.get(dim).copied()?;
            let stride = self.stride(array, dim, span);
            dim += 1;
            let start = match index {
                Index::At { .. } => self.wrapped(index, extent, span),
                Index::Slice { lower: None, upper: None, step: None } => {
                    shape.push(extent);
                    strides.push(stride);
                    continue;
                }
                Index::Slice { lower, upper, step } => {
                    let (start, length, step) = self.slice(*lower, *upper, *step, extent, span);
                    shape.push(length);
                    strides.push(match step {
                        None => stride,
                        Some(step) => {
                            let (step, stride) = (self.use_atom(step, span), self.use_atom(stride, span));
                            let product = self.b.binary(BinaryOp::Mul, step, stride, span);
                            self.atom(product, span)
                        }
                    });
                    start
                }
                Index::Ellipsis | Index::NewAxis | Index::Name(_) => return None,
            };
            let stride = self.use_atom(stride, span);
            let bytes = self.b.binary(BinaryOp::Mul, start, stride, span);
            offset = Some(match offset {
                None => bytes,
                Some(before) => self.b.binary(BinaryOp::Add, before, bytes, span),
            });
        }
        let data = self.use_atom(array.data, span);
        let pointer = match offset {
            None => data,
            Some(bytes) => self.b.expr(ExprKind::ByteOffset { base: data, bytes }, array.ty.pointer(), span),
        };
        let pointer = self.if_within(pointer, within, span);
        if elements {
            return Some(Selected::Element(pointer));
        }
        let layout = view_layout(array.ty.layout, array.ty.ndim, &indices, shape.len());
        let ty = ArrayTy { ndim: shape.len(), layout, ..array.ty };
        let data = Atom::Local(self.b.temp(pointer, span));
        let strides = if layout == Layout::Any { strides } else { Vec::new() };
        Some(Selected::View(ArrayValue { ty, data, shape, strides }))
    }

    /// Bounds-checked indices, if checks are enabled: the thread ends if one is out of bounds.
    pub(super) fn checked(&mut self, array: &ArrayValue, mut indices: Vec<Index>, span: Span) -> Vec<Index> {
        if !self.reports().bounds {
            return indices;
        }
        let mut axis = 0;
        for index in &mut indices {
            match index {
                Index::At { expr, wraps, known } => {
                    let Some(extent) = array.shape.get(axis).copied() else { break };
                    let local = self.b.temp(*expr, span);
                    let (wraps, known) = (*wraps, *known);
                    let again = |this: &mut Self| Index::At { expr: this.b.read(local, span), wraps, known };
                    let found = again(self);
                    let at = self.wrapped(&found, extent, span);
                    let unsigned = Type::Scalar(Scalar::U64);
                    let (at, end) = (self.b.convert(at, unsigned, span), self.use_atom(extent, span));
                    let end = self.b.convert(end, unsigned, span);
                    let outside = self.b.compare(CompareOp::Ge, at, end, span);
                    let values = [self.b.read(local, span), self.use_atom(extent, span)];
                    self.bad_index_if(outside, axis as u8, values, span);
                    *index = again(self);
                    axis += 1;
                }
                Index::Slice { .. } => axis += 1,
                Index::Ellipsis | Index::NewAxis | Index::Name(_) => {}
            }
        }
        indices
    }

    /// Replaces `...` by full slices and checks the count.
    fn expand_ellipsis(&mut self, array: &ArrayValue, indices: &[Index], span: Span) -> Option<Vec<Index>> {
        let full = || Index::Slice { lower: None, upper: None, step: None };
        let dots = indices.iter().filter(|index| matches!(index, Index::Ellipsis)).count();
        let new = indices.iter().filter(|index| matches!(index, Index::NewAxis)).count();
        let given = indices.len() - dots - new;
        if let Some(Index::Name(name)) = indices.iter().find(|index| matches!(index, Index::Name(_))) {
            let message = format!("the name of a field, `{name}`, must be the only index");
            self.error(Code::BadIndex, span, message);
            return None;
        }
        if array.ty.ndim + new > MAX_NDIM {
            let message = format!("an array has at most {MAX_NDIM} dimensions, not {}", array.ty.ndim + new);
            self.error(Code::BadIndex, span, message);
            return None;
        }
        if dots > 1 {
            self.error(Code::BadIndex, span, "an index can have only one `...`");
            return None;
        }
        if given > array.ty.ndim || (array.ty.ndim > 0 && indices.is_empty()) {
            let indices = count(given, "index").replace("indexs", "indices");
            let dims = count(array.ty.ndim, "dimension");
            let diagnostic = Diagnostic::error(Code::IndexCount, span, format!("{indices} for an array of {dims}"))
                .label(format!("the array is {}", Ty::Array(array.ty)));
            let help = match array.ty.ndim {
                0 => "its one element is `a[()]`".to_owned(),
                1 => "an element is `a[i]`".to_owned(),
                ndim => format!(
                    "an element is `a[{}]`, a row `a[i]`",
                    ["i", "j", "k", "l", "m", "n", "o"][..ndim.min(7)].join(", ")
                ),
            };
            self.report(diagnostic.help(help));
            return None;
        }
        let mut out = Vec::new();
        for index in indices {
            match index {
                Index::Ellipsis => out.extend((0..array.ty.ndim - given).map(|_| full())),
                other @ (Index::At { .. } | Index::Slice { .. } | Index::NewAxis | Index::Name(_)) => {
                    out.push(other.clone());
                }
            }
        }
        Some(out)
    }

    /// The element of a contiguous array: `(i0 * n1 + i1) * n2 + i2` elements from its start.
    fn contiguous_element(&mut self, array: &ArrayValue, indices: &[Index], span: Span) -> ExprId {
        let mut order: Vec<usize> = (0..array.ty.ndim).collect();
        if array.ty.layout == Layout::F {
            order.reverse();
        }
        let mut linear: Option<ExprId> = None;
        for dim in order {
            let (Some(index), Some(extent)) = (indices.get(dim), array.shape.get(dim).copied()) else { continue };
            let at = self.wrapped(index, extent, span);
            linear = Some(match linear {
                None => at,
                Some(before) => {
                    let extent = self.use_atom(extent, span);
                    let row = self.b.binary(BinaryOp::Mul, before, extent, span);
                    self.b.binary(BinaryOp::Add, row, at, span)
                }
            });
        }
        let base = self.use_atom(array.data, span);
        match linear {
            None => base,
            Some(index) => {
                let (_, scale) = array.ty.dtype.access();
                let kind = ExprKind::Offset { base, index, scale: scale as u32 };
                self.b.expr(kind, array.ty.pointer(), span)
            }
        }
    }

    /// An index, with Python's rule for negative ones.
    pub(in crate::frontend) fn wrapped(&mut self, index: &Index, extent: Atom, span: Span) -> ExprId {
        let Index::At { expr, wraps, known } = index else { return self.b.i64(0, span) };
        if !wraps {
            return *expr;
        }
        let extent = self.use_atom(extent, span);
        match known {
            Some(_) => self.b.binary(BinaryOp::Add, extent, *expr, span),
            None => self.b.expr(ExprKind::Wrap { index: *expr, extent }, Type::I64, span),
        }
    }

    /// Start, length and step (`None` is 1) of a slice of a dimension: Python's clipping.
    fn slice(
        &mut self,
        lower: Option<Bound>,
        upper: Option<Bound>,
        step: Option<Bound>,
        extent: Atom,
        span: Span,
    ) -> (ExprId, Atom, Option<Atom>) {
        let unit = step.is_none_or(|step| step.known == Some(1));
        let known = [lower, upper].into_iter().all(|bound| bound.is_none_or(|bound| bound.known.is_some()));
        let extent = if unit && known { self.fixed(extent) } else { extent };
        if unit {
            let start = match lower {
                None => Atom::Int(0),
                Some(bound) => self.clip(bound, extent, span),
            };
            let stop = match upper {
                None => extent,
                Some(bound) => self.clip(bound, extent, span),
            };
            if let (Atom::Int(start), Atom::Int(stop)) = (start, stop) {
                return (self.b.i64(start, span), Atom::Int((stop - start).max(0)), None);
            }
            let length = if matches!(start, Atom::Int(0)) {
                stop
            } else {
                let (a, b) = (self.use_atom(stop, span), self.use_atom(start, span));
                let length = self.b.binary(BinaryOp::Sub, a, b, span);
                let zero = self.b.i64(0, span);
                let length = self.b.binary(BinaryOp::Max, length, zero, span);
                self.nonneg_atom(length, span)
            };
            return (self.use_atom(start, span), length, None);
        }
        self.stepped_slice(lower, upper, step, extent, span)
    }

    /// A bound of a step-less slice, in `0..=extent`.
    fn clip(&mut self, bound: Bound, extent: Atom, span: Span) -> Atom {
        if let (Some(known), Atom::Int(extent)) = (bound.known, extent) {
            let at = if known < 0 { known + extent } else { known };
            return Atom::Int(at.clamp(0, extent));
        }
        if bound.known == Some(0) {
            return Atom::Int(0);
        }
        let mut at = bound.expr;
        if bound.wraps {
            let end = self.use_atom(extent, span);
            at = match bound.known {
                Some(_) => self.b.binary(BinaryOp::Add, end, at, span),
                None => self.b.expr(ExprKind::Wrap { index: at, extent: end }, Type::I64, span),
            };
            let zero = self.b.i64(0, span);
            at = self.b.binary(BinaryOp::Max, at, zero, span);
        }
        let end = self.use_atom(extent, span);
        let at = self.b.binary(BinaryOp::Min, at, end, span);
        self.nonneg_atom(at, span)
    }

    /// A slice with a positive or negative step, constant or not.
    fn stepped_slice(
        &mut self,
        lower: Option<Bound>,
        upper: Option<Bound>,
        step: Option<Bound>,
        extent: Atom,
        span: Span,
    ) -> (ExprId, Atom, Option<Atom>) {
        let step = match step {
            Some(Bound { known: Some(known), .. }) => Atom::Int(known.clamp(-LONGEST_STEP, LONGEST_STEP)),
            Some(Bound { expr, .. }) => {
                let step = self.step(expr, "slice step cannot be zero", span);
                let (least, most) = (self.b.i64(-LONGEST_STEP, span), self.b.i64(LONGEST_STEP, span));
                let step = self.b.binary(BinaryOp::Max, step, least, span);
                let step = self.b.binary(BinaryOp::Min, step, most, span);
                self.atom(step, span)
            }
            None => Atom::Int(1),
        };
        let down = {
            let (value, zero) = (self.use_atom(step, span), self.b.i64(0, span));
            let down = self.b.compare(CompareOp::Lt, value, zero, span);
            self.b.temp(down, span)
        };
        // For a positive step, bounds are in 0..=n; for a negative one, in -1..=n-1.
        let low = {
            let (down, a, b) = (self.b.read(down, span), self.b.i64(-1, span), self.b.i64(0, span));
            let low = self.b.select(down, a, b, span);
            self.b.temp(low, span)
        };
        let high = {
            let n = self.use_atom(extent, span);
            let one = self.b.i64(1, span);
            let last = self.b.binary(BinaryOp::Sub, n, one, span);
            let n = self.use_atom(extent, span);
            let down = self.b.read(down, span);
            let high = self.b.select(down, last, n, span);
            self.b.temp(high, span)
        };
        let mut bound = |bound: Option<Bound>, first: bool| {
            let at = match bound {
                Some(bound) => {
                    let end = self.use_atom(extent, span);
                    let at = if bound.wraps {
                        self.b.expr(ExprKind::Wrap { index: bound.expr, extent: end }, Type::I64, span)
                    } else {
                        bound.expr
                    };
                    let (low, high) = (self.b.read(low, span), self.b.read(high, span));
                    let at = self.b.binary(BinaryOp::Max, at, low, span);
                    self.b.binary(BinaryOp::Min, at, high, span)
                }
                None => {
                    let (down, low, high) = (self.b.read(down, span), self.b.read(low, span), self.b.read(high, span));
                    if first { self.b.select(down, high, low, span) } else { self.b.select(down, low, high, span) }
                }
            };
            self.b.temp(at, span)
        };
        let (start, stop) = (bound(lower, true), bound(upper, false));
        // Positive step: (stop - start + step - 1) // step; negative step: (start - stop - step - 1) // -step.
        let distance = {
            let (down, a, b) = (self.b.read(down, span), self.b.read(start, span), self.b.read(stop, span));
            let downwards = self.b.binary(BinaryOp::Sub, a, b, span);
            let (a, b) = (self.b.read(start, span), self.b.read(stop, span));
            let upwards = self.b.binary(BinaryOp::Sub, b, a, span);
            let distance = self.b.select(down, downwards, upwards, span);
            let zero = self.b.i64(0, span);
            self.b.binary(BinaryOp::Max, distance, zero, span)
        };
        let size = {
            let size = self.use_atom(step, span);
            let size = self.b.unary(crate::ir::UnaryOp::Abs, size, span);
            self.b.temp(size, span)
        };
        let (size_a, one) = (self.b.read(size, span), self.b.i64(1, span));
        let rounded = self.b.binary(BinaryOp::Add, distance, size_a, span);
        let rounded = self.b.binary(BinaryOp::Sub, rounded, one, span);
        let size = self.b.read(size, span);
        let length = self.b.binary(BinaryOp::FloorDiv, rounded, size, span);
        let length = self.nonneg_atom(length, span);
        (self.b.read(start, span), length, Some(step))
    }

    /// An item of a tuple: by a constant index, or by any index if the items have one type.
    fn tuple_item_at(&mut self, items: Vec<Value>, indices: &[Index], span: Span) -> Value {
        let [index] = indices else {
            return self.error(Code::BadIndex, span, "a tuple takes one index");
        };
        let len = items.len() as i64;
        match index {
            Index::At { known: Some(known), .. } => {
                let at = if *known < 0 { known + len } else { *known };
                match usize::try_from(at).ok().and_then(|at| items.into_iter().nth(at)) {
                    Some(item) => item,
                    None => {
                        let message = format!("index {known} is out of range for a tuple of {len}");
                        self.error(Code::BadIndex, span, message)
                    }
                }
            }
            Index::At { expr, .. } => self.tuple_item_select(items, *expr, span),
            Index::Slice { lower, upper, step } => {
                let known = |bound: &Option<Bound>| bound.map_or(Some(None), |bound| bound.known.map(Some));
                let (Some(lower), Some(upper), Some(step)) = (known(lower), known(upper), known(step)) else {
                    return self.error(
                        Code::NotConstant,
                        span,
                        "the bounds of a slice of a tuple must be compile-time constants",
                    );
                };
                let step = step.unwrap_or(1);
                let wide = |at: Option<i64>| at.map(i128::from);
                let (start, stop) = in_slice(i128::from(len), wide(lower), wide(upper), i128::from(step));
                let (start, stop) = (start as i64, stop as i64);
                let mut chosen = Vec::new();
                let mut at = start;
                while if step > 0 { at < stop } else { at > stop } {
                    chosen.extend(items.get(at as usize).cloned());
                    at = at.saturating_add(step);
                }
                Value::tuple(chosen)
            }
            Index::Ellipsis | Index::NewAxis | Index::Name(_) => {
                self.error(Code::BadIndex, span, "the index of a tuple must be an integer or a slice")
            }
        }
    }

    /// `items[index]` for an index that is not constant: a chain of selections over items of one type.
    fn tuple_item_select(&mut self, mut items: Vec<Value>, index: ExprId, span: Span) -> Value {
        if items.iter().any(|item| item.ty().is_poison()) {
            if !self.is_dry() {
                return Value::Poison;
            }
            // The type is that of the items whose type is known.
            items.retain(|item| !item.ty().is_poison());
            if items.is_empty() {
                return Value::Poison;
            }
        }
        let typing = self.typing();
        let mut types = items.iter().map(|item| item.ty().widened(typing));
        let Some(first) = types.next() else {
            return self.error(Code::BadIndex, span, "an empty tuple has no items");
        };
        let joined =
            types.fold(first.clone(), |a, b| if a == b { a } else { promote::join(&a, span, &b, span, typing) });
        if joined != first || first.parts().is_empty() {
            let ty = Ty::Object(ObjectKind::Tuple, items.iter().map(Value::ty).collect());
            let message = format!("{ty} must be indexed with a compile-time constant: its items have different types");
            return self.error(Code::NotConstant, span, message);
        }
        let len = items.len() as i64;
        let extent = self.b.i64(len, span);
        let index = self.b.expr(ExprKind::Wrap { index, extent }, Type::I64, span);
        let index = self.b.temp(index, span);
        if self.reports().python {
            let unsigned = Type::Scalar(Scalar::U64);
            let (at, end) = (self.b.read(index, span), self.b.int(Scalar::U64, i128::from(len), span));
            let at = self.b.convert(at, unsigned, span);
            let outside = self.b.compare(CompareOp::Ge, at, end, span);
            self.end_thread_if(outside, Exception::builtin("IndexError", "tuple index out of range"), span);
        }
        let mut chosen: Option<Vec<ExprId>> = None;
        for (number, item) in items.into_iter().enumerate() {
            let Some(item) = self.try_convert(item, &first, span) else { return Value::Poison };
            let parts = self.flatten(item, span);
            chosen = Some(match chosen {
                None => parts,
                Some(before) => parts
                    .into_iter()
                    .zip(before)
                    .map(|(part, before)| {
                        let (at, number) = (self.b.read(index, span), self.b.i64(number as i64, span));
                        let here = self.b.compare(CompareOp::Eq, at, number, span);
                        self.b.select(here, part, before, span)
                    })
                    .collect(),
            });
        }
        let locals: Vec<_> = chosen.unwrap_or_default().into_iter().map(|part| self.b.temp(part, span)).collect();
        self.rebuild(&first, &mut locals.into_iter(), span)
    }
}

/// The start and end positions of a slice of `len` items: Python's clipping.
pub(super) fn in_slice(len: i128, lower: Option<i128>, upper: Option<i128>, step: i128) -> (i128, i128) {
    let (least, most) = if step > 0 { (0, len) } else { (-1, len - 1) };
    let clip = |at: i128| if at < 0 { (at + len).max(least) } else { at.min(most) };
    let (first, end) = if step > 0 { (0, len) } else { (len - 1, -1) };
    (lower.map_or(first, clip), upper.map_or(end, clip))
}

/// The result of indexing.
pub(super) enum Selected {
    Element(ExprId),
    View(ArrayValue),
}

/// The layout of a view. A view of a C array is C if all indices are integers except the last one, which may be a slice
/// without a step; F mirrors this from the right (Numba's rule). A single contiguous dimension is C.
fn view_layout(layout: Layout, ndim: usize, indices: &[Index], result: usize) -> Layout {
    // A dimension of extent 1 does not change the layout, at any position.
    let mut all: Vec<Option<&Index>> =
        indices.iter().filter(|index| !matches!(index, Index::NewAxis)).map(Some).collect();
    all.resize(ndim, None);
    if layout == Layout::F {
        all.reverse();
    }
    if layout == Layout::Any {
        return Layout::Any;
    }
    let full =
        |index: Option<&Index>| matches!(index, None | Some(Index::Slice { lower: None, upper: None, step: None }));
    let mut rest = all.iter().copied().skip_while(|index| matches!(index, Some(Index::At { .. })));
    let stepless = rest.next().is_none_or(|index| {
        full(index) || matches!(index, Some(Index::Slice { step, .. }) if step.is_none_or(|step| step.known == Some(1)))
    });
    if !stepless || !rest.all(full) {
        return Layout::Any;
    }
    if result <= 1 { Layout::C } else { layout }
}
