//! Modules and functions of any compiler, over the driver made of C: the arguments that arrive, and the errors.

mod support;

use std::sync::Arc;

use support::{
    config, cpu, expect_error,
    fake::{build_driver, device, in_process, trace_file, traced, with_driver},
};
use weft_runtime::{
    CachePreference, ErrorKind, Executor, Function, FunctionArguments, FunctionAttributes, LaunchConfig,
};

/// The arguments of a kernel that writes to `out`.
fn arguments(out: &mut [u8], values: &[&[u8]]) -> FunctionArguments {
    let mut arguments = FunctionArguments::default();
    arguments.push(&(out.as_mut_ptr().expose_provenance() as u64).to_ne_bytes());
    for value in values {
        arguments.push(value);
    }
    arguments
}

/// A function of the driver made of C.
fn function(device: &Arc<dyn Executor>, name: &str) -> Arc<dyn Function> {
    device.load_image(format!(".entry {name}").as_bytes()).expect("it loads").function(name).expect("it is there")
}

fn one() -> LaunchConfig {
    config([1; 3], [1; 3])
}

#[test]
fn arguments_arrive_byte_by_byte() {
    with_driver("arguments_arrive_byte_by_byte", &[], || {
        let device = device();
        let store = function(&device, "store_4_1_24_8");
        assert_eq!(store.parameter_sizes(), Some(&[8, 4, 1, 24, 8][..]));
        let long: Vec<u8> = (100..124).collect();
        let (mut out, mut other) = ([0_u8; 37], [0_u8; 37]);
        let mut given = arguments(&mut out, &[&[1, 2, 3, 4], &[5], &long, &(-2.5_f64).to_ne_bytes()]);
        store.launch(&one(), None, &mut given, false).expect("it runs");
        assert_eq!((&out[..5], &out[5..29], &out[29..]), (&[1, 2, 3, 4, 5][..], &*long, &(-2.5_f64).to_ne_bytes()[..]));
        // In a stream.
        let stream = device.new_stream().expect("there is one");
        let mut given = arguments(&mut other, &[&[9; 4], &[8], &[7; 24], &[6; 8]]);
        store.launch(&one(), Some(&*stream), &mut given, false).expect("it runs");
        assert_eq!((other[0], other[4], other[28], other[36]), (9, 8, 7, 6));
    });
}

#[test]
fn arguments_are_compared_with_the_parameters() {
    with_driver("arguments_are_compared_with_the_parameters", &[], || {
        let store = function(&device(), "store_4_1");
        let mut out = [0_u8; 8];
        let mut refused = |values: &[&[u8]]| {
            let error = expect_error(store.launch(&one(), None, &mut arguments(&mut out, values), false));
            assert_eq!(error.kind, ErrorKind::Value);
            error.message
        };
        assert_eq!(refused(&[&[0; 4]]), "args has 2 values, but `store_4_1` has 3 parameters");
        assert_eq!(refused(&[&[0; 4], &[0], &[0]]), "args has 4 values, but `store_4_1` has 3 parameters");
        assert_eq!(
            refused(&[&[0; 8], &[0]]),
            "args[1] has 8 bytes, but parameter 1 of `store_4_1` has 4: the sizes must be the same"
        );
    });
}

#[test]
fn an_older_driver_reports_no_parameters() {
    with_driver("an_older_driver_reports_no_parameters", &[("FAKE_PARAMS", "801")], || {
        let store = function(&device(), "store_4_1");
        assert_eq!(store.parameter_sizes(), None);
        let mut out = [0_u8; 5];
        store.launch(&one(), None, &mut arguments(&mut out, &[&[3; 4], &[4]]), false).expect("it runs");
        assert_eq!(out, [3, 3, 3, 3, 4]);
    });
}

#[test]
fn a_driver_without_libraries_loads_modules() {
    let built = build_driver("fake-driver-without-libraries", &["-DWITHOUT_LIBRARIES"]);
    in_process("a_driver_without_libraries_loads_modules", &built, &[], || {
        let device = device();
        let module = device.load_image(b".entry store_4").expect("it loads");
        let store = module.function("store_4").expect("it is there");
        assert_eq!((module.library(), store.parameter_sizes()), (None, None));
        assert!(module.handle() != 0 && store.handle() != 0);
        let mut out = [0_u8; 4];
        store.launch(&one(), None, &mut arguments(&mut out, &[&[1, 2, 3, 4]]), false).expect("it runs");
        assert_eq!(out, [1, 2, 3, 4]);
        let error = expect_error(device.load_image(b"wrong"));
        assert!(error.message.contains("cannot load the module: cuModuleLoadDataEx failed"), "{error}");
        assert!(error.message.contains("Unknown modifier"), "{error}");
    });
}

#[test]
fn a_function_keeps_its_module_loaded() {
    let trace = trace_file("a_function_keeps_its_module_loaded");
    with_driver("a_function_keeps_its_module_loaded", &[("FAKE_TRACE", &trace)], || {
        let device = device();
        let mut held = None;
        let unloads = |calls: &[String]| calls.iter().filter(|call| *call == "cuLibraryUnload").count();
        let calls = traced(|| held = Some(function(&device, "store_1")));
        assert!(calls.contains(&"cuLibraryLoadData".to_owned()) && unloads(&calls) == 0, "{calls:?}");
        let mut out = [0_u8];
        let calls = traced(|| {
            let held = held.take().expect("it was made");
            held.launch(&one(), None, &mut arguments(&mut out, &[&[7]]), false).expect("it runs");
        });
        assert_eq!((out, unloads(&calls)), ([7], 1), "{calls:?}");
    });
}

#[test]
fn a_function_has_attributes_and_preferences() {
    let trace = trace_file("a_function_has_attributes_and_preferences");
    with_driver("a_function_has_attributes_and_preferences", &[("FAKE_TRACE", &trace)], || {
        let device = device();
        let module = device.load_image(b".entry store_1").expect("it loads");
        let store = module.function("store_1").expect("it is there");
        let expected = FunctionAttributes {
            registers: 96,
            shared_bytes: 4096,
            local_bytes: 24,
            const_bytes: 12,
            max_threads_per_block: 640,
        };
        assert_eq!(store.attributes(), expected);
        assert!(store.handle() != 0 && module.library().is_some_and(|handle| handle != module.handle()));
        assert_eq!(store.active_blocks(128, 128).expect("it is known"), 5);
        let calls = traced(|| {
            store.prefer_cache(CachePreference::L1).expect("the driver takes it");
            store.prefer_shared(30).expect("the driver takes it");
        });
        let set: Vec<_> = calls.iter().filter(|call| call.contains('(')).collect();
        assert_eq!(set, ["cuFuncSetCacheConfig(2)", "cuFuncSetAttribute(carveout 30)"]);
        // More dynamic shared memory than without opting in, and all blocks at a time.
        let (mut out, mut given) = ([0_u8], [5_u8]);
        let large = LaunchConfig { shared_bytes: 100_000, ..one() };
        let calls = traced(|| {
            store.launch(&large, None, &mut arguments(&mut out, &[&given]), true).expect("it runs");
        });
        assert!(calls.contains(&"cuLaunchCooperativeKernel".to_owned()), "{calls:?}");
        assert_eq!(out, given);
        given[0] = 6;
        let many = config([9, 1, 1], [1; 3]);
        let error = expect_error(store.launch(&many, None, &mut arguments(&mut out, &[&given]), true));
        assert_eq!((error.kind, error.driver_code), (ErrorKind::Launch, Some(720)));
        let error =
            expect_error(store.launch(&config([1; 3], [1024, 1, 1]), None, &mut arguments(&mut out, &[&given]), false));
        assert!(error.message.contains("this kernel allows 640 per block"), "{error}");
    });
}

#[test]
fn errors_name_the_cause() {
    with_driver("errors_name_the_cause", &[], || {
        let device = device();
        let error = expect_error(device.load_image(b"wrong"));
        assert_eq!(error.driver_code, Some(218));
        assert!(error.message.contains("cannot load the module: cuLibraryLoadData failed"), "{error}");
        assert!(error.message.contains("line 1; error   : Unknown modifier") && error.message.contains("more lines"));
        let error = expect_error(device.load_image(b"newer"));
        assert!(error.message.contains("older than this PTX"), "{error}");
        for image in [&b""[..], b"\x7fELF\x02", b"BC\0\0text"] {
            assert_eq!(expect_error(device.load_image(image)).kind, ErrorKind::Value);
        }
        let module = device.load_image(b".entry store_1 .global limit").expect("it loads");
        let error = expect_error(module.function("absent"));
        assert_eq!(error.driver_code, Some(500));
        assert!(error.message.starts_with("the module has no kernel `absent`: cuModuleGetFunction failed"), "{error}");
        assert_eq!(expect_error(module.function("a\0b")).kind, ErrorKind::Value);
    });
}

#[test]
fn a_module_has_global_variables() {
    with_driver("a_module_has_global_variables", &[], || {
        let module = device().load_image(b".entry store_1 .global limit").expect("it loads");
        let (address, bytes) = module.global("limit").expect("it is there");
        assert!(address != 0 && bytes == 8);
        let error = expect_error(module.global("absent"));
        assert!(error.message.starts_with("there is no variable absent: cuModuleGetGlobal failed"), "{error}");
    });
}

#[test]
fn a_cpu_refuses_code_of_gpus() {
    let error = expect_error(cpu().load_image(b".version 8.0"));
    assert_eq!(error.kind, ErrorKind::NoDevice);
    assert!(error.message.contains("on GPUs only") && error.message.contains("`cuda.jit`"), "{error}");
}
