//! Cached machine code: loads it from the cache, or links it with the driver's linker and stores it.
//!
//! Caching never causes an error. Code that the driver refuses is removed and linked again; where the linker fails on
//! PTX alone, or produces code that the driver refuses, the PTX is loaded as without a cache, and the errors are those
//! of that load.

use std::sync::Arc;

use weft_artifact::{Artifact, CodeFormat, MachineCode};

use super::{
    context::Context,
    driver,
    link::{Input, by_driver},
    module::CudaModule,
};
use crate::{
    code::{CachedCode, CodeCache, LoadStage},
    error::{Error, ErrorKind},
};

/// The driver's numbers of errors that say that there is no driver, device or context any more, whatever the code:
/// `NOT_INITIALIZED`, `DEINITIALIZED`, `DEVICE_UNAVAILABLE`, `NO_DEVICE`, `INVALID_DEVICE`, `INVALID_CONTEXT`,
/// `CONTEXT_IS_DESTROYED`.
const GONE: [u32; 7] = [3, 4, 46, 100, 101, 201, 709];

/// Loads PTX: its cached machine code, or code that is linked now and cached.
pub(super) fn load(context: &Arc<Context>, artifact: &Artifact, keeper: &dyn CodeCache) -> Result<CudaModule, Error> {
    if artifact.format != CodeFormat::Ptx {
        return CudaModule::load(context, artifact);
    }
    let load = |code| CudaModule::load_image(context, artifact, code)?.with_kernels(artifact);
    let inputs = [Input::of(artifact)];
    let entry = entry(context, &inputs, None, keeper)?;
    if let Some(module) = find(&*entry, load)? {
        return Ok(module);
    }
    keeper.begin(LoadStage::Link);
    let made = by_driver(context, &inputs, None);
    keeper.begin(LoadStage::Load);
    // The driver's own compiler reports the errors of PTX.
    let Ok(code) = made else { return CudaModule::load(context, artifact) };
    match load(code.clone()) {
        Ok(module) => {
            keeper.begin(LoadStage::Keep);
            entry.keep(&code);
            Ok(module)
        }
        Err(error) if is_refusal(&error) => CudaModule::load(context, artifact),
        Err(error) => Err(error),
    }
}

/// Links pieces of code with the driver and loads the result, unless it is cached. Reports link errors.
pub(super) fn link(
    context: &Arc<Context>,
    artifact: &Artifact,
    inputs: &[Input<'_>],
    max_registers: Option<u32>,
    keeper: &dyn CodeCache,
) -> Result<CudaModule, Error> {
    let load = |code| CudaModule::load_linked(context, artifact, code)?.with_kernels(artifact);
    let entry = entry(context, inputs, max_registers, keeper)?;
    if let Some(module) = find(&*entry, load)? {
        return Ok(module);
    }
    keeper.begin(LoadStage::Link);
    let code = by_driver(context, inputs, max_registers)?;
    keeper.begin(LoadStage::Load);
    let module = load(code.clone())?;
    keeper.begin(LoadStage::Keep);
    entry.keep(&code);
    Ok(module)
}

/// The cache entry for the machine code of these pieces.
fn entry<'a>(
    context: &Context,
    inputs: &[Input<'_>],
    max_registers: Option<u32>,
    keeper: &'a dyn CodeCache,
) -> Result<Box<dyn CachedCode + 'a>, Error> {
    let inputs: Vec<(&str, &[u8])> = inputs.iter().map(|input| (input.kind.extension(), &*input.data)).collect();
    let compute_capability = context.attributes.compute_capability;
    Ok(keeper.entry(&MachineCode { compute_capability, driver: driver::identity()?, max_registers, inputs: &inputs }))
}

/// Loads the cached code; `None` if there is none, or the driver refuses it, in which case it is removed.
fn find(
    entry: &dyn CachedCode,
    load: impl Fn(Vec<u8>) -> Result<CudaModule, Error>,
) -> Result<Option<CudaModule>, Error> {
    let Some(code) = entry.find() else { return Ok(None) };
    match load(code) {
        Ok(module) => Ok(Some(module)),
        Err(error) if is_refusal(&error) => {
            entry.remove();
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

/// Whether an error may be the code's: every one but those that say that memory is out, or the device is lost. Drivers have
/// many numbers for what is wrong with code, and new ones come.
fn is_refusal(error: &Error) -> bool {
    let is_gone = error.driver_code.is_some_and(|code| GONE.contains(&code));
    error.kind != ErrorKind::Memory && !driver::is_fault(error) && !is_gone
}

#[cfg(test)]
mod tests {
    use super::is_refusal;
    use crate::error::{Error, ErrorKind};

    #[test]
    fn only_the_devices_own_errors_are_no_refusals() {
        let of = |kind, code| is_refusal(&Error { driver_code: Some(code), ..Error::new(kind, "") });
        // INVALID_IMAGE, NO_BINARY_FOR_GPU, INVALID_PTX, JIT_COMPILER_NOT_FOUND, INVALID_SOURCE, NOT_FOUND, and one to come.
        assert!(
            [1, 200, 209, 218, 221, 222, 223, 300, 301, 302, 500, 801, 4242].iter().all(|c| of(ErrorKind::Driver, *c))
        );
        // OUT_OF_MEMORY, INVALID_CONTEXT, DEVICE_UNAVAILABLE, ECC_UNCORRECTABLE, ILLEGAL_ADDRESS, LAUNCH_FAILED.
        assert!(!of(ErrorKind::Memory, 2));
        assert!([46, 201, 214, 700, 719].iter().all(|code| !of(ErrorKind::Driver, *code)));
    }
}
