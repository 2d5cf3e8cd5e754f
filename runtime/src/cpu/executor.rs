//! [`Executor`] on this machine's CPU.

use std::{
    any::Any,
    mem,
    ops::Range,
    sync::{Arc, PoisonError, RwLock},
};

use weft_artifact::{Artifact, BoxMap, MAP_BYTES, Scalar};

use super::{
    copy,
    fault::Pending,
    free_list::FreeList,
    machine,
    memory::{CpuBuffer, CpuHostMemory, LentBuffer},
    module::{CpuModule, Shared as Machine},
    pool::Pool,
    readable_tail::ReadableMemory,
    stream::{CpuEvent, CpuStream, check_stream},
};
use crate::{
    code::Linking,
    error::{Error, ErrorKind},
    executor::{
        Allocator, Buffer, DeviceAttributes, Event, Executor, HostKind, HostLoader, HostMemory, Module, Shared, Stream,
    },
    graph::{Graph, MemoryLocation, Node, Replayed},
    profiler_ranges, progress,
    rows::Rows,
    sanitize::{Finding, memory},
    settings::Settings,
};

/// The CPU as a device.
#[derive(Debug)]
pub(super) struct CpuExecutor {
    shared: Arc<Machine>,
    loader: Arc<dyn HostLoader>,
    free_list: Arc<FreeList>,
    allocator: RwLock<Option<Arc<dyn Allocator>>>,
}

/// The error that corresponds to a driver's `CUDA_ERROR_NOT_SUPPORTED`.
#[cold]
fn not_supported(message: &str) -> Error {
    Error { driver_code: Some(801), ..Error::new(ErrorKind::Driver, message) }
}

impl CpuExecutor {
    /// The CPU as the settings want it.
    pub(super) fn new(settings: &Settings, loader: Arc<dyn HostLoader>) -> Self {
        let attributes = machine::attributes(settings);
        let pool = Pool::new(machine::thread_count(settings));
        let free_list = Arc::new(FreeList::new(attributes.total_memory));
        let allocator = RwLock::new(None);
        Self {
            shared: Arc::new(Machine { attributes, pending: Pending::default(), pool }),
            loader,
            free_list,
            allocator,
        }
    }
}

/// The error for findings about the host's reads.
fn found(findings: Vec<Finding>) -> Result<(), Error> {
    let Some(first) = findings.first() else { return Ok(()) };
    let kernel = first.kernel.clone();
    Err(Error::found(&kernel, findings))
}

fn check_peer(peer: u32) -> Result<(), Error> {
    if peer == 0 {
        return Ok(());
    }
    Err(Error::new(ErrorKind::Value, format!("there is no device {peer}: the CPU is the only device")))
}

impl Executor for CpuExecutor {
    fn kind(&self) -> &'static str {
        "cpu"
    }

    fn device_count(&self) -> u32 {
        1
    }

    fn attributes(&self) -> &DeviceAttributes {
        &self.shared.attributes
    }

    /// Cached memory counts as free: allocations reuse it.
    fn memory_info(&self) -> Result<(u64, u64), Error> {
        let (free, total) = machine::memory_info();
        Ok((free.saturating_add(self.free_list.bytes()).min(total), total))
    }

    fn attribute(&self, number: u32) -> Result<i32, Error> {
        Ok(machine::attribute(&self.shared.attributes, number))
    }

    fn target(&self) -> String {
        "host".to_owned()
    }

    fn out_of_reach(&self, _address: u64) -> Option<u32> {
        None
    }

    fn allocate(&self, bytes: u64, stream: Option<&dyn Stream>) -> Result<Arc<dyn Buffer>, Error> {
        check_stream(stream)?;
        let allocator = self.allocator.read().unwrap_or_else(PoisonError::into_inner).clone();
        match allocator.filter(|_| bytes > 0) {
            Some(allocator) => Ok(Arc::new(LentBuffer { memory: allocator.allocate(bytes)?, bytes })),
            None => self.allocate_shareable(bytes),
        }
    }

    fn allocate_shareable(&self, bytes: u64) -> Result<Arc<dyn Buffer>, Error> {
        Ok(Arc::new(CpuBuffer::new(bytes, self.shared.attributes.total_memory, &self.free_list)?))
    }

    fn set_allocator(&self, allocator: Option<Arc<dyn Allocator>>) {
        let before = mem::replace(&mut *self.allocator.write().unwrap_or_else(PoisonError::into_inner), allocator);
        // It is not ours: no lock is held when it ends.
        drop(before);
    }

    fn free_pending(&self) -> Result<(), Error> {
        memory::forget_freed();
        self.free_list.free_all();
        Ok(())
    }

    fn share(&self, _address: u64) -> Result<Shared, Error> {
        Err(not_supported("another process cannot open CPU memory: pass the result of `copy_to_host` instead"))
    }

    fn open_shared(&self, _handle: &[u8; 64], _bytes: u64) -> Result<Arc<dyn Buffer>, Error> {
        Err(not_supported("the CPU cannot open memory of another process: pass the result of `copy_to_host` instead"))
    }

    fn tensor_map(&self, map: &BoxMap, _scalar: Scalar) -> Result<[u64; MAP_BYTES / 8], Error> {
        Ok(map.words())
    }

    fn extents_of(&self, _address: u64) -> Result<(u64, u64), Error> {
        Err(not_supported("the CPU does not record which allocation an address belongs to"))
    }

    fn mapped_address(&self, address: u64) -> Result<u64, Error> {
        Ok(address)
    }

    fn can_access_peer(&self, peer: u32) -> Result<bool, Error> {
        check_peer(peer)?;
        Ok(false)
    }

    fn enable_peer_access(&self, peer: u32) -> Result<(), Error> {
        check_peer(peer)?;
        Err(not_supported("the CPU is the only device: there is no other device to access"))
    }

    fn allocate_host(&self, bytes: u64, _kind: HostKind) -> Result<Arc<dyn HostMemory>, Error> {
        let memory = CpuBuffer::new(bytes.max(1), self.shared.attributes.total_memory, &self.free_list)?;
        memory::of_host(memory.address(), bytes.max(1));
        Ok(Arc::new(CpuHostMemory { address: memory.address(), bytes, _memory: Some(memory) }))
    }

    fn lock_host(&self, address: u64, bytes: u64) -> Result<Arc<dyn HostMemory>, Error> {
        Ok(Arc::new(CpuHostMemory { address, bytes, _memory: None }))
    }

    fn read_in_place(&self, memory: &Range<u64>) -> Option<Box<dyn Any>> {
        ReadableMemory::after(memory.end).map(|room| Box::new(room) as Box<dyn Any>)
    }

    fn note_use(&self, _buffers: &[Arc<dyn Buffer>], _stream: Option<&dyn Stream>) {}

    fn copy_to_device(&self, to: u64, from: &[u8], stream: Option<&dyn Stream>) -> Result<(), Error> {
        check_stream(stream)?;
        let _range = profiler_ranges::copy("copy host to device", from.len() as u64);
        memory::written(to, from.len() as u64);
        progress::copy("copying from host to device", from.len(), |piece| {
            let to = to + piece.start as u64;
            copy::copy_to_device(&self.shared.pool, to, from.get(piece).unwrap_or_default())
        })
    }

    fn copy_rows_to_device(&self, to: u64, from: &[u8], rows: &Rows, stream: Option<&dyn Stream>) -> Result<(), Error> {
        if rows.count == 1 {
            return self.copy_to_device(to, rows.of(from, 0)?, stream);
        }
        check_stream(stream)?;
        let _range = profiler_ranges::copy("copy host to device", rows.width.saturating_mul(rows.count));
        (0..rows.count).for_each(|row| memory::written(to + row * rows.to_pitch, rows.width));
        progress::copy_rows("copying from host to device", rows, |first, piece| {
            (first..first + piece.count).try_for_each(|row| {
                copy::copy_to_device(&self.shared.pool, to + row * rows.to_pitch, rows.of(from, row)?)
            })
        })
    }

    fn copy_to_host(&self, to: &mut [u8], from: u64, stream: Option<&dyn Stream>) -> Result<(), Error> {
        check_stream(stream)?;
        let _range = profiler_ranges::copy("copy device to host", to.len() as u64);
        progress::copy("copying from device to host", to.len(), |piece| {
            let from = from + piece.start as u64;
            copy::copy_to_host(&self.shared.pool, to.get_mut(piece).unwrap_or_default(), from)
        })?;
        self.shared.pending.report()?;
        found(memory::read_by_host(from, to.len() as u64))
    }

    fn copy_on_device(&self, to: u64, from: u64, bytes: u64, stream: Option<&dyn Stream>) -> Result<(), Error> {
        check_stream(stream)?;
        let _range = profiler_ranges::copy("copy device to device", bytes);
        memory::copied(to, from, bytes);
        copy::copy_on_device(&self.shared.pool, to, from, bytes)
    }

    fn copy_between(
        &self,
        to: MemoryLocation,
        from: MemoryLocation,
        rows: &Rows,
        stream: Option<&dyn Stream>,
    ) -> Result<(), Error> {
        check_stream(stream)?;
        let Rows { width, count, to_pitch, from_pitch } = *rows;
        let mut read = Vec::new();
        // All of it is memory of this process.
        (0..count).try_for_each(|row| {
            let (to, from) = (to.address + row * to_pitch, from.address + row * from_pitch);
            if !memory::is_of_device(to) {
                read.append(&mut memory::read_by_host(from, width));
            }
            memory::copied(to, from, width);
            copy::copy_on_device(&self.shared.pool, to, from, width)
        })?;
        found(read)
    }

    fn fill(&self, to: u64, value: u8, bytes: u64, stream: Option<&dyn Stream>) -> Result<(), Error> {
        check_stream(stream)?;
        let _range = profiler_ranges::copy("set", bytes);
        memory::written(to, bytes);
        copy::fill(&self.shared.pool, to, value, bytes)
    }

    fn new_stream(&self) -> Result<Arc<dyn Stream>, Error> {
        Ok(Arc::new(CpuStream::new()))
    }

    fn external_stream(&self, handle: u64) -> Result<Arc<dyn Stream>, Error> {
        Ok(Arc::new(CpuStream::external(handle)))
    }

    fn synchronize_stream(&self, stream: Option<&dyn Stream>) -> Result<(), Error> {
        check_stream(stream)?;
        self.shared.pending.report()
    }

    fn query_stream(&self, stream: Option<&dyn Stream>) -> Result<bool, Error> {
        check_stream(stream)?;
        Ok(true)
    }

    fn wait_event(&self, stream: Option<&dyn Stream>, event: &dyn Event) -> Result<(), Error> {
        check_stream(stream)?;
        CpuEvent::of(event)?;
        Ok(())
    }

    fn report_faults(&self, stream: Option<&dyn Stream>) -> Result<(), Error> {
        self.synchronize_stream(stream)
    }

    fn synchronize(&self) -> Result<(), Error> {
        self.shared.pending.report()
    }

    fn profile(&self, _on: bool) -> Result<(), Error> {
        Ok(())
    }

    fn new_event(&self, timed: bool) -> Result<Arc<dyn Event>, Error> {
        Ok(Arc::new(CpuEvent::new(timed)))
    }

    fn record(&self, event: &dyn Event, stream: Option<&dyn Stream>) -> Result<(), Error> {
        check_stream(stream)?;
        CpuEvent::of(event)?.record();
        Ok(())
    }

    fn synchronize_event(&self, event: &dyn Event) -> Result<(), Error> {
        CpuEvent::of(event)?;
        self.shared.pending.report()
    }

    fn query_event(&self, event: &dyn Event) -> Result<bool, Error> {
        CpuEvent::of(event)?;
        Ok(true)
    }

    fn elapsed_ms(&self, start: &dyn Event, end: &dyn Event) -> Result<f32, Error> {
        CpuEvent::of(start)?.elapsed_ms(CpuEvent::of(end)?)
    }

    fn load(&self, artifact: &Artifact) -> Result<Arc<dyn Module>, Error> {
        Ok(Arc::new(CpuModule::load(&self.shared, &*self.loader, artifact)?))
    }

    fn link(&self, artifact: &Artifact, _linking: &Linking<'_>) -> Result<(Arc<dyn Module>, Vec<String>), Error> {
        Ok((self.load(artifact)?, Vec::new()))
    }

    fn graph(self: Arc<Self>, nodes: Vec<Node>) -> Result<Box<dyn Graph>, Error> {
        Ok(Box::new(Replayed::new(self, nodes)))
    }
}
