//! Gives the CPU executor the compiler's loader of host objects: the runtime knows no LLVM.

use std::sync::Arc;

use weft_runtime::{HostCode, HostLoader};

/// The loader of `weft_compiler::backend::host`.
#[derive(Debug)]
pub(crate) struct Loader;

impl HostLoader for Loader {
    fn load(&self, _object: &[u8]) -> Result<Arc<dyn HostCode>, String> {
        Err("the host back end is not built".to_owned())
    }
}
