//! [`Executor`] over the driver.
#![expect(unsafe_code, reason = "calls into the CUDA driver")]

use std::{any::Any, ptr, sync::Arc};

use weft_artifact::{Artifact, BoxMap, MAP_BYTES, Scalar};

use super::{
    capture,
    context::Context,
    driver, graph,
    host_memory::CudaHostMemory,
    link, machine_code,
    memory::{self, CudaBuffer},
    module::CudaModule,
    packed_copies, shared,
    stream::{CudaEvent, CudaStream, cuda_stream, is_ready},
    tensor_maps,
};
use crate::{
    code::{CodeCache, Linking},
    error::Error,
    executor::{
        Allocator, Buffer, DeviceAttributes, Event, Executor, HostKind, HostMemory, Module, Part, PartMut, Shared,
        Stream,
    },
    graph::{Graph, MemoryLocation, Node},
    profiler_ranges, progress,
    rows::Rows,
    settings::Settings,
};

/// A CUDA device.
#[derive(Debug)]
pub(super) struct CudaExecutor {
    context: Arc<Context>,
}

impl CudaExecutor {
    /// Retains the device's primary context.
    pub(super) fn open(settings: &Settings, ordinal: u32) -> Result<Self, Error> {
        Ok(Self { context: Context::open(settings, ordinal)? })
    }
}

impl Executor for CudaExecutor {
    fn kind(&self) -> &'static str {
        "cuda"
    }

    fn device_count(&self) -> u32 {
        driver::device_count().unwrap_or(0)
    }

    fn attributes(&self) -> &DeviceAttributes {
        &self.context.attributes
    }

    fn memory_info(&self) -> Result<(u64, u64), Error> {
        self.context.blame(self.context.memory_info())
    }

    fn attribute(&self, number: u32) -> Result<i32, Error> {
        self.context.attribute(number)
    }

    fn target(&self) -> String {
        let (major, minor) = self.context.attributes.compute_capability;
        format!("sm_{major}{minor}")
    }

    fn out_of_reach(&self, address: u64) -> Option<u32> {
        self.context.out_of_reach(address)
    }

    fn allocate(&self, bytes: u64, stream: Option<&dyn Stream>) -> Result<Arc<dyn Buffer>, Error> {
        Ok(Arc::new(CudaBuffer::new(&self.context, bytes, stream)?))
    }

    fn set_allocator(&self, allocator: Option<Arc<dyn Allocator>>) {
        self.context.set_allocator(allocator);
    }

    fn n_pending(&self) -> usize {
        self.context.pending.len()
    }

    fn free_pending(&self) -> Result<(), Error> {
        self.context.free_pending()
    }

    fn allocate_shareable(&self, bytes: u64) -> Result<Arc<dyn Buffer>, Error> {
        Ok(Arc::new(CudaBuffer::shareable(&self.context, bytes)?))
    }

    fn share(&self, address: u64) -> Result<Shared, Error> {
        shared::share(&self.context, address)
    }

    fn open_shared(&self, handle: &[u8; 64], bytes: u64) -> Result<Arc<dyn Buffer>, Error> {
        Ok(Arc::new(CudaBuffer::of_other_process(&self.context, handle, bytes)?))
    }

    fn tensor_map(&self, map: &BoxMap, scalar: Scalar) -> Result<[u64; MAP_BYTES / 8], Error> {
        tensor_maps::encode(&self.context, map, scalar)
    }

    fn extents_of(&self, address: u64) -> Result<(u64, u64), Error> {
        shared::extents_of(&self.context, address)
    }

    fn mapped_address(&self, address: u64) -> Result<u64, Error> {
        shared::mapped_address(&self.context, address)
    }

    fn can_access_peer(&self, peer: u32) -> Result<bool, Error> {
        shared::can_access_peer(&self.context, peer)
    }

    fn enable_peer_access(&self, peer: u32) -> Result<(), Error> {
        shared::enable_peer_access(&self.context, peer)
    }

    fn reaches(&self, peer: u32) -> bool {
        self.context.reaches(peer)
    }

    fn allocate_host(&self, bytes: u64, kind: HostKind) -> Result<Arc<dyn HostMemory>, Error> {
        Ok(Arc::new(CudaHostMemory::new(&self.context, bytes, kind)?))
    }

    fn lock_host(&self, address: u64, bytes: u64) -> Result<Arc<dyn HostMemory>, Error> {
        Ok(Arc::new(CudaHostMemory::lock(&self.context, address, bytes)?))
    }

    fn note_use(&self, buffers: &[Arc<dyn Buffer>], stream: Option<&dyn Stream>) {
        memory::note_use(&self.context, buffers, stream);
    }

    fn copy_to_device(&self, to: u64, from: &[u8], stream: Option<&dyn Stream>) -> Result<(), Error> {
        let _range = profiler_ranges::copy("copy host to device", from.len() as u64);
        progress::copy("copying from host to device", from.len(), |piece| {
            let to = to + piece.start as u64;
            memory::copy_to_device(&self.context, to, from.get(piece).unwrap_or_default(), stream)
        })
    }

    fn copy_rows_to_device(&self, to: u64, from: &[u8], rows: &Rows, stream: Option<&dyn Stream>) -> Result<(), Error> {
        if rows.count == 1 {
            return self.copy_to_device(to, rows.of(from, 0)?, stream);
        }
        let _range = profiler_ranges::copy("copy host to device", rows.width.saturating_mul(rows.count));
        progress::copy_rows("copying from host to device", rows, |first, rows| {
            let from = from.get((first * rows.from_pitch) as usize..).unwrap_or_default();
            memory::copy_rows_to_device(&self.context, to + first * rows.to_pitch, from, rows, stream)
        })
    }

    fn room_in_pack(&self, bytes: u64) -> Option<u64> {
        packed_copies::room(bytes)
    }

    fn copy_parts_to_device(&self, to: u64, parts: &[Part<'_>], stream: Option<&dyn Stream>) -> Result<(), Error> {
        let _range =
            profiler_ranges::copy("copy host to device", parts.iter().map(|(_, bytes)| bytes.len() as u64).sum());
        packed_copies::copy_to_device(&self.context, to, parts, stream)
    }

    fn copy_parts_to_host(
        &self,
        parts: &mut [PartMut<'_>],
        from: u64,
        stream: Option<&dyn Stream>,
    ) -> Result<(), Error> {
        let _range =
            profiler_ranges::copy("copy device to host", parts.iter().map(|(_, bytes)| bytes.len() as u64).sum());
        if packed_copies::copy_to_host(&self.context, parts, from, stream)? {
            return Ok(());
        }
        parts.iter_mut().try_for_each(|(at, bytes)| memory::copy_to_host(&self.context, bytes, from + *at, stream))
    }

    fn copy_to_host(&self, to: &mut [u8], from: u64, stream: Option<&dyn Stream>) -> Result<(), Error> {
        let _range = profiler_ranges::copy("copy device to host", to.len() as u64);
        progress::copy("copying from device to host", to.len(), |piece| {
            let from = from + piece.start as u64;
            memory::copy_to_host(&self.context, to.get_mut(piece).unwrap_or_default(), from, stream)
        })
    }

    fn copy_on_device(&self, to: u64, from: u64, bytes: u64, stream: Option<&dyn Stream>) -> Result<(), Error> {
        let _range = profiler_ranges::copy("copy device to device", bytes);
        memory::copy_on_device(&self.context, to, from, bytes, stream)
    }

    fn copy_between(
        &self,
        to: MemoryLocation,
        from: MemoryLocation,
        rows: &Rows,
        stream: Option<&dyn Stream>,
    ) -> Result<(), Error> {
        graph::copy_between(&self.context, to, from, rows, stream)
    }

    fn fill(&self, to: u64, value: u8, bytes: u64, stream: Option<&dyn Stream>) -> Result<(), Error> {
        let _range = profiler_ranges::copy("set", bytes);
        memory::fill(&self.context, to, value, bytes, stream)
    }

    fn new_stream(&self) -> Result<Arc<dyn Stream>, Error> {
        Ok(Arc::new(CudaStream::new(&self.context)?))
    }

    fn external_stream(&self, handle: u64) -> Result<Arc<dyn Stream>, Error> {
        Ok(Arc::new(CudaStream::external(&self.context, handle)?))
    }

    fn synchronize_stream(&self, stream: Option<&dyn Stream>) -> Result<(), Error> {
        let stream = cuda_stream(&self.context, stream)?;
        let _entered = self.context.enter()?;
        capture::refuse(self.context.driver, stream, "wait for")?;
        let stream = stream.map_or(ptr::null_mut(), CudaStream::raw);
        // SAFETY: the stream is live.
        self.context.blame(unsafe { self.context.driver.cuStreamSynchronize(stream) })?;
        self.context.look()
    }

    fn query_stream(&self, stream: Option<&dyn Stream>) -> Result<bool, Error> {
        let stream = cuda_stream(&self.context, stream)?;
        let _entered = self.context.enter()?;
        capture::refuse(self.context.driver, stream, "query the work of")?;
        let stream = stream.map_or(ptr::null_mut(), CudaStream::raw);
        // SAFETY: the stream is live.
        let done = self.context.blame(is_ready(unsafe { self.context.driver.cuStreamQuery(stream) }));
        self.context.poll_prints();
        done
    }

    fn is_captured(&self, stream: Option<&dyn Stream>) -> Result<bool, Error> {
        let stream = cuda_stream(&self.context, stream)?;
        let _entered = self.context.enter()?;
        Ok(capture::is_captured_of_others(self.context.driver, stream))
    }

    fn wait_event(&self, stream: Option<&dyn Stream>, event: &dyn Event) -> Result<(), Error> {
        CudaEvent::of(event)?.hold(&self.context, stream)
    }

    fn report_faults(&self, stream: Option<&dyn Stream>) -> Result<(), Error> {
        if self.context.has_pages() { self.synchronize_stream(stream) } else { Ok(()) }
    }

    fn synchronize(&self) -> Result<(), Error> {
        let _entered = self.context.enter()?;
        // SAFETY: it takes no pointer.
        self.context.blame(unsafe { self.context.driver.cuCtxSynchronize() })?;
        self.context.held.give_all(&self.context);
        self.context.look()
    }

    fn profile(&self, on: bool) -> Result<(), Error> {
        let (driver, _entered) = (&self.context.driver, self.context.enter()?);
        if on {
            // SAFETY: it takes no pointer.
            unsafe { driver.cuProfilerStart() }
        } else {
            // SAFETY: as above.
            unsafe { driver.cuProfilerStop() }
        }
    }

    fn new_event(&self, timed: bool) -> Result<Arc<dyn Event>, Error> {
        Ok(Arc::new(if timed { CudaEvent::new(&self.context) } else { CudaEvent::untimed(&self.context) }?))
    }

    fn record(&self, event: &dyn Event, stream: Option<&dyn Stream>) -> Result<(), Error> {
        CudaEvent::of(event)?.record(&self.context, stream)
    }

    fn synchronize_event(&self, event: &dyn Event) -> Result<(), Error> {
        CudaEvent::of(event)?.synchronize()
    }

    fn query_event(&self, event: &dyn Event) -> Result<bool, Error> {
        let done = CudaEvent::of(event)?.query();
        self.context.poll_prints();
        done
    }

    fn elapsed_ms(&self, start: &dyn Event, end: &dyn Event) -> Result<f32, Error> {
        CudaEvent::of(start)?.elapsed_ms(CudaEvent::of(end)?)
    }

    fn beside_captures(&self) -> Box<dyn Any> {
        Box::new(capture::Aside::new(self.context.driver))
    }

    fn load(&self, artifact: &Artifact) -> Result<Arc<dyn Module>, Error> {
        Ok(Arc::new(CudaModule::load(&self.context, artifact)?))
    }

    fn load_cached(&self, artifact: &Artifact, keeper: &dyn CodeCache) -> Result<Arc<dyn Module>, Error> {
        Ok(Arc::new(machine_code::load(&self.context, artifact, keeper)?))
    }

    fn link(&self, artifact: &Artifact, linking: &Linking<'_>) -> Result<(Arc<dyn Module>, Vec<String>), Error> {
        let (module, notes) = link::link(&self.context, artifact, linking)?;
        Ok((Arc::new(module), notes))
    }

    fn load_image(&self, image: &[u8]) -> Result<Arc<dyn Module>, Error> {
        Ok(Arc::new(CudaModule::load_foreign(&self.context, image)?))
    }

    fn graph(self: Arc<Self>, nodes: Vec<Node>) -> Result<Box<dyn Graph>, Error> {
        let context = Arc::clone(&self.context);
        graph::graph(self, &context, nodes)
    }
}
