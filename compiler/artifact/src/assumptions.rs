//! The assumptions about a launch that a kernel's code may rely on, and the tests for them.
//!
//! A kernel is first compiled for launches for which all assumptions hold; [`Assumptions::LADDER`] lists the
//! assumptions of the variants for other launches. A launch tests only those that speed up the kernel
//! ([`Kernel::gains`]).

use std::ops::Range;

use crate::{
    artifact::{Kernel, SlotField, SlotSource},
    fields::ArgItem,
    number::Number,
    types::ArgType,
};

/// Properties of a launch that the compiled code assumes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[expect(clippy::struct_excessive_bools, reason = "independent flags")]
pub struct Assumptions {
    /// The strides of arrays and 64-bit integer arguments are values of `int32`. Extents of arrays and numbers of threads
    /// along an axis are at most [`SMALL_EXTENT`](crate::SMALL_EXTENT), numbers of elements
    /// [`SMALL_SIZE`](crate::SMALL_SIZE), blocks along x [`SMALL_BLOCKS`](crate::SMALL_BLOCKS). No array is empty.
    pub small: bool,
    /// Signed integer arguments, including those in tuples and records, are not negative.
    pub nonneg: bool,
    /// No array that the kernel only reads shares memory with one that it writes. No array on which it only accumulates
    /// shares memory with any other array that it reads or writes.
    pub disjoint: bool,
    /// The address of the first element of each array, and of each record, is a multiple of [`ALIGNED`] bytes.
    pub aligned: bool,
    /// `blockDim.x` is a multiple of 32: all threads of a warp have the same `threadIdx.y` and `threadIdx.z`.
    pub warps: bool,
}

/// The alignment of [`Assumptions::aligned`] in bytes: the widest load or store of PTX.
pub const ALIGNED: u64 = 16;

impl Assumptions {
    /// No assumptions.
    pub const NONE: Self = Self { small: false, nonneg: false, disjoint: false, aligned: false, warps: false };
    /// All assumptions.
    pub const ALL: Self = Self { small: true, nonneg: true, disjoint: true, aligned: true, warps: true };
    /// The assumptions of a kernel's variants, in the order in which a launch tests them. The last variant is for any
    /// launch.
    pub const LADDER: [Self; 8] = [
        Self::ALL,
        Self { nonneg: false, ..Self::ALL },
        Self { small: true, nonneg: true, warps: true, ..Self::NONE },
        Self { small: true, warps: true, ..Self::NONE },
        Self { warps: false, ..Self::ALL },
        Self { small: true, nonneg: true, ..Self::NONE },
        Self { small: true, ..Self::NONE },
        Self::NONE,
    ];

    /// The assumptions that are in both.
    #[must_use]
    pub const fn and(self, other: Self) -> Self {
        Self {
            small: self.small && other.small,
            nonneg: self.nonneg && other.nonneg,
            disjoint: self.disjoint && other.disjoint,
            aligned: self.aligned && other.aligned,
            warps: self.warps && other.warps,
        }
    }

    /// The assumptions that are in one of both.
    #[must_use]
    pub const fn or(self, other: Self) -> Self {
        Self {
            small: self.small || other.small,
            nonneg: self.nonneg || other.nonneg,
            disjoint: self.disjoint || other.disjoint,
            aligned: self.aligned || other.aligned,
            warps: self.warps || other.warps,
        }
    }

    /// Whether `others` has all of these assumptions.
    pub fn are_among(self, others: Self) -> bool {
        self.and(others) == self
    }

    /// The first of [`Self::LADDER`] whose assumptions are all in `likely`; the last one if there is none.
    pub fn likeliest(likely: Self) -> Self {
        Self::LADDER.into_iter().find(|assumptions| assumptions.are_among(likely)).unwrap_or(Self::NONE)
    }

    /// Their names.
    pub fn names(self) -> impl Iterator<Item = &'static str> {
        let Self { small, nonneg, disjoint, aligned, warps } = self;
        [("small", small), ("nonneg", nonneg), ("disjoint", disjoint), ("aligned", aligned), ("warps", warps)]
            .into_iter()
            .filter_map(|(name, holds)| holds.then_some(name))
    }
}

/// Whether [`Assumptions::nonneg`] holds for a launch with arguments of these types and these cells.
pub fn are_nonneg(given: &[ArgType], cells: &[u64]) -> bool {
    let (mut are, mut at) = (true, 0);
    for ty in given {
        ty.for_each_leaf(&mut |_, leaf| {
            if let ArgItem::Value(dtype) = leaf
                && let Some(scalar) = dtype.number().and_then(Number::real)
                && scalar.is_signed_int()
            {
                are &= cells.get(at).is_some_and(|cell| cell & scalar.sign_bit() == 0);
            }
            at += leaf.cells();
        });
    }
    are
}

/// The extent of the memory at an address that a launch passes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Extent {
    /// An array: its extents and then its strides in bytes follow the address.
    Array { ndim: usize, item: u64 },
    /// A number of bytes.
    Bytes(u64),
    /// An unknown extent.
    Unknown,
}

/// A cell of a launch that contains an address, and the kernel's accesses there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Address {
    cell: usize,
    extent: Extent,
    /// The kernel only reads the memory.
    is_read: bool,
    /// The kernel may write the memory.
    is_written: bool,
    /// The kernel only accumulates in the memory.
    is_accumulated: bool,
}

/// The cells of a kernel's launches that contain the addresses of its arrays.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Addresses(Box<[Address]>);

impl Addresses {
    /// The most addresses for which a launch tests whether memory is disjoint. With more, memory is assumed to overlap.
    pub const MOST: usize = 16;

    /// The cells of a kernel for launches with arguments of the types `given`, taken from `cells`. A cell past those of
    /// the arguments belongs to a missing argument, which has no memory.
    pub fn of(kernel: &Kernel, given: &[ArgType], cells: &[u32]) -> Self {
        let mut leaves = Vec::new();
        let mut first_cell = 0;
        for ty in given {
            ty.for_each_leaf(&mut |_, leaf| {
                leaves.push((first_cell, leaf));
                first_cell += leaf.cells();
            });
        }
        let mut found = Vec::new();
        for (slot, first) in kernel.slots.iter().zip(kernel.first_cells()) {
            let SlotSource::Argument { param, field: SlotField::Data, .. } = &slot.source else { continue };
            let access = kernel.params.get(*param as usize).map(|param| param.access);
            let cell = cells.get(first).map_or(usize::MAX, |cell| *cell as usize);
            if cell >= first_cell && cell != usize::MAX {
                continue;
            }
            let leaf = leaves.iter().find(|(at, _)| *at == cell).map(|(_, leaf)| *leaf);
            let extent = match leaf {
                Some(ArgItem::Array(array)) => {
                    Extent::Array { ndim: array.ndim.into(), item: array.dtype.size_bytes() }
                }
                Some(ArgItem::Record(dtype)) => Extent::Bytes(dtype.size_bytes()),
                Some(ArgItem::Pointer(_) | ArgItem::Value(_)) | None => Extent::Unknown,
            };
            let is_read = access.is_some_and(|access| access.reads && !access.writes);
            let is_written = access.is_none_or(|access| access.writes);
            let is_accumulated = access.is_some_and(|access| access.accumulates);
            found.push(Address { cell, extent, is_read, is_written, is_accumulated });
        }
        Self(found.into())
    }

    /// Whether [`Assumptions::aligned`] holds for a launch with these cells.
    pub fn are_aligned(&self, cells: &[u64]) -> bool {
        self.0.iter().all(|address| cells.get(address.cell).is_some_and(|address| address % ALIGNED == 0))
    }

    /// Whether [`Assumptions::disjoint`] holds for a launch with these cells.
    pub fn are_disjoint(&self, cells: &[u64]) -> bool {
        if self.0.len() > Self::MOST {
            return false;
        }
        let mut spans = [const { 0..0 }; Self::MOST];
        for (address, span) in self.0.iter().zip(&mut spans) {
            if address.is_read || address.is_written {
                let Some(found) = address.span(cells) else { return false };
                *span = found;
            }
        }
        let all = self.0.iter().zip(&spans);
        all.clone().enumerate().all(|(at, (address, span))| {
            all.clone().take(at).all(|(other, others)| {
                span.end <= others.start || others.end <= span.start || !address.is_disjoint_from(other)
            })
        })
    }
}

impl Address {
    /// Whether [`Assumptions::disjoint`] requires that the memory is disjoint from that of another address.
    fn is_disjoint_from(&self, other: &Self) -> bool {
        let is_used = |address: &Self| address.is_read || address.is_written;
        self.is_written && other.is_read
            || self.is_read && other.is_written
            || self.is_accumulated && is_used(other)
            || other.is_accumulated && is_used(self)
    }

    /// The bytes of the argument; `None` if unknown. An array without elements has none.
    fn span(&self, cells: &[u64]) -> Option<Range<u64>> {
        let (start, rest) = cells.get(self.cell..)?.split_first()?;
        let (low, high) = match self.extent {
            Extent::Array { ndim, item } => {
                let (shape, strides) = (rest.get(..ndim)?, rest.get(ndim..2 * ndim)?);
                span(shape, strides, item)?
            }
            Extent::Bytes(bytes) => (0, i64::try_from(bytes).ok()?),
            Extent::Unknown => return None,
        };
        let (start, end) = (start.checked_add_signed(low)?, start.checked_add_signed(high)?);
        Some(if low == high { 0..0 } else { start..end })
    }
}

/// The bytes from the start of the lowest element to the end of the highest, relative to the first; `None` if they
/// exceed memory. Strides are signed and in bytes.
fn span(shape: &[u64], strides: &[u64], item: u64) -> Option<(i64, i64)> {
    let (mut low, mut high) = (0_i64, i64::try_from(item).ok()?);
    let mut is_empty = false;
    for (extent, stride) in shape.iter().zip(strides) {
        if *extent == 0 {
            is_empty = true;
            continue;
        }
        let end = stride.cast_signed().checked_mul(i64::try_from(extent - 1).ok()?)?;
        if end < 0 {
            low = low.checked_add(end)?;
        } else {
            high = high.checked_add(end)?;
        }
    }
    Some(if is_empty { (0, 0) } else { (low, high) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Access, ArrayType, Coarsening, DType, Layout, Number, Param, Scalar, Slot, SlotType};

    const READ: Access = Access { reads: true, writes: false, accumulates: false };
    const WRITTEN: Access = Access { reads: false, writes: true, accumulates: false };

    fn array(ndim: u8) -> ArgType {
        ArgType::Array(ArrayType { dtype: DType::F32, ndim, layout: Layout::Any, readonly: false })
    }

    /// A kernel whose only slots are the addresses of its arguments.
    fn kernel(params: &[(ArgType, Access)]) -> Kernel {
        let slot = |param: usize| Slot {
            source: SlotSource::Argument { param: param as u32, path: vec![], field: SlotField::Data },
            ty: SlotType::Pointer,
        };
        let param = |(ty, access): &(ArgType, Access)| Param { name: "x".to_owned(), ty: ty.clone(), access: *access };
        Kernel {
            name: "k".to_owned(),
            symbol: "k".to_owned(),
            params: params.iter().map(param).collect(),
            slots: (0..params.len()).map(slot).collect(),
            shared_bytes: 0,
            local_bytes: 0,
            const_bytes: 0,
            max_threads: None,
            dynamic_shared: false,
            cooperative: false,
            calls_itself: false,
            can_bound_stores: false,
            coarsening: Coarsening::default(),
            gains: Assumptions::ALL,
            faults: None,
            prints: false,
            sanitize: None,
            host: None,
        }
    }

    fn addresses(params: &[(ArgType, Access)]) -> Addresses {
        let given: Vec<_> = params.iter().map(|(ty, _)| ty.clone()).collect();
        let firsts: Vec<u32> = given
            .iter()
            .scan(0, |next, ty| {
                let first = *next;
                *next += ty.cells() as u32;
                Some(first)
            })
            .collect();
        Addresses::of(&kernel(params), &given, &firsts)
    }

    /// The cells of a one-dimensional array.
    fn line(start: u64, extent: u64, stride: i64) -> [u64; 3] {
        [start, extent, stride.cast_unsigned()]
    }

    fn disjoint(one: [u64; 3], other: [u64; 3]) -> bool {
        let addresses = addresses(&[(array(1), READ), (array(1), WRITTEN)]);
        let found = addresses.are_disjoint(&[one, other].concat());
        let swapped = self::addresses(&[(array(1), WRITTEN), (array(1), READ)]);
        assert_eq!(swapped.are_disjoint(&[other, one].concat()), found);
        found
    }

    #[test]
    fn accumulated_arrays_share_memory_with_no_other() {
        let accumulated = Access { reads: true, writes: true, accumulates: true };
        let written = Access { reads: true, writes: true, accumulates: false };
        for other in [READ, WRITTEN, written, accumulated] {
            let addresses = addresses(&[(array(1), accumulated), (array(1), other)]);
            let launch = |start| [line(0x1000, 4, 4), line(start, 4, 4)].concat();
            assert!(addresses.are_disjoint(&launch(0x1010)));
            assert!(!addresses.are_disjoint(&launch(0x100f)));
            let swapped = self::addresses(&[(array(1), other), (array(1), accumulated)]);
            assert!(!swapped.are_disjoint(&launch(0x1008)));
        }
        let both = addresses(&[(array(1), written), (array(1), WRITTEN)]);
        assert!(both.are_disjoint(&[line(0x1000, 4, 4), line(0x1000, 4, 4)].concat()));
    }

    #[test]
    fn arrays_share_memory_from_one_byte_on() {
        assert!(disjoint(line(0x1000, 4, 4), line(0x1010, 4, 4)));
        assert!(!disjoint(line(0x1000, 5, 4), line(0x1010, 4, 4)));
        assert!(!disjoint(line(0x1000, 4, 4), line(0x100f, 4, 4)));
        assert!(!disjoint(line(0x1000, 4, 4), line(0x1000, 4, 4)));
        // In reverse: 0x1004 to 0x1014.
        assert!(disjoint(line(0x1010, 4, -4), line(0x1014, 4, 4)));
        assert!(disjoint(line(0x1010, 4, -4), line(0x1000, 1, 4)));
        assert!(!disjoint(line(0x1010, 4, -4), line(0x1010, 4, 4)));
        assert!(!disjoint(line(0x1010, 4, -4), line(0x1000, 2, 4)));
        // Interleaved elements count as overlapping.
        assert!(!disjoint(line(0x1000, 4, 8), line(0x1004, 4, 8)));
        // A broadcast element, and an empty array.
        assert!(disjoint(line(0x1000, 100, 0), line(0x1004, 1, 4)));
        assert!(disjoint(line(0x1000, 0, 4), line(0x1000, 4, 4)));
        assert!(!disjoint(line(0x1000, 4, 4), line(0x1000, 1, 4)));
    }

    #[test]
    fn spans_that_no_memory_has_count_as_shared() {
        assert!(!disjoint(line(0x1000, 1 << 62, 8), line(0x10, 1, 4)));
        assert!(!disjoint(line(0x1000, u64::MAX, 1), line(0x10, 1, 4)));
        assert!(!disjoint(line(0x1000, 0x1000, -4), line(0x8_0000_0000, 1, 4)));
        assert!(!disjoint(line(u64::MAX - 3, 2, 4), line(0x10, 1, 4)));
    }

    #[test]
    fn of_several_dimensions_each_counts() {
        let addresses = addresses(&[(array(2), READ), (array(1), WRITTEN)]);
        let launch = |start: u64| -> Vec<u64> {
            [&[0x1000, 3, 2, 0x100, (-4_i64).cast_unsigned()][..], &line(start, 1, 4)].concat()
        };
        // 0xffc to 0x1204.
        assert!(addresses.are_disjoint(&launch(0xff8)));
        assert!(!addresses.are_disjoint(&launch(0xffc)));
        assert!(!addresses.are_disjoint(&launch(0x1200)));
        assert!(addresses.are_disjoint(&launch(0x1204)));
        assert!(!addresses.are_disjoint(&launch(0x1204)[..4]), "cells are missing");
    }

    #[test]
    fn only_what_is_read_and_what_is_written_is_compared() {
        let same = [line(0x1000, 4, 4), line(0x1000, 4, 4), line(0x2000, 4, 4)].concat();
        let both = Access { reads: true, writes: true, accumulates: false };
        let disjoint =
            |one, two, three| addresses(&[(array(1), one), (array(1), two), (array(1), three)]).are_disjoint(&same);
        assert!(disjoint(READ, READ, WRITTEN));
        assert!(disjoint(WRITTEN, both, READ));
        assert!(disjoint(Access::default(), WRITTEN, READ));
        assert!(!disjoint(READ, both, READ));
        assert!(!disjoint(WRITTEN, READ, Access::default()));
    }

    #[test]
    fn addresses_of_unknown_extent_may_share_everything() {
        let pointer = ArgType::Pointer(Some(DType::F32));
        let cells = [&[0x1000][..], &line(0x8000, 4, 4)].concat();
        assert!(!addresses(&[(pointer, READ), (array(1), WRITTEN)]).are_disjoint(&cells));
        // A number that is declared as a pointer.
        let number = ArgType::from(Number::Real(Scalar::U64));
        let cells = [&[0x1000, 0][..], &line(0x8000, 4, 4)].concat();
        assert!(!addresses(&[(number, READ), (array(1), WRITTEN)]).are_disjoint(&cells));
        let record = addresses(&[(ArgType::Record(DType::C128), READ), (array(1), WRITTEN)]);
        assert!(record.are_disjoint(&[&[0x1000][..], &line(0x1010, 4, 4)].concat()));
        assert!(!record.are_disjoint(&[&[0x1000][..], &line(0x100c, 4, 4)].concat()));
        let many: Vec<_> = (0..=Addresses::MOST).map(|n| (array(1), if n == 0 { WRITTEN } else { READ })).collect();
        let cells: Vec<u64> = (0..many.len()).flat_map(|n| line(0x1000 * n as u64, 4, 4)).collect();
        assert!(!addresses(&many).are_disjoint(&cells));
        assert!(addresses(&many[..Addresses::MOST]).are_disjoint(&cells));
    }

    #[test]
    fn what_is_missing_has_no_memory() {
        let params = [(array(1), READ), (array(1), WRITTEN)];
        let missing = Addresses::of(&kernel(&params), &[ArgType::None, array(1)], &[4, 0]);
        assert!(missing.are_disjoint(&line(0x1000, 4, 4)));
        assert!(missing.are_aligned(&line(0x1000, 4, 4)));
        let lost = Addresses::of(&kernel(&params), &[array(1)], &[0]);
        assert!(!lost.are_disjoint(&line(0x1000, 4, 4)));
        assert!(!lost.are_aligned(&line(0x1000, 4, 4)));
    }

    #[test]
    fn aligned_arrays_begin_at_multiples_of_16_bytes() {
        let addresses = addresses(&[(array(1), READ), (ArgType::Record(DType::C128), READ)]);
        let aligned = |array, record| addresses.are_aligned(&[&line(array, 4, 4)[..], &[record]].concat());
        assert!(aligned(0x1000, 0x20));
        assert!(aligned(0, 0));
        for off in [1, 4, 8, 15] {
            assert!(!aligned(0x1000 + off, 0x20));
            assert!(!aligned(0x1000, 0x20 + off));
        }
    }

    #[test]
    fn the_last_variant_is_for_any_launch() {
        let [first, .., last] = Assumptions::LADDER;
        assert_eq!((first, last), (Assumptions::ALL, Assumptions::NONE));
        for assumptions in Assumptions::LADDER {
            assert!(
                assumptions.are_among(Assumptions::ALL)
                    && Assumptions::NONE.are_among(assumptions)
                    && assumptions.and(assumptions) == assumptions
            );
        }
        let small = Assumptions { small: true, warps: true, ..Assumptions::NONE };
        assert_eq!(Assumptions::likeliest(Assumptions::ALL), Assumptions::ALL);
        assert_eq!(Assumptions::likeliest(Assumptions { nonneg: false, ..Assumptions::ALL }), Assumptions::LADDER[1]);
        assert_eq!(
            Assumptions::likeliest(Assumptions { disjoint: false, ..Assumptions::ALL }),
            Assumptions { nonneg: true, ..small }
        );
        assert_eq!(Assumptions::likeliest(Assumptions { nonneg: false, aligned: false, ..Assumptions::ALL }), small);
        assert_eq!(Assumptions::likeliest(Assumptions { small: false, ..Assumptions::ALL }), Assumptions::NONE);
        assert_eq!(
            Assumptions::likeliest(Assumptions { warps: false, ..Assumptions::ALL }),
            Assumptions { warps: false, ..Assumptions::ALL }
        );
        let least = Assumptions { warps: false, nonneg: false, ..Assumptions::ALL };
        assert_eq!(Assumptions::likeliest(least), Assumptions { small: true, ..Assumptions::NONE });
        assert!(small.are_among(Assumptions::LADDER[1]) && !Assumptions::ALL.are_among(small));
        assert_eq!(Assumptions::ALL.names().collect::<Vec<_>>(), ["small", "nonneg", "disjoint", "aligned", "warps"]);
    }
}
