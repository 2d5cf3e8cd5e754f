//! Opening libraries of the CUDA toolkit.

#![expect(unsafe_code, reason = "opens libraries")]

use libloading::Library;

use crate::{
    error::{Error, ErrorKind},
    settings::FileChoice,
    toolkit::{Toolkit, ToolkitLibrary, newest},
};

/// Declares the functions of a library that all return an error number: field, symbol, parameters. `Functions::of` finds
/// them.
macro_rules! functions {
    ($($name:ident = $symbol:literal ($($ty:ty),*);)*) => {
        struct Functions {
            $($name: unsafe extern "C" fn($($ty),*) -> std::ffi::c_int,)*
        }

        impl Functions {
            fn of(library: &libloading::Library) -> Result<Self, $crate::error::Error> {
                // SAFETY: the symbols have these types in the library's header.
                Ok(Self { $($name: unsafe { $crate::cuda::tools::find(library, $symbol) }?,)* })
            }
        }
    };
}
pub(super) use functions;

/// Opens a library: the file that the setting names, or the first that is found.
///
/// # Errors
///
/// `NoTool`, with the names that were searched for.
pub(super) fn open(wanted: &ToolkitLibrary, choice: &FileChoice, toolkit: &Toolkit) -> Result<Library, Error> {
    let ToolkitLibrary { name, file, setting, package, .. } = wanted;
    let no_tool = |message: String| Err(Error::new(ErrorKind::NoTool, message));
    let files = match choice {
        FileChoice::None => return no_tool(format!("{name} is needed, but {setting} is \"none\"")),
        FileChoice::Path(path) => vec![path.clone()],
        FileChoice::Auto => toolkit.files(wanted),
    };
    let mut faults = Vec::new();
    for path in &files {
        let beside = wanted.beside.and_then(|beside| newest(path.parent()?, beside));
        // SAFETY: as below. Once it is open, later loads by name get it.
        if let Some(Ok(library)) = beside.map(|path| unsafe { Library::new(path) }) {
            // It stays open.
            std::mem::forget(library);
        }
        // SAFETY: NVIDIA's libraries do nothing when they are opened that matters here.
        match unsafe { Library::new(path) } {
            Ok(library) => return Ok(library),
            Err(error) => faults.push(format!("{}: {error}", path.display())),
        }
    }
    if *choice == FileChoice::Auto {
        for version in wanted.versions {
            // SAFETY: as above.
            if let Ok(library) = unsafe { Library::new(format!("{file}{version}")) } {
                return Ok(library);
            }
        }
    }
    if let ([fault, ..], FileChoice::Path(_)) = (faults.as_slice(), choice) {
        return no_tool(format!("{setting} names a file that cannot be opened: {fault}"));
    }
    let opened: String = faults.iter().flat_map(|fault| ["\n", fault]).collect();
    no_tool(format!(
        "{name} was not found: {file} is not in a CUDA toolkit (CUDA_HOME, CUDA_PATH, /usr/local/cuda), a Python \
         package or the system's library path. Install a toolkit or the Python package {package}, or set {setting} to \
         the file{opened}"
    ))
}

/// A function of a library. `F` is a function pointer type of the symbol.
///
/// # Safety
///
/// The symbol is a function of this type.
pub(super) unsafe fn find<F: Copy>(library: &Library, symbol: &str) -> Result<F, Error> {
    // SAFETY: the caller promises it.
    match unsafe { library.get::<F>(symbol.as_bytes()) } {
        Ok(function) => Ok(*function),
        Err(_) => Err(Error::new(ErrorKind::NoTool, format!("the library is too old: it has no {symbol}"))),
    }
}

/// Text in a buffer that ends with a NUL.
pub(super) fn text(bytes: &[u8]) -> String {
    let bytes = bytes.split(|&byte| byte == 0).next().unwrap_or_default();
    String::from_utf8_lossy(bytes).trim_end().to_owned()
}
