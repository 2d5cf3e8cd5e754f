//! Digests: equal for the same request in every process, different after every change.

use std::{collections::BTreeMap, sync::Arc};

use weft_artifact::{
    ArgType, ArrayType, Assumptions, Chars, Class, ClassId, ClassKind, Compound, DType, Factors, Float8, Layout,
    MachineCode, Nested, Number, Record, Scalar, Time, Tools, Vector,
};
use weft_compiler::{
    request::{
        Abi, Answer, Captured, CapturedArray, CpuThreads, Derivative, Entry, External, Foreign, FunctionDef, GpuBody,
        GpuCode, HostCpu, Incoming, Keep, LaunchBounds, Options, OverloadArgument, OverloadQuery, Overloaded,
        Overloads, PlannedCpu, PtxBody, Request, Role, Scratch, Signature, Target, Typing, Unsupported,
    },
    source::{Origin, SourceFile, Span},
    syntax,
};
use weft_engine::{BUILD, Digest};

const KERNEL: &str =
    "def saxpy(r, x, a):\n    i = cuda.grid(1)\n    if i < r.size:\n        r[i] = scaled(x[i], a) + N\n";
const SCALED: &str = "def scaled(x, a=2):\n    return x * a\n";

fn file(text: &str) -> SourceFile {
    SourceFile { first_line: 7, cut_columns: 4, ..SourceFile::new("dir/k.py", text) }
}

fn function(source: SourceFile, globals: &[(&str, Captured)]) -> FunctionDef {
    FunctionDef {
        ast: syntax::parse_function(&source, 0, None).expect("the text of a function"),
        source: Arc::new(source),
        globals: globals.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect(),
        defaults: BTreeMap::new(),
        signatures: Vec::new(),
        inline: false,
        typing: None,
        gpu: None,
        backward: None,
        number: 0,
    }
}

fn globals(scaled: &Arc<FunctionDef>) -> Vec<(&'static str, Captured)> {
    vec![
        ("N", Captured::Int(3)),
        ("cuda", Captured::Known("weft.cuda".into())),
        ("scaled", Captured::Function(Arc::clone(scaled))),
    ]
}

fn array(dtype: Scalar) -> ArgType {
    ArgType::Array(ArrayType { dtype: dtype.into(), ndim: 1, layout: Layout::C, readonly: false })
}

fn record(fields: &[(&str, DType)], aligned: bool) -> DType {
    let record = Record::in_order(fields, aligned).expect("good fields");
    DType::intern(Compound::Record(record)).expect("there is room")
}

fn nested(shape: &[u64]) -> DType {
    let nested = Nested::new(DType::F32, shape.to_vec()).expect("a small shape");
    DType::intern(Compound::Nested(nested)).expect("there is room")
}

fn vector(scalar: Scalar, lanes: u8) -> DType {
    DType::intern(Compound::Vector(Vector::new(scalar, lanes).expect("good lanes"))).expect("there is room")
}

#[test]
fn measurements_have_digests_by_all_that_they_are_of() {
    let all = [
        Digest::of_measurement(b"code", "H200", [64, 1, 1], 7, [4, 1, 1]),
        Digest::of_measurement(b"cod", "eH200", [64, 1, 1], 7, [4, 1, 1]),
        Digest::of_measurement(b"code", "H100", [64, 1, 1], 7, [4, 1, 1]),
        Digest::of_measurement(b"code", "H200", [1, 64, 1], 7, [4, 1, 1]),
        Digest::of_measurement(b"code", "H200", [64, 1, 1], 8, [4, 1, 1]),
        Digest::of_measurement(b"code", "H200", [64, 1, 1], 7, [1, 4, 1]),
    ];
    assert_eq!(all[0], Digest::of_measurement(b"code", "H200", [64, 1, 1], 7, [4, 1, 1]));
    for (i, one) in all.iter().enumerate() {
        assert!(all[..i].iter().all(|other| other != one));
    }
}

fn bounds(threads: u32, blocks: Option<u32>) -> LaunchBounds {
    LaunchBounds { threads, blocks, cluster: None }
}

fn foreign(role: Role, symbol: Option<&str>) -> Entry {
    Entry::Foreign(Foreign { role, symbol: symbol.map(str::to_owned) })
}

fn sample() -> Request {
    let scaled = Arc::new(FunctionDef { inline: true, ..function(file(SCALED), &[]) });
    Request {
        function: Arc::new(function(file(KERNEL), &globals(&scaled))),
        overloads: Overloads::default(),
        args: vec![array(Scalar::F32), array(Scalar::F32), Scalar::F64.into()],
        target: Target::Sm(90, "a"),
        options: Options { launch_bounds: Some(bounds(128, Some(2))), ..Options::default() },
        keep: Keep::default(),
    }
}

fn other(compound: Compound) -> DType {
    DType::intern(compound).expect("there is room")
}

fn time(name: &str) -> DType {
    other(Compound::Time(Time::from_name(name).expect("is a type")))
}

fn class(kind: ClassKind, identity: &str, fields: &[&str]) -> ClassId {
    let fields = fields.iter().map(|field| (*field).to_owned()).collect();
    let class = Class { kind, name: "C".to_owned(), identity: identity.to_owned(), fields };
    ClassId::intern(class).expect("there is room")
}

/// The request for a CPU.
fn host(triple: &str, name: &str, features: &str) -> Request {
    let cpu = HostCpu { triple: triple.into(), name: name.into(), features: features.into(), ..HostCpu::default() };
    Request { target: Target::Host(Arc::new(cpu)), ..sample() }
}

/// The request for a CPU, with the execution plans of another one.
fn planned(name: &str, features: &str) -> Request {
    let planned = Some(PlannedCpu { name: name.into(), features: features.into() });
    let cpu = HostCpu { planned, ..HostCpu::default() };
    Request { target: Target::Host(Arc::new(cpu)), ..sample() }
}

/// The request for a CPU, at one of LLVM's optimization levels.
fn optimized(level: u8) -> Request {
    let cpu = HostCpu { opt_level: Some(level), ..HostCpu::default() };
    Request { target: Target::Host(Arc::new(cpu)), ..sample() }
}

/// The request with another kernel.
fn with(kernel: FunctionDef) -> Request {
    Request { function: Arc::new(kernel), ..sample() }
}

/// The answer to a query about a call of an overloaded function.
fn answer(number: u32, name: Option<&str>, given: OverloadArgument, chosen: Result<(), Option<String>>) -> Answer {
    let query = OverloadQuery { function: number, args: vec![(name.map(str::to_owned), given)] };
    Answer { query, chosen: chosen.map(|()| Arc::new(function(file(SCALED), &[]))) }
}

/// The request with implementations of overloaded functions.
fn answered(answers: Vec<Answer>) -> Request {
    Request { overloads: Overloads { answers, ..Overloads::default() }, ..sample() }
}

/// The request with an overloaded function that is named by its path.
fn overloading(path: &str, number: u32, name: &str) -> Request {
    let members = BTreeMap::from([(path.to_owned(), Overloaded { number, name: name.to_owned() })]);
    Request { overloads: Overloads { members, ..Overloads::default() }, ..sample() }
}

/// The request with another value of `N`.
fn capturing(value: Captured) -> Request {
    let scaled = Arc::new(FunctionDef { inline: true, ..function(file(SCALED), &[]) });
    let mut named = globals(&scaled);
    named[0].1 = value;
    with(function(file(KERNEL), &named))
}

/// The request with another device function.
fn calling(scaled: FunctionDef) -> Request {
    with(function(file(KERNEL), &globals(&Arc::new(scaled))))
}

/// The device function with another body on GPUs.
fn on_gpu(body: GpuBody) -> FunctionDef {
    FunctionDef { gpu: Some(body), ..function(file(SCALED), &[]) }
}

fn external() -> External {
    External { symbol: "f".into(), abi: Abi::Numba, cooperative: false, python: false }
}

/// The request with the kernel's source text at another location.
fn placed(change: impl FnOnce(&mut SourceFile)) -> Request {
    let mut source = file(KERNEL);
    change(&mut source);
    with(FunctionDef { globals: sample().function.globals.clone(), ..function(source, &[]) })
}

#[test]
fn the_same_request_has_the_same_digest_in_every_process() {
    assert_eq!(Digest::of(&sample()), Digest::of(&sample()));
    // The encoding changes only on purpose: it invalidates all files that contain digests.
    assert_eq!(
        Digest::for_build(&sample(), ["test", "build", "library"]).to_string(),
        "993776754ba887631a1c3c198074f053206d8426ec4e2dcce0d6636bee48631e"
    );
}

#[test]
fn libraries_are_told_apart_by_their_bytes() {
    let with = |library: &Arc<Vec<u8>>| Request {
        options: Options { libdevice: Some(Arc::clone(library)), ..sample().options },
        ..sample()
    };
    let [one, same, other] = [vec![1], vec![1], vec![2]].map(Arc::new);
    let first = Digest::of(&with(&one));
    for _ in 0..2 {
        assert_ne!(first, Digest::of(&with(&other)));
        assert_eq!(first, Digest::of(&with(&one)));
        assert_eq!(first, Digest::of(&with(&same)));
    }
    // Libraries that are allocated at the address of an earlier one.
    for byte in 3..100 {
        assert_ne!(first, Digest::of(&with(&Arc::new(vec![byte]))));
        assert_ne!(Digest::of(&with(&Arc::new(vec![byte]))), Digest::of(&with(&Arc::new(vec![byte + 100]))));
    }
}

#[test]
fn the_build_says_what_compiles() {
    let [version, text, library] = BUILD;
    assert!(version.starts_with(|first: char| first.is_ascii_digit()), "{version}");
    for hash in [text, library] {
        assert!(hash.len() == 64 && hash.bytes().all(|digit| digit.is_ascii_hexdigit()), "{hash}");
    }
    assert_ne!(text, library);
}

#[test]
fn what_comes_after_a_function_in_its_file_is_not_part_of_it() {
    let longer = placed(|source| source.text.push_str("\n# The end.\n"));
    assert_eq!(Digest::of(&longer), Digest::of(&sample()));
}

#[test]
fn a_function_is_its_content_however_many_copies_of_it_there_are() {
    let scaled = || Arc::new(function(file(SCALED), &[]));
    let outer = |inner: [Arc<FunctionDef>; 2]| {
        let [a, b] = inner;
        with(function(file(KERNEL), &[("a", Captured::Function(a)), ("b", Captured::Function(b))]))
    };
    let one = scaled();
    let shared = outer([Arc::clone(&one), one]);
    assert_eq!(Digest::of(&shared), Digest::of(&outer([scaled(), scaled()])));
}

#[test]
fn a_function_with_many_ways_to_it_is_digested_once() {
    // 2^60 paths lead from the first to the last.
    let mut last = Arc::new(function(file(SCALED), &[]));
    for _ in 0..60 {
        let both = [("a", Captured::Function(Arc::clone(&last))), ("b", Captured::Function(last))];
        last = Arc::new(function(file(SCALED), &both));
    }
    let request = Request { function: last, ..sample() };
    assert_eq!(Digest::of(&request), Digest::of(&request));
}

fn derivative(of: &[u32], wrt: &[u32]) -> Derivative {
    Derivative { of: of.to_vec(), wrt: wrt.to_vec(), ..Derivative::default() }
}

#[test]
fn every_change_gives_another_digest() {
    let scaled = || function(file(SCALED), &[]);
    let inline = || FunctionDef { inline: true, ..scaled() };
    let kernel = || FunctionDef { globals: sample().function.globals.clone(), ..function(file(KERNEL), &[]) };
    let options = |options: Options| Request { options, ..sample() };
    let base = || sample().options;
    let int = Scalar::I64;
    let signature = |returns| Signature { args: vec![int.into()], returns };
    let declared = |signatures| FunctionDef { signatures, ..inline() };
    let module =
        |name: &str, member: &str, value| Captured::Module(name.into(), BTreeMap::from([(member.to_owned(), value)]));
    let with_array = |array| Request { args: vec![ArgType::Array(array)], ..sample() };
    let plain = ArrayType { dtype: DType::F32, ndim: 1, layout: Layout::C, readonly: false };
    let taking = |arg| Request { args: vec![arg], ..sample() };
    let pair = class(ClassKind::NamedTuple, "m.C", &["a", "b"]);
    let other_pair = class(ClassKind::NamedTuple, "m.f.C", &["a", "b"]);
    let swapped = class(ClassKind::NamedTuple, "m.C", &["b", "a"]);
    let data = class(ClassKind::Dataclass, "m.C", &["a", "b"]);
    let color = class(ClassKind::Enum, "m.C", &["a", "b"]);
    let int_color = class(ClassKind::IntEnum, "m.C", &["a", "b"]);
    let span = Time::from_name("timedelta64[ns]").expect("is a type");
    let constant =
        || CapturedArray { dtype: DType::I8, shape: vec![1, 2], layout: Layout::C, bytes: Arc::from([1, 2]) };
    let mut renamed = kernel();
    renamed.ast.name = "other".into();
    let mut reparametered = kernel();
    reparametered.ast.params[2].name = "b".into();
    let unknown = |text: &str, start, why: &str| {
        let span = Span { file: 0, start, end: start + 4 };
        Captured::Unknown(Arc::new(file(text)), span, why.into())
    };
    let requests = vec![
        sample(),
        // The kernel: its source text, location, name, parameters, and the meanings of its names.
        placed(|source| source.text = KERNEL.replace("i < r.size", "i <= r.size")),
        placed(|source| source.name = "dir/other.py".into()),
        placed(|source| source.first_line = 8),
        placed(|source| source.cut_columns = 0),
        placed(|source| source.origin = Origin::Prelude),
        with(renamed),
        with(reparametered),
        with(FunctionDef { defaults: BTreeMap::from([("a".to_owned(), Captured::Int(2))]), ..kernel() }),
        with(FunctionDef { globals: BTreeMap::new(), ..kernel() }),
        with(FunctionDef { inline: true, ..kernel() }),
        with(FunctionDef { typing: Some(Typing::Numba), ..kernel() }),
        with(FunctionDef { typing: Some(Typing::Numpy), ..kernel() }),
        with(FunctionDef { backward: Some(Captured::Recursive(0)), ..kernel() }),
        with(FunctionDef { backward: Some(Captured::Recursive(1)), ..kernel() }),
        // The device function.
        calling(FunctionDef { ..scaled() }),
        calling(FunctionDef { inline: true, ..function(file(&SCALED.replace("x * a", "a * x")), &[]) }),
        calling(FunctionDef { inline: true, ..function(file(SCALED), &[("N", Captured::Int(3))]) }),
        calling(FunctionDef { inline: true, ..function(file(SCALED), &[("N", Captured::Int(4))]) }),
        calling(declared(vec![signature(None)])),
        calling(declared(vec![signature(Some(int.into()))])),
        calling(declared(vec![signature(None), signature(None)])),
        // Values.
        capturing(Captured::None),
        capturing(Captured::Bool(true)),
        capturing(Captured::Bool(false)),
        capturing(Captured::Int(4)),
        capturing(Captured::Int(-3)),
        capturing(Captured::Int(3 << 64)),
        capturing(Captured::Float(3.0)),
        capturing(Captured::Float(0.0)),
        capturing(Captured::Float(-0.0)),
        capturing(Captured::Complex(3.0, 0.0)),
        capturing(Captured::Complex(0.0, 3.0)),
        capturing(Captured::NumpyInt(Scalar::I32, 3)),
        capturing(Captured::NumpyInt(Scalar::I64, 3)),
        capturing(Captured::NumpyFloat(Number::F32, 3.0, 0.0)),
        capturing(Captured::NumpyFloat(Number::F64, 3.0, 0.0)),
        capturing(Captured::NumpyFloat(Number::C64, 3.0, 1.0)),
        capturing(Captured::Str("3".into())),
        capturing(Captured::Known("3".into())),
        capturing(Captured::Unsupported(Unsupported::Other, "3".into())),
        capturing(Captured::Unsupported(Unsupported::Array, "3".into())),
        capturing(Captured::DType(DType::I64)),
        capturing(Captured::DType(vector(Scalar::F32, 4))),
        capturing(Captured::Bytes(b"3".to_vec())),
        capturing(Captured::Exception("builtins.ValueError".into())),
        capturing(Captured::Exception("program.Bad#2".into())),
        capturing(Captured::Overloaded(Overloaded { number: 3, name: "f".into() })),
        capturing(Captured::Overloaded(Overloaded { number: 4, name: "f".into() })),
        overloading("numpy.f", 3, "f"),
        overloading("numpy.g", 3, "f"),
        overloading("numpy.f", 4, "f"),
        overloading("numpy.f", 3, "g"),
        answered(vec![answer(3, None, OverloadArgument::Type(Scalar::F32.into()), Err(None))]),
        answered(vec![answer(4, None, OverloadArgument::Type(Scalar::F32.into()), Err(None))]),
        answered(vec![answer(3, Some("x"), OverloadArgument::Type(Scalar::F32.into()), Err(None))]),
        answered(vec![answer(3, None, OverloadArgument::Type(Scalar::F64.into()), Err(None))]),
        answered(vec![answer(3, None, OverloadArgument::Str("float32".into()), Err(None))]),
        answered(vec![answer(3, None, OverloadArgument::Str("float32".into()), Err(Some("no".into())))]),
        answered(vec![answer(3, None, OverloadArgument::Str("float32".into()), Ok(()))]),
        capturing(Captured::Struct(pair, vec![Captured::Int(3), Captured::Int(3)])),
        capturing(Captured::Struct(other_pair, vec![Captured::Int(3), Captured::Int(3)])),
        capturing(Captured::Struct(swapped, vec![Captured::Int(3), Captured::Int(3)])),
        capturing(Captured::Struct(data, vec![Captured::Int(3), Captured::Int(3)])),
        capturing(Captured::Struct(pair, vec![Captured::Int(3), Captured::Int(4)])),
        capturing(Captured::Enum(color, 0, Box::new(Captured::Int(3)))),
        capturing(Captured::Enum(color, 1, Box::new(Captured::Int(3)))),
        capturing(Captured::Enum(color, 0, Box::new(Captured::Int(4)))),
        capturing(Captured::Enum(int_color, 0, Box::new(Captured::Int(3)))),
        capturing(Captured::Class(pair, vec![None, None])),
        capturing(Captured::Class(pair, vec![None, Some(Captured::Int(3))])),
        capturing(Captured::Class(pair, vec![Some(Captured::Int(3)), None])),
        capturing(Captured::Array(constant())),
        capturing(Captured::Array(CapturedArray { dtype: DType::U8, ..constant() })),
        capturing(Captured::Array(CapturedArray { shape: vec![2, 1], ..constant() })),
        capturing(Captured::Array(CapturedArray { layout: Layout::F, ..constant() })),
        capturing(Captured::Array(CapturedArray { bytes: Arc::from([1, 3]), ..constant() })),
        capturing(Captured::DeviceArray(plain, 4096, vec![2], vec![4])),
        capturing(Captured::DeviceArray(ArrayType { readonly: true, ..plain }, 4096, vec![2], vec![4])),
        capturing(Captured::DeviceArray(plain, 8192, vec![2], vec![4])),
        capturing(Captured::DeviceArray(plain, 4096, vec![4], vec![4])),
        capturing(Captured::DeviceArray(plain, 4096, vec![2], vec![-4])),
        capturing(Captured::Time(span, 3)),
        capturing(Captured::Time(span, 4)),
        capturing(Captured::Time(Time { is_span: false, ..span }, 3)),
        capturing(Captured::Time(Time { unit: None, ..span }, 3)),
        capturing(Captured::Recursive(0)),
        capturing(Captured::Recursive(1)),
        with(FunctionDef { number: 1, ..kernel() }),
        capturing(Captured::Tuple(vec![])),
        capturing(Captured::Tuple(vec![Captured::Int(3)])),
        capturing(Captured::Tuple(vec![Captured::Tuple(vec![Captured::Int(3)])])),
        capturing(Captured::Tuple(vec![Captured::Int(3), Captured::Int(3)])),
        capturing(module("m", "x", Captured::Int(3))),
        capturing(module("n", "x", Captured::Int(3))),
        capturing(module("m", "y", Captured::Int(3))),
        capturing(module("m", "x", Captured::Int(4))),
        capturing(unknown("N = f()\n", 0, "it is called")),
        capturing(unknown("M = f()\n", 0, "it is called")),
        capturing(unknown("N = f()\n", 1, "it is called")),
        capturing(unknown("N = f()\n", 0, "the loop binds it")),
        // Types.
        Request { args: vec![], ..sample() },
        Request { args: vec![Scalar::F32.into()], ..sample() },
        Request { args: vec![ArgType::Tuple(vec![Scalar::F32.into()])], ..sample() },
        Request { args: vec![ArgType::Tuple(vec![]), Scalar::F32.into()], ..sample() },
        with_array(plain),
        with_array(ArrayType { dtype: DType::F64, ..plain }),
        with_array(ArrayType { ndim: 2, ..plain }),
        with_array(ArrayType { layout: Layout::F, ..plain }),
        with_array(ArrayType { readonly: true, ..plain }),
        with_array(ArrayType { dtype: record(&[("x", DType::F32), ("y", DType::I8)], false), ..plain }),
        with_array(ArrayType { dtype: record(&[("x", DType::F32), ("y", DType::I8)], true), ..plain }),
        with_array(ArrayType { dtype: record(&[("x", DType::F32), ("z", DType::I8)], false), ..plain }),
        with_array(ArrayType { dtype: record(&[("x", DType::F32), ("y", DType::U8)], false), ..plain }),
        with_array(ArrayType { dtype: record(&[("x", nested(&[2, 3])), ("y", DType::I8)], false), ..plain }),
        with_array(ArrayType { dtype: record(&[("x", nested(&[3, 2])), ("y", DType::I8)], false), ..plain }),
        with_array(ArrayType { dtype: vector(Scalar::F32, 2), ..plain }),
        with_array(ArrayType { dtype: vector(Scalar::F32, 4), ..plain }),
        with_array(ArrayType { dtype: vector(Scalar::I32, 2), ..plain }),
        with_array(ArrayType { dtype: other(Compound::Chars(Chars::new(true, 3))), ..plain }),
        with_array(ArrayType { dtype: other(Compound::Chars(Chars::new(false, 3))), ..plain }),
        with_array(ArrayType { dtype: other(Compound::Chars(Chars::new(false, 4))), ..plain }),
        with_array(ArrayType { dtype: time("datetime64[ns]"), ..plain }),
        with_array(ArrayType { dtype: time("datetime64[us]"), ..plain }),
        with_array(ArrayType { dtype: time("datetime64"), ..plain }),
        with_array(ArrayType { dtype: time("timedelta64[ns]"), ..plain }),
        with_array(ArrayType { dtype: other(Compound::Float8(Float8::E4M3)), ..plain }),
        with_array(ArrayType { dtype: other(Compound::Float8(Float8::E5M2)), ..plain }),
        taking(ArgType::None),
        taking(ArgType::Class(DType::F32)),
        taking(ArgType::Class(DType::F64)),
        taking(ArgType::Pointer(Some(DType::F32))),
        taking(ArgType::Pointer(Some(DType::F64))),
        taking(ArgType::Pointer(None)),
        taking(ArgType::Optional(Box::new(ArgType::Pointer(None)))),
        taking(ArgType::Optional(Box::new(DType::F64.into()))),
        calling(on_gpu(GpuBody::Ptx(PtxBody { text: "add.f32 %0, %1, %1;".into(), pure: false }))),
        calling(on_gpu(GpuBody::Ptx(PtxBody { text: "add.f32 %0, %1, %1;".into(), pure: true }))),
        calling(on_gpu(GpuBody::External(external()))),
        calling(on_gpu(GpuBody::External(External { symbol: "g".into(), ..external() }))),
        calling(on_gpu(GpuBody::External(External { abi: Abi::C, ..external() }))),
        calling(on_gpu(GpuBody::External(External { cooperative: true, ..external() }))),
        calling(on_gpu(GpuBody::External(External { python: true, ..external() }))),
        taking(ArgType::Struct(pair, vec![Scalar::F32.into(), Scalar::F32.into()])),
        taking(ArgType::Struct(pair, vec![Scalar::F32.into(), ArgType::None])),
        taking(ArgType::Struct(other_pair, vec![Scalar::F32.into(), Scalar::F32.into()])),
        taking(ArgType::Enum(color, Box::new(Number::F32.into()))),
        taking(ArgType::Enum(color, Box::new(Number::F64.into()))),
        taking(ArgType::Enum(int_color, Box::new(Number::F32.into()))),
        taking(ArgType::Record(record(&[("x", DType::F32)], false))),
        taking(ArgType::Record(record(&[("y", DType::F32)], false))),
        taking(record(&[("x", DType::F32)], false).into()),
        // Target, options, strings.
        Request { target: Target::Sm(90, ""), ..sample() },
        Request { target: Target::Sm(100, "a"), ..sample() },
        host("", "", ""),
        host("x86_64-pc-linux-gnu", "", ""),
        host("", "znver5", ""),
        host("", "znver4", ""),
        host("", "", "+avx2"),
        planned("", ""),
        planned("x86-64-v4", ""),
        planned("", "+avx512f"),
        optimized(0),
        optimized(1),
        options(Options { fastmath: true, ..base() }),
        options(Options { lineinfo: true, ..base() }),
        options(Options { exceptions: true, ..base() }),
        options(Options { debug: true, ..base() }),
        options(Options { boundscheck: true, ..base() }),
        options(Options { sanitize: Tools::ALL, ..base() }),
        options(Options { sanitize: Tools::MEMCHECK, ..base() }),
        options(Options { wraparound: false, ..base() }),
        options(Options { opt: false, ..base() }),
        options(Options { short_extents: vec![(0, 3)], ..base() }),
        options(Options { short_extents: vec![(1, 3)], ..base() }),
        options(Options { short_extents: vec![(0, 4)], ..base() }),
        options(Options { likely_block: Some([16, 16, 1]), ..base() }),
        options(Options { likely_block: Some([16, 1, 16]), ..base() }),
        options(Options { driver_isa: Some((8, 4)), ..base() }),
        options(Options { driver_isa: Some((9, 0)), ..base() }),
        options(Options { launch_bounds: None, ..base() }),
        options(Options { launch_bounds: Some(bounds(128, None)), ..base() }),
        options(Options { launch_bounds: Some(bounds(64, Some(2))), ..base() }),
        options(Options {
            launch_bounds: Some(LaunchBounds { threads: 128, blocks: Some(2), cluster: Some(4) }),
            ..base()
        }),
        options(Options { entry: foreign(Role::Kernel, None), ..base() }),
        options(Options { entry: foreign(Role::Kernel, Some("k")), ..base() }),
        options(Options { entry: foreign(Role::Function(Abi::C), None), ..base() }),
        options(Options { entry: foreign(Role::Function(Abi::Numba), None), ..base() }),
        options(Options { gpu_code: GpuCode::NvvmIr { forceinline: false }, ..base() }),
        options(Options { gpu_code: GpuCode::NvvmIr { forceinline: true }, ..base() }),
        options(Options { max_registers: Some(32), ..base() }),
        options(Options { max_registers: Some(64), ..base() }),
        options(Options { cpu_threads: CpuThreads::Fibers, ..base() }),
        options(Options { cpu_threads: CpuThreads::Loops, ..base() }),
        options(Options { derivative: Some(derivative(&[0, 1], &[])), ..base() }),
        options(Options { derivative: Some(derivative(&[0, 1], &[1])), ..base() }),
        options(Options { derivative: Some(derivative(&[0], &[1])), ..base() }),
        options(Options {
            derivative: Some(Derivative { has_old_contents: true, ..derivative(&[0], &[1]) }),
            ..base()
        }),
        options(Options { derivative: Some(Derivative { is_forward: true, ..derivative(&[0], &[1]) }), ..base() }),
        options(Options {
            derivative: Some(Derivative { scratch: Scratch::Given, ..derivative(&[0], &[1]) }),
            ..base()
        }),
        options(Options { derivative: Some(Derivative { has_sums: true, ..derivative(&[0], &[1]) }), ..base() }),
        options(Options {
            derivative: Some(Derivative { incoming: Incoming::Read, ..derivative(&[0], &[1]) }),
            ..base()
        }),
        options(Options {
            derivative: Some(Derivative { inner: Some(Box::default()), ..derivative(&[0], &[1]) }),
            ..base()
        }),
        options(Options { bounded_stores: true, ..base() }),
        options(Options { assumptions: Assumptions { small: true, ..Assumptions::NONE }, ..base() }),
        options(Options { assumptions: Assumptions { nonneg: true, ..Assumptions::NONE }, ..base() }),
        options(Options { assumptions: Assumptions { disjoint: true, ..Assumptions::NONE }, ..base() }),
        options(Options { assumptions: Assumptions { aligned: true, ..Assumptions::NONE }, ..base() }),
        options(Options { assumptions: Assumptions { warps: true, ..Assumptions::NONE }, ..base() }),
        options(Options { notes: true, ..base() }),
        options(Options { coarsen: Factors::of_threads([2, 1, 1]), ..base() }),
        options(Options { coarsen: Factors::of_threads([1, 2, 1]), ..base() }),
        options(Options { coarsen: Factors::of_blocks([2, 1, 1]), ..base() }),
        options(Options { coarsen: Factors::of_blocks([1, 2, 1]), ..base() }),
        options(Options { choose: true, ..base() }),
        options(Options { libdevice: Some(Arc::new(vec![])), ..base() }),
        options(Options { libdevice: Some(Arc::new(vec![1])), ..base() }),
        Request { keep: Keep { ir: true, ..Keep::default() }, ..sample() },
        Request { keep: Keep { llvm: true, ..Keep::default() }, ..sample() },
        Request { keep: Keep { asm: true, ..Keep::default() }, ..sample() },
        Request { keep: Keep { unoptimized: true, ..Keep::default() }, ..sample() },
    ];
    let mut seen = BTreeMap::new();
    for (index, request) in requests.iter().enumerate() {
        if let Some(other) = seen.insert(Digest::of(request), index) {
            panic!("requests {other} and {index} have one digest: {request:#?}");
        }
    }
    for part in 0..BUILD.len() {
        let mut build = BUILD;
        build[part] = "another";
        assert_ne!(Digest::of(&sample()), Digest::for_build(&sample(), build));
    }
}

#[test]
fn machine_code_is_told_apart_by_all_that_it_is_made_of() {
    let sample: MachineCode<'_> = MachineCode {
        compute_capability: (9, 0),
        driver: "13.0 libcuda.so.580.159.04 1",
        max_registers: None,
        inputs: &[("ptx", b"abc")],
    };
    let all = [
        sample,
        MachineCode { compute_capability: (8, 0), ..sample },
        MachineCode { compute_capability: (9, 1), ..sample },
        MachineCode { driver: "13.0 libcuda.so.580.159.05 1", ..sample },
        MachineCode { max_registers: Some(0), ..sample },
        MachineCode { max_registers: Some(32), ..sample },
        MachineCode { inputs: &[("ptx", b"abd")], ..sample },
        MachineCode { inputs: &[("cubin", b"abc")], ..sample },
        MachineCode { inputs: &[], ..sample },
        MachineCode { inputs: &[("ptx", b"abc"), ("ptx", b"")], ..sample },
        MachineCode { inputs: &[("ptx", b"ab"), ("ptx", b"c")], ..sample },
    ];
    for (i, one) in all.iter().enumerate() {
        assert_eq!(Digest::of_machine_code(one), Digest::of_machine_code(one));
        for other in &all[..i] {
            assert_ne!(Digest::of_machine_code(one), Digest::of_machine_code(other), "{one:?}, {other:?}");
        }
    }
}
