//! A kernel's assumptions about its launches, and the variants for launches that violate some.
//!
//! A kernel is compiled for launches for which all [`Assumptions`] hold: then most of its integer arithmetic fits 32
//! bits, and its inputs do not alias its outputs. Each launch tests them. The variants for other launches, listed in
//! [`Assumptions::LADDER`], are compiled on demand and owned by the kernel.

use std::sync::Arc;

use weft_artifact::{
    ArgType, ArrayType, Assumptions, Layout, SMALL_BLOCKS, SMALL_EXTENT, SMALL_SIZE, Scalar, Slot, SlotField,
    SlotSource, SlotType,
};
use weft_compiler::request::Options;
use weft_runtime::LaunchConfig;

use super::Later;
use crate::{
    args::Arguments,
    dispatcher::overload::{Overload, Resolved},
    types::key,
};

/// The number of threads in a warp.
const WARP: u32 = 32;

/// A 64-bit integer of a launch that must be small.
#[derive(Clone, Copy, Debug)]
pub(in crate::dispatcher) struct Word {
    /// The argument's cell.
    cell: u32,
    least: i32,
    most: i32,
}

/// The sign of an integer of a launch.
#[derive(Clone, Copy, Debug)]
pub(in crate::dispatcher) struct Sign {
    /// The argument's cell.
    cell: u32,
    /// The bit mask of its sign within the cell. The bits above the integer's width are undefined.
    bit: u64,
}

impl Word {
    fn is_small(self, cells: &[u64]) -> bool {
        let Some(&value) = cells.get(self.cell as usize) else { return false };
        // A cell holds all 64 bits. An unsigned value with the highest bit set is out of this range too.
        (i64::from(self.least)..=i64::from(self.most)).contains(&value.cast_signed())
    }
}

/// The signed integers among a kernel's arguments. `cells` has the source cell of each slot.
pub(in crate::dispatcher) fn signs(slots: &[Slot], cells: &[u32]) -> Box<[Sign]> {
    let sign = |(slot, &cell): (&Slot, &u32)| match (&slot.source, slot.ty) {
        (SlotSource::Argument { field: SlotField::Value, .. }, SlotType::Scalar(scalar)) if scalar.is_signed_int() => {
            Some(Sign { cell, bit: scalar.sign_bit() })
        }
        (
            SlotSource::Argument { .. } | SlotSource::Runtime(_),
            SlotType::Scalar(_) | SlotType::Pointer | SlotType::Bytes { .. },
        ) => None,
    };
    with_cells(slots, cells).filter_map(sign).collect()
}

/// By argument: the last extent of an array, if it is [short](Options::SHORT) in a launch with these cells.
pub(in crate::dispatcher) fn short_extents(given: &[ArgType], cells: &[u64]) -> Vec<(u32, u8)> {
    let (mut found, mut at) = (Vec::new(), 0);
    for (param, ty) in (0..).zip(given) {
        if let ArgType::Array(array) = ty
            && array.ndim > 1
            && array.layout == Layout::C
            && let Some(&last) = cells.get(at + usize::from(array.ndim))
            && Options::SHORT.contains(&last)
            && let Ok(extent) = u8::try_from(last)
        {
            found.push((param, extent));
        }
        ty.for_each_leaf(&mut |_, leaf| at += leaf.cells());
    }
    found
}

/// The 64-bit integers among a kernel's slots. `cells` has the source cell of each slot.
pub(in crate::dispatcher) fn words(slots: &[Slot], cells: &[u32]) -> Box<[Word]> {
    let word = |(slot, &cell): (&Slot, &u32)| match (slot.ty, &slot.source) {
        (SlotType::Scalar(Scalar::I64), SlotSource::Argument { field: SlotField::Shape(_), .. }) => {
            Some(Word { cell, least: 1, most: SMALL_EXTENT })
        }
        (SlotType::Scalar(Scalar::U64), _) => Some(Word { cell, least: 0, most: i32::MAX }),
        (SlotType::Scalar(scalar), _) if scalar.is_int() && scalar.size_bytes() == 8 => {
            Some(Word { cell, least: i32::MIN, most: i32::MAX })
        }
        (SlotType::Scalar(_) | SlotType::Pointer | SlotType::Bytes { .. }, _) => None,
    };
    with_cells(slots, cells).filter_map(word).collect()
}

/// A kernel's slots, each with its first cell. A record has several.
fn with_cells<'a>(slots: &'a [Slot], cells: &'a [u32]) -> impl Iterator<Item = (&'a Slot, &'a u32)> {
    let mut first = 0;
    slots.iter().filter_map(move |slot| {
        let cell = cells.get(first)?;
        first += slot.ty.cells();
        Some((slot, cell))
    })
}

/// An array of a launch that must be small.
#[derive(Clone, Copy, Debug)]
pub(in crate::dispatcher) struct Array {
    /// Its first cell: the address, followed by the extents and then the strides.
    cell: u32,
    ndim: u8,
    /// Whether its layout is C or Fortran, so that it has no gaps.
    packed: bool,
}

impl Array {
    fn is_small(self, cells: &[u64]) -> bool {
        let (first, ndim) = (self.cell as usize + 1, usize::from(self.ndim));
        let Some(extents) = cells.get(first..first + ndim) else { return false };
        if extents.contains(&0) {
            return false;
        }
        if self.packed {
            extents.iter().fold(1, |size: u64, extent| size.saturating_mul(*extent)) <= SMALL_SIZE as u64
        } else {
            let Some(strides) = cells.get(first + ndim..first + 2 * ndim) else { return false };
            let along = |(extent, stride): (&u64, &u64)| extent.saturating_mul(stride.cast_signed().unsigned_abs());
            i32::try_from(extents.iter().zip(strides).map(along).fold(0, u64::saturating_add)).is_ok()
        }
    }
}

/// The arrays among a kernel's slots whose size is not already implied by one of `words`.
pub(in crate::dispatcher) fn arrays(given: &[ArgType], overload: &Overload, words: &[Word]) -> Box<[Array]> {
    let arrays = key::arrays_of(given, &overload.args, &overload.kernel.slots);
    let is_known = |cell: u32, array: ArrayType| {
        array.ndim == 0
            || (array.ndim == 1 && array.layout != Layout::Any && words.iter().any(|word| word.cell == cell + 1))
    };
    arrays
        .into_iter()
        .filter(|(cell, array)| !is_known(*cell, *array))
        .map(|(cell, array)| Array { cell, ndim: array.ndim, packed: array.layout != Layout::Any })
        .collect()
}

impl Resolved {
    /// Whether the kernel's assumptions hold for a launch with this configuration and these cells (after casts).
    pub(in crate::dispatcher) fn takes(&self, config: &LaunchConfig, cells: &[u64]) -> bool {
        let Assumptions { small, nonneg, disjoint, aligned, warps } = self.assumed;
        (!small || self.is_small(config, cells))
            && (!nonneg || self.is_nonneg(cells))
            && (!disjoint || self.addresses.are_disjoint(cells))
            && (!aligned || self.addresses.are_aligned(cells))
            && (!warps || has_whole_warps(config))
    }

    fn is_small(&self, config: &LaunchConfig, cells: &[u64]) -> bool {
        let threads = |axis: usize| u64::from(config.grid[axis]) * u64::from(config.block[axis]);
        (0..3).all(|axis| threads(axis) <= SMALL_EXTENT as u64)
            && config.grid[0] <= SMALL_BLOCKS
            && self.words.iter().all(|word| word.is_small(cells))
            && self.arrays.iter().all(|array| array.is_small(cells))
    }

    fn is_nonneg(&self, cells: &[u64]) -> bool {
        self.signs.iter().all(|sign| cells.get(sign.cell as usize).is_some_and(|cell| cell & sign.bit == 0))
    }

    /// The first of the kernel's assumptions that does not hold for a launch, as a description of the fallback that the
    /// kernel uses instead.
    pub(in crate::dispatcher) fn misfit(&self, config: &LaunchConfig, cells: &[u64]) -> &'static str {
        let Assumptions { small, nonneg, disjoint, aligned, warps: _ } = self.assumed;
        if small && !self.is_small(config, cells) {
            "with integers and dimensions below 2**31 and no empty array, but these arguments have others"
        } else if nonneg && !self.is_nonneg(cells) {
            "with non-negative integers, but these arguments have negative ones"
        } else if disjoint && !self.addresses.are_disjoint(cells) {
            "with arrays that share no memory with a written array, but these arguments do"
        } else if aligned && !self.addresses.are_aligned(cells) {
            "with arrays aligned to 16 bytes, but these arguments have others"
        } else {
            "with blocks of a multiple of 32 threads along x, but this block is another"
        }
    }

    /// The assumptions of the variant for a launch; `None` if the kernel itself fits. The cells are those after casts.
    ///
    /// The variant gets the first of [`Assumptions::LADDER`] that holds for the launch. There is one exception: if
    /// the kernel's own, weaker assumptions hold, and the stronger ones are not among the [likely](Arguments::likely)
    /// ones, the kernel itself runs and no variant is compiled.
    pub(in crate::dispatcher) fn assumptions_for(
        &self,
        config: &LaunchConfig,
        arguments: &Arguments,
    ) -> Option<Assumptions> {
        let (cells, most) = (arguments.cells.as_slice(), self.overload.most);
        if self.overload.jit.code.assumptions == most && self.takes(config, cells) {
            return None;
        }
        let held = Assumptions {
            small: self.is_small(config, cells),
            nonneg: self.is_nonneg(cells),
            disjoint: self.addresses.are_disjoint(cells),
            aligned: self.addresses.are_aligned(cells),
            warps: has_whole_warps(config),
        };
        let gains = self.overload.kernel.gains;
        let fits = |assumptions: &Assumptions| assumptions.are_among(most) && assumptions.and(gains).are_among(held);
        let best = Assumptions::LADDER.into_iter().find(fits).unwrap_or(Assumptions::NONE);
        let is_enough = best.and(gains) == self.assumed
            || self.assumed.are_among(held)
                && self.variants.assuming.get(best).is_none()
                && !best.are_among(arguments.likely(held.nonneg));
        (!is_enough).then_some(best)
    }
}

/// Whether `blockDim.x` is a multiple of the warp size.
fn has_whole_warps(config: &LaunchConfig) -> bool {
    config.block[0].is_multiple_of(WARP)
}

/// The variants of a kernel by their assumptions: one for each of [`Assumptions::LADDER`] that a launch has needed.
#[derive(Debug)]
pub(in crate::dispatcher) struct ByAssumptions<T>([Later<T>; Assumptions::LADDER.len()]);

impl<T> Default for ByAssumptions<T> {
    fn default() -> Self {
        Self(std::array::from_fn(|_| Later::default()))
    }
}

impl<T> ByAssumptions<T> {
    fn place(&self, assumptions: Assumptions) -> Option<&Later<T>> {
        Assumptions::LADDER.iter().zip(&self.0).find_map(|(known, place)| (*known == assumptions).then_some(place))
    }

    pub(super) fn get(&self, assumptions: Assumptions) -> Option<Arc<T>> {
        self.place(assumptions)?.get()
    }

    pub(super) fn add(&self, assumptions: Assumptions, made: Arc<T>) -> Arc<T> {
        match self.place(assumptions) {
            Some(place) => place.add(made),
            None => made,
        }
    }

    /// The compiled variants.
    pub(in crate::dispatcher) fn iter(&self) -> impl Iterator<Item = Arc<T>> + '_ {
        self.0.iter().filter_map(Later::get)
    }
}

/// A description of the launches that need a variant with these assumptions, for the log line of its compilation.
pub(super) fn shown(assumptions: Assumptions) -> &'static str {
    match assumptions {
        Assumptions { small: false, .. } => "for any size",
        Assumptions { disjoint: false, .. } | Assumptions { aligned: false, .. } => "for any arrays",
        Assumptions { warps: false, .. } => "for blocks of any size",
        Assumptions { .. } => "for negative integers, too",
    }
}
