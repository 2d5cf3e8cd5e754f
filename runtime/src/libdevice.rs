//! Finds NVIDIA's math library, `libdevice.10.bc`. It is proprietary, so weft ships none: it is looked for on this
//! machine, once, and read once.

use std::{
    ffi::OsString,
    fs,
    path::{Path, PathBuf},
    sync::{Arc, OnceLock},
};

use crate::{
    error::{Error, ErrorKind},
    settings::{FileChoice, Settings},
};

/// The file's name, the same for every CUDA version since 9.
const FILE: &str = "libdevice.10.bc";

/// Where a CUDA toolkit has it, below its own folder.
const IN_TOOLKIT: &str = "nvvm/libdevice";

/// Where Python packages have it, below `site-packages`: nvidia-nvvm (CUDA 13), nvidia-cuda-nvcc-cu12, triton.
const IN_SITE_PACKAGES: &[&str] =
    &["nvidia/cu13/nvvm/libdevice", "nvidia/cuda_nvcc/nvvm/libdevice", "triton/backends/nvidia/lib"];

/// libdevice as the settings choose it.
#[derive(Debug)]
pub struct Libdevice {
    choice: FileChoice,
    /// Folders to look in, in order.
    folders: Vec<PathBuf>,
    found: OnceLock<Option<PathBuf>>,
    bytes: OnceLock<Result<Option<Arc<Vec<u8>>>, Error>>,
}

impl Libdevice {
    /// Notes where to look: below `CUDA_HOME` and `CUDA_PATH` as `variable` answers them, below `roots` (the
    /// `site-packages` folders of a Python), then below `/usr/local/cuda*`. Touches no file yet.
    pub fn new(settings: &Settings, variable: impl Fn(&str) -> Option<OsString>, roots: &[PathBuf]) -> Self {
        let toolkits = ["CUDA_HOME", "CUDA_PATH"].into_iter().filter_map(variable).filter(|path| !path.is_empty());
        let mut folders: Vec<_> = toolkits.map(|path| Path::new(&path).join(IN_TOOLKIT)).collect();
        folders.extend(roots.iter().flat_map(|root| IN_SITE_PACKAGES.iter().map(move |below| root.join(below))));
        Self { choice: settings.libdevice.clone(), folders, found: OnceLock::new(), bytes: OnceLock::new() }
    }

    /// The file, or `None` if there is none or it is not wanted. A file named by the setting is answered unseen.
    pub fn path(&self) -> Option<&Path> {
        match &self.choice {
            FileChoice::None => None,
            FileChoice::Path(path) => Some(path),
            FileChoice::Auto => self.found.get_or_init(|| self.look()).as_deref(),
        }
    }

    /// The file's contents, read at the first call.
    ///
    /// # Errors
    ///
    /// `Value`, if the file that the setting names cannot be read or is not bitcode. An invalid file that was found by
    /// search is skipped.
    pub fn bytes(&self) -> Result<Option<Arc<Vec<u8>>>, Error> {
        self.bytes.get_or_init(|| self.read()).clone()
    }

    fn look(&self) -> Option<PathBuf> {
        let mut candidates = self.folders.iter().cloned().chain(system_toolkits());
        candidates.find_map(|folder| Some(folder.join(FILE)).filter(|file| file.is_file()))
    }

    fn read(&self) -> Result<Option<Arc<Vec<u8>>>, Error> {
        let Some(path) = self.path() else { return Ok(None) };
        let problem = match fs::read(path) {
            // LLVM bitcode, bare or wrapped.
            Ok(bytes) if bytes.starts_with(b"BC\xC0\xDE") || bytes.starts_with(b"\xDE\xC0\x17\x0B") => {
                return Ok(Some(Arc::new(bytes)));
            }
            Ok(_) => "it is not LLVM bitcode".to_owned(),
            Err(error) => error.to_string(),
        };
        if self.choice == FileChoice::Auto {
            return Ok(None);
        }
        Err(Error::new(
            ErrorKind::Value,
            format!("WEFT_LIBDEVICE is {}, which cannot be used: {problem}", path.display()),
        ))
    }
}

/// Folders of CUDA toolkits in the default location, the one without a version first, then the newest.
fn system_toolkits() -> impl Iterator<Item = PathBuf> {
    let mut versions: Vec<(Vec<u32>, PathBuf)> = fs::read_dir("/usr/local")
        .into_iter()
        .flatten()
        .filter_map(|entry| {
            let path = entry.ok()?.path();
            let version = path.file_name()?.to_str()?.strip_prefix("cuda-")?;
            Some((version.split('.').map(|part| part.parse().unwrap_or(0)).collect(), path.clone()))
        })
        .collect();
    versions.sort_by(|(left, _), (right, _)| right.cmp(left));
    let plain = PathBuf::from("/usr/local/cuda");
    [plain].into_iter().chain(versions.into_iter().map(|(_, path)| path)).map(|path| path.join(IN_TOOLKIT))
}
