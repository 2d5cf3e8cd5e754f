//! External code that kernels are linked with, and cached machine code.
//!
//! The runtime writes no files: the caller passes a cache for machine code. Caching never causes an error: missing code
//! is compiled, and code that cannot be stored is compiled again.

use std::{
    fmt::{self, Debug},
    path::PathBuf,
};

use weft_artifact::MachineCode;

use crate::toolkit::Toolkit;

/// The format of external code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LinkedKind {
    /// CUDA C++.
    Cu,
    /// PTX.
    Ptx,
    /// Machine code for one GPU.
    Cubin,
    /// Machine code for several, or PTX.
    Fatbin,
    /// An object file of the host's compiler, with a fatbin in it.
    Object,
    /// An archive of these.
    Archive,
    /// NVIDIA's intermediate code for optimization at link time.
    LtoIr,
}

impl LinkedKind {
    /// The kind of files with an extension.
    pub fn from_extension(extension: &str) -> Option<Self> {
        Some(match extension {
            "cu" => Self::Cu,
            "ptx" => Self::Ptx,
            "cubin" => Self::Cubin,
            "fatbin" => Self::Fatbin,
            "o" => Self::Object,
            "a" => Self::Archive,
            "ltoir" => Self::LtoIr,
            _ => return None,
        })
    }

    /// The extension of files of it.
    pub fn extension(self) -> &'static str {
        match self {
            Self::Cu => "cu",
            Self::Ptx => "ptx",
            Self::Cubin => "cubin",
            Self::Fatbin => "fatbin",
            Self::Object => "o",
            Self::Archive => "a",
            Self::LtoIr => "ltoir",
        }
    }
}

/// A piece of code from elsewhere.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Linked {
    /// Its format.
    pub kind: LinkedKind,
    /// Its name in messages.
    pub name: String,
    /// The text or the bytes.
    pub data: Vec<u8>,
    /// Where CUDA C++ includes files from, before all other folders.
    pub folder: Option<PathBuf>,
}

/// The code that a kernel is linked with, and the linker's options.
#[derive(Clone, Copy, Debug)]
pub struct Linking<'a> {
    /// The code.
    pub code: &'a [Linked],
    /// Optimize all of it together. LTO-IR always is.
    pub lto: bool,
    /// The most registers that a thread may use.
    pub max_registers: Option<u32>,
    /// Threads of a block, and blocks of an SM, that there are registers for.
    pub launch_bounds: Option<(u32, u32)>,
    /// More folders of headers for CUDA C++.
    pub includes: &'a [PathBuf],
    /// Where the tools are.
    pub toolkit: &'a Toolkit,
    /// The cache for machine code.
    pub keeper: Option<&'a dyn CodeCache>,
}

/// A stage of loading code, for measurements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoadStage {
    /// The driver makes machine code.
    Link,
    /// The driver loads code.
    Load,
    /// Machine code is stored in the cache.
    Keep,
}

impl fmt::Display for LoadStage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Link => "link",
            Self::Load => "load",
            Self::Keep => "keep",
        })
    }
}

/// Caches machine code, also for other processes.
pub trait CodeCache: Debug + Sync {
    /// The entry for machine code that is made of these inputs. Equal inputs have one entry, different inputs different ones.
    fn entry<'a>(&'a self, of: &MachineCode<'_>) -> Box<dyn CachedCode + 'a>;
    /// Called when a stage begins, on the thread that loads.
    fn begin(&self, _stage: LoadStage) {}
}

/// An entry for machine code.
pub trait CachedCode {
    /// The cached code.
    fn find(&self) -> Option<Vec<u8>>;
    /// Keeps code there.
    fn keep(&self, code: &[u8]);
    /// Removes the cached code, which the driver refused.
    fn remove(&self);
}
