//! Type keys: the types of a launch's arguments as a short list of `u32` words, fast to build and to compare.
//!
//! A value is one word, an array is one word, a tuple is one word followed by its elements. An object is a word for its
//! class followed by its representation: the value of an enum's member, a tuple for other objects. The same traversal
//! computes each argument's *cells*, as defined by [`weft_artifact::ArgItem`]: two for a number (value, or real and
//! imaginary parts), one for an array's address, and one for each extent and each stride. The cells of a type tuple
//! therefore always have the same offsets.

use weft_artifact::{ArgItem, ArgType, ArrayType, ClassId, DType, Layout, Slot, SlotField, SlotSource, Step};

const TUPLE: u32 = 1 << 31;
const ARRAY: u32 = 1 << 30;
const READONLY: u32 = 1 << 29;
const LAYOUT: u32 = 27;
const NDIM: u32 = 24;
/// The position of the kind, if neither `TUPLE` nor `ARRAY` is set. It determines the meaning of the lower bits.
const KIND: u32 = 24;
const VALUE: u32 = 0;
const NONE: u32 = 1;
const STRUCT: u32 = 2;
const ENUM: u32 = 3;
const RECORD: u32 = 4;
const CLASS: u32 = 5;

/// The word that encodes a value.
pub(crate) fn value(dtype: DType) -> u32 {
    dtype.code()
}

/// The word that encodes an array.
pub(crate) fn array(array: ArrayType) -> u32 {
    let layout = match array.layout {
        Layout::C => 0,
        Layout::F => 1,
        Layout::Any => 2,
    };
    let readonly = if array.readonly { READONLY } else { 0 };
    ARRAY | readonly | layout << LAYOUT | u32::from(array.ndim) << NDIM | array.dtype.code()
}

/// The word before a tuple's elements.
pub(crate) fn tuple(len: usize) -> u32 {
    TUPLE | len as u32
}

/// The word that encodes `None`.
pub(crate) const fn none() -> u32 {
    NONE << KIND
}

/// The word before the encoded [`tuple`] of a named tuple's or dataclass's fields.
pub(crate) fn object(class: ClassId) -> u32 {
    STRUCT << KIND | class.code()
}

/// The word before the encoded value of an enum's member.
pub(crate) fn member(class: ClassId) -> u32 {
    ENUM << KIND | class.code()
}

/// The word that encodes a record passed by address.
pub(crate) fn record(dtype: DType) -> u32 {
    RECORD << KIND | dtype.code()
}

/// The word that encodes a type passed as an argument.
pub(crate) fn class(dtype: DType) -> u32 {
    CLASS << KIND | dtype.code()
}

/// The types that a key encodes.
pub(crate) fn decode(key: &[u32]) -> Vec<ArgType> {
    let mut words = key.iter().copied();
    let mut types = Vec::new();
    while let Some(ty) = next(&mut words) {
        types.push(ty);
    }
    types
}

fn next(words: &mut impl Iterator<Item = u32>) -> Option<ArgType> {
    let word = words.next()?;
    if word & TUPLE != 0 {
        return Some(ArgType::Tuple((0..word & !TUPLE).map_while(|_| next(words)).collect()));
    }
    let code = word & (DType::CODES - 1);
    if word & ARRAY == 0 {
        return match word >> KIND {
            VALUE => DType::from_code(code).map(ArgType::Value),
            NONE => Some(ArgType::None),
            STRUCT => match (ClassId::from_code(code)?, next(words)?) {
                (class, ArgType::Tuple(items)) => Some(ArgType::Struct(class, items)),
                _ => None,
            },
            ENUM => Some(ArgType::Enum(ClassId::from_code(code)?, Box::new(next(words)?))),
            RECORD => DType::from_code(code).map(ArgType::Record),
            CLASS => DType::from_code(code).map(ArgType::Class),
            _ => None,
        };
    }
    let dtype = DType::from_code(code)?;
    let layout = match word >> LAYOUT & 3 {
        0 => Layout::C,
        1 => Layout::F,
        _ => Layout::Any,
    };
    Some(ArgType::Array(ArrayType { dtype, ndim: (word >> NDIM & 7) as u8, layout, readonly: word & READONLY != 0 }))
}

/// The source of a slot of a launch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CellSource {
    /// A cell of the argument.
    Cell(usize),
    /// 0: an optional argument is `None`.
    Missing,
    /// 1: an optional argument is not `None`.
    There,
}

/// The index of the first cell after those of the arguments. It contains 1; all cells after it contain 0.
fn cell_after(given: &[ArgType]) -> usize {
    given.iter().map(ArgType::cells).sum()
}

/// The position of a field of a declared argument among the given cells.
fn source_of(given: &ArgType, declared: &ArgType, path: &[u32], field: SlotField) -> Option<CellSource> {
    match (given, declared, path) {
        (ArgType::None, ArgType::Optional(_), _) => Some(CellSource::Missing),
        (_, ArgType::Optional(_), [0]) => Some(CellSource::There),
        (given, ArgType::Optional(of), [1, rest @ ..]) => source_of(given, of, rest, field),
        (
            ArgType::Tuple(given) | ArgType::Struct(_, given),
            ArgType::Tuple(declared) | ArgType::Struct(_, declared),
            [step, rest @ ..],
        ) => {
            let step = *step as usize;
            let before: usize = given.get(..step)?.iter().map(ArgType::cells).sum();
            Some(match source_of(given.get(step)?, declared.get(step)?, rest, field)? {
                CellSource::Cell(cell) => CellSource::Cell(before + cell),
                other @ (CellSource::Missing | CellSource::There) => other,
            })
        }
        (given, _, path) => given.cell(path, field).map(CellSource::Cell),
    }
}

/// For each cell of a launch of a kernel with these parameters and slots, the index of the given cell that it is copied
/// from; `None` if a slot fits no argument. The arguments' own cells are followed by a cell that contains 1, and then a
/// cell that contains 0.
pub(crate) fn cells_of(given: &[ArgType], declared: &[ArgType], slots: &[Slot]) -> Option<Box<[u32]>> {
    let mut cells = Vec::with_capacity(slots.len());
    for slot in slots {
        let (before, source) = match &slot.source {
            // Bounds are filled in at launch, for arrays used in place ([`bounds_of`]).
            SlotSource::Argument { field, .. } if field.bound_type().is_some() => (0, CellSource::Missing),
            SlotSource::Argument { param, path, field } => {
                let param = *param as usize;
                let before: usize = given.get(..param)?.iter().map(ArgType::cells).sum();
                (before, source_of(given.get(param)?, declared.get(param)?, path, *field)?)
            }
            SlotSource::Runtime(slot) => match *slot {},
        };
        let one = cell_after(given);
        cells.extend((0..slot.ty.cells()).map(|part| match source {
            CellSource::Cell(cell) => (before + cell + part) as u32,
            CellSource::There => one as u32,
            CellSource::Missing => one as u32 + 1,
        }));
    }
    Some(cells.into())
}

/// What a kernel gets of an array.
struct PassedArray<'a> {
    /// The argument's number, and the indices into nested tuples.
    param: u32,
    path: &'a [Step],
    /// Whether it gets the address, and how many of the extents.
    has_data: bool,
    extents: usize,
}

/// The arrays whose address or several of whose extents the kernel gets, with their declared types, each with its first
/// cell among those of the arguments. Arrays of an argument that is `None` are omitted.
pub(crate) fn arrays_of(given: &[ArgType], declared: &[ArgType], slots: &[Slot]) -> Vec<(u32, ArrayType)> {
    let mut found: Vec<PassedArray<'_>> = Vec::new();
    for slot in slots {
        let SlotSource::Argument { param, path, field } = &slot.source else { continue };
        let (has_data, extents) = match field {
            SlotField::Data => (true, 0),
            SlotField::Shape(_) => (false, 1),
            SlotField::Value
            | SlotField::Real
            | SlotField::Imag
            | SlotField::Stride(_)
            | SlotField::Start
            | SlotField::Room
            | SlotField::Least
            | SlotField::Limit => continue,
        };
        match found.iter_mut().find(|known| known.param == *param && known.path == path.as_slice()) {
            Some(known) => {
                known.has_data |= has_data;
                known.extents += extents;
            }
            None => found.push(PassedArray { param: *param, path, has_data, extents }),
        }
    }
    let array_of = |&PassedArray { param, path, has_data, extents }: &PassedArray<'_>| {
        if !has_data && extents < 2 {
            return None;
        }
        let param = param as usize;
        let ArgItem::Array(array) = declared.get(param)?.leaf(path)? else { return None };
        let before: usize = given.get(..param)?.iter().map(ArgType::cells).sum();
        match source_of(given.get(param)?, declared.get(param)?, path, SlotField::Data)? {
            CellSource::Cell(cell) => Some(((before + cell) as u32, array)),
            CellSource::Missing | CellSource::There => None,
        }
    };
    found.iter().filter_map(array_of).collect()
}

/// A cell of a launch that contains a bound of the memory that a kernel may write through an array.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BoundCell {
    /// The index of the launch's cell.
    pub(crate) at: usize,
    /// The array's first cell among those of the arguments; `None` for an optional array that is `None`.
    pub(crate) array: Option<usize>,
    /// The field, one of [`SlotField::BOUNDS`].
    pub(crate) field: SlotField,
}

/// The bound cells of a launch, in the order of [`cells_of`]. Only a kernel that bounds-checks its stores has some.
pub(crate) fn bounds_of(given: &[ArgType], declared: &[ArgType], slots: &[Slot]) -> Box<[BoundCell]> {
    let mut bounds = Vec::new();
    let mut at = 0;
    for slot in slots {
        if let SlotSource::Argument { param, path, field } = &slot.source
            && field.bound_type().is_some()
        {
            let param = *param as usize;
            let before: usize = given.iter().take(param).map(ArgType::cells).sum();
            let source = given.get(param).zip(declared.get(param));
            let source = source.and_then(|(given, declared)| source_of(given, declared, path, SlotField::Data));
            let array = match source {
                Some(CellSource::Cell(cell)) => Some(before + cell),
                Some(CellSource::Missing | CellSource::There) | None => None,
            };
            bounds.push(BoundCell { at, array, field: *field });
        }
        at += slot.ty.cells();
    }
    bounds.into()
}

#[cfg(test)]
mod tests {
    use weft_artifact::{Class, ClassKind, Number, SlotType};

    use super::*;

    fn types() -> Vec<ArgType> {
        let array = ArrayType { dtype: DType::C64, ndim: 2, layout: Layout::F, readonly: true };
        vec![
            DType::C128.into(),
            ArgType::Tuple(vec![DType::I8.into(), ArgType::Tuple(vec![]), ArgType::Array(array)]),
            DType::BOOL.into(),
        ]
    }

    fn objects() -> Vec<ArgType> {
        let class = |kind| {
            let fields = vec!["a".to_owned(), "b".to_owned()];
            ClassId::intern(Class { kind, name: "C".to_owned(), identity: "key.C".to_owned(), fields })
                .expect("there is room")
        };
        let member = ArgType::Enum(class(ClassKind::Enum), Box::new(Number::C64.into()));
        vec![
            ArgType::None,
            ArgType::Struct(class(ClassKind::NamedTuple), vec![ArgType::None, ArgType::Tuple(types())]),
            ArgType::Tuple(vec![member.clone(), ArgType::Struct(class(ClassKind::Dataclass), vec![])]),
            ArgType::Record(DType::C64),
            ArgType::Class(DType::C64),
            member,
        ]
    }

    fn key(types: &[ArgType], out: &mut Vec<u32>) {
        for ty in types {
            match ty {
                ArgType::Value(dtype) => out.push(value(*dtype)),
                ArgType::Array(a) => out.push(array(*a)),
                ArgType::Tuple(items) => {
                    out.push(tuple(items.len()));
                    key(items, out);
                }
                ArgType::None => out.push(none()),
                ArgType::Struct(class, items) => {
                    out.extend([object(*class), tuple(items.len())]);
                    key(items, out);
                }
                ArgType::Enum(class, value) => {
                    out.push(member(*class));
                    key(std::slice::from_ref(value), out);
                }
                ArgType::Record(dtype) => out.push(record(*dtype)),
                ArgType::Class(dtype) => out.push(class(*dtype)),
                ArgType::Pointer(_) | ArgType::Optional(_) => unreachable!("what a launch is given is there"),
            }
        }
    }

    #[test]
    fn keys_are_read_back() {
        for types in [types(), objects()] {
            let mut words = Vec::new();
            key(&types, &mut words);
            assert_eq!(decode(&words), types);
        }
    }

    #[test]
    fn every_dtype_and_layout_has_its_own_word() {
        let mut seen = std::collections::BTreeSet::from([none()]);
        for dtype in Number::all().map(DType::from) {
            assert!(seen.insert(value(dtype)));
            assert!(seen.insert(record(dtype)));
            assert!(seen.insert(class(dtype)));
            for layout in [Layout::C, Layout::F, Layout::Any] {
                for readonly in [false, true] {
                    for ndim in 0..=7 {
                        assert!(seen.insert(array(ArrayType { dtype, ndim, layout, readonly })));
                    }
                }
            }
        }
    }

    #[test]
    fn slots_find_their_cells() {
        let types = types();
        let cells = |param, path: &[u32], field, ty| {
            let source = SlotSource::Argument { param, path: path.to_vec(), field };
            cells_of(&types, &types, &[Slot { source, ty }])
        };
        let cell = |param, path, field| cells(param, path, field, SlotType::Pointer).map(|cells| cells[0]);
        assert_eq!(cell(0, &[], SlotField::Imag), Some(1));
        assert_eq!(cell(1, &[0], SlotField::Value), Some(2));
        assert_eq!(cell(1, &[2], SlotField::Data), Some(4));
        assert_eq!(cell(1, &[2], SlotField::Stride(1)), Some(8));
        assert_eq!(cell(2, &[], SlotField::Value), Some(9));
        assert_eq!(cell(1, &[2], SlotField::Shape(2)), None);
        assert_eq!(cell(2, &[0], SlotField::Value), None);
        let long = SlotType::Bytes { size: 16, align: 8 };
        assert_eq!(cells(1, &[2], SlotField::Shape(0), long).as_deref(), Some([5, 6].as_slice()));
    }

    #[test]
    fn the_arrays_that_a_kernel_takes_are_found() {
        let types = types();
        let slot = |param, path: &[u32], field| Slot {
            source: SlotSource::Argument { param, path: path.to_vec(), field },
            ty: SlotType::Pointer,
        };
        let slots = [slot(0, &[], SlotField::Real), slot(1, &[2], SlotField::Data), slot(1, &[2], SlotField::Shape(0))];
        let found = arrays_of(&types, &types, &slots);
        assert_eq!(found.iter().map(|(cell, array)| (*cell, array.layout)).collect::<Vec<_>>(), [(4, Layout::F)]);
        // A missing argument has no cells; one extent says nothing of an array's size.
        let maybe = [types[2].clone(), ArgType::Optional(Box::new(types[1].clone()))];
        let slots = [slot(1, &[1, 2], SlotField::Data)];
        assert_eq!(arrays_of(&[types[2].clone(), ArgType::None], &maybe, &slots), []);
        assert_eq!(arrays_of(&types, &types, &[slot(1, &[2], SlotField::Shape(0))]), []);
        let extents = [0, 1].map(|axis| slot(1, &[2], SlotField::Shape(axis)));
        assert_eq!(arrays_of(&types, &types, &extents), found);
    }

    #[test]
    fn what_may_be_missing_says_whether_it_is_there() {
        let maybe = |ty: ArgType| ty.or_none().expect("is not None");
        let array = ArgType::Array(ArrayType { dtype: DType::F32, ndim: 1, layout: Layout::C, readonly: false });
        let pair = ArgType::Tuple(vec![DType::I8.into(), maybe(array.clone())]);
        let declared = [DType::I8.into(), maybe(pair.clone()), maybe(DType::F64.into())];
        let slots: Vec<Slot> = (0..)
            .zip(&declared)
            .flat_map(|(param, ty)| {
                ty.fields().into_iter().map(move |(path, field)| Slot {
                    source: SlotSource::Argument { param, path, field: field.field },
                    ty: field.ty,
                })
            })
            .collect();
        let cells = |pair, last| cells_of(&[DType::I8.into(), pair, last], &declared, &slots).map(Vec::from);
        let given = |inner| ArgType::Tuple(vec![DType::I8.into(), inner]);
        // In order: the number; of the pair, its flag, its number, the array's flag, address and extent; the last
        // argument's flag and value.
        assert_eq!(cells(given(array), DType::F64.into()), Some(vec![0, 9, 2, 9, 4, 5, 9, 7]));
        assert_eq!(cells(given(ArgType::None), ArgType::None), Some(vec![0, 4, 2, 5, 5, 5, 5, 5]));
        assert_eq!(cells(ArgType::None, DType::F64.into()), Some(vec![0, 5, 5, 5, 5, 5, 4, 2]));
    }
}
