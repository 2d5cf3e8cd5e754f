//! DLPack: arrays of other libraries, and ours for them, without a copy.
//!
//! Here are the structures of `dlpack.h` as DLPack 1.3 lays them out, and what their fields mean; `import` takes what others
//! export, `exchange` does so by the C functions of their type; `export` is the other way, and `functions` that by C functions.
//! <https://dmlc.github.io/dlpack/latest/c_api.html>

pub(crate) mod exchange;
pub(crate) mod export;
pub(crate) mod functions;
pub(crate) mod import;

use std::ffi::{CStr, c_void};

use pyo3::{
    exceptions::{PyBufferError, PyTypeError},
    prelude::*,
};
use weft_artifact::{Complex, Compound, DType, Float8, Number, Scalar};

use crate::types::numpy;

/// The version that is requested and returned. Structures of one major version are compatible.
const VERSION: Version = Version { major: 1, minor: 3 };

const READ_ONLY: u64 = 1;
const IS_COPIED: u64 = 2;

/// The names of capsules, before and after they are consumed.
const OLD: Names = Names { fresh: c"dltensor", used: c"used_dltensor" };
const VERSIONED: Names = Names { fresh: c"dltensor_versioned", used: c"used_dltensor_versioned" };

struct Names {
    fresh: &'static CStr,
    used: &'static CStr,
}

/// `DLPackVersion`
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Version {
    major: u32,
    minor: u32,
}

/// `DLDevice`
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct RawDevice {
    kind: i32,
    id: i32,
}

/// `DLDataType`
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct RawType {
    code: u8,
    bits: u8,
    lanes: u16,
}

/// `DLTensor`
#[repr(C)]
#[derive(Clone, Copy, Debug)]
struct RawTensor {
    data: *mut c_void,
    device: RawDevice,
    ndim: i32,
    dtype: RawType,
    shape: *mut i64,
    /// In elements; in old capsules NULL for C order.
    strides: *mut i64,
    byte_offset: u64,
}

impl RawTensor {
    /// One that a producer fills.
    const EMPTY: Self = Self {
        data: std::ptr::null_mut(),
        device: RawDevice { kind: 0, id: 0 },
        ndim: 0,
        dtype: RawType { code: 0, bits: 0, lanes: 0 },
        shape: std::ptr::null_mut(),
        strides: std::ptr::null_mut(),
        byte_offset: 0,
    };
}

/// `DLManagedTensor`
#[repr(C)]
struct OldTensor {
    tensor: RawTensor,
    context: *mut c_void,
    deleter: Option<unsafe extern "C" fn(*mut OldTensor)>,
}

/// `DLManagedTensorVersioned`
#[repr(C)]
struct VersionedTensor {
    version: Version,
    context: *mut c_void,
    deleter: Option<unsafe extern "C" fn(*mut VersionedTensor)>,
    flags: u64,
    tensor: RawTensor,
}

/// The memory that holds a tensor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TensorMemory {
    /// This process's memory.
    Host,
    /// The same, page-locked, so that GPUs reach it.
    PageLocked,
    /// Memory of a GPU, by its number.
    Gpu(i32),
    /// Memory that moves to where it is used.
    Managed,
    /// Memory that neither executor can access, by DLPack's number of the kind.
    Elsewhere(i32),
}

impl TensorMemory {
    fn of(device: RawDevice) -> Self {
        match device.kind {
            1 => Self::Host,
            2 => Self::Gpu(device.id),
            3 => Self::PageLocked,
            13 => Self::Managed,
            other => Self::Elsewhere(other),
        }
    }

    /// `DLDeviceType`
    pub(crate) fn kind(self) -> i32 {
        match self {
            Self::Host => 1,
            Self::Gpu(_) => 2,
            Self::PageLocked => 3,
            Self::Managed => 13,
            Self::Elsewhere(other) => other,
        }
    }

    /// Whether work on it is queued in streams of CUDA's.
    pub(crate) fn has_streams(self) -> bool {
        match self {
            Self::Gpu(_) | Self::Managed => true,
            Self::Host | Self::PageLocked | Self::Elsewhere(_) => false,
        }
    }
}

/// The names of `DLDataTypeCode`, by their numbers.
const CODES: [&str; 18] = [
    "int",
    "uint",
    "float",
    "opaque handle",
    "bfloat",
    "complex",
    "bool",
    "float8_e3m4",
    "float8_e4m3",
    "float8_e4m3b11fnuz",
    "float8_e4m3fn",
    "float8_e4m3fnuz",
    "float8_e5m2",
    "float8_e5m2fnuz",
    "float8_e8m0fnu",
    "float6_e2m3fn",
    "float6_e3m2fn",
    "float4_e2m1fn",
];

impl RawType {
    /// The number that it is, if kernels can have it.
    #[inline]
    fn number(self) -> Option<Number> {
        let Self { code, bits, lanes } = self;
        Some(match (code, bits, lanes) {
            (0, 8, 1) => Number::I8,
            (0, 16, 1) => Number::I16,
            (0, 32, 1) => Number::I32,
            (0, 64, 1) => Number::I64,
            (1, 8, 1) => Number::U8,
            (1, 16, 1) => Number::U16,
            (1, 32, 1) => Number::U32,
            (1, 64, 1) => Number::U64,
            (2, 16, 1) => Number::F16,
            (2, 32, 1) => Number::F32,
            (2, 64, 1) => Number::F64,
            (4, 16, 1) => Number::BF16,
            (5, 64, 1) => Number::C64,
            (5, 128, 1) => Number::C128,
            (6, 8, 1) => Number::BOOL,
            _ => return None,
        })
    }

    /// The dtype that it is.
    ///
    /// # Errors
    ///
    /// `TypeError` for elements that kernels cannot have.
    #[inline]
    fn dtype(self) -> PyResult<DType> {
        self.number().map(DType::from).or_else(|| self.float8()).ok_or_else(|| self.unsupported())
    }

    /// The float of 8 bits that it is.
    #[cold]
    fn float8(self) -> Option<DType> {
        let Self { code, bits: 8, lanes: 1 } = self else { return None };
        DType::intern(Compound::Float8(Float8::from_name(CODES.get(usize::from(code))?)?))
    }

    #[cold]
    fn unsupported(self) -> PyErr {
        let (name, lanes) = (self.name(), self.lanes);
        if lanes == 1 {
            return numpy::unsupported(&name);
        }
        PyTypeError::new_err(format!(
            "each of its elements is a vector of {lanes} {name}s, which is not supported; pass a tensor of numbers \
             with one more dimension"
        ))
    }

    fn name(self) -> String {
        let bits = self.bits;
        match CODES.get(usize::from(self.code)) {
            // Their names say how many bits.
            Some(name) if self.code > 6 || self.code == 3 => (*name).to_owned(),
            Some(name) => format!("{name}{bits}"),
            None => format!("{} of DLPack with {bits} bits", self.code),
        }
    }

    /// The type of elements that are exported.
    ///
    /// # Errors
    ///
    /// `BufferError` for a dtype that DLPack has not.
    fn of(dtype: DType) -> PyResult<Self> {
        if let Some(format) = dtype.float8() {
            let code = CODES.iter().position(|name| *name == format.name()).unwrap_or_default();
            return Ok(Self { code: code as u8, bits: 8, lanes: 1 });
        }
        let DType::Number(number) = dtype else {
            return Err(PyBufferError::new_err(format!("DLPack does not support arrays of {dtype}")));
        };
        let code = match number {
            Number::Real(Scalar::Bool) => 6,
            Number::Real(Scalar::I8 | Scalar::I16 | Scalar::I32 | Scalar::I64) => 0,
            Number::Real(Scalar::U8 | Scalar::U16 | Scalar::U32 | Scalar::U64) => 1,
            Number::Real(Scalar::F16 | Scalar::F32 | Scalar::F64) => 2,
            Number::Real(Scalar::BF16) => 4,
            Number::Complex(Complex::C64 | Complex::C128) => 5,
        };
        let bits = u8::try_from(dtype.size_bytes() * 8)
            .map_err(|_| PyBufferError::new_err(format!("DLPack does not support {dtype} elements")))?;
        Ok(Self { code, bits, lanes: 1 })
    }
}

#[cfg(test)]
mod tests {
    use std::mem::{offset_of, size_of};

    use super::*;

    #[test]
    fn structures_lie_as_the_header_says() {
        assert_eq!((size_of::<RawTensor>(), offset_of!(RawTensor, shape), offset_of!(RawTensor, dtype)), (48, 24, 20));
        assert_eq!((size_of::<OldTensor>(), offset_of!(OldTensor, deleter)), (64, 56));
        assert_eq!((size_of::<VersionedTensor>(), offset_of!(VersionedTensor, tensor)), (80, 32));
        assert_eq!((offset_of!(VersionedTensor, deleter), offset_of!(VersionedTensor, flags)), (16, 24));
    }

    #[test]
    fn types_there_and_back() {
        for row in &weft_artifact::NUMBERS {
            let dtype = DType::from(row.number);
            let raw = RawType::of(dtype).unwrap_or_else(|_| panic!("{dtype} is one of DLPack's"));
            assert_eq!(raw.dtype().ok(), Some(dtype));
        }
    }
}
