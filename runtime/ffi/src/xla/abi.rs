//! The structures of XLA's foreign function interface, `xla/ffi/api/c_api.h`, with the fields that are used here, which
//! are at the same offsets in versions 0.1 to 0.3.

use std::ffi::{c_char, c_void};

/// `XLA_FFI_ByteSpan`
#[repr(C)]
pub(super) struct Span {
    pub(super) start: *const u8,
    pub(super) len: usize,
}

/// `XLA_FFI_Extension_Base`
#[repr(C)]
pub(super) struct Extension {
    pub(super) size: usize,
    pub(super) kind: i32,
    pub(super) next: *mut Extension,
}

/// `XLA_FFI_Extension_Type`: asks for the handler's metadata.
pub(super) const METADATA: i32 = 1;

/// `XLA_FFI_Api_Version`
#[repr(C)]
pub(super) struct Version {
    pub(super) size: usize,
    pub(super) extension: *mut Extension,
    pub(super) major: i32,
    pub(super) minor: i32,
}

/// `XLA_FFI_Metadata`
#[repr(C)]
pub(super) struct Metadata {
    pub(super) size: usize,
    pub(super) version: Version,
    pub(super) traits: u32,
}

/// `XLA_FFI_Metadata_Extension`
#[repr(C)]
pub(super) struct MetadataExtension {
    pub(super) base: Extension,
    pub(super) metadata: *mut Metadata,
}

/// `XLA_FFI_Buffer`
#[repr(C)]
pub(super) struct Buffer {
    pub(super) size: usize,
    pub(super) extension: *mut Extension,
    pub(super) dtype: i32,
    pub(super) data: *mut c_void,
    pub(super) rank: i64,
    pub(super) dims: *const i64,
}

/// `XLA_FFI_Scalar`
#[repr(C)]
pub(super) struct ScalarAttribute {
    pub(super) dtype: i32,
    pub(super) value: *const c_void,
}

/// `XLA_FFI_Args` and `XLA_FFI_Rets`
#[repr(C)]
pub(super) struct List {
    pub(super) struct_size: usize,
    pub(super) extension: *mut Extension,
    pub(super) size: i64,
    pub(super) kinds: *const i32,
    pub(super) items: *const *const c_void,
}

/// `XLA_FFI_Attrs`
#[repr(C)]
pub(super) struct Attributes {
    pub(super) struct_size: usize,
    pub(super) extension: *mut Extension,
    pub(super) size: i64,
    pub(super) kinds: *const i32,
    pub(super) names: *const *const Span,
    pub(super) items: *const *const c_void,
}

/// `XLA_FFI_Error_Create_Args`
#[repr(C)]
pub(super) struct ErrorArgs {
    pub(super) size: usize,
    pub(super) extension: *mut Extension,
    pub(super) message: *const c_char,
    pub(super) code: i32,
}

/// `XLA_FFI_Stream_Get_Args`
#[repr(C)]
pub(super) struct StreamArgs {
    pub(super) size: usize,
    pub(super) extension: *mut Extension,
    pub(super) context: *mut c_void,
    pub(super) stream: *mut c_void,
}

/// `XLA_FFI_DeviceOrdinal_Get_Args`
#[repr(C)]
pub(super) struct OrdinalArgs {
    pub(super) size: usize,
    pub(super) extension: *mut Extension,
    pub(super) context: *mut c_void,
    pub(super) ordinal: i32,
}

/// `XLA_FFI_DeviceMemory_Allocate_Args`
#[repr(C)]
pub(super) struct AllocateArgs {
    pub(super) size: usize,
    pub(super) extension: *mut Extension,
    pub(super) context: *mut c_void,
    pub(super) bytes: usize,
    pub(super) alignment: usize,
    pub(super) data: *mut c_void,
}

/// `XLA_FFI_DeviceMemory_Free_Args`
#[repr(C)]
pub(super) struct FreeArgs {
    pub(super) size: usize,
    pub(super) extension: *mut Extension,
    pub(super) context: *mut c_void,
    pub(super) bytes: usize,
    pub(super) data: *mut c_void,
}

/// `XLA_FFI_Error_GetMessage_Args`
#[repr(C)]
pub(super) struct MessageArgs {
    pub(super) size: usize,
    pub(super) extension: *mut Extension,
    pub(super) error: *mut c_void,
    pub(super) message: *const c_char,
}

/// `XLA_FFI_Error_Destroy_Args`
#[repr(C)]
pub(super) struct DestroyArgs {
    pub(super) size: usize,
    pub(super) extension: *mut Extension,
    pub(super) error: *mut c_void,
}

/// `XLA_FFI_Api`, up to the functions that are called.
#[repr(C)]
pub(super) struct Api {
    pub(super) size: usize,
    pub(super) extension: *mut Extension,
    pub(super) version: Version,
    pub(super) internal: *const c_void,
    pub(super) create_error: unsafe extern "C" fn(*mut ErrorArgs) -> *mut c_void,
    pub(super) message: unsafe extern "C" fn(*mut MessageArgs),
    pub(super) destroy_error: unsafe extern "C" fn(*mut DestroyArgs),
    pub(super) _register: *const c_void,
    pub(super) stream: unsafe extern "C" fn(*mut StreamArgs) -> *mut c_void,
    /// `TypeId_Register` to `State_Get`.
    pub(super) _types_and_states: [*const c_void; 4],
    pub(super) allocate: unsafe extern "C" fn(*mut AllocateArgs) -> *mut c_void,
    pub(super) free: unsafe extern "C" fn(*mut FreeArgs) -> *mut c_void,
    /// `ThreadPool_Schedule` to `RunId_Get`.
    pub(super) _pools_and_futures: [*const c_void; 6],
    /// `DeviceOrdinal_Get`, where `size` includes it.
    pub(super) ordinal: Option<unsafe extern "C" fn(*mut OrdinalArgs) -> *mut c_void>,
}

/// `XLA_FFI_CallFrame`
#[repr(C)]
pub(super) struct Frame {
    pub(super) size: usize,
    pub(super) extension: *mut Extension,
    pub(super) api: *const Api,
    pub(super) context: *mut c_void,
    pub(super) stage: i32,
    pub(super) args: List,
    pub(super) results: List,
    pub(super) attributes: Attributes,
}

#[cfg(test)]
mod tests {
    use std::mem::{offset_of, size_of};

    use super::*;

    #[test]
    fn structures_have_the_offsets_of_the_header() {
        assert_eq!(size_of::<Buffer>(), 48);
        assert_eq!((offset_of!(Buffer, data), offset_of!(Buffer, rank), offset_of!(Buffer, dims)), (24, 32, 40));
        assert_eq!((offset_of!(Api, version) + offset_of!(Version, minor), offset_of!(Api, create_error)), (36, 48));
        assert_eq!((offset_of!(Api, message), offset_of!(MessageArgs, message)), (56, 24));
        assert_eq!((offset_of!(Api, destroy_error), offset_of!(Api, stream)), (64, 80));
        assert_eq!((offset_of!(Api, allocate), offset_of!(Api, free), offset_of!(Api, ordinal)), (120, 128, 184));
        assert_eq!((offset_of!(AllocateArgs, data), offset_of!(FreeArgs, data)), (40, 32));
        assert_eq!((offset_of!(Frame, api), offset_of!(Frame, stage)), (16, 32));
        assert_eq!(offset_of!(Frame, args) + offset_of!(List, size), 56);
        assert_eq!(offset_of!(Frame, results) + offset_of!(List, items), 112);
        assert_eq!(offset_of!(Frame, attributes) + offset_of!(Attributes, names), 152);
        assert_eq!(offset_of!(Metadata, version) + offset_of!(Version, major), 24);
        assert_eq!((offset_of!(Metadata, traits), offset_of!(MetadataExtension, metadata)), (32, 24));
    }
}
