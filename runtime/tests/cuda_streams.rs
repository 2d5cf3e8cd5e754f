//! Memory that several streams use, over the driver made of C, which ends the process when memory is freed while work that
//! uses it may still be going on.

mod support;

use std::{
    env,
    sync::{Arc, Barrier, mpsc},
    thread,
};

use support::{
    config, expect_error,
    fake::{device, kernel, trace_file, traced, with_driver},
};
use weft_runtime::{Buffer, ErrorKind, Executor, LoadedKernel, Settings, Stream, cuda};

fn buffer(device: &Arc<dyn Executor>, stream: Option<&dyn Stream>) -> Arc<dyn Buffer> {
    device.allocate(64, stream).expect("there is memory")
}

fn stream(device: &Arc<dyn Executor>) -> Arc<dyn Stream> {
    device.new_stream().expect("streams are to be had")
}

/// Launches a kernel that writes the buffer, and says so where it must be said.
fn launch(
    device: &Arc<dyn Executor>,
    kernel: &dyn LoadedKernel,
    buffer: &Arc<dyn Buffer>,
    stream: Option<&dyn Stream>,
) {
    kernel.launch(&config([1; 3], [1; 3]), stream, &mut [buffer.address()]).expect("launches");
    let order = stream.map_or(0, Stream::order);
    if buffer.order().is_some_and(|own| own != order) {
        device.note_use(&[Arc::clone(buffer)], stream);
    }
}

#[test]
fn the_driver_sees_memory_that_goes_too_early() {
    let trace = trace_file("the_driver_sees_memory_that_goes_too_early");
    let variables = [("FAKE_TRACE", trace.as_str()), ("FAKE_RACES", "trace")];
    with_driver("the_driver_sees_memory_that_goes_too_early", &variables, || {
        let device = device();
        let kernel = kernel(&device, "sum1", 1);
        let (first, second) = (stream(&device), stream(&device));
        let new = &support::fake::kernel(&device, "new1", 1);
        // Cached memory is allocated again, other memory is returned to the driver: the test distinguishes the two.
        let raced = |finish: &dyn Fn(&Arc<dyn Buffer>)| {
            let held = buffer(&device, Some(&*first));
            kernel.launch(&config([1; 3], [1; 3]), Some(&*second), &mut [held.address()]).expect("launches");
            let calls = traced(|| {
                finish(&held);
                drop(held);
                let next = buffer(&device, Some(&*first));
                new.launch(&config([1; 3], [1; 3]), Some(&*first), &mut [next.address()]).expect("launches");
            });
            calls.iter().any(|call| call.ends_with("while in use"))
        };
        assert!(raced(&|_| ()), "nothing says that the second stream has used it");
        assert!(!raced(&|held| device.note_use(&[Arc::clone(held)], Some(&*second))));
        assert!(!raced(&|_| device.synchronize_stream(Some(&*second)).expect("waits")));
        assert!(raced(&|_| device.synchronize_stream(Some(&*first)).expect("waits")));
        assert!(!raced(&|_| {
            let event = device.new_event(true).expect("is to be had");
            device.record(&*event, Some(&*second)).expect("records");
            device.wait_event(Some(&*first), &*event).expect("waits");
        }));
    });
}

#[test]
fn memory_is_freed_behind_every_stream_that_used_it() {
    with_driver("memory_is_freed_behind_every_stream_that_used_it", &[], || {
        let device = device();
        let kernel = kernel(&device, "sum1", 1);
        let mut streams: Vec<Option<Arc<dyn Stream>>> = (0..12).map(|_| Some(stream(&device))).collect();
        streams.push(None);
        for handle in [1, 2, 0x5550, 0x5560] {
            streams.push(Some(device.external_stream(handle).expect("any handle goes")));
        }
        for (i, own) in streams.iter().enumerate() {
            // One other stream, twice; all of them in turn; none.
            for others in [vec![(i + 5) % streams.len(); 2], (0..streams.len()).rev().collect(), Vec::new()] {
                let held = buffer(&device, own.as_deref());
                for other in others {
                    launch(&device, &*kernel, &held, streams[other].as_deref());
                }
            }
        }
    });
}

#[test]
fn a_use_in_the_own_stream_costs_nothing() {
    let trace = trace_file("a_use_in_the_own_stream_costs_nothing");
    with_driver("a_use_in_the_own_stream_costs_nothing", &[("FAKE_TRACE", &trace)], || {
        let device = device();
        let kernel = kernel(&device, "sum1", 1);
        let legacy = device.external_stream(1).expect("it is there");
        let (first, second) = (stream(&device), stream(&device));
        for (own, used) in [(None, None), (None, Some(&legacy)), (Some(&legacy), None), (Some(&first), Some(&first))] {
            let held = buffer(&device, own.map(|own| &**own));
            let calls = traced(|| {
                launch(&device, &*kernel, &held, used.map(|used| &**used));
                drop(held);
            });
            assert_eq!(calls, ["cuCtxGetCurrent", "cuLaunchKernel"]);
        }
        // Nor does recording a use by one of weft's streams, until the memory is freed: after both, in a stream of its
        // own.
        let held = buffer(&device, Some(&*first));
        let calls = traced(|| launch(&device, &*kernel, &held, Some(&*second)));
        assert_eq!(calls, ["cuCtxGetCurrent", "cuLaunchKernel"]);
        let calls = traced(|| drop(held));
        let waits = ["cuEventRecord", "cuStreamWaitEvent"];
        let expected = ["cuCtxGetCurrent", "cuEventCreate", "cuStreamCreate"].into_iter();
        assert_eq!(calls, expected.chain(waits).chain(waits).chain(["cuMemFreeAsync"]).collect::<Vec<_>>());
    });
}

#[test]
fn someone_elses_stream_may_be_gone_when_memory_is_freed() {
    let trace = trace_file("someone_elses_stream_may_be_gone_when_memory_is_freed");
    with_driver("someone_elses_stream_may_be_gone_when_memory_is_freed", &[("FAKE_TRACE", &trace)], || {
        let device = device();
        let kernel = kernel(&device, "sum1", 1);
        let held = buffer(&device, None);
        let theirs = device.external_stream(0x5550).expect("any handle goes");
        let calls = traced(|| launch(&device, &*kernel, &held, Some(&*theirs)));
        assert_eq!(calls[..2], ["cuCtxGetCurrent", "cuLaunchKernel"]);
        assert!(calls.contains(&"cuEventRecord".to_owned()), "{calls:?}");
        drop(theirs);
        let calls = traced(|| drop(held));
        // Its own stream is recorded, the other one is not queried.
        assert_eq!(calls.iter().filter(|call| *call == "cuEventRecord").count(), 1, "{calls:?}");
        assert_eq!(calls.iter().filter(|call| *call == "cuStreamWaitEvent").count(), 2, "{calls:?}");
    });
}

#[test]
fn a_buffer_does_not_keep_every_stream_that_used_it() {
    let trace = trace_file("a_buffer_does_not_keep_every_stream_that_used_it");
    with_driver("a_buffer_does_not_keep_every_stream_that_used_it", &[("FAKE_TRACE", &trace)], || {
        let device = device();
        let kernel = kernel(&device, "sum1", 1);
        let held = buffer(&device, None);
        let calls = traced(|| {
            for _ in 0..100 {
                launch(&device, &*kernel, &held, Some(&*stream(&device)));
            }
        });
        let destroyed = calls.iter().filter(|call| *call == "cuStreamDestroy_v2").count();
        assert!((85..100).contains(&destroyed), "{destroyed}");
    });
}

#[test]
fn the_default_stream_of_a_thread_is_another_one_on_each_thread() {
    with_driver("the_default_stream_of_a_thread_is_another_one_on_each_thread", &[], || {
        let device = device();
        let kernel = &*kernel(&device, "sum1", 1);
        let own = &*device.external_stream(2).expect("it is there");
        let (send, receive) = mpsc::channel();
        let done = Barrier::new(2);
        thread::scope(|scope| {
            scope.spawn(|| {
                let send = send;
                // Used here only; used there only; in both; used here, in the default stream's order.
                for (here, there) in [(true, false), (false, true), (true, true)] {
                    for stream in [Some(own), None] {
                        let held = buffer(&device, stream);
                        if here {
                            launch(&device, kernel, &held, Some(own));
                        }
                        send.send((held, there)).expect("the other thread listens");
                    }
                }
                drop(send);
                done.wait();
            });
            for (held, here) in receive {
                if here {
                    launch(&device, kernel, &held, Some(own));
                }
                drop(held);
            }
            done.wait();
        });
    });
}

#[test]
fn memory_without_a_pool_is_freed_after_all_work() {
    with_driver("memory_without_a_pool_is_freed_after_all_work", &[("FAKE_POOLS", "0")], || {
        let device = device();
        let kernel = kernel(&device, "sum1", 1);
        let held = buffer(&device, None);
        launch(&device, &*kernel, &held, Some(&*device.external_stream(0x5550).expect("any handle goes")));
    });
}

#[test]
fn several_threads_use_a_buffer_in_several_streams() {
    with_driver("several_threads_use_a_buffer_in_several_streams", &[], || {
        let device = &device();
        let kernel = &*kernel(device, "sum1", 1);
        for _ in 0..20 {
            let held = buffer(device, None);
            thread::scope(|scope| {
                for _ in 0..8 {
                    let held = Arc::clone(&held);
                    scope.spawn(move || {
                        let mine = stream(device);
                        for _ in 0..3 {
                            let cell = buffer(device, Some(&*mine));
                            launch(device, kernel, &cell, None);
                            device.copy_on_device(cell.address(), held.address(), 8, Some(&*mine)).expect("copies");
                            device.note_use(&[Arc::clone(&held)], Some(&*mine));
                        }
                    });
                }
            });
        }
    });
}

#[test]
fn what_cannot_be_made_leaves_nothing_behind() {
    let trace = trace_file("what_cannot_be_made_leaves_nothing_behind");
    let variables = [("FAKE_TRACE", trace.as_str()), ("FAKE_STREAMS", "2")];
    with_driver("what_cannot_be_made_leaves_nothing_behind", &variables, || {
        let device = device();
        let kernel = kernel(&device, "sum1", 1);
        let theirs = device.external_stream(0x5550).expect("any handle goes");
        let calls = traced(|| {
            for _ in 0..3 {
                let held = buffer(&device, None);
                launch(&device, &*kernel, &held, Some(&*theirs));
            }
            drop(theirs);
        });
        let count = |name| calls.iter().filter(|call| *call == name).count();
        assert_eq!((count("cuStreamCreate"), count("cuMemFreeAsync")), (3, 3));
        assert_eq!(count("cuEventCreate"), count("cuEventDestroy_v2"), "{calls:?}");
    });
}

#[test]
fn a_default_stream_is_that_of_the_device_that_is_asked() {
    let trace = trace_file("a_default_stream_is_that_of_the_device_that_is_asked");
    with_driver("a_default_stream_is_that_of_the_device_that_is_asked", &[("FAKE_TRACE", &trace)], || {
        let device = device();
        let other = cuda::open(&Settings::default(), 1).expect("there are two");
        let event = other.new_event(true).expect("is to be had");
        other.record(&*event, None).expect("records");
        assert_eq!(
            expect_error(device.record(&*event, None)).message,
            "the event belongs to device 1, but the work is for device 0"
        );
        // Each call enters the context of the device whose default stream waits.
        for (waits, name) in [(&device, "cuStreamWaitEvent 0"), (&other, "cuStreamWaitEvent 1")] {
            let calls = traced(|| waits.wait_event(None, &*event).expect("waits"));
            assert!(calls.contains(&name.to_owned()), "{calls:?}");
        }
        let (here, there) = (buffer(&device, None), buffer(&other, None));
        let reach = |device: &Arc<dyn Executor>, address| device.out_of_reach(address);
        assert_eq!([reach(&device, here.address()), reach(&device, there.address())], [None, Some(1)]);
        assert_eq!([reach(&other, here.address()), reach(&other, there.address())], [Some(0), None]);
        let of_nobody = 0_u64;
        assert_eq!(reach(&device, &raw const of_nobody as u64), None);
    });
}

#[test]
fn a_stream_of_another_device_is_refused() {
    with_driver("a_stream_of_another_device_is_refused", &[], || {
        assert!(env::var("FAKE_RACES").is_err());
        let device = device();
        let other = cuda::open(&Settings::default(), 1).expect("there are two");
        let again = cuda::open(&Settings::default(), 0).expect("there are two");
        let kernel = kernel(&device, "sum1", 1);
        let mut cell = 0_u64;
        let (stream, event) = (stream(&other), other.new_event(true).expect("is to be had"));
        for error in [
            expect_error(kernel.launch(&config([1; 3], [1; 3]), Some(&*stream), &mut [&raw mut cell as u64])),
            expect_error(device.allocate(8, Some(&*stream))),
            expect_error(device.fill(0x1000, 0, 8, Some(&*stream))),
            expect_error(device.synchronize_stream(Some(&*stream))),
            expect_error(device.query_stream(Some(&*stream))),
            expect_error(device.record(&*device.new_event(true).expect("is to be had"), Some(&*stream))),
        ] {
            assert_eq!(error.kind, ErrorKind::Value);
            assert_eq!(error.message, "the stream belongs to device 1, but the work is for device 0");
        }
        let own = device.new_event(true).expect("is to be had");
        assert_eq!(
            expect_error(device.elapsed_ms(&*own, &*event)).message,
            "the second event belongs to device 1, but the work is for device 0"
        );
        assert_eq!(
            expect_error(device.external_stream(0x99)).message,
            "the stream 0x99 belongs to another context than device 0's"
        );
        // To wait for another device's event is what events are for, and one device opened twice is one device.
        other.record(&*event, Some(&*stream)).expect("records");
        device.wait_event(None, &*event).expect("waits");
        device.wait_event(Some(&*stream), &*own).expect("waits");
        let mine = again.new_stream().expect("streams are to be had");
        kernel.launch(&config([1; 3], [1; 3]), Some(&*mine), &mut [&raw mut cell as u64]).expect("launches");
    });
}
