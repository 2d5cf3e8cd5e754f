//! The functions of the loaded libtorch: its stable C ABI, found by name.
#![expect(unsafe_code, reason = "calls functions of libtorch")]

use std::{
    ffi::{c_char, c_void},
    sync::OnceLock,
};

use libloading::os::unix::{Library, RTLD_NOW};
use weft_artifact::{Number, Scalar};

/// A tensor, or a library of operators.
pub(super) type Handle = *mut c_void;
/// An operator's function: it reads its arguments from the words and writes its results over them.
///
/// It may unwind: libtorch reports errors by exceptions of C++.
pub(super) type Boxed = unsafe extern "C-unwind" fn(words: *mut u64, inputs: u64, outputs: u64);

/// `dlopen`: only a library that is already loaded.
const NO_LOAD: i32 = 4;
/// The version of the ABI that the structures here follow: 2.10.
const BUILT_FOR: u64 = 0x020a_0000_0000_0000;

type Code = unsafe extern "C-unwind" fn() -> i32;
type New = unsafe extern "C-unwind" fn(*const c_char, *const c_char, *const c_char, u32, *mut Handle) -> i32;
type Implement = unsafe extern "C-unwind" fn(Handle, *const c_char, Boxed) -> i32;
type ImplementFor = unsafe extern "C-unwind" fn(Handle, *const c_char, Boxed, u64) -> i32;
type Delete = unsafe extern "C-unwind" fn(Handle) -> i32;
type Read<T> = unsafe extern "C-unwind" fn(Handle, *mut T) -> i32;
type Empty = unsafe extern "C-unwind" fn(i64, *const i64, *const i64, i32, i32, i32, *mut Handle) -> i32;
type CurrentStream = unsafe extern "C-unwind" fn(i32, *mut *mut c_void) -> i32;
type Check = unsafe extern "C-unwind" fn(bool, *const c_char, *const c_char, u32, *const c_char);

/// The functions, and the codes that they use.
#[derive(Debug)]
pub(super) struct Functions {
    pub(super) new_impl: New,
    implement: Implement,
    /// Since 2.10.
    implement_for: Option<ImplementFor>,
    pub(super) delete: Delete,
    /// Whether a handle has a tensor: Python's None has none.
    pub(super) is_defined: Option<Read<bool>>,
    pub(super) data: Read<*mut c_void>,
    pub(super) dim: Read<i64>,
    pub(super) sizes: Read<*const i64>,
    pub(super) strides: Read<*const i64>,
    pub(super) dtype: Read<i32>,
    pub(super) device_type: Read<i32>,
    pub(super) device_index: Read<i32>,
    pub(super) empty: Empty,
    pub(super) zero: Delete,
    pub(super) check: Check,
    /// Of `libtorch_cuda`, where that is loaded.
    pub(super) current_stream: Option<CurrentStream>,
    pub(super) cpu: i32,
    pub(super) cuda: i32,
    /// The codes of the numbers that kernels can have.
    pub(super) codes: Vec<(i32, Number)>,
}

/// The names of libtorch's functions for the codes of numbers.
const NUMBERS: [(&str, Number); 15] = [
    ("float32", Number::F32),
    ("float64", Number::F64),
    ("float16", Number::F16),
    ("bfloat16", Number::BF16),
    ("int64", Number::I64),
    ("int32", Number::I32),
    ("int16", Number::I16),
    ("int8", Number::I8),
    ("uint8", Number::U8),
    ("uint16", Number::U16),
    ("uint32", Number::U32),
    ("uint64", Number::U64),
    ("bool", Number::BOOL),
    ("complex64", Number::C64),
    ("complex128", Number::C128),
];

/// `libtorch_cpu` as it is loaded: `None` before `import torch`.
fn loaded(name: &str) -> Option<Library> {
    // SAFETY: nothing is loaded, so no initializers run.
    unsafe { Library::open(Some(name), RTLD_NOW | NO_LOAD) }.ok()
}

/// A function of a library that stays loaded.
fn find<T: Copy>(library: &Library, name: &str) -> Option<T> {
    // SAFETY: every caller names the type that libtorch's header declares for the name.
    unsafe { library.get::<T>(name.as_bytes()) }.ok().map(|symbol| *symbol)
}

impl Functions {
    /// Those of the loaded libtorch.
    ///
    /// # Errors
    ///
    /// The name of the first function that this version does not have.
    pub(super) fn get() -> Result<&'static Self, String> {
        static FUNCTIONS: OnceLock<Functions> = OnceLock::new();
        if let Some(known) = FUNCTIONS.get() {
            return Ok(known);
        }
        let found = Self::find()?;
        Ok(FUNCTIONS.get_or_init(|| found))
    }

    fn find() -> Result<Self, String> {
        let library = loaded("libtorch_cpu.so").ok_or("libtorch_cpu.so")?;
        let code = |name: String| -> Result<i32, String> {
            let function: Code = find(&library, &name).ok_or(name)?;
            // SAFETY: the function takes nothing and returns a constant.
            Ok(unsafe { function() })
        };
        macro_rules! function {
            ($name:literal) => {
                find(&library, $name).ok_or($name)?
            };
        }
        let cuda = loaded("libtorch_cuda.so");
        let functions = Self {
            new_impl: function!("aoti_torch_library_init_impl"),
            implement: function!("aoti_torch_library_impl"),
            implement_for: find(&library, "torch_library_impl"),
            delete: function!("aoti_torch_delete_tensor_object"),
            is_defined: find(&library, "aoti_torch_is_defined"),
            data: function!("aoti_torch_get_data_ptr"),
            dim: function!("aoti_torch_get_dim"),
            sizes: function!("aoti_torch_get_sizes"),
            strides: function!("aoti_torch_get_strides"),
            dtype: function!("aoti_torch_get_dtype"),
            device_type: function!("aoti_torch_get_device_type"),
            device_index: function!("aoti_torch_get_device_index"),
            empty: function!("aoti_torch_empty_strided"),
            zero: function!("aoti_torch_zero_"),
            check: function!("aoti_torch_check"),
            current_stream: cuda.as_ref().and_then(|cuda| find(cuda, "aoti_torch_get_current_cuda_stream")),
            cpu: code("aoti_torch_device_type_cpu".to_owned())?,
            cuda: code("aoti_torch_device_type_cuda".to_owned())?,
            codes: NUMBERS
                .iter()
                .filter_map(|(name, number)| Some((code(format!("aoti_torch_dtype_{name}")).ok()?, *number)))
                .collect(),
        };
        // Its functions are used as long as the process lives.
        std::mem::forget((library, cuda));
        Ok(functions)
    }

    /// Gives an operator its function for a dispatch key.
    pub(super) fn implement(&self, library: Handle, name: *const c_char, function: Boxed) -> bool {
        let status = match self.implement_for {
            // SAFETY: the library's handle, a string that ends with 0, and a function that lives with the process.
            Some(implement) => unsafe { implement(library, name, function, BUILT_FOR) },
            // SAFETY: as above.
            None => unsafe { (self.implement)(library, name, function) },
        };
        status == 0
    }

    /// The type of elements that a code of libtorch means, if kernels can have it.
    pub(super) fn number(&self, code: i32) -> Option<Number> {
        self.codes.iter().find_map(|(known, number)| (*known == code).then_some(*number))
    }

    /// The code of a type.
    pub(super) fn code(&self, number: Number) -> Option<i32> {
        self.codes.iter().find_map(|(code, known)| (*known == number).then_some(*code))
    }
}

/// The name of a number, for messages.
pub(super) fn shown(number: Number) -> &'static str {
    match number {
        Number::Real(Scalar::Bool) => "torch.bool",
        Number::Real(_) | Number::Complex(_) => number.row().name,
    }
}
