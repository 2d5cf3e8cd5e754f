//! Modules that a program loads through a context, and their functions: code of any compiler.
//!
//! A function keeps its module loaded. A module can also be unloaded before: then its functions exist, but cannot be
//! used any more.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pyo3::{
    exceptions::{PyRuntimeError, PyTypeError, PyValueError},
    prelude::*,
    types::{PyBytes, PyList},
};
use weft_runtime::{CachePreference, Executor, Function, FunctionArguments, FunctionAttributes, Module, Stream};

use super::{
    launcher::launch_config,
    overload::{best_size, within},
};
use crate::{
    arrays::device_array::{DeviceArray, Memory},
    devices::{self, fork, recording, stream::stream_of},
    errors,
};

/// A module and the functions that were taken from it, by name; `None` once it is unloaded.
#[derive(Debug)]
struct Code(Mutex<Option<Loaded>>);

#[derive(Debug)]
struct Loaded {
    module: Arc<dyn Module>,
    functions: Vec<(String, Arc<dyn Function>)>,
}

impl Code {
    fn lock(&self) -> MutexGuard<'_, Option<Loaded>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The module. If another thread unloads it meanwhile, the driver does so when the result is dropped.
    fn module(&self) -> PyResult<Arc<dyn Module>> {
        self.lock().as_ref().map(|loaded| Arc::clone(&loaded.module)).ok_or_else(|| unloaded("the module"))
    }

    /// A function by its number.
    fn function(&self, number: usize) -> PyResult<Arc<dyn Function>> {
        let code = self.lock();
        let found = code.as_ref().and_then(|loaded| loaded.functions.get(number));
        found.map(|(_, function)| Arc::clone(function)).ok_or_else(|| unloaded("the module of this function"))
    }
}

fn unloaded(what: &str) -> PyErr {
    PyRuntimeError::new_err(format!(
        "{what} was unloaded: by `unload`, or by a reset of the context or `cuda.close()`. Create it again"
    ))
}

/// Code that was loaded on a device.
#[pyclass(frozen, module = "weft._weft", name = "LoadedModule")]
#[derive(Debug)]
pub(crate) struct LoadedModule {
    device: u32,
    executor: Arc<dyn Executor>,
    code: Arc<Code>,
}

#[pymethods]
impl LoadedModule {
    /// Loads PTX, a cubin or a fatbin on a device.
    #[new]
    fn new(py: Python<'_>, device: u32, image: &[u8]) -> PyResult<Self> {
        recording::refuse("load a module")?;
        let executor = devices::by_id(py, device)?;
        let module = py.detach(|| {
            let _work = fork::at_work();
            executor.load_image(image)
        });
        let module = module.map_err(|error| errors::runtime(py, &error))?;
        let code = Arc::new(Code(Mutex::new(Some(Loaded { module, functions: Vec::new() }))));
        Ok(Self { device, executor, code })
    }

    /// The number of the device.
    #[getter]
    fn device(&self) -> u32 {
        self.device
    }

    /// Whether it was not unloaded.
    #[getter]
    fn is_loaded(&self) -> bool {
        self.code.lock().is_some()
    }

    /// The driver's handle: a `CUlibrary`, or a `CUmodule` where the driver is older than CUDA 12.0.
    #[getter]
    fn handle(&self) -> PyResult<u64> {
        let module = self.code.module()?;
        Ok(module.library().unwrap_or_else(|| module.handle()))
    }

    /// The handle of its code in the device's context, a `CUmodule`.
    fn get_module(&self) -> PyResult<u64> {
        Ok(self.code.module()?.handle())
    }

    /// The address and the bytes of a global variable.
    fn get_global(&self, py: Python<'_>, name: &str) -> PyResult<(u64, u64)> {
        let module = self.code.module()?;
        py.detach(|| module.global(name)).map_err(|error| errors::runtime(py, &error))
    }

    /// A kernel by its symbol.
    fn function(&self, py: Python<'_>, name: &str) -> PyResult<LoadedFunction> {
        let module = self.code.module()?;
        let made = py.detach(|| {
            let _work = fork::at_work();
            module.function(name)
        });
        let made = made.map_err(|error| errors::runtime(py, &error))?;
        let attributes = made.attributes();
        let mut code = self.code.lock();
        let loaded = code.as_mut().ok_or_else(|| unloaded("the module"))?;
        let known = loaded.functions.iter().position(|(known, _)| known == name);
        let number = known.unwrap_or_else(|| {
            loaded.functions.push((name.to_owned(), made));
            loaded.functions.len() - 1
        });
        let (executor, code) = (Arc::clone(&self.executor), Arc::clone(&self.code));
        Ok(LoadedFunction { device: self.device, executor, code, number, attributes })
    }

    /// Unloads it; a `RuntimeError` if that was done before.
    fn unload(&self, py: Python<'_>) -> PyResult<()> {
        recording::refuse("unload a module")?;
        let loaded = self.code.lock().take().ok_or_else(|| unloaded("the module"))?;
        py.detach(|| {
            let _work = fork::at_work();
            drop(loaded);
        });
        Ok(())
    }
}

/// A kernel in loaded code.
#[pyclass(frozen, module = "weft._weft", name = "LoadedFunction")]
#[derive(Debug)]
pub(crate) struct LoadedFunction {
    device: u32,
    executor: Arc<dyn Executor>,
    code: Arc<Code>,
    /// Its number among the functions of the module.
    number: usize,
    attributes: FunctionAttributes,
}

#[pymethods]
impl LoadedFunction {
    /// The driver's handle: a `CUkernel`, or a `CUfunction` where the driver is older than CUDA 12.0.
    #[getter]
    fn handle(&self) -> PyResult<u64> {
        Ok(self.code.function(self.number)?.handle())
    }

    /// Registers of a thread; static shared memory of a block, local memory of a thread and constant memory in bytes;
    /// and the most threads of a block.
    #[getter]
    fn attributes(&self) -> (u32, u32, u32, u32, u32) {
        let FunctionAttributes { registers, shared_bytes, local_bytes, const_bytes, max_threads_per_block } =
            self.attributes;
        (registers, shared_bytes, local_bytes, const_bytes, max_threads_per_block)
    }

    /// The size of each parameter in bytes; `None` where the driver is older than CUDA 12.4.
    #[getter]
    fn parameter_sizes(&self) -> PyResult<Option<Vec<usize>>> {
        Ok(self.code.function(self.number)?.parameter_sizes().map(<[usize]>::to_vec))
    }

    /// Sets the preferred division of memory into shared memory and L1 cache: a value of `CUfunc_cache`.
    fn prefer_cache(&self, py: Python<'_>, preference: u32) -> PyResult<()> {
        let preference = match preference {
            0 => CachePreference::None,
            1 => CachePreference::Shared,
            2 => CachePreference::L1,
            3 => CachePreference::Equal,
            _ => return Err(PyValueError::new_err(format!("there is no preference {preference}"))),
        };
        let function = self.code.function(self.number)?;
        py.detach(|| function.prefer_cache(preference)).map_err(|error| errors::runtime(py, &error))
    }

    /// Sets the preferred percentage of that memory that is shared memory; -1 for the driver's choice.
    fn prefer_shared(&self, py: Python<'_>, percent: i8) -> PyResult<()> {
        let function = self.code.function(self.number)?;
        py.detach(|| function.prefer_shared(percent)).map_err(|error| errors::runtime(py, &error))
    }

    /// How many blocks of this many threads run on a multiprocessor at a time.
    #[pyo3(signature = (blockdim, dynsmemsize=0))]
    fn active_blocks_per_multiprocessor(&self, py: Python<'_>, blockdim: u32, dynsmemsize: u32) -> PyResult<u32> {
        let function = self.code.function(self.number)?;
        function.active_blocks(blockdim, dynsmemsize).map_err(|error| errors::runtime(py, &error))
    }

    /// The fewest blocks that fill the device, and the block size with which a multiprocessor runs the most threads.
    #[pyo3(signature = (dynsmemsize=None, limit=0))]
    fn max_potential_block_size(
        &self,
        py: Python<'_>,
        dynsmemsize: Option<&Bound<'_, PyAny>>,
        limit: u32,
    ) -> PyResult<(u32, u32)> {
        let function = self.code.function(self.number)?;
        let most = within(self.attributes.max_threads_per_block, limit);
        best_size(py, &*self.executor, most, dynsmemsize, |threads, bytes| function.active_blocks(threads, bytes))
    }

    /// Launches it. An argument is the bytes of its value, or an address with the number of its device and the memory
    /// of weft's that contains it, or `None`.
    #[pyo3(signature = (args, griddim, blockdim, stream=None, sharedmem=None, cooperative=false))]
    fn launch(
        &self,
        args: &Bound<'_, PyList>,
        griddim: &Bound<'_, PyAny>,
        blockdim: &Bound<'_, PyAny>,
        stream: Option<&Bound<'_, PyAny>>,
        sharedmem: Option<&Bound<'_, PyAny>>,
        cooperative: bool,
    ) -> PyResult<()> {
        let py = griddim.py();
        devices::check_fork(py)?;
        recording::refuse("launch a function of a module")?;
        let config = launch_config(griddim, blockdim, sharedmem, None)?;
        let (mut arguments, mut memories) = (FunctionArguments::default(), Vec::new());
        for (number, arg) in args.iter().enumerate() {
            if let Ok(bytes) = arg.cast::<PyBytes>() {
                arguments.push(bytes.as_bytes());
                continue;
            }
            let (address, device, memory): (u64, u32, Bound<'_, PyAny>) = arg.extract()?;
            self.check_reach(number, address, device)?;
            arguments.push(&address.to_ne_bytes());
            memories.push(memory);
        }
        let function = self.code.function(self.number)?;
        let stream = stream_of(stream)?.on(py, &*self.executor)?;
        let launched = py.detach(|| {
            let _work = fork::at_work();
            function.launch(&config, stream.as_deref(), &mut arguments, cooperative)
        });
        errors::waited(py, launched)?;
        memories.iter().try_for_each(|memory| self.note_use(memory, stream.as_deref()))
    }
}

impl LoadedFunction {
    /// Refuses the memory of a device that this one's kernels do not reach: the access would end all work on the device.
    fn check_reach(&self, number: usize, address: u64, device: u32) -> PyResult<()> {
        if device == self.device || address == 0 || self.executor.out_of_reach(address).is_none() {
            return Ok(());
        }
        Err(PyValueError::new_err(format!(
            "args[{number}] is memory of device {device}, which kernels of device {} cannot access: copy it there",
            self.device
        )))
    }

    /// Records that queued work in a stream uses memory.
    fn note_use(&self, memory: &Bound<'_, PyAny>, stream: Option<&dyn Stream>) -> PyResult<()> {
        if let Ok(array) = memory.cast::<DeviceArray>() {
            array.get().note_use(&*self.executor, stream);
        } else if let Ok(memory) = memory.cast::<Memory>() {
            memory.get().note_use(&*self.executor, stream);
        } else if !memory.is_none() {
            return Err(PyTypeError::new_err("the memory of an argument must be a device array's, or weft's own"));
        }
        Ok(())
    }
}
