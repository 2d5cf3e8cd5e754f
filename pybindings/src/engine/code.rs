//! Machine code that a driver has made, kept on the disk beside what was compiled.

use weft_artifact::{ArgType, Kernel, MachineCode};
use weft_compiler::request::JitOptions;
use weft_engine::{About, Digest, DiskCache};
use weft_runtime::{CodeKeeper, KeptCode, LoadStage};

use super::{cache, timing};

/// Keeps the machine code of one kernel.
#[derive(Debug)]
pub(crate) struct Keeper {
    cache: &'static DiskCache,
    about: About,
}

impl Keeper {
    /// The keeper of a kernel that was compiled with these options; `None` if its machine code is not kept: where the kernel
    /// itself is not, or is for a debugger or a profiler. What they find in machine code is what the driver makes of PTX by
    /// itself. `is_lasting` is that of what was compiled.
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

impl CodeKeeper for Keeper {
    fn place<'a>(&'a self, of: &MachineCode<'_>) -> Box<dyn KeptCode + 'a> {
        Box::new(Place { keeper: self, key: Digest::of_machine_code(of) })
    }

    fn begin(&self, stage: LoadStage) {
        timing::begin(&stage.to_string());
    }
}

/// An entry of the cache.
struct Place<'a> {
    keeper: &'a Keeper,
    key: Digest,
}

impl KeptCode for Place<'_> {
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
