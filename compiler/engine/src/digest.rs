//! The digest of a request: the same for the same request in every process and on every machine, another one as soon
//! as anything differs that its result depends on.
//!
//! No address, hash seed or order of a hash map goes into it, and nothing in the byte order or word size of the
//! machine. Every value is fed with a tag of its kind, every text and list with its length, so that no two requests
//! are fed alike. A function is fed as its text and place, from which its tree follows, with what its free names mean;
//! a function that it calls is fed as its own digest, made once however many callers it has. Definitions cannot form a
//! circle: each is made of those that it refers to, and a call back is the number of one that the request leads to.

use std::{collections::HashMap, fmt, sync::Arc};

use weft_artifact::{ArgType, ArrayType, Class, ClassId, ClassKind, Compound, DType, Number, RecordField, Time};
use weft_compiler::{
    LIBCLC_HASH, VERSION,
    request::{
        Abi, Answer, Ask, Captured, CapturedArray, CpuThreads, Entry, External, Foreign, FunctionDef, Given, GpuBody,
        HostCpu, Keep, LaunchBounds, Options, Overloaded, Overloads, PtxBody, Request, Role, Signature, Target,
        Unsupported,
    },
    source::{Origin, SourceFile, Span},
};

/// What compiles: its version, its text with LLVM's version (`build.rs`), and the math library in it. Another one may make
/// another thing of a request.
pub const BUILD: [&str; 3] = [VERSION, env!("WEFT_BUILD_ID"), LIBCLC_HASH];

/// 256 bits that stand for a request.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Digest([u8; 32]);

impl Digest {
    /// The digest of a request to this compiler.
    pub fn of(request: &Request) -> Self {
        Self::for_build(request, BUILD)
    }

    /// The digest of a request to a build of the compiler.
    pub fn for_build(request: &Request, build: [&str; 3]) -> Self {
        let Request { function, overloads, args, target, options, keep } = request;
        let mut feed = Feed::default();
        let kernel = feed.functions.digest(function);
        feed.text("weft request 3");
        for part in build {
            feed.text(part);
        }
        feed.bytes(&kernel);
        feed.overloads(overloads);
        feed.types(args);
        feed.target(target);
        feed.options(options);
        let Keep { ir, llvm, asm } = *keep;
        for kept in [ir, llvm, asm] {
            feed.flag(kept);
        }
        Self(feed.finish())
    }
}

/// Hexadecimal digits.
impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The digests of the functions of one request, by address: each is made once.
#[derive(Default)]
struct Functions(HashMap<*const FunctionDef, [u8; 32]>);

impl Functions {
    fn digest(&mut self, function: &Arc<FunctionDef>) -> [u8; 32] {
        if let Some(known) = self.0.get(&Arc::as_ptr(function)) {
            return *known;
        }
        let mut feed = Feed { hasher: blake3::Hasher::new(), functions: std::mem::take(self) };
        feed.function(function);
        *self = std::mem::take(&mut feed.functions);
        let digest = feed.finish();
        self.0.insert(Arc::as_ptr(function), digest);
        digest
    }
}

/// What is fed to the hash, in a form that can be read in one way only.
#[derive(Default)]
struct Feed {
    hasher: blake3::Hasher,
    functions: Functions,
}

impl Feed {
    fn finish(&self) -> [u8; 32] {
        *self.hasher.finalize().as_bytes()
    }

    fn tag(&mut self, tag: u8) {
        self.hasher.update(&[tag]);
    }

    fn flag(&mut self, flag: bool) {
        self.tag(u8::from(flag));
    }

    fn number(&mut self, number: u64) {
        self.hasher.update(&number.to_le_bytes());
    }

    fn bytes(&mut self, bytes: &[u8]) {
        self.number(bytes.len() as u64);
        self.hasher.update(bytes);
    }

    fn text(&mut self, text: &str) {
        self.bytes(text.as_bytes());
    }

    fn optional<T>(&mut self, value: Option<T>, feed: impl FnOnce(&mut Self, T)) {
        self.flag(value.is_some());
        if let Some(value) = value {
            feed(self, value);
        }
    }

    fn float(&mut self, value: f64) {
        self.number(value.to_bits());
    }

    fn int(&mut self, value: i128) {
        self.hasher.update(&value.to_le_bytes());
    }

    fn scalar(&mut self, number: impl Into<Number>) {
        self.text(number.into().name());
    }

    /// A compound type is fed as its description: its number is this process's alone.
    fn dtype(&mut self, dtype: DType) {
        let id = match dtype {
            DType::Number(number) => {
                self.tag(0);
                return self.scalar(number);
            }
            DType::Compound(id) => id,
        };
        match id.get() {
            Compound::Record(record) => {
                self.tag(1);
                self.flag(record.is_aligned());
                self.number(id.get().size_bytes());
                self.number(record.fields().len() as u64);
                for RecordField { name, dtype, offset } in record.fields() {
                    self.text(name);
                    self.number(*offset);
                    self.dtype(*dtype);
                }
            }
            Compound::Nested(nested) => {
                self.tag(2);
                self.extents(nested.shape());
                self.dtype(nested.dtype());
            }
            Compound::Vector(vector) => {
                self.tag(3);
                self.scalar(vector.scalar());
                self.tag(vector.lanes());
            }
            Compound::Chars(chars) => {
                self.tag(4);
                self.flag(chars.is_wide());
                self.number(chars.max_len().into());
            }
            Compound::Time(time) => {
                self.tag(5);
                self.time(*time);
            }
        }
    }

    fn time(&mut self, Time { is_span, unit }: Time) {
        self.flag(is_span);
        self.optional(unit, |feed, unit| feed.text(unit.name()));
    }

    /// A class is fed as its description, for the same reason.
    fn class(&mut self, class: ClassId) {
        let Class { kind, name, identity, fields } = class.get();
        self.tag(match kind {
            ClassKind::NamedTuple => 0,
            ClassKind::Dataclass => 1,
            ClassKind::Enum => 2,
            ClassKind::IntEnum => 3,
        });
        self.text(name);
        self.text(identity);
        self.number(fields.len() as u64);
        for field in fields {
            self.text(field);
        }
    }

    fn array(&mut self, array: &ArrayType) {
        let ArrayType { dtype, ndim, layout, readonly } = array;
        self.dtype(*dtype);
        self.tag(*ndim);
        self.text(layout.letter().encode_utf8(&mut [0; 4]));
        self.flag(*readonly);
    }

    fn types(&mut self, types: &[ArgType]) {
        self.number(types.len() as u64);
        for ty in types {
            match ty {
                ArgType::Value(dtype) => {
                    self.tag(0);
                    self.dtype(*dtype);
                }
                ArgType::Array(array) => {
                    self.tag(1);
                    self.array(array);
                }
                ArgType::Tuple(items) => {
                    self.tag(2);
                    self.types(items);
                }
                ArgType::None => self.tag(3),
                ArgType::Struct(class, items) => {
                    self.tag(4);
                    self.class(*class);
                    self.types(items);
                }
                ArgType::Enum(class, value) => {
                    self.tag(5);
                    self.class(*class);
                    self.types(std::slice::from_ref(value));
                }
                ArgType::Record(dtype) => {
                    self.tag(6);
                    self.dtype(*dtype);
                }
                ArgType::Class(dtype) => {
                    self.tag(7);
                    self.dtype(*dtype);
                }
                ArgType::Pointer(dtype) => {
                    self.tag(8);
                    self.optional(*dtype, Self::dtype);
                }
                ArgType::Optional(of) => {
                    self.tag(9);
                    self.types(std::slice::from_ref(of));
                }
            }
        }
    }

    fn target(&mut self, target: &Target) {
        match target {
            Target::Sm(number, suffix) => {
                self.tag(0);
                self.number(u64::from(*number));
                self.text(suffix);
            }
            Target::Host(cpu) => {
                let HostCpu { triple, name, features } = &**cpu;
                self.tag(1);
                for text in [triple, name, features] {
                    self.text(text);
                }
            }
        }
    }

    fn options(&mut self, options: &Options) {
        let Options {
            fastmath,
            lineinfo,
            exceptions,
            debug,
            boundscheck,
            opt,
            launch_bounds,
            cpu_threads,
            max_registers,
            libdevice,
            entry,
        } = options;
        for flag in [fastmath, lineinfo, exceptions, debug, boundscheck, opt] {
            self.flag(*flag);
        }
        self.optional(*launch_bounds, |feed, LaunchBounds { threads, blocks, cluster }| {
            feed.number(u64::from(threads));
            for bound in [blocks, cluster] {
                feed.optional(bound, |feed, bound| feed.number(u64::from(bound)));
            }
        });
        self.tag(match cpu_threads {
            CpuThreads::Auto => 0,
            CpuThreads::Loops => 1,
            CpuThreads::Fibers => 2,
        });
        self.optional(*max_registers, |feed, registers| feed.number(u64::from(registers)));
        self.optional(libdevice.as_ref(), |feed, bitcode| feed.bytes(bitcode));
        match entry {
            Entry::Launch => self.tag(0),
            Entry::Foreign(Foreign { role, symbol }) => {
                self.tag(match role {
                    Role::Kernel => 1,
                    Role::Function(Abi::C) => 2,
                    Role::Function(Abi::Numba) => 3,
                });
                self.optional(symbol.as_ref(), |feed, symbol| feed.text(symbol));
            }
        }
    }

    /// Where something stands, and its text: as much as messages and line tables show of it.
    fn place(&mut self, file: &SourceFile, span: Span) {
        let (line, column) = file.line_column(span.start);
        self.text(&file.name);
        self.tag(match file.origin {
            Origin::User => 0,
            Origin::Prelude => 1,
        });
        self.number(u64::from(line));
        self.number(u64::from(column));
        self.text(file.text.get(span.start as usize..span.end as usize).unwrap_or(&file.text));
    }

    fn function(&mut self, function: &FunctionDef) {
        let FunctionDef { ast, source, globals, defaults, signatures, inline, gpu, number } = function;
        self.place(source, ast.span);
        self.text(&ast.name);
        self.number(ast.params.len() as u64);
        for param in &ast.params {
            self.text(&param.name);
        }
        for names in [globals, defaults] {
            self.number(names.len() as u64);
            for (name, value) in names {
                self.text(name);
                self.captured(value);
            }
        }
        self.number(signatures.len() as u64);
        for Signature { args, returns } in signatures {
            self.types(args);
            self.types(returns.as_slice());
        }
        self.flag(*inline);
        match gpu {
            None => self.tag(0),
            Some(GpuBody::Ptx(PtxBody { text, pure })) => {
                self.tag(1);
                self.text(text);
                self.flag(*pure);
            }
            Some(GpuBody::External(External { symbol, abi, cooperative, python })) => {
                self.tag(2);
                self.text(symbol);
                self.tag(match abi {
                    Abi::Numba => 0,
                    Abi::C => 1,
                });
                self.flag(*cooperative);
                self.flag(*python);
            }
        }
        self.number(u64::from(*number));
    }

    fn all_captured(&mut self, values: &[Captured]) {
        self.number(values.len() as u64);
        for value in values {
            self.captured(value);
        }
    }

    fn extents(&mut self, shape: &[u64]) {
        self.number(shape.len() as u64);
        for extent in shape {
            self.number(*extent);
        }
    }

    fn overloaded(&mut self, Overloaded { number, name }: &Overloaded) {
        self.number(u64::from(*number));
        self.text(name);
    }

    fn overloads(&mut self, Overloads { members, answers }: &Overloads) {
        self.number(members.len() as u64);
        for (path, function) in members {
            self.text(path);
            self.overloaded(function);
        }
        self.number(answers.len() as u64);
        for answer in answers {
            self.answer(answer);
        }
    }

    fn answer(&mut self, Answer { ask: Ask { function, args }, chosen }: &Answer) {
        self.number(u64::from(*function));
        self.number(args.len() as u64);
        for (name, given) in args {
            self.optional(name.as_ref(), |feed, name| feed.text(name));
            match given {
                Given::Type(ty) => {
                    self.tag(0);
                    self.types(std::slice::from_ref(ty));
                }
                Given::Str(text) => {
                    self.tag(1);
                    self.text(text);
                }
            }
        }
        match chosen {
            Ok(function) => {
                self.tag(0);
                let digest = self.functions.digest(function);
                self.bytes(&digest);
            }
            Err(why) => {
                self.tag(1);
                self.optional(why.as_ref(), |feed, why| feed.text(why));
            }
        }
    }

    fn captured(&mut self, value: &Captured) {
        match value {
            Captured::None => self.tag(0),
            Captured::Bool(value) => {
                self.tag(1);
                self.flag(*value);
            }
            Captured::Int(value) => {
                self.tag(2);
                self.int(*value);
            }
            Captured::Float(value) => {
                self.tag(3);
                self.float(*value);
            }
            Captured::Complex(real, imag) => {
                self.tag(4);
                self.float(*real);
                self.float(*imag);
            }
            Captured::NumpyInt(scalar, value) => {
                self.tag(5);
                self.scalar(*scalar);
                self.int(*value);
            }
            Captured::NumpyFloat(scalar, real, imag) => {
                self.tag(6);
                self.scalar(*scalar);
                self.float(*real);
                self.float(*imag);
            }
            Captured::Str(text) => {
                self.tag(7);
                self.text(text);
            }
            Captured::Tuple(items) => {
                self.tag(8);
                self.all_captured(items);
            }
            Captured::DType(dtype) => {
                self.tag(9);
                self.dtype(*dtype);
            }
            Captured::Known(path) => {
                self.tag(10);
                self.text(path);
            }
            Captured::Module(name, members) => {
                self.tag(11);
                self.text(name);
                self.number(members.len() as u64);
                for (name, member) in members {
                    self.text(name);
                    self.captured(member);
                }
            }
            Captured::Function(function) => {
                self.tag(12);
                let digest = self.functions.digest(function);
                self.bytes(&digest);
            }
            Captured::Unsupported(kind, what) => {
                self.tag(13);
                self.tag(match kind {
                    Unsupported::PlainFunction => 0,
                    Unsupported::Array => 1,
                    Unsupported::Other => 2,
                    Unsupported::ForeignFunction => 3,
                });
                self.text(what);
            }
            Captured::Unknown(file, span, why) => {
                self.tag(14);
                self.place(file, *span);
                self.text(why);
            }
            Captured::Bytes(bytes) => {
                self.tag(15);
                self.bytes(bytes);
            }
            Captured::Struct(class, items) => {
                self.tag(16);
                self.class(*class);
                self.all_captured(items);
            }
            Captured::Enum(class, member, value) => {
                self.tag(17);
                self.class(*class);
                self.number(*member as u64);
                self.captured(value);
            }
            Captured::Class(class, values) => {
                self.tag(18);
                self.class(*class);
                self.number(values.len() as u64);
                for value in values {
                    self.optional(value.as_ref(), Self::captured);
                }
            }
            Captured::Exception(class) => {
                self.tag(23);
                self.text(class);
            }
            Captured::Array(CapturedArray { dtype, shape, layout, bytes }) => {
                self.tag(19);
                self.dtype(*dtype);
                self.extents(shape);
                self.text(layout.letter().encode_utf8(&mut [0; 4]));
                self.bytes(bytes);
            }
            Captured::DeviceArray(array, address, shape, strides) => {
                self.tag(20);
                self.array(array);
                self.number(*address);
                self.extents(shape);
                self.number(strides.len() as u64);
                for stride in strides {
                    self.int((*stride).into());
                }
            }
            Captured::Time(time, count) => {
                self.tag(22);
                self.time(*time);
                self.int((*count).into());
            }
            Captured::Overloaded(function) => {
                self.tag(24);
                self.overloaded(function);
            }
            Captured::Recursive(number) => {
                self.tag(21);
                self.number(u64::from(*number));
            }
        }
    }
}
