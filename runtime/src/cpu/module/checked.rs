//! Launches of sanitized code: in parts, on several threads of the system, where that can be, else on one.

use std::{
    ops::Range,
    ptr,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use weft_artifact::{HostContext, HostWatch, Kernel, Sites};

use super::{Alone, CpuKernel, Launch, Running, Start};
use crate::{
    cpu::{
        checks::{self, CHECKS, Checks, SanitizedContext, Watched},
        interrupt::leaves,
        invalid_access::{self, Culprit, ThreadSlot},
        pool::{Cost, Work},
    },
    error::{Error, ErrorKind},
    executor::Poll,
    print,
    progress::Progress,
    sanitize::{self, LaunchParts, LiveThread, Overlaps, Shape},
};

/// A launch that takes at most this long on one thread runs there: its pages' contents need not be saved.
const SHORT: Duration = Duration::from_micros(300);

impl CpuKernel {
    /// Runs a launch, and reports the findings.
    pub(super) fn launch_checked(
        &self,
        sites: &Arc<Sites>,
        kernel: &Kernel,
        start: &Start<'_>,
        poll: Option<Poll<'_>>,
    ) -> Result<(), Error> {
        let [grid_x, grid_y, grid_z, block_x, block_y, block_z, ..] = start.config;
        let shape = Shape {
            grid: [grid_x, grid_y, grid_z],
            block: [block_x, block_y, block_z],
            benign_races: sanitize::reports_benign_races(),
            loops: self.stack_bytes.is_none(),
        };
        let (name, n_blocks, pool) = (&self.limits.name, start.n_blocks, &self.shared.pool);
        let arguments = checks::arguments(kernel, start.cells);
        if self.is_for_parts(sites, &shape, n_blocks)
            && let Some(mut parts) =
                LaunchParts::begin(Arc::clone(sites), name, shape, arguments.clone(), checks::read_page)
        {
            let done = AtomicU64::new(0);
            let launch = self.begin(start, Checks::Parts(&parts, &done));
            let ran = pool.run(&launch, n_blocks, &self.cost, poll);
            // Blocks that were skipped because the launch was given up are no fault.
            let is_left = |error: &Error| error.kind == ErrorKind::Memory && parts.is_over();
            let ran = if ran.as_ref().is_err_and(is_left) { Ok(()) } else { ran };
            self.conclude(&launch, start, &ran)?;
            self.named(ran)?;
            let look = |overlaps: &Overlaps<'_>, n: u64| {
                pool.run(&Each(|number| overlaps.look(number)), n, &Cost::default(), None).is_ok()
            };
            let is_clean = parts.is_clean(look);
            if !is_clean {
                parts.undo(checks::write_back);
                self.in_parts.store(false, Ordering::Relaxed);
            }
            parts.leave(|leaving, n| drop(pool.run(&Each(|number| leaving.leave(number)), n, &Cost::default(), None)));
            if is_clean {
                return Ok(());
            }
        }
        let checked = Mutex::new(sanitize::Launch::new(Arc::clone(sites), name, shape, arguments));
        let launch = self.begin(start, Checks::Alone(&checked));
        let n_clusters = n_blocks / start.cluster.iter().map(|&extent| u64::from(extent)).product::<u64>();
        let ran = pool.run(&Alone { launch: &launch, n_clusters }, 1, &Cost::default(), poll);
        let mut checked = checked.lock().unwrap_or_else(PoisonError::into_inner);
        if checked.explains_exceptions() {
            print::flush();
            return Err(Error::found(name, checked.take()));
        }
        self.conclude(&launch, start, &ran)?;
        if checked.has_found() {
            return Err(Error::found(name, checked.take()));
        }
        drop(checked);
        self.named(ran)
    }

    fn is_for_parts(&self, sites: &Sites, shape: &Shape, n_blocks: u64) -> bool {
        n_blocks > 1
            && self.shared.pool.n_threads() > 1
            && LaunchParts::fit(sites, shape)
            && self.faults.is_none()
            && self.in_parts.load(Ordering::Relaxed)
            && self.cost.blocks_in(SHORT).is_none_or(|short| n_blocks > short)
    }
}

/// Calls a function for each of some numbers.
struct Each<F>(F);

impl<F: Fn(u64) + Sync> Work for Each<F> {
    fn run(&self, next: &mut dyn FnMut() -> Option<Range<u64>>, _watch: *const HostWatch) -> bool {
        while let Some(range) = next() {
            range.for_each(&self.0);
        }
        true
    }
}

fn show(progress: &mut Option<Progress>, n_blocks: u64) {
    if let Some(progress) = progress {
        progress.done_blocks(n_blocks);
    }
}

impl Launch<'_> {
    /// Runs blocks whose threads are work-item loops and report accesses; `None` where there is no sanitizer, and
    /// `false` if no more are to be run.
    pub(super) fn run_checked(
        &self,
        context: HostContext,
        (start, end): (u64, u64),
        seat: Option<&ThreadSlot>,
    ) -> Option<bool> {
        let progress = |n_blocks: u64| Progress::of_blocks(|| format!("sanitizing {}", self.kernel), n_blocks);
        match self.checks {
            Checks::Off => None,
            Checks::Alone(checked) => {
                let mut checked = checked.lock().unwrap_or_else(PoisonError::into_inner);
                let mut progress = progress(end - start);
                Some(self.run_sanitized(&mut checked, context, (start, end), seat, &mut |block| {
                    show(&mut progress, block + 1 - start);
                    true
                }))
            }
            Checks::Parts(parts, done) => Some(parts.with(|part| {
                let mut progress = if parts.is_caller() { progress(self.n_blocks) } else { None };
                self.run_sanitized(part, context, (start, end), seat, &mut |_| {
                    let n_blocks = done.fetch_add(1, Ordering::Relaxed) + 1;
                    show(&mut progress, n_blocks);
                    !parts.is_over()
                })
            })),
        }
    }

    /// Runs blocks one after the other, as long as `goes_on` says so. `false` if it does not, or if one has left for good.
    fn run_sanitized(
        &self,
        checks: &mut sanitize::Launch,
        context: HostContext,
        (start, end): (u64, u64),
        seat: Option<&ThreadSlot>,
        goes_on: &mut dyn FnMut(u64) -> bool,
    ) -> bool {
        let (scratch, bytes) = (context.scratch.addr() as u64, self.scratch_bytes as u64);
        // SAFETY: the configuration is that of this launch.
        let watch = unsafe { (*context.config).watch };
        for block in start..end {
            let slot = checks.begin(block, scratch, bytes, self.dynamic as u64);
            let seen = checks.seen(LiveThread { slot, thread: 0 });
            let context = HostContext { first_block: block, last_block: block + 1, checks: CHECKS, seen, ..context };
            let telling = SanitizedContext { context, watched: Watched::new(ptr::from_mut(&mut *checks), slot) };
            let mut running = Running { telling, together: &self.together };
            // SAFETY: as for unsanitized blocks; the code reports to this sanitizer, which no other thread uses
            // concurrently.
            let called = unsafe {
                invalid_access::call(seat, self.entry, (&raw mut running).cast::<HostContext>(), self.kernel)
            };
            if let Err(invalid) = called {
                self.together.found_invalid(watch, Culprit { invalid, blocks: (block, block + 1), thread: None });
                return false;
            }
            checks.end(slot);
            // SAFETY: the watch is this launch's.
            if !goes_on(block) || unsafe { leaves(watch) } {
                return false;
            }
        }
        true
    }
}
