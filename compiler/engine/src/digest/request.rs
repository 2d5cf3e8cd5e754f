//! Hashes the parts of a request besides types: functions with the meanings of their names, overloads, target and
//! options.

use std::sync::{Arc, Mutex, PoisonError, Weak};

use weft_artifact::{Assumptions, Factors, Tools};
use weft_compiler::{
    request::{
        Abi, Answer, Captured, CapturedArray, CpuThreads, Derivative, Entry, External, Foreign, FunctionDef, GpuBody,
        GpuCode, HostCpu, LaunchBounds, Options, OverloadArgument, OverloadQuery, Overloaded, Overloads, PlannedCpu,
        PtxBody, Role, Signature, Target, Typing, Unsupported,
    },
    source::{Origin, SourceFile, Span},
};

use super::Feed;

impl Feed {
    pub(super) fn target(&mut self, target: &Target) {
        match target {
            Target::Sm(number, suffix) => {
                self.tag(0);
                self.number(u64::from(*number));
                self.text(suffix);
            }
            Target::Host(cpu) => {
                let HostCpu { triple, name, features, planned, opt_level, skipped_passes } = &**cpu;
                self.tag(1);
                for text in [triple, name, features] {
                    self.text(text);
                }
                self.tag(u8::from(planned.is_some()));
                if let Some(PlannedCpu { name, features }) = planned {
                    self.text(name);
                    self.text(features);
                }
                self.tag(opt_level.map_or(0, |level| level + 1));
                self.number(skipped_passes.len() as u64);
                for name in skipped_passes {
                    self.text(name);
                }
            }
        }
    }

    fn derivative(
        &mut self,
        Derivative { of, wrt, has_old_contents, is_forward, scratch, has_sums, incoming, inner }: &Derivative,
    ) {
        for params in [of, wrt] {
            self.number(params.len() as u64);
            for param in params {
                self.number(u64::from(*param));
            }
        }
        self.flag(*has_old_contents);
        self.flag(*is_forward);
        self.number(*scratch as u64);
        self.flag(*has_sums);
        self.number(*incoming as u64);
        self.optional(inner.as_deref(), Self::derivative);
    }

    pub(super) fn options(&mut self, options: &Options) {
        let Options {
            fastmath,
            reproducible,
            lineinfo,
            exceptions,
            debug,
            boundscheck,
            wraparound,
            sanitize: Tools(sanitize),
            opt,
            launch_bounds,
            cpu_threads,
            max_registers,
            libdevice,
            bounded_stores,
            assumptions: Assumptions { small, nonneg, disjoint, aligned, warps },
            short_extents,
            likely_block,
            notes,
            interpreted,
            coarsen,
            choose,
            driver_isa,
            entry,
            gpu_code,
            derivative,
        } = options;
        let flags = [
            fastmath,
            reproducible,
            lineinfo,
            exceptions,
            debug,
            boundscheck,
            wraparound,
            opt,
            bounded_stores,
            small,
            nonneg,
            disjoint,
            aligned,
            warps,
            notes,
            interpreted,
            choose,
        ];
        for flag in flags {
            self.flag(*flag);
        }
        self.tag(*sanitize);
        let Factors { threads, blocks } = coarsen;
        for factor in threads.iter().chain(blocks) {
            self.number(u64::from(*factor));
        }
        self.number(short_extents.len() as u64);
        for (param, extent) in short_extents {
            self.number(u64::from(*param));
            self.number(u64::from(*extent));
        }
        self.optional(*likely_block, |feed, block| {
            for threads in block {
                feed.number(u64::from(threads));
            }
        });
        self.optional(*launch_bounds, |feed, LaunchBounds { threads, blocks, cluster }| {
            feed.number(u64::from(threads));
            for bound in [blocks, cluster] {
                feed.optional(bound, |feed, bound| feed.number(u64::from(bound)));
            }
        });
        self.optional(derivative.as_ref(), Self::derivative);
        self.tag(match cpu_threads {
            CpuThreads::Auto => 0,
            CpuThreads::Loops => 1,
            CpuThreads::Fibers => 2,
        });
        self.optional(*max_registers, |feed, registers| feed.number(u64::from(registers)));
        self.optional(*driver_isa, |feed, (major, minor)| {
            feed.number(u64::from(major));
            feed.number(u64::from(minor));
        });
        self.optional(libdevice.as_ref(), |feed, bitcode| feed.bytes(&library(bitcode)));
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
        self.tag(match gpu_code {
            GpuCode::Ptx => 0,
            GpuCode::NvvmIr { forceinline: false } => 1,
            GpuCode::NvvmIr { forceinline: true } => 2,
        });
    }

    /// Hashes a location and its source text, as far as messages and line tables show them.
    fn location(&mut self, file: &SourceFile, span: Span) {
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

    pub(super) fn function(&mut self, function: &FunctionDef) {
        let FunctionDef { ast, source, globals, defaults, signatures, inline, typing, gpu, backward, number } =
            function;
        self.location(source, ast.span);
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
        self.tag(match typing {
            None => 0,
            Some(Typing::Numba) => 1,
            Some(Typing::Numpy) => 2,
        });
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
        self.optional(backward.as_ref(), Self::captured);
        self.number(u64::from(*number));
    }

    fn all_captured(&mut self, values: &[Captured]) {
        self.number(values.len() as u64);
        for value in values {
            self.captured(value);
        }
    }

    pub(super) fn extents(&mut self, shape: &[u64]) {
        self.number(shape.len() as u64);
        for extent in shape {
            self.number(*extent);
        }
    }

    fn overloaded(&mut self, Overloaded { number, name }: &Overloaded) {
        self.number(u64::from(*number));
        self.text(name);
    }

    pub(super) fn overloads(&mut self, Overloads { members, answers }: &Overloads) {
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

    fn answer(&mut self, Answer { query: OverloadQuery { function, args }, chosen }: &Answer) {
        self.number(u64::from(*function));
        self.number(args.len() as u64);
        for (name, given) in args {
            self.optional(name.as_ref(), |feed, name| feed.text(name));
            match given {
                OverloadArgument::Type(ty) => {
                    self.tag(0);
                    self.types(std::slice::from_ref(ty));
                }
                OverloadArgument::Str(text) => {
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
                self.location(file, *span);
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
                self.functions.has_addresses = true;
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

/// The hash of a library of half a megabyte, which most requests of a process share. It is computed once for
/// consecutive requests with the same library: the weak reference prevents another library from being allocated at the
/// same address.
fn library(bitcode: &Arc<Vec<u8>>) -> [u8; 32] {
    struct Hashed(Weak<Vec<u8>>, [u8; 32]);
    static LAST: Mutex<Option<Hashed>> = Mutex::new(None);
    let this = Arc::downgrade(bitcode);
    let mut last = LAST.lock().unwrap_or_else(PoisonError::into_inner);
    match &*last {
        Some(Hashed(known, hash)) if known.ptr_eq(&this) => *hash,
        Some(_) | None => {
            let hash = *blake3::hash(bitcode).as_bytes();
            *last = Some(Hashed(this, hash));
            hash
        }
    }
}
