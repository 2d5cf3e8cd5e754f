//! Loaded code.
#![expect(unsafe_code, reason = "calls into the CUDA driver")]

use std::{
    ffi::{CStr, CString, c_uint, c_void},
    fmt, ptr,
    sync::Arc,
};

use cudarc::driver::sys;
use weft_artifact::{Artifact, CodeFormat, Kernel};

use super::{
    capture::Aside,
    context::Context,
    driver::{self, Handle, Libraries},
    fault::Page,
    function::CudaFunction,
    image,
    kernel::CudaKernel,
    link_logs::{JitLogs, explain_no_image, explain_no_load},
};
use crate::{
    error::{Error, ErrorKind},
    executor::{LoadedKernel, Module},
    foreign::Function,
};

/// A loaded library: code for other libraries' functions, which take its handle and no module's.
struct Library {
    functions: &'static Libraries,
    handle: Handle<sys::CUlib_st>,
    /// A driver that loads lazily may write to them until the library is unloaded.
    _logs: JitLogs,
}

impl fmt::Debug for Library {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.handle.fmt(f)
    }
}

/// A loaded module.
#[derive(Debug)]
pub(super) struct ModuleInner {
    pub(super) context: Arc<Context>,
    handle: Handle<sys::CUmod_st>,
    /// The library that contains it; the driver unloads a module with its library.
    library: Option<Library>,
    /// The page to which it reports faults. Freed after the module, which writes to it.
    page: Option<Arc<Page>>,
}

impl Drop for ModuleInner {
    fn drop(&mut self) {
        if driver::is_forked() {
            return;
        }
        if let Ok(_entered) = self.context.enter() {
            let _aside = Aside::new(self.context.driver);
            match &self.page {
                Some(page) => self.context.unload_with(page, || self.unload()),
                None => self.unload(),
            }
        }
    }
}

impl ModuleInner {
    /// Once, when nothing has it any more.
    fn unload(&self) {
        if let Some(Library { functions, handle, .. }) = &self.library {
            // SAFETY: the handle is live; every kernel of the library's module keeps `self` alive.
            unsafe { functions.unload(handle.0) };
            return;
        }
        // SAFETY: the handle is live; every kernel of the module keeps `self` alive.
        let _: Result<(), Error> = unsafe { self.context.driver.cuModuleUnload(self.handle.0) };
    }
}

/// A loaded module, shared with its kernels.
#[derive(Debug)]
pub(super) struct CudaModule(Arc<ModuleInner>);

impl CudaModule {
    /// Has the driver compile and load PTX.
    pub(super) fn load(context: &Arc<Context>, artifact: &Artifact) -> Result<Self, Error> {
        if artifact.format != CodeFormat::Ptx {
            return Err(Error::new(
                ErrorKind::Value,
                format!("code for {} cannot be loaded on {}", artifact.target, context.attributes.name),
            ));
        }
        Self::load_image(context, artifact, artifact.code.clone())
    }

    /// Has the driver load code.
    pub(super) fn load_image(context: &Arc<Context>, artifact: &Artifact, image: Vec<u8>) -> Result<Self, Error> {
        let explain = |logs: &JitLogs, error| explain_no_load(context, artifact, logs, error);
        Self::ready(context, artifact, as_module(context, image, &explain)?, None)
    }

    /// Has the driver load code that was linked, as a library if it has these.
    pub(super) fn load_linked(context: &Arc<Context>, artifact: &Artifact, image: Vec<u8>) -> Result<Self, Error> {
        let Some(functions) = Libraries::find() else { return Self::load_image(context, artifact, image) };
        let explain = |logs: &JitLogs, error| explain_no_load(context, artifact, logs, error);
        let (handle, library) = as_library(context, functions, image, &explain)?;
        Self::ready(context, artifact, handle, Some(library))
    }

    /// Has the driver load code of any compiler, as a library if it has these.
    pub(super) fn load_foreign(context: &Arc<Context>, image: &[u8]) -> Result<Self, Error> {
        image::check(image)?;
        let explain = |logs: &JitLogs, error| explain_no_image(context, logs, error);
        let (handle, library) = match Libraries::find() {
            Some(functions) => {
                let (handle, library) = as_library(context, functions, image.to_vec(), &explain)?;
                (handle, Some(library))
            }
            None => (as_module(context, image.to_vec(), &explain)?, None),
        };
        let context = Arc::clone(context);
        Ok(Self(Arc::new(ModuleInner { context, handle: Handle(handle), library, page: None })))
    }

    /// A module with the state that its kernels need.
    fn ready(
        context: &Arc<Context>,
        artifact: &Artifact,
        handle: sys::CUmodule,
        library: Option<Library>,
    ) -> Result<Self, Error> {
        let mut module = ModuleInner { context: Arc::clone(context), handle: Handle(handle), library, page: None };
        if let Some(faults) = artifact.kernels.iter().find_map(|kernel| kernel.faults.clone()) {
            let _entered = context.enter()?;
            module.page = Some(Page::new(context, handle, faults)?);
        }
        if artifact.kernels.iter().any(|kernel| kernel.prints) {
            let _entered = context.enter()?;
            context.set_print_page(handle)?;
        }
        Ok(Self(Arc::new(module)))
    }

    /// The same, if it contains all of the artifact's kernels: a driver that loads lazily may refuse code only when a
    /// kernel is requested.
    pub(super) fn with_kernels(self, artifact: &Artifact) -> Result<Self, Error> {
        artifact.kernels.iter().try_for_each(|kernel| self.function(kernel).map(drop))?;
        Ok(self)
    }

    /// The driver's handle of a kernel.
    fn function(&self, kernel: &Kernel) -> Result<sys::CUfunction, Error> {
        let symbol = CString::new(kernel.symbol.as_str()).map_err(|_| {
            Error::new(ErrorKind::Internal, format!("the symbol of kernel `{}` holds a NUL byte", kernel.name))
        })?;
        self.symbol(&symbol).map_err(|mut error| {
            error.message = format!(
                "kernel `{}` is not in the loaded code under its symbol {}: {}",
                kernel.name, kernel.symbol, error.message
            );
            error
        })
    }

    /// The driver's handle of the kernel with a symbol.
    pub(super) fn symbol(&self, symbol: &CStr) -> Result<sys::CUfunction, Error> {
        let context = &self.0.context;
        let _entered = context.enter()?;
        let mut function = ptr::null_mut();
        // SAFETY: it writes one handle; the module is live and the symbol ends with a NUL.
        unsafe { context.driver.cuModuleGetFunction(&raw mut function, self.0.handle.0, symbol.as_ptr()) }?;
        Ok(function)
    }

    /// The handle of the same kernel in the library; `None` if the module is in none.
    pub(super) fn library_kernel(&self, symbol: &CStr) -> Option<u64> {
        let Library { functions, handle, .. } = self.0.library.as_ref()?;
        // SAFETY: the library is live and the symbol ends with a NUL.
        unsafe { functions.kernel(handle.0, symbol) }.map(|kernel| kernel.addr() as u64)
    }

    /// The context that it is loaded in.
    pub(super) fn context(&self) -> &Context {
        &self.0.context
    }

    /// A kernel without slots, with what the driver reports about it. The context is current.
    pub(super) fn loaded(&self, function: sys::CUfunction, name: &str) -> Result<CudaKernel, Error> {
        CudaKernel::new(&self.0, function, name)
    }
}

/// Adds the driver's log to a failure.
type Explain<'a> = &'a dyn Fn(&JitLogs, Error) -> Error;

/// Has the driver load code as a module.
fn as_module(context: &Context, mut image: Vec<u8>, explain: Explain<'_>) -> Result<sys::CUmodule, Error> {
    image.push(0);
    let mut logs = JitLogs::new();
    let (mut options, mut values) = logs.options();
    let mut handle = ptr::null_mut();
    let entered = context.enter()?;
    // SAFETY: the image ends with a NUL; each option has its value; the logs have the given size.
    let loaded = unsafe {
        context.driver.cuModuleLoadDataEx(
            &raw mut handle,
            image.as_ptr().cast::<c_void>(),
            options.len() as c_uint,
            options.as_mut_ptr(),
            values.as_mut_ptr(),
        )
    };
    drop(entered);
    context.blame(loaded).map_err(|error| explain(&logs, error))?;
    Ok(handle)
}

/// Has the driver load code as a library, and gives its module in the context.
fn as_library(
    context: &Context,
    functions: &'static Libraries,
    mut image: Vec<u8>,
    explain: Explain<'_>,
) -> Result<(sys::CUmodule, Library), Error> {
    image.push(0);
    let mut logs = JitLogs::new();
    let (mut options, mut values) = logs.options();
    let entered = context.enter()?;
    let code = image.as_ptr().cast::<c_void>();
    // SAFETY: the image ends with a NUL; each option has its value; the logs have the given size.
    let loaded = unsafe { functions.load(context.driver, code, &mut options, &mut values) };
    drop(entered);
    let handle = context.blame(loaded).map_err(|error| explain(&logs, error))?;
    let entered = context.enter()?;
    // SAFETY: the library is live.
    let module = unsafe { functions.module(context.driver, handle) };
    drop(entered);
    if module.is_err() {
        // SAFETY: the library is live, and nothing of it is in use.
        unsafe { functions.unload(handle) };
    }
    let module = context.blame(module).map_err(|error| explain(&logs, error))?;
    Ok((module, Library { functions, handle: Handle(handle), _logs: logs }))
}

impl Module for CudaModule {
    fn handle(&self) -> u64 {
        self.0.handle.0.addr() as u64
    }

    fn library(&self) -> Option<u64> {
        self.0.library.as_ref().map(|library| library.handle.0.addr() as u64)
    }

    fn global(&self, name: &str) -> Result<(u64, u64), Error> {
        let context = &self.0.context;
        let symbol = CString::new(name).unwrap_or_default();
        let (mut address, mut bytes) = (0, 0);
        let _entered = context.enter()?;
        // SAFETY: it writes an address and a number; the module is live and the symbol ends with a NUL.
        unsafe { context.driver.cuModuleGetGlobal(&raw mut address, &raw mut bytes, self.0.handle.0, symbol.as_ptr()) }
            .map_err(|error| Error { message: format!("there is no variable {name}: {}", error.message), ..error })?;
        Ok((address, bytes as u64))
    }

    fn kernel(&self, kernel: &Kernel) -> Result<Arc<dyn LoadedKernel>, Error> {
        let context = &self.0.context;
        let function = self.function(kernel)?;
        let _entered = context.enter()?;
        if kernel.calls_itself {
            context.deepen_stacks()?;
        }
        let mut loaded = self.loaded(function, &kernel.name)?;
        loaded.set_slots(kernel);
        Ok(Arc::new(loaded))
    }

    fn function(&self, name: &str) -> Result<Arc<dyn Function>, Error> {
        Ok(Arc::new(CudaFunction::new(self, name)?))
    }
}
