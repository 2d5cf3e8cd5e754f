//! Conversions of numbers and arguments, and the choice among overloads: Numba's.
//!
//! One table ranks the conversion between each pair of numbers. [`choose`] selects the overload with the fewest unsafe
//! conversions, then the fewest safe ones, then the fewest promotions. It is used for declared signatures of kernels
//! (at a launch), those of device functions, and the rows of the intrinsic table. A caller may reject conversions that
//! the table allows.

use crate::{
    class::ClassKind,
    number::{Number, Scalar},
    types::{ArgType, Layout},
};

/// How much a conversion loses, in order of preference.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Conversion {
    /// The types are equal.
    Exact,
    /// A wider number of the same kind.
    Promote,
    /// Another kind that has all values, or nearly all: `int64` to `float64` counts as safe.
    Safe,
    /// Values may be lost.
    Unsafe,
}

impl Conversion {
    /// Numba's rule for a number; `None` if there is no conversion: a complex number does not become a real one.
    pub fn of(from: Number, to: Number) -> Option<Self> {
        let wider = to.part().size_bytes() > from.part().size_bytes();
        match (from, to) {
            _ if from == to => Some(Self::Exact),
            (Number::Real(from), Number::Real(to)) => Some(Self::of_real(from, to)),
            (Number::Complex(_), Number::Complex(_)) => Some(if wider { Self::Promote } else { Self::Unsafe }),
            // As the conversion to the part's type, but at least `Safe`, because the kind changes.
            (Number::Real(from), Number::Complex(to)) => Some(Self::of_real(from, to.part()).max(Self::Safe)),
            (Number::Complex(_), Number::Real(_)) => None,
        }
    }

    fn of_real(from: Scalar, to: Scalar) -> Self {
        let wider = to.size_bytes() > from.size_bytes();
        let fits = match (from, to) {
            _ if from == to => return Self::Exact,
            (Scalar::Bool, _) => true,
            (_, Scalar::Bool) => false,
            // Numba's bfloat16 is no float: it never promotes.
            (Scalar::BF16, to) => matches!(to, Scalar::F32 | Scalar::F64),
            (from, Scalar::BF16) => matches!(from, Scalar::I8 | Scalar::U8),
            _ if from.is_float() && to.is_float() || from.is_signed_int() && to.is_signed_int() => {
                return if wider { Self::Promote } else { Self::Unsafe };
            }
            _ if from.is_unsigned_int() && to.is_unsigned_int() => {
                return if wider { Self::Promote } else { Self::Unsafe };
            }
            _ if to.is_int() => from.is_unsigned_int() && wider,
            (_, Scalar::F64) => true,
            (from, Scalar::F16) => from == Scalar::I8,
            // For Numba, uint16 is not safe here, although float32 represents all its values; nor is uint8 to float16
            // above.
            (Scalar::I8 | Scalar::U8 | Scalar::I16, _) => true,
            _ => false,
        };
        if fits { Self::Safe } else { Self::Unsafe }
    }

    /// The conversion of an argument to a declared type: the worst of its numbers' conversions. `number` returns each
    /// of them. It is called with the number's cell, counted from `cell`, and its declared type, or `None` if a pointer
    /// is declared. Elements of arrays are never converted; an array may be declared with layout `A` or as read-only.
    pub fn of_argument(
        given: &ArgType,
        declared: &ArgType,
        cell: usize,
        number: &mut dyn FnMut(usize, Number, Option<Number>) -> Option<Self>,
    ) -> Result<Self, Misfit> {
        match (given, declared) {
            (ArgType::Value(from), ArgType::Value(to)) => match (from.number(), to.number()) {
                (Some(from), Some(to)) => number(cell, from, Some(to)).ok_or(Misfit::Type),
                (Some(_) | None, _) if from == to => Ok(Self::Exact),
                (Some(_) | None, _) => Err(Misfit::Type),
            },
            (ArgType::Value(from), ArgType::Pointer(_)) => {
                from.number().and_then(|from| number(cell, from, None)).ok_or(Misfit::Type)
            }
            (ArgType::Array(from), ArgType::Array(to)) => {
                let layout = from.layout == to.layout || to.layout == Layout::Any;
                if (from.dtype, from.ndim) != (to.dtype, to.ndim) {
                    Err(Misfit::Type)
                } else if from.readonly && !to.readonly {
                    Err(Misfit::ReadOnly)
                } else if !layout {
                    Err(Misfit::Type)
                } else {
                    Ok(if from == to { Self::Exact } else { Self::Safe })
                }
            }
            // As in Numba, an optional type ranks a little below the type itself.
            (ArgType::None, ArgType::Optional(_)) => Ok(Self::Promote),
            (ArgType::Optional(from), ArgType::Optional(to)) => Self::of_argument(from, to, cell, number),
            (from, ArgType::Optional(to)) => {
                Self::of_argument(from, to, cell, number).map(|way| way.max(Self::Promote))
            }
            // A member of an `IntEnum` is an int.
            (ArgType::Enum(class, from), ArgType::Value(_)) if class.get().kind == ClassKind::IntEnum => {
                Self::of_argument(from, declared, cell, number).map(|conversion| conversion.max(Self::Safe))
            }
            (ArgType::None, ArgType::None) => Ok(Self::Exact),
            (ArgType::Enum(..), ArgType::Enum(..))
            | (ArgType::Record(_), ArgType::Record(_))
            | (ArgType::Class(_), ArgType::Class(_))
            | (ArgType::Pointer(_), ArgType::Pointer(_))
                if given == declared =>
            {
                Ok(Self::Exact)
            }
            (ArgType::Struct(of, _), ArgType::Struct(as_, _)) if of != as_ => Err(Misfit::Type),
            (ArgType::Tuple(from), ArgType::Tuple(to)) | (ArgType::Struct(_, from), ArgType::Struct(_, to))
                if from.len() == to.len() =>
            {
                let mut worst = Self::Exact;
                let mut cell = cell;
                for (from, to) in from.iter().zip(to) {
                    worst = worst.max(Self::of_argument(from, to, cell, number)?);
                    cell += from.cells();
                }
                Ok(worst)
            }
            (
                ArgType::Value(_)
                | ArgType::Array(_)
                | ArgType::Tuple(_)
                | ArgType::None
                | ArgType::Struct(..)
                | ArgType::Enum(..)
                | ArgType::Record(_)
                | ArgType::Class(_)
                | ArgType::Pointer(_)
                | ArgType::Optional(_),
                _,
            ) => Err(Misfit::Type),
        }
    }
}

/// Why an argument cannot be passed as a declared type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Misfit {
    /// The types do not fit.
    Type,
    /// The array is read-only, and the declared one is not.
    ReadOnly,
}

/// The rank of an overload for a call's arguments. A smaller rank is better.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Rank {
    lossy: u32,
    safe: u32,
    promoted: u32,
}

impl FromIterator<Conversion> for Rank {
    fn from_iter<I: IntoIterator<Item = Conversion>>(conversions: I) -> Self {
        let mut rank = Self::default();
        for conversion in conversions {
            match conversion {
                Conversion::Exact => {}
                Conversion::Promote => rank.promoted += 1,
                Conversion::Safe => rank.safe += 1,
                Conversion::Unsafe => rank.lossy += 1,
            }
        }
        rank
    }
}

/// The result of choosing among overloads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Choice<T> {
    /// None fits.
    None,
    /// One is better than all others.
    Best(T),
    /// Several are equally good. This is the first of them.
    Ambiguous(T),
}

impl<T> Choice<T> {
    /// The best, or the first of equally good ones, as Numba chooses in a kernel.
    pub fn first(self) -> Option<T> {
        match self {
            Self::None => None,
            Self::Best(found) | Self::Ambiguous(found) => Some(found),
        }
    }
}

/// Chooses among the overloads that fit.
pub fn choose<T>(fitting: impl IntoIterator<Item = (Rank, T)>) -> Choice<T> {
    let mut best: Option<(Rank, T)> = None;
    let mut ambiguous = false;
    for (rank, overload) in fitting {
        match best.as_ref().map(|(known, _)| rank.cmp(known)) {
            Some(std::cmp::Ordering::Greater) => {}
            Some(std::cmp::Ordering::Equal) => ambiguous = true,
            Some(std::cmp::Ordering::Less) | None => {
                best = Some((rank, overload));
                ambiguous = false;
            }
        }
    }
    match best {
        None => Choice::None,
        Some((_, overload)) if ambiguous => Choice::Ambiguous(overload),
        Some((_, overload)) => Choice::Best(overload),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        class::{Class, ClassId},
        types::ArrayType,
    };

    /// The results of Numba 0.68 for every pair (`TypeManager.check_compatible`): rows convert to columns, in the order
    /// of the header. For bfloat16, the results of its type (`can_convert_to`, `can_convert_from`); for bools and
    /// complex numbers, which that type does not handle, the same as for float16.
    const NUMBA: &str = "
        to          b1 i1 u1 i2 u2 i4 u4 i8 u8 f2 bf f4 f8 c8 c16
        boolean     e  s  s  s  s  s  s  s  s  s  s  s  s  s  s
        int8        u  e  u  p  u  p  u  p  u  s  s  s  s  s  s
        uint8       u  u  e  s  p  s  p  s  p  u  s  s  s  s  s
        int16       u  u  u  e  u  p  u  p  u  u  u  s  s  s  s
        uint16      u  u  u  u  e  s  p  s  p  u  u  u  s  u  s
        int32       u  u  u  u  u  e  u  p  u  u  u  u  s  u  s
        uint32      u  u  u  u  u  u  e  s  p  u  u  u  s  u  s
        int64       u  u  u  u  u  u  u  e  u  u  u  u  s  u  s
        uint64      u  u  u  u  u  u  u  u  e  u  u  u  s  u  s
        float16     u  u  u  u  u  u  u  u  u  e  u  p  p  s  s
        bfloat16    u  u  u  u  u  u  u  u  u  u  e  s  s  s  s
        float32     u  u  u  u  u  u  u  u  u  u  u  e  p  s  s
        float64     u  u  u  u  u  u  u  u  u  u  u  u  e  u  s
        complex64   -  -  -  -  -  -  -  -  -  -  -  -  -  e  p
        complex128  -  -  -  -  -  -  -  -  -  -  -  -  -  u  e
    ";

    #[test]
    fn the_table_is_numbas() {
        let columns = [Scalar::ALL.map(Number::Real).as_slice(), &[Number::C64, Number::C128]].concat();
        let mut rows = NUMBA.trim().lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
        assert_eq!(rows.next().map(|header| header.len()), Some(columns.len() + 1));
        for (row, from) in rows.zip(&columns) {
            assert_eq!(row[0], from.name());
            for (expected, to) in row[1..].iter().zip(&columns) {
                let found = match Conversion::of(*from, *to) {
                    Some(Conversion::Exact) => "e",
                    Some(Conversion::Promote) => "p",
                    Some(Conversion::Safe) => "s",
                    Some(Conversion::Unsafe) => "u",
                    None => "-",
                };
                assert_eq!(found, *expected, "{from} to {to}");
            }
        }
    }

    fn array(layout: Layout, readonly: bool) -> ArgType {
        ArgType::Array(ArrayType { dtype: Number::F32.into(), ndim: 1, layout, readonly })
    }

    fn pass(given: &ArgType, declared: &ArgType) -> Result<Conversion, Misfit> {
        Conversion::of_argument(given, declared, 0, &mut |_, from, to| Conversion::of(from, to?))
    }

    #[test]
    fn arrays_become_more_general_ones_only() {
        let (c, any) = (array(Layout::C, false), array(Layout::Any, false));
        assert_eq!(pass(&c, &c), Ok(Conversion::Exact));
        assert_eq!(pass(&c, &any), Ok(Conversion::Safe));
        assert_eq!(pass(&any, &c), Err(Misfit::Type));
        assert_eq!(pass(&c, &array(Layout::F, false)), Err(Misfit::Type));
        assert_eq!(pass(&c, &array(Layout::C, true)), Ok(Conversion::Safe));
        assert_eq!(pass(&array(Layout::C, true), &c), Err(Misfit::ReadOnly));
        assert_eq!(pass(&array(Layout::C, true), &any), Err(Misfit::ReadOnly));
    }

    #[test]
    fn a_tuple_counts_as_its_worst_item() {
        let tuple = |items: [Number; 2]| ArgType::Tuple(items.map(ArgType::from).to_vec());
        let given = tuple([Number::F32, Number::I64]);
        assert_eq!(pass(&given, &tuple([Number::F64, Number::F64])), Ok(Conversion::Safe));
        assert_eq!(pass(&given, &tuple([Number::F64, Number::I32])), Ok(Conversion::Unsafe));
        assert_eq!(pass(&given, &ArgType::Tuple(vec![Number::F32.into()])), Err(Misfit::Type));
        let mut cells = Vec::new();
        let nested = ArgType::Tuple(vec![array(Layout::C, false), given.clone()]);
        let found = Conversion::of_argument(&nested, &nested, 3, &mut |cell, from, to| {
            cells.push(cell);
            Conversion::of(from, to?)
        });
        let first = 3 + array(Layout::C, false).cells();
        assert_eq!((found, cells), (Ok(Conversion::Exact), vec![first, first + ArgType::from(Number::F32).cells()]));
    }

    #[test]
    fn objects_stay_of_their_class() {
        let class = |kind, identity: &str| {
            let fields = vec!["a".to_owned(), "b".to_owned()];
            ClassId::intern(Class { kind, name: "C".to_owned(), identity: identity.to_owned(), fields })
                .expect("there is room")
        };
        let [one, other] = ["conversion.C", "conversion.D"].map(|identity| class(ClassKind::NamedTuple, identity));
        let point = |class, x: Number, y: Number| ArgType::Struct(class, vec![x.into(), y.into()]);
        let floats = point(one, Number::F64, Number::F64);
        assert_eq!(pass(&floats, &floats), Ok(Conversion::Exact));
        assert_eq!(pass(&point(one, Number::F32, Number::F64), &floats), Ok(Conversion::Promote));
        assert_eq!(pass(&point(other, Number::F64, Number::F64), &floats), Err(Misfit::Type));
        assert_eq!(pass(&ArgType::Tuple(vec![Number::F64.into(); 2]), &floats), Err(Misfit::Type));
        assert_eq!(pass(&ArgType::None, &ArgType::None), Ok(Conversion::Exact));
        let maybe = floats.clone().or_none().expect("is not None");
        assert_eq!(pass(&maybe, &maybe), Ok(Conversion::Exact));
        assert_eq!(pass(&ArgType::None, &maybe), Ok(Conversion::Promote));
        assert_eq!(pass(&floats, &maybe), Ok(Conversion::Promote));
        assert_eq!(pass(&maybe, &floats), Err(Misfit::Type));
        assert_eq!(pass(&Number::F64.into(), &maybe), Err(Misfit::Type));
        assert_eq!(pass(&ArgType::None, &floats), Err(Misfit::Type));
        let [plain, int] = [ClassKind::Enum, ClassKind::IntEnum]
            .map(|kind| ArgType::Enum(class(kind, "conversion.E"), Box::new(Number::I64.into())));
        assert_eq!(pass(&plain, &plain), Ok(Conversion::Exact));
        assert_eq!(pass(&plain, &int), Err(Misfit::Type));
        assert_eq!(pass(&plain, &Number::I64.into()), Err(Misfit::Type));
        assert_eq!(pass(&int, &Number::I64.into()), Ok(Conversion::Safe));
        assert_eq!(pass(&int, &Number::I32.into()), Ok(Conversion::Unsafe));
    }

    #[test]
    fn the_best_is_chosen_and_ties_are_told() {
        use Conversion::{Exact, Promote, Safe, Unsafe};
        let rank = |conversions: &[Conversion]| conversions.iter().copied().collect::<Rank>();
        assert_eq!(choose::<u32>([]), Choice::None);
        // One unsafe conversion is worse than any number of others.
        let two = [(rank(&[Unsafe, Exact]), 0), (rank(&[Safe, Promote]), 1)];
        assert_eq!(choose(two), Choice::Best(1));
        let tie = [(rank(&[Safe, Safe]), 0), (rank(&[Safe, Exact]), 1), (rank(&[Exact, Safe]), 2)];
        assert_eq!(choose(tie), Choice::Ambiguous(1));
        assert_eq!(choose(tie).first(), Some(1));
        // A better overload resolves the ambiguity of worse ones.
        let late = [(rank(&[Safe]), 0), (rank(&[Safe]), 1), (rank(&[Promote]), 2)];
        assert_eq!(choose(late), Choice::Best(2));
    }
}
