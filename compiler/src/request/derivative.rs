//! The adjoint kernel or the tangent kernel of a kernel, as the subject of a request.

use crate::syntax::ast;

/// The adjoint kernel or the tangent kernel of a kernel.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Derivative {
    /// The numbers of the parameters that have adjoints. The adjoints are the last parameters, in this order.
    pub of: Vec<u32>,
    /// The numbers of the parameters that the program names: a derivative by each of them must exist.
    pub wrt: Vec<u32>,
    /// Arrays that the kernel writes have the contents from before the kernel's launch.
    pub has_old_contents: bool,
    /// The subject is the tangent kernel, whose last parameters are tangents.
    pub is_forward: bool,
}

impl Derivative {
    /// The bytes of dynamic shared memory of a launch of the derived kernel, for a launch of the kernel: the adjoints
    /// begin at a multiple of 16. `None` if there are too many.
    pub fn shared_bytes(bytes: u32) -> Option<u32> {
        bytes.checked_next_multiple_of(16)?.checked_add(bytes)
    }

    /// The name of the adjoint of a parameter. It is no identifier, so no kernel reads it.
    pub fn name(param: &str) -> String {
        format!("{param}.adjoint")
    }

    /// Adds the adjoints to the parameters of a kernel.
    pub fn add_adjoints(&self, kernel: &mut ast::Function) {
        for &number in &self.of {
            if let Some(param) = kernel.params.get(number as usize) {
                let name = Self::name(&param.name);
                kernel.params.push(ast::Param { name, default: None, ..param.clone() });
            }
        }
    }
}
