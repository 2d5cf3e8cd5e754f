//! The driver's machine code, cached on disk beside the compiled kernels.

use weft_artifact::{ArgType, Kernel, MachineCode};
use weft_compiler::request::JitOptions;
use weft_engine::{About, Digest, DiskCache};
use weft_runtime::{CachedCode, CodeCache, LoadStage};

use super::{cache, timing};

/// Caches the machine code of one kernel.
#[derive(Debug)]
pub(crate) struct KernelCodeCache {
    cache: &'static DiskCache,
    about: About,
}

impl KernelCodeCache {
    /// The machine code cache for a kernel compiled with these options; `None` if its machine code is not cached: where
    /// the kernel itself is not, or is for a debugger or a profiler, which need the code that the driver generates from
    /// PTX by itself. `is_lasting` is that of the compiled kernel.
    pub(crate) fn of(
        jit: &JitOptions,
        is_lasting: bool,
        kernel: &Kernel,
        args: &[ArgType],
        target: &str,
    ) -> Option<Self> {
        let cache = cache(jit).filter(|_| is_lasting && !jit.code.debug && !jit.code.lineinfo)?;
        Some(Self { cache, about: About::of(&kernel.name, args, format!("{target} cubin")) })
    }
}

impl CodeCache for KernelCodeCache {
    fn entry<'a>(&'a self, of: &MachineCode<'_>) -> Box<dyn CachedCode + 'a> {
        Box::new(CacheEntry { keeper: self, key: Digest::of_machine_code(of) })
    }

    fn begin(&self, stage: LoadStage) {
        timing::begin(&stage.to_string());
    }
}

/// An entry of the cache.
struct CacheEntry<'a> {
    keeper: &'a KernelCodeCache,
    key: Digest,
}

impl CachedCode for CacheEntry<'_> {
    fn find(&self) -> Option<Vec<u8>> {
        self.keeper.cache.read(&self.key)
    }

    fn keep(&self, code: &[u8]) {
        self.keeper.cache.write(&self.key, &self.keeper.about, code);
    }

    fn remove(&self) {
        self.keeper.cache.remove(&self.key);
    }
}
