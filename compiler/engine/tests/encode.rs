//! Encoding and decoding: a result is decoded as it was encoded, and other bytes are rejected.

use std::{collections::BTreeMap, sync::Arc};

use weft_artifact::{
    Access, ArgType, ArrayType, Artifact, Assumptions, Candidate, Chars, Class, ClassId, ClassKind, Coarsening,
    CodeFormat, Compound, DType, Factors, Fault, FaultArg, Faults, Float8, HostEntry, Kernel, Layout, Nested, Number,
    Numbers, Param, Record, RecordField, Scalar, SharedArrayInfo, Site, SiteKind, Sites, Slot, SlotField, SlotSource,
    SlotType, SourceLocation, Time, Tools, Update, Vector,
};
use weft_compiler::{
    diagnostic::{Code, Diagnostic, Severity},
    host_cpu,
    pipeline::{self, Output},
    request::{
        Captured, FunctionDef, Keep, Options, Outcome, OverloadArgument, OverloadQuery, Overloads, Request, Target,
    },
    source::{Origin, SourceFile, SourceMap, Span},
    syntax,
};
use weft_engine::{Malformed, decode, encode};

/// Encodes, decodes and compares.
fn there_and_back(output: &Output) -> Vec<u8> {
    let bytes = written(output);
    let read = decode(&bytes).expect("what was written is read").made().expect("it was made");
    assert_eq!(read.artifact, output.artifact);
    assert_eq!(format!("{read:?}"), format!("{output:?}"));
    assert_eq!(written(&read), bytes);
    bytes
}

fn written(output: &Output) -> Vec<u8> {
    encode(&Outcome::Made(Arc::new(output.clone())))
}

fn compound(compound: Compound) -> DType {
    DType::intern(compound).expect("there is room")
}

fn dtypes() -> Vec<DType> {
    let fields = vec![
        RecordField { name: "x".to_owned(), dtype: DType::F64, offset: 8 },
        RecordField { name: "ä".to_owned(), dtype: DType::I8, offset: 3 },
    ];
    let record = compound(Compound::Record(Record::new(fields, 24, true).expect("it is sound")));
    let of_records = RecordField { name: "r".to_owned(), dtype: record, offset: 1 };
    let times = ["datetime64[ns]", "timedelta64", "timedelta64[Y]"];
    let mut all: Vec<DType> = Number::all().map(DType::from).collect();
    all.extend([
        record,
        compound(Compound::Record(Record::new(vec![of_records], 25, false).expect("it is sound"))),
        compound(Compound::Nested(Nested::new(record, vec![3, 0, 7]).expect("it is sound"))),
        compound(Compound::Vector(Vector::new(Scalar::U16, 3).expect("it is sound"))),
        compound(Compound::Chars(Chars::new(true, 12))),
        compound(Compound::Chars(Chars::new(false, 1))),
    ]);
    all.extend(Float8::ALL.map(|format| compound(Compound::Float8(format))));
    all.extend(times.map(|name| compound(Compound::Time(Time::from_name(name).expect("is a type")))));
    all
}

fn class(kind: ClassKind) -> ClassId {
    let fields = vec!["a".to_owned(), "b".to_owned()];
    let class = Class { kind, name: "C".to_owned(), identity: "encode.C(1, 'x')".to_owned(), fields };
    ClassId::intern(class).expect("there is room")
}

fn types() -> Vec<ArgType> {
    let array = |dtype, layout, readonly| ArgType::Array(ArrayType { dtype, ndim: 7, layout, readonly });
    let mut all: Vec<ArgType> = dtypes().into_iter().map(ArgType::Value).collect();
    let items = vec![ArgType::None, ArgType::Tuple(Vec::new()), ArgType::Tuple(vec![ArgType::Value(DType::BF16)])];
    all.extend([
        array(DType::C64, Layout::C, false),
        array(DType::F16, Layout::F, true),
        array(DType::BOOL, Layout::Any, false),
        ArgType::Struct(class(ClassKind::NamedTuple), items.clone()),
        ArgType::Struct(class(ClassKind::Dataclass), vec![ArgType::None; 2]),
        ArgType::Enum(class(ClassKind::Enum), Box::new(ArgType::None)),
        ArgType::Enum(class(ClassKind::IntEnum), Box::new(ArgType::Value(DType::I64))),
        ArgType::Tuple(items),
        ArgType::Class(DType::U32),
        ArgType::Pointer(None),
        ArgType::Pointer(Some(DType::F32)),
        ArgType::Optional(Box::new(ArgType::Value(DType::I16))),
    ]);
    all.extend(dtypes().into_iter().map(ArgType::Record));
    all
}

fn sites() -> Sites {
    let site = |kind: SiteKind| Site {
        kind,
        file: "kernel.py".to_owned(),
        line: 3,
        column: 5,
        width: 4,
        text: "    x[i] = 1".to_owned(),
        array: "x".to_owned(),
        function: "kernel".to_owned(),
        is_own: kind == SiteKind::End,
        loops: vec![1, 2],
        branches: vec![(2, kind == SiteKind::Read)],
        update: (kind == SiteKind::Write).then(|| Update {
            statement: "x[i] += …".to_owned(),
            operation: "add".to_owned(),
            element: "x, i".to_owned(),
        }),
    };
    let kinds = [
        SiteKind::Read,
        SiteKind::Write,
        SiteKind::Atomic,
        SiteKind::Barrier,
        SiteKind::WarpBarrier,
        SiteKind::GridBarrier,
        SiteKind::Shuffle,
        SiteKind::Vote,
        SiteKind::Match,
        SiteKind::WarpReduce,
        SiteKind::Multiply,
        SiteKind::End,
        SiteKind::Call,
    ];
    let shared = vec![SharedArrayInfo {
        offset: 16,
        bytes: 64,
        name: "s".to_owned(),
        item: 4,
        shape: vec![4, 4],
        is_program: true,
    }];
    Sites { tools: Tools::ALL, sites: kinds.map(site).to_vec(), shared, only_read: vec![1, 4] }
}

fn faults() -> Faults {
    let location = |line| SourceLocation { file: "k.py".to_owned(), line, function: "ƒ".to_owned() };
    let fault = |numbers, args| Fault { class: "builtins.ValueError".to_owned(), args, numbers, location: location(3) };
    let args = vec![
        FaultArg::None,
        FaultArg::Bool(true),
        FaultArg::Int(i128::MIN),
        FaultArg::Float(f64::NAN.to_bits()),
        FaultArg::Str("no".to_owned()),
        FaultArg::Tuple(vec![FaultArg::Tuple(Vec::new())]),
    ];
    let numbers = [Numbers::None, Numbers::Index(6), Numbers::Extents, Numbers::Elements];
    Faults {
        faults: numbers.map(|numbers| fault(numbers, args.clone())).to_vec(),
        calls: vec![location(u32::MAX)],
        at_launch: true,
    }
}

/// An output that contains every variant.
fn everything() -> Output {
    let fields = [
        (SlotField::Value, SlotType::Scalar(Scalar::F32)),
        (SlotField::Real, SlotType::Scalar(Scalar::F64)),
        (SlotField::Imag, SlotType::Scalar(Scalar::F64)),
        (SlotField::Data, SlotType::Pointer),
        (SlotField::Shape(1), SlotType::Scalar(Scalar::I64)),
        (SlotField::Stride(6), SlotType::Bytes { size: 12, align: 4 }),
        (SlotField::Start, SlotType::Scalar(Scalar::U64)),
        (SlotField::Room, SlotType::Scalar(Scalar::U64)),
        (SlotField::Least, SlotType::Scalar(Scalar::I64)),
        (SlotField::Limit, SlotType::Scalar(Scalar::I64)),
    ];
    let slot = |(field, ty)| Slot { source: SlotSource::Argument { param: 2, path: vec![0, 7], field }, ty };
    let param =
        |ty| Param { name: "x".to_owned(), ty, access: Access { reads: true, writes: false, accumulates: false } };
    let host = HostEntry {
        stack_bytes: Some(1 << 16),
        call_bytes: 5,
        below_bytes: 6,
        dynamic_offset: 64,
        x_axis: 1,
        may_split_blocks: true,
        calls_runtime: true,
    };
    let kernel = Kernel {
        name: "k".to_owned(),
        symbol: "k$1".to_owned(),
        params: types().into_iter().map(param).collect(),
        slots: fields.map(slot).to_vec(),
        shared_bytes: 1,
        local_bytes: 2,
        const_bytes: u64::MAX,
        max_threads: Some(256),
        dynamic_shared: true,
        cooperative: false,
        calls_itself: true,
        can_bound_stores: true,
        coarsening: Coarsening {
            factors: Factors { blocks: [1, 1, 2], ..Factors::of_threads([4, 2, 1]) },
            note: "4x2x1 threads in one".to_owned(),
            candidates: vec![Candidate {
                factors: Factors::of_threads([2, 1, 1]),
                time: 812,
                fewest: 32,
                at_once: 2048,
                note: "2x1x1".to_owned(),
            }],
        },
        gains: Assumptions { small: true, nonneg: false, disjoint: false, aligned: true, warps: false },
        faults: Some(Arc::new(faults())),
        prints: true,
        sanitize: Some(Arc::new(sites())),
        host: Some(host),
    };
    let plain = Kernel { faults: None, sanitize: None, host: None, max_threads: None, ..kernel.clone() };
    let mut sources = SourceMap::default();
    for (name, origin) in [("k.py", Origin::User), ("prelude.py", Origin::Prelude)] {
        let file =
            SourceFile { first_line: 9, cut_columns: 4, origin, ..SourceFile::new(name, "def k():\n    pass\n") };
        sources.add(&Arc::new(file));
    }
    let span = Span { file: 1, start: 2, end: 3 };
    let warning = |code, severity| Diagnostic {
        code,
        severity,
        message: "a".to_owned(),
        span,
        label: String::new(),
        labels: vec![(Span::default(), "b".to_owned())],
        notes: vec!["c".to_owned(), String::new()],
        numba: Some("e".to_owned()),
        help: Some("d".to_owned()),
    };
    let warnings = vec![warning(Code::Syntax, Severity::Warning), warning(Code::Internal, Severity::Error)];
    Output {
        artifact: Artifact {
            format: CodeFormat::HostObject,
            target: "host".to_owned(),
            code: (0..=255).collect(),
            kernels: vec![kernel, plain],
        },
        returns: Some(ArgType::Value(DType::C128)),
        ir: Some("ir".to_owned()),
        llvm: None,
        asm: Some(String::new()),
        warnings,
        sources,
    }
}

#[test]
fn every_variant_comes_back() {
    there_and_back(&everything());
    let nothing = Output {
        artifact: Artifact { format: CodeFormat::Ptx, target: String::new(), code: Vec::new(), kernels: Vec::new() },
        returns: None,
        ir: None,
        llvm: None,
        asm: None,
        warnings: Vec::new(),
        sources: SourceMap::default(),
    };
    there_and_back(&nothing);
    let warnings = Code::ALL.iter().map(|code| Diagnostic::error(*code, Span::default(), "it is wrong")).collect();
    there_and_back(&Output { warnings, ..nothing });
}

const TEXT: &str = "def k(x, y):\n    i = cuda.grid(1)\n    if i < x.size:\n        if y[i] < 0:\n            \
                    raise ValueError('negative', 7)\n        x[i] += y[i] // x.size\n    z = 3\n";

#[test]
fn what_the_compiler_made_comes_back() {
    let source = SourceFile::new("k.py", TEXT);
    let function = FunctionDef {
        ast: syntax::parse_function(&source, 0, None).expect("the text of a function"),
        source: Arc::new(source),
        globals: BTreeMap::from([
            ("cuda".to_owned(), Captured::Known("weft.cuda".into())),
            ("ValueError".to_owned(), Captured::Exception("builtins.ValueError".into())),
        ]),
        defaults: BTreeMap::new(),
        signatures: Vec::new(),
        inline: false,
        typing: None,
        gpu: None,
        backward: None,
        number: 0,
    };
    let array = |layout| ArgType::Array(ArrayType { dtype: DType::I32, ndim: 1, layout, readonly: false });
    let request = Request {
        function: Arc::new(function),
        overloads: Overloads::default(),
        args: vec![array(Layout::C), array(Layout::Any)],
        target: Target::Sm(90, ""),
        options: Options { exceptions: true, lineinfo: true, ..Options::default() },
        keep: Keep { ir: true, llvm: true, ..Keep::default() },
    };
    let on_host = Request {
        target: Target::Host(host_cpu()),
        keep: Keep { ir: true, llvm: true, asm: true, ..Keep::default() },
        ..request.clone()
    };
    for request in [request, on_host] {
        let output = pipeline::compile(&request).expect("a good kernel").made().expect("it calls no overloads");
        assert!(output.artifact.kernels[0].faults.is_some(), "the kernel raises");
        there_and_back(&output);
    }
}

#[test]
fn what_is_cut_off_or_longer_has_no_meaning() {
    let mut bytes = written(&everything());
    for end in 0..bytes.len() {
        assert_eq!(decode(&bytes[..end]).err(), Some(Malformed), "the first {end} bytes");
    }
    bytes.push(0);
    assert_eq!(decode(&bytes).err(), Some(Malformed));
}

#[test]
fn questions_are_read_as_they_were_asked() {
    let given = vec![
        (None, OverloadArgument::Type(ArgType::Enum(class(ClassKind::Enum), Box::new(ArgType::Value(DType::I64))))),
        (Some("axis".to_owned()), OverloadArgument::Str("ä".to_owned())),
    ];
    let queries =
        vec![OverloadQuery { function: 7, args: given }, OverloadQuery { function: u32::MAX, args: Vec::new() }];
    let Ok(Outcome::Queries(read)) = decode(&encode(&Outcome::Queries(queries.clone()))) else {
        panic!("they are questions")
    };
    assert_eq!(read, queries);
}

#[test]
fn no_damage_is_a_panic() {
    let bytes = written(&everything());
    for place in 0..bytes.len() {
        for flip in [1, 0x80, 0xff] {
            let mut damaged = bytes.clone();
            damaged[place] ^= flip;
            if let Ok(read) = decode(&damaged) {
                assert_eq!(encode(&read), damaged, "byte {place} has no meaning, but is read");
            }
        }
    }
}

#[test]
fn types_are_not_read_deeper_than_the_stack() {
    let mut output = everything();
    let nested = |depth| (0..depth).fold(ArgType::None, |inner, _| ArgType::Tuple(vec![inner]));
    output.returns = Some(nested(200));
    there_and_back(&output);
    output.returns = Some(nested(300));
    assert_eq!(decode(&written(&output)).err(), Some(Malformed));
}
