//! Code of any compiler: the functions of a module that was loaded from PTX or machine code.

use std::{ffi::c_void, fmt::Debug};

#[cfg(doc)]
use crate::executor::LoadedKernel;
use crate::{
    error::{Error, ErrorKind},
    executor::{LaunchConfig, Stream},
};

/// The error of a device that is a CPU, for code that only GPUs run.
pub(crate) fn needs_gpu() -> Error {
    Error::new(
        ErrorKind::NoDevice,
        "PTX and machine code of a GPU run on GPUs only, and kernels run on the CPU here: write the kernel in Python \
         with `cuda.jit`, which runs on both, or declare the function with `cuda.declare_device` as a decorator of its \
         Python version",
    )
}

/// The resources and limits of a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FunctionAttributes {
    /// Registers a thread.
    pub registers: u32,
    /// Static shared memory of a block in bytes.
    pub shared_bytes: u32,
    /// Local memory of a thread in bytes.
    pub local_bytes: u32,
    /// Constant memory in bytes.
    pub const_bytes: u32,
    /// Threads a block can have.
    pub max_threads_per_block: u32,
}

/// How a function prefers to divide the memory of a multiprocessor that is shared memory and L1 cache. The values are
/// those of `CUfunc_cache`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CachePreference {
    /// No preference.
    None = 0,
    /// More shared memory.
    Shared = 1,
    /// More L1 cache.
    L1 = 2,
    /// The same of both.
    Equal = 3,
}

/// The values of a function's parameters, in order.
#[derive(Clone, Debug, Default)]
pub struct FunctionArguments {
    /// The bytes of each value, which begins in a cell of its own.
    cells: Vec<u64>,
    /// The first cell and the size in bytes of each value.
    values: Vec<(usize, usize)>,
}

impl FunctionArguments {
    /// Adds the value of the next parameter.
    pub fn push(&mut self, bytes: &[u8]) {
        self.values.push((self.cells.len(), bytes.len()));
        for part in bytes.chunks(8) {
            let mut cell = [0; 8];
            for (to, from) in cell.iter_mut().zip(part) {
                *to = *from;
            }
            self.cells.push(u64::from_ne_bytes(cell));
        }
    }

    /// The size of each value in bytes.
    pub fn sizes(&self) -> impl ExactSizeIterator<Item = usize> {
        self.values.iter().map(|(_, size)| *size)
    }

    /// The address of each value, which is valid until the arguments change or are dropped.
    pub(crate) fn addresses(&mut self) -> Vec<*mut c_void> {
        let cells = self.cells.as_mut_ptr();
        self.values.iter().map(|(first, _)| cells.wrapping_add(*first).cast()).collect()
    }
}

/// A kernel of a module, launched with the bytes of its parameters: weft knows nothing of their types.
pub trait Function: Debug + Send + Sync {
    /// The driver's handle: a `CUkernel`, or a `CUfunction` where the module is no library.
    fn handle(&self) -> u64;
    /// Its resources and limits.
    fn attributes(&self) -> FunctionAttributes;
    /// The size of each parameter in bytes; `None` if the driver is older than CUDA 12.4.
    fn parameter_sizes(&self) -> Option<&[usize]>;
    /// As [`LoadedKernel::active_blocks`].
    ///
    /// # Errors
    ///
    /// The device's.
    fn active_blocks(&self, block_threads: u32, shared_bytes: u32) -> Result<u32, Error>;
    /// Sets the preference for later launches.
    ///
    /// # Errors
    ///
    /// The device's.
    fn prefer_cache(&self, preference: CachePreference) -> Result<(), Error>;
    /// As [`LoadedKernel::prefer_shared`].
    ///
    /// # Errors
    ///
    /// The device's.
    fn prefer_shared(&self, percent: i8) -> Result<(), Error>;
    /// Queues a launch, cooperative if all blocks must run at the same time. The caller holds the memory that the
    /// arguments point to. Where the driver does not report the parameters, the caller is responsible for the number
    /// and the sizes of the arguments, as in CUDA.
    ///
    /// # Errors
    ///
    /// `Value` for arguments that are not those of the parameters; otherwise as [`LoadedKernel::launch`].
    fn launch(
        &self,
        config: &LaunchConfig,
        stream: Option<&dyn Stream>,
        arguments: &mut FunctionArguments,
        cooperative: bool,
    ) -> Result<(), Error>;
}
