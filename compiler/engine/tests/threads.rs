//! 64 threads that compile the same and different kernels with the whole compiler.

use std::{
    collections::BTreeMap,
    sync::{Arc, Barrier},
    thread,
};

use weft_artifact::{ArgType, ArrayType, DType, Layout};
use weft_compiler::{
    diagnostic::{Code, Failure},
    host_cpu, pipeline,
    request::{Captured, FunctionDef, Keep, Options, Outcome, Overloads, Request, Target},
    source::SourceFile,
    syntax,
};
use weft_engine::Engine;

const THREADS: usize = 64;

fn request(text: String, target: Target) -> Request {
    let source = SourceFile::new("k.py", text);
    let function = FunctionDef {
        ast: syntax::parse_function(&source, 0, None).expect("the text of a function"),
        source: Arc::new(source),
        globals: BTreeMap::from([("cuda".to_owned(), Captured::Known("weft.cuda".into()))]),
        defaults: BTreeMap::new(),
        signatures: Vec::new(),
        inline: false,
        typing: None,
        gpu: None,
        backward: None,
        number: 0,
    };
    let array = ArrayType { dtype: DType::F32, ndim: 1, layout: Layout::C, readonly: false };
    Request {
        function: Arc::new(function),
        overloads: Overloads::default(),
        args: vec![ArgType::Array(array)],
        target,
        options: Options::default(),
        keep: Keep::default(),
    }
}

fn kernel(number: usize) -> String {
    format!(
        "def k{number}(r):\n    i = cuda.grid(1)\n    s = 0.0\n    for j in range(i):\n        s += r[j] * {number}\n    \
         cuda.syncthreads()\n    if i < r.size:\n        r[i] = s\n"
    )
}

/// The result for a valid kernel that calls no overloaded functions.
fn made<T>(outcome: Result<Outcome<T>, Failure>) -> T {
    outcome.expect("a good kernel").made().expect("it calls no overloads")
}

/// The results of all threads; each compiles the request with its number.
fn all<T: Send>(work: impl Fn(usize) -> T + Sync) -> Vec<T> {
    let start = Barrier::new(THREADS);
    thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS)
            .map(|number| {
                let (work, start) = (&work, &start);
                scope.spawn(move || {
                    start.wait();
                    work(number)
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().expect("no panic")).collect()
    })
}

#[test]
fn one_compilation_serves_all_that_ask_for_the_same() {
    for target in [Target::Sm(75, ""), Target::Host(host_cpu())] {
        let engine = Engine::new();
        let outputs = all(|_| made(engine.compile(&request(kernel(1), target.clone()))));
        assert!(outputs.iter().all(|output| Arc::ptr_eq(output, &outputs[0])));
        assert!(Arc::ptr_eq(&outputs[0], &made(engine.compile(&request(kernel(1), target)))));
    }
}

#[test]
fn different_kernels_compile_at_once_and_do_not_mix() {
    for target in [Target::Sm(75, ""), Target::Host(host_cpu())] {
        let engine = Engine::new();
        let outputs = all(|number| made(engine.compile(&request(kernel(number % 8), target.clone()))));
        for number in 0..8 {
            let alone = made(pipeline::compile(&request(kernel(number), target.clone())));
            for output in outputs.iter().skip(number).step_by(8) {
                assert_eq!(output.artifact, alone.artifact);
                assert!(Arc::ptr_eq(output, &outputs[number]));
            }
        }
    }
}

#[test]
fn everyone_is_told_what_is_wrong() {
    let engine = Engine::new();
    let wrong = "def k(r):\n    r[0] = nowhere\n".to_owned();
    for failure in
        all(|_| engine.compile(&request(wrong.clone(), Target::Host(host_cpu()))).expect_err("a wrong kernel"))
    {
        assert_eq!(failure.diagnostics.iter().map(|found| found.code).collect::<Vec<_>>(), [Code::UnknownName]);
        assert_eq!(failure.sources.files().len(), 1);
    }
}
