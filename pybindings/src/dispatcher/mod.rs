//! The result of `@cuda.jit`: a Python function with the kernels compiled from it.
//!
//! This file defines the class for Python. [`resolve`] finds or compiles the kernel for a launch's types; [`overload`]
//! is one compiled kernel, for which [`answers`] supplies the compiler with overloaded functions; [`inspect`] has its
//! properties. [`foreign`] compiles code for other programs, [`graph`] records launches, [`prepared`] is a launch with
//! fixed arguments, [`launcher`] and [`forall`] configure launches, [`launch`] executes one, [`around`] has its hooks, [`observer`] the one of tapes,
//! [`staging`] copies its host arrays, [`call`] binds its arguments to parameters, and [`messages`] has the errors of
//! calls. [`variants`] chooses which variant of a kernel a launch runs, and [`explain`] describes the variants.
//! [`export`] makes packages for programs without Python, and [`rules`] has the launch rules and output rules of exported kernels. [`modules`] loads code of any compiler and launches its functions.

mod answers;
pub(crate) mod around;
mod call;
pub(crate) mod explain;
pub(crate) mod export;
pub(crate) mod forall;
mod foreign;
pub(crate) mod graph;
pub(crate) mod inspect;
mod launch;
pub(crate) mod launcher;
mod messages;
pub(crate) mod modules;
pub(crate) mod observer;
pub(crate) mod operators;
pub(crate) mod overload;
pub(crate) mod prepared;
pub(crate) mod profile;
mod resolve;
pub(crate) mod rules;
mod staging;
mod tensors;
mod variants;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, atomic::AtomicBool};

use pyo3::{
    exceptions::{PyAssertionError, PyNotImplementedError, PyRuntimeError, PyTypeError, PyValueError},
    gc::{PyTraverseError, PyVisit},
    prelude::*,
    types::{PyDict, PyList, PyTuple},
};
use weft_compiler::request::{self, Derivative, GpuCode, Incoming, JitOptions, Scratch};

use self::{
    forall::ForAll,
    foreign::ForeignCode,
    launcher::{Launcher, launch_config},
    overload::{CompiledKernel, Resolved},
    resolve::DispatcherState,
};
use crate::{
    capture::{Capturer, Declared, Jitted, Parsed, keyword_only, parameter_names, variadic},
    engine::options,
    types::{Signature, Type, tuple_of_types},
};

/// A jitted function: `kernel[griddim, blockdim, stream, sharedmem, cluster](*args)` launches it, and kernels call it.
///
/// A grid and a block are an integer or a tuple of up to three; `sharedmem` is the dynamic shared memory of a block in
/// bytes. The first launch with arguments of new types compiles. `LaunchError`: the device cannot run such a launch;
/// `TypeError`: an argument is none that kernels take; `CompileError`: the text shows the line.
///
/// >>> x = cuda.to_device(np.ones(1000, np.float32))
/// >>> scale[(x.size + 255) // 256, 256](x, 2.0)
/// >>> assert x.copy_to_host().sum() == 2000
#[pyclass(frozen, dict, weakref, subclass, module = "weft._weft", name = "Dispatcher")]
pub(crate) struct Dispatcher {
    /// False while the object is zeroed memory: Python creates its `__dict__` before the fields below have values, and
    /// the garbage collector may run meanwhile.
    made: bool,
    py_func: Py<PyAny>,
    name: String,
    params: Vec<String>,
    /// The number of keyword-only parameters, which come last.
    keyword_only: usize,
    /// `*args` or `**kwargs`, which kernels do not support.
    variadic: Option<String>,
    /// Source code given instead of the function's file.
    source: Option<String>,
    /// A snapshot of the function's file at decoration: a `weft._source.Text`, or None.
    #[pyo3(get)]
    cached_source: Option<Py<PyAny>>,
    pub(crate) jit: JitOptions,
    /// The options as given, for pickling and `targetoptions`.
    #[pyo3(get)]
    targetoptions: Py<PyDict>,
    declared: Vec<request::Signature>,
    /// The function that computes its adjoints, from `cuda.custom_vjp`.
    #[pyo3(get)]
    backward: Option<Py<Dispatcher>>,
    state: Mutex<DispatcherState>,
    last: Mutex<Option<Arc<Resolved>>>,
    last_launcher: Mutex<Option<Py<Launcher>>>,
    /// Configurations whose callback lists were requested.
    cached_launchers: Mutex<Vec<Py<Launcher>>>,
    /// Extensions that prepare the arguments of its launches.
    #[pyo3(get)]
    extensions: Py<PyList>,
    /// Whether its code depends on the launch configuration that it is compiled for.
    sensitive: AtomicBool,
}

impl Dispatcher {
    fn state(&self) -> MutexGuard<'_, DispatcherState> {
        // No code under the lock panics or runs Python.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Jitted for Dispatcher {
    fn function<'py>(&self, py: Python<'py>) -> Bound<'py, PyAny> {
        self.py_func.bind(py).clone()
    }

    /// The function's syntax tree, parsed on first use.
    fn parsed(&self, py: Python<'_>) -> PyResult<Arc<Parsed>> {
        let known = self.state().parsed.clone();
        if let Some(known) = known {
            return Ok(known);
        }
        let parsed = Parsed::new(self.py_func.bind(py), self.source.as_deref(), self.cached_source.as_ref())?;
        let parsed = Arc::new(match &self.jit.code.derivative {
            Some(derivative) => parsed.with_adjoints(derivative),
            None => parsed,
        });
        Ok(Arc::clone(self.state().parsed.get_or_insert(parsed)))
    }

    fn declared(&self) -> Declared {
        let signatures = if self.jit.device { self.declared.clone() } else { Vec::new() };
        Declared { signatures, inline: self.jit.inline, typing: self.jit.typing, gpu: self.jit.gpu.clone() }
    }

    fn backward<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyAny>> {
        self.backward.as_ref().map(|function| function.bind(py).clone().into_any())
    }

    fn links<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyTuple>>> {
        let Some(links) = self.targetoptions.bind(py).get_item(intern!(py, "link"))? else { return Ok(None) };
        let links = links.cast_into::<PyTuple>()?;
        Ok((!links.is_empty()).then_some(links))
    }
}

/// The fields of a [`Derivative`], but for the inner one, with the numbers of its scratch memory and its incoming gradients.
type GivenDerivative = (Vec<u32>, Vec<u32>, bool, bool, u8, bool, u8);

#[pymethods]
impl Dispatcher {
    #[new]
    #[pyo3(signature = (py_func, options, signatures, source=None, kept=None, derivatives=Vec::new(), backward=None))]
    fn new(
        py_func: Py<PyAny>,
        options: &Bound<'_, PyDict>,
        signatures: Vec<Bound<'_, Signature>>,
        source: Option<String>,
        kept: Option<Py<PyAny>>,
        derivatives: Vec<GivenDerivative>,
        backward: Option<Py<Self>>,
    ) -> PyResult<Self> {
        let py = options.py();
        let function = py_func.bind(py);
        let extensions = match options.get_item(intern!(py, "extensions"))? {
            Some(given) if !given.is_none() => given.cast_into::<PyList>()?,
            Some(_) | None => PyList::empty(py),
        };
        let mut params = parameter_names(function)?;
        let mut jit = options::read(options)?;
        for (of, wrt, has_old_contents, is_forward, scratch, has_sums, incoming) in derivatives {
            let (scratch, incoming) = (Scratch::of_number(scratch), Incoming::of_number(incoming));
            let inner = jit.code.derivative.take().map(Box::new);
            jit.code.derivative =
                Some(Derivative { of, wrt, has_old_contents, is_forward, scratch, has_sums, incoming, inner });
        }
        if let Some(derivative) = &jit.code.derivative {
            derivative.add_names(&mut params);
        }
        Ok(Self {
            extensions: extensions.unbind(),
            sensitive: AtomicBool::new(false),
            cached_launchers: Mutex::default(),
            made: true,
            name: function.getattr("__name__")?.extract()?,
            params,
            keyword_only: keyword_only(function)?,
            variadic: variadic(function)?,
            jit,
            targetoptions: options.clone().unbind(),
            declared: signatures.into_iter().map(|signature| signature.get().request()).collect(),
            backward,
            state: Mutex::default(),
            last: Mutex::default(),
            last_launcher: Mutex::default(),
            source,
            cached_source: kept,
            py_func,
        })
    }

    /// The Python function.
    #[getter]
    fn py_func(&self, py: Python<'_>) -> Py<PyAny> {
        self.py_func.clone_ref(py)
    }

    /// Whether it is only called from kernels.
    #[getter]
    fn device(&self) -> bool {
        self.jit.device
    }

    /// The source given with `cuda.jit(source=...)`.
    #[getter]
    fn given_source(&self) -> Option<&str> {
        self.source.as_deref()
    }

    /// Whether it has exactly one signature.
    #[getter]
    pub(crate) fn specialized(&self) -> bool {
        self.declared.len() == 1 && !self.jit.device
    }

    /// The declared signatures.
    #[getter]
    fn declared_signatures(&self) -> Vec<Signature> {
        self.declared.iter().map(Signature::from_request).collect()
    }

    fn __getitem__<'py>(slf: &Bound<'py, Self>, index: &Bound<'py, PyAny>) -> PyResult<Bound<'py, Launcher>> {
        let Ok(items) = index.cast::<PyTuple>() else {
            return Err(PyTypeError::new_err(messages::TOO_FEW));
        };
        if items.len() > 5 {
            let message = format!(
                "must specify griddim, blockdim, and at most a stream, sharedmem and cluster: got {} values",
                items.len()
            );
            return Err(PyValueError::new_err(message));
        }
        if items.len() < 2 {
            return Err(PyValueError::new_err(messages::TOO_FEW));
        }
        // Checking the length is faster than creating an exception for a missing item.
        let optional = |index| if index < items.len() { items.get_item(index).map(Some) } else { Ok(None) };
        let (stream, shared, cluster) = (optional(2)?, optional(3)?, optional(4)?);
        let (grid, block) = (items.get_item(0)?, items.get_item(1)?);
        Self::configure(slf, &grid, &block, stream.as_ref(), shared.as_ref(), true, cluster.as_ref())
    }

    /// The kernel with a launch configuration, as `kernel[griddim, blockdim, stream, sharedmem, cluster]` returns it.
    /// Without `advise`, a grid that does not fill the GPU causes no warning, because the caller did not choose the
    /// grid.
    #[pyo3(signature = (griddim, blockdim, stream=None, sharedmem=None, advise=true, cluster=None))]
    fn configure<'py>(
        slf: &Bound<'py, Self>,
        griddim: &Bound<'py, PyAny>,
        blockdim: &Bound<'py, PyAny>,
        stream: Option<&Bound<'py, PyAny>>,
        sharedmem: Option<&Bound<'py, PyAny>>,
        advise: bool,
        cluster: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, Launcher>> {
        if griddim.is_none() || blockdim.is_none() {
            let name = if griddim.is_none() { "griddim" } else { "blockdim" };
            let message =
                format!("{}\n{name} must be an integer or a tuple of up to three, not None", messages::UNCONFIGURED);
            return Err(PyValueError::new_err(message));
        }
        Self::launcher(slf, launch_config(griddim, blockdim, sharedmem, cluster)?, stream, advise)
    }

    #[doc = include_str!("docs/mod.forall.txt")]
    #[pyo3(signature = (ntasks, tpb=None, stream=None, sharedmem=0), text_signature = "($self, ntasks, tpb=0, stream=None, sharedmem=0)")]
    fn forall<'py>(
        slf: &Bound<'py, Self>,
        ntasks: &Bound<'py, PyAny>,
        tpb: Option<&Bound<'py, PyAny>>,
        stream: Option<Py<PyAny>>,
        sharedmem: u32,
    ) -> PyResult<Bound<'py, ForAll>> {
        Bound::new(slf.py(), ForAll::new(slf.clone().unbind(), ntasks, tpb, stream, sharedmem)?)
    }

    #[pyo3(signature = (*args, **kwargs))]
    fn __call__<'py>(
        slf: &Bound<'py, Self>,
        args: &Bound<'py, PyTuple>,
        kwargs: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        messages::called(slf, args, kwargs)
    }

    #[doc = include_str!("docs/mod.compile.txt")]
    #[pyo3(signature = (sig=None))]
    fn compile(slf: &Bound<'_, Self>, sig: Option<&Bound<'_, PyAny>>) -> PyResult<CompiledKernel> {
        let this = slf.get();
        let args = match sig {
            Some(sig) => this.types(sig)?,
            None => {
                let annotations = slf.py().import("weft.cuda._code.annotations")?;
                this.types(&annotations.call_method1("signature_of", (&this.py_func,))?)?
            }
        };
        if this.jit.device {
            return Err(this.no_kernel());
        }
        if this.is_closed_to(&args) {
            return Err(PyRuntimeError::new_err(format!(
                "Compilation disabled: `{}` has no kernel for argument type(s) {}",
                this.name,
                args.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
            )));
        }
        Ok(CompiledKernel::new(slf, &Self::overload(slf, &args)?))
    }

    /// The kernel that a launch with these arguments runs. It is compiled if necessary.
    #[pyo3(signature = (*args))]
    fn kernel_for(slf: &Bound<'_, Self>, args: &Bound<'_, PyTuple>) -> PyResult<CompiledKernel> {
        let extended = around::extend(slf, &slf.get().complete(args, None)?, None)?;
        let mut arguments = crate::args::Arguments::default();
        let pushed = arguments.push_all(&extended.args);
        pushed.map_err(|(index, error)| slf.get().explain(slf.py(), index, &error))?;
        Ok(CompiledKernel::new(slf, &Self::resolve(slf, &arguments)?.overload))
    }

    #[doc = include_str!("docs/mod.specialize.txt")]
    #[pyo3(signature = (*args))]
    fn specialize<'py>(slf: &Bound<'py, Self>, args: &Bound<'py, PyTuple>) -> PyResult<Bound<'py, PyAny>> {
        if slf.get().specialized() {
            return Err(PyRuntimeError::new_err("Dispatcher already specialized"));
        }
        slf.py().import("weft.cuda._jit")?.call_method1("specialize", (slf, args))
    }

    #[doc = include_str!("docs/mod.as_torch_op.txt")]
    #[pyo3(signature = (name, launch=None, out=None, *, backward=None, signature=None))]
    fn as_torch_op<'py>(
        slf: &Bound<'py, Self>,
        name: &Bound<'py, PyAny>,
        launch: Option<&Bound<'py, PyAny>>,
        out: Option<&Bound<'py, PyAny>>,
        backward: Option<&Bound<'py, PyAny>>,
        signature: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let module = slf.py().import("weft._operators.torch_op")?;
        module.call_method1("as_torch_op", (slf, name, launch, out, backward, signature))
    }

    #[doc = include_str!("docs/mod.as_jax_call.txt")]
    #[pyo3(signature = (launch=None, out=None, *, backward=None, signature=None, name=None))]
    fn as_jax_call<'py>(
        slf: &Bound<'py, Self>,
        launch: Option<&Bound<'py, PyAny>>,
        out: Option<&Bound<'py, PyAny>>,
        backward: Option<&Bound<'py, PyAny>>,
        signature: Option<&Bound<'py, PyAny>>,
        name: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let module = slf.py().import("weft._operators.jax_call")?;
        module.call_method1("as_jax_call", (slf, launch, out, backward, signature, name))
    }

    /// The dispatchers that `specialize` has created, by compute capability and argument types.
    #[getter]
    fn specializations<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        let own = slf.getattr(intern!(slf.py(), "__dict__"))?;
        own.call_method1(intern!(slf.py(), "setdefault"), ("_specializations", PyDict::new(slf.py())))
    }

    /// The number of kernels found in the disk cache.
    #[getter]
    fn stats<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.statistics(py)
    }

    #[doc = include_str!("docs/mod.get_regs_per_thread.txt")]
    #[pyo3(signature = (signature=None))]
    fn get_regs_per_thread<'py>(
        slf: &Bound<'py, Self>,
        signature: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        Self::resource(slf, signature, |kernel| kernel.registers())
    }

    #[doc = include_str!("docs/mod.get_const_mem_size.txt")]
    #[pyo3(signature = (signature=None))]
    fn get_const_mem_size<'py>(
        slf: &Bound<'py, Self>,
        signature: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        Self::resource(slf, signature, |kernel| kernel.const_bytes())
    }

    #[doc = include_str!("docs/mod.get_shared_mem_per_block.txt")]
    #[pyo3(signature = (signature=None))]
    fn get_shared_mem_per_block<'py>(
        slf: &Bound<'py, Self>,
        signature: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        Self::resource(slf, signature, |kernel| kernel.shared_bytes())
    }

    #[doc = include_str!("docs/mod.get_local_mem_per_thread.txt")]
    #[pyo3(signature = (signature=None))]
    fn get_local_mem_per_thread<'py>(
        slf: &Bound<'py, Self>,
        signature: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        Self::resource(slf, signature, |kernel| kernel.local_bytes())
    }

    #[doc = include_str!("docs/mod.get_max_threads_per_block.txt")]
    #[pyo3(signature = (signature=None))]
    fn get_max_threads_per_block<'py>(
        slf: &Bound<'py, Self>,
        signature: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        Self::resource(slf, signature, |kernel| kernel.max_threads_per_block())
    }

    #[doc = include_str!("docs/mod.disable_compile.txt")]
    #[pyo3(signature = (val=true))]
    fn disable_compile(&self, val: bool) -> PyResult<()> {
        if val && !self.jit.device && self.state().overloads.is_empty() {
            return Err(PyAssertionError::new_err(format!(
                "`{}` has no compiled kernel yet: compile or launch it first",
                self.name
            )));
        }
        self.freeze(val);
        Ok(())
    }

    /// From now on, compiles a separate kernel for each launch configuration. Extensions call this while the function
    /// is compiled for a launch.
    fn mark_launch_config_sensitive(slf: &Bound<'_, Self>) -> PyResult<()> {
        Self::mark_sensitive(slf)
    }

    /// Discards all kernels, and compiles the known types again.
    fn recompile(slf: &Bound<'_, Self>) -> PyResult<()> {
        Self::compile_again(slf)?;
        if slf.get().is_sensitive() {
            slf.py().import("weft.cuda.launchconfig")?.call_method1("_recompile", (slf,))?;
        }
        Ok(())
    }

    /// Discards the kernels of a device. They are compiled and loaded again at the next launch.
    fn _forget(&self, device: u32) {
        self.forget(device);
    }

    /// The code linked with kernels that call it: paths and `LinkableCode`.
    fn linked(slf: &Bound<'_, Self>) -> PyResult<Vec<Py<PyAny>>> {
        let mut capturer = Capturer::new(slf.py());
        capturer.dispatcher(slf)?;
        Ok(capturer.links)
    }

    /// The compiled kernels by their argument types.
    #[getter]
    fn overloads<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyDict>> {
        let (py, this) = (slf.py(), slf.get());
        if this.jit.device {
            let made = py.import("weft.cuda._code.functions")?.call_method1("overloads", (slf,))?;
            return Ok(made.cast_into::<PyDict>()?);
        }
        let dict = PyDict::new(py);
        let overloads = this.state().overloads.clone();
        for overload in overloads {
            let kernel = Bound::new(py, CompiledKernel::new(slf, &overload))?;
            dict.set_item(tuple_of_types(py, &overload.args)?, kernel)?;
        }
        Ok(dict)
    }

    /// The signatures that were compiled.
    #[getter]
    fn nopython_signatures<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        slf.py().import("weft.cuda._code.functions")?.call_method1("signatures", (slf,))
    }

    #[doc = include_str!("docs/mod.compile_device.txt")]
    #[pyo3(signature = (args, return_type=None))]
    fn compile_device<'py>(
        slf: &Bound<'py, Self>,
        args: &Bound<'py, PyAny>,
        return_type: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        slf.py().import("weft.cuda._code.functions")?.call_method1("compile_device", (slf, args, return_type))
    }

    #[doc = include_str!("docs/mod.get_overload.txt")]
    fn get_overload<'py>(slf: &Bound<'py, Self>, sig: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        slf.py().import("weft.cuda._code.functions")?.call_method1("get_overload", (slf, sig))
    }

    #[doc = include_str!("docs/mod.get_compile_result.txt")]
    fn get_compile_result<'py>(slf: &Bound<'py, Self>, sig: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        slf.py().import("weft.cuda._code.functions")?.call_method1("get_compile_result", (slf, sig))
    }

    #[doc = include_str!("docs/mod.get_metadata.txt")]
    #[pyo3(signature = (signature=None))]
    fn get_metadata<'py>(slf: &Bound<'py, Self>, signature: Option<&Bound<'py, PyAny>>) -> PyResult<Bound<'py, PyAny>> {
        slf.py().import("weft.cuda._code.functions")?.call_method1("get_metadata", (slf, signature))
    }

    /// The argument types that were compiled.
    #[getter]
    fn signatures<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyTuple>>> {
        let overloads = self.state().overloads.clone();
        overloads.iter().map(|overload| tuple_of_types(py, &overload.args)).collect()
    }

    /// The return type for a call in a kernel with arguments of these types; None if the function returns no value that
    /// a kernel can use.
    fn result_type(slf: &Bound<'_, Self>, signature: &Bound<'_, PyAny>) -> PyResult<Option<Type>> {
        Ok(Self::result(slf, &slf.get().types(signature)?)?.map(Type::of))
    }

    #[doc = include_str!("docs/mod.effects.txt")]
    #[pyo3(signature = (signature=None))]
    fn effects<'py>(slf: &Bound<'py, Self>, signature: Option<&Bound<'py, PyAny>>) -> PyResult<Bound<'py, PyAny>> {
        slf.py().import("weft.cuda._rules")?.call_method1("effects", (slf, signature))
    }

    #[doc = include_str!("docs/mod.export.txt")]
    #[pyo3(signature = (name=None, *, signatures=None, targets=None, launch=None, out=None, host_cpu="x86-64-v3", cubin=false))]
    #[expect(clippy::too_many_arguments, reason = "the options of an export")]
    fn export<'py>(
        slf: &Bound<'py, Self>,
        name: Option<&str>,
        signatures: Option<&Bound<'py, PyAny>>,
        targets: Option<&Bound<'py, PyAny>>,
        launch: Option<&Bound<'py, PyAny>>,
        out: Option<&Bound<'py, PyAny>>,
        host_cpu: &str,
        cubin: bool,
    ) -> PyResult<Bound<'py, PyAny>> {
        let export = slf.py().import("weft.cuda._export")?.getattr("export")?;
        export.call1((slf, name, signatures, targets, launch, out, host_cpu, cubin))
    }

    /// PTX or LTO-IR for other programs, and its return type; see `weft.cuda.compile`.
    #[pyo3(signature = (signature, role, symbol=None, target=None, ltoir=false, forceinline=false))]
    fn compile_foreign<'py>(
        slf: &Bound<'py, Self>,
        signature: &Bound<'py, PyAny>,
        role: &str,
        symbol: Option<String>,
        target: Option<&str>,
        ltoir: bool,
        forceinline: bool,
    ) -> PyResult<(Bound<'py, PyAny>, Type)> {
        let form = if ltoir { GpuCode::NvvmIr { forceinline } } else { GpuCode::Ptx };
        Self::foreign(slf, &slf.get().types(signature)?, ForeignCode { role, symbol, target, form })
    }

    /// The "asm", "llvm" or "ir" of one specialization, for a target or for the device's compute capability.
    #[pyo3(signature = (what, signature, target=None))]
    fn inspect(
        slf: &Bound<'_, Self>,
        what: &str,
        signature: &Bound<'_, PyAny>,
        target: Option<&str>,
    ) -> PyResult<String> {
        Self::text(slf, &slf.get().types(signature)?, what, target)
    }

    #[doc = include_str!("docs/mod.inspect_asm.txt")]
    #[pyo3(signature = (signature=None, *, target=None))]
    fn inspect_asm<'py>(
        slf: &Bound<'py, Self>,
        signature: Option<&Bound<'py, PyAny>>,
        target: Option<&str>,
    ) -> PyResult<Bound<'py, PyAny>> {
        Self::representations(slf, "asm", signature, target)
    }

    #[doc = include_str!("docs/mod.explain_variants.txt")]
    #[pyo3(name = "explain", signature = (signature=None))]
    fn explain_variants(slf: &Bound<'_, Self>, signature: Option<&Bound<'_, PyAny>>) -> PyResult<String> {
        Self::explained(slf, signature)
    }

    /// In numba-cuda, the PTX of kernels that are linked as LTO-IR. weft has no such PTX.
    #[pyo3(signature = (signature=None))]
    #[expect(clippy::unused_self, unused_variables, reason = "Python calls it on an object, by that name")]
    fn inspect_lto_ptx(&self, signature: Option<&Bound<'_, PyAny>>) -> PyResult<Py<PyAny>> {
        Err(PyNotImplementedError::new_err(
            "there is no PTX after link-time optimization: use `inspect_asm` for the kernel's PTX, or `inspect_sass` \
             for the linked machine code",
        ))
    }

    #[doc = include_str!("docs/mod.inspect_llvm.txt")]
    #[pyo3(signature = (signature=None, *, target=None))]
    fn inspect_llvm<'py>(
        slf: &Bound<'py, Self>,
        signature: Option<&Bound<'py, PyAny>>,
        target: Option<&str>,
    ) -> PyResult<Bound<'py, PyAny>> {
        Self::representations(slf, "llvm", signature, target)
    }

    #[doc = include_str!("docs/mod.inspect_sass.txt")]
    #[pyo3(signature = (signature=None))]
    fn inspect_sass<'py>(slf: &Bound<'py, Self>, signature: Option<&Bound<'py, PyAny>>) -> PyResult<Bound<'py, PyAny>> {
        slf.py().import("weft.cuda._code.sass")?.call_method1("inspect", (slf, signature, "-gi"))
    }

    #[doc = include_str!("docs/mod.inspect_sass_cfg.txt")]
    #[pyo3(signature = (signature=None))]
    fn inspect_sass_cfg<'py>(
        slf: &Bound<'py, Self>,
        signature: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        slf.py().import("weft.cuda._code.sass")?.call_method1("inspect", (slf, signature, "-cfg"))
    }

    #[doc = include_str!("docs/mod.inspect_ir.txt")]
    #[pyo3(signature = (signature=None, *, target=None))]
    fn inspect_ir<'py>(
        slf: &Bound<'py, Self>,
        signature: Option<&Bound<'py, PyAny>>,
        target: Option<&str>,
    ) -> PyResult<Bound<'py, PyAny>> {
        Self::representations(slf, "ir", signature, target)
    }

    #[doc = include_str!("docs/mod.inspect_types.txt")]
    #[pyo3(signature = (file=None))]
    fn inspect_types(slf: &Bound<'_, Self>, file: Option<&Bound<'_, PyAny>>) -> PyResult<()> {
        slf.py().import("weft.cuda._code.inspect")?.call_method1("types", (slf, file))?;
        Ok(())
    }

    /// A dispatcher and its last configuration form a reference cycle.
    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        if !self.made {
            return Ok(());
        }
        visit.call(&self.py_func)?;
        visit.call(&self.targetoptions)?;
        visit.call(&self.extensions)?;
        if let Ok(kept) = self.cached_launchers.try_lock() {
            kept.iter().try_for_each(|launcher| visit.call(launcher))?;
        }
        match self.last_launcher.try_lock() {
            Ok(last) => last.as_ref().map_or(Ok(()), |launcher| visit.call(launcher)),
            Err(_) => Ok(()),
        }
    }

    fn __clear__(&self) {
        let last = self.last_launcher.try_lock().ok().and_then(|mut last| last.take());
        let kept = self.cached_launchers.try_lock().map(|mut kept| std::mem::take(&mut *kept)).unwrap_or_default();
        drop((last, kept));
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        slf.py().import("weft._pickle")?.call_method1("reduce_dispatcher", (slf,))
    }

    fn __copy__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __deepcopy__(slf: Py<Self>, _memo: &Bound<'_, PyAny>) -> Py<Self> {
        slf
    }

    fn __getattr__(slf: &Bound<'_, Self>, name: &str) -> PyResult<Py<PyAny>> {
        Err(crate::errors::no_attribute(slf, name))
    }

    fn __repr__(&self) -> String {
        let kind = if self.jit.device { "device function" } else { "kernel" };
        format!("<weft {kind} {}({})>", self.name, self.params.join(", "))
    }
}
