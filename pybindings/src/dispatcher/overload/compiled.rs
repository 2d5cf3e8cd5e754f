//! A compiled kernel for Python: `kernel.overloads[types]`.

use std::sync::Arc;

use pyo3::{
    gc::{PyTraverseError, PyVisit},
    prelude::*,
    types::PyTuple,
};
use weft_compiler::{
    pipeline::Output,
    request::{self, Keep},
};
use weft_runtime::{BlockSize, Error, Executor, best_block};

use super::Overload;
use crate::{
    devices,
    dispatcher::{
        Dispatcher, answers, around,
        launcher::{dimensions, launch_config},
    },
    engine::options,
    errors,
    types::{Signature, tuple_of_types},
};

/// Factors along x, y and z.
type Axes = (u32, u32, u32);

/// A compiled kernel in `dispatcher.overloads`: its use of the device's memory, registers and threads.
///
/// >>> scale[1, 32](np.ones(3), 2.0)
/// >>> kernel = scale.overloads[scale.signatures[-1]]
/// >>> assert kernel.shared_mem_per_block == 0
#[pyclass(frozen, module = "weft._weft", name = "Kernel")]
#[derive(Debug)]
pub(crate) struct CompiledKernel {
    owner: Py<Dispatcher>,
    pub(crate) overload: Arc<Overload>,
}

impl CompiledKernel {
    /// One of a dispatcher's kernels.
    pub(in crate::dispatcher) fn new(owner: &Bound<'_, Dispatcher>, overload: &Arc<Overload>) -> Self {
        Self { owner: owner.clone().unbind(), overload: Arc::clone(overload) }
    }

    /// The kernel compiled for GPUs of a compute capability. The default is the device's.
    fn compiled_for(&self, py: Python<'_>, cc: Option<(u32, u32)>, keep: Keep) -> PyResult<Arc<Output>> {
        let (major, minor) = cc.unwrap_or(self.overload.executor.attributes().compute_capability);
        let Overload { definition, args, jit, .. } = &*self.overload;
        let target = options::of_capability(major, minor);
        Ok(answers::compile_whole(py, &mut definition.clone(), args, &target, jit, keep)?.output)
    }
}

#[pymethods]
impl CompiledKernel {
    /// The types that it was compiled for.
    #[getter]
    fn argument_types<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        tuple_of_types(py, &self.overload.args)
    }

    /// The same as a signature.
    #[getter]
    fn signature(&self) -> Signature {
        let args = self.overload.args.clone();
        Signature::from_request(&request::Signature { args, returns: None })
    }

    /// How the compiler coarsens its threads, or why it does not, as a sentence. It describes the last launch that used
    /// another variant. Empty if coarsening was not requested, or if it fits no launch up to now.
    #[getter]
    fn coarsening(&self) -> String {
        let last = self.overload.variants.coarsened.last();
        last.as_ref().unwrap_or(&self.overload).kernel.coarsening.note.clone()
    }

    /// Candidate factors for coarsening its threads and blocks, best estimate first: values of `coarsen` and
    /// `coarsen_blocks`, the estimated time in thousandths of the kernel's, and a description. Empty unless a choice
    /// was requested.
    #[getter]
    fn coarsening_candidates(&self) -> Vec<(Axes, Axes, u32, &str)> {
        let candidates = self.overload.kernel.coarsening.candidates.iter();
        let axes = |[x, y, z]: [u32; 3]| (x, y, z);
        candidates
            .map(|one| (axes(one.factors.threads), axes(one.factors.blocks), one.time, one.note.as_str()))
            .collect()
    }

    /// The assumptions of the kernel and of each of its variants about a launch, in no order. Each is a list of
    /// `"small"`, `"nonneg"`, `"disjoint"`, `"aligned"` and `"warps"`.
    #[getter]
    fn assumptions(&self) -> Vec<Vec<&'static str>> {
        let variants = self.overload.variants.assuming.iter().map(|variant| variant.assumed().names().collect());
        std::iter::once(self.overload.assumed().names().collect()).chain(variants).collect()
    }

    /// Whether it has line tables, is not optimized, and raises Python's exceptions.
    #[getter]
    fn debug(&self) -> bool {
        self.overload.jit.code.debug
    }

    /// Whether it has line tables.
    #[getter]
    fn lineinfo(&self) -> bool {
        self.overload.jit.code.lineinfo
    }

    #[doc = include_str!("docs/compiled.inspect_asm.txt")]
    #[pyo3(signature = (cc=None))]
    fn inspect_asm(&self, py: Python<'_>, cc: Option<(u32, u32)>) -> PyResult<String> {
        let output = self.compiled_for(py, cc, Keep::default())?;
        Ok(String::from_utf8_lossy(&output.artifact.code).into_owned())
    }

    #[doc = include_str!("docs/compiled.inspect_llvm.txt")]
    #[pyo3(signature = (cc=None))]
    fn inspect_llvm(&self, py: Python<'_>, cc: Option<(u32, u32)>) -> PyResult<String> {
        let output = self.compiled_for(py, cc, Keep { llvm: true, ..Keep::default() })?;
        output.llvm.clone().ok_or_else(|| errors::internal(py, "the compiler returned no LLVM IR"))
    }

    /// The symbol in the code.
    #[getter]
    fn entry_name(&self) -> &str {
        &self.overload.kernel.symbol
    }

    /// The target that it was compiled for: `"sm_90"` or `"host"`.
    #[getter]
    fn target(&self) -> &str {
        self.overload.target()
    }

    /// Unpickling compiles the kernel for the GPU of that process, or loads it from the disk cache.
    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyTuple>)> {
        let rebuild = py.import("weft._pickle")?.getattr("rebuild_kernel")?;
        Ok((rebuild, (&self.owner, self.signature()).into_pyobject(py)?))
    }

    /// The code as it was loaded: PTX text, or an object file.
    #[getter]
    fn code(&self, py: Python<'_>) -> PyResult<&[u8]> {
        Ok(self.overload.code(py)?.bytes())
    }

    /// Registers per thread; 0 on the CPU.
    #[getter]
    fn regs_per_thread(&self, py: Python<'_>) -> PyResult<u32> {
        Ok(self.overload.loaded(py)?.registers())
    }

    /// Static shared memory of a block in bytes.
    #[getter]
    fn shared_mem_per_block(&self, py: Python<'_>) -> PyResult<u32> {
        Ok(self.overload.loaded(py)?.shared_bytes())
    }

    /// Local memory of a thread in bytes; on the CPU that of its arrays.
    #[getter]
    fn local_mem_per_thread(&self, py: Python<'_>) -> PyResult<u32> {
        Ok(self.overload.loaded(py)?.local_bytes())
    }

    /// Constant memory in bytes; on the CPU the constants in the code, captured arrays and strings.
    #[getter]
    fn const_mem_size(&self, py: Python<'_>) -> PyResult<u32> {
        Ok(self.overload.loaded(py)?.const_bytes())
    }

    /// The maximum number of threads per block.
    #[getter]
    fn max_threads_per_block(&self, py: Python<'_>) -> PyResult<u32> {
        Ok(self.overload.loaded(py)?.max_threads_per_block())
    }

    /// Whether its launches are cooperative: all blocks of the grid run at the same time.
    #[getter]
    fn cooperative(&self) -> bool {
        self.overload.kernel.cooperative
    }

    #[doc = include_str!("docs/compiled.active_blocks_per_multiprocessor.txt")]
    #[pyo3(signature = (blockdim, dynsmemsize=0))]
    fn active_blocks_per_multiprocessor(
        &self,
        py: Python<'_>,
        blockdim: &Bound<'_, PyAny>,
        dynsmemsize: u32,
    ) -> PyResult<u32> {
        let active = self.overload.loaded(py)?.active_blocks(threads(blockdim)?, dynsmemsize);
        active.map_err(|error| errors::runtime(py, &error))
    }

    #[doc = include_str!("docs/compiled.max_potential_block_size.txt")]
    #[pyo3(signature = (dynsmemsize=None, limit=0))]
    fn max_potential_block_size(
        &self,
        py: Python<'_>,
        dynsmemsize: Option<&Bound<'_, PyAny>>,
        limit: u32,
    ) -> PyResult<(u32, u32)> {
        let loaded = self.overload.loaded(py)?;
        let most = within(loaded.max_threads_per_block(), limit);
        best_size(py, &*self.overload.executor, most, dynsmemsize, |threads, bytes| {
            loaded.active_blocks(threads, bytes)
        })
    }

    #[doc = include_str!("docs/compiled.max_cooperative_grid_blocks.txt")]
    #[pyo3(signature = (blockdim, dynsmemsize=0))]
    fn max_cooperative_grid_blocks(
        &self,
        py: Python<'_>,
        blockdim: &Bound<'_, PyAny>,
        dynsmemsize: u32,
    ) -> PyResult<u64> {
        let most = self.overload.loaded(py)?.most_blocks_at_once(threads(blockdim)?, dynsmemsize);
        most.map_err(|error| errors::runtime(py, &error))
    }

    /// Whether there is a separate kernel for each launch configuration.
    #[getter]
    fn launch_config_sensitive(&self) -> bool {
        self.owner.get().is_sensitive()
    }

    /// Its code, as strings.
    #[getter]
    fn library<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let library = py.import("weft.cuda._code.results")?.getattr("CodeLibrary")?;
        library.call1((self.entry_name(), &self.owner, self.argument_types(py)?))
    }

    /// Checks that the code is loaded on the current device.
    fn bind(&self, py: Python<'_>) -> PyResult<()> {
        let current = devices::current_id();
        if self.overload.device == current {
            return Ok(());
        }
        let message = format!(
            "this kernel is loaded on device {}, but the current device is {current}: call `compile` of its \
             dispatcher to get the kernel for this device",
            self.overload.device
        );
        Err(errors::launch(py, &message))
    }

    #[doc = include_str!("docs/compiled.launch.txt")]
    #[pyo3(signature = (args, griddim, blockdim, stream=None, sharedmem=None))]
    fn launch(
        &self,
        args: &Bound<'_, PyAny>,
        griddim: &Bound<'_, PyAny>,
        blockdim: &Bound<'_, PyAny>,
        stream: Option<&Bound<'_, PyAny>>,
        sharedmem: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        let py = args.py();
        self.bind(py)?;
        let owner = self.owner.bind(py);
        let launcher = Dispatcher::launcher(owner, launch_config(griddim, blockdim, sharedmem, None)?, stream, false)?;
        let args = PyTuple::new(py, args.try_iter()?.collect::<PyResult<Vec<_>>>()?)?;
        let extended = around::extend(owner, &owner.get().complete(&args, None)?, stream.map(Bound::as_unbound))?;
        around::launch_kernel(&launcher, &extended, &self.overload)
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.owner)
    }

    /// For each parameter: its name, whether the kernel reads the arrays in it, and whether it writes them.
    #[getter]
    fn access(&self) -> Vec<(&str, bool, bool)> {
        self.overload.kernel.params.iter().map(|p| (p.name.as_str(), p.access.reads, p.access.writes)).collect()
    }

    fn __repr__(&self) -> String {
        format!("<weft kernel {}>", self.overload.shown())
    }
}

/// The most threads of a block under a limit, unless that is 0.
pub(in crate::dispatcher) fn within(most: u32, limit: u32) -> u32 {
    if limit == 0 { most } else { most.min(limit) }
}

/// The fewest blocks that fill a device, and the block size, up to `most`, with which a multiprocessor runs the most
/// threads. `dynsmemsize` is the dynamic shared memory of a block in bytes, or gives it for the threads of a block.
pub(in crate::dispatcher) fn best_size(
    py: Python<'_>,
    executor: &dyn Executor,
    most: u32,
    dynsmemsize: Option<&Bound<'_, PyAny>>,
    active_blocks: impl Fn(u32, u32) -> Result<u32, Error>,
) -> PyResult<(u32, u32)> {
    let bytes = |threads: u32| match dynsmemsize {
        None => Ok(0),
        Some(of) if of.is_callable() => of.call1((threads,))?.extract::<u32>(),
        Some(bytes) => bytes.extract::<u32>(),
    };
    let active = |threads: u32| active_blocks(threads, bytes(threads)?).map_err(|error| errors::runtime(py, &error));
    let BlockSize { threads, grid } = best_block(executor.attributes(), most, active)?;
    Ok((grid, threads))
}

/// Threads of a block with such extents.
fn threads(blockdim: &Bound<'_, PyAny>) -> PyResult<u32> {
    let extents = dimensions(blockdim, "blockdim")?;
    Ok(extents.iter().fold(1, |product: u32, extent| product.saturating_mul(*extent)))
}
