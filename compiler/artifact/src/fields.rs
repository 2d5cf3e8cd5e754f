//! The fields of an argument: the values that are passed for it, their order, and their names.
//!
//! This is the only traversal of an argument's type. Keys, the cells of a launch, the slots of a kernel and the
//! variables of its parameters all use it, so they are always consistent. A new kind of argument is an arm of each
//! `match` here.

use crate::{
    artifact::{SlotField, SlotType, Step},
    compound::Compound,
    dtype::DType,
    number::{Number, Scalar},
    types::{ArgType, ArrayType, Layout},
};

/// An argument, or an item of a tuple or an object, that has fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ArgItem {
    /// Passed by value.
    Value(DType),
    /// An array.
    Array(ArrayType),
    /// A record in device memory.
    Record(DType),
    /// The address of elements; of bytes if the element type is unknown.
    Pointer(DType),
}

/// A field of a leaf.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field {
    /// The field.
    pub field: SlotField,
    /// How a kernel receives it.
    pub ty: SlotType,
}

/// The set of fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Which {
    /// The fields that a kernel may take: an array's strides only if the layout does not determine them.
    Kernel,
    /// The fields that a launch passes, in the same cells for every layout: all strides, and a spare cell for an
    /// imaginary part after a real number, because a declared signature may convert it to a complex number.
    Launch,
}

impl ArgItem {
    /// Its fields, in the order in which they are passed.
    pub fn fields(self, which: Which) -> Vec<Field> {
        let long = SlotType::Scalar(Scalar::I64);
        let one = |field, ty| Field { field, ty };
        match self {
            Self::Value(DType::Number(Number::Complex(complex))) => {
                let part = SlotType::Scalar(complex.part());
                vec![one(SlotField::Real, part), one(SlotField::Imag, part)]
            }
            Self::Value(DType::Number(Number::Real(scalar))) => {
                let mut fields = vec![one(SlotField::Value, SlotType::Scalar(scalar))];
                if which == Which::Launch {
                    fields.push(one(SlotField::Imag, SlotType::Scalar(Scalar::F64)));
                }
                fields
            }
            Self::Value(DType::Compound(id)) if matches!(id.get(), Compound::Time(_)) => {
                vec![one(SlotField::Value, long)]
            }
            Self::Value(dtype @ DType::Compound(_)) => {
                let word = |bytes: u64| u32::try_from(bytes).unwrap_or(u32::MAX);
                let (size, align) = (word(dtype.size_bytes()), word(dtype.align_bytes()));
                vec![one(SlotField::Value, SlotType::Bytes { size, align })]
            }
            Self::Array(array) => {
                let mut fields = vec![one(SlotField::Data, SlotType::Pointer)];
                fields.extend((0..array.ndim).map(|dim| one(SlotField::Shape(dim), long)));
                if array.layout == Layout::Any || which == Which::Launch {
                    fields.extend((0..array.ndim).map(|dim| one(SlotField::Stride(dim), long)));
                }
                fields
            }
            Self::Record(_) | Self::Pointer(_) => vec![one(SlotField::Data, SlotType::Pointer)],
        }
    }

    /// The number of its cells in a launch.
    pub fn cells(self) -> usize {
        self.fields(Which::Launch).iter().map(|field| field.ty.cells()).sum()
    }

    /// The first of its cells that contain a field; `None` if it has no such field.
    pub fn cell(self, field: SlotField) -> Option<usize> {
        // A signature may declare a number as complex, so that its value is the real part, or as a pointer, so that its
        // value is the address.
        let same = |known: SlotField| {
            known == field || matches!((known, field), (SlotField::Value, SlotField::Real | SlotField::Data))
        };
        let mut at = 0;
        for known in self.fields(Which::Launch) {
            if same(known.field) {
                return Some(at);
            }
            at += known.ty.cells();
        }
        None
    }
}

impl ArgType {
    /// Whether an optional value is present. Its path is the first step into the [`Self::Optional`].
    const GIVEN: Self = Self::Value(DType::BOOL);

    /// Visits the values and arrays in it, each with its path through nested tuples and objects.
    pub fn for_each_leaf(&self, visit: &mut dyn FnMut(&[Step], ArgItem)) {
        self.traverse(&mut Vec::new(), visit);
    }

    fn traverse(&self, path: &mut Vec<Step>, visit: &mut dyn FnMut(&[Step], ArgItem)) {
        match self {
            Self::Value(dtype) => visit(path, ArgItem::Value(*dtype)),
            Self::Enum(_, value) => value.traverse(path, visit),
            Self::Array(array) => visit(path, ArgItem::Array(*array)),
            Self::Record(dtype) => visit(path, ArgItem::Record(*dtype)),
            Self::Pointer(dtype) => visit(path, ArgItem::Pointer(dtype.unwrap_or(DType::U8))),
            Self::None | Self::Class(_) => {}
            Self::Optional(of) => {
                for (step, item) in [&Self::GIVEN, of.as_ref()].into_iter().enumerate() {
                    path.push(step as Step);
                    item.traverse(path, visit);
                    path.pop();
                }
            }
            Self::Tuple(items) | Self::Struct(_, items) => {
                for (step, item) in items.iter().enumerate() {
                    path.push(step as Step);
                    item.traverse(path, visit);
                    path.pop();
                }
            }
        }
    }

    /// The value or array at a path through nested tuples and objects.
    pub fn leaf(&self, path: &[Step]) -> Option<ArgItem> {
        match (self, path) {
            (Self::Value(dtype), []) => Some(ArgItem::Value(*dtype)),
            (Self::Enum(_, value), path) => value.leaf(path),
            (Self::Array(array), []) => Some(ArgItem::Array(*array)),
            (Self::Record(dtype), []) => Some(ArgItem::Record(*dtype)),
            (Self::Pointer(dtype), []) => Some(ArgItem::Pointer(dtype.unwrap_or(DType::U8))),
            (Self::Tuple(items) | Self::Struct(_, items), [step, rest @ ..]) => items.get(*step as usize)?.leaf(rest),
            (Self::Optional(_), [0]) => Self::GIVEN.leaf(&[]),
            (Self::Optional(of), [1, rest @ ..]) => of.leaf(rest),
            (
                Self::Value(_)
                | Self::Array(_)
                | Self::Tuple(_)
                | Self::None
                | Self::Struct(..)
                | Self::Record(_)
                | Self::Class(_)
                | Self::Pointer(_)
                | Self::Optional(_),
                _,
            ) => None,
        }
    }

    /// The fields that a kernel may take of it, each with its path, in order.
    pub fn fields(&self) -> Vec<(Vec<Step>, Field)> {
        let mut all = Vec::new();
        self.for_each_leaf(&mut |path, leaf| {
            all.extend(leaf.fields(Which::Kernel).into_iter().map(|field| (path.to_vec(), field)));
        });
        all
    }

    /// The number of its cells in a launch.
    pub fn cells(&self) -> usize {
        let mut cells = 0;
        self.for_each_leaf(&mut |_, leaf| cells += leaf.cells());
        cells
    }

    /// The number of values and arrays in it.
    pub fn leaves(&self) -> usize {
        let mut leaves = 0;
        self.for_each_leaf(&mut |_, _| leaves += 1);
        leaves
    }

    /// The first of its cells that contain a field; `None` if it has no such field.
    pub fn cell(&self, path: &[Step], field: SlotField) -> Option<usize> {
        let place = self.leaf(path)?.cell(field)?;
        let mut before = 0;
        let mut found = false;
        self.for_each_leaf(&mut |other, leaf| {
            found |= other == path;
            before += if found { 0 } else { leaf.cells() };
        });
        Some(before + place)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Class, ClassId, ClassKind, Record, Time};

    fn array(layout: Layout) -> ArgType {
        ArgType::Array(ArrayType { dtype: DType::C64, ndim: 2, layout, readonly: false })
    }

    fn nested() -> ArgType {
        ArgType::Tuple(vec![DType::I8.into(), ArgType::Tuple(vec![]), ArgType::Tuple(vec![array(Layout::Any)])])
    }

    #[test]
    fn a_kernel_takes_strides_only_where_it_needs_them() {
        let names = |ty: &ArgType| -> Vec<String> {
            ty.fields().into_iter().map(|(path, field)| format!("{path:?}{}", field.field.suffix())).collect()
        };
        assert_eq!(names(&array(Layout::F)), ["[].data", "[].shape0", "[].shape1"]);
        assert_eq!(names(&Number::C64.into()), ["[].real", "[].imag"]);
        assert_eq!(
            names(&nested()),
            ["[0]", "[2, 0].data", "[2, 0].shape0", "[2, 0].shape1", "[2, 0].stride0", "[2, 0].stride1"]
        );
    }

    #[test]
    fn every_field_has_cells_of_its_own() {
        for ty in [nested(), array(Layout::C), Number::BOOL.into(), Number::C128.into()] {
            let mut used = vec![false; ty.cells()];
            for (path, field) in ty.fields() {
                let first = ty.cell(&path, field.field).expect("has the field");
                for cell in &mut used[first..first + field.ty.cells()] {
                    assert!(!*cell, "{ty} {path:?}");
                    *cell = true;
                }
            }
        }
    }

    #[test]
    fn cells_do_not_depend_on_the_layout() {
        for field in [SlotField::Data, SlotField::Shape(1), SlotField::Stride(0)] {
            assert_eq!(array(Layout::C).cell(&[], field), array(Layout::Any).cell(&[], field));
        }
        assert_eq!(nested().cell(&[0], SlotField::Value), Some(0));
        assert_eq!(nested().cell(&[0], SlotField::Imag), Some(1));
        assert_eq!(nested().cell(&[2, 0], SlotField::Stride(1)), Some(6));
        assert_eq!(nested().cell(&[2, 0], SlotField::Shape(2)), None);
        assert_eq!(nested().cell(&[2], SlotField::Data), None);
        assert_eq!(nested().cell(&[0, 0], SlotField::Value), None);
    }

    #[test]
    fn objects_are_passed_field_by_field() {
        let class = |kind| {
            let fields = vec!["a".to_owned(), "b".to_owned()];
            ClassId::intern(Class { kind, name: "C".to_owned(), identity: "fields.C".to_owned(), fields })
                .expect("there is room")
        };
        let record = Record::in_order(&[("a", DType::F64), ("b", DType::C128)], false).expect("is a record");
        let record = ArgType::Record(DType::intern(Compound::Record(record)).expect("there is room"));
        let member = ArgType::Enum(class(ClassKind::Enum), Box::new(Number::C64.into()));
        let ty = ArgType::Struct(
            class(ClassKind::Dataclass),
            vec![ArgType::None, ArgType::Tuple(vec![record.clone(), member.clone()])],
        );
        let fields: Vec<_> = ty.fields().into_iter().map(|(path, field)| (path, field.field)).collect();
        assert_eq!(
            fields,
            [(vec![1, 0], SlotField::Data), (vec![1, 1], SlotField::Real), (vec![1, 1], SlotField::Imag)]
        );
        assert_eq!((ty.leaves(), ty.cells(), ArgType::None.cells()), (2, 1 + 2, 0));
        assert_eq!(ty.cell(&[1, 1], SlotField::Imag), Some(2));
        assert_eq!(ty.cell(&[0], SlotField::Value), None);
        assert_eq!(record.cell(&[], SlotField::Data), Some(0));
        assert_eq!(record.cell(&[], SlotField::Value), None);
        assert_eq!(member.cells(), ArgType::from(Number::C64).cells());
    }

    #[test]
    fn a_time_is_passed_as_its_count() {
        let time = Time::from_name("datetime64[ns]").expect("is a type");
        let ty = ArgType::from(DType::intern(Compound::Time(time)).expect("there is room"));
        let fields = ty.fields();
        assert_eq!(
            fields.first().map(|(_, field)| (field.field, field.ty)),
            Some((SlotField::Value, SlotType::Scalar(Scalar::I64)))
        );
        assert_eq!((fields.len(), ty.cells()), (1, 1));
    }

    #[test]
    fn a_long_value_has_as_many_cells_as_it_takes() {
        let record = Record::in_order(&[("a", DType::F64), ("b", DType::F64), ("c", DType::I8)], false);
        let dtype = DType::intern(Compound::Record(record.expect("is a record"))).expect("there is room");
        let ty = ArgType::Tuple(vec![dtype.into(), DType::F32.into()]);
        assert_eq!(ty.cells(), 3 + 2);
        assert_eq!(ty.cell(&[1], SlotField::Value), Some(3));
        assert_eq!(ty.fields()[0].1.ty, SlotType::Bytes { size: 17, align: 1 });
    }
}
