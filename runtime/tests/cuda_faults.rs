//! Errors raised by kernels on a GPU, with the fake driver in C.

mod support;

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
    time::Duration,
};

use support::{
    config, expect_error,
    fake::{device, named, ptx, trace_file, traced, with_driver},
};
use weft_artifact::{Artifact, Fault, FaultArg, Faults, Kernel, Numbers, SourceLocation};
use weft_runtime::{ErrorKind, Executor, LoadedKernel, Stream};

/// A kernel `raises` with two possible faults and one call site.
fn raises(at_launch: bool) -> Artifact {
    let location = |line| SourceLocation { file: "k.py".into(), line, function: "f".into() };
    let fault = |class: &str, args, numbers| Fault { class: class.into(), args, numbers, location: location(2) };
    let faults = vec![
        fault("builtins.ValueError", vec![FaultArg::Str("never".into())], Numbers::None),
        fault("builtins.IndexError", Vec::new(), Numbers::Index(1)),
    ];
    let faults = Some(Arc::new(Faults { faults, calls: vec![location(9)], at_launch }));
    let kernel = Kernel { faults, ..named("raises", 0) };
    Artifact { kernels: vec![kernel], ..ptx("// raises weft$fault_claim weft$fault_page") }
}

#[test]
fn a_fault_is_told_at_a_wait_once_and_a_launch_makes_no_call_more() {
    let trace = trace_file("a_fault_is_told");
    with_driver("a_fault_is_told_at_a_wait_once_and_a_launch_makes_no_call_more", &[("FAKE_TRACE", &trace)], || {
        let device = device();
        let artifact = raises(false);
        let module = device.load(&artifact).expect("it compiles");
        let kernel = module.kernel(&artifact.kernels[0]).expect("it is there");
        let launch = || kernel.launch(&config([1, 4, 1], [8, 1, 1]), None, &mut []);
        for _ in 0..2 {
            let calls = traced(|| launch().expect("a launch is asynchronous"));
            assert_eq!(calls, ["cuCtxGetCurrent", "cuLaunchKernel"]);
            let error = expect_error(device.synchronize());
            assert_eq!(error.kind, ErrorKind::Raised);
            let raised = error.raised.expect("it says what");
            assert_eq!((raised.thread, raised.block), ([3, 0, 0], [0, 2, 0]));
            assert_eq!(raised.message().as_deref(), Some("index -5 is out of bounds for axis 1 with size 4"));
            assert_eq!(raised.calls.iter().map(|location| location.line).collect::<Vec<_>>(), [9]);
            // The error is reported once, and the check for another one makes no driver call.
            let calls = traced(|| device.synchronize().expect("there is no other"));
            assert_eq!(calls, ["cuCtxGetCurrent", "cuCtxSynchronize"]);
        }
        launch().expect("a launch is asynchronous");
        let buffer = device.allocate(8, None).expect("there is memory");
        let copied = device.copy_to_host(&mut [0; 8], buffer.address(), None);
        assert_eq!(expect_error(copied).kind, ErrorKind::Raised);
    });
}

#[test]
fn debug_code_waits_at_its_launch() {
    with_driver("debug_code_waits_at_its_launch", &[], || {
        let device = device();
        let artifact = raises(true);
        let module = device.load(&artifact).expect("it compiles");
        let kernel = module.kernel(&artifact.kernels[0]).expect("it is there");
        let launched = kernel.launch(&config([1, 1, 1], [1, 1, 1]), None, &mut []);
        assert_eq!(expect_error(launched).kind, ErrorKind::Raised);
        device.synchronize().expect("the error was reported");
    });
}

/// The kernel `raises`, loaded.
fn loaded(device: &Arc<dyn Executor>) -> Arc<dyn LoadedKernel> {
    let artifact = raises(false);
    let module = device.load(&artifact).expect("it compiles");
    module.kernel(&artifact.kernels[0]).expect("it is there")
}

fn launch(kernel: &dyn LoadedKernel, stream: Option<&dyn Stream>) {
    kernel.launch(&config([1, 4, 1], [8, 1, 1]), stream, &mut []).expect("a launch is asynchronous");
}

#[test]
fn every_wait_tells() {
    with_driver("every_wait_tells", &[], || {
        let device = device();
        let kernel = loaded(&device);
        let stream = device.new_stream().expect("streams are to be had");
        let event = device.new_event(true).expect("is to be had");
        let buffer = device.allocate(8, None).expect("there is memory");
        let copy = |stream| device.copy_to_host(&mut [0; 8], buffer.address(), stream);
        let waits: [&dyn Fn() -> _; 7] = [
            &|| copy(None),
            &|| copy(Some(&*stream)),
            &|| device.synchronize(),
            &|| device.synchronize_stream(None),
            &|| device.synchronize_stream(Some(&*stream)),
            &|| device.synchronize_event(&*event),
            &|| device.report_faults(Some(&*stream)),
        ];
        for wait in waits {
            launch(&*kernel, Some(&*stream));
            device.record(&*event, Some(&*stream)).expect("records");
            assert_eq!(expect_error(wait()).kind, ErrorKind::Raised);
            wait().expect("the error was reported");
        }
    });
}

#[test]
fn without_kernels_that_raise_nothing_is_waited_for() {
    let trace = trace_file("without_kernels_that_raise");
    with_driver("without_kernels_that_raise_nothing_is_waited_for", &[("FAKE_TRACE", &trace)], || {
        let device = device();
        assert_eq!(traced(|| device.report_faults(None).expect("nothing was raised")), [""; 0]);
    });
}

#[test]
fn a_fault_is_told_to_one_of_several_who_wait() {
    with_driver("a_fault_is_told_to_one_of_several_who_wait", &[], || {
        let device = &device();
        let kernel = &loaded(device);
        let told = AtomicUsize::new(0);
        for round in 1..=500 {
            launch(&**kernel, None);
            thread::scope(|scope| {
                for _ in 0..4 {
                    scope.spawn(|| {
                        let error =
                            device.synchronize().err().inspect(|error| assert_eq!(error.kind, ErrorKind::Raised));
                        told.fetch_add(usize::from(error.is_some()), Ordering::Relaxed);
                    });
                }
            });
            assert_eq!(told.load(Ordering::Relaxed), round);
        }
    });
}

/// The fake driver aborts the process if a variable of an unloaded module is written.
#[test]
fn a_module_is_not_unloaded_while_its_fault_is_told() {
    with_driver("a_module_is_not_unloaded_while_its_fault_is_told", &[("FAKE_SLOW", "300")], || {
        let device = &device();
        let kernel = loaded(device);
        launch(&*kernel, None);
        thread::scope(|scope| {
            scope.spawn(|| assert_eq!(expect_error(device.synchronize()).kind, ErrorKind::Raised));
            thread::sleep(Duration::from_millis(100));
            drop(kernel);
        });
        device.synchronize().expect("the error was reported");
    });
}

#[test]
fn a_fault_outlives_its_module() {
    with_driver("a_fault_outlives_its_module", &[], || {
        let device = device();
        for _ in 0..2 {
            let kernel = loaded(&device);
            launch(&*kernel, None);
            drop(kernel);
        }
        assert_eq!(expect_error(device.synchronize()).kind, ErrorKind::Raised);
        device.synchronize().expect("only the first error since the last wait is reported");
    });
}
