//! Device memory and copies.
#![expect(unsafe_code, reason = "calls into the CUDA driver")]

use std::{
    any::Any,
    ffi::c_void,
    mem, ptr,
    sync::Arc,
    thread::{self, ThreadId},
};

use cudarc::driver::sys::{self, CUmemorytype_enum as MemoryType, CUpointer_attribute_enum as PointerAttribute};

use super::{
    capture::{self, Aside, Block, DeferredFrees},
    context::Context,
    driver,
    free::{self, Use},
    free_blocks::size_class,
    packed_copies, shared, staged,
    stream::{CudaEvent, CudaStream, NO_ORDER, Owner, cuda_stream, raw_stream},
    stream_uses::Uses,
};
use crate::{
    error::{Error, ErrorKind},
    executor::{Buffer, Lent, Stream},
    graph::MemoryKind,
    rows::{MAX_PITCH, Rows},
    size::show_bytes,
};

/// The operations that are refused in a captured stream.
const ALLOCATE: &str = "allocate memory (or have a launch copy host arrays) in";
/// The key of the default stream; other streams are identified by their address.
const DEFAULT_KEY: u64 = 1;

/// Device memory. It is freed in the order of the stream in whose order it was allocated, unless other streams have
/// used it.
#[derive(Debug)]
pub(super) struct CudaBuffer {
    context: Arc<Context>,
    stream: Option<CudaStream>,
    /// The allocating thread, for the per-thread default stream.
    thread: Option<ThreadId>,
    address: u64,
    bytes: u64,
    source: MemoryOrigin,
    uses: Uses<Use>,
}

/// How memory was allocated, and so how it is freed.
#[derive(Debug)]
enum MemoryOrigin {
    /// From the driver, by its pool if there is one, as a block of a cacheable size.
    Block(u64),
    /// The same, but not as a cacheable block.
    Whole,
    /// From the driver without its pool.
    Shareable,
    /// From another process.
    Opened,
    /// From another allocator. `None` after it was returned.
    Lent(Option<Box<dyn Lent>>),
}

/// A block of a driver without a pool, which is freed when all work that uses it is done.
#[derive(Debug)]
struct Idle {
    context: Arc<Context>,
    stream: Option<CudaStream>,
    address: u64,
    size: u64,
}

impl Lent for Idle {
    fn address(&self) -> u64 {
        self.address
    }
}

impl Drop for Idle {
    fn drop(&mut self) {
        let context = &*self.context;
        if driver::is_forked()
            || steady(&self.context, self.stream.as_ref())
                .is_some_and(|stream| context.free_blocks.keep(context, stream, self.size, self.address))
        {
            return;
        }
        let Ok(_entered) = context.enter() else { return };
        let _aside = Aside::new(context.driver);
        // SAFETY: the address is from `cuMemAlloc` and is freed once; no work uses it.
        let _: Result<(), Error> = unsafe { context.driver.cuMemFree(self.address) };
    }
}

impl Buffer for CudaBuffer {
    fn address(&self) -> u64 {
        self.address
    }

    fn len(&self) -> u64 {
        self.bytes
    }

    fn order(&self) -> Option<u64> {
        match (&self.stream, self.thread) {
            _ if self.bytes == 0 => None,
            // All work on the device is waited for.
            _ if matches!(self.source, MemoryOrigin::Shareable | MemoryOrigin::Opened) => None,
            (_, Some(_)) => Some(NO_ORDER),
            (stream, None) => Some(stream.as_ref().map_or(0, Stream::order)),
        }
    }

    fn memory(&self) -> MemoryKind {
        match self.source {
            MemoryOrigin::Block(_) | MemoryOrigin::Whole | MemoryOrigin::Shareable | MemoryOrigin::Opened => {
                MemoryKind::Device
            }
            MemoryOrigin::Lent(_) => MemoryKind::Shared,
        }
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

impl Drop for CudaBuffer {
    fn drop(&mut self) {
        if self.bytes == 0 {
            return;
        }
        if driver::is_forked() {
            // It is the parent's.
            if let MemoryOrigin::Lent(memory) = &mut self.source {
                mem::forget(memory.take());
            }
            return;
        }
        let uses = self.uses.take();
        let context = &self.context;
        let is_shared = context.is_shared(self.address);
        if let (MemoryOrigin::Block(size), Some(stream), true) = (&self.source, self.steady_stream(), uses.is_empty())
            && !is_shared
            && context.free_blocks.keep(context, stream, *size, self.address)
        {
            return;
        }
        // At the end of a process the driver may be gone already, with all memory: every call then fails, harmlessly.
        let Ok(_entered) = context.enter() else { return };
        let _aside = Aside::new(context.driver);
        if matches!(self.source, MemoryOrigin::Block(_) | MemoryOrigin::Whole | MemoryOrigin::Lent(_))
            && DeferredFrees::must_hold(context, self.stream.as_ref(), &uses)
        {
            context.forget_shared(self.address);
            context.held.hold(match &mut self.source {
                MemoryOrigin::Lent(memory) => match memory.take() {
                    Some(memory) => Block::Lent(memory),
                    None => return,
                },
                MemoryOrigin::Block(_) | MemoryOrigin::Whole | MemoryOrigin::Shareable | MemoryOrigin::Opened => {
                    Block::Own(self.address)
                }
            });
            return;
        }
        context.forget_shared(self.address);
        let of_other_thread = self.thread.is_some_and(|thread| thread != thread::current().id());
        match &mut self.source {
            MemoryOrigin::Opened => shared::close(context, self.address),
            MemoryOrigin::Shareable => free::at_once(context, self.address),
            MemoryOrigin::Block(size) if context.pool.is_none() && !is_shared && !of_other_thread => {
                let idle = Idle {
                    context: Arc::clone(context),
                    stream: self.stream.clone(),
                    address: self.address,
                    size: *size,
                };
                context.pending.release(context, self.stream.as_ref(), &uses, Box::new(idle));
            }
            MemoryOrigin::Block(_) | MemoryOrigin::Whole if context.pool.is_none() => {
                free::at_once(context, self.address);
            }
            MemoryOrigin::Block(_) | MemoryOrigin::Whole if of_other_thread => {
                free::after_everything(context, self.address);
            }
            MemoryOrigin::Block(_) | MemoryOrigin::Whole => {
                let own = self.stream.as_ref().map_or(ptr::null_mut(), CudaStream::raw);
                free::after(context, self.address, own, &uses);
            }
            MemoryOrigin::Lent(memory) => {
                let Some(memory) = memory.take() else { return };
                if of_other_thread {
                    // SAFETY: it takes no pointer.
                    let _: Result<(), Error> = unsafe { context.driver.cuCtxSynchronize() };
                    drop(memory);
                } else {
                    context.pending.release(context, self.stream.as_ref(), &uses, memory);
                }
            }
        }
    }
}

/// Notes that work in a stream uses buffers; see `Executor::note_use`.
pub(super) fn note_use(context: &Arc<Context>, buffers: &[Arc<dyn Buffer>], stream: Option<&dyn Stream>) {
    // Work queued in the stream has passed this check.
    let Ok(stream) = cuda_stream(context, stream) else { return };
    let all = || {
        let every = buffers.iter().filter_map(|buffer| buffer.as_any().downcast_ref::<CudaBuffer>());
        every.filter(|buffer| buffer.bytes > 0)
    };
    let ours = || all().filter(|buffer| buffer.context.is(context) && !buffer.frees_in(stream));
    let peers = || all().filter(|buffer| !buffer.context.is(context));
    let steady = match stream {
        None => Some((DEFAULT_KEY, Use::Default)),
        Some(stream) if stream.owner() == Owner::Weft => Some((stream.key(), Use::Stream(stream.clone()))),
        Some(_) => None,
    };
    match steady {
        Some((key, used)) => {
            ours().for_each(|buffer| buffer.uses.note(key, &used, |used| used.is_done(context)));
            // Memory of another device: its own context can only wait for an event.
            note_event(context, &peers().collect::<Vec<_>>(), stream);
        }
        None => note_event(context, &ours().chain(peers()).collect::<Vec<_>>(), stream),
    }
}

/// Records an event after all work queued in a stream.
fn note_event(context: &Arc<Context>, buffers: &[&CudaBuffer], stream: Option<&CudaStream>) {
    if buffers.is_empty() {
        return;
    }
    let Ok(_entered) = context.enter() else { return };
    // The captured graph holds the memory that it uses: an event in it would never be reached.
    if capture::is_captured_of_others(context.driver, stream) {
        return;
    }
    let marked = match stream {
        Some(stream) => stream.marked(),
        None => CudaEvent::untimed(context).and_then(|event| event.record(context, None).map(|()| Arc::new(event))),
    };
    let Ok(event) = marked else {
        // Without an event there is nothing that the memory could wait for later.
        // SAFETY: the stream is live.
        let _: Result<(), Error> =
            unsafe { context.driver.cuStreamSynchronize(stream.map_or(ptr::null_mut(), CudaStream::raw)) };
        return;
    };
    let key = Arc::as_ptr(&event).addr() as u64;
    for buffer in buffers {
        buffer.uses.note(key, &Use::Event(Arc::clone(&event)), |used| used.is_done(context));
    }
}

impl CudaBuffer {
    /// Whether freeing waits for work in this stream, noted or not.
    fn frees_in(&self, stream: Option<&CudaStream>) -> bool {
        match self.thread {
            None => stream.map_or(0, Stream::order) == self.stream.as_ref().map_or(0, Stream::order),
            Some(thread) => {
                stream.is_some_and(|stream| stream.owner() == Owner::Thread) && thread == thread::current().id()
            }
        }
    }

    /// The handle of its stream, if memory can be cached for that stream.
    fn steady_stream(&self) -> Option<u64> {
        steady(&self.context, self.stream.as_ref())
    }

    /// Memory that other processes can open.
    pub(super) fn shareable(context: &Arc<Context>, bytes: u64) -> Result<Self, Error> {
        let mut address = 0;
        if bytes > 0 {
            let _entered = context.enter()?;
            let _aside = Aside::new(context.driver);
            let size = bytes.checked_next_multiple_of(4).unwrap_or(bytes) as usize;
            let result = context.retried(|| {
                // SAFETY: it writes one address.
                unsafe { context.driver.cuMemAlloc(&raw mut address, size) }
            });
            context.blame(result).map_err(|error| explain_no_memory(context, bytes, error))?;
        }
        Ok(Self::of(context, None, address, bytes, MemoryOrigin::Shareable))
    }

    /// Memory of another process.
    pub(super) fn of_other_process(context: &Arc<Context>, handle: &[u8; 64], bytes: u64) -> Result<Self, Error> {
        let _entered = context.enter()?;
        let address = shared::open(context, handle)?;
        // An open handle must be closed, even if nothing of it is used.
        Ok(Self::of(context, None, address, bytes.max(1), MemoryOrigin::Opened))
    }

    fn of(context: &Arc<Context>, stream: Option<&CudaStream>, address: u64, bytes: u64, source: MemoryOrigin) -> Self {
        let thread = stream.filter(|stream| stream.owner() == Owner::Thread).map(|_| thread::current().id());
        let (context, stream) = (Arc::clone(context), stream.cloned());
        Self { context, stream, thread, address, bytes, source, uses: Uses::default() }
    }

    /// Allocates memory in the order of a stream, where the device can.
    pub(super) fn new(context: &Arc<Context>, bytes: u64, stream: Option<&dyn Stream>) -> Result<Self, Error> {
        let stream = cuda_stream(context, stream)?;
        if bytes == 0 {
            return Ok(Self::of(context, stream, 0, 0, MemoryOrigin::Whole));
        }
        if let Some(allocator) = context.allocator() {
            // The allocator may call CUDA itself.
            let _entered = context.enter()?;
            capture::refuse(context.driver, stream, ALLOCATE)?;
            context.pending.look();
            let memory = context.retried(|| allocator.allocate(bytes))?;
            return Ok(Self::of(context, stream, memory.address(), bytes, MemoryOrigin::Lent(Some(memory))));
        }
        let class = steady(context, stream).zip(size_class(bytes));
        if let Some((stream_handle, size)) = class
            && let Some(address) = context.free_blocks.take(stream_handle, size)
        {
            return Ok(Self::of(context, stream, address, bytes, MemoryOrigin::Block(size)));
        }
        let _entered = context.enter()?;
        capture::refuse(context.driver, stream, ALLOCATE)?;
        // It is independent of captured streams.
        let _aside = Aside::new(context.driver);
        if context.pool.is_none() {
            // Work in other streams that used the memory may be done now.
            context.pending.look();
            if let Some((stream_handle, size)) = class
                && let Some(address) = context.free_blocks.take(stream_handle, size)
            {
                return Ok(Self::of(context, stream, address, bytes, MemoryOrigin::Block(size)));
            }
        }
        // Whole words: an atomic operation on a byte is one on the word that contains it.
        let size = class.map_or(bytes.checked_next_multiple_of(4).unwrap_or(bytes), |(_, size)| size) as usize;
        let mut address = 0;
        let result = context.retried(|| {
            if context.pool.is_some() {
                let stream = stream.map_or(ptr::null_mut(), CudaStream::raw);
                // SAFETY: it writes one address; the stream is live.
                unsafe { context.driver.cuMemAllocAsync(&raw mut address, size, stream) }
            } else {
                // SAFETY: it writes one address.
                unsafe { context.driver.cuMemAlloc(&raw mut address, size) }
            }
        });
        context.blame(result).map_err(|error| explain_no_memory(context, bytes, error))?;
        let source = class.map_or(MemoryOrigin::Whole, |(_, size)| MemoryOrigin::Block(size));
        Ok(Self::of(context, stream, address, bytes, source))
    }
}

/// The handle of a stream, if it stays the same queue as long as blocks are cached for it: see `free_blocks`.
fn steady(context: &Arc<Context>, stream: Option<&CudaStream>) -> Option<u64> {
    match stream {
        None => Some(0),
        Some(stream) if stream.owner() == Owner::Weft => Some(stream.handle()).filter(|_| stream.is_of(context)),
        Some(stream) => Some(stream.order()).filter(|order| *order == 0),
    }
}

/// Adds the requested and the free bytes to the message.
#[cold]
fn explain_no_memory(context: &Context, bytes: u64, mut error: Error) -> Error {
    if error.kind == ErrorKind::Memory {
        let free = match context.memory_info() {
            Ok((free, total)) => format!("; {} of {} are free", show_bytes(free), show_bytes(total)),
            Err(_) => String::new(),
        };
        error.message =
            format!("cannot allocate {} on {}: {}{free}", show_bytes(bytes), context.attributes.name, error.message);
    }
    error
}

/// Copies from the host; `from` is free to change when it returns.
pub(super) fn copy_to_device(
    context: &Context,
    to: u64,
    from: &[u8],
    stream: Option<&dyn Stream>,
) -> Result<(), Error> {
    if from.is_empty() {
        return Ok(());
    }
    let is_staged = is_staged(context, stream, from)?;
    let stream = cuda_stream(context, stream)?;
    let _entered = context.enter()?;
    capture::refuse(context.driver, stream, "copy from the host in")?;
    let stream = stream.map_or(ptr::null_mut(), CudaStream::raw);
    let source = from.as_ptr().cast::<c_void>();
    if is_staged {
        // SAFETY: the caller holds the memory at `to`, and the stream.
        let done = unsafe { staged::copy_to_device(context, to, from, stream) }?;
        if done {
            return Ok(());
        }
    }
    if stream.is_null() {
        // SAFETY: `from` is readable; the caller holds the memory at `to`.
        return context.blame(unsafe { context.driver.cuMemcpyHtoD(to, source, from.len()) });
    }
    // SAFETY: as above; the code below makes sure that `from` is not read after the return.
    context.blame(unsafe { context.driver.cuMemcpyHtoDAsync(to, source, from.len(), stream) })?;
    if context.reads_host_memory || is_registered(context, source) {
        // SAFETY: the stream is live.
        return context.blame(unsafe { context.driver.cuStreamSynchronize(stream) });
    }
    // Pageable memory that the device cannot read was copied to the driver's own memory before the call returned.
    Ok(())
}

/// Copies rows from the host, in one call where the driver can, and waits for them.
pub(super) fn copy_rows_to_device(
    context: &Context,
    to: u64,
    from: &[u8],
    rows: &Rows,
    stream: Option<&dyn Stream>,
) -> Result<(), Error> {
    let Rows { width, count, to_pitch, from_pitch } = *rows;
    let Some(last) = count.checked_sub(1).filter(|_| width > 0) else { return Ok(()) };
    rows.of(from, last)?;
    if last == 0 || to_pitch < width || to_pitch > MAX_PITCH || from_pitch < width || from_pitch > MAX_PITCH {
        return (0..count)
            .try_for_each(|row| copy_to_device(context, to + row * to_pitch, rows.of(from, row)?, stream));
    }
    let raw = raw_stream(context, stream)?;
    let _entered = context.enter()?;
    capture::refuse(context.driver, cuda_stream(context, stream)?, "copy from the host in")?;
    let copy = sys::CUDA_MEMCPY2D {
        srcXInBytes: 0,
        srcY: 0,
        srcMemoryType: MemoryType::CU_MEMORYTYPE_HOST,
        srcHost: from.as_ptr().cast::<c_void>(),
        srcDevice: 0,
        srcArray: ptr::null_mut(),
        srcPitch: from_pitch as usize,
        dstXInBytes: 0,
        dstY: 0,
        dstMemoryType: MemoryType::CU_MEMORYTYPE_DEVICE,
        dstHost: ptr::null_mut(),
        dstDevice: to,
        dstArray: ptr::null_mut(),
        dstPitch: to_pitch as usize,
        WidthInBytes: width as usize,
        Height: count as usize,
    };
    // SAFETY: every row is within `from`; the caller holds the memory at `to`; the wait that follows ends after the
    // copy.
    let copied = unsafe { context.driver.cuMemcpy2DAsync(&raw const copy, raw) };
    // SAFETY: the stream is live.
    let waited = unsafe { context.driver.cuStreamSynchronize(raw) };
    context.blame(copied.and(waited))
}

/// Whether several threads do a copy from or to host memory: it is large, of memory that the device does not access as
/// fast by itself, and in a stream that is known not to be captured and is the same one on each thread.
fn is_staged(context: &Context, stream: Option<&dyn Stream>, host: &[u8]) -> Result<bool, Error> {
    let is_ours = cuda_stream(context, stream)?.is_none_or(|stream| stream.owner() == Owner::Weft);
    if !is_ours || context.has_host_pages || !context.staging.is_for(host.len()) {
        return Ok(false);
    }
    let _entered = context.enter()?;
    Ok(!is_registered(context, host.as_ptr().cast::<c_void>()) && context.staging.pays(host.len()))
}

/// Whether host memory is known to the driver (pinned): then the device reads it directly, after the call.
fn is_registered(context: &Context, address: *const c_void) -> bool {
    let mut memory_type = 0_u32;
    let to: *mut u32 = &raw mut memory_type;
    let which = PointerAttribute::CU_POINTER_ATTRIBUTE_MEMORY_TYPE as u32;
    // SAFETY: it writes one 32-bit number; any address may be queried, an unknown one is an error.
    unsafe { context.driver.cuPointerGetAttribute(to.cast::<c_void>(), which, address.addr() as u64) }.is_ok()
}

/// Copies to the host and waits for it.
pub(super) fn copy_to_host(
    context: &Context,
    to: &mut [u8],
    from: u64,
    stream: Option<&dyn Stream>,
) -> Result<(), Error> {
    if to.is_empty() {
        return Ok(());
    }
    if to.len() <= packed_copies::SMALL && packed_copies::copy_to_host(context, &mut [(0, &mut *to)], from, stream)? {
        return Ok(());
    }
    let is_staged = is_staged(context, stream, to)?;
    let stream = cuda_stream(context, stream)?;
    let _entered = context.enter()?;
    capture::refuse(context.driver, stream, "copy to the host in")?;
    let stream = stream.map_or(ptr::null_mut(), CudaStream::raw);
    if is_staged {
        // SAFETY: the caller holds the memory at `from`, and the stream.
        let done = unsafe { staged::copy_to_host(context, to, from, stream) }?;
        if done {
            return context.look();
        }
    }
    let target = to.as_mut_ptr().cast::<c_void>();
    if stream.is_null() {
        // SAFETY: `to` is writable; the caller holds the memory at `from`.
        context.blame(unsafe { context.driver.cuMemcpyDtoH(target, from, to.len()) })?;
        return context.look();
    }
    // SAFETY: as above; the wait that follows ends before `to` is returned to the caller.
    let copied = unsafe { context.driver.cuMemcpyDtoHAsync(target, from, to.len(), stream) };
    // Wait even if the call failed: a part of the copy may be in flight.
    // SAFETY: the stream is live.
    let waited = unsafe { context.driver.cuStreamSynchronize(stream) };
    context.blame(copied.and(waited))?;
    context.look()
}

/// Copies between buffers of the device.
pub(super) fn copy_on_device(
    context: &Context,
    to: u64,
    from: u64,
    bytes: u64,
    stream: Option<&dyn Stream>,
) -> Result<(), Error> {
    if bytes == 0 {
        return Ok(());
    }
    let stream = raw_stream(context, stream)?;
    let _entered = context.enter()?;
    // SAFETY: the caller holds both memories; the stream is live.
    context.blame(unsafe { context.driver.cuMemcpyDtoDAsync(to, from, bytes as usize, stream) })
}

/// Sets bytes.
pub(super) fn fill(
    context: &Context,
    to: u64,
    value: u8,
    bytes: u64,
    stream: Option<&dyn Stream>,
) -> Result<(), Error> {
    if bytes == 0 {
        return Ok(());
    }
    let stream = raw_stream(context, stream)?;
    let _entered = context.enter()?;
    // SAFETY: the caller holds the memory; the stream is live.
    context.blame(unsafe { context.driver.cuMemsetD8Async(to, value, bytes as usize, stream) })
}
