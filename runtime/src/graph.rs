//! Graphs: work that was recorded once and is done again with one call.

use std::{
    fmt::Debug,
    sync::{Arc, Mutex, PoisonError},
};

use crate::{
    error::{Error, ErrorKind},
    executor::{Executor, LaunchConfig, LoadedKernel, Poll, Stream},
    profiler_ranges,
    rows::Rows,
};

/// The kind of memory that an address is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemoryKind {
    /// The device's, of weft's own.
    Device,
    /// Memory that the device accesses by this address: shared with the host, or of an unknown owner.
    Shared,
    /// The host's, by its address there.
    Host,
}

/// The first byte of a copy's source or destination.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryLocation {
    /// The address of the first byte.
    pub address: u64,
    /// Of what it is.
    pub memory: MemoryKind,
}

/// One piece of recorded work. The caller that replays it holds the memory that it uses.
#[derive(Clone, Debug)]
pub enum Step {
    /// A launch.
    Launch {
        /// The kernel.
        kernel: Arc<dyn LoadedKernel>,
        /// Its configuration.
        config: LaunchConfig,
        /// Its cells, as [`LoadedKernel::launch`] takes them.
        cells: Vec<u64>,
    },
    /// A copy between two places, which do not overlap.
    Copy {
        /// Where to.
        to: MemoryLocation,
        /// Where from.
        from: MemoryLocation,
        /// How much.
        rows: Rows,
    },
}

/// A step, and the numbers of its predecessors. Steps without a path between them may run concurrently.
#[derive(Clone, Debug)]
pub struct Node {
    /// The work.
    pub step: Step,
    /// Each of them once.
    pub after: Vec<usize>,
}

/// Steps that are replayed any number of times, each after its predecessors. A replay that begins in one stream while
/// another one is running in another stream waits for that. Dropping it waits for running copies of host memory.
pub trait Graph: Debug + Send + Sync {
    /// Queues all steps. Where they run before the call returns, it regularly polls whether to continue.
    ///
    /// # Errors
    ///
    /// As the steps' own calls: the ones before a failing one are done.
    fn launch(&self, stream: Option<&dyn Stream>, poll: Option<Poll<'_>>) -> Result<(), Error>;
    /// Gives a launch other cells, for replays from now on.
    ///
    /// # Errors
    ///
    /// `Value` where the step is none, or takes another number of cells.
    fn set_cells(&self, step: usize, cells: &[u64]) -> Result<(), Error>;
}

/// The cells of a launch among steps, to be written.
pub(crate) fn cells_of<'a>(steps: &'a mut [Step], step: usize, cells: &[u64]) -> Result<&'a mut Vec<u64>, Error> {
    match steps.get_mut(step) {
        Some(Step::Launch { cells: own, .. }) if own.len() == cells.len() => Ok(own),
        Some(Step::Launch { .. } | Step::Copy { .. }) | None => Err(Error::new(
            ErrorKind::Value,
            format!("step {step} of the graph is no launch with {} cells", cells.len()),
        )),
    }
}

/// A graph that calls its executor for each step: where the device has no graphs of its own.
#[derive(Debug)]
pub(crate) struct Replayed {
    executor: Arc<dyn Executor>,
    /// Replaced as a whole: the lock is not held while steps run, which may set cells.
    steps: Mutex<Arc<Vec<Step>>>,
}

impl Replayed {
    pub(crate) fn new(executor: Arc<dyn Executor>, nodes: Vec<Node>) -> Self {
        // A step has only earlier steps as predecessors, so their own order is a valid one.
        let steps = nodes.into_iter().map(|node| node.step).collect();
        Self { executor, steps: Mutex::new(Arc::new(steps)) }
    }
}

/// Whether a copy reads or writes memory of the host.
pub(crate) fn is_of_host(step: &Step) -> bool {
    match step {
        Step::Launch { .. } => false,
        Step::Copy { to, from, .. } => to.memory == MemoryKind::Host || from.memory == MemoryKind::Host,
    }
}

impl Graph for Replayed {
    fn launch(&self, stream: Option<&dyn Stream>, poll: Option<Poll<'_>>) -> Result<(), Error> {
        let steps = Arc::clone(&self.steps.lock().unwrap_or_else(PoisonError::into_inner));
        let mut scratch = Vec::new();
        let _range = profiler_ranges::launch_graph(steps.len());
        for step in &*steps {
            match step {
                Step::Launch { kernel, config, cells } => {
                    scratch.clone_from(cells);
                    kernel.launch_polled(config, stream, &mut scratch, poll)?;
                }
                Step::Copy { to, from, rows } => self.executor.copy_between(*to, *from, rows, stream)?,
            }
        }
        Ok(())
    }

    fn set_cells(&self, step: usize, cells: &[u64]) -> Result<(), Error> {
        let mut steps = self.steps.lock().unwrap_or_else(PoisonError::into_inner);
        let steps: &mut Vec<Step> = Arc::make_mut(&mut *steps);
        cells_of(steps, step, cells)?.copy_from_slice(cells);
        Ok(())
    }
}
