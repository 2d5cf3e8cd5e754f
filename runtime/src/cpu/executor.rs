//! [`Executor`] on this machine's CPU.

use std::{any::Any, ops::Range, sync::Arc};

use weft_artifact::Artifact;

use super::{
    behind::Room,
    copy,
    fault::Pending,
    kept::Kept,
    machine,
    memory::{CpuBuffer, CpuHostMemory},
    module::{CpuModule, Shared},
    pool::Pool,
    stream::{CpuEvent, CpuStream, check_stream},
};
use crate::{
    error::Error,
    executor::{Buffer, DeviceAttributes, Event, Executor, HostKind, HostLoader, HostMemory, Linking, Module, Stream},
    settings::Settings,
};

/// The CPU as a device.
#[derive(Debug)]
pub(super) struct CpuExecutor {
    shared: Arc<Shared>,
    loader: Arc<dyn HostLoader>,
    kept: Arc<Kept>,
}

impl CpuExecutor {
    /// The CPU as the settings want it.
    pub(super) fn new(settings: &Settings, loader: Arc<dyn HostLoader>) -> Self {
        let attributes = machine::attributes(settings);
        let pool = Pool::new(machine::thread_count(settings));
        let kept = Arc::new(Kept::new(attributes.total_memory));
        Self { shared: Arc::new(Shared { attributes, pending: Pending::default(), pool }), loader, kept }
    }
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

    /// Kept memory is free: whoever asks for it gets it.
    fn memory_info(&self) -> Result<(u64, u64), Error> {
        let (free, total) = machine::memory_info();
        Ok((free.saturating_add(self.kept.bytes()).min(total), total))
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
        Ok(Arc::new(CpuBuffer::new(bytes, self.shared.attributes.total_memory, &self.kept)?))
    }

    fn allocate_host(&self, bytes: u64, _kind: HostKind) -> Result<Arc<dyn HostMemory>, Error> {
        let memory = CpuBuffer::new(bytes.max(1), self.shared.attributes.total_memory, &self.kept)?;
        Ok(Arc::new(CpuHostMemory { address: memory.address(), bytes, _memory: Some(memory) }))
    }

    fn lock_host(&self, address: u64, bytes: u64) -> Result<Arc<dyn HostMemory>, Error> {
        Ok(Arc::new(CpuHostMemory { address, bytes, _memory: None }))
    }

    fn read_in_place(&self, memory: &Range<u64>) -> Option<Box<dyn Any>> {
        Room::behind(memory.end).map(|room| Box::new(room) as Box<dyn Any>)
    }

    fn note_use(&self, _buffers: &[Arc<dyn Buffer>], _stream: Option<&dyn Stream>) {}

    fn copy_to_device(&self, to: u64, from: &[u8], stream: Option<&dyn Stream>) -> Result<(), Error> {
        check_stream(stream)?;
        copy::copy_to_device(&self.shared.pool, to, from)
    }

    fn copy_to_host(&self, to: &mut [u8], from: u64, stream: Option<&dyn Stream>) -> Result<(), Error> {
        check_stream(stream)?;
        copy::copy_to_host(&self.shared.pool, to, from)?;
        self.shared.pending.tell()
    }

    fn copy_on_device(&self, to: u64, from: u64, bytes: u64, stream: Option<&dyn Stream>) -> Result<(), Error> {
        check_stream(stream)?;
        copy::copy_on_device(&self.shared.pool, to, from, bytes)
    }

    fn fill(&self, to: u64, value: u8, bytes: u64, stream: Option<&dyn Stream>) -> Result<(), Error> {
        check_stream(stream)?;
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
        self.shared.pending.tell()
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

    fn tell_faults(&self, stream: Option<&dyn Stream>) -> Result<(), Error> {
        self.synchronize_stream(stream)
    }

    fn synchronize(&self) -> Result<(), Error> {
        self.shared.pending.tell()
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
        self.shared.pending.tell()
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
}
