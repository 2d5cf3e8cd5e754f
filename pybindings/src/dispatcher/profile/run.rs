//! Runs a prepared launch in the simulator.

use std::{
    sync::mpsc::{self, RecvTimeoutError},
    thread,
    time::Duration,
};

use pyo3::prelude::*;
use weft_compiler::target::{gpus::Gpu, occupancy::Needs};
use weft_runtime::progress::Progress;
use weft_simulator::{Error, Memory, Module, Region, Sample};

use super::prepare::{Array, Prepared};
use crate::{devices, dispatcher::Dispatcher, errors};

/// The time between two drawings of the progress.
const REDRAW: Duration = Duration::from_millis(100);

/// The bytes of a sector.
pub(super) const SECTOR: u64 = 32;

/// A launch that ran in the simulator.
pub(super) struct Simulated {
    pub(super) module: Module,
    pub(super) sample: Sample,
    /// The memory after the launch.
    memory: Memory,
}

impl Simulated {
    /// Runs a launch: a part of its blocks if there is a time limit and no block waits for another one. Loads from L2
    /// are counted for a GPU's L1.
    ///
    /// # Errors
    ///
    /// `LaunchError` where the simulator cannot run it.
    pub(super) fn run(
        dispatcher: &Bound<'_, Dispatcher>,
        prepared: &mut Prepared,
        time: Option<Duration>,
        gpu: Option<&'static Gpu>,
    ) -> PyResult<Self> {
        let name = &dispatcher.get().name;
        let simulated = dispatcher.py().detach(|| {
            let _work = devices::fork::at_work();
            match time {
                Some(_) => with_progress(name, || simulate(prepared, time, gpu)),
                None => simulate(prepared, time, gpu),
            }
        });
        simulated.map_err(|(error, location)| fault(dispatcher, &error, location.as_ref()))
    }

    /// The arrays: their names, their bytes, and the sectors of them that were accessed.
    pub(super) fn touched(&self, arrays: &[Array]) -> Vec<(String, u64, u64)> {
        let one = |Array { name, span, .. }: &Array| {
            let sectors = self.memory.region(span.start).map_or(0, Region::touched_sectors);
            (name.clone(), span.end - span.start, sectors)
        };
        arrays.iter().map(one).collect()
    }

    /// The bytes of an array after the launch, with those after its end.
    pub(super) fn bytes(&self, array: &Array) -> Vec<u8> {
        self.memory.region(array.span.start).map_or_else(Vec::new, Region::bytes)
    }
}

/// The memory of a launch: copies of the arrays, at their addresses.
fn memory(module: &Module, arrays: &[Array]) -> Memory {
    let mut memory = module.memory();
    for Array { name, span, bytes } in arrays {
        memory.add_at(name, span.start, bytes);
    }
    memory
}

/// Runs a function, and shows its progress if it takes long: another thread draws.
fn with_progress<T>(name: &str, work: impl FnOnce() -> T) -> T {
    let Some(mut progress) = Progress::of_work(|| format!("profiling {name}")) else { return work() };
    let (done, is_done) = mpsc::channel::<()>();
    thread::scope(|scope| {
        scope.spawn(move || {
            while is_done.recv_timeout(REDRAW) == Err(RecvTimeoutError::Timeout) {
                progress.look("running its blocks");
            }
        });
        let result = work();
        drop(done);
        result
    })
}

/// L1 of a multiprocessor beside the most shared memory of a block: with it, 256 KB of 9.0, 192 of 8.0, 128 of 8.6, 8.9
/// and 12.0.
const L1_BESIDE_SHARED: u64 = 29 << 10;

/// The sectors of L1 for each of the blocks that a multiprocessor holds at a time. Shared memory is a part of L1.
fn l1_sectors(module: &Module, prepared: &Prepared, gpu: &Gpu) -> u64 {
    let Some(sm) = gpu.target() else { return 0 };
    let (kernel, launch) = (&prepared.resolved.overload.kernel, &prepared.launch);
    let Some(registers) = module.registers(&kernel.symbol, sm.max_warps) else { return 0 };
    let shared = kernel.shared_bytes + u64::from(launch.dynamic_shared);
    let resident = sm.occupancy(Needs::new(registers.count, shared, launch.block.iter().product())).blocks;
    let grid: u64 = launch.grid.iter().map(|extent| u64::from(*extent)).product();
    let blocks = u64::from(resident).min(grid.div_ceil(u64::from(gpu.multiprocessors))).max(1);
    ((sm.max_shared_bytes + L1_BESIDE_SHARED) / blocks).saturating_sub(shared).max(1 << 10) / SECTOR
}

/// A fault of the simulator, and the file and the line of the source.
type Fault = (Error, Option<(String, u32)>);

/// Runs a launch in the simulator: as a whole if there is no time limit, or if blocks wait for each other.
fn simulate(prepared: &mut Prepared, time: Option<Duration>, gpu: Option<&Gpu>) -> Result<Simulated, Fault> {
    let module = Module::parse(&prepared.ptx).map_err(|error| (error, None))?;
    prepared.launch.l1_sectors = gpu.map_or(0, |gpu| l1_sectors(&module, prepared, gpu));
    let kernel = &prepared.resolved.overload.kernel;
    // A parameter may be narrower than its slot: the driver copies as many bytes as the PTX declares.
    if let Some((_, declared)) = module.kernels().find(|(name, _)| *name == kernel.symbol) {
        let params = prepared.launch.params.iter_mut();
        params.zip(declared).for_each(|(bytes, param)| bytes.truncate(param.size as usize));
    }
    let time = time.filter(|_| !kernel.cooperative);
    let run = || -> Result<_, Error> {
        let Prepared { launch, arrays, .. } = &*prepared;
        if let Some(time) = time {
            let memory = memory(&module, arrays);
            if let Some(sample) = module.sample(&kernel.symbol, launch, &memory, time)? {
                return Ok((sample, memory));
            }
        }
        let memory = memory(&module, arrays);
        let counts = module.launch(&kernel.symbol, launch, &memory)?;
        Ok((Sample::whole(counts, launch), memory))
    };
    match run() {
        Ok((sample, memory)) => Ok(Simulated { module, sample, memory }),
        Err(error) => {
            let location = module.location(error.line);
            let location = location.and_then(|found| Some((module.file(found.file)?.to_owned(), found.line)));
            Err((error, location))
        }
    }
}

/// The exception for a launch that the simulator cannot run.
fn fault(dispatcher: &Bound<'_, Dispatcher>, error: &Error, location: Option<&(String, u32)>) -> PyErr {
    let name = &dispatcher.get().name;
    let location = match location {
        Some((file, line)) => format!("{file}, line {line}"),
        None => format!("line {} of its PTX", error.line),
    };
    let lane = error.lane.map_or(String::new(), |lane| format!(", lane {lane} of a warp"));
    let message = format!("kernel `{name}` cannot be simulated: {}\n  at {location}{lane}", error.message);
    errors::launch(dispatcher.py(), &message)
}
