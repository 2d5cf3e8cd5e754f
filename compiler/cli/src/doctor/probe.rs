//! A small kernel that is compiled, loaded and launched on a device to check that kernels run there.

use std::{path::Path, sync::Arc};

use weft_artifact::{Artifact, SlotField, SlotSource};
use weft_compiler::{
    diagnostic::render_text,
    request::{HostCpu, Keep, Options, Outcome, Overloads, Request},
    target::{self, needs::isa_of_driver},
};
use weft_engine::Engine;
use weft_runtime::{Executor, LaunchConfig};

use crate::{
    kernels,
    program::{Captures, Program},
};

/// The source of the kernel.
const TEXT: &str = "\
from weft import cuda


@cuda.jit(\"void(uint64[::1], uint64, uint64)\")
def sum3(out, a, b):
    out[0] = a + b
";

/// The arguments of the kernel, which returns their sum.
const NUMBERS: [u64; 2] = [1 << 40, 2];

/// Runs the kernel on a device. `cpu` is the target CPU of host code.
///
/// # Errors
///
/// The step that failed.
pub(super) fn run(device: &dyn Executor, cpu: &Arc<HostCpu>, libdevice: Option<Arc<Vec<u8>>>) -> Result<(), String> {
    let artifact = compile(device, cpu, libdevice)?;
    let failed = |what: &'static str| move |error: weft_runtime::Error| format!("{what}: {error}");
    let kernel = artifact.kernels.first().ok_or("the code has no kernel")?;
    let module = device.load(&artifact).map_err(failed("its code cannot be loaded"))?;
    let loaded = module.kernel(kernel).map_err(failed("its code cannot be loaded"))?;
    let out = device.allocate(8, None).map_err(failed("no memory can be allocated"))?;
    let [a, b] = NUMBERS;
    let cells = kernel.slots.iter().map(|slot| match &slot.source {
        SlotSource::Argument { param: 0, field: SlotField::Data, .. } => Ok(out.address()),
        SlotSource::Argument { param: 1, field: SlotField::Value, .. } => Ok(a),
        SlotSource::Argument { param: 2, field: SlotField::Value, .. } => Ok(b),
        other @ (SlotSource::Argument { .. } | SlotSource::Runtime(_)) => {
            Err(format!("its code takes unexpected arguments: {other:?}"))
        }
    });
    let mut cells: Vec<u64> = cells.collect::<Result<_, String>>()?;
    let config = LaunchConfig { grid: [1; 3], block: [1; 3], shared_bytes: 0, cluster: LaunchConfig::ALONE };
    loaded.launch(&config, None, &mut cells).map_err(failed("it cannot be launched"))?;
    let mut bytes = [0; 8];
    device.copy_to_host(&mut bytes, out.address(), None).map_err(failed("its result cannot be read"))?;
    match u64::from_le_bytes(bytes) {
        sum if sum == a + b => Ok(()),
        other => Err(format!("it added {a} and {b} to {other}")),
    }
}

/// Compiles the kernel for a device.
fn compile(device: &dyn Executor, cpu: &Arc<HostCpu>, libdevice: Option<Arc<Vec<u8>>>) -> Result<Artifact, String> {
    let program = Program::read(Path::new("doctor.py"), TEXT.as_bytes());
    let kernel = program.kernels().into_iter().next().ok_or("it has no kernel")?;
    let job = kernels::jobs(&program, kernel, &[], &mut Captures::default()).pop().ok_or("it has no signature")?;
    let target = target::parse(&device.target(), || Arc::clone(cpu)).map_err(|unknown| unknown.to_string())?;
    let driver = device.attributes().driver_version;
    let options = Options { libdevice, driver_isa: isa_of_driver(driver), ..Options::default() };
    let request = Request {
        function: job.def,
        overloads: Overloads::default(),
        args: job.signature.args,
        target,
        options,
        keep: Keep::default(),
    };
    match Engine::new().compile(&request) {
        Ok(Outcome::Made(output)) => Ok(output.artifact.clone()),
        Ok(Outcome::Queries(_)) => Err("it calls a function without an implementation".to_owned()),
        Err(failure) => Err(render_text(&failure.diagnostics, &failure.sources, false)),
    }
}
