//! Cached machine code, with the fake driver in C: the cache key, and refused code.

mod support;

use std::{
    collections::HashMap,
    sync::{Mutex, PoisonError},
};

use support::{
    config, expect_error,
    fake::{device, named, ptx, trace_file, traced, with_driver},
};
use weft_artifact::{Artifact, MachineCode};
use weft_runtime::{CachedCode, CodeCache, ErrorKind, LoadStage, Settings, cuda};

/// Keeps code in memory, by all that it is made of.
#[derive(Debug, Default)]
struct Memory {
    kept: Mutex<HashMap<String, Vec<u8>>>,
    stages: Mutex<Vec<LoadStage>>,
}

struct MemoryEntry<'a>(&'a Memory, String);

impl CodeCache for Memory {
    fn entry<'a>(&'a self, of: &MachineCode<'_>) -> Box<dyn CachedCode + 'a> {
        Box::new(MemoryEntry(self, format!("{of:?}")))
    }

    fn begin(&self, stage: LoadStage) {
        self.stages.lock().unwrap_or_else(PoisonError::into_inner).push(stage);
    }
}

impl CachedCode for MemoryEntry<'_> {
    fn find(&self) -> Option<Vec<u8>> {
        self.0.kept.lock().unwrap_or_else(PoisonError::into_inner).get(&self.1).cloned()
    }

    fn keep(&self, code: &[u8]) {
        self.0.kept.lock().unwrap_or_else(PoisonError::into_inner).insert(self.1.clone(), code.to_vec());
    }

    fn remove(&self) {
        self.0.kept.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.1);
    }
}

impl Memory {
    fn keys(&self) -> Vec<String> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner).keys().cloned().collect()
    }

    fn take_stages(&self) -> Vec<LoadStage> {
        std::mem::take(&mut *self.stages.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Code with a kernel.
fn sum2() -> Artifact {
    Artifact { kernels: vec![named("sum2", 2)], ..ptx("// sum2") }
}

/// The calls that link and load.
fn loads(body: impl FnOnce()) -> Vec<String> {
    traced(body).into_iter().filter(|call| call.starts_with("cuLink") || call.starts_with("cuModule")).collect()
}

#[test]
fn machine_code_is_made_once() {
    let trace = trace_file("machine_code_is_made_once");
    with_driver("machine_code_is_made_once", &[("FAKE_TRACE", &trace), ("FAKE_CC1", "80")], || {
        let (memory, artifact) = (Memory::default(), sum2());
        let device = device();
        let launch = || {
            let module = device.load_cached(&artifact, &memory).expect("it links");
            let kernel = module.kernel(&artifact.kernels[0]).expect("it is there");
            let mut cell = 0_u64;
            kernel.launch(&config([1; 3], [1; 3]), None, &mut [(&raw mut cell).addr() as u64, 7]).expect("it runs");
            assert_eq!(cell, 7);
        };
        let first = loads(launch);
        assert_eq!(first[..2], ["cuLinkCreate_v2", "cuLinkAddData_v2"]);
        assert_eq!(memory.take_stages(), [LoadStage::Link, LoadStage::Load, LoadStage::Keep]);
        let [key] = memory.keys().try_into().expect("one entry");
        assert!(key.contains("compute_capability: (9, 0), driver: \"12.4 libcuda.so "), "{key}");
        assert_eq!(loads(launch)[0], "cuModuleLoadDataEx");
        assert_eq!((memory.take_stages(), memory.keys()), (Vec::new(), vec![key]));
        // The same PTX on a device of another kind.
        let other = cuda::open(&Settings::default(), 1).expect("there are two");
        other.load_cached(&artifact, &memory).expect("it links");
        assert_eq!(memory.keys().len(), 2);
        // Other PTX.
        device.load_cached(&ptx("// sum2 "), &memory).expect("it links");
        assert_eq!(memory.keys().len(), 3);
    });
}

#[test]
fn without_a_keeper_nothing_is_linked() {
    let trace = trace_file("without_a_keeper_nothing_is_linked");
    with_driver("without_a_keeper_nothing_is_linked", &[("FAKE_TRACE", &trace)], || {
        let device = device();
        let calls = loads(|| drop(device.load(&sum2()).expect("it compiles")));
        assert_eq!(calls, ["cuModuleLoadDataEx", "cuModuleUnload"]);
    });
}

#[test]
fn what_the_driver_refuses_is_removed() {
    let trace = trace_file("what_the_driver_refuses_is_removed");
    let variables = [("FAKE_TRACE", trace.as_str()), ("FAKE_LAZY", "209")];
    with_driver("what_the_driver_refuses_is_removed", &variables, || {
        let (memory, artifact) = (Memory::default(), sum2());
        let device = device();
        // Whatever is cached, and whenever it is refused: PTX is loaded, and nothing remains cached or loaded.
        for _ in 0..2 {
            let calls = loads(|| {
                let module = device.load_cached(&artifact, &memory).expect("it is PTX");
                module.kernel(&artifact.kernels[0]).expect("it is there");
                assert_eq!(memory.keys(), Vec::<String>::new());
            });
            let count = |name: &str| calls.iter().filter(|call| *call == name).count();
            assert_eq!([count("cuModuleLoadDataEx"), count("cuModuleUnload")], [2, 2], "{calls:?}");
        }
    });
}

#[test]
fn errors_are_those_of_ptx() {
    with_driver("errors_are_those_of_ptx", &[], || {
        let (memory, device) = (Memory::default(), device());
        for text in ["wrong", "newer"] {
            let kept = expect_error(device.load_cached(&ptx(text), &memory));
            assert_eq!(kept, expect_error(device.load(&ptx(text))));
        }
        let host = Artifact { format: weft_artifact::CodeFormat::HostObject, target: "host".into(), ..ptx("") };
        assert_eq!(expect_error(device.load_cached(&host, &memory)).kind, ErrorKind::Value);
        assert_eq!(memory.keys(), Vec::<String>::new());
    });
}
