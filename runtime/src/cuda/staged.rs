//! Copies of pageable host memory through page-locked buffers, which several threads fill and empty.
//!
//! The bus moves page-locked memory several times as fast as the driver moves pageable memory: the driver copies with
//! one thread, which also touches new pages for the first time. Here each thread has a lane of two buffers (double
//! buffering): while the bus transfers one, the thread copies the other.
//!
//! - A buffer is reused only after the event that follows its last copy. Copies to the device may still be running when
//!   the call returns, from buffers alone: the host memory may change.
//! - Locking pages takes as long as many copies. So lanes are created only after large copies have moved enough bytes
//!   to amortize it.
//! - If lanes or threads are unavailable, the driver does the copy.
#![expect(unsafe_code, reason = "calls into the CUDA driver, and copies memory by address")]

use std::{
    ops::Range,
    ptr,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

use cudarc::driver::sys::{self, CUevent_flags_enum as EventFlags};
use weft_artifact::HostWatch;

use super::{
    capture::Aside,
    context::Context,
    driver::{Driver, Handle},
};
use crate::{
    cpu::pool::{Pool, Work},
    error::{Error, ErrorKind},
};

/// Smaller copies the driver makes as fast.
const LARGE: usize = 4 << 20;
/// Lanes are created after large copies have moved this many bytes, including the next one.
const WORTH_LANES: u64 = 256 << 20;
/// Bytes of a buffer, and the most that a thread takes at once: a huge page, so that no two threads touch the same one for the
/// first time.
const CHUNK: usize = 2 << 20;
/// The least that a thread takes at once.
const SMALL_CHUNK: usize = 512 << 10;

/// The threads and lanes of a device.
#[derive(Debug)]
pub(super) struct Staging {
    pool: Pool,
    /// Free lanes.
    lanes: Mutex<Vec<Lane>>,
    /// The bytes that large copies have moved without lanes.
    moved: AtomicU64,
}

impl Staging {
    /// Starts no thread and locks no memory.
    pub(super) fn new(n_threads: usize) -> Self {
        Self { pool: Pool::new(n_threads), lanes: Mutex::default(), moved: AtomicU64::new(0) }
    }

    /// Whether a copy of this many bytes of pageable memory is worth threads.
    pub(super) fn is_for(&self, bytes: usize) -> bool {
        bytes >= LARGE && self.pool.n_threads() > 1
    }

    /// Counts a copy, and returns whether enough bytes were copied that lanes are worth it.
    pub(super) fn pays(&self, bytes: usize) -> bool {
        let bytes = bytes as u64;
        self.moved.load(Ordering::Relaxed) >= WORTH_LANES
            || self.moved.fetch_add(bytes, Ordering::Relaxed).saturating_add(bytes) >= WORTH_LANES
    }

    /// Frees all lanes, after waiting for their copies.
    pub(super) fn free_all(&self, context: &Context) {
        let lanes = std::mem::take(&mut *self.lanes.lock().unwrap_or_else(PoisonError::into_inner));
        let Ok(_entered) = context.enter() else { return };
        for lane in lanes {
            lane.free(context.driver);
        }
    }

    fn take(&self, context: &Context) -> Result<Lane, Error> {
        let lane = self.lanes.lock().unwrap_or_else(PoisonError::into_inner).pop();
        lane.map_or_else(|| Lane::new(context.driver), Ok)
    }

    fn put(&self, lane: Lane) {
        self.lanes.lock().unwrap_or_else(PoisonError::into_inner).push(lane);
    }
}

/// Copies from pageable host memory, which may change when it returns; `false` if nothing was done.
///
/// # Errors
///
/// The driver's. The memory on the device is then undefined.
///
/// # Safety
///
/// The caller holds the memory at `to`, and the stream, whose work is not waited for.
pub(super) unsafe fn copy_to_device(
    context: &Context,
    to: u64,
    from: &[u8],
    stream: sys::CUstream,
) -> Result<bool, Error> {
    // It is only read: the direction says so.
    let transfer = Transfer::new(context, to, from.as_ptr().cast_mut(), from.len(), stream, Direction::ToDevice);
    transfer.run()
}

/// Copies to pageable host memory, and waits for it; `false` if nothing was done.
///
/// # Errors
///
/// The driver's. The host memory is then undefined.
///
/// # Safety
///
/// The caller holds the memory at `from`, and the stream.
pub(super) unsafe fn copy_to_host(
    context: &Context,
    to: &mut [u8],
    from: u64,
    stream: sys::CUstream,
) -> Result<bool, Error> {
    // Before it is done nothing can be copied, and threads that wait for events would be busy all the while.
    // SAFETY: the stream is live.
    context.blame(unsafe { context.driver.cuStreamSynchronize(stream) })?;
    Transfer::new(context, from, to.as_mut_ptr(), to.len(), stream, Direction::ToHost).run()
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Direction {
    ToDevice,
    ToHost,
}

/// A copy in chunks, which end where the address in the host's memory is a multiple of their size.
struct Transfer<'a> {
    context: &'a Context,
    device: u64,
    host: *mut u8,
    bytes: usize,
    stream: sys::CUstream,
    direction: Direction,
    chunk: usize,
    /// The part of the first chunk before the first byte.
    skipped: usize,
    /// The first thing that went wrong.
    failed: Mutex<Option<Error>>,
}

// SAFETY: each thread reads and writes the chunks that it was given, and each chunk is given once; handles of the driver may be
// used on every thread.
unsafe impl Sync for Transfer<'_> {}

impl<'a> Transfer<'a> {
    fn new(
        context: &'a Context,
        device: u64,
        host: *mut u8,
        bytes: usize,
        stream: sys::CUstream,
        direction: Direction,
    ) -> Self {
        let chunk = (bytes / context.staging.pool.n_threads()).next_power_of_two().clamp(SMALL_CHUNK, CHUNK);
        let skipped = host.addr() % chunk;
        Self { context, device, host, bytes, stream, direction, chunk, skipped, failed: Mutex::new(None) }
    }

    fn n_chunks(&self) -> u64 {
        (self.skipped + self.bytes).div_ceil(self.chunk) as u64
    }

    /// The bytes of a chunk.
    fn bytes_of(&self, chunk: u64) -> Range<usize> {
        let end = (chunk as usize + 1) * self.chunk - self.skipped;
        end.saturating_sub(self.chunk)..end.min(self.bytes)
    }

    fn run(self) -> Result<bool, Error> {
        let ran = self.context.staging.pool.run_unless_busy(&self, self.n_chunks());
        if let Some(error) = self.failed.into_inner().unwrap_or_else(PoisonError::into_inner) {
            // A part of the copy may be in flight.
            // SAFETY: the stream is live.
            let _: Result<(), Error> = unsafe { self.context.driver.cuStreamSynchronize(self.stream) };
            return self.context.blame(Err(error));
        }
        match ran {
            // No thread had the memory, and nothing was done.
            Err(error) if error.kind == ErrorKind::Memory => Ok(false),
            ran => ran,
        }
    }

    /// Queues the copy of a chunk between the device and a buffer.
    fn queue(&self, buffer: &mut Staged, chunk: &Range<usize>) -> Result<(), Error> {
        let (driver, len) = (self.context.driver, chunk.end - chunk.start);
        let device = self.device + chunk.start as u64;
        match self.direction {
            // SAFETY: the buffer has room for a chunk, and nothing else uses it until its event is over.
            Direction::ToDevice => unsafe {
                driver.cuMemcpyHtoDAsync(device, buffer.memory.0.cast(), len, self.stream)
            },
            // SAFETY: as above.
            Direction::ToHost => unsafe { driver.cuMemcpyDtoHAsync(buffer.memory.0.cast(), device, len, self.stream) },
        }?;
        // From here on the buffer is in use, even after an error.
        buffer.in_flight = true;
        // SAFETY: the event and the stream are live.
        unsafe { driver.cuEventRecord(buffer.event.0, self.stream) }
    }

    fn to_device(&self, lane: &mut Lane, next: &mut dyn FnMut() -> Option<Range<u64>>) -> Result<(), Error> {
        while let Some(chunks) = next() {
            for chunk in chunks.map(|chunk| self.bytes_of(chunk)) {
                let buffer = lane.next_buffer();
                buffer.wait(self.context.driver)?;
                let from = self.host.wrapping_add(chunk.start);
                // SAFETY: the chunk is within the host memory, and is no larger than the buffer, which no copy uses.
                unsafe { ptr::copy_nonoverlapping(from, buffer.memory.0, chunk.end - chunk.start) };
                self.queue(buffer, &chunk)?;
            }
        }
        Ok(())
    }

    fn to_host(&self, lane: &mut Lane, next: &mut dyn FnMut() -> Option<Range<u64>>) -> Result<(), Error> {
        let mut before: Option<Range<usize>> = None;
        loop {
            let chunks = next();
            let is_over = chunks.is_none();
            for chunk in chunks.into_iter().flatten().map(|chunk| self.bytes_of(chunk)) {
                let buffer = lane.next_buffer();
                buffer.wait(self.context.driver)?;
                self.queue(buffer, &chunk)?;
                if let Some(before) = before.replace(chunk) {
                    self.empty(lane.other(), &before)?;
                }
            }
            if is_over {
                // The last chunk is in the current buffer.
                return before.map_or(Ok(()), |before| self.empty(lane.last(), &before));
            }
        }
    }

    /// Copies a chunk that comes from the device out of its buffer.
    fn empty(&self, buffer: &mut Staged, chunk: &Range<usize>) -> Result<(), Error> {
        buffer.wait(self.context.driver)?;
        let to = self.host.wrapping_add(chunk.start);
        // SAFETY: the chunk is within the host memory, and is no larger than the buffer, which no copy uses.
        unsafe { ptr::copy_nonoverlapping(buffer.memory.0.cast_const(), to, chunk.end - chunk.start) };
        Ok(())
    }
}

impl Work for Transfer<'_> {
    fn at_once(&self) -> u64 {
        1
    }

    fn run(&self, next: &mut dyn FnMut() -> Option<Range<u64>>, _watch: *const HostWatch) -> bool {
        let Ok(_entered) = self.context.enter() else { return false };
        let Ok(mut lane) = self.context.staging.take(self.context) else { return false };
        let done = match self.direction {
            Direction::ToDevice => self.to_device(&mut lane, next),
            Direction::ToHost => self.to_host(&mut lane, next),
        };
        let Err(error) = done else {
            self.context.staging.put(lane);
            return true;
        };
        self.failed.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
        // The remaining chunks are not copied: a partial copy is of no use.
        while next().is_some() {}
        // Freeing page-locked memory waits for its uses.
        lane.free(self.context.driver);
        true
    }
}

/// A thread's two buffers.
#[derive(Debug)]
struct Lane {
    buffers: [Staged; 2],
    /// The index of the current buffer.
    last: bool,
}

impl Lane {
    fn new(driver: &'static Driver) -> Result<Self, Error> {
        let first = Staged::new(driver, CHUNK)?;
        match Staged::new(driver, CHUNK) {
            Ok(second) => Ok(Self { buffers: [first, second], last: false }),
            Err(error) => {
                first.free(driver);
                Err(error)
            }
        }
    }

    /// Switches to the other buffer.
    fn next_buffer(&mut self) -> &mut Staged {
        self.last = !self.last;
        self.last()
    }

    /// The current buffer.
    fn last(&mut self) -> &mut Staged {
        let [one, two] = &mut self.buffers;
        if self.last { one } else { two }
    }

    /// The previous buffer.
    fn other(&mut self) -> &mut Staged {
        let [one, two] = &mut self.buffers;
        if self.last { two } else { one }
    }

    fn free(self, driver: &Driver) {
        for buffer in self.buffers {
            buffer.free(driver);
        }
    }
}

/// A page-locked buffer, and the event that follows the copy that uses it.
#[derive(Debug)]
pub(super) struct Staged {
    pub(super) memory: Handle<u8>,
    event: Handle<sys::CUevent_st>,
    in_flight: bool,
}

impl Staged {
    /// The context is current. The allocation is not part of a concurrent stream capture.
    pub(super) fn new(driver: &'static Driver, bytes: usize) -> Result<Self, Error> {
        let _aside = Aside::new(driver);
        let mut memory = ptr::null_mut();
        // SAFETY: it writes one pointer.
        unsafe { driver.cuMemHostAlloc(&raw mut memory, bytes, 0) }?;
        let mut event = ptr::null_mut();
        // SAFETY: it writes one handle.
        let made = unsafe { driver.cuEventCreate(&raw mut event, EventFlags::CU_EVENT_DISABLE_TIMING as u32) };
        if let Err(error) = made {
            // SAFETY: it was just allocated.
            let _: Result<(), Error> = unsafe { driver.cuMemFreeHost(memory) };
            return Err(error);
        }
        Ok(Self { memory: Handle(memory.cast()), event: Handle(event), in_flight: false })
    }

    /// Waits until no copy uses it.
    fn wait(&mut self, driver: &Driver) -> Result<(), Error> {
        if self.in_flight {
            // SAFETY: the event is live.
            unsafe { driver.cuEventSynchronize(self.event.0) }?;
            self.in_flight = false;
        }
        Ok(())
    }

    /// Frees it. The context is current.
    pub(super) fn free(mut self, driver: &Driver) {
        // Where the wait fails, there is no more work.
        let _: Result<(), Error> = self.wait(driver);
        // SAFETY: the event is live, and no one else has it.
        let _: Result<(), Error> = unsafe { driver.cuEventDestroy(self.event.0) };
        // SAFETY: as above.
        let _: Result<(), Error> = unsafe { driver.cuMemFreeHost(self.memory.0.cast()) };
    }
}
