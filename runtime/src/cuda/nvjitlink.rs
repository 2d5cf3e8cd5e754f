//! nvJitLink, which links and optimizes LTO-IR, opened at run time.

#![expect(unsafe_code, reason = "calls into nvJitLink")]

use std::{
    ffi::{CString, c_char, c_int, c_uint, c_void},
    fmt,
    path::PathBuf,
    ptr,
};

use libloading::Library;

use super::{
    driver::file_of,
    tools::{find, functions, open, text},
};
use crate::{
    code::LinkedKind,
    error::{Error, ErrorKind},
    toolkit::{IN_TOOLKIT, Toolkit, ToolkitLibrary},
};

const WANTED: ToolkitLibrary = ToolkitLibrary {
    name: "nvJitLink, which links LTO-IR,",
    file: "libnvJitLink.so",
    beside: None,
    setting: "WEFT_NVJITLINK",
    package: "nvidia-nvjitlink",
    in_toolkit: IN_TOOLKIT,
    in_site_packages: &["nvidia/cu13/lib", "nvidia/nvjitlink/lib"],
    versions: &[".13", ".12", ""],
};

/// The log's text where there is no LTO-IR: in 13.5, and in 13.0 for the same error by its number.
const NO_LTO_IR: [&str; 2] = ["NVVM_ERROR_NO_MODULE_IN_PROGRAM", "ERROR 8 in nvvmCompileProgram"];

/// A link of nvJitLink's.
type Handle = *mut c_void;

functions! {
    create = "nvJitLinkCreate" (*mut Handle, c_uint, *const *const c_char);
    destroy = "nvJitLinkDestroy" (*mut Handle);
    add = "nvJitLinkAddData" (Handle, c_int, *const c_void, usize, *const c_char);
    complete = "nvJitLinkComplete" (Handle);
    cubin_size = "nvJitLinkGetLinkedCubinSize" (Handle, *mut usize);
    cubin = "nvJitLinkGetLinkedCubin" (Handle, *mut c_void);
    errors_size = "nvJitLinkGetErrorLogSize" (Handle, *mut usize);
    errors = "nvJitLinkGetErrorLog" (Handle, *mut c_char);
}

/// nvJitLink.
pub(super) struct NvJitLink {
    functions: Functions,
    /// Never closed: the functions above are in it.
    library: Library,
}

impl fmt::Debug for NvJitLink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NvJitLink").finish_non_exhaustive()
    }
}

/// A link that is destroyed when it is dropped.
struct Guard<'a>(&'a NvJitLink, Handle);

impl Drop for Guard<'_> {
    fn drop(&mut self) {
        // SAFETY: the link is live, and has no other users.
        unsafe { (self.0.functions.destroy)(&raw mut self.1) };
    }
}

impl NvJitLink {
    /// Opens it.
    pub(super) fn open(toolkit: &Toolkit) -> Result<Self, Error> {
        let library = open(&WANTED, &toolkit.nvjitlink, toolkit)?;
        Ok(Self { functions: Functions::of(&library)?, library })
    }

    /// The file that it was opened from.
    pub(super) fn file(&self) -> Option<PathBuf> {
        file_of(self.functions.create as *const c_void)
    }

    /// Its CUDA version, which that of CUDA 12.0 and 12.1 does not say.
    pub(super) fn version(&self) -> Option<(u32, u32)> {
        let (mut major, mut minor) = (0, 0);
        // SAFETY: the symbol has this type in nvJitLink.h.
        let version: unsafe extern "C" fn(*mut c_uint, *mut c_uint) -> c_int =
            unsafe { find(&self.library, "nvJitLinkVersion") }.ok()?;
        // SAFETY: it writes two ints.
        (unsafe { version(&raw mut major, &raw mut minor) } == 0).then_some((major, minor))
    }

    /// Links code for an SM; gives a cubin.
    ///
    /// # Errors
    ///
    /// `Link` with the linker's log.
    pub(super) fn link(
        &self,
        inputs: &[(LinkedKind, &[u8], &str)],
        sm: u32,
        max_registers: Option<u32>,
    ) -> Result<Vec<u8>, Error> {
        match self.link_with(inputs, sm, max_registers, true) {
            // Only an inspection of the objects would show whether they contain LTO-IR.
            Err(error) if NO_LTO_IR.iter().any(|text| error.message.contains(text)) => {
                self.link_with(inputs, sm, max_registers, false)
            }
            linked => linked,
        }
    }

    fn link_with(
        &self,
        inputs: &[(LinkedKind, &[u8], &str)],
        sm: u32,
        max_registers: Option<u32>,
        lto: bool,
    ) -> Result<Vec<u8>, Error> {
        let mut options = vec![format!("-arch=sm_{sm}")];
        options.extend(lto.then(|| "-lto".to_owned()));
        options.extend(max_registers.map(|count| format!("-maxrregcount={count}")));
        let options: Vec<CString> = options.into_iter().filter_map(|option| CString::new(option).ok()).collect();
        let options: Vec<*const c_char> = options.iter().map(|option| option.as_ptr()).collect();
        let functions = &self.functions;
        let mut handle = ptr::null_mut();
        // SAFETY: the options are strings that end with a NUL.
        let code = unsafe { (functions.create)(&raw mut handle, options.len() as c_uint, options.as_ptr()) };
        if code != 0 {
            return Err(Error::new(ErrorKind::Link, format!("nvJitLinkCreate failed for sm_{sm}: error {code}")));
        }
        let guard = Guard(self, handle);
        for (kind, data, name) in inputs {
            let name_text = CString::new(*name).unwrap_or_default();
            // The size of a string includes its NUL.
            let mut ended = Vec::new();
            let data = if *kind == LinkedKind::Ptx && data.last() != Some(&0) {
                ended.extend_from_slice(data);
                ended.push(0);
                ended.as_slice()
            } else {
                data
            };
            let (at, size) = (data.as_ptr().cast(), data.len());
            // SAFETY: the link is live; the data has the given size, and is copied.
            let code = unsafe { (functions.add)(handle, input_type(*kind), at, size, name_text.as_ptr()) };
            self.check(&guard, code, &format!("nvJitLink cannot read {name}"))?;
        }
        // SAFETY: the link is live.
        self.check(&guard, unsafe { (functions.complete)(handle) }, "nvJitLink cannot link the kernel")?;
        let mut size = 0;
        // SAFETY: the link is live; it writes one number.
        self.check(&guard, unsafe { (functions.cubin_size)(handle, &raw mut size) }, "nvJitLink returned no code")?;
        let mut cubin = vec![0_u8; size];
        // SAFETY: it writes as many bytes as it said.
        let code = unsafe { (functions.cubin)(handle, cubin.as_mut_ptr().cast()) };
        self.check(&guard, code, "nvJitLink returned no code")?;
        Ok(cubin)
    }

    fn check(&self, link: &Guard<'_>, code: c_int, what: &str) -> Result<(), Error> {
        if code == 0 {
            return Ok(());
        }
        let mut size = 0;
        // SAFETY: the link is live; it writes one number.
        let sized = unsafe { (self.functions.errors_size)(link.1, &raw mut size) };
        let mut log = vec![0_u8; if sized == 0 { size } else { 0 }];
        if !log.is_empty() {
            // SAFETY: it writes as many bytes as it said.
            unsafe { (self.functions.errors)(link.1, log.as_mut_ptr().cast()) };
        }
        Err(Error::new(ErrorKind::Link, format!("{what}: error {code}\n{}", text(&log))))
    }
}

/// `nvJitLinkInputType`.
fn input_type(kind: LinkedKind) -> c_int {
    match kind {
        LinkedKind::Cubin => 1,
        LinkedKind::Ptx => 2,
        LinkedKind::LtoIr => 3,
        LinkedKind::Fatbin => 4,
        LinkedKind::Object => 5,
        LinkedKind::Archive => 6,
        // Its own number, if the code is not CUDA C++.
        LinkedKind::Cu => 10,
    }
}
