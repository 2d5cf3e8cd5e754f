//! Provides the compiler's loader of host object files to the CPU executor. The runtime does not depend on LLVM.

use std::sync::Arc;

use weft_compiler::backend::host::jit::{self, HostModule};
use weft_runtime::{HostCode, HostLoader};

/// The loader of [`weft_compiler::backend::host::jit`].
#[derive(Debug)]
pub struct Loader;

/// Code loaded into memory.
#[derive(Debug)]
struct Code(HostModule);

impl HostLoader for Loader {
    fn load(&self, object: &[u8]) -> Result<Arc<dyn HostCode>, String> {
        Ok(Arc::new(Code(jit::load(object)?)))
    }
}

impl HostCode for Code {
    fn symbol(&self, name: &str) -> Option<usize> {
        self.0.symbol(name)
    }
}
