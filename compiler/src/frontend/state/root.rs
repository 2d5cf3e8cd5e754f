//! The request's function.

use std::{collections::BTreeMap, sync::Arc};

use crate::request::FunctionDef;

/// The function that a request compiles.
#[derive(Debug, Default)]
pub(in crate::frontend) struct Root {
    /// `None` before its lowering starts.
    pub(in crate::frontend) def: Option<Arc<FunctionDef>>,
    /// Its symbol in the code.
    pub(in crate::frontend) symbol: String,
    /// Whether it is a kernel, which no function calls.
    pub(in crate::frontend) is_kernel: bool,
    /// The functions that were captured by number.
    pub(in crate::frontend) numbered: BTreeMap<u32, Arc<FunctionDef>>,
}

impl Root {
    /// Whether a function is the kernel.
    pub(in crate::frontend) fn is_this_kernel(&self, def: &Arc<FunctionDef>) -> bool {
        self.is_kernel && self.def.as_ref().is_some_and(|root| Arc::ptr_eq(root, def))
    }
}
