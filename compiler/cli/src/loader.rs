//! Gives the CPU executor the compiler's loader of host objects: the runtime knows no LLVM.

use std::sync::Arc;

use weft_compiler::backend::host::jit::{self, HostModule};
use weft_runtime::{HostCode, HostLoader};

/// The loader of [`weft_compiler::backend::host::jit`].
#[derive(Debug)]
pub struct Loader;

/// Code that it loaded.
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
