//! Arrays: in device memory, in this process, of other libraries; and the meaning of their extents and strides.

mod attribute;
pub(crate) mod cupy;
pub(crate) mod device_array;
pub(crate) mod dlpack;
pub(crate) mod fresh;
pub(crate) mod host_array;
pub(crate) mod host_memory;
pub(crate) mod interface;
pub(crate) mod pointers;
pub(crate) mod random;
pub(crate) mod recorded;
pub(crate) mod scalar;
pub(crate) mod strides;
pub(crate) mod tensor_maps;
