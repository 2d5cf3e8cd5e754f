//! Suggestions for names that do not exist: one table, for kernels and for the host.
//!
//! Rows are names that users write because another library or an older CUDA has them, or because they exist only on the
//! other side of a launch. [`closest`](super::closest) finds misspelt names; names that only numba-cuda has in kernels
//! are rows of `intrinsics/numba.rs`.

/// The code in which a name occurs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NameContext {
    /// In a kernel or a device function.
    Kernel,
    /// In host code.
    Host,
}

/// The context in which a row applies, if only one; the name, or a common prefix of names, which ends in a period; and
/// the suggestion.
type Row = (Option<NameContext>, &'static str, &'static str);

const HOST: Option<NameContext> = Some(NameContext::Host);
const KERNEL: Option<NameContext> = Some(NameContext::Kernel);

const DRAWS: &str =
    "write `philox_uniform_float32(seed, i, n)` from `cuda.random`: number `n` of sequence `i`; it needs no states";
const FILLS: &str = "write `cuda.device_array(shape, dtype)` and `.fill(value)`, or `cuda.to_device(array)` with a \
    NumPy array";
const JITS: &str = "write `cuda.jit`, after `from weft import cuda`; leave code that runs on the host in Python";
const MAKES: &str = "make the array with `cuda.local.array(shape, dtype)`, or make it on the host and pass it";
const OUTSIDE: &str = "call it on the host, before or after the launch";
const QUEUES: &str = "use streams and events on the host: `kernel[grid, block, stream](…)` launches in a stream";
const READS: &str = "write `.copy_to_host()`";
const RESIZES: &str =
    "make a new array with `cuda.device_array(shape, dtype)` and copy into it: an array cannot change its size";
const SORTS: &str =
    "sort on the host, `np.sort(array.copy_to_host())`, or in kernels with `cuda.coop.block.radix_sort_keys`";
const STEPS: &str = "write a loop with `cuda.atomic.cas(array, index, old, value)`: it can express any atomic \
    operation";
const ALLOCATES: &str = "write `cuda.device_array(shape, dtype)`";
const CONFIGURES: &str = "write `kernel[griddim, blockdim, stream, sharedmem](arguments)`";
const COPIES: &str = "write `cuda.to_device(array)` for a copy to the device, and `array.copy_to_host()` for one back";
const DESCRIBES: &str = "read the attributes of `cuda.get_current_device()`, or of each device in `cuda.gpus`";
const FREES: &str = "leave it out: an array's memory is freed with its last reference, for example by `del array`";
const LIKE: &str = "write `cuda.device_array_like(array)`, and `.fill(value)`";
const LOOPS: &str = "write a loop over the elements, `for i in range(n): a[i] = b[i]`";
const WAITS: &str = "write `cuda.synchronize()`";
const THREADS: &str = "use the threads of the grid instead of the loop: `i = cuda.grid(1)`";

const ROWS: &[Row] = &[
    (None, "weft.cuda.atomic.div", STEPS),
    (None, "weft.cuda.atomic.mul", STEPS),
    (None, "weft.cuda.const.array", "write `cuda.const.array_like(array)`, with a global array"),
    (None, "weft.cuda.random.normal", DRAWS),
    (None, "weft.cuda.random.rand", DRAWS),
    (None, "weft.cuda.random.randint", DRAWS),
    (None, "weft.cuda.random.randn", DRAWS),
    (None, "weft.cuda.random.random", DRAWS),
    (None, "weft.cuda.random.uniform", DRAWS),
    // CUDA's older names, without a mask.
    (
        None,
        "weft.cuda.all",
        "write `cuda.all_sync(0xFFFFFFFF, predicate)`: the first argument is the mask of the lanes that take part",
    ),
    (
        None,
        "weft.cuda.any",
        "write `cuda.any_sync(0xFFFFFFFF, predicate)`: the first argument is the mask of the lanes that take part",
    ),
    (
        None,
        "weft.cuda.ballot",
        "write `cuda.ballot_sync(0xFFFFFFFF, predicate)`: the first argument is the mask of the lanes that take part",
    ),
    (
        None,
        "weft.cuda.shfl",
        "write `cuda.shfl_sync(0xFFFFFFFF, value, lane)`: the first argument is the mask of the lanes that take part",
    ),
    (
        None,
        "weft.cuda.shfl_down",
        "write `cuda.shfl_down_sync(0xFFFFFFFF, value, delta)`: the first argument is the mask of the lanes that take \
         part",
    ),
    (
        None,
        "weft.cuda.shfl_up",
        "write `cuda.shfl_up_sync(0xFFFFFFFF, value, delta)`: the first argument is the mask of the lanes that take \
         part",
    ),
    (
        None,
        "weft.cuda.shfl_xor",
        "write `cuda.shfl_xor_sync(0xFFFFFFFF, value, lane_mask)`: the first argument is the mask of the lanes that \
         take part",
    ),
    (None, "weft.cuda.cg.this_block", "write `cuda.cg.this_thread_block()`"),
    (None, "weft.cuda.cg.this_warp", "write `cuda.cg.tiled_partition(cuda.cg.this_thread_block(), 32)`"),
    // Plain names of CUDA C++ and C, in a kernel.
    (KERNEL, "c++.NULL", "write `None`"),
    (KERNEL, "c++.false", "write `False`"),
    (KERNEL, "c++.free", "leave it out: a thread's own memory is freed when it ends"),
    (KERNEL, "c++.malloc", MAKES),
    (KERNEL, "c++.memcpy", LOOPS),
    (KERNEL, "c++.memset", LOOPS),
    (KERNEL, "c++.nullptr", "write `None`"),
    (KERNEL, "c++.printf", "write `print(…)`, with `%` or an f-string as the format"),
    (KERNEL, "c++.sizeof", "write `x.itemsize` for the size of an element, and `x.nbytes` for the size of the array"),
    (KERNEL, "c++.true", "write `True`"),
    // Host functions, in a kernel.
    (KERNEL, "weft.cuda.as_cuda_array", OUTSIDE),
    (KERNEL, "weft.cuda.benchmark", OUTSIDE),
    (KERNEL, "weft.cuda.close", OUTSIDE),
    (KERNEL, "weft.cuda.compile", OUTSIDE),
    (KERNEL, "weft.cuda.compile_ptx", OUTSIDE),
    (KERNEL, "weft.cuda.current_context", OUTSIDE),
    (KERNEL, "weft.cuda.declare_device", OUTSIDE),
    (KERNEL, "weft.cuda.default_stream", OUTSIDE),
    (KERNEL, "weft.cuda.detect", OUTSIDE),
    (KERNEL, "weft.cuda.event_elapsed_time", OUTSIDE),
    (KERNEL, "weft.cuda.external_stream", OUTSIDE),
    (KERNEL, "weft.cuda.from_dlpack", OUTSIDE),
    (KERNEL, "weft.cuda.get_current_device", OUTSIDE),
    (KERNEL, "weft.cuda.gpus", OUTSIDE),
    (KERNEL, "weft.cuda.graph", OUTSIDE),
    (KERNEL, "weft.cuda.guvectorize", OUTSIDE),
    (KERNEL, "weft.cuda.is_available", OUTSIDE),
    (KERNEL, "weft.cuda.is_cuda_array", OUTSIDE),
    (KERNEL, "weft.cuda.jit", OUTSIDE),
    (KERNEL, "weft.cuda.legacy_default_stream", OUTSIDE),
    (KERNEL, "weft.cuda.list_devices", OUTSIDE),
    (KERNEL, "weft.cuda.mapped", OUTSIDE),
    (KERNEL, "weft.cuda.open_ipc_array", OUTSIDE),
    (KERNEL, "weft.cuda.per_thread_default_stream", OUTSIDE),
    (KERNEL, "weft.cuda.pinned", OUTSIDE),
    (KERNEL, "weft.cuda.profile_start", OUTSIDE),
    (KERNEL, "weft.cuda.profile_stop", OUTSIDE),
    (KERNEL, "weft.cuda.reduce", OUTSIDE),
    (KERNEL, "weft.cuda.select_device", OUTSIDE),
    (KERNEL, "weft.cuda.set_memory_manager", OUTSIDE),
    (KERNEL, "weft.cuda.vectorize", OUTSIDE),
    (KERNEL, "weft.cuda.device_array", MAKES),
    (KERNEL, "weft.cuda.device_array_like", MAKES),
    (KERNEL, "weft.cuda.event", QUEUES),
    (KERNEL, "weft.cuda.managed_array", MAKES),
    (KERNEL, "weft.cuda.mapped_array", MAKES),
    (KERNEL, "weft.cuda.pinned_array", MAKES),
    (KERNEL, "weft.cuda.stream", QUEUES),
    (
        KERNEL,
        "weft.cuda.synchronize",
        "write `cuda.syncthreads()` to wait for the threads of the block; call `cuda.synchronize()` on the host, \
         after a launch",
    ),
    (KERNEL, "weft.cuda.to_device", "copy the array before the launch, and pass it as an argument"),
    // Names of other libraries, in a kernel.
    (KERNEL, "numpy.argsort", SORTS),
    (KERNEL, "numpy.lexsort", SORTS),
    (KERNEL, "numpy.linalg.", "write it as a loop over the elements"),
    (KERNEL, "numpy.ndarray.append", "write to an index: an array cannot change its size"),
    (KERNEL, "numpy.ndarray.argsort", SORTS),
    (KERNEL, "numpy.ndarray.astype", "convert elements by calling the type: `np.int32(x[i])`"),
    (
        KERNEL,
        "numpy.ndarray.data",
        "write `x[0]` for the first element, and `x.size` or `x.shape` for the number of elements",
    ),
    (KERNEL, "numpy.ndarray.dot", "write the loop: `acc += a[i, k] * b[k, j]`"),
    (KERNEL, "numpy.ndarray.sort", "write it as a loop over the elements, or sort on the host"),
    (KERNEL, "numpy.ndarray.tobytes", "read the elements of `x.view(np.uint8)`, which are its bytes"),
    (KERNEL, "numpy.ndarray.tolist", "index the array: kernels have no lists"),
    (KERNEL, "numpy.random.", DRAWS),
    (KERNEL, "numpy.sort", SORTS),
    (KERNEL, "random.", DRAWS),
    (
        KERNEL,
        "time.",
        "use `cuda.clock64()` for clock cycles, `cuda.globaltimer()` for nanoseconds, or `cuda.event()` on the host \
         to time launches",
    ),
    // Names of Numba, on the host.
    (HOST, "weft.cuda.njit", "write `cuda.jit`"),
    (HOST, "weft.cuda.prange", THREADS),
    (HOST, "weft.generated_jit", "write `cuda.extending.overload`, after `from weft import cuda`"),
    (HOST, "weft.jit", JITS),
    (HOST, "weft.njit", JITS),
    (HOST, "weft.prange", THREADS),
    (HOST, "weft.set_num_threads", "set `WEFT_CPU_THREADS` before the program starts"),
    (HOST, "weft.stencil", "write a kernel in which each thread reads the neighbors of its element, `cuda.grid(n)`"),
    // Names of CUDA C++, on the host.
    (HOST, "weft.cuda.cudaDeviceSynchronize", WAITS),
    (HOST, "weft.cuda.cudaFree", FREES),
    (HOST, "weft.cuda.cudaGetDeviceProperties", DESCRIBES),
    (HOST, "weft.cuda.cudaMalloc", ALLOCATES),
    (HOST, "weft.cuda.cudaMallocManaged", "write `cuda.managed_array(shape, dtype)`"),
    (HOST, "weft.cuda.cudaMemcpy", COPIES),
    (HOST, "weft.cuda.cudaMemcpyAsync", COPIES),
    (HOST, "weft.cuda.cudaMemset", "write `array.fill(value)`"),
    (HOST, "weft.cuda.cudaSetDevice", "write `cuda.select_device(number)`, or `with cuda.gpus[number]:`"),
    (HOST, "weft.cuda.free", FREES),
    (HOST, "weft.cuda.get_device_properties", DESCRIBES),
    (HOST, "weft.cuda.kernel", "write `cuda.jit`"),
    (HOST, "weft.cuda.launch", CONFIGURES),
    (HOST, "weft.cuda.malloc", ALLOCATES),
    (HOST, "weft.cuda.mem_alloc", ALLOCATES),
    (HOST, "weft.cuda.memcpy", COPIES),
    (HOST, "weft.cuda.memset", "write `array.fill(value)`"),
    // Members of a kernel and of its configuration.
    (HOST, "weft.cuda.Kernel.launch", CONFIGURES),
    (HOST, "weft.cuda.Kernel.run", CONFIGURES),
    (HOST, "weft.cuda.Kernel.synchronize", "write `cuda.synchronize()`, or `stream.synchronize()`"),
    // Names of other libraries, on the host.
    (HOST, "weft.cuda.DeviceNDArray.append", RESIZES),
    (HOST, "weft.cuda.DeviceNDArray.argsort", SORTS),
    (HOST, "weft.cuda.DeviceNDArray.asnumpy", READS),
    (HOST, "weft.cuda.DeviceNDArray.clip", "write `np.minimum(np.maximum(array, low), high)`"),
    (HOST, "weft.cuda.DeviceNDArray.clone", "write `.copy()`"),
    (HOST, "weft.cuda.DeviceNDArray.cpu", READS),
    (
        HOST,
        "weft.cuda.DeviceNDArray.cuda",
        "leave it out: the array is on the device; `cuda.to_device(array)` copies a host array",
    ),
    (HOST, "weft.cuda.DeviceNDArray.dot", "write `a @ b`"),
    (HOST, "weft.cuda.DeviceNDArray.get", READS),
    (HOST, "weft.cuda.DeviceNDArray.numpy", READS),
    (HOST, "weft.cuda.DeviceNDArray.plot", "write `.copy_to_host()`, and plot the copy"),
    (HOST, "weft.cuda.DeviceNDArray.resize", RESIZES),
    (HOST, "weft.cuda.DeviceNDArray.set", "write `.copy_to_device(array)`"),
    (HOST, "weft.cuda.DeviceNDArray.sort", SORTS),
    (HOST, "weft.cuda.DeviceNDArray.to", "write `.copy_to_host()`, or `.astype(dtype)` for another dtype"),
    (HOST, "weft.cuda.DeviceNDArray.to_host", READS),
    (HOST, "weft.cuda.Event.elapsed", "write `first.elapsed_time(last)`"),
    (HOST, "weft.cuda.Stream.sync", "write `.synchronize()`"),
    (HOST, "weft.cuda.Stream.wait_event", "write `event.wait(stream)`"),
    (HOST, "weft.cuda.device_synchronize", WAITS),
    (HOST, "weft.cuda.sync", WAITS),
    (HOST, "weft.cuda.arange", FILLS),
    (HOST, "weft.cuda.array", "write `cuda.to_device(array)`, or `cuda.device_array(shape, dtype)`"),
    (HOST, "weft.cuda.asarray", "write `cuda.to_device(array)`; `cuda.as_cuda_array(obj)` does not copy"),
    (HOST, "weft.cuda.asnumpy", "write `array.copy_to_host()`"),
    (HOST, "weft.cuda.device_count", "write `len(cuda.gpus)`"),
    (HOST, "weft.cuda.empty", "write `cuda.device_array(shape, dtype)`"),
    (HOST, "weft.cuda.empty_like", "write `cuda.device_array_like(array)`"),
    (HOST, "weft.cuda.full", FILLS),
    (HOST, "weft.cuda.full_like", LIKE),
    (HOST, "weft.cuda.ones", FILLS),
    (HOST, "weft.cuda.ones_like", LIKE),
    (HOST, "weft.cuda.set_device", "write `cuda.select_device(number)`, or `with cuda.gpus[number]:`"),
    (HOST, "weft.cuda.to_host", "write `array.copy_to_host()`"),
    (HOST, "weft.cuda.zeros", FILLS),
    (HOST, "weft.cuda.zeros_like", LIKE),
];

/// Options of Numba's `jit` that do not apply to kernels, and why.
const OPTIONS: &[(&str, &str)] = &[
    (
        "error_model",
        "leave it out: a division by zero returns 0 for integers, an infinity or NaN for floats, and raises with \
         `debug=True`",
    ),
    ("forceobj", "leave it out: a kernel is always compiled"),
    ("locals", "leave it out: convert the value where it is assigned, `x = np.float32(…)`"),
    ("looplift", "leave it out: a kernel is always compiled"),
    ("nogil", "leave it out: it applies to functions that run on the host"),
    ("no_cfunc_wrapper", "leave it out: kernels have no C wrapper"),
    ("no_cpython_wrapper", "leave it out: kernels have no Python wrapper"),
    ("nopython", "leave it out: a kernel is always compiled"),
    ("parallel", "leave it out: the threads of a kernel's grid run in parallel"),
    ("pipeline_class", "leave it out: weft's compiler has its own passes"),
    ("target", "leave it out: kernels run on the current device; set WEFT_DEVICE=cpu to run them on the CPU"),
];

/// The suggestion for a name that does not exist, given its whole path such as `weft.cuda.shfl`; `None` if the table
/// has no row for it.
pub fn instead(place: NameContext, path: &str) -> Option<&'static str> {
    let fits = |row: &Row| {
        row.0.is_none_or(|only| only == place)
            && if let Some(module) = row.1.strip_suffix('.') {
                path.strip_prefix(module).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
            } else {
                path == row.1
            }
    };
    ROWS.iter().find(|row| fits(row)).map(|row| row.2)
}

/// The message for an option that `cuda.jit` does not have; `known` lists its options.
pub fn unexpected_option<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    let message = format!("cuda.jit() got an unexpected option '{name}'");
    if let Some((_, instead)) = OPTIONS.iter().find(|(option, _)| *option == name) {
        return format!("{message}: {instead}");
    }
    match super::closest(name, known) {
        Some(near) => format!("{message}; did you mean '{near}'?"),
        None => message,
    }
}

/// The end of the message for a name that does not exist: "; did you mean …?", ": write …", or nothing.
pub fn hint<'a>(place: NameContext, path: &str, candidates: impl IntoIterator<Item = &'a str>) -> String {
    if let Some(instead) = instead(place, path) {
        return format!(": {instead}");
    }
    let (owner, name) = path.rsplit_once('.').unwrap_or(("", path));
    if super::is_real(owner, name) {
        return String::new();
    }
    super::closest(name, candidates).map(|near| format!("; did you mean `{near}`?")).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_holds_where_it_says() {
        assert!(
            instead(NameContext::Kernel, "weft.cuda.shfl_down").is_some_and(|text| text.contains("shfl_down_sync"))
        );
        assert_eq!(
            instead(NameContext::Kernel, "weft.cuda.shfl_down"),
            instead(NameContext::Host, "weft.cuda.shfl_down")
        );
        assert_eq!(instead(NameContext::Host, "weft.cuda.synchronize"), None);
        assert_eq!(instead(NameContext::Kernel, "weft.njit"), None);
    }

    #[test]
    fn a_module_stands_for_its_names() {
        for path in ["random", "random.random", "numpy.random.rand"] {
            assert_eq!(instead(NameContext::Kernel, path), Some(DRAWS), "{path}");
        }
        assert_eq!(instead(NameContext::Kernel, "randomly"), None);
    }

    #[test]
    fn each_row_is_there_once() {
        for (at, row) in ROWS.iter().enumerate() {
            assert!(ROWS.iter().skip(at + 1).all(|other| other.1 != row.1), "{}", row.1);
        }
    }

    #[test]
    fn a_hint_ends_a_sentence() {
        assert_eq!(hint(NameContext::Host, "weft.cuda.gird", ["grid", "jit"]), "; did you mean `grid`?");
        assert_eq!(hint(NameContext::Host, "weft.cuda.njit", ["jit"]), ": write `cuda.jit`");
        assert_eq!(hint(NameContext::Host, "weft.cuda.elephant", ["grid", "jit"]), "");
    }
}
