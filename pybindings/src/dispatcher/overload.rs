//! Compiled kernels: one [`Overload`] for each tuple of argument types and device, and how a launch's arguments reach
//! its slots ([`Resolved`]).

use std::sync::Arc;

use pyo3::{prelude::*, types::PyTuple};
use weft_artifact::{ArgType, Kernel};
use weft_compiler::{
    pipeline::Output,
    request::{FunctionDef, Keep},
};
use weft_runtime::{Buffer, Executor, LoadedKernel, Module};

use crate::{
    args::convert::Cast,
    arrays::device_array::DeviceArray,
    devices,
    engine::{
        self,
        options::{self, JitOptions},
    },
    errors,
    types::{key, tuple_of_types},
};

/// One kernel, compiled for one tuple of argument types and loaded on one device.
#[derive(Debug)]
pub(crate) struct Overload {
    /// The types that it was compiled for.
    pub(crate) args: Vec<ArgType>,
    /// The number of its device.
    pub(crate) device: u32,
    /// Its device.
    pub(crate) executor: Arc<dyn Executor>,
    /// Its ABI.
    pub(crate) kernel: Kernel,
    /// Its code on the device.
    pub(crate) loaded: Arc<dyn LoadedKernel>,
    /// Holds the code as long as the kernel is used.
    _module: Arc<dyn Module>,
    /// Code and ABI as compiled.
    output: Arc<Output>,
    /// What it was compiled of: texts that are asked for later are of the same constants.
    pub(crate) function: Arc<FunctionDef>,
    /// The device arrays whose addresses are in the code.
    _kept: Vec<Py<PyAny>>,
    /// Memory of them, if work in streams whose number is not this must be noted.
    pub(crate) lent: Vec<(u64, Arc<dyn Buffer>)>,
}

/// An overload for arguments of certain types.
#[derive(Debug)]
pub(crate) struct Resolved {
    /// The arguments' types.
    pub(crate) key: Box<[u32]>,
    /// The kernel.
    pub(crate) overload: Arc<Overload>,
    /// For each cell of the launch the argument's cell that it is taken from.
    pub(crate) cells: Box<[u32]>,
    /// Conversions to declared types.
    pub(crate) casts: Box<[Cast]>,
}

impl Overload {
    /// Compiles for the current device and loads the code.
    pub(crate) fn compile(
        py: Python<'_>,
        function: &Arc<FunctionDef>,
        args: &[ArgType],
        jit: &JitOptions,
        kept: Vec<Py<PyAny>>,
    ) -> PyResult<Self> {
        let executor = devices::current(py)?;
        let target = options::target(&executor.target())?;
        let output = engine::compile(py, function, args, target, jit, Keep::default())?;
        let Some(kernel) = output.artifact.kernels.first().cloned() else {
            return Err(errors::internal(py, "the compiler gave no kernel"));
        };
        let loaded = py.detach(|| {
            let module = executor.load(&output.artifact)?;
            let loaded = module.kernel(&kernel)?;
            Ok((module, loaded))
        });
        let (module, loaded) = loaded.map_err(|error| errors::runtime(py, &error))?;
        Ok(Self {
            args: args.to_vec(),
            device: devices::current_id(),
            executor,
            kernel,
            loaded,
            _module: module,
            output,
            function: Arc::clone(function),
            lent: kept
                .iter()
                .filter_map(|array| {
                    array.bind(py).cast::<DeviceArray>().ok().and_then(|array| array.get().lent.clone())
                })
                .collect(),
            _kept: kept,
        })
    }

    /// How arguments of the types of `key` reach this kernel.
    pub(crate) fn resolve(self: &Arc<Self>, py: Python<'_>, words: &[u32], casts: Vec<Cast>) -> PyResult<Resolved> {
        let given = key::decode(words);
        let cells = key::cells_of(&given, &self.kernel.slots);
        let cells = cells.ok_or_else(|| {
            errors::internal(py, &format!("kernel `{}` has a slot that fits none of its arguments", self.kernel.name))
        })?;
        Ok(Resolved { key: words.into(), overload: Arc::clone(self), cells, casts: casts.into() })
    }
}

/// A compiled kernel, as `dispatcher.overloads` has it.
#[pyclass(frozen, module = "weft._weft", name = "Kernel")]
#[derive(Debug)]
pub(crate) struct CompiledKernel {
    pub(crate) overload: Arc<Overload>,
}

#[pymethods]
impl CompiledKernel {
    /// The types that it was compiled for.
    #[getter]
    fn argument_types<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        tuple_of_types(py, &self.overload.args)
    }

    /// The symbol in the code.
    #[getter]
    fn entry_name(&self) -> &str {
        &self.overload.kernel.symbol
    }

    /// What it was compiled for: `"sm_90"` or `"host"`.
    #[getter]
    fn target(&self) -> &str {
        &self.overload.output.artifact.target
    }

    /// The code as it was loaded: PTX text, or an object file.
    #[getter]
    fn code(&self) -> &[u8] {
        &self.overload.output.artifact.code
    }

    /// Registers a thread; 0 on the CPU.
    #[getter]
    fn regs_per_thread(&self) -> u32 {
        self.overload.loaded.registers()
    }

    /// Static shared memory of a block in bytes.
    #[getter]
    fn shared_mem_per_block(&self) -> u32 {
        self.overload.loaded.shared_bytes()
    }

    /// Local memory of a thread in bytes.
    #[getter]
    fn local_mem_per_thread(&self) -> u32 {
        self.overload.loaded.local_bytes()
    }

    /// Constant memory in bytes.
    #[getter]
    fn const_mem_size(&self) -> u32 {
        self.overload.loaded.const_bytes()
    }

    /// Threads that a block of this kernel can have.
    #[getter]
    fn max_threads_per_block(&self) -> u32 {
        self.overload.loaded.max_threads_per_block()
    }

    /// Its launches are cooperative: all blocks of the grid run at a time.
    #[getter]
    fn cooperative(&self) -> bool {
        self.overload.kernel.cooperative
    }

    /// How many blocks of a size a cooperative launch can have.
    #[pyo3(signature = (blockdim, dynsmemsize=0))]
    fn max_cooperative_grid_blocks(
        &self,
        py: Python<'_>,
        blockdim: &Bound<'_, PyAny>,
        dynsmemsize: u32,
    ) -> PyResult<u64> {
        let threads = match blockdim.extract::<Vec<u32>>() {
            Ok(extents) => extents.iter().fold(1_u32, |product, extent| product.saturating_mul(*extent)),
            Err(_) => blockdim.extract::<u32>()?,
        };
        let most = self.overload.loaded.most_blocks_at_once(threads, dynsmemsize);
        most.map_err(|error| errors::runtime(py, &error))
    }

    /// For each parameter: its name, whether the kernel reads the arrays in it, and whether it writes them.
    #[getter]
    fn access(&self) -> Vec<(&str, bool, bool)> {
        self.overload.kernel.params.iter().map(|p| (p.name.as_str(), p.access.reads, p.access.writes)).collect()
    }

    fn __repr__(&self) -> String {
        let args: Vec<String> = self.overload.args.iter().map(ToString::to_string).collect();
        format!(
            "<weft kernel {}({}) for {}>",
            self.overload.kernel.name,
            args.join(", "),
            self.overload.output.artifact.target
        )
    }
}
