//! Composed objects: records, vectors, named tuples, dataclasses, enums.

use weft_artifact::{ClassId, ClassKind, Compound, DType, Layout};

use super::{Args, Index};
use crate::{
    diagnostic::{self, Code, Diagnostic},
    frontend::{
        function::count,
        lowerer::FnLowerer,
        object::{MatrixObject, ObjectKind},
        refusals,
        ty::ArrayTy,
        value::{ArrayValue, Atom, Value},
    },
    intrinsics,
    request::Captured,
    source::Span,
    syntax::ast::BinOp,
};

/// The names of a vector's lanes.
const LANES: [&str; 4] = ["x", "y", "z", "w"];

/// The attributes of a swizzled array.
const SWIZZLED_ATTRIBUTES: [&str; 6] = ["shape", "ndim", "size", "dtype", "itemsize", "nbytes"];

impl FnLowerer<'_> {
    /// An attribute of an object; `None` if it has none of this name.
    pub(super) fn object_attribute(
        &mut self,
        kind: &ObjectKind,
        items: &[Value],
        attr: &str,
        span: Span,
    ) -> Option<Value> {
        match (kind, items) {
            (ObjectKind::Struct(class), items) => items.get(class.get().find(attr)?).cloned(),
            (ObjectKind::Enum(_), [value]) => match attr {
                "value" => Some(value.clone()),
                "real" if kind.is_number() => Some(value.clone()),
                _ => None,
            },
            (ObjectKind::Weak, [number]) if matches!(attr, "real" | "imag") => {
                let part = self.attribute_of(number.clone(), attr, span);
                Some(self.python(part, span))
            }
            (ObjectKind::Record, [Value::Array(place)]) => {
                let number = place.ty.find_field(attr)?;
                Some(self.field(place, number, span))
            }
            (ObjectKind::Vector(_), lanes) => lanes.get(LANES.iter().position(|lane| *lane == attr)?).cloned(),
            (ObjectKind::CTypes, [Value::Array(array)]) if attr == "data" => Some(self.address_of_array(array, span)),
            (ObjectKind::Swizzled(_), [Value::Array(array)]) if SWIZZLED_ATTRIBUTES.contains(&attr) => {
                Some(self.array_attribute(array, attr, span))
            }
            (ObjectKind::Swizzled(swizzle), [Value::Array(array)]) if attr == "T" && array.ty.ndim == 2 => {
                Some(Value::Object(ObjectKind::Swizzled(*swizzle), vec![Self::transposed(array)]))
            }
            (ObjectKind::Range(_), [start, stop, step]) => match attr {
                "start" => Some(start.clone()),
                "stop" => Some(stop.clone()),
                "step" => Some(step.clone()),
                _ => None,
            },
            (
                ObjectKind::Tuple
                | ObjectKind::Unrolled
                | ObjectKind::Enum(_)
                | ObjectKind::Weak
                | ObjectKind::Record
                | ObjectKind::Pointer
                | ObjectKind::VoidPointer
                | ObjectKind::Chars
                | ObjectKind::Time(_)
                | ObjectKind::Float8(_)
                | ObjectKind::Slice
                | ObjectKind::Group(_)
                | ObjectKind::Matrix(_)
                | ObjectKind::Formatted(_)
                | ObjectKind::Closure(_)
                | ObjectKind::NdIndex
                | ObjectKind::NdEnumerate
                | ObjectKind::Flat
                | ObjectKind::Swizzled(_)
                | ObjectKind::Barrier
                | ObjectKind::MapBox(_)
                | ObjectKind::CTypes
                | ObjectKind::Optional
                | ObjectKind::Range(_)
                | ObjectKind::Enumerate
                | ObjectKind::Zip
                | ObjectKind::Reversed
                | ObjectKind::Iterator(_)
                | ObjectKind::Generator(_),
                _,
            ) => None,
        }
    }

    /// The names of an object's attributes, for "did you mean".
    pub(super) fn object_attributes(kind: &ObjectKind, items: &[Value]) -> Vec<&'static str> {
        match (kind, items) {
            (ObjectKind::Struct(class), _) => class.get().fields.iter().map(String::as_str).collect(),
            (ObjectKind::Group(group), _) => {
                let class = format!("weft.cuda.cg.{}", group.name());
                intrinsics::members(&class).collect()
            }
            (ObjectKind::Matrix(MatrixObject::Tile(_)), _) => intrinsics::members("weft.cuda.mma.Tile").collect(),
            (ObjectKind::Barrier, _) => intrinsics::members("weft.cuda.Barrier").collect(),
            (ObjectKind::Enum(_), _) => vec!["value"],
            (ObjectKind::Weak, _) => vec!["real", "imag"],
            (ObjectKind::Record, [Value::Array(place)]) => {
                let DType::Compound(id) = place.ty.dtype else { return Vec::new() };
                let Compound::Record(record) = id.get() else { return Vec::new() };
                record.fields().iter().map(|field| field.name.as_str()).collect()
            }
            (ObjectKind::Vector(vector), _) => LANES[..usize::from(vector.lanes())].to_vec(),
            (ObjectKind::Range(_), _) => vec!["start", "stop", "step"],
            (ObjectKind::CTypes, _) => vec!["data"],
            (ObjectKind::Swizzled(_), _) => SWIZZLED_ATTRIBUTES.iter().copied().chain(["T", "view"]).collect(),
            (
                ObjectKind::Tuple
                | ObjectKind::Unrolled
                | ObjectKind::Matrix(MatrixObject::Fragment(..) | MatrixObject::Shared(..) | MatrixObject::InFlight(..))
                | ObjectKind::Record
                | ObjectKind::Pointer
                | ObjectKind::VoidPointer
                | ObjectKind::Chars
                | ObjectKind::Time(_)
                | ObjectKind::Float8(_)
                | ObjectKind::Slice
                | ObjectKind::Formatted(_)
                | ObjectKind::Closure(_)
                | ObjectKind::NdIndex
                | ObjectKind::NdEnumerate
                | ObjectKind::Flat
                | ObjectKind::MapBox(_)
                | ObjectKind::Optional
                | ObjectKind::Enumerate
                | ObjectKind::Zip
                | ObjectKind::Reversed
                | ObjectKind::Iterator(_)
                | ObjectKind::Generator(_),
                _,
            ) => Vec::new(),
        }
    }

    /// Loads a field of the record at an address.
    pub(in crate::frontend) fn field(&mut self, place: &ArrayValue, number: usize, span: Span) -> Value {
        let Some((pointer, of)) = self.field_pointer(place, number, span) else { return Value::Poison };
        self.load(pointer, of, span)
    }

    /// The record's field that an index selects: by name, or by position.
    fn field_number(&mut self, place: &ArrayValue, index: &FieldIndex, span: Span) -> Option<usize> {
        let found = match index {
            FieldIndex::Name(name) => place.ty.find_field(name),
            FieldIndex::Position(at) => {
                let DType::Compound(id) = place.ty.dtype else { return None };
                let Compound::Record(record) = id.get() else { return None };
                let len = record.fields().len() as i64;
                usize::try_from(if *at < 0 { at + len } else { *at }).ok().filter(|at| *at < record.fields().len())
            }
        };
        if found.is_none() {
            let what = match index {
                FieldIndex::Name(name) => format!("`{name}`"),
                FieldIndex::Position(at) => format!("number {at}"),
            };
            let mut diagnostic =
                Diagnostic::error(Code::NoSuchAttribute, span, format!("{} has no field {what}", place.ty.dtype));
            let value = Value::Array(place.clone());
            let known = Self::object_attributes(&ObjectKind::Record, std::slice::from_ref(&value));
            if let FieldIndex::Name(name) = index
                && let Some(near) = diagnostic::closest(name, known)
            {
                diagnostic = diagnostic.help(format!("did you mean `{near}`?"));
            }
            self.report(diagnostic);
        }
        found
    }

    /// `record[index]`.
    pub(super) fn record_item(&mut self, place: &ArrayValue, index: &FieldIndex, span: Span) -> Value {
        match self.field_number(place, index, span) {
            Some(number) => self.field(place, number, span),
            None => Value::Poison,
        }
    }

    /// `record[index] = value` or `record.name = value`.
    pub(in crate::frontend) fn store_field(
        &mut self,
        place: &ArrayValue,
        index: &FieldIndex,
        value: &Value,
        span: Span,
    ) {
        if place.ty.readonly {
            self.report(refusals::readonly(place.ty.dtype, span));
            return;
        }
        let Some(number) = self.field_number(place, index, span) else { return };
        let Some((pointer, of)) = self.field_pointer(place, number, span) else { return };
        self.store(pointer, of, value, span);
    }

    /// All fields of a record.
    pub(in crate::frontend) fn record_fields(&mut self, place: &ArrayValue, span: Span) -> Vec<Value> {
        let value = Value::Array(place.clone());
        let count = Self::object_attributes(&ObjectKind::Record, std::slice::from_ref(&value)).len();
        (0..count).map(|number| self.field(place, number, span)).collect()
    }

    /// `records.name`: a view of one field of all records; the dimensions of an array field come after theirs.
    pub(in crate::frontend) fn field_view(&mut self, records: &ArrayValue, name: &str, span: Span) -> Option<Value> {
        let number = records.ty.find_field(name)?;
        let (pointer, of) = self.field_pointer(records, number, span)?;
        let mut shape = records.shape.clone();
        let mut strides: Vec<Atom> = (0..records.ty.ndim).map(|dim| self.stride(records, dim, span)).collect();
        let mut ty = ArrayTy { layout: if records.ty.ndim == 0 { Layout::C } else { Layout::Any }, ..of };
        let mut pointer = pointer;
        if let DType::Compound(id) = of.dtype
            && let Compound::Nested(nested) = id.get()
        {
            ty.dtype = nested.dtype();
            ty.ndim += nested.shape().len();
            pointer = self.b.convert(pointer, ty.pointer(), span);
            let mut stride = nested.dtype().size_bytes() as i64 * nested.shape().iter().product::<u64>() as i64;
            for extent in nested.shape() {
                stride = stride.checked_div(*extent as i64).unwrap_or(0);
                shape.push(Atom::Int(*extent as i64));
                strides.push(Atom::Int(stride));
            }
        }
        if ty.layout == Layout::C {
            strides.clear();
        }
        let data = Atom::Local(self.b.temp(pointer, span));
        Some(Value::Array(ArrayValue { ty, data, shape, strides }))
    }

    /// `float32x4(…)`: from numbers, and from smaller vectors for several lanes each. `float8_e5m2(…)`: from a number.
    pub(super) fn vector(&mut self, dtype: DType, args: Args, span: Span) -> Value {
        if let Some(format) = dtype.float8() {
            return self.float8(format, args, span);
        }
        let DType::Compound(id) = dtype else { return Value::Poison };
        let Compound::Vector(vector) = id.get() else {
            let diagnostic =
                Diagnostic::error(Code::NotCallable, span, format!("{dtype} cannot be called in a kernel"));
            return self.report(diagnostic.help("assign the fields of an element of an array"));
        };
        if let Some((name, _, at)) = args.keywords.first() {
            return self.error(Code::ArgumentCount, *at, format!("`{dtype}` has no parameter `{name}`"));
        }
        let mut lanes = Vec::new();
        for (value, at) in &args.positional {
            match value {
                Value::Object(ObjectKind::Vector(_), items) => lanes.extend(items.iter().cloned()),
                Value::Object(kind, items) if kind.is_tuple() => lanes.extend(items.iter().cloned()),
                Value::Poison => return Value::Poison,
                other @ (Value::Scalar(..)
                | Value::Complex(..)
                | Value::Int(_)
                | Value::Bool(_)
                | Value::Array(_)
                | Value::Object(..)
                | Value::Static(_)) => {
                    if other.ty().scalar().is_none() {
                        let message = format!(
                            "{} cannot be a component of {} {dtype}",
                            other.ty(),
                            weft_artifact::article(&dtype.to_string())
                        );
                        return self.error(Code::NoMatchingOverload, *at, message);
                    }
                    lanes.push(other.clone());
                }
            }
        }
        // An optional value in a tuple is used as a number here.
        lanes = lanes.into_iter().map(|lane| self.not_none(lane, span)).collect();
        let wanted = usize::from(vector.lanes());
        if let ([one], 1) = (lanes.as_slice(), args.positional.len()) {
            // A single number is broadcast to all lanes.
            let one = self.settle(one.clone(), span);
            lanes = (0..wanted).map(|_| self.reread(&one, span)).collect();
        }
        if lanes.len() != wanted {
            let message = format!("`{dtype}` is made of {}, not of {}", count(wanted, "number"), lanes.len());
            return self.error(Code::ArgumentCount, span, message);
        }
        let lanes: Option<Vec<Value>> = lanes
            .iter()
            .map(|lane| self.number(lane, vector.scalar(), span).map(|lane| Value::Scalar(lane, vector.scalar())))
            .collect();
        match lanes {
            Some(lanes) => Value::Object(ObjectKind::Vector(*vector), lanes),
            None => {
                self.error(Code::NoMatchingOverload, span, format!("the components of {dtype} must be real numbers"))
            }
        }
    }

    /// An operator on vectors, lane by lane; a number is broadcast. `None` if no operand is a vector.
    pub(super) fn vector_binary(&mut self, op: BinOp, left: &Value, right: &Value, span: Span) -> Option<Value> {
        let vector = match (left, right) {
            (Value::Object(ObjectKind::Vector(a), _), Value::Object(ObjectKind::Vector(b), _)) => {
                if a.lanes() != b.lanes() {
                    return None;
                }
                *a
            }
            (Value::Object(ObjectKind::Vector(vector), _), _) | (_, Value::Object(ObjectKind::Vector(vector), _)) => {
                *vector
            }
            _ => return None,
        };
        let lanes = usize::from(vector.lanes());
        let (left, right) = (self.spread(left, lanes, span)?, self.spread(right, lanes, span)?);
        let mut out = Vec::new();
        for (a, b) in left.into_iter().zip(right) {
            let result = self.binary(op, a, b, span);
            // An operation on a vector's lanes preserves its element type: a float32 vector times 2 is a float32
            // vector.
            let Some(expr) = self.number(&result, vector.scalar(), span) else { return Some(Value::Poison) };
            out.push(Value::Scalar(expr, vector.scalar()));
        }
        Some(Value::Object(ObjectKind::Vector(vector), out))
    }

    /// A value as `lanes` lanes; `None` if it is not a vector or a number.
    fn spread(&mut self, value: &Value, lanes: usize, span: Span) -> Option<Vec<Value>> {
        match value {
            Value::Object(ObjectKind::Vector(_), items) => Some(items.clone()),
            Value::Scalar(..) | Value::Int(_) | Value::Bool(_) | Value::Object(ObjectKind::Weak, _)
                if value.ty().scalar().is_some() =>
            {
                let value = self.settle(value.clone(), span);
                Some((0..lanes).map(|_| self.reread(&value, span)).collect())
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

    /// A call of a named tuple's or a dataclass's class.
    pub(super) fn construct(&mut self, class: ClassId, defaults: &[Option<Captured>], args: Args, span: Span) -> Value {
        let described = class.get();
        if described.kind.is_enum() {
            let diagnostic =
                Diagnostic::error(Code::NotCallable, span, format!("`{class}` cannot be called in a kernel"));
            return self.report(
                diagnostic.help(format!(
                    "use a member: `{class}.{}`",
                    described.fields.first().map_or("NAME", String::as_str)
                )),
            );
        }
        let fields = &described.fields;
        let mut bound: Vec<Option<Value>> = fields.iter().map(|_| None).collect();
        if args.positional.len() > fields.len() {
            let message = format!("`{class}` takes {}, not {}", count(fields.len(), "field"), args.positional.len());
            return self.error(Code::ArgumentCount, span, message);
        }
        for (place, (value, _)) in bound.iter_mut().zip(args.positional) {
            *place = Some(value);
        }
        for (name, value, at) in args.keywords {
            match described.find(&name).and_then(|number| bound.get_mut(number)) {
                Some(place) if place.is_none() => *place = Some(value),
                Some(_) => {
                    return self.error(Code::ArgumentCount, at, format!("`{class}` got multiple values for `{name}`"));
                }
                None => return self.error(Code::ArgumentCount, at, format!("`{class}` has no field `{name}`")),
            }
        }
        let mut items = Vec::new();
        for (number, place) in bound.into_iter().enumerate() {
            items.push(match (place, defaults.get(number)) {
                (Some(value), _) => value,
                (None, Some(Some(default))) => self.captured(default, &fields[number], span),
                (None, Some(None) | None) => {
                    let message = format!("`{class}` needs a value for `{}`", fields[number]);
                    return self.error(Code::ArgumentCount, span, message);
                }
            });
        }
        Value::Object(ObjectKind::Struct(class), items)
    }

    /// A member of an enum class, or a constant of a class.
    pub(super) fn class_attribute(
        &mut self,
        class: ClassId,
        values: &[Option<Captured>],
        attr: &str,
        span: Span,
    ) -> Option<Value> {
        let described = class.get();
        match described.kind {
            ClassKind::Enum | ClassKind::IntEnum => {
                let value = values.get(described.find(attr)?)?.as_ref()?;
                let value = self.captured(value, attr, span);
                Some(Value::Object(ObjectKind::Enum(class), vec![value]))
            }
            ClassKind::NamedTuple | ClassKind::Dataclass => None,
        }
    }
}

/// The selector of a field of a record.
#[derive(Debug)]
pub(in crate::frontend) enum FieldIndex {
    /// Its name.
    Name(String),
    /// Its position, from the end if negative.
    Position(i64),
}

impl FieldIndex {
    /// The field that indices select, if they select one.
    pub(super) fn of(indices: &[Index]) -> Option<Self> {
        match indices {
            [Index::Name(name)] => Some(Self::Name(name.clone())),
            [Index::At { known: Some(at), .. }] => Some(Self::Position(*at)),
            _ => None,
        }
    }
}
