//! The host API that both executors implement.
//!
//! Addresses are plain `u64`s, as in CUDA. The caller owns the memory at an address that it passes: a buffer that lives
//! until the work that uses it is done, or memory from another library. An executor cannot check that, neither on a GPU
//! nor on a CPU.
//!
//! Work in one stream runs in order. On a GPU it runs while the host goes on; on the CPU every call does its work
//! before it returns, so streams and events are always up to date there.

use std::{any::Any, fmt::Debug, ops::Range, sync::Arc};

use weft_artifact::{Artifact, BoxMap, Kernel, MAP_BYTES, Scalar};

use crate::{
    code::{CodeCache, Linking},
    error::Error,
    foreign::{Function, needs_gpu},
    graph::{Graph, MemoryKind, MemoryLocation, Node},
    rows::Rows,
};

/// The properties and limits of a device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceAttributes {
    /// Ordinal.
    pub id: u32,
    /// `NVIDIA H200`, or the CPU's model.
    pub name: String,
    /// Compute capability (major, minor); the CPU answers 9.0 unless a setting says otherwise.
    pub compute_capability: (u32, u32),
    /// Threads a block can have.
    pub max_threads_per_block: u32,
    /// Block extents.
    pub max_block_dim: [u32; 3],
    /// Grid extents.
    pub max_grid_dim: [u32; 3],
    /// Shared memory of a block without opting in, in bytes.
    pub max_shared_memory_per_block: u32,
    /// Shared memory of a block with opting in, in bytes.
    pub max_shared_memory_per_block_optin: u32,
    /// Streaming multiprocessors; cores on the CPU.
    pub multiprocessor_count: u32,
    /// 32.
    pub warp_size: u32,
    /// Blocks that a cluster can have at most; 0 where there are none.
    pub max_blocks_per_cluster: u32,
    /// Total memory in bytes.
    pub total_memory: u64,
    /// Driver version as `(13, 0)`; `(0, 0)` on the CPU.
    pub driver_version: (u32, u32),
    /// PCI bus id such as `0000:00:05.0`, or empty.
    pub pci_bus_id: String,
    /// UUID such as `GPU-…`, or empty.
    pub uuid: String,
}

/// Device memory. Dropping it frees it, after the work in its own stream and the work in other streams that
/// [`Executor::note_use`] recorded.
pub trait Buffer: Debug + Send + Sync {
    /// The device address (an address of this process on the CPU). Zero for an empty buffer.
    fn address(&self) -> u64;
    /// Size in bytes.
    fn len(&self) -> u64;
    /// `true` if the size is zero.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
    /// The stream in whose order it is freed, as [`Stream::order`] numbers it: work there need not be noted, work in
    /// every other stream must be. `None` if nothing need be noted, since no work outlives the call that queues it.
    fn order(&self) -> Option<u64>;
    /// The kind of memory. Memory of an allocator may be of any kind.
    fn memory(&self) -> MemoryKind {
        MemoryKind::Device
    }
    /// For downcasting by its executor.
    fn as_any(&self) -> &dyn Any;
}

/// Memory of a foreign allocator. Dropping it returns it to the allocator: once no work uses it, on any thread, and
/// while the executor holds no lock.
pub trait Lent: Debug + Send + Sync {
    /// The device address of the first byte.
    fn address(&self) -> u64;
}

/// Where the memory of a device's buffers comes from, in place of the executor.
pub trait Allocator: Debug + Send + Sync {
    /// Allocates at least this many bytes, not 0, with undefined contents.
    ///
    /// # Errors
    ///
    /// `Allocator`, if the allocator's author gives details; any other kind.
    fn allocate(&self, bytes: u64) -> Result<Box<dyn Lent>, Error>;
}

/// A handle by which another process opens memory of this one: see [`Executor::share`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shared {
    /// For [`Executor::open_shared`]: the driver's `CUipcMemHandle`.
    pub handle: [u8; 64],
    /// The start of the allocation that the handle refers to: a driver suballocates small buffers.
    pub base: u64,
    /// Bytes from there.
    pub bytes: u64,
}

/// How memory is shared by host and device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HostKind {
    /// Page-locked host memory at a fixed address, through which the device accesses it.
    PageLocked,
    /// Memory that the driver moves to where it is used.
    Managed {
        /// Work in any stream may use it.
        attach_global: bool,
    },
}

/// Memory that host and device share. Dropping it frees it, after all work on the device.
pub trait HostMemory: Debug + Send + Sync {
    /// The address in this process.
    fn address(&self) -> u64;
    /// The address on the device.
    fn device_address(&self) -> u64;
    /// Size in bytes.
    fn len(&self) -> u64;
    /// `true` if the size is zero.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// A queue of work.
pub trait Stream: Debug + Send + Sync {
    /// The driver's handle; 0 is the default stream.
    fn handle(&self) -> u64;
    /// Streams with the same number are one queue. The default stream, which is `None` elsewhere, has 0.
    fn order(&self) -> u64;
    /// For downcasting by its executor.
    fn as_any(&self) -> &dyn Any;
}

/// A point in a stream's work.
pub trait Event: Debug + Send + Sync {
    /// For downcasting by its executor.
    fn as_any(&self) -> &dyn Any;
}

/// Loaded code. Unloaded when dropped.
pub trait Module: Debug + Send + Sync {
    /// The kernel of an entry of the artifact.
    ///
    /// # Errors
    ///
    /// The symbol is not in the code.
    fn kernel(&self, kernel: &Kernel) -> Result<Arc<dyn LoadedKernel>, Error>;
    /// The driver's handle, a `CUmodule`; 0 on the CPU.
    fn handle(&self) -> u64;
    /// The handle of the library that it is in, a `CUlibrary`: of linked code, where the driver is for CUDA 12.0 or newer.
    fn library(&self) -> Option<u64>;
    /// The address and the bytes of a global variable.
    ///
    /// # Errors
    ///
    /// There is none of this name.
    fn global(&self, name: &str) -> Result<(u64, u64), Error>;
    /// A kernel by its symbol, whichever compiler made it.
    ///
    /// # Errors
    ///
    /// `Driver` if there is none of this name; `NoDevice` on the CPU.
    fn function(&self, _name: &str) -> Result<Arc<dyn Function>, Error> {
        Err(needs_gpu())
    }
}

/// A kernel ready to be launched.
pub trait LoadedKernel: Debug + Send + Sync {
    /// Registers a thread; 0 on the CPU.
    fn registers(&self) -> u32;
    /// Static shared memory of a block in bytes.
    fn shared_bytes(&self) -> u32;
    /// Local memory of a thread in bytes; on the CPU that of its arrays.
    fn local_bytes(&self) -> u32;
    /// Constant memory in bytes; on the CPU the constants in the code.
    fn const_bytes(&self) -> u32;
    /// Threads a block can have with this kernel.
    fn max_threads_per_block(&self) -> u32;
    /// The last launch on this device: threads of a block and bytes of dynamic shared memory. `None` before the first, and on
    /// the CPU.
    fn last_launch(&self) -> Option<(u32, u32)>;
    /// The number of blocks with `block_threads` threads and `shared_bytes` bytes of dynamic shared memory that are
    /// resident on a multiprocessor: 0 if none can be launched. A CPU core runs one.
    ///
    /// # Errors
    ///
    /// The device's.
    fn active_blocks(&self, block_threads: u32, shared_bytes: u32) -> Result<u32, Error>;
    /// The block size for launches that choose none, with `shared_bytes` bytes of dynamic shared memory.
    ///
    /// # Errors
    ///
    /// The device's.
    fn good_block(&self, shared_bytes: u32) -> Result<u32, Error>;
    /// The number of blocks with `block_threads` threads and `shared_bytes` bytes of dynamic shared memory that are
    /// resident on the device: the limit for a cooperative launch.
    ///
    /// # Errors
    ///
    /// The device's.
    fn most_blocks_at_once(&self, block_threads: u32, shared_bytes: u32) -> Result<u64, Error>;
    /// Requests that this percentage of a multiprocessor's unified memory is shared memory; -1 for the driver's choice.
    /// It is a preference: launches that need more get more. CPU caches are not divided.
    ///
    /// # Errors
    ///
    /// The device's.
    fn prefer_shared(&self, percent: i8) -> Result<(), Error>;
    /// For downcasting by its executor.
    fn as_any(&self) -> &dyn Any;
    /// Checks a launch that is made later, with `n_cells` cells.
    ///
    /// # Errors
    ///
    /// As `launch`, for errors that it finds before it calls the device.
    fn check(&self, config: &LaunchConfig, n_cells: usize) -> Result<(), Error>;
    /// Queues a launch. `cells` has the cells of the kernel's slots, one slot after the other, as
    /// [`weft_artifact::SlotType`] says: one of 8 bytes for most, the value in its low bytes.
    ///
    /// # Errors
    ///
    /// `Launch` for a configuration that the device cannot run, naming the limit; `Driver` for a failed call.
    fn launch(&self, config: &LaunchConfig, stream: Option<&dyn Stream>, cells: &mut [u64]) -> Result<(), Error> {
        self.launch_polled(config, stream, cells, None)
    }
    /// Like `launch`. Where the launch runs before the call returns, it regularly polls whether to continue.
    ///
    /// # Errors
    ///
    /// As `launch`; `Interrupted` if the poll stopped the launch. No thread is in the kernel then, which has done a
    /// part of its work.
    fn launch_polled(
        &self,
        config: &LaunchConfig,
        stream: Option<&dyn Stream>,
        cells: &mut [u64],
        poll: Option<Poll<'_>>,
    ) -> Result<(), Error>;
}

/// Returns `true` to stop the operation. Called on the calling thread, which may be deep in a kernel: it must not
/// unwind.
pub type Poll<'a> = &'a dyn Fn() -> bool;

/// Grid, block and dynamic shared memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct LaunchConfig {
    /// Blocks in x, y, z.
    pub grid: [u32; 3],
    /// Threads in x, y, z.
    pub block: [u32; 3],
    /// Dynamic shared memory of a block in bytes.
    pub shared_bytes: u32,
    /// Blocks of a cluster in x, y, z: they are co-scheduled on neighboring multiprocessors, and access each other's
    /// shared memory. With 1, there are no clusters.
    pub cluster: [u32; 3],
}

impl LaunchConfig {
    /// [`Self::cluster`] without clusters.
    pub const ALONE: [u32; 3] = [1; 3];

    /// Whether the blocks are in clusters.
    #[inline]
    pub fn has_clusters(&self) -> bool {
        self.cluster != Self::ALONE
    }
}

/// Bytes of host memory, and their offset from the start of the common buffer on the device.
pub type Part<'a> = (u64, &'a [u8]);
/// The same, to be written.
pub type PartMut<'a> = (u64, &'a mut [u8]);

/// A device and everything that can be done with it.
pub trait Executor: Debug + Send + Sync {
    /// `cuda` or `cpu`.
    fn kind(&self) -> &'static str;
    /// How many devices there are.
    fn device_count(&self) -> u32;
    /// This executor's device.
    fn attributes(&self) -> &DeviceAttributes;
    /// Free and total memory in bytes.
    ///
    /// # Errors
    ///
    /// A driver call failed.
    fn memory_info(&self) -> Result<(u64, u64), Error>;
    /// One of the driver's attributes of a device by its number in `cuda.h`. The CPU returns a GPU's value where
    /// programs compute with it, at least 1 for every count, size and rate, and 0 for properties that it does not have.
    ///
    /// # Errors
    ///
    /// The driver has no such attribute.
    fn attribute(&self, number: u32) -> Result<i32, Error>;
    /// The compiler's target: `sm_90`, or `host`.
    fn target(&self) -> String;
    /// The device whose memory contains an address, if kernels of this device cannot access it.
    fn out_of_reach(&self, address: u64) -> Option<u32>;
    /// Allocates memory with undefined contents, in the order of `stream` where the device can.
    ///
    /// # Errors
    ///
    /// `Memory`.
    fn allocate(&self, bytes: u64, stream: Option<&dyn Stream>) -> Result<Arc<dyn Buffer>, Error>;
    /// Sets the allocator of all buffers from now on; `None` is the executor itself.
    fn set_allocator(&self, allocator: Option<Arc<dyn Allocator>>);
    /// The number of dropped buffers whose memory is not yet returned, because work may use it: to an allocator, or to
    /// a driver without a pool.
    fn n_pending(&self) -> usize {
        0
    }
    /// Waits for that work, and frees the memory, including the executor's cache.
    ///
    /// # Errors
    ///
    /// An earlier launch faulted.
    fn free_pending(&self) -> Result<(), Error> {
        Ok(())
    }
    /// Allocates memory that other processes can open, where the device supports it (see [`Executor::share`]), never
    /// from an allocator that was set. Freeing it waits for all work on the device.
    ///
    /// # Errors
    ///
    /// `Memory`.
    fn allocate_shareable(&self, bytes: u64) -> Result<Arc<dyn Buffer>, Error>;
    /// Lets other processes open the allocation that contains an address, as long as this process holds it.
    ///
    /// # Errors
    ///
    /// The memory cannot be shared; on the CPU no memory can.
    fn share(&self, address: u64) -> Result<Shared, Error>;
    /// Opens memory of another process by its handle, for use of the first `bytes` bytes. It is closed after all work
    /// on the device.
    ///
    /// # Errors
    ///
    /// A driver call failed; on the CPU it cannot be done.
    fn open_shared(&self, handle: &[u8; 64], bytes: u64) -> Result<Arc<dyn Buffer>, Error>;
    /// Encodes a tensor map of elements of a type: the words that a kernel's map has in device memory.
    ///
    /// # Errors
    ///
    /// `Value` for an array that the device cannot copy boxes of; `NoDevice` for a device without tensor maps.
    fn tensor_map(&self, map: &BoxMap, scalar: Scalar) -> Result<[u64; MAP_BYTES / 8], Error>;
    /// The start and the size in bytes of the allocation that contains an address.
    ///
    /// # Errors
    ///
    /// It is in none that the device knows.
    fn extents_of(&self, address: u64) -> Result<(u64, u64), Error>;
    /// The address on the device of page-locked memory of the host.
    ///
    /// # Errors
    ///
    /// It is no such memory.
    fn mapped_address(&self, address: u64) -> Result<u64, Error>;
    /// Whether peer access from this device to the memory of another one can be enabled.
    ///
    /// # Errors
    ///
    /// There is no such device.
    fn can_access_peer(&self, peer: u32) -> Result<bool, Error>;
    /// Enables peer access, for as long as the process runs.
    ///
    /// # Errors
    ///
    /// A driver call failed: peer access is unsupported, or already enabled.
    fn enable_peer_access(&self, peer: u32) -> Result<(), Error>;
    /// Whether peer access is enabled.
    fn reaches(&self, _peer: u32) -> bool {
        false
    }
    /// Allocates memory that host and device share, with undefined contents.
    ///
    /// # Errors
    ///
    /// `Memory`.
    fn allocate_host(&self, bytes: u64, kind: HostKind) -> Result<Arc<dyn HostMemory>, Error>;
    /// Locks the pages of memory of this process, which the caller must not free or move until the result is dropped.
    ///
    /// # Errors
    ///
    /// A driver call failed: the memory is locked already, or cannot be.
    fn lock_host(&self, address: u64, bytes: u64) -> Result<Arc<dyn HostMemory>, Error>;
    /// Lets kernels read memory of this process in place until the result is dropped. Threads without a guard may also
    /// read a bounded range past its end, as they may past an allocation. `None` if the device does not support it.
    fn read_in_place(&self, _memory: &Range<u64>) -> Option<Box<dyn Any>> {
        None
    }
    /// Records that work on these buffers was queued in a stream other than theirs, or on another device: their memory
    /// is not reused before that work is done. Call it after queueing, while still holding the buffers.
    fn note_use(&self, buffers: &[Arc<dyn Buffer>], stream: Option<&dyn Stream>);
    /// Copies from the host. The host memory may be reused when it returns.
    ///
    /// # Errors
    ///
    /// A driver call failed; an earlier launch faulted.
    fn copy_to_device(&self, to: u64, from: &[u8], stream: Option<&dyn Stream>) -> Result<(), Error>;
    /// Copies rows from the host. The host memory may be reused when it returns.
    ///
    /// # Errors
    ///
    /// `Value` for rows that are not all in `from`; a driver call failed; an earlier launch faulted.
    fn copy_rows_to_device(&self, to: u64, from: &[u8], rows: &Rows, stream: Option<&dyn Stream>) -> Result<(), Error> {
        for row in 0..rows.count {
            self.copy_to_device(to + row * rows.to_pitch, rows.of(from, row)?, stream)?;
        }
        Ok(())
    }
    /// The number of bytes that an array of this size takes in a buffer shared by several arrays, which are copied
    /// together; `None` if the array must have its own buffer.
    fn room_in_pack(&self, _bytes: u64) -> Option<u64> {
        None
    }
    /// Copies parts from the host to their offsets from an address. Bytes between the parts are undefined afterwards.
    /// The host memory may be reused when the call returns.
    ///
    /// # Errors
    ///
    /// As `copy_to_device`.
    fn copy_parts_to_device(&self, to: u64, parts: &[Part<'_>], stream: Option<&dyn Stream>) -> Result<(), Error> {
        parts.iter().try_for_each(|(at, bytes)| self.copy_to_device(to + at, bytes, stream))
    }
    /// Copies parts at offsets from an address to the host and waits for them.
    ///
    /// # Errors
    ///
    /// As `copy_to_host`.
    fn copy_parts_to_host(
        &self,
        parts: &mut [PartMut<'_>],
        from: u64,
        stream: Option<&dyn Stream>,
    ) -> Result<(), Error> {
        parts.iter_mut().try_for_each(|(at, bytes)| self.copy_to_host(bytes, from + *at, stream))
    }
    /// Copies to the host and waits for it.
    ///
    /// # Errors
    ///
    /// A driver call failed; an earlier launch faulted.
    fn copy_to_host(&self, to: &mut [u8], from: u64, stream: Option<&dyn Stream>) -> Result<(), Error>;
    /// Copies between two buffers of the device.
    ///
    /// # Errors
    ///
    /// A driver call failed.
    fn copy_on_device(&self, to: u64, from: u64, bytes: u64, stream: Option<&dyn Stream>) -> Result<(), Error>;
    /// Copies like a graph's copy node, between memory that the caller holds. A copy from or to host memory is done
    /// when the call returns.
    ///
    /// # Errors
    ///
    /// A driver call failed; an earlier launch faulted.
    fn copy_between(
        &self,
        to: MemoryLocation,
        from: MemoryLocation,
        rows: &Rows,
        stream: Option<&dyn Stream>,
    ) -> Result<(), Error>;
    /// Sets bytes.
    ///
    /// # Errors
    ///
    /// A driver call failed.
    fn fill(&self, to: u64, value: u8, bytes: u64, stream: Option<&dyn Stream>) -> Result<(), Error>;
    /// A new stream.
    ///
    /// # Errors
    ///
    /// A driver call failed.
    fn new_stream(&self) -> Result<Arc<dyn Stream>, Error>;
    /// Waits for a stream; the default one if `None`.
    ///
    /// # Errors
    ///
    /// An earlier launch faulted.
    fn synchronize_stream(&self, stream: Option<&dyn Stream>) -> Result<(), Error>;
    /// Waits for a stream if a kernel may have raised an error that must be reported; otherwise does nothing.
    ///
    /// # Errors
    ///
    /// An earlier launch faulted.
    fn report_faults(&self, stream: Option<&dyn Stream>) -> Result<(), Error>;
    /// Waits for everything on the device.
    ///
    /// # Errors
    ///
    /// An earlier launch faulted.
    fn synchronize(&self) -> Result<(), Error>;
    /// Has an attached profiler start or stop recording the device's work; without a profiler, it has no effect.
    ///
    /// # Errors
    ///
    /// A driver call failed.
    fn profile(&self, on: bool) -> Result<(), Error>;
    /// A foreign stream, whose owner keeps it alive: the driver's handle of one, where 1 is the legacy default stream
    /// and 2 the default stream of the calling thread. It is not destroyed when dropped.
    ///
    /// # Errors
    ///
    /// `Value` on an executor that has no such streams.
    fn external_stream(&self, handle: u64) -> Result<Arc<dyn Stream>, Error>;
    /// Whether all work queued in a stream is done.
    ///
    /// # Errors
    ///
    /// An earlier launch faulted.
    fn query_stream(&self, stream: Option<&dyn Stream>) -> Result<bool, Error>;
    /// Whether the stream is being captured into a graph of the driver: work queued there runs when that graph is
    /// launched.
    ///
    /// # Errors
    ///
    /// A driver call failed.
    fn is_captured(&self, _stream: Option<&dyn Stream>) -> Result<bool, Error> {
        Ok(false)
    }
    /// Makes later work in `stream` wait for an event, which may be another device's; `None` is this device's default
    /// stream. The host does not wait.
    ///
    /// # Errors
    ///
    /// A driver call failed.
    fn wait_event(&self, stream: Option<&dyn Stream>, event: &dyn Event) -> Result<(), Error>;
    /// A new event; one that is not timed costs the device less.
    ///
    /// # Errors
    ///
    /// A driver call failed.
    fn new_event(&self, timed: bool) -> Result<Arc<dyn Event>, Error>;
    /// Records an event in a stream; `None` is this device's default stream.
    ///
    /// # Errors
    ///
    /// A driver call failed; `Value` for an event of another device.
    fn record(&self, event: &dyn Event, stream: Option<&dyn Stream>) -> Result<(), Error>;
    /// Waits for an event.
    ///
    /// # Errors
    ///
    /// A driver call failed.
    fn synchronize_event(&self, event: &dyn Event) -> Result<(), Error>;
    /// Whether the work before an event is done; an event that was never recorded is done.
    ///
    /// # Errors
    ///
    /// An earlier launch faulted.
    fn query_event(&self, event: &dyn Event) -> Result<bool, Error>;
    /// Milliseconds between two recorded events.
    ///
    /// # Errors
    ///
    /// `Event` for one that was not recorded, is not timed, or is not reached yet; a driver call failed.
    fn elapsed_ms(&self, start: &dyn Event, end: &dyn Event) -> Result<f32, Error>;
    /// While the result lives, calls of this thread, such as loading code, do not invalidate captures of streams by
    /// other threads.
    fn beside_captures(&self) -> Box<dyn Any> {
        Box::new(())
    }
    /// Loads an artifact for this device.
    ///
    /// # Errors
    ///
    /// The driver's JIT log, or the loader's message.
    fn load(&self, artifact: &Artifact) -> Result<Arc<dyn Module>, Error>;
    /// Like `load`, but caches the machine code that the device generates from the artifact.
    ///
    /// # Errors
    ///
    /// As `load`.
    fn load_cached(&self, artifact: &Artifact, _keeper: &dyn CodeCache) -> Result<Arc<dyn Module>, Error> {
        self.load(artifact)
    }
    /// Loads an artifact together with the external code that it calls, and returns the tools' warnings about that
    /// code. A CPU has nothing to link: its code calls no external code.
    ///
    /// # Errors
    ///
    /// As `load`; `Link` with the linker's log, `Compile` with the compiler's, `NoTool` for one that is not there.
    fn link(&self, artifact: &Artifact, linking: &Linking<'_>) -> Result<(Arc<dyn Module>, Vec<String>), Error>;
    /// Loads code of any compiler: PTX as text, a cubin or a fatbin. It knows nothing of weft's ABI, so its kernels are
    /// taken with [`Module::function`].
    ///
    /// # Errors
    ///
    /// `Value` for an image that is none of these, or is truncated; the driver's error with its log; `NoDevice` on the
    /// CPU.
    fn load_image(&self, _image: &[u8]) -> Result<Arc<dyn Module>, Error> {
        Err(needs_gpu())
    }
    /// Creates a graph of nodes, in topological order, whose kernels are loaded on this device.
    ///
    /// # Errors
    ///
    /// `Launch` for a configuration that the device cannot run; a driver call failed.
    fn graph(self: Arc<Self>, nodes: Vec<Node>) -> Result<Box<dyn Graph>, Error>;
}

/// Native code that was loaded into this process; unloaded when dropped.
pub trait HostCode: Debug + Send + Sync {
    /// The address of a symbol.
    fn symbol(&self, name: &str) -> Option<usize>;
}

/// Loads host objects. The runtime does not depend on LLVM, so the crate with the compiler passes the CPU executor its
/// loader.
pub trait HostLoader: Debug + Send + Sync {
    /// Loads a relocatable object.
    ///
    /// # Errors
    ///
    /// The loader's message.
    fn load(&self, object: &[u8]) -> Result<Arc<dyn HostCode>, String>;
}
