//! Allocation and release of device memory, with the fake driver: the cache of freed memory, failing allocations, and
//! memory of other allocators, processes and devices.

mod support;

use std::{
    iter,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
};

use support::{
    config, expect_error, fail_allocations,
    fake::{device, kernel, trace_file, traced, with_driver},
};
use weft_runtime::{
    Allocator, Buffer, Error, ErrorKind, Executor, HostKind, Lent, LoadedKernel, Settings, Stream, cuda,
};

const MIB: u64 = 1 << 20;

fn stream(device: &Arc<dyn Executor>) -> Arc<dyn Stream> {
    device.new_stream().expect("streams are to be had")
}

fn allocate(device: &Arc<dyn Executor>, bytes: u64, stream: Option<&Arc<dyn Stream>>) -> Arc<dyn Buffer> {
    device.allocate(bytes, stream.map(|stream| &**stream)).expect("there is memory")
}

fn free_bytes(device: &Arc<dyn Executor>) -> u64 {
    device.memory_info().expect("the device reports it").0
}

/// Launches a kernel that writes the buffer, and records the use if it is in another stream than the buffer's.
fn launch(
    device: &Arc<dyn Executor>,
    kernel: &dyn LoadedKernel,
    buffer: &Arc<dyn Buffer>,
    stream: Option<&Arc<dyn Stream>>,
) {
    let stream = stream.map(|stream| &**stream);
    kernel.launch(&config([1; 3], [1; 3]), stream, &mut [buffer.address()]).expect("launches");
    if buffer.order().is_some_and(|own| own != stream.map_or(0, Stream::order)) {
        device.note_use(&[Arc::clone(buffer)], stream);
    }
}

fn with_settings(settings: &Settings) -> Arc<dyn Executor> {
    cuda::open(settings, 0).expect("the driver has a device")
}

#[test]
fn memory_that_one_stream_used_costs_no_call_the_next_time() {
    let trace = trace_file("memory_that_one_stream_used_costs_no_call_the_next_time");
    with_driver("memory_that_one_stream_used_costs_no_call_the_next_time", &[("FAKE_TRACE", &trace)], || {
        let device = device();
        let (own, legacy) = (stream(&device), device.external_stream(1).expect("it is there"));
        let first = allocate(&device, MIB, None);
        let address = first.address();
        let calls = traced(|| {
            drop(first);
            for (bytes, stream) in [(MIB, None), (MIB, Some(&legacy)), (MIB - 1000, None)] {
                assert_eq!(allocate(&device, bytes, stream).address(), address);
            }
        });
        assert_eq!(calls, [""; 0]);
        // Other streams and sizes have separate blocks, and so has a second live allocation.
        let others = [(MIB, Some(&own)), (MIB / 2, None), (2 * MIB, None), (MIB, None), (MIB, None)];
        let held: Vec<_> = others.map(|(bytes, stream)| allocate(&device, bytes, stream)).into_iter().collect();
        assert_eq!(held.iter().filter(|other| other.address() == address).count(), 1);
        // Handles of other libraries may be reused for other streams, and the per-thread default stream differs between
        // threads. Their memory is not cached.
        for handle in [0x5550, 2] {
            let theirs = device.external_stream(handle).expect("any handle goes");
            drop(allocate(&device, MIB, Some(&theirs)));
            let calls = traced(|| drop(allocate(&device, MIB, Some(&theirs))));
            assert_eq!(calls, ["cuCtxGetCurrent", "cuMemAllocAsync", "cuCtxGetCurrent", "cuMemFreeAsync"]);
        }
    });
}

#[test]
fn blocks_go_before_their_stream() {
    let trace = trace_file("blocks_go_before_their_stream");
    with_driver("blocks_go_before_their_stream", &[("FAKE_TRACE", &trace)], || {
        let device = device();
        let own = stream(&device);
        let held = [MIB, MIB, 512].map(|bytes| allocate(&device, bytes, Some(&own)));
        drop(allocate(&device, MIB, None));
        let calls = traced(|| {
            // The last buffer keeps the stream alive.
            drop(own);
            drop(held);
        });
        let freed = calls.iter().filter(|call| *call == "cuMemFreeAsync").count();
        assert_eq!((freed, calls.last().map(String::as_str)), (3, Some("cuStreamDestroy_v2")), "{calls:?}");
    });
}

#[test]
fn without_a_pool_nothing_waits_for_other_streams() {
    let trace = trace_file("without_a_pool_nothing_waits_for_other_streams");
    let variables = [("FAKE_TRACE", trace.as_str()), ("FAKE_BUSY", "1")];
    with_driver("without_a_pool_nothing_waits_for_other_streams", &variables, || {
        let device = with_settings(&Settings { memory_pool: false, ..Settings::default() });
        let (sum, new) = (kernel(&device, "sum1", 1), kernel(&device, "new1", 1));
        let (own, other) = (stream(&device), stream(&device));
        let held = allocate(&device, MIB, Some(&own));
        let address = held.address();
        launch(&device, &*sum, &held, Some(&other));
        let calls = traced(|| drop(held));
        assert!(!calls.iter().any(|call| call.contains("Synchronize") || call.contains("Free")), "{calls:?}");
        assert_eq!(device.n_pending(), 1);
        let before = allocate(&device, MIB, Some(&own));
        assert_ne!(before.address(), address);
        device.synchronize_stream(Some(&*other)).expect("waits");
        device.synchronize_stream(Some(&*own)).expect("waits");
        let mut again = None;
        let calls = traced(|| again = Some(allocate(&device, MIB, Some(&own))));
        let again = again.expect("it was set");
        assert_eq!((again.address(), device.n_pending()), (address, 0));
        assert!(!calls.contains(&"cuMemAlloc_v2".to_owned()), "{calls:?}");
        launch(&device, &*new, &again, Some(&own));
    });
}

#[test]
fn a_stream_of_a_device_that_is_opened_twice_keeps_nothing_for_the_other() {
    let trace = trace_file("a_stream_of_a_device_that_is_opened_twice_keeps_nothing_for_the_other");
    let variables = [("FAKE_TRACE", trace.as_str())];
    with_driver("a_stream_of_a_device_that_is_opened_twice_keeps_nothing_for_the_other", &variables, || {
        let again = device();
        let device = device();
        let own = stream(&again);
        let held = allocate(&device, MIB, Some(&own));
        assert_eq!(traced(|| drop(held)), ["cuCtxGetCurrent", "cuMemFreeAsync"]);
    });
}

#[test]
fn no_more_is_kept_than_a_setting_says() {
    let trace = trace_file("no_more_is_kept_than_a_setting_says");
    with_driver("no_more_is_kept_than_a_setting_says", &[("FAKE_TRACE", &trace)], || {
        let freed = |bytes: &[u64], cache| {
            let device = with_settings(&Settings { memory_cache: cache, ..Settings::default() });
            let held: Vec<_> = bytes.iter().map(|bytes| allocate(&device, *bytes, None)).collect();
            traced(|| drop(held)).iter().filter(|call| *call == "cuMemFreeAsync").count()
        };
        assert_eq!(freed(&[MIB; 3], Some(3 * MIB)), 0);
        // All cached blocks are freed for a size that was never requested.
        assert_eq!(freed(&[MIB; 4], Some(3 * MIB)), 3);
        assert_eq!(freed(&[MIB, 4 * MIB], Some(3 * MIB)), 1);
        assert_eq!(freed(&[MIB, 1], Some(0)), 2);
        // The cache holds at most 1/16 of the device's 1 GiB, and no block of that size or more.
        assert_eq!(freed(&[16 * MIB; 4], None), 0);
        assert_eq!(freed(&[16 * MIB; 5], None), 4);
        assert_eq!(freed(&[65 * MIB], None), 1);
    });
}

#[test]
fn what_is_kept_is_free() {
    with_driver("what_is_kept_is_free", &[], || {
        let device = device();
        let before = free_bytes(&device);
        let held = allocate(&device, 3 * MIB, None);
        assert_eq!(before - free_bytes(&device), 3 * MIB);
        drop(held);
        assert_eq!(free_bytes(&device), before);
        device.free_pending().expect("waits");
        assert_eq!(free_bytes(&device), before);
        // An allocation can use all of this memory.
        drop((allocate(&device, MIB, None), allocate(&device, 2 * MIB, Some(&stream(&device)))));
        drop(allocate(&device, before, None));
    });
}

/// The fake driver aborts the process if memory is freed or reused while earlier work may still use it.
#[test]
fn buffers_of_several_streams_in_every_order() {
    with_driver("buffers_of_several_streams_in_every_order", &[("FAKE_BUSY", "1")], || {
        for settings in [Settings::default(), Settings { memory_pool: false, ..Settings::default() }] {
            let device = with_settings(&settings);
            let (sum, new) = (kernel(&device, "sum1", 1), kernel(&device, "new1", 1));
            let streams = [None, Some(stream(&device)), Some(stream(&device))];
            let pairs: Vec<_> = (0..9).map(|i| (&streams[i / 3], &streams[i % 3])).collect();
            for sequence in 0..9_usize.pow(3) * 8 {
                if sequence % 5 == 0 {
                    // Memory that waits for the end of its uses is then allocated again.
                    device.synchronize().expect("waits");
                }
                let mut held = Vec::new();
                for step in 0..3 {
                    let (own, other) = pairs[sequence / 8 / 9_usize.pow(step) % 9];
                    let buffer = allocate(&device, 64, own.as_ref());
                    launch(&device, &*new, &buffer, own.as_ref());
                    launch(&device, &*sum, &buffer, other.as_ref());
                    held.push(buffer);
                    // The oldest or the newest buffer is freed. Before the last iteration, one of them may remain.
                    let oldest = sequence >> step & 1 == 1;
                    if step > 0 || oldest {
                        drop(held.remove(if oldest { 0 } else { held.len() - 1 }));
                    }
                }
            }
        }
    });
}

/// Allocates in all ways, and returns the errors.
fn allocations(device: &Arc<dyn Executor>) -> Vec<Error> {
    let (sum, own) = (kernel(device, "sum1", 1), stream(device));
    let mut held = Vec::new();
    let mut errors = Vec::new();
    for (bytes, stream) in [(MIB, None), (100, Some(&own)), (MIB, Some(&own)), (70 * MIB, None), (100, None)] {
        match device.allocate(bytes, stream.map(|stream| &**stream)) {
            Ok(buffer) => {
                launch(device, &*sum, &buffer, None);
                held.push(buffer);
            }
            Err(error) => errors.push(error),
        }
        if held.len() > 2 {
            held.remove(0);
        }
    }
    errors.extend(device.allocate_shareable(MIB).err());
    errors.extend(device.allocate_host(100, HostKind::PageLocked).err());
    errors.extend(device.allocate_host(100, HostKind::Managed { attach_global: true }).err());
    errors
}

#[test]
fn out_of_memory_at_every_allocation_in_turn() {
    let trace = trace_file("out_of_memory_at_every_allocation_in_turn");
    let variables = [("FAKE_TRACE", trace.as_str()), ("FAKE_BUSY", "1")];
    with_driver("out_of_memory_at_every_allocation_in_turn", &variables, || {
        for settings in [Settings::default(), Settings { memory_pool: false, ..Settings::default() }] {
            let device = with_settings(&settings);
            let count = |calls: &[String]| {
                calls.iter().filter(|call| call.starts_with("cuMemAlloc") || *call == "cuMemHostAlloc").count()
            };
            device.free_pending().expect("waits");
            let free = free_bytes(&device);
            let mut n_allocations = 0;
            let calls = traced(|| assert_eq!(allocations(&device), []));
            assert!(count(&calls) >= 7, "{calls:?}");
            for at in 1.. {
                device.free_pending().expect("waits");
                // After one failure the cache is freed, and the allocation succeeds.
                fail_allocations(at, 1);
                let calls = traced(|| assert_eq!(allocations(&device), [], "{at}"));
                let tried = count(&calls) as i32;
                device.free_pending().expect("waits");
                // Two failures: only this allocation fails, and no memory leaks.
                fail_allocations(at, 2);
                let errors = allocations(&device);
                fail_allocations(0, 0);
                if at > tried {
                    assert_eq!(errors, []);
                    break;
                }
                n_allocations += 1;
                let [error] = &errors[..] else { panic!("{at}: {errors:?}") };
                assert_eq!((error.kind, error.driver_code), (ErrorKind::Memory, Some(2)), "{error}");
                device.free_pending().expect("waits");
                assert_eq!(free_bytes(&device), free, "{at}");
            }
            assert!(n_allocations >= 7, "{n_allocations}");
        }
    });
}

#[test]
fn a_second_try_waits_and_trims() {
    let trace = trace_file("a_second_try_waits_and_trims");
    with_driver("a_second_try_waits_and_trims", &[("FAKE_TRACE", &trace)], || {
        let device = device();
        drop(allocate(&device, MIB, None));
        fail_allocations(1, 1);
        let calls = traced(|| drop(allocate(&device, 2 * MIB, None)));
        let expected = ["cuMemAllocAsync", "cuMemFreeAsync", "cuCtxSynchronize", "cuMemPoolTrimTo", "cuMemAllocAsync"];
        let calls: Vec<_> = calls.iter().filter(|call| *call != "cuCtxGetCurrent").collect();
        assert_eq!(calls, expected);
        // A call that fails for another reason is not retried.
        let error = expect_error(device.open_shared(&[0; 64], 8));
        assert_eq!((error.kind, error.driver_code), (ErrorKind::Driver, Some(1)));
    });
}

/// Memory of the test's allocator.
#[derive(Debug)]
struct TestMemory {
    memory: Vec<u64>,
    n_live: Arc<AtomicUsize>,
}

impl Lent for TestMemory {
    fn address(&self) -> u64 {
        self.memory.as_ptr().expose_provenance() as u64
    }
}

impl Drop for TestMemory {
    fn drop(&mut self) {
        self.n_live.fetch_sub(1, Ordering::Relaxed);
    }
}

#[derive(Debug, Default)]
struct Giver {
    n_live: Arc<AtomicUsize>,
    sizes: Mutex<Vec<u64>>,
    most: Option<usize>,
}

impl Allocator for Giver {
    fn allocate(&self, bytes: u64) -> Result<Box<dyn Lent>, Error> {
        self.sizes.lock().expect("no test panics with it").push(bytes);
        if self.most.is_some_and(|most| self.n_live.load(Ordering::Relaxed) >= most) {
            return Err(Error::new(ErrorKind::Allocator, "no more"));
        }
        self.n_live.fetch_add(1, Ordering::Relaxed);
        let memory = vec![0; bytes.div_ceil(8) as usize];
        Ok(Box::new(TestMemory { memory, n_live: Arc::clone(&self.n_live) }))
    }
}

#[test]
fn memory_of_an_allocator_goes_back_behind_the_work_that_uses_it() {
    let trace = trace_file("memory_of_an_allocator_goes_back_behind_the_work_that_uses_it");
    let variables = [("FAKE_TRACE", trace.as_str()), ("FAKE_BUSY", "1")];
    with_driver("memory_of_an_allocator_goes_back_behind_the_work_that_uses_it", &variables, || {
        let device = device();
        let giver = Arc::new(Giver::default());
        let of_weft = allocate(&device, 64, None);
        device.set_allocator(Some(Arc::clone(&giver) as Arc<dyn Allocator>));
        let n_live = || giver.n_live.load(Ordering::Relaxed);
        let sum = kernel(&device, "sum1", 1);
        let (own, other, theirs) =
            (stream(&device), stream(&device), device.external_stream(0x5550).expect("any handle goes"));
        device.synchronize().expect("waits");
        let calls = traced(|| drop(allocate(&device, 100, None)));
        assert!(!calls.iter().any(|call| call.starts_with("cuMem")), "{calls:?}");
        assert_eq!((n_live(), device.n_pending()), (0, 0));
        assert_eq!(allocate(&device, 0, None).address(), 0);
        for used in [None, Some(&own), Some(&other), Some(&theirs)] {
            let held = allocate(&device, 64, Some(&own));
            launch(&device, &*sum, &held, Some(&own));
            launch(&device, &*sum, &held, used);
            drop(held);
            assert_eq!((n_live(), device.n_pending()), (1, 1), "{used:?}");
            // The next allocation detects that the work is done.
            device.synchronize().expect("waits");
            assert_eq!(n_live(), 1);
            drop(allocate(&device, 8, None));
            assert_eq!((n_live(), device.n_pending()), (0, 0));
        }
        let held = allocate(&device, 64, None);
        launch(&device, &*sum, &held, Some(&other));
        drop(held);
        assert_eq!(n_live(), 1);
        device.free_pending().expect("waits");
        assert_eq!((n_live(), device.n_pending()), (0, 0));
        assert_eq!(*giver.sizes.lock().expect("no test panics with it"), [100, 64, 8, 64, 8, 64, 8, 64, 8, 64]);
        // Each buffer returns to its own allocator.
        device.set_allocator(None);
        assert!(traced(|| drop(allocate(&device, 70 * MIB, None))).contains(&"cuMemFreeAsync".to_owned()));
        drop(of_weft);
    });
}

#[test]
fn memory_of_an_allocator_in_the_default_stream_of_another_thread() {
    let test = "memory_of_an_allocator_in_the_default_stream_of_another_thread";
    with_driver(test, &[("FAKE_BUSY", "1")], || {
        let device = device();
        let giver = Arc::new(Giver::default());
        device.set_allocator(Some(Arc::clone(&giver) as Arc<dyn Allocator>));
        let sum = kernel(&device, "sum1", 1);
        let own = device.external_stream(2).expect("it is there");
        let held = std::thread::scope(|scope| {
            let made = scope.spawn(|| {
                let held = allocate(&device, 64, Some(&own));
                launch(&device, &*sum, &held, Some(&own));
                held
            });
            made.join().expect("it does not panic")
        });
        // Other threads cannot name that stream, so all work is waited for.
        drop(held);
        assert_eq!((giver.n_live.load(Ordering::Relaxed), device.n_pending()), (0, 0));
    });
}

#[test]
fn an_allocator_without_memory_gets_back_what_waits() {
    with_driver("an_allocator_without_memory_gets_back_what_waits", &[("FAKE_BUSY", "1")], || {
        let device = device();
        let giver = Arc::new(Giver { most: Some(1), ..Giver::default() });
        device.set_allocator(Some(Arc::clone(&giver) as Arc<dyn Allocator>));
        let sum = kernel(&device, "sum1", 1);
        for _ in 0..3 {
            let held = allocate(&device, 64, None);
            launch(&device, &*sum, &held, None);
        }
        let held = allocate(&device, 64, None);
        let error = expect_error(device.allocate(64, None));
        assert_eq!((error.kind, error.message.as_str()), (ErrorKind::Allocator, "no more"));
        drop(held);
    });
}

#[test]
fn memory_for_other_processes() {
    let trace = trace_file("memory_for_other_processes");
    let folder = env!("CARGO_TARGET_TMPDIR");
    let variables = [("FAKE_TRACE", trace.as_str()), ("FAKE_SHARED", folder)];
    with_driver("memory_for_other_processes", &variables, || {
        let pooled = device();
        let held = allocate(&pooled, 64, None);
        let error = expect_error(pooled.share(held.address()));
        assert_eq!((error.kind, error.driver_code), (ErrorKind::Driver, Some(801)));
        assert!(error.message.contains("WEFT_MEMORY_POOL=0"), "{error}");
        assert_eq!(expect_error(pooled.share(8)).driver_code, Some(500));

        let plain = with_settings(&Settings { memory_pool: false, ..Settings::default() });
        for held in [allocate(&plain, 64, None), pooled.allocate_shareable(64).expect("there is memory")] {
            let (base, bytes) = plain.extents_of(held.address() + 60).expect("it is known");
            assert_eq!(base, held.address());
            let shared = plain.share(held.address() + 60).expect("it can be shared");
            assert_eq!((shared.base, shared.bytes), (base, bytes));
            // The exporting process cannot open its own memory.
            assert_eq!(expect_error(plain.open_shared(&shared.handle, 64)).driver_code, Some(201));
            // Other processes may still use the memory, so it is not reused.
            let calls = traced(|| drop(held));
            assert_eq!(calls, ["cuCtxGetCurrent", "cuCtxSynchronize", "cuMemFree_v2"]);
        }
        // Without a pool, unshared memory is cached too.
        let held = allocate(&plain, 64, None);
        assert_eq!(traced(|| drop(held)), [""; 0]);
    });
}

#[test]
fn memory_of_other_devices() {
    let trace = trace_file("memory_of_other_devices");
    let variables = [("FAKE_TRACE", trace.as_str()), ("FAKE_PEERS", "1")];
    with_driver("memory_of_other_devices", &variables, || {
        let device = device();
        let reached: Vec<_> = [0, 1].map(|peer| device.can_access_peer(peer).expect("there is one")).into();
        assert_eq!(reached, [false, true]);
        assert_eq!(expect_error(device.can_access_peer(7)).kind, ErrorKind::Value);
        let calls = traced(|| device.enable_peer_access(1).expect("it is reached"));
        // This device gets access to the memory pool of the other device.
        assert!(calls.contains(&"cuMemPoolSetAccess 1 0".to_owned()), "{calls:?}");
        assert_eq!(expect_error(device.enable_peer_access(1)).driver_code, Some(704));
    });
}

#[test]
fn several_threads_allocate_in_one_stream() {
    with_driver("several_threads_allocate_in_one_stream", &[], || {
        let device = &device();
        let own = &stream(device);
        let new = &*kernel(device, "new1", 1);
        std::thread::scope(|scope| {
            for own in iter::repeat_n([None, Some(own)], 4).flatten() {
                scope.spawn(move || {
                    for bytes in (0..200).map(|i| 64 << (i % 5)) {
                        let held = allocate(device, bytes, own);
                        launch(device, new, &held, own);
                    }
                });
            }
        });
    });
}
