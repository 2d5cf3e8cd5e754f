//! Copies between the host and a GPU, with the fake driver: several threads copy large arrays through page-locked
//! buffers, and small arrays are packed. The fake driver delays copies of page-locked memory as long as a GPU may.

mod support;

use std::sync::Arc;

use support::{
    fail_allocations,
    fake::{trace_file, traced, with_driver},
};
use weft_runtime::{Executor, Settings, Stream, cuda};

const MIB: usize = 1 << 20;
/// The number of copied bytes that amortizes locking pages.
const MUCH: usize = 256 * MIB;

fn bytes(n: usize, seed: usize) -> Vec<u8> {
    (0..n).map(|i| (i ^ (i >> 8) ^ (i >> 16) ^ seed) as u8).collect()
}

fn device_with(threads: usize) -> Arc<dyn Executor> {
    let settings = Settings { copy_threads: threads.try_into().ok(), ..Settings::default() };
    cuda::open(&settings, 0).expect("the driver has a device")
}

fn count(calls: &[String], name: &str) -> usize {
    calls.iter().filter(|call| *call == name).count()
}

/// Makes the next large copy create page-locked buffers, if there are copy threads.
fn copy_much(device: &Arc<dyn Executor>) {
    let (buffer, source) = (device.allocate(4 * MIB as u64, None).expect("there is memory"), vec![1; 4 * MIB]);
    for _ in 0..MUCH / (4 * MIB) {
        device.copy_to_device(buffer.address(), &source, None).expect("copies");
    }
}

/// Checks a copy to the device and back. The source is overwritten after the first copy.
fn check_round_trip(device: &Arc<dyn Executor>, n: usize, skip: usize, stream: Option<&dyn Stream>) {
    let mut source = bytes(n + skip, n);
    let expected = source[skip..].to_vec();
    let buffer = device.allocate(n as u64, stream).expect("there is memory");
    device.copy_to_device(buffer.address(), &source[skip..], stream).expect("copies");
    source.fill(0);
    let mut back = vec![0xEE; n + skip + 1];
    device.copy_to_host(&mut back[skip..n + skip], buffer.address(), stream).expect("copies");
    assert!(back[skip..n + skip] == expected, "{n} bytes at offset {skip}");
    assert!(back[..skip].iter().chain(&back[n + skip..]).all(|byte| *byte == 0xEE));
}

#[test]
fn threads_share_large_copies() {
    let trace = trace_file("threads_share_large_copies");
    let variables = [("FAKE_LATE", "1"), ("FAKE_TRACE", trace.as_str())];
    with_driver("threads_share_large_copies", &variables, || {
        let device = device_with(3);
        let own = device.new_stream().expect("streams are to be had");
        let theirs = device.external_stream(0x5550).expect("any handle goes");
        // The first copies use the driver, because locking pages takes longer.
        let calls = traced(|| check_round_trip(&device, 8 * MIB, 0, None));
        assert_eq!((count(&calls, "cuMemcpyHtoD_v2"), count(&calls, "cuMemHostAlloc")), (1, 0), "{calls:?}");
        copy_much(&device);
        let mut locked = 0;
        for (n, skip) in [(4 * MIB, 0), (4 * MIB + 1, 4095), (9 * MIB - 7, 63), (33 * MIB + 5, 1)] {
            for stream in [None, Some(&*own)] {
                let calls = traced(|| check_round_trip(&device, n, skip, stream));
                let plain = count(&calls, "cuMemcpyHtoD_v2") + count(&calls, "cuMemcpyDtoH_v2");
                let staged = count(&calls, "cuMemcpyHtoDAsync_v2") + count(&calls, "cuMemcpyDtoHAsync_v2");
                assert!(plain == 0 && staged > 2 * n / (2 * MIB), "{calls:?}");
                locked += count(&calls, "cuMemHostAlloc");
            }
        }
        // Each thread allocates two buffers once. The first large copy has allocated some of them already.
        assert!(locked <= 6, "{locked}");
        // A stream of another library may be in capture mode, and small copies are fast: these use the driver.
        let calls = traced(|| check_round_trip(&device, 9 * MIB, 0, Some(&*theirs)));
        assert_eq!(count(&calls, "cuEventRecord"), 0, "{calls:?}");
        let calls = traced(|| check_round_trip(&device, 4 * MIB - 1, 0, None));
        assert_eq!(count(&calls, "cuMemcpyHtoD_v2"), 1, "{calls:?}");
    });
}

#[test]
fn one_thread_leaves_copies_to_the_driver() {
    let trace = trace_file("one_thread_leaves_copies_to_the_driver");
    with_driver("one_thread_leaves_copies_to_the_driver", &[("FAKE_TRACE", trace.as_str())], || {
        let device = device_with(1);
        copy_much(&device);
        let calls = traced(|| check_round_trip(&device, 9 * MIB, 0, None));
        assert_eq!(count(&calls, "cuMemcpyHtoD_v2"), 1, "{calls:?}");
    });
}

#[test]
fn who_has_the_hosts_page_tables_needs_no_help() {
    let trace = trace_file("who_has_the_hosts_page_tables_needs_no_help");
    let variables = [("FAKE_HMM", "1"), ("FAKE_ATS", "1"), ("FAKE_TRACE", trace.as_str())];
    with_driver("who_has_the_hosts_page_tables_needs_no_help", &variables, || {
        let device = device_with(3);
        copy_much(&device);
        let calls = traced(|| check_round_trip(&device, 9 * MIB, 0, None));
        assert_eq!(count(&calls, "cuMemcpyHtoD_v2"), 1, "{calls:?}");
    });
}

#[test]
fn who_reads_the_hosts_memory_by_faults_has_threads() {
    let trace = trace_file("who_reads_the_hosts_memory_by_faults_has_threads");
    let variables = [("FAKE_HMM", "1"), ("FAKE_LATE", "1"), ("FAKE_TRACE", trace.as_str())];
    with_driver("who_reads_the_hosts_memory_by_faults_has_threads", &variables, || {
        let device = device_with(3);
        copy_much(&device);
        let calls = traced(|| check_round_trip(&device, 9 * MIB, 0, None));
        assert_eq!(count(&calls, "cuMemcpyHtoD_v2"), 0, "{calls:?}");
    });
}

#[test]
fn without_page_locked_memory_the_driver_copies() {
    let trace = trace_file("without_page_locked_memory_the_driver_copies");
    with_driver("without_page_locked_memory_the_driver_copies", &[("FAKE_TRACE", trace.as_str())], || {
        let device = device_with(3);
        let (source, mut back) = (vec![7; 9 * MIB], vec![0; 9 * MIB]);
        let buffer = device.allocate(9 * MIB as u64, None).expect("there is memory");
        let calls = traced(|| {
            fail_allocations(1, i32::MAX);
            for _ in 0..MUCH / (9 * MIB) {
                device.copy_to_device(buffer.address(), &source, None).expect("copies");
            }
            device.copy_to_device(buffer.address(), &source, None).expect("copies");
            device.copy_to_host(&mut back, buffer.address(), None).expect("copies");
        });
        assert!(back == source);
        assert!(count(&calls, "cuMemHostAlloc") > 0, "{calls:?}");
        assert_eq!((count(&calls, "cuMemcpyHtoDAsync_v2"), count(&calls, "cuMemcpyDtoH_v2")), (0, 1), "{calls:?}");
        // A thread that fails to allocate one or both of its buffers takes no part. A thread with two buffers does the
        // copy.
        for first in 1..8 {
            fail_allocations(first, 1);
            check_round_trip(&device, 9 * MIB, 3, None);
        }
    });
}

#[test]
fn several_copies_at_a_time() {
    with_driver("several_copies_at_a_time", &[("FAKE_LATE", "1")], || {
        let device = &device_with(3);
        copy_much(device);
        std::thread::scope(|scope| {
            for i in 0..4 {
                scope.spawn(move || {
                    let own = device.new_stream().expect("streams are to be had");
                    for turn in 0..4 {
                        let stream = (turn % 2 == 0).then_some(&*own);
                        check_round_trip(device, 5 * MIB + i * 1001 + turn, i, stream);
                    }
                });
            }
        });
    });
}

#[test]
fn small_parts_travel_together() {
    let trace = trace_file("small_parts_travel_together");
    let variables = [("FAKE_LATE", "1"), ("FAKE_TRACE", trace.as_str())];
    with_driver("small_parts_travel_together", &variables, || {
        let device = device_with(3);
        let own = device.new_stream().expect("streams are to be had");
        let sizes = [1, 4096, 777, 65536, 12];
        for stream in [None, Some(&*own)] {
            let mut sources: Vec<_> = sizes.iter().map(|n| bytes(*n, *n)).collect();
            let expected = sources.clone();
            let mut size = 0;
            let places: Vec<u64> = sizes
                .iter()
                .map(|n| {
                    let at = size;
                    size += device.room_in_pack(*n as u64).expect("it is small");
                    at
                })
                .collect();
            let buffer = device.allocate(size, stream).expect("there is memory");
            let calls = traced(|| {
                let parts: Vec<_> = places.iter().zip(&sources).map(|(at, part)| (*at, &part[..])).collect();
                device.copy_parts_to_device(buffer.address(), &parts, stream).expect("copies");
            });
            let queued = count(&calls, "cuMemcpyHtoDAsync_v2") + count(&calls, "cuMemcpyHtoD_v2");
            assert_eq!(queued, 1, "{calls:?}");
            for source in &mut sources {
                source.fill(0);
            }
            let mut backs: Vec<_> = sizes.iter().map(|n| vec![0xEE; *n]).collect();
            let calls = traced(|| {
                // The first array is not copied back.
                let parts = places.iter().zip(&mut backs).skip(1);
                let mut parts: Vec<_> = parts.map(|(at, part)| (*at, &mut part[..])).collect();
                device.copy_parts_to_host(&mut parts, buffer.address(), stream).expect("copies");
            });
            assert_eq!(count(&calls, "cuMemcpyDtoHAsync_v2"), 1, "{calls:?}");
            assert_eq!(backs[0], [0xEE]);
            assert!(backs[1..] == expected[1..]);
        }
        // Large or empty arrays are not packed.
        assert_eq!([0, 65537, MIB as u64].map(|n| device.room_in_pack(n)), [None; 3]);
        let large = bytes(MIB, 1);
        let buffer = device.allocate(2 * MIB as u64, None).expect("there is memory");
        let parts = [(0, &large[..]), (MIB as u64, &large[..])];
        let calls = traced(|| device.copy_parts_to_device(buffer.address(), &parts, None).expect("copies"));
        assert_eq!(count(&calls, "cuMemcpyHtoD_v2"), 2, "{calls:?}");
        // Without page-locked memory, small arrays are copied one by one.
        let fresh = device_with(3);
        let parts = [(0, &large[..8]), (8, &large[..8])];
        fresh.copy_parts_to_device(buffer.address(), &parts, None).expect("copies");
        let mut back = [[0; 8]; 2];
        let [one, two] = &mut back;
        fail_allocations(1, i32::MAX);
        let mut parts = [(0, &mut one[..]), (8, &mut two[..])];
        let calls = traced(|| fresh.copy_parts_to_host(&mut parts, buffer.address(), None).expect("copies"));
        assert_eq!(back, [[1, 0, 3, 2, 5, 4, 7, 6]; 2]);
        assert_eq!(count(&calls, "cuMemcpyDtoH_v2"), 2, "{calls:?}");
    });
}
