//! Tensor maps, which drivers for CUDA 12.0 and newer encode.
#![expect(unsafe_code, reason = "calls into the CUDA driver")]

use std::{
    ffi::{c_uint, c_void},
    ptr,
};

use weft_artifact::{BoxMap, MAP_BYTES, MAP_DIMS, Scalar};

use super::{context::Context, driver};
use crate::error::{Error, ErrorKind};

/// The oldest device with tensor maps.
const OLDEST: (u32, u32) = (9, 0);
/// `CU_TENSOR_MAP_L2_PROMOTION_L2_128B`.
const PROMOTION: c_uint = 2;

/// `cuTensorMapEncodeTiled`: the map, the type, the number of dimensions, the address, the extents, the strides except
/// the first, the box, the steps; interleave, swizzle, promotion, and how elements outside are filled.
type Encode = unsafe extern "C" fn(
    *mut Words,
    c_uint,
    u32,
    *mut c_void,
    *const u64,
    *const u64,
    *const u32,
    *const u32,
    c_uint,
    c_uint,
    c_uint,
    c_uint,
) -> c_uint;

/// The words of a map. The driver requires the alignment.
#[repr(C, align(64))]
struct Words([u64; MAP_BYTES / 8]);

/// `CUtensorMapDataType` of a type. Elements are copied as bits.
const fn data_type(scalar: Scalar) -> c_uint {
    match scalar {
        Scalar::F16 => 6,
        Scalar::F32 => 7,
        Scalar::F64 => 8,
        Scalar::BF16 => 9,
        Scalar::I32 => 3,
        Scalar::I64 => 5,
        Scalar::U32 => 2,
        Scalar::U64 => 4,
        Scalar::I16 | Scalar::U16 => 1,
        Scalar::Bool | Scalar::I8 | Scalar::U8 => 0,
    }
}

/// Encodes a map.
pub(super) fn encode(context: &Context, map: &BoxMap, scalar: Scalar) -> Result<[u64; MAP_BYTES / 8], Error> {
    let (major, minor) = context.attributes.compute_capability;
    if (major, minor) < OLDEST {
        let message = format!(
            "tensor maps need a GPU of compute capability {}.{} or newer; this one has {major}.{minor}",
            OLDEST.0, OLDEST.1
        );
        return Err(Error::new(ErrorKind::NoDevice, message));
    }
    let encode: Encode = driver::find("cuTensorMapEncodeTiled")?;
    // The driver has the innermost dimension first, and infers its stride.
    let inner = |dim: usize| map.dims - 1 - dim;
    let (mut extents, mut strides) = ([0_u64; MAP_DIMS], [0_u64; MAP_DIMS]);
    let (mut sizes, steps) = ([0_u32; MAP_DIMS], [1_u32; MAP_DIMS]);
    for dim in 0..map.dims {
        (extents[dim], sizes[dim]) = (map.extents[inner(dim)], map.sizes[inner(dim)]);
        if dim > 0 {
            strides[dim - 1] = map.strides[inner(dim)];
        }
    }
    let swizzle = match map.swizzle {
        32 => 1,
        64 => 2,
        128 => 3,
        _ => 0,
    };
    let mut words = Words([0; MAP_BYTES / 8]);
    let data = ptr::with_exposed_provenance_mut(usize::try_from(map.data).unwrap_or_default());
    // SAFETY: the arrays have the entries of all dimensions, and the driver writes one map.
    let code = unsafe {
        encode(
            &raw mut words,
            data_type(scalar),
            map.dims as u32,
            data,
            extents.as_ptr(),
            strides.as_ptr(),
            sizes.as_ptr(),
            steps.as_ptr(),
            0,
            swizzle,
            PROMOTION,
            0,
        )
    };
    if code == 0 { Ok(words.0) } else { Err(context.driver.error("cuTensorMapEncodeTiled", code)) }
}
