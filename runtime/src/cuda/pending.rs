//! Memory that is no longer used by the host, may still be by the device, and cannot be freed in the order of a stream: of
//! another allocator, or of a driver without a pool.
//!
//! It goes back when all work that was queued on it is done. Nothing waits for that: it is looked whenever such memory is
//! allocated or let go, and all of it is waited for before an allocation fails.
//!
//! Giving memory back runs code that is not ours, so no lock is held meanwhile.
#![expect(unsafe_code, reason = "calls into the CUDA driver")]

use std::{
    ptr,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use super::{
    context::Context,
    free::Use,
    stream::{CudaEvent, CudaStream, is_ready},
};
use crate::{
    error::Error,
    executor::{Lent, Stream},
};

/// The most entries that one call checks: very many may wait for one long kernel.
const MOST: usize = 16;

/// All such memory of a device.
#[derive(Debug, Default)]
pub(super) struct Pending(Mutex<Vec<PendingMemory>>);

#[derive(Debug)]
struct PendingMemory {
    /// The events to wait for.
    events: Vec<Arc<CudaEvent>>,
    _memory: Box<dyn Lent>,
}

impl Pending {
    /// How much there is.
    pub(super) fn len(&self) -> usize {
        self.lock().len()
    }

    /// Returns memory after all work in its own stream and the uses in others. The context is current.
    pub(super) fn release(
        &self,
        context: &Arc<Context>,
        own: Option<&CudaStream>,
        uses: &[Use],
        memory: Box<dyn Lent>,
    ) {
        match unfinished(context, own, uses) {
            Ok(events) if events.is_empty() => drop(memory),
            Ok(events) => self.lock().push(PendingMemory { events, _memory: memory }),
            Err(_) => {
                // SAFETY: it takes no pointer.
                let _: Result<(), Error> = unsafe { context.driver.cuCtxSynchronize() };
                drop(memory);
            }
        }
        self.look();
    }

    /// Returns memory that is no longer in use, among the oldest entries.
    pub(super) fn look(&self) {
        let is_done = |waiting: &mut PendingMemory| waiting.events.iter().all(|event| event.is_over());
        let mut list = self.lock();
        if list.is_empty() {
            return;
        }
        let n_looked = list.len().min(MOST);
        let done: Vec<PendingMemory> = list.extract_if(..n_looked, is_done).collect();
        drop(list);
        drop(done);
    }

    /// Returns all memory. All work is done.
    pub(super) fn give_all(&self) {
        let all = std::mem::take(&mut *self.lock());
        drop(all);
    }

    fn lock(&self) -> MutexGuard<'_, Vec<PendingMemory>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Events after unfinished work.
fn unfinished(context: &Arc<Context>, own: Option<&CudaStream>, uses: &[Use]) -> Result<Vec<Arc<CudaEvent>>, Error> {
    let mut events = Vec::new();
    let raw = own.map_or(ptr::null_mut(), CudaStream::raw);
    // SAFETY: the stream is live.
    if !is_ready(unsafe { context.driver.cuStreamQuery(raw) })? {
        events.push(recorded_event(context, own)?);
    }
    for used in uses.iter().filter(|used| !used.is_done(context)) {
        events.push(match used {
            Use::Default => recorded_event(context, None)?,
            Use::Stream(stream) => recorded_event(context, Some(stream))?,
            Use::Event(event) => Arc::clone(event),
        });
    }
    Ok(events)
}

fn recorded_event(context: &Arc<Context>, stream: Option<&CudaStream>) -> Result<Arc<CudaEvent>, Error> {
    let event = CudaEvent::untimed(context)?;
    event.record(context, stream.map(|stream| stream as &dyn Stream))?;
    Ok(Arc::new(event))
}
