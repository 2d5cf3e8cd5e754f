//! Graphs of the driver's: a node for each recorded step.
//!
//! The nodes are made one by one, not captured from a stream: so they are known, and their parameters can be changed.

#![expect(unsafe_code, reason = "calls into the CUDA driver")]

use std::{
    ffi::{c_int, c_uint, c_ulonglong, c_void},
    fmt, ptr,
    sync::{Arc, Mutex, OnceLock, PoisonError},
};

use cudarc::driver::sys::{self, CUdevice_attribute_enum as Attribute, CUmemorytype_enum as MemoryType};

use super::{
    capture::{self, Aside},
    context::Context,
    driver::{self, Driver, Handle},
    kernel::CudaKernel,
    stream::{CudaEvent, raw_stream},
};
use crate::{
    error::{Error, ErrorKind},
    executor::{Executor, LaunchConfig, LoadedKernel as _, Poll, Stream},
    graph::{Graph, MemoryKind, MemoryLocation, Node, Replayed, Step, cells_of, is_of_host},
    profiler_ranges,
    rows::Rows,
};

/// A table of optional functions of the driver, each returning the driver's error.
macro_rules! graph_table {
    ($($name:ident = $symbol:literal ($($arg:ident: $ty:ty),*);)*) => {
        /// The driver's functions of graphs, of drivers for CUDA 12.0 and newer.
        #[expect(non_snake_case, reason = "the functions have the driver's names")]
        struct Graphs {
            driver: &'static Driver,
            $($name: unsafe extern "C" fn($($ty),*) -> c_uint,)*
        }

        #[expect(non_snake_case, reason = "the functions have the driver's names")]
        impl Graphs {
            fn look() -> Option<Self> {
                Some(Self { driver: driver::driver().ok()?, $($name: driver::find($symbol).ok()?,)* })
            }

            $(
                /// The driver's function of this name.
                ///
                /// # Safety
                ///
                /// As the driver's manual specifies: pointers are valid for its reads and writes, handles are live.
                unsafe fn $name(&self, $($arg: $ty),*) -> Result<(), Error> {
                    // SAFETY: the caller promises it.
                    let code = unsafe { (self.$name)($($arg),*) };
                    if code == 0 { Ok(()) } else { Err(self.driver.error(stringify!($name), code)) }
                }
            )*
        }
    };
}

graph_table! {
    cuGraphCreate = "cuGraphCreate" (graph: *mut sys::CUgraph, flags: c_uint);
    cuGraphDestroy = "cuGraphDestroy" (graph: sys::CUgraph);
    cuGraphAddKernelNode = "cuGraphAddKernelNode_v2" (node: *mut sys::CUgraphNode, graph: sys::CUgraph, after: *const sys::CUgraphNode, n_after: usize, params: *const sys::CUDA_KERNEL_NODE_PARAMS_v2);
    cuGraphAddMemcpyNode = "cuGraphAddMemcpyNode" (node: *mut sys::CUgraphNode, graph: sys::CUgraph, after: *const sys::CUgraphNode, n_after: usize, copy: *const sys::CUDA_MEMCPY3D, context: sys::CUcontext);
    cuGraphInstantiateWithFlags = "cuGraphInstantiateWithFlags" (exec: *mut sys::CUgraphExec, graph: sys::CUgraph, flags: c_ulonglong);
    cuGraphExecKernelNodeSetParams = "cuGraphExecKernelNodeSetParams_v2" (exec: sys::CUgraphExec, node: sys::CUgraphNode, params: *const sys::CUDA_KERNEL_NODE_PARAMS_v2);
    cuGraphLaunch = "cuGraphLaunch" (exec: sys::CUgraphExec, stream: sys::CUstream);
    cuGraphExecDestroy = "cuGraphExecDestroy" (exec: sys::CUgraphExec);
}

impl Graphs {
    /// Those of the driver, if it has them.
    fn find() -> Option<&'static Self> {
        static FOUND: OnceLock<Option<Graphs>> = OnceLock::new();
        FOUND.get_or_init(Self::look).as_ref()
    }
}

/// A graph for an executor: the driver's, or one that is replayed call by call where the driver is too old or a launch is
/// cooperative or has clusters.
pub(super) fn graph(
    executor: Arc<dyn Executor>,
    context: &Arc<Context>,
    nodes: Vec<Node>,
) -> Result<Box<dyn Graph>, Error> {
    let has_node = |node: &Node| match &node.step {
        Step::Launch { config, .. } => {
            !config.has_clusters() && kernel(&node.step).is_none_or(|it| !it.is_cooperative())
        }
        Step::Copy { .. } => true,
    };
    let has_nodes = nodes.iter().all(has_node);
    let Some(functions) = Graphs::find().filter(|_| has_nodes) else {
        return Ok(Box::new(Replayed::new(executor, nodes)));
    };
    Ok(Box::new(CudaGraph::new(functions, context, nodes)?))
}

/// The kernel of a launch.
fn kernel(step: &Step) -> Option<&CudaKernel> {
    match step {
        Step::Launch { kernel, .. } => kernel.as_any().downcast_ref(),
        Step::Copy { .. } => None,
    }
}

/// The driver's description, with a node for each step; destroyed when dropped.
struct Built {
    functions: &'static Graphs,
    graph: Handle<sys::CUgraph_st>,
    nodes: Vec<Handle<sys::CUgraphNode_st>>,
}

impl Drop for Built {
    fn drop(&mut self) {
        if !driver::is_forked() {
            // SAFETY: the graph is live, and has no other users.
            let _: Result<(), Error> = unsafe { self.functions.cuGraphDestroy(self.graph.0) };
        }
    }
}

/// A graph that can be launched.
struct CudaGraph {
    context: Arc<Context>,
    built: Built,
    exec: Handle<sys::CUgraphExec_st>,
    /// Its steps. The driver lets one thread at a time use a graph: the lock is held for each call.
    steps: Mutex<Vec<Step>>,
    /// A launch waits for its end: a kernel reports its faults at launches.
    waits: bool,
    /// Recorded after each launch, which the driver runs in order, if there are copies of host memory: dropping the
    /// graph waits for it before that memory is released.
    end: Option<CudaEvent>,
}

impl fmt::Debug for CudaGraph {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CudaGraph").field("exec", &self.exec).finish_non_exhaustive()
    }
}

impl CudaGraph {
    fn new(functions: &'static Graphs, context: &Arc<Context>, nodes: Vec<Node>) -> Result<Self, Error> {
        let (mut steps, after): (Vec<_>, Vec<_>) = nodes.into_iter().map(|node| (node.step, node.after)).unzip();
        let waits = steps.iter().filter_map(kernel).any(CudaKernel::waits);
        let of_host = steps.iter().any(is_of_host);
        let _entered = context.enter()?;
        let mut graph = ptr::null_mut();
        // SAFETY: it writes one handle.
        unsafe { functions.cuGraphCreate(&raw mut graph, 0) }?;
        let mut built = Built { functions, graph: Handle(graph), nodes: Vec::with_capacity(steps.len()) };
        for (step, after) in steps.iter_mut().zip(after) {
            let node = add(context, &built, step, &after)?;
            built.nodes.push(Handle(node));
        }
        let mut exec = ptr::null_mut();
        // SAFETY: it writes one handle; the graph is live.
        let made = unsafe { functions.cuGraphInstantiateWithFlags(&raw mut exec, graph, 0) };
        context.blame(made)?;
        // From here on it is destroyed, even after an error.
        let (context, steps) = (Arc::clone(context), Mutex::new(steps));
        let mut made = Self { context, built, exec: Handle(exec), steps, waits, end: None };
        if of_host {
            made.end = Some(CudaEvent::untimed(&made.context)?);
        }
        Ok(made)
    }
}

/// Adds a node after those with these numbers.
fn add(context: &Context, built: &Built, step: &mut Step, after: &[usize]) -> Result<sys::CUgraphNode, Error> {
    let before = |number: &usize| built.nodes.get(*number).map(|node| node.0);
    let after: Option<Vec<sys::CUgraphNode>> = after.iter().map(before).collect();
    let Some(after) = after else {
        return Err(Error::new(ErrorKind::Internal, "a step of a graph comes after a later one"));
    };
    let (functions, graph) = (built.functions, built.graph.0);
    let mut node = ptr::null_mut();
    match step {
        Step::Launch { kernel, config, cells } => {
            let Some(kernel) = kernel.as_any().downcast_ref::<CudaKernel>() else {
                return Err(Error::new(ErrorKind::Value, "a graph has a kernel that is not this device's"));
            };
            kernel.check(config, cells.len())?;
            kernel.allow_shared(config)?;
            let mut params = kernel.params(cells);
            let described = described(kernel, config, &mut params);
            // SAFETY: it writes one handle; the graph and the nodes before are live, the parameters are copied.
            context.blame(unsafe {
                functions.cuGraphAddKernelNode(&raw mut node, graph, after.as_ptr(), after.len(), &raw const described)
            })?;
        }
        Step::Copy { to, from, rows } => {
            let copy = described_copy(*to, *from, rows, shared_type(context.driver));
            // SAFETY: it writes one handle; the graph and the nodes before are live, the description is copied. The
            // caller that replays the graph holds both memories.
            context.blame(unsafe {
                functions.cuGraphAddMemcpyNode(
                    &raw mut node,
                    graph,
                    after.as_ptr(),
                    after.len(),
                    &raw const copy,
                    context.raw(),
                )
            })?;
        }
    }
    Ok(node)
}

/// A kernel node's parameters, which point to those of the kernel.
fn described(
    kernel: &CudaKernel,
    config: &LaunchConfig,
    params: &mut [*mut c_void],
) -> sys::CUDA_KERNEL_NODE_PARAMS_v2 {
    let LaunchConfig { grid: [grid_x, grid_y, grid_z], block: [block_x, block_y, block_z], shared_bytes, cluster: _ } =
        kernel.on_device(config);
    sys::CUDA_KERNEL_NODE_PARAMS_v2 {
        func: kernel.function(),
        gridDimX: grid_x,
        gridDimY: grid_y,
        gridDimZ: grid_z,
        blockDimX: block_x,
        blockDimY: block_y,
        blockDimZ: block_z,
        sharedMemBytes: shared_bytes,
        kernelParams: params.as_mut_ptr(),
        extra: ptr::null_mut(),
        kern: ptr::null_mut(),
        ctx: ptr::null_mut(),
    }
}

/// A copy of rows, for a node or a stream, in which shared memory has this type. The driver requires pitches only for
/// several rows.
fn described_copy(to: MemoryLocation, from: MemoryLocation, rows: &Rows, shared: MemoryType) -> sys::CUDA_MEMCPY3D {
    let Rows { width, count, to_pitch, from_pitch } = *rows;
    let height = if count > 1 { count as usize } else { 0 };
    let ((to_type, to_host, to_device), (from_type, from_host, from_device)) = (side(to, shared), side(from, shared));
    sys::CUDA_MEMCPY3D {
        srcXInBytes: 0,
        srcY: 0,
        srcZ: 0,
        srcLOD: 0,
        srcMemoryType: from_type,
        srcHost: from_host,
        srcDevice: from_device,
        srcArray: ptr::null_mut(),
        reserved0: ptr::null_mut(),
        srcPitch: if count > 1 { from_pitch as usize } else { 0 },
        srcHeight: height,
        dstXInBytes: 0,
        dstY: 0,
        dstZ: 0,
        dstLOD: 0,
        dstMemoryType: to_type,
        dstHost: to_host,
        dstDevice: to_device,
        dstArray: ptr::null_mut(),
        reserved1: ptr::null_mut(),
        dstPitch: if count > 1 { to_pitch as usize } else { 0 },
        dstHeight: height,
        WidthInBytes: width as usize,
        Height: count as usize,
        Depth: 1,
    }
}

/// A location as in the driver's descriptions: its type, and the address in host or device memory.
fn side(place: MemoryLocation, shared: MemoryType) -> (MemoryType, *mut c_void, sys::CUdeviceptr) {
    match place.memory {
        MemoryKind::Device => (MemoryType::CU_MEMORYTYPE_DEVICE, ptr::null_mut(), place.address),
        MemoryKind::Shared => (shared, ptr::null_mut(), place.address),
        MemoryKind::Host => {
            (MemoryType::CU_MEMORYTYPE_HOST, ptr::with_exposed_provenance_mut(place.address as usize), 0)
        }
    }
}

/// The type of memory that is not known to be the device's: unified, so that the driver determines it by the address. A
/// node may not have that for managed memory on a device without concurrent managed access: there it counts as the
/// device's.
/// (CUDA driver API, `cuGraphAddMemcpyNode`.)
fn shared_type(driver: &Driver) -> MemoryType {
    static CONCURRENT: OnceLock<bool> = OnceLock::new();
    let all = || {
        let n_devices = driver::device_count().unwrap_or(0);
        (0..n_devices).all(|device| is_concurrent(driver, device).is_ok_and(|is| is))
    };
    if *CONCURRENT.get_or_init(all) { MemoryType::CU_MEMORYTYPE_UNIFIED } else { MemoryType::CU_MEMORYTYPE_DEVICE }
}

/// Whether a device reaches managed memory while the host does.
fn is_concurrent(driver: &Driver, ordinal: u32) -> Result<bool, Error> {
    let mut device = 0;
    // SAFETY: it writes one int.
    unsafe { driver.cuDeviceGet(&raw mut device, ordinal as c_int) }?;
    let mut is = 0;
    let which = Attribute::CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS as c_uint;
    // SAFETY: it writes one int.
    unsafe { driver.cuDeviceGetAttribute(&raw mut is, which, device) }?;
    Ok(is != 0)
}

/// See `Executor::copy_between`.
pub(super) fn copy_between(
    context: &Context,
    to: MemoryLocation,
    from: MemoryLocation,
    rows: &Rows,
    stream: Option<&dyn Stream>,
) -> Result<(), Error> {
    let raw = raw_stream(context, stream)?;
    let _entered = context.enter()?;
    let copy = described_copy(to, from, rows, shared_type(context.driver));
    // SAFETY: the caller holds both memories; the stream is live.
    let copied = unsafe { context.driver.cuMemcpy3DAsync(&raw const copy, raw) };
    if to.memory != MemoryKind::Host && from.memory != MemoryKind::Host {
        return context.blame(copied);
    }
    // Wait even if the call failed: a part of the copy may be in flight.
    // SAFETY: the stream is live.
    let waited = unsafe { context.driver.cuStreamSynchronize(raw) };
    context.blame(copied.and(waited))
}

impl Graph for CudaGraph {
    fn launch(&self, stream: Option<&dyn Stream>, _poll: Option<Poll<'_>>) -> Result<(), Error> {
        let raw = raw_stream(&self.context, stream)?;
        self.context.poll_prints();
        let steps = self.steps.lock().unwrap_or_else(PoisonError::into_inner);
        let _entered = self.context.enter()?;
        let _range = profiler_ranges::launch_graph(steps.len());
        if (self.waits || self.end.is_some()) && !raw.is_null() && capture::is_captured(self.context.driver, raw) {
            return Err(capture::not_allowed("launch a graph that waits for copies of host memory in"));
        }
        // SAFETY: the graph and the stream are live, and no other thread uses the graph now.
        let launched = self.context.blame(unsafe { self.built.functions.cuGraphLaunch(self.exec.0, raw) });
        if let Some(end) = &self.end
            && launched.is_ok()
            && end.record(&self.context, stream).is_err()
        {
            // Without the event a later wait could not cover the accesses to host memory.
            // SAFETY: the stream is live.
            self.context.blame(unsafe { self.context.driver.cuStreamSynchronize(raw) })?;
        }
        launched?;
        if let Some(last) = steps.iter().rev().find_map(kernel) {
            last.note();
        }
        drop(steps);
        if self.waits { self.context.wait_and_check(raw) } else { Ok(()) }
    }

    fn set_cells(&self, step: usize, cells: &[u64]) -> Result<(), Error> {
        let mut steps = self.steps.lock().unwrap_or_else(PoisonError::into_inner);
        cells_of(&mut steps, step, cells)?;
        let (Some(Step::Launch { kernel, config, cells: own }), Some(node)) =
            (steps.get_mut(step), self.built.nodes.get(step))
        else {
            return Err(Error::new(ErrorKind::Internal, "a graph has a launch without a node"));
        };
        let Some(kernel) = kernel.as_any().downcast_ref::<CudaKernel>() else {
            return Err(Error::new(ErrorKind::Internal, "a graph has a kernel that is not this device's"));
        };
        let mut new = cells.to_vec();
        let mut params = kernel.params(&mut new);
        let described = described(kernel, config, &mut params);
        let _entered = self.context.enter()?;
        // SAFETY: the graph and its node are live, no other thread uses them now, and the parameters are copied.
        self.context.blame(unsafe {
            self.built.functions.cuGraphExecKernelNodeSetParams(self.exec.0, node.0, &raw const described)
        })?;
        *own = new;
        Ok(())
    }
}

impl Drop for CudaGraph {
    fn drop(&mut self) {
        if driver::is_forked() {
            return;
        }
        if let Ok(_entered) = self.context.enter() {
            let _aside = Aside::new(self.context.driver);
            if let Some(end) = &self.end {
                end.wait();
            }
            // SAFETY: the graph is live and is no longer launched; a running launch of it continues to its end.
            let _: Result<(), Error> = unsafe { self.built.functions.cuGraphExecDestroy(self.exec.0) };
        }
    }
}
