//! NVRTC, the compiler of CUDA C++, opened at run time.

#![expect(unsafe_code, reason = "calls into NVRTC")]

use std::{
    ffi::{CStr, CString, c_char, c_int, c_void},
    fmt,
    path::{Path, PathBuf},
    ptr,
};

use libloading::Library;

use super::{
    driver::file_of,
    tools::{find, open, text},
};
use crate::{
    error::{Error, ErrorKind},
    toolkit::{IN_TOOLKIT, Toolkit, ToolkitLibrary},
};

const WANTED: ToolkitLibrary = ToolkitLibrary {
    name: "NVRTC, which compiles CUDA C++,",
    file: "libnvrtc.so",
    beside: Some("libnvrtc-builtins.so"),
    setting: "WEFT_NVRTC",
    package: "nvidia-cuda-nvrtc",
    in_toolkit: IN_TOOLKIT,
    in_site_packages: &["nvidia/cu13/lib", "nvidia/cuda_nvrtc/lib"],
    versions: &[".13", ".12", ".11.2", ""],
};

/// `NVRTC_ERROR_COMPILATION`.
const COMPILATION: c_int = 6;

/// A program of NVRTC's.
type Program = *mut c_void;

/// Declares the functions: field, symbol, parameters; all return an error number.
macro_rules! functions {
    ($($name:ident = $symbol:literal ($($ty:ty),*);)*) => {
        struct Functions {
            $($name: unsafe extern "C" fn($($ty),*) -> c_int,)*
            error_text: unsafe extern "C" fn(c_int) -> *const c_char,
        }

        impl Functions {
            fn of(library: &Library) -> Result<Self, Error> {
                Ok(Self {
                    // SAFETY: the symbols have these types in nvrtc.h.
                    $($name: unsafe { find(library, $symbol) }?,)*
                    // SAFETY: as above.
                    error_text: unsafe { find(library, "nvrtcGetErrorString") }?,
                })
            }
        }
    };
}

functions! {
    version = "nvrtcVersion" (*mut c_int, *mut c_int);
    n_archs = "nvrtcGetNumSupportedArchs" (*mut c_int);
    archs = "nvrtcGetSupportedArchs" (*mut c_int);
    create = "nvrtcCreateProgram" (*mut Program, *const c_char, *const c_char, c_int, *const *const c_char, *const *const c_char);
    compile = "nvrtcCompileProgram" (Program, c_int, *const *const c_char);
    log_size = "nvrtcGetProgramLogSize" (Program, *mut usize);
    log = "nvrtcGetProgramLog" (Program, *mut c_char);
    ptx_size = "nvrtcGetPTXSize" (Program, *mut usize);
    ptx = "nvrtcGetPTX" (Program, *mut c_char);
    cubin_size = "nvrtcGetCUBINSize" (Program, *mut usize);
    cubin = "nvrtcGetCUBIN" (Program, *mut c_char);
    destroy = "nvrtcDestroyProgram" (*mut Program);
}

/// A getter of NVRTC's for the size of an output, and one for the output.
type Getters =
    (unsafe extern "C" fn(Program, *mut usize) -> c_int, unsafe extern "C" fn(Program, *mut c_char) -> c_int);

/// The output format for CUDA C++.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// PTX.
    Ptx,
    /// Machine code that can be linked.
    Cubin,
    /// Intermediate code for nvJitLink.
    LtoIr,
}

/// CUDA C++ source.
#[derive(Clone, Copy, Debug)]
pub(super) struct CudaSource<'a> {
    /// The text.
    pub(super) text: &'a [u8],
    /// Its name in messages.
    pub(super) name: &'a str,
    /// Where it includes files from, before all other folders.
    pub(super) folder: Option<&'a Path>,
}

/// The result of a compilation.
#[derive(Debug)]
pub(super) struct Compiled {
    pub(super) code: Vec<u8>,
    /// The compiler's log: warnings.
    pub(super) log: String,
}

/// NVRTC.
pub(super) struct Nvrtc {
    functions: Functions,
    /// Its CUDA version.
    pub(super) version: (u32, u32),
    /// The SMs that it knows: 75, 80, ….
    archs: Vec<u32>,
    /// `nvrtcGetLTOIRSize`, `nvrtcGetLTOIR`, which CUDA 11 lacks.
    lto: Option<Getters>,
    /// Never closed: the functions above are in it.
    _library: Library,
}

impl fmt::Debug for Nvrtc {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Nvrtc").field("version", &self.version).finish_non_exhaustive()
    }
}

/// A program that is destroyed when it is dropped.
struct Guard<'a>(&'a Nvrtc, Program);

impl Drop for Guard<'_> {
    fn drop(&mut self) {
        // SAFETY: the program is live, and has no other users.
        unsafe { (self.0.functions.destroy)(&raw mut self.1) };
    }
}

impl Nvrtc {
    /// Opens it.
    pub(super) fn open(toolkit: &Toolkit) -> Result<Self, Error> {
        let library = open(&WANTED, &toolkit.nvrtc, toolkit)?;
        let functions = Functions::of(&library)?;
        let (mut major, mut minor, mut count) = (0, 0, 0);
        // SAFETY: it writes two ints.
        let got = unsafe { (functions.version)(&raw mut major, &raw mut minor) };
        check(&functions, got, "nvrtcVersion")?;
        // SAFETY: it writes one int.
        check(&functions, unsafe { (functions.n_archs)(&raw mut count) }, "nvrtcGetNumSupportedArchs")?;
        let mut archs: Vec<c_int> = vec![0; usize::try_from(count).unwrap_or(0)];
        // SAFETY: it writes as many ints as it said.
        check(&functions, unsafe { (functions.archs)(archs.as_mut_ptr()) }, "nvrtcGetSupportedArchs")?;
        // SAFETY: the symbols have these types in nvrtc.h.
        let size = unsafe { find(&library, "nvrtcGetLTOIRSize") };
        // SAFETY: as above.
        let data = unsafe { find(&library, "nvrtcGetLTOIR") };
        Ok(Self {
            functions,
            version: (major as u32, minor as u32),
            archs: archs.into_iter().map(|arch| arch as u32).collect(),
            lto: size.ok().zip(data.ok()),
            _library: library,
        })
    }

    /// The file that it was opened from.
    pub(super) fn file(&self) -> Option<PathBuf> {
        file_of(self.functions.version as *const c_void)
    }

    /// Compiles CUDA C++ for an SM, or for the next older one that it knows, whose PTX that SM takes.
    ///
    /// # Errors
    ///
    /// `Compile` with the compiler's log; `NoTool` for an SM that is older than all that it knows.
    pub(super) fn compile(
        &self,
        source: &CudaSource<'_>,
        sm: u32,
        form: Form,
        includes: &[PathBuf],
    ) -> Result<Compiled, Error> {
        let known = self.archs.iter().copied().filter(|arch| *arch <= sm).max();
        let Some(arch) = known else {
            let (major, minor) = self.version;
            let message = format!("NVRTC {major}.{minor} no longer supports sm_{sm}");
            return Err(Error::new(ErrorKind::NoTool, message));
        };
        let kind = if form == Form::Ptx { "compute" } else { "sm" };
        let mut options = vec![format!("--gpu-architecture={kind}_{arch}"), "-rdc=true".to_owned()];
        if form == Form::LtoIr {
            options.push("-dlto".to_owned());
        }
        let folders = source.folder.into_iter().chain(includes.iter().map(PathBuf::as_path));
        options.extend(folders.map(|folder| format!("-I{}", folder.display())));
        let nul = |what: &str| Error::new(ErrorKind::Value, format!("{what} of {} holds a NUL byte", source.name));
        let options: Vec<CString> =
            options.into_iter().map(CString::new).collect::<Result<_, _>>().map_err(|_| nul("an include folder"))?;
        let options: Vec<*const c_char> = options.iter().map(|option| option.as_ptr()).collect();
        let code = CString::new(source.text).map_err(|_| nul("the text"))?;
        let name = CString::new(source.name).map_err(|_| nul("the name"))?;
        let functions = &self.functions;
        let mut program = ptr::null_mut();
        // SAFETY: the strings end with a NUL; there are no headers.
        let made =
            unsafe { (functions.create)(&raw mut program, code.as_ptr(), name.as_ptr(), 0, ptr::null(), ptr::null()) };
        check(functions, made, "nvrtcCreateProgram")?;
        let guard = Guard(self, program);
        // SAFETY: the program is live; the options are strings that end with a NUL.
        let compiled = unsafe { (functions.compile)(program, options.len() as c_int, options.as_ptr()) };
        let log = text(&self.get(&guard, (functions.log_size, functions.log), "nvrtcGetProgramLog")?);
        if compiled != 0 {
            let kind = if compiled == COMPILATION { ErrorKind::Compile } else { ErrorKind::Link };
            let what = self.error_text(compiled);
            return Err(Error::new(kind, format!("NVRTC cannot compile {}: {what}\n{log}", source.name)));
        }
        let (getters, call) = match form {
            Form::Ptx => ((functions.ptx_size, functions.ptx), "nvrtcGetPTX"),
            Form::Cubin => ((functions.cubin_size, functions.cubin), "nvrtcGetCUBIN"),
            Form::LtoIr => {
                let missing =
                    || Error::new(ErrorKind::NoTool, "this NVRTC is too old for LTO-IR: it has no nvrtcGetLTOIR");
                (self.lto.ok_or_else(missing)?, "nvrtcGetLTOIR")
            }
        };
        Ok(Compiled { code: self.get(&guard, getters, call)?, log })
    }

    /// An output of a program.
    fn get(&self, program: &Guard<'_>, (size_of, data_of): Getters, call: &str) -> Result<Vec<u8>, Error> {
        let mut size = 0;
        // SAFETY: the program is live; it writes one number.
        check(&self.functions, unsafe { size_of(program.1, &raw mut size) }, call)?;
        let mut data = vec![0_u8; size];
        // SAFETY: it writes as many bytes as it said.
        check(&self.functions, unsafe { data_of(program.1, data.as_mut_ptr().cast()) }, call)?;
        Ok(data)
    }

    fn error_text(&self, code: c_int) -> String {
        error_text(&self.functions, code)
    }
}

fn error_text(functions: &Functions, code: c_int) -> String {
    // SAFETY: it takes a number.
    let name = unsafe { (functions.error_text)(code) };
    if name.is_null() {
        return format!("error {code}");
    }
    // SAFETY: it gave a pointer to a constant with a NUL at its end.
    unsafe { CStr::from_ptr(name) }.to_string_lossy().into_owned()
}

fn check(functions: &Functions, code: c_int, call: &str) -> Result<(), Error> {
    if code == 0 {
        return Ok(());
    }
    Err(Error::new(ErrorKind::Link, format!("{call} failed: {}", error_text(functions, code))))
}
