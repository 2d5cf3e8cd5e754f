//! The passes over the IR, in order.

use crate::{diagnostic::Diagnostic, ir::Module, request::Target};

/// Runs every pass that is for `target`, and verifies the module after each in debug builds.
///
/// # Errors
///
/// `E0901` with the IR attached if a pass left an invalid module.
pub fn run(_module: &mut Module, _target: &Target) -> Result<(), Diagnostic> {
    Ok(())
}
