//! The CPU executor as a device: attributes, memory, streams, events and module loading.

mod support;

use std::{sync::Arc, thread, time::Duration};

use support::{AddressLoader, artifact, cpu, cpu_with, expect_error, probe};
use weft_artifact::{Artifact, CodeFormat, HostContext, HostEntry};
use weft_runtime::{ErrorKind, Event, Executor, Settings, Stream, cpu};

extern "C" fn nothing(_context: *mut HostContext) {}

#[test]
fn it_answers_like_a_device() {
    let device = cpu_with(3);
    assert_eq!((device.kind(), device.target().as_str(), device.device_count()), ("cpu", "host", 1));
    let attributes = device.attributes();
    assert_eq!((attributes.id, attributes.multiprocessor_count, attributes.warp_size), (0, 3, 32));
    assert_eq!((attributes.compute_capability, attributes.driver_version), ((9, 0), (0, 0)));
    assert_eq!((attributes.max_threads_per_block, attributes.max_block_dim), (1024, [1024, 1024, 64]));
    let (free, total) = device.memory_info().expect("the system reports it");
    assert!(free > 0 && free <= total && total == attributes.total_memory, "{free} of {total}");
    let settings = Settings { cpu_compute_capability: (8, 6), ..Settings::default() };
    let older = cpu::open(&settings, Arc::new(AddressLoader)).expect("the settings are good");
    assert_eq!(older.attributes().compute_capability, (8, 6));
    assert_eq!(older.attributes().max_shared_memory_per_block_optin, 99 << 10);
}

#[test]
fn memory_goes_there_and_back() {
    let device = cpu();
    let stream = device.new_stream().expect("streams are to be had");
    for stream in [None, Some(&*stream)] {
        for bytes in [1_u64, 63, 64, 4097, 100_000, (5 << 20) + 3] {
            let data: Vec<u8> = (0..bytes).map(|i| (i * 7 % 251) as u8).collect();
            let left = device.allocate(bytes, stream).expect("there is memory");
            let right = device.allocate(bytes, stream).expect("there is memory");
            assert_eq!((left.len(), left.is_empty(), left.address() % 64), (bytes, false, 0));
            device.copy_to_device(left.address(), &data, stream).expect("copies");
            device.fill(right.address(), 9, bytes, stream).expect("fills");
            device.copy_on_device(right.address(), left.address() + 1, bytes - 1, stream).expect("copies");
            let mut back = vec![0; bytes as usize];
            device.copy_to_host(&mut back, right.address(), stream).expect("copies");
            assert_eq!(back.split_last(), Some((&9, &data[1..])));
        }
    }
}

#[test]
fn nothing_is_a_buffer_too() {
    let device = cpu();
    let empty = device.allocate(0, None).expect("nothing is always to be had");
    assert_eq!((empty.address(), empty.len(), empty.is_empty()), (0, 0, true));
    device.copy_to_device(0, &[], None).expect("nothing to do");
    device.copy_to_host(&mut [], 0, None).expect("nothing to do");
    device.copy_on_device(0, 0, 0, None).expect("nothing to do");
    device.fill(0, 1, 0, None).expect("nothing to do");
    for error in [
        expect_error(device.copy_to_device(0, &[1], None)),
        expect_error(device.copy_to_host(&mut [1], 0, None)),
        expect_error(device.fill(0, 1, 1, None)),
    ] {
        assert_eq!(error.kind, ErrorKind::Value);
    }
}

#[test]
fn too_much_memory_is_an_error_with_figures() {
    let device = cpu();
    let bytes = 1 << 60;
    let error = expect_error(device.allocate(bytes, None));
    assert_eq!(error.kind, ErrorKind::Memory);
    let start = format!("cannot allocate 1.0 EiB ({bytes} bytes): this machine has ");
    assert!(error.message.starts_with(&start), "{error}");
    assert_eq!(expect_error(device.allocate(u64::MAX, None)).kind, ErrorKind::Memory);
}

#[test]
fn events_are_times() {
    let device = cpu();
    let stream = device.new_stream().expect("streams are to be had");
    let (start, end) = (device.new_event(true).expect("is to be had"), device.new_event(true).expect("is to be had"));
    let error = expect_error(device.elapsed_ms(&*start, &*end));
    assert_eq!(error.kind, ErrorKind::Event);
    assert!(error.message.contains("was not recorded"), "{error}");
    device.record(&*start, Some(&*stream)).expect("records");
    thread::sleep(Duration::from_millis(3));
    device.record(&*end, None).expect("records");
    let ms = device.elapsed_ms(&*start, &*end).expect("both are recorded");
    assert!((3.0..3000.0).contains(&ms), "{ms}");
    assert_eq!(device.elapsed_ms(&*end, &*start), Ok(-ms));
    assert_eq!(device.elapsed_ms(&*start, &*start), Ok(0.0));
    device.wait_event(Some(&*stream), &*end).expect("it is over");
    device.synchronize_event(&*end).expect("it is over");
    device.synchronize_stream(Some(&*stream)).expect("it is over");
    device.synchronize().expect("it is over");
    assert_eq!((device.query_event(&*end), device.query_stream(Some(&*stream))), (Ok(true), Ok(true)));
}

#[test]
fn streams_have_names() {
    let device = cpu();
    let (first, second) = (device.new_stream().expect("is to be had"), device.new_stream().expect("is to be had"));
    assert_ne!(first.handle(), second.handle());
    assert_ne!(first.handle(), 0);
    assert_eq!(device.external_stream(2).expect("any handle goes").handle(), 2);
}

#[test]
fn what_is_anothers_is_refused() {
    #[derive(Debug)]
    struct Other;
    impl Stream for Other {
        fn handle(&self) -> u64 {
            1
        }
        fn order(&self) -> u64 {
            9
        }

        fn as_any(&self) -> &dyn std::any::Any {
            self
        }
    }
    impl Event for Other {
        fn as_any(&self) -> &dyn std::any::Any {
            self
        }
    }
    let device = cpu();
    for error in [
        expect_error(device.allocate(1, Some(&Other))),
        expect_error(device.synchronize_stream(Some(&Other))),
        expect_error(device.synchronize_event(&Other)),
    ] {
        assert_eq!(error.kind, ErrorKind::Value);
        assert!(error.message.contains("belongs to another kind of device than the CPU"), "{error}");
    }
}

#[test]
fn code_that_does_not_fit_is_refused() {
    let device: Arc<dyn Executor> = cpu();
    let good = artifact(nothing, probe(0, 64, 0));
    let ptx = Artifact { format: CodeFormat::Ptx, target: "sm_90".into(), ..good.clone() };
    let error = expect_error(device.load(&ptx));
    assert_eq!((error.kind, error.message.as_str()), (ErrorKind::Value, "code for sm_90 cannot be loaded on the CPU"));
    let broken = Artifact { code: vec![1, 2, 3], ..good.clone() };
    assert_eq!(expect_error(device.load(&broken)).message, "the compiled code cannot be loaded: this is no object");

    let module = device.load(&good).expect("the loader takes it");
    let kernel = probe(0, 64, 0);
    module.kernel(&kernel).expect("it is there");
    let mut other = kernel.clone();
    other.symbol = "other_symbol".into();
    let mut bare = kernel.clone();
    bare.host = None;
    let mut crooked = kernel;
    crooked.host = Some(HostEntry {
        stack_bytes: None,
        call_bytes: 0,
        below_bytes: 0,
        dynamic_offset: 100,
        x_axis: 0,
        may_split_blocks: false,
        calls_runtime: false,
    });
    for (kernel, what) in [
        (other, "its symbol other_symbol is not in the code"),
        (bare, "its layout is missing"),
        (crooked, "its dynamic shared memory is not aligned"),
    ] {
        let error = expect_error(module.kernel(&kernel));
        assert_eq!(error.kind, ErrorKind::Internal);
        assert_eq!(error.message, format!("kernel `probe` cannot be launched on the CPU: {what}"));
    }
}

#[test]
fn freed_memory_is_used_again() {
    let device = cpu();
    let buffer = device.allocate(7 << 20, None).expect("there is memory");
    let address = buffer.address();
    let clone = Arc::clone(&buffer);
    drop(buffer);
    let other = device.allocate(7 << 20, None).expect("there is memory");
    assert_ne!(other.address(), address, "someone still has it");
    drop(clone);
    let again = device.allocate((7 << 20) - 100, None).expect("there is memory");
    assert_eq!((again.address(), again.len()), (address, (7 << 20) - 100));
    drop(device);
    device_memory_outlives_the_device(&*again);
}

fn device_memory_outlives_the_device(buffer: &dyn weft_runtime::Buffer) {
    let other = cpu();
    let mut back = vec![0; buffer.len() as usize];
    other.fill(buffer.address(), 3, buffer.len(), None).expect("fills");
    other.copy_to_host(&mut back, buffer.address(), None).expect("copies");
    assert!(back == vec![3; back.len()]);
}

#[cfg(target_os = "linux")]
#[test]
fn a_forked_process_has_memory_and_copies() {
    let device = cpu_with(3);
    let data = vec![5; 9 << 20];
    let keep_one = || {
        let buffer = device.allocate(9 << 20, None).expect("there is memory");
        device.copy_to_device(buffer.address(), &data, None).expect("copies");
        let mut back = vec![0; 9 << 20];
        device.copy_to_host(&mut back, buffer.address(), None).expect("copies");
        assert!(back == data);
        buffer.address()
    };
    let address = keep_one();
    assert!(support::in_fork(|| keep_one() == address));
    assert_eq!(keep_one(), address);
}
