//! Loads and stores of array elements of each dtype.
//!
//! An element that is a number is loaded at once. A record is not: its value refers to its address, as in NumPy and
//! Numba, and a field is loaded when it is accessed. An array in a record is a view.

use weft_artifact::{Compound, DType, Layout, Number, Scalar, Vector};

use super::{
    float8,
    lowerer::FnLowerer,
    object::ObjectKind,
    ty::ArrayTy,
    value::{ArrayValue, Atom, Value},
    weak,
};
use crate::{
    diagnostic::{Code, Diagnostic},
    ir::{Align, ExprId, ExprKind, LocalId, StmtKind as Ir, Type},
    source::Span,
};

/// The largest access of the hardware to one number, in bytes.
const LONGEST_WORD: u64 = 8;

/// The maximum number of accesses of an unrolled copy of a record; a longer copy is a loop.
const MOST_WORDS: u64 = 64;

impl FnLowerer<'_> {
    /// The element at a pointer into an array.
    pub(super) fn load(&mut self, pointer: ExprId, of: ArrayTy, span: Span) -> Value {
        match of.dtype {
            DType::Number(Number::Real(scalar)) => self.load_number(pointer, scalar, of, span),
            DType::Number(Number::Complex(complex)) => {
                let [real, imag] = self.load_parts(pointer, of, span)[..] else { return Value::Poison };
                Value::Complex(self.b.read(real, span), self.b.read(imag, span), complex)
            }
            DType::Compound(id) => match id.get() {
                Compound::Vector(vector) => {
                    let lanes = self.load_parts(pointer, of, span);
                    let lane = |this: &mut Self, local| Value::Scalar(this.b.read(local, span), vector.scalar());
                    let lanes = lanes.into_iter().map(|local| lane(self, local)).collect();
                    Value::Object(ObjectKind::Vector(*vector), lanes)
                }
                Compound::Time(time) => {
                    let count = self.load_number(pointer, Scalar::I64, of, span);
                    Value::Object(ObjectKind::Time(*time), vec![count])
                }
                Compound::Float8(format) => {
                    let bits = self.load_number(pointer, Scalar::U8, of, span);
                    Value::Object(ObjectKind::Float8(*format), vec![bits])
                }
                Compound::Record(_) | Compound::Chars(_) => {
                    let data = Atom::Local(self.b.temp(pointer, span));
                    let ty = ArrayTy { ndim: 0, layout: Layout::C, ..of };
                    let place = ArrayValue { ty, data, shape: Vec::new(), strides: Vec::new() };
                    let kind = if of.dtype.chars().is_some() { ObjectKind::Chars } else { ObjectKind::Record };
                    Value::Object(kind, vec![Value::Array(place)])
                }
                Compound::Nested(nested) => {
                    let data = self.cast_pointer(pointer, ArrayTy { dtype: nested.dtype(), ..of }, span);
                    let data = Atom::Local(self.b.temp(data, span));
                    let shape: Vec<Atom> = nested.shape().iter().map(|extent| Atom::Int(*extent as i64)).collect();
                    let ty = ArrayTy { dtype: nested.dtype(), ndim: shape.len(), layout: Layout::C, ..of };
                    Value::Array(ArrayValue { ty, data, shape, strides: Vec::new() })
                }
            },
        }
    }

    fn load_number(&mut self, pointer: ExprId, scalar: Scalar, of: ArrayTy, span: Span) -> Value {
        let value = self.b.expr(ExprKind::Load(pointer, of.element_align(0)), Type::Scalar(scalar), span);
        // Loaded here: a later store must not change the value.
        let local = self.b.temp(value, span);
        Value::Scalar(self.b.read(local, span), scalar)
    }

    /// Real and imaginary part, or the lanes of a vector.
    fn load_parts(&mut self, pointer: ExprId, of: ArrayTy, span: Span) -> Vec<LocalId> {
        let (scalar, parts) = of.dtype.access();
        let pointer = self.b.temp(pointer, span);
        let load = |this: &mut Self, part: u64| {
            let base = this.b.read(pointer, span);
            let at = this.part_pointer(base, part as i64, span);
            let align = of.element_align(part * scalar.size_bytes());
            let value = this.b.expr(ExprKind::Load(at, align), Type::Scalar(scalar), span);
            this.b.temp(value, span)
        };
        (0..parts).map(|part| load(self, part)).collect()
    }

    /// The pointer to a part of the element at `base`.
    pub(super) fn part_pointer(&mut self, base: ExprId, part: i64, span: Span) -> ExprId {
        if part == 0 {
            return base;
        }
        let ty = self.b.ty(base);
        let index = self.b.i64(part, span);
        self.b.expr(ExprKind::Offset { base, index, scale: 1 }, ty, span)
    }

    /// The same address as a pointer to elements of another array type.
    fn cast_pointer(&mut self, pointer: ExprId, to: ArrayTy, span: Span) -> ExprId {
        self.b.convert(pointer, to.pointer(), span)
    }

    /// Stores a value as the element at a pointer into an array.
    pub(super) fn store(&mut self, pointer: ExprId, of: ArrayTy, value: &Value, span: Span) {
        if value.ty().is_poison() {
            return;
        }
        if let (Value::Int(known), Some(number)) = (value, of.dtype.number())
            && self.is_numpy()
            && !weak::holds(number, *known)
        {
            self.out_of_range(*known, number, span);
            return;
        }
        let parts = match of.dtype {
            DType::Number(Number::Real(scalar)) => self.number(value, scalar, span).map(|value| vec![value]),
            DType::Number(Number::Complex(complex)) => {
                self.complex(value, complex, span).map(|(real, imag)| vec![real, imag])
            }
            DType::Compound(id) => match id.get() {
                Compound::Vector(vector) => self.lanes(value, *vector, span),
                Compound::Time(time) => {
                    let count = self.time_as(value, *time, span);
                    count.and_then(|count| self.number(&count, Scalar::I64, span)).map(|count| vec![count])
                }
                Compound::Float8(format) => self.float8_bits(value, *format, span).map(|bits| vec![bits]),
                Compound::Record(_) => return self.store_record(pointer, of, value, span),
                Compound::Chars(_) => {
                    let data = Atom::Local(self.b.temp(pointer, span));
                    let ty = ArrayTy { ndim: 0, layout: Layout::C, ..of };
                    let place = ArrayValue { ty, data, shape: Vec::new(), strides: Vec::new() };
                    return self.store_text(&place, value, span);
                }
                Compound::Nested(_) => {
                    if let Value::Array(view) = self.load(pointer, of, span) {
                        self.store_view(view, value.clone(), span);
                    }
                    return;
                }
            },
        };
        let Some(parts) = parts else { return self.cannot_store(value, of.dtype, span) };
        if let [value] = parts[..] {
            self.stmt(Ir::Store { pointer, value, align: of.element_align(0) }, span);
            return;
        }
        let (scalar, _) = of.dtype.access();
        let parts: Vec<LocalId> = parts.into_iter().map(|part| self.b.temp(part, span)).collect();
        let pointer = self.b.temp(pointer, span);
        for (part, value) in parts.into_iter().enumerate() {
            let base = self.b.read(pointer, span);
            let at = self.part_pointer(base, part as i64, span);
            let value = self.b.read(value, span);
            let align = of.element_align(part as u64 * scalar.size_bytes());
            self.stmt(Ir::Store { pointer: at, value, align }, span);
        }
    }

    /// A vector's lanes, converted to the vector's number type; a number is broadcast.
    fn lanes(&mut self, value: &Value, vector: Vector, span: Span) -> Option<Vec<ExprId>> {
        match value {
            Value::Object(ObjectKind::Vector(_), lanes) if lanes.len() == usize::from(vector.lanes()) => {
                lanes.iter().map(|lane| self.number(lane, vector.scalar(), span)).collect()
            }
            Value::Scalar(..) | Value::Int(_) | Value::Bool(_) | Value::Object(ObjectKind::Weak, _)
                if value.ty().scalar().is_some() =>
            {
                let value = self.number(value, vector.scalar(), span)?;
                let local = self.b.temp(value, span);
                Some((0..vector.lanes()).map(|_| self.b.read(local, span)).collect())
            }
            Value::Scalar(..)
            | Value::Complex(..)
            | Value::Int(_)
            | Value::Bool(_)
            | Value::Array(_)
            | Value::Object(..)
            | Value::Static(_)
            | Value::Poison => None,
        }
    }

    /// Stores a whole record, from a record of the same type or from a tuple with a value for each field.
    fn store_record(&mut self, pointer: ExprId, of: ArrayTy, value: &Value, span: Span) {
        let ty = ArrayTy { ndim: 0, layout: Layout::C, ..of };
        let data = Atom::Local(self.b.temp(pointer, span));
        let to = ArrayValue { ty, data, shape: Vec::new(), strides: Vec::new() };
        match value {
            Value::Object(ObjectKind::Record, items) => {
                if let [Value::Array(from)] = items.as_slice()
                    && from.ty.dtype == of.dtype
                {
                    return self.copy_bytes(from, &to, span);
                }
            }
            Value::Object(kind, items) if kind.is_tuple() => {
                let DType::Compound(id) = of.dtype else { return };
                let Compound::Record(record) = id.get() else { return };
                if items.len() == record.fields().len() {
                    // All values are evaluated before the first one is stored.
                    let items: Vec<Value> = items.iter().map(|item| self.settle(item.clone(), span)).collect();
                    for (number, item) in items.iter().enumerate() {
                        let Some((pointer, field)) = self.field_pointer(&to, number, span) else { return };
                        self.store(pointer, field, item, span);
                    }
                    return;
                }
            }
            Value::Scalar(..)
            | Value::Complex(..)
            | Value::Int(_)
            | Value::Bool(_)
            | Value::Array(_)
            | Value::Object(..)
            | Value::Static(_)
            | Value::Poison => {}
        }
        self.cannot_store(value, of.dtype, span);
    }

    /// Copies an element; source and destination may be the same. Uses as few accesses as the alignment allows.
    pub(super) fn copy_bytes(&mut self, from: &ArrayValue, to: &ArrayValue, span: Span) {
        let size = to.ty.dtype.size_bytes();
        let align = from.ty.known_align(0).min(to.ty.known_align(0));
        let word = align.min(LONGEST_WORD);
        let (whole, rest) = (size / word, size % word);
        let mut places: Vec<(u64, Scalar)> = Vec::new();
        if whole <= MOST_WORDS {
            places.extend((0..whole).map(|at| (at * word, word_of(word))));
        }
        let mut at = whole * word;
        let mut left = rest;
        while left > 0 {
            let step = if left >= 4 {
                4
            } else if left >= 2 {
                2
            } else {
                1
            }
            .min(word);
            places.push((at, word_of(step)));
            at += step;
            left -= step;
        }
        let pointer = |this: &mut Self, array: &ArrayValue, offset: ExprId, scalar: Scalar| {
            let base = this.use_atom(array.data, span);
            let base = this.b.convert(base, Type::Ptr(Scalar::U8, array.ty.space), span);
            let ty = this.b.ty(base);
            let at = this.b.expr(ExprKind::ByteOffset { base, bytes: offset }, ty, span);
            this.b.convert(at, Type::Ptr(scalar, array.ty.space), span)
        };
        let bytes = |align: u64| Align::Bytes(align as u32);
        if whole > MOST_WORDS {
            let scalar = word_of(word);
            self.repeat(Atom::Int(whole as i64), span, |this, counter| {
                let offset = |this: &mut Self| {
                    let (at, by) = (this.b.read(counter, span), this.b.i64(word as i64, span));
                    this.b.binary(crate::ir::BinaryOp::Mul, at, by, span)
                };
                let at = offset(this);
                let source = pointer(this, from, at, scalar);
                let value = this.b.expr(ExprKind::Load(source, bytes(word)), Type::Scalar(scalar), span);
                let value = this.b.temp(value, span);
                let at = offset(this);
                let pointer = pointer(this, to, at, scalar);
                let value = this.b.read(value, span);
                this.stmt(Ir::Store { pointer, value, align: bytes(word) }, span);
            });
        }
        let mut loaded = Vec::new();
        for (offset, scalar) in &places {
            let align = bytes(known(align, *offset));
            let at = self.b.i64(*offset as i64, span);
            let source = pointer(self, from, at, *scalar);
            let value = self.b.expr(ExprKind::Load(source, align), Type::Scalar(*scalar), span);
            loaded.push((self.b.temp(value, span), align));
        }
        for ((offset, scalar), (value, align)) in places.iter().zip(loaded) {
            let at = self.b.i64(*offset as i64, span);
            let pointer = pointer(self, to, at, *scalar);
            let value = self.b.read(value, span);
            self.stmt(Ir::Store { pointer, value, align }, span);
        }
    }

    /// The pointer to a field of a record, and its element type.
    pub(super) fn field_pointer(
        &mut self,
        record: &ArrayValue,
        number: usize,
        span: Span,
    ) -> Option<(ExprId, ArrayTy)> {
        let ty = record.ty.field(number)?;
        let (_, offset) = record.ty.field_offset(number)?;
        let base = self.use_atom(record.data, span);
        let at = if offset == 0 {
            base
        } else {
            let base_ty = self.b.ty(base);
            let bytes = self.b.i64(offset as i64, span);
            self.b.expr(ExprKind::ByteOffset { base, bytes }, base_ty, span)
        };
        Some((self.cast_pointer(at, ty, span), ty))
    }

    pub(super) fn cannot_store(&mut self, value: &Value, dtype: DType, span: Span) {
        let mut diagnostic = Diagnostic::error(
            Code::BadAssignment,
            span,
            format!("{} cannot be stored into an array of {dtype}", value.ty()),
        );
        if value.ty().number().is_some_and(Number::is_complex) {
            diagnostic = diagnostic.help("store its `.real` or `abs(…)`, or make the array complex");
        } else if matches!(value, Value::Array(_)) {
            diagnostic = diagnostic.help("index the array on the right");
        } else if let DType::Compound(id) = dtype
            && let Compound::Record(record) = id.get()
        {
            let fields = super::function::count(record.fields().len(), "field");
            diagnostic = diagnostic.help(format!("store a record of this type, or a tuple with its {fields}"));
        } else if matches!(value, Value::Object(ObjectKind::Float8(_), _)) {
            diagnostic = diagnostic.help(float8::HELP);
        } else if dtype.number().is_some() || dtype.float8().is_some() {
            diagnostic = diagnostic.help("store a number");
        }
        self.report(diagnostic);
    }
}

impl ArrayTy {
    /// The alignment of its elements at an offset in bytes.
    pub(super) fn known_align(self, offset: u64) -> u64 {
        if self.packed { 1 } else { known(self.dtype.access_align(), offset) }
    }

    /// The known alignment at an offset in bytes into an element, for an access to one of its numbers.
    pub(super) fn element_align(self, offset: u64) -> Align {
        let (scalar, _) = self.dtype.access();
        let align = self.known_align(offset);
        if align == scalar.align_bytes() || self.dtype.number().is_some_and(|_| !self.packed) {
            Align::Natural
        } else {
            Align::Bytes(align as u32)
        }
    }

    /// The dtype and offset of a record's field.
    pub(super) fn field_offset(self, number: usize) -> Option<(DType, u64)> {
        let DType::Compound(id) = self.dtype else { return None };
        let Compound::Record(record) = id.get() else { return None };
        record.fields().get(number).map(|field| (field.dtype, field.offset))
    }

    /// The index of the record's field of this name.
    pub(super) fn find_field(self, name: &str) -> Option<usize> {
        let DType::Compound(id) = self.dtype else { return None };
        let Compound::Record(record) = id.get() else { return None };
        record.find(name)
    }

    /// Arrays of a record's field: the dimensions of the array of records, followed by those of an array field.
    pub(super) fn field(self, number: usize) -> Option<Self> {
        let (dtype, offset) = self.field_offset(number)?;
        let packed = self.known_align(offset) < dtype.access_align();
        Some(Self { dtype, packed, ..self })
    }
}

/// The greatest power of two that divides `align` and an offset.
fn known(align: u64, offset: u64) -> u64 {
    if offset == 0 { align } else { align.min(1 << offset.trailing_zeros().min(32)) }
}

/// The unsigned integer of a size in bytes: 1, 2, 4 or 8.
fn word_of(bytes: u64) -> Scalar {
    match bytes {
        8 => Scalar::U64,
        4 => Scalar::U32,
        2 => Scalar::U16,
        _ => Scalar::U8,
    }
}
