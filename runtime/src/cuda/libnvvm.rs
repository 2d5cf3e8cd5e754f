//! libNVVM, which compiles NVVM IR to LTO-IR, opened at run time.

#![expect(unsafe_code, reason = "calls into libNVVM")]

use std::{
    ffi::{CString, c_char, c_int, c_void},
    fmt,
    path::PathBuf,
    ptr,
};

use libloading::Library;

use super::{
    driver::file_of,
    tools::{functions, open, text},
};
use crate::{
    error::{Error, ErrorKind},
    toolkit::{Toolkit, ToolkitLibrary},
};

const WANTED: ToolkitLibrary = ToolkitLibrary {
    name: "libNVVM, which makes LTO-IR,",
    file: "libnvvm.so",
    beside: None,
    setting: "WEFT_LIBNVVM",
    package: "nvidia-nvvm (CUDA 13) or nvidia-cuda-nvcc-cu12 (CUDA 12)",
    in_toolkit: &["nvvm/lib64", "nvvm/lib", "lib64"],
    in_site_packages: &["nvidia/cu13/lib", "nvidia/cu13/nvvm/lib64", "nvidia/cuda_nvcc/nvvm/lib64"],
    versions: &[".4", ""],
};

/// Options of a compilation.
#[derive(Clone, Copy, Debug)]
pub struct LtoOptions {
    /// Optimize.
    pub opt: bool,
    /// Flush denormals of 32 bits, and approximate divisions and square roots.
    pub fastmath: bool,
}

/// A program of libNVVM's.
type Program = *mut c_void;

functions! {
    create = "nvvmCreateProgram" (*mut Program);
    destroy = "nvvmDestroyProgram" (*mut Program);
    add = "nvvmAddModuleToProgram" (Program, *const c_char, usize, *const c_char);
    compile = "nvvmCompileProgram" (Program, c_int, *const *const c_char);
    result_size = "nvvmGetCompiledResultSize" (Program, *mut usize);
    result = "nvvmGetCompiledResult" (Program, *mut c_char);
    log_size = "nvvmGetProgramLogSize" (Program, *mut usize);
    log = "nvvmGetProgramLog" (Program, *mut c_char);
}

/// libNVVM.
pub(super) struct LibNvvm {
    functions: Functions,
    /// Never closed: the functions above are in it.
    _library: Library,
}

impl fmt::Debug for LibNvvm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LibNvvm").finish_non_exhaustive()
    }
}

/// A program that is destroyed when it is dropped.
struct Guard<'a>(&'a LibNvvm, Program);

impl Drop for Guard<'_> {
    fn drop(&mut self) {
        // SAFETY: the program is live, and has no other users.
        unsafe { (self.0.functions.destroy)(&raw mut self.1) };
    }
}

impl LibNvvm {
    /// Opens it.
    pub(super) fn open(toolkit: &Toolkit) -> Result<Self, Error> {
        let library = open(&WANTED, &toolkit.libnvvm, toolkit)?;
        Ok(Self { functions: Functions::of(&library)?, _library: library })
    }

    /// The file that it was opened from.
    pub(super) fn file(&self) -> Option<PathBuf> {
        file_of(self.functions.create as *const c_void)
    }

    /// Compiles NVVM IR to LTO-IR for a target: `sm_90a`.
    ///
    /// # Errors
    ///
    /// `Link` with libNVVM's log.
    pub(super) fn lto_ir(&self, nvvm_ir: &[u8], target: &str, options: LtoOptions) -> Result<Vec<u8>, Error> {
        let mut given = vec![format!("-arch=compute_{}", target.trim_start_matches("sm_")), "-gen-lto".to_owned()];
        given.push(format!("-opt={}", if options.opt { 3 } else { 0 }));
        if options.fastmath {
            given.extend(["-ftz=1", "-prec-div=0", "-prec-sqrt=0"].map(str::to_owned));
        }
        let given: Vec<CString> = given.into_iter().filter_map(|option| CString::new(option).ok()).collect();
        let given: Vec<*const c_char> = given.iter().map(|option| option.as_ptr()).collect();
        let functions = &self.functions;
        let mut program = ptr::null_mut();
        // SAFETY: it writes one pointer.
        let code = unsafe { (functions.create)(&raw mut program) };
        if code != 0 {
            return Err(Error::new(ErrorKind::Link, format!("nvvmCreateProgram failed: error {code}")));
        }
        let guard = Guard(self, program);
        // SAFETY: the program is live; the text has the given size, and is copied; the name ends with a NUL.
        let code = unsafe { (functions.add)(program, nvvm_ir.as_ptr().cast(), nvvm_ir.len(), c"weft".as_ptr()) };
        self.check(&guard, code, "libNVVM cannot read the NVVM IR of the function")?;
        // SAFETY: the program is live; the options are strings that end with a NUL.
        let code = unsafe { (functions.compile)(program, given.len() as c_int, given.as_ptr()) };
        self.check(&guard, code, &format!("libNVVM cannot compile the function for {target}"))?;
        let mut size = 0;
        // SAFETY: the program is live; it writes one number.
        self.check(&guard, unsafe { (functions.result_size)(program, &raw mut size) }, "libNVVM returned no code")?;
        let mut result = vec![0_u8; size];
        // SAFETY: it writes as many bytes as it said.
        let code = unsafe { (functions.result)(program, result.as_mut_ptr().cast()) };
        self.check(&guard, code, "libNVVM returned no code")?;
        Ok(result)
    }

    fn check(&self, program: &Guard<'_>, code: c_int, what: &str) -> Result<(), Error> {
        if code == 0 {
            return Ok(());
        }
        let mut size = 0;
        // SAFETY: the program is live; it writes one number.
        let sized = unsafe { (self.functions.log_size)(program.1, &raw mut size) };
        let mut log = vec![0_u8; if sized == 0 { size } else { 0 }];
        if !log.is_empty() {
            // SAFETY: it writes as many bytes as it said.
            unsafe { (self.functions.log)(program.1, log.as_mut_ptr().cast()) };
        }
        Err(Error::new(ErrorKind::Link, format!("{what}: error {code}\n{}", text(&log))))
    }
}
