//! Kernels of any compiler, launched with the bytes of their parameters.
#![expect(unsafe_code, reason = "calls into the CUDA driver")]

use std::{
    ffi::{CString, c_uint},
    sync::OnceLock,
};

use cudarc::driver::sys;

use super::{
    context::Context,
    driver::{self, Handle},
    kernel::CudaKernel,
    module::CudaModule,
    stream::raw_stream,
};
use crate::{
    error::{Error, ErrorKind},
    executor::{LaunchConfig, LoadedKernel, Stream},
    foreign::{CachePreference, Function, FunctionArguments, FunctionAttributes},
    profiler_ranges,
};

/// `CUDA_ERROR_INVALID_VALUE`: there is no parameter of this number.
const INVALID_VALUE: c_uint = 1;
/// `CUDA_ERROR_NOT_FOUND`.
const NOT_FOUND: u32 = 500;

type ParamInfo = unsafe extern "C" fn(sys::CUfunction, usize, *mut usize, *mut usize) -> c_uint;

/// A kernel in a module. It keeps the module loaded.
#[derive(Debug)]
pub(super) struct CudaFunction {
    kernel: CudaKernel,
    function: Handle<sys::CUfunc_st>,
    name: String,
    handle: u64,
    parameter_sizes: Option<Vec<usize>>,
}

impl CudaFunction {
    /// The kernel of a module with a symbol.
    pub(super) fn new(module: &CudaModule, name: &str) -> Result<Self, Error> {
        let context = module.context();
        let symbol = CString::new(name)
            .map_err(|_| Error::new(ErrorKind::Value, format!("the name of a function has a NUL: {name:?}")))?;
        let function = context.blame(module.symbol(&symbol)).map_err(|error| not_found(name, error))?;
        let handle = module.library_kernel(&symbol).unwrap_or(function.addr() as u64);
        let _entered = context.enter()?;
        let kernel = module.loaded(function, name)?;
        let parameter_sizes = parameter_sizes(function);
        Ok(Self { kernel, function: Handle(function), name: name.to_owned(), handle, parameter_sizes })
    }

    fn context(&self) -> &Context {
        self.kernel.context()
    }

    /// Compares the arguments with the parameters, where the driver reports these.
    fn check(&self, arguments: &FunctionArguments) -> Result<(), Error> {
        let Some(expected) = &self.parameter_sizes else { return Ok(()) };
        let refused = |message| Err(Error::new(ErrorKind::Value, message));
        let count = |n: usize, what| format!("{n} {what}{}", if n == 1 { "" } else { "s" });
        let (given, name) = (arguments.sizes(), &self.name);
        if given.len() != expected.len() {
            return refused(format!(
                "args has {}, but `{name}` has {}",
                count(given.len(), "value"),
                count(expected.len(), "parameter")
            ));
        }
        for (number, (given, expected)) in given.zip(expected).enumerate() {
            if given != *expected {
                return refused(format!(
                    "args[{number}] has {given} bytes, but parameter {number} of `{name}` has {expected}: the sizes must be \
                     the same"
                ));
            }
        }
        Ok(())
    }
}

impl Function for CudaFunction {
    fn handle(&self) -> u64 {
        self.handle
    }

    fn attributes(&self) -> FunctionAttributes {
        FunctionAttributes {
            registers: self.kernel.registers(),
            shared_bytes: self.kernel.shared_bytes(),
            local_bytes: self.kernel.local_bytes(),
            const_bytes: self.kernel.const_bytes(),
            max_threads_per_block: self.kernel.max_threads_per_block(),
        }
    }

    fn parameter_sizes(&self) -> Option<&[usize]> {
        self.parameter_sizes.as_deref()
    }

    fn active_blocks(&self, block_threads: u32, shared_bytes: u32) -> Result<u32, Error> {
        self.kernel.active_blocks(block_threads, shared_bytes)
    }

    fn prefer_cache(&self, preference: CachePreference) -> Result<(), Error> {
        let context = self.context();
        let _entered = context.enter()?;
        // SAFETY: the function is live.
        unsafe { context.driver.cuFuncSetCacheConfig(self.function.0, preference as c_uint) }
    }

    fn prefer_shared(&self, percent: i8) -> Result<(), Error> {
        self.kernel.prefer_shared(percent)
    }

    fn launch(
        &self,
        config: &LaunchConfig,
        stream: Option<&dyn Stream>,
        arguments: &mut FunctionArguments,
        cooperative: bool,
    ) -> Result<(), Error> {
        self.kernel.check(config, 0)?;
        self.check(arguments)?;
        let stream = raw_stream(self.context(), stream)?;
        let _entered = self.context().enter()?;
        self.kernel.allow_shared(config)?;
        let _range = profiler_ranges::launch(&self.name);
        self.kernel.queue(config, stream, arguments.addresses().as_mut_ptr(), cooperative)
    }
}

/// The size of each parameter of a function, as drivers for CUDA 12.4 and newer report it. The context is current.
fn parameter_sizes(function: sys::CUfunction) -> Option<Vec<usize>> {
    static FOUND: OnceLock<Option<ParamInfo>> = OnceLock::new();
    let info = (*FOUND.get_or_init(|| driver::find("cuFuncGetParamInfo").ok()))?;
    let mut sizes = Vec::new();
    loop {
        let (mut offset, mut size) = (0, 0);
        // SAFETY: it writes two sizes, or fails after the last parameter; the function is live.
        match unsafe { info(function, sizes.len(), &raw mut offset, &raw mut size) } {
            0 => sizes.push(size),
            INVALID_VALUE => return Some(sizes),
            _ => return None,
        }
    }
}

/// The error for a name that the module does not have.
#[cold]
fn not_found(name: &str, error: Error) -> Error {
    let hint = if error.driver_code == Some(NOT_FOUND) {
        ": a kernel is an `.entry` of PTX, or a `__global__` function of CUDA C++, whose name is mangled unless it is \
         `extern \"C\"`"
    } else {
        ""
    };
    Error { message: format!("the module has no kernel `{name}`: {}{hint}", error.message), ..error }
}
