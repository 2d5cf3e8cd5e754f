//! Output of kernels on a GPU, with the fake driver.

mod support;

use std::{
    mem,
    sync::{Arc, Mutex, PoisonError},
};

use support::{
    config, expect_error,
    fake::{device, named, ptx, trace_file, traced, with_driver},
};
use weft_artifact::{Artifact, Kernel};
use weft_runtime::{ErrorKind, Executor, LoadedKernel, set_output};

/// The written text.
static WRITTEN: Mutex<Vec<u8>> = Mutex::new(Vec::new());

fn keep(text: &[u8]) -> bool {
    WRITTEN.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(text);
    true
}

/// The text written since the last call.
fn written() -> String {
    let text = mem::take(&mut *WRITTEN.lock().unwrap_or_else(PoisonError::into_inner));
    String::from_utf8(text).expect("kernels print letters")
}

/// The expected output of `count` calls.
fn lines(count: u64) -> String {
    (0..count).map(|i| i.to_string() + " says hello to a host of letters\n").collect()
}

/// Loads the kernel `prints`, which prints as often as its only slot says.
fn prints(device: &Arc<dyn Executor>) -> Arc<dyn LoadedKernel> {
    named_kernel(device, "prints")
}

/// Loads the printing kernel with this name.
fn named_kernel(device: &Arc<dyn Executor>, symbol: &str) -> Arc<dyn LoadedKernel> {
    set_output(keep);
    let kernel = Kernel { prints: true, ..named(symbol, 1) };
    let artifact = Artifact { kernels: vec![kernel], ..ptx(&format!("// {symbol} weft$print_page")) };
    let module = device.load(&artifact).expect("it compiles");
    module.kernel(&artifact.kernels[0]).expect("it is there")
}

fn launch(kernel: &dyn LoadedKernel, count: u64) {
    kernel.launch(&config([1, 1, 1], [1, 1, 1]), None, &mut [count]).expect("a launch is asynchronous");
}

#[test]
fn text_is_written_at_a_wait_and_a_launch_makes_no_call_more() {
    let trace = trace_file("text_is_written_at_a_wait");
    with_driver("text_is_written_at_a_wait_and_a_launch_makes_no_call_more", &[("FAKE_TRACE", &trace)], || {
        let device = device();
        let kernel = prints(&device);
        let calls = traced(|| launch(&*kernel, 2));
        assert_eq!(calls, ["cuCtxGetCurrent", "cuLaunchKernel"]);
        assert_eq!(written(), "");
        let calls = traced(|| device.synchronize().expect("it is done"));
        assert_eq!(calls, ["cuCtxGetCurrent", "cuCtxSynchronize"]);
        assert_eq!(written(), lines(2));
        // Earlier output is written before a launch.
        launch(&*kernel, 1);
        launch(&*kernel, 3);
        assert_eq!(written(), lines(1));
        let buffer = device.allocate(8, None).expect("there is memory");
        device.copy_to_host(&mut [0; 8], buffer.address(), None).expect("it is done");
        assert_eq!(written(), lines(3));
        let event = device.new_event(false).expect("there are events");
        launch(&*kernel, 1);
        device.record(&*event, None).expect("it is recorded");
        device.synchronize_event(&*event).expect("it is done");
        assert_eq!(written(), lines(1));
    });
}

#[test]
fn the_ring_goes_round() {
    with_driver("the_ring_goes_round", &[], || {
        let device = device();
        let kernel = prints(&device);
        // The output exceeds ten times the ring's size, and records wrap around at various positions.
        for count in 30_000..30_020 {
            launch(&*kernel, count);
            device.synchronize().expect("it is done");
            assert_eq!(written(), lines(count));
        }
    });
}

#[test]
fn what_finds_no_room_is_counted() {
    with_driver("what_finds_no_room_is_counted", &[], || {
        let device = device();
        let kernel = prints(&device);
        for _ in 0..2 {
            launch(&*kernel, 100_000);
            device.synchronize().expect("it is done");
            let text = written();
            let printed = text.lines().filter(|line| line.contains("says hello")).count();
            assert!(printed > 40_000, "{printed}");
            let lost = 100_000 - printed;
            let last = text.lines().last().expect("there are lines");
            assert!(last.starts_with(&format!("[weft: about {lost} calls of print were lost")), "{last}");
        }
        launch(&*kernel, 2);
        device.synchronize().expect("it is done");
        assert_eq!(written(), lines(2));
    });
}

#[test]
fn what_was_printed_before_a_fault_is_written() {
    with_driver("what_was_printed_before_a_fault_is_written", &[], || {
        let device = device();
        let kernel = named_kernel(&device, "prints_and_faults");
        launch(&*kernel, 2);
        let error = expect_error(device.synchronize());
        assert_eq!((error.kind, error.driver_code), (ErrorKind::Driver, Some(700)));
        assert_eq!(written(), lines(2));
    });
}
