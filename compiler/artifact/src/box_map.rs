//! Tensor maps: what a copy of a box of an array needs to know of the array.
//!
//! A map is 128 bytes of device memory. To a kernel it is an object with one field, an array of these bytes; the name of
//! its class contains what is known at compile time. The CPU's maps have the size of a GPU's.

use std::fmt;

use crate::{
    class::{Class, ClassId, ClassKind},
    dtype::DType,
    number::{Number, Scalar},
    types::{ArgType, ArrayType, Layout},
};

/// The size of a tensor map in bytes.
pub const MAP_BYTES: usize = 128;
/// The alignment of a tensor map.
pub const MAP_ALIGN: usize = 64;
/// The most dimensions of a tensor map.
pub const MAP_DIMS: usize = 5;

/// The module of the classes of maps.
const MODULE: &str = "weft.cuda.";
/// The name of their field.
const FIELD: &str = "words";
/// The largest extent of a box.
const LARGEST_SIZE: u32 = 256;
/// The bytes that a row of a box is a multiple of.
const ROW_BYTES: u64 = 16;

/// The part of a tensor map that is known at compile time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BoxType {
    /// The type of the elements.
    pub scalar: Scalar,
    /// The extents of a box, the first dimension first.
    pub sizes: Vec<u32>,
    /// The width of the swizzle in bytes; 0 for none.
    pub swizzle: u32,
}

impl BoxType {
    /// The type of a map.
    ///
    /// # Errors
    ///
    /// A sentence if no copy has such boxes.
    pub fn new(scalar: Scalar, sizes: Vec<u32>, swizzle: u32) -> Result<Self, String> {
        if sizes.is_empty() || sizes.len() > MAP_DIMS {
            return Err(format!("a tensor map has 1 to {MAP_DIMS} dimensions, not {}", sizes.len()));
        }
        if let Some(size) = sizes.iter().find(|&&size| size == 0 || size > LARGEST_SIZE) {
            return Err(format!("an extent of a box is 1 to {LARGEST_SIZE}, not {size}"));
        }
        let row = u64::from(sizes.last().copied().unwrap_or(0)) * scalar.size_bytes();
        if !row.is_multiple_of(ROW_BYTES) {
            return Err(format!("a row of a box is a multiple of {ROW_BYTES} bytes, not {row} bytes"));
        }
        if !matches!(swizzle, 0 | 32 | 64 | 128) {
            return Err(format!("a swizzle is 32, 64 or 128 bytes wide, not {swizzle}"));
        }
        if swizzle != 0 && row != u64::from(swizzle) {
            return Err(format!("a row of a box has {row} bytes, but the swizzle {swizzle}: they must be equal"));
        }
        Ok(Self { scalar, sizes, swizzle })
    }

    /// The type of a map's argument; `None` if there are too many classes.
    pub fn arg(&self) -> Option<ArgType> {
        let name = self.to_string();
        let (kind, identity) = (ClassKind::Dataclass, format!("{MODULE}{name}"));
        let class = ClassId::intern(Class { kind, name, identity, fields: vec![FIELD.to_owned()] })?;
        let words = ArrayType { dtype: DType::U8, ndim: 1, layout: Layout::C, readonly: false };
        Some(ArgType::Struct(class, vec![ArgType::Array(words)]))
    }

    /// The type of the maps that are objects of a class; `None` if its objects are not maps.
    pub fn of_class(class: ClassId) -> Option<Self> {
        let text = class.get().identity.strip_prefix(MODULE)?.strip_prefix("TensorMap(")?.strip_suffix(')')?;
        let ((scalar, rest), (_, swizzle)) = (text.split_once(", (")?, text.split_once("), ")?);
        let Number::Real(scalar) = Number::from_name(scalar)? else { return None };
        let sizes = rest.split_once(')')?.0.trim_end_matches(',');
        let sizes = sizes.split(", ").map(|size| size.parse().ok()).collect::<Option<_>>()?;
        Self::new(scalar, sizes, swizzle.parse().ok()?).ok()
    }

    /// The number of elements of a box.
    pub fn elements(&self) -> u64 {
        self.sizes.iter().map(|&size| u64::from(size)).product()
    }
}

/// The name of the class.
impl fmt::Display for BoxType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sizes: Vec<String> = self.sizes.iter().map(u32::to_string).collect();
        let comma = if sizes.len() == 1 { "," } else { "" };
        write!(f, "TensorMap({}, ({}{comma}), {})", self.scalar, sizes.join(", "), self.swizzle)
    }
}

/// A tensor map of the CPU. The first dimension comes first; the entries beyond the number of dimensions are 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BoxMap {
    /// The address of the array's first element.
    pub data: u64,
    /// The number of dimensions.
    pub dims: usize,
    /// The size of an element in bytes.
    pub element: usize,
    /// The width of the swizzle in bytes; 0 for none.
    pub swizzle: usize,
    /// The array's extents.
    pub extents: [u64; MAP_DIMS],
    /// Its strides in bytes.
    pub strides: [u64; MAP_DIMS],
    /// The extents of a box.
    pub sizes: [u32; MAP_DIMS],
}

impl BoxMap {
    /// The map as it is in memory.
    pub fn words(&self) -> [u64; MAP_BYTES / 8] {
        let mut words = [0; MAP_BYTES / 8];
        words[0] = self.data;
        words[1] = self.dims as u64 | (self.element as u64) << 8 | (self.swizzle as u64) << 16;
        for dim in 0..MAP_DIMS {
            words[2 + dim] = self.extents[dim];
            words[2 + MAP_DIMS + dim] = self.strides[dim];
            words[2 + 2 * MAP_DIMS + dim / 2] |= u64::from(self.sizes[dim]) << (dim % 2 * 32);
        }
        words
    }

    /// The map in memory.
    pub fn read(words: &[u64; MAP_BYTES / 8]) -> Self {
        let each = |first: usize| std::array::from_fn(|dim| words[first + dim]);
        Self {
            data: words[0],
            dims: ((words[1] & 0xff) as usize).min(MAP_DIMS),
            element: (words[1] >> 8 & 0xff) as usize,
            swizzle: (words[1] >> 16 & 0xffff) as usize,
            extents: each(2),
            strides: each(2 + MAP_DIMS),
            sizes: std::array::from_fn(|dim| (words[2 + 2 * MAP_DIMS + dim / 2] >> (dim % 2 * 32)) as u32),
        }
    }

    /// The bytes of a box.
    pub fn box_bytes(&self) -> u64 {
        let sizes = self.sizes.iter().take(self.dims);
        sizes.fold(self.element as u64, |bytes, &size| bytes.saturating_mul(u64::from(size)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_class_has_the_type_in_its_name() {
        let ty = BoxType::new(Scalar::F16, vec![4, 64], 128).expect("is a type");
        assert_eq!(ty.to_string(), "TensorMap(float16, (4, 64), 128)");
        let Some(ArgType::Struct(class, _)) = ty.arg() else { panic!("a map is an object") };
        assert_eq!(BoxType::of_class(class), Some(ty));
        let ty = BoxType::new(Scalar::I8, vec![128], 0).expect("is a type");
        let arg = ty.arg().expect("there is room");
        assert_eq!(arg.to_string(), "TensorMap(int8, (128,), 0)");
        let ArgType::Struct(class, _) = arg else { panic!("a map is an object") };
        assert_eq!(BoxType::of_class(class), Some(ty));
        assert!(BoxType::new(Scalar::F32, vec![3], 0).is_err());
        assert!(BoxType::new(Scalar::F32, vec![512, 4], 0).is_err());
        assert!(BoxType::new(Scalar::F32, vec![64], 128).is_err());
        assert!(BoxType::new(Scalar::F32, vec![6, 4], 0).is_ok());
    }

    #[test]
    fn a_map_is_the_same_in_memory() {
        let map = BoxMap {
            data: 0x7fff_1234_5670,
            dims: 5,
            element: 16,
            swizzle: 128,
            extents: [1, 2, 3, 4, 1 << 40],
            strides: [5, 6, 7, 8, 16],
            sizes: [1, 256, 3, 4, 64],
        };
        assert_eq!(BoxMap::read(&map.words()), map);
        assert_eq!(map.box_bytes(), 256 * 3 * 4 * 64 * 16);
    }
}
