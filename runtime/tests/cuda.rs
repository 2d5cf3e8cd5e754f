//! Tests the CUDA executor without a GPU. Each test runs in its own process, with the fake driver (`fake_driver/`) or
//! without any driver, to provoke errors that do not occur on healthy machines.

mod support;

use std::{
    env, fs,
    path::{Path, PathBuf},
    thread,
};

use support::{
    config, expect_error,
    fake::{CHILD, build_driver, device, in_process, kernel, named, ptx, trace_file, traced, with_driver},
};
use weft_artifact::{Artifact, CodeFormat, Kernel, SlotType};
use weft_runtime::{BlockSize, ErrorKind, LaunchConfig, Settings, best_block, cuda};

/// A folder that hides the machine's driver: its files are not valid libraries.
fn no_driver() -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("no-driver");
    if env::var(CHILD).is_err() {
        fs::create_dir_all(&folder).expect("the target folder can be written");
        for name in ["libcuda.so", "libcuda.so.1"] {
            fs::write(folder.join(name), "this is no library, whatever its name says").expect("as above");
        }
    }
    folder
}

/// The error of opening a device.
fn refusal() -> String {
    let error = expect_error(cuda::open(&Settings::default(), 0));
    assert_eq!(error.kind, ErrorKind::NoDevice);
    assert_eq!(cuda::why_none(), Some(error.clone()));
    assert_eq!(cuda::device_count(), 0);
    error.message
}

#[test]
fn without_a_driver_there_is_an_answer() {
    in_process("without_a_driver_there_is_an_answer", &no_driver(), &[], || {
        assert_eq!(
            refusal(),
            "no CUDA driver: libcuda.so was not found (it comes with NVIDIA's driver, not with the CUDA toolkit)"
        );
    });
}

#[test]
fn a_driver_without_devices_says_so() {
    let variables = [("FAKE_INIT", "100"), ("CUDA_VISIBLE_DEVICES", "7")];
    with_driver("a_driver_without_devices_says_so", &variables, || {
        assert_eq!(
            refusal(),
            "the CUDA driver found no device: cuInit failed: CUDA_ERROR_NO_DEVICE (no CUDA-capable device is detected) \
             (CUDA_VISIBLE_DEVICES is \"7\")"
        );
    });
}

#[test]
fn no_devices_without_an_error_is_the_same() {
    let variables = [("FAKE_DEVICES", "0"), ("CUDA_VISIBLE_DEVICES", "")];
    with_driver("no_devices_without_an_error_is_the_same", &variables, || {
        assert_eq!(refusal(), "the CUDA driver found no device (CUDA_VISIBLE_DEVICES is \"\")");
    });
}

#[test]
fn a_stub_library_is_named() {
    with_driver("a_stub_library_is_named", &[("FAKE_INIT", "34")], || {
        assert!(refusal().starts_with(
            "cuInit failed: CUDA_ERROR_STUB_LIBRARY (CUDA driver is a stub library): this libcuda.so is a stub for linking"
        ));
    });
}

#[test]
fn an_error_that_the_driver_cannot_name_is_a_number() {
    with_driver("an_error_that_the_driver_cannot_name_is_a_number", &[("FAKE_INIT", "4242")], || {
        assert!(refusal().starts_with("the CUDA driver does not start: cuInit failed: error 4242"));
    });
}

#[test]
fn an_old_driver_is_told_apart() {
    with_driver("an_old_driver_is_told_apart", &[("FAKE_VERSION", "10020")], || {
        assert!(refusal().starts_with(
            "the CUDA driver is too old: it is for CUDA 10.2; weft needs a driver for CUDA 11.4 or newer"
        ));
    });
}

#[test]
fn a_driver_that_lacks_a_function_is_an_answer() {
    let built = build_driver("fake-driver-without-pools", &["-DWITHOUT_POOLS"]);
    in_process("a_driver_that_lacks_a_function_is_an_answer", &built, &[], || {
        assert!(refusal().starts_with("the CUDA driver is too old: it has no cuMemAllocAsync; weft needs"));
    });
}

#[test]
fn attributes_are_read() {
    with_driver("attributes_are_read", &[], || {
        assert_eq!((cuda::device_count(), cuda::why_none()), (2, None));
        let device = cuda::open(&Settings::default(), 1).expect("there are two");
        assert_eq!((device.kind(), device.target().as_str(), device.device_count()), ("cuda", "sm_90", 2));
        let attributes = device.attributes();
        assert_eq!((attributes.id, attributes.name.as_str()), (1, "Fake GPU 1"));
        assert_eq!((attributes.compute_capability, attributes.driver_version), ((9, 0), (12, 4)));
        assert_eq!(attributes.max_block_dim, [1024, 1024, 64]);
        assert_eq!(attributes.max_grid_dim, [2_147_483_647, 65535, 65535]);
        assert_eq!((attributes.max_threads_per_block, attributes.warp_size), (1024, 32));
        assert_eq!(
            (attributes.max_shared_memory_per_block, attributes.max_shared_memory_per_block_optin),
            (49152, 232_448)
        );
        assert_eq!((attributes.multiprocessor_count, attributes.total_memory), (132, 1 << 30));
        assert_eq!(attributes.pci_bus_id, "0000:01:05.0");
        assert_eq!(attributes.uuid, "GPU-10111213-1415-1617-1819-1a1b1c1d1e1f");
        let error = expect_error(cuda::open(&Settings::default(), 2));
        assert_eq!(error.kind, ErrorKind::NoDevice);
        assert_eq!(error.message, "there is no CUDA device 2: this machine has 2, numbered from 0");
    });
}

#[test]
fn memory_goes_there_and_back() {
    for pools in ["1", "0"] {
        with_driver("memory_goes_there_and_back", &[("FAKE_POOLS", pools)], || {
            let device = device();
            let stream = device.new_stream().expect("streams are to be had");
            for stream in [None, Some(&*stream)] {
                let (left, right) = (device.allocate(6, stream), device.allocate(6, stream));
                let (left, right) = (left.expect("there is memory"), right.expect("there is memory"));
                assert_eq!((left.len(), left.is_empty()), (6, false));
                device.copy_to_device(left.address(), b"abcdef", stream).expect("copies");
                device.fill(right.address(), b'.', 6, stream).expect("fills");
                device.copy_on_device(right.address() + 1, left.address() + 2, 3, stream).expect("copies");
                let mut back = [0; 6];
                device.copy_to_host(&mut back, right.address(), stream).expect("copies");
                assert_eq!(&back, b".cde..");
            }
            assert_eq!(device.memory_info(), Ok((1 << 30, 1 << 30)));
            let empty = device.allocate(0, None).expect("nothing is always to be had");
            assert_eq!((empty.address(), empty.is_empty()), (0, true));
            device.copy_to_device(0, &[], None).expect("nothing to do");
            device.copy_to_host(&mut [], 0, None).expect("nothing to do");
            device.copy_on_device(0, 0, 0, None).expect("nothing to do");
            device.fill(0, 1, 0, None).expect("nothing to do");
        });
    }
}

#[test]
fn too_much_memory_is_an_error_with_figures() {
    with_driver("too_much_memory_is_an_error_with_figures", &[], || {
        let device = device();
        let _held = device.allocate(256 << 20, None).expect("there is enough memory");
        let error = expect_error(device.allocate(1 << 30, None));
        assert_eq!((error.kind, error.driver_code), (ErrorKind::Memory, Some(2)));
        assert_eq!(
            error.message,
            "cannot allocate 1.0 GiB (1073741824 bytes) on Fake GPU 0: cuMemAllocAsync failed: CUDA_ERROR_OUT_OF_MEMORY \
             (out of memory); 768.0 MiB (805306368 bytes) of 1.0 GiB (1073741824 bytes) are free"
        );
    });
}

#[test]
fn host_memory_may_be_reused_after_a_copy() {
    let test = "host_memory_may_be_reused_after_a_copy";
    // A device that reads host memory directly may do so after the call, so the copy is waited for.
    for (hmm, waits) in [("0", false), ("1", true)] {
        let trace = trace_file(test);
        with_driver(test, &[("FAKE_HMM", hmm), ("FAKE_TRACE", &trace)], || {
            let waits = env::var("FAKE_HMM").map_or(waits, |hmm| hmm == "1");
            let device = device();
            let buffer = device.allocate(4, None).expect("there is memory");
            let stream = device.new_stream().expect("streams are to be had");
            let calls = traced(|| device.copy_to_device(buffer.address(), &[1; 4], Some(&*stream)).expect("copies"));
            assert_eq!(calls.contains(&"cuStreamSynchronize".to_owned()), waits, "{calls:?}");
        });
    }
}

#[test]
fn a_launch_passes_every_slot() {
    with_driver("a_launch_passes_every_slot", &[], || {
        let device = device();
        for n_slots in [1, 2, 17, 64, 65, 300] {
            let kernel = kernel(&device, &format!("sum{n_slots}"), n_slots);
            let mut sum = u64::MAX;
            let mut slots: Vec<u64> = (0..n_slots as u64).collect();
            slots[0] = &raw mut sum as u64;
            kernel.launch(&config([3, 2, 1], [32, 4, 1]), None, &mut slots).expect("launches");
            assert_eq!(sum, (0..n_slots as u64).sum());
        }
        // A slot of three cells between two slots of one cell: each parameter's address is that of its first cell.
        let mut long = named("sum3", 3);
        long.slots[1].ty = SlotType::Bytes { size: 17, align: 8 };
        let module = device.load(&ptx("// sum3")).expect("it compiles");
        let mut sum = 0_u64;
        let mut cells = [&raw mut sum as u64, 10, 2000, 3000, 7];
        let kernel_of_long = module.kernel(&long).expect("it is there");
        kernel_of_long.launch(&config([1; 3], [1; 3]), None, &mut cells).expect("launches");
        assert_eq!(sum, 17);
        let kernel = kernel(&device, "sum1", 1);
        let facts = (kernel.max_threads_per_block(), kernel.shared_bytes(), kernel.const_bytes());
        assert_eq!(facts, (640, 4096, 12));
        assert_eq!((kernel.local_bytes(), kernel.registers()), (24, 96));
    });
}

#[test]
fn a_launch_is_two_calls() {
    let trace = trace_file("a_launch_is_two_calls");
    with_driver("a_launch_is_two_calls", &[("FAKE_TRACE", &trace)], || {
        let mut sum = 0_u64;
        let slots = &mut [&raw mut sum as u64, 7];
        let calls = traced(|| drop(device()));
        assert!(calls.contains(&"cuMemPoolSetAttribute(keep all)".to_owned()), "{calls:?}");
        assert_eq!(calls.last().map(String::as_str), Some("cuDevicePrimaryCtxRelease_v2"));
        let device = device();
        let kernel = kernel(&device, "sum2", 2);
        let launch =
            |shared_bytes| LaunchConfig { grid: [1; 3], block: [64, 1, 1], shared_bytes, cluster: LaunchConfig::ALONE };
        let calls = traced(|| kernel.launch(&launch(0), None, slots).expect("launches"));
        assert_eq!(calls, ["cuCtxGetCurrent", "cuLaunchKernel"]);
        // More than 48 KiB of shared memory requires an attribute of the function, which is set once.
        let calls = traced(|| kernel.launch(&launch(100_000), None, slots).expect("launches"));
        assert_eq!(calls, ["cuCtxGetCurrent", "cuFuncSetAttribute", "cuLaunchKernel"]);
        let calls = traced(|| kernel.launch(&launch(200_000), None, slots).expect("launches"));
        assert_eq!(calls, ["cuCtxGetCurrent", "cuLaunchKernel"]);
        assert_eq!(sum, 7);
        let calls = traced(|| kernel.prefer_shared(50).expect("a percentage"));
        assert_eq!(calls, ["cuCtxGetCurrent", "cuFuncSetAttribute", "cuFuncSetAttribute(carveout 50)"]);
        kernel.prefer_shared(101).expect_err("no percentage");
    });
}

#[test]
fn functions_that_call_themselves_get_a_larger_stack() {
    let trace = trace_file("functions_that_call_themselves");
    with_driver("functions_that_call_themselves_get_a_larger_stack", &[("FAKE_TRACE", &trace)], || {
        let device = device();
        let module = device.load(&ptx("// sum2")).expect("it compiles");
        let limits = |calls_itself| {
            let kernel = Kernel { calls_itself, ..named("sum2", 2) };
            let calls = traced(|| drop(module.kernel(&kernel).expect("it is there")));
            calls.into_iter().filter(|call| call.ends_with("Limit")).collect::<Vec<_>>()
        };
        assert!(limits(false).is_empty());
        assert_eq!(limits(true), ["cuCtxGetLimit", "cuCtxSetLimit"]);
        // A large enough value is preserved.
        assert_eq!(limits(true), ["cuCtxGetLimit"]);
    });
}

#[test]
fn a_cooperative_launch_that_does_not_fit_says_what_fits() {
    let trace = trace_file("a_cooperative_launch");
    with_driver("a_cooperative_launch_that_does_not_fit_says_what_fits", &[("FAKE_TRACE", &trace)], || {
        let device = device();
        let module = device.load(&ptx("// sum2")).expect("it compiles");
        let kernel = module.kernel(&Kernel { cooperative: true, ..named("sum2", 2) }).expect("it is there");
        let launch = |blocks| LaunchConfig {
            grid: [blocks, 1, 1],
            block: [32, 1, 1],
            shared_bytes: 0,
            cluster: LaunchConfig::ALONE,
        };
        let mut sum = 0_u64;
        let slots = &mut [&raw mut sum as u64, 7];
        let calls = traced(|| kernel.launch(&launch(8), None, slots).expect("launches"));
        assert!(calls.contains(&"cuLaunchCooperativeKernel".to_owned()), "{calls:?}");
        assert_eq!(sum, 7);
        let most = kernel.most_blocks_at_once(32, 0).expect("it says so");
        assert_eq!(most, 21 * u64::from(device.attributes().multiprocessor_count));
        let error = expect_error(kernel.launch(&launch(9), None, slots));
        assert_eq!(error.kind, ErrorKind::Launch);
        assert!(error.message.contains(&format!("can run {most} of this size")), "{}", error.message);
    });
}

#[test]
fn blocks_fill_a_multiprocessor_as_their_registers_and_shared_memory_let_them() {
    let trace = trace_file("blocks_fill_a_multiprocessor");
    let name = "blocks_fill_a_multiprocessor_as_their_registers_and_shared_memory_let_them";
    with_driver(name, &[("FAKE_TRACE", &trace)], || {
        let device = device();
        let kernel = kernel(&device, "sum2", 2);
        let active = |threads, shared| kernel.active_blocks(threads, shared).expect("it says so");
        // A thread uses 96 registers, of 65536 per multiprocessor.
        assert_eq!([active(32, 0), active(224, 0), active(640, 0)], [21, 3, 1]);
        assert_eq!([active(0, 0), active(641, 0)], [0, 0]);
        assert_eq!([active(32, 100_000), active(32, 220_000), active(32, 240_000)], [2, 1, 0]);
        let best = |shared| {
            best_block(device.attributes(), 640, |threads| kernel.active_blocks(threads, shared)).expect("it says so")
        };
        assert_eq!(best(0), BlockSize { threads: 224, grid: 3 * 132 });
        assert_eq!(best(100_000), BlockSize { threads: 640, grid: 132 });
        assert_eq!(best(300_000), BlockSize { threads: 0, grid: 0 });
        // Registers limit a multiprocessor to 672 threads. Blocks of 256 threads would use only 512 of them.
        assert_eq!(kernel.good_block(0).expect("it says so"), 224);
        assert_eq!(traced(|| assert_eq!(kernel.good_block(0), Ok(224))), Vec::<String>::new());
        assert_eq!(kernel.good_block(220_000).expect("it says so"), 640);
        assert_eq!(kernel.good_block(300_000).expect("it says so"), 256);
    });
}

#[test]
fn clusters_are_launched_and_checked() {
    let trace = trace_file("clusters_are_launched");
    with_driver("clusters_are_launched_and_checked", &[("FAKE_TRACE", &trace)], || {
        let device = device();
        let kernel = kernel(&device, "sum2", 2);
        let mut sum = 0_u64;
        let slots = &mut [&raw mut sum as u64, 7];
        let clusters = |grid, cluster| LaunchConfig { cluster, ..config(grid, [32, 1, 1]) };
        let calls = traced(|| kernel.launch(&clusters([8, 2, 1], [4, 2, 1]), None, slots).expect("launches"));
        assert_eq!(calls, ["cuCtxGetCurrent", "cuLaunchKernelEx cluster 4 2 1", "cuLaunchKernel"]);
        assert_eq!(sum, 7);
        // A cluster larger than the portable maximum requires an attribute of the function, which is set once.
        let large = clusters([16, 1, 1], [16, 1, 1]);
        let calls = traced(|| kernel.launch(&large, None, slots).expect("launches"));
        assert!(calls.contains(&"cuFuncSetAttribute".to_owned()), "{calls:?}");
        assert!(
            !traced(|| kernel.launch(&large, None, slots).expect("launches"))
                .contains(&"cuFuncSetAttribute".to_owned())
        );
        for (grid, cluster, expected) in [
            ([6, 1, 1], [4, 1, 1], "grid (6, 1, 1) is not divisible into clusters (4, 1, 1)"),
            ([32, 1, 1], [32, 1, 1], "cluster (32, 1, 1) has 32 blocks; Fake GPU 0 allows 16"),
            ([4, 1, 1], [4, 0, 1], "cluster (4, 0, 1) has no blocks"),
        ] {
            let error = expect_error(kernel.launch(&clusters(grid, cluster), None, slots));
            assert_eq!(error.kind, ErrorKind::Launch);
            assert!(error.message.contains(expected), "{}", error.message);
        }
        let module = device.load(&ptx("// sum2")).expect("it compiles");
        let together = module.kernel(&Kernel { cooperative: true, ..named("sum2", 2) }).expect("it is there");
        let calls = traced(|| together.launch(&clusters([4, 1, 1], [2, 1, 1]), None, slots).expect("launches"));
        assert!(calls.contains(&"cuLaunchKernelEx cluster 2 1 1 cooperative 1".to_owned()), "{calls:?}");
    });
}

#[test]
fn a_device_without_clusters_says_so() {
    with_driver("a_device_without_clusters_says_so", &[("FAKE_CC", "89")], || {
        let device = device();
        let kernel = kernel(&device, "sum2", 2);
        let mut sum = 0_u64;
        let launch = LaunchConfig { cluster: [2, 1, 1], ..config([2, 1, 1], [32, 1, 1]) };
        let error = expect_error(kernel.launch(&launch, None, &mut [&raw mut sum as u64, 7]));
        let expected = "cluster (2, 1, 1): Fake GPU 0 has the compute capability 8.9, and clusters need 9.0 or higher";
        assert!(error.message.contains(expected), "{}", error.message);
    });
}

#[test]
fn another_librarys_context_comes_back() {
    let trace = trace_file("another_librarys_context_comes_back");
    with_driver("another_librarys_context_comes_back", &[("FAKE_TRACE", &trace)], || {
        let first = device();
        let second = cuda::open(&Settings::default(), 1).expect("there are two");
        first.synchronize().expect("nothing to wait for");
        // Between weft's own devices the context is set without restoring it. A new thread has no context yet.
        let calls = traced(|| second.synchronize().expect("nothing to wait for"));
        assert_eq!(calls, ["cuCtxGetCurrent", "cuCtxSetCurrent", "cuCtxSynchronize"]);
        let calls = traced(|| {
            thread::scope(|scope| {
                scope.spawn(|| first.synchronize().expect("nothing to wait for"));
            });
        });
        assert_eq!(calls, ["cuCtxGetCurrent", "cuCtxSetCurrent", "cuCtxSynchronize"]);
        support::make_foreign_context_current();
        let calls = traced(|| first.synchronize().expect("nothing to wait for"));
        assert_eq!(calls, ["cuCtxGetCurrent", "cuCtxPushCurrent_v2", "cuCtxSynchronize", "cuCtxPopCurrent_v2"]);
    });
}

#[test]
fn limits_are_checked_before_the_driver_is_asked() {
    with_driver("limits_are_checked_before_the_driver_is_asked", &[], || {
        let device = device();
        let kernel = kernel(&device, "sum1", 1);
        let launch = |block, shared_bytes| {
            let config = LaunchConfig { grid: [1; 3], block, shared_bytes, cluster: LaunchConfig::ALONE };
            let error = expect_error(kernel.launch(&config, None, &mut [0]));
            assert_eq!(error.kind, ErrorKind::Launch);
            (error.driver_code, error.message)
        };
        // The code is the one that the driver would return.
        let refused = |code, message: &str| (Some(code), message.to_owned());
        assert_eq!(
            launch([2048, 1, 1], 0),
            refused(1, "cannot launch `sum1`: block (2048, 1, 1) has 2048 threads; Fake GPU 0 allows 1024 per block")
        );
        assert_eq!(
            launch([1000, 1, 1], 0),
            refused(
                701,
                "cannot launch `sum1`: block (1000, 1, 1) has 1000 threads; this kernel allows 640 per block on Fake \
                 GPU 0, with 96 registers per thread"
            )
        );
        assert_eq!(launch([660, 1, 1], 0).0, Some(1));
        assert_eq!(
            launch([1, 1, 1], 232_448),
            refused(
                1,
                "cannot launch `sum1`: it needs 236544 bytes of shared memory per block (4096 static and 232448 \
                 dynamic); Fake GPU 0 allows 232448"
            )
        );
    });
}

#[test]
fn a_failed_launch_names_kernel_and_call() {
    with_driver("a_failed_launch_names_kernel_and_call", &[("FAKE_LAUNCH", "701")], || {
        let device = device();
        let error = expect_error(kernel(&device, "sum1", 1).launch(&config([2, 1, 1], [512, 1, 1]), None, &mut [0]));
        assert_eq!((error.kind, error.driver_code), (ErrorKind::Launch, Some(701)));
        assert_eq!(
            error.message,
            "cannot launch `sum1` with grid [2, 1, 1], block [512, 1, 1] and 0 bytes of dynamic shared memory: \
             cuLaunchKernel failed: CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES (too many resources requested for launch). The \
             block needs 96 registers for each of 512 threads; Fake GPU 0 has 65536 registers per block. Use smaller blocks"
        );
    });
}

#[test]
fn a_fault_is_reported_where_it_is_noticed() {
    with_driver("a_fault_is_reported_where_it_is_noticed", &[], || {
        let device = device();
        let event = device.new_event(true).expect("events are to be had");
        let buffer = device.allocate(8, None).expect("there is memory");
        let later = kernel(&device, "sum1", 1);
        kernel(&device, "fault", 1).launch(&config([1; 3], [1; 3]), None, &mut [0]).expect("it is queued");
        let text = |call: &str| {
            format!(
                "invalid memory access: a kernel read or wrote outside its arrays, reported by {call}: \
                 CUDA_ERROR_ILLEGAL_ADDRESS (an illegal memory access was encountered). The CUDA context is lost: \
                 start a new process (the last kernel launched was `fault`)"
            )
        };
        let error = expect_error(device.synchronize());
        assert_eq!((error.kind, error.driver_code), (ErrorKind::Driver, Some(700)));
        assert_eq!(error.message, text("cuCtxSynchronize"));
        let mut back = [0; 8];
        let address = buffer.address();
        assert_eq!(expect_error(device.copy_to_host(&mut back, address, None)).message, text("cuMemcpyDtoH"));
        assert_eq!(expect_error(device.copy_to_device(address, &back, None)).message, text("cuMemcpyHtoD"));
        assert_eq!(expect_error(device.synchronize_stream(None)).message, text("cuStreamSynchronize"));
        assert_eq!(expect_error(device.synchronize_event(&*event)).message, text("cuEventSynchronize"));
        let launched = later.launch(&config([1; 3], [1; 3]), None, &mut [0]);
        assert_eq!(expect_error(launched).message, text("cuLaunchKernel"));
    });
}

#[test]
fn the_jit_log_is_part_of_the_error() {
    with_driver("the_jit_log_is_part_of_the_error", &[], || {
        let device = device();
        let error = expect_error(device.load(&ptx("wrong")));
        assert_eq!((error.kind, error.driver_code), (ErrorKind::Driver, Some(218)));
        let mut lines = error.message.lines();
        assert_eq!(
            lines.next(),
            Some(
                "Fake GPU 0 cannot load code for sm_90: cuModuleLoadDataEx failed: CUDA_ERROR_INVALID_PTX (a PTX JIT \
                 compilation failed)"
            )
        );
        assert_eq!(lines.next(), Some("ptxas application ptx input, line 1; error   : Unknown modifier"));
        assert_eq!(lines.last(), Some("… and 8 more lines"));
        assert_eq!(
            expect_error(device.load(&ptx("newer"))).message,
            "Fake GPU 0 cannot load code for sm_90: cuModuleLoadDataEx failed: CUDA_ERROR_UNSUPPORTED_PTX_VERSION (the \
             provided PTX was compiled with an unsupported toolchain.). The driver is for CUDA 12.4, which is older than \
             this PTX"
        );
    });
}

#[test]
fn code_that_does_not_fit_is_refused() {
    with_driver("code_that_does_not_fit_is_refused", &[], || {
        let device = device();
        let host = Artifact { format: CodeFormat::HostObject, target: "host".into(), ..ptx("") };
        let error = expect_error(device.load(&host));
        assert_eq!(
            (error.kind, error.message.as_str()),
            (ErrorKind::Value, "code for host cannot be loaded on Fake GPU 0")
        );
        let module = device.load(&ptx("// sum1")).expect("it compiles");
        assert_eq!(
            expect_error(module.kernel(&named("other", 0))).message,
            "kernel `other` is not in the loaded code under its symbol other: cuModuleGetFunction failed: \
             CUDA_ERROR_NOT_FOUND (named symbol not found)"
        );
    });
}

#[test]
fn events_and_streams() {
    with_driver("events_and_streams", &[], || {
        let device = device();
        let stream = device.new_stream().expect("streams are to be had");
        let (start, end) =
            (device.new_event(true).expect("is to be had"), device.new_event(true).expect("is to be had"));
        let error = expect_error(device.elapsed_ms(&*start, &*end));
        assert!(error.message.contains("record both events before getting the time between them"), "{error}");
        device.record(&*start, Some(&*stream)).expect("records");
        device.record(&*end, None).expect("records");
        assert_eq!(device.elapsed_ms(&*start, &*end), Ok(1.0));
        assert_eq!(device.query_event(&*end), Ok(true));
        device.wait_event(Some(&*stream), &*end).expect("waits");
        device.synchronize_event(&*end).expect("waits");
        device.synchronize_stream(Some(&*stream)).expect("waits");
        assert_ne!(stream.handle(), 0);
        let busy = device.external_stream(0x77).expect("any handle goes");
        assert_eq!((busy.handle(), device.query_stream(Some(&*busy))), (0x77, Ok(false)));
        assert_eq!(device.query_stream(None), Ok(true));
        let other = support::cpu();
        let (stream, event) = (other.new_stream().expect("is to be had"), other.new_event(true).expect("is to be had"));
        for error in [
            expect_error(device.synchronize_stream(Some(&*stream))),
            expect_error(device.allocate(1, Some(&*stream))),
            expect_error(device.record(&*event, None)),
        ] {
            assert_eq!(error.kind, ErrorKind::Value);
            assert!(error.message.contains("belongs to another kind of device than CUDA"), "{error}");
        }
    });
}

#[test]
#[cfg(target_os = "linux")]
fn a_forked_process_frees_nothing() {
    let trace = trace_file("a_forked_process_frees_nothing");
    with_driver("a_forked_process_frees_nothing", &[("FAKE_TRACE", &trace)], || {
        let device = device();
        let mut held = Some((
            device.allocate(64, None).expect("is to be had"),
            device.new_stream().expect("is to be had"),
            device.new_event(true).expect("is to be had"),
            kernel(&device, "sum1", 1),
            cuda::open(&Settings::default(), 1).expect("there are two"),
        ));
        let calls = traced(|| {
            assert!(support::in_fork(|| {
                drop(held.take());
                true
            }));
        });
        assert!(calls.is_empty(), "{calls:?}");
        assert!(support::in_fork(|| {
            let error = expect_error(device.synchronize());
            error.message.ends_with("use the start method \"spawn\" or \"forkserver\"")
        }));
    });
}
