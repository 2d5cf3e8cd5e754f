//! The digest of a request: the same for the same request in every process and on every machine, another one as soon
//! as anything differs that its result depends on.
//!
//! No address, hash seed or order of a hash map goes into it, and nothing in the byte order or word size of the
//! machine. Every value is fed with a tag of its kind, every text and list with its length, so that no two requests
//! are fed alike. A function is fed as its text and place, from which its tree follows, with what its free names mean;
//! a function that it calls is fed as its own digest, made once however many callers it has. Definitions cannot form a
//! circle: each is made of those that it refers to, and a call back is the number of one that the request leads to.

mod request;
mod types;

use std::{collections::HashMap, fmt, sync::Arc};

use weft_artifact::MachineCode;
use weft_compiler::{
    LIBCLC_HASH, VERSION,
    request::{FunctionDef, Keep, Request},
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
        Self::and_reach(request, build).0
    }

    /// The digest of a request to this compiler, and whether another process may make the same request: no address of this
    /// one is in it.
    pub(crate) fn and_is_lasting(request: &Request) -> (Self, bool) {
        Self::and_reach(request, BUILD)
    }

    /// The digest of machine code that a driver makes of what this weft has compiled.
    pub fn of_machine_code(code: &MachineCode<'_>) -> Self {
        let MachineCode { compute_capability: (major, minor), driver, max_registers, inputs } = *code;
        let mut feed = Feed::default();
        // Another number where the runtime has other code made of the same pieces.
        feed.text("weft machine code 1");
        for part in BUILD {
            feed.text(part);
        }
        for number in [major, minor] {
            feed.number(u64::from(number));
        }
        feed.text(driver);
        feed.optional(max_registers, |feed, registers| feed.number(u64::from(registers)));
        feed.number(inputs.len() as u64);
        for (kind, bytes) in inputs {
            feed.text(kind);
            feed.bytes(bytes);
        }
        Self(feed.finish())
    }

    /// The digest of what was measured of a kernel's code on a device, for blocks and grids like these: the power of
    /// two that a grid reaches, and by what its extents can be divided.
    pub fn of_measurement(code: &[u8], device: &str, block: [u32; 3], grid: u32, multiples: [u32; 3]) -> Self {
        let mut feed = Feed::default();
        // Another number where something else is kept, or it means something else.
        feed.text("weft measurement 2");
        for part in BUILD {
            feed.text(part);
        }
        feed.bytes(code);
        feed.text(device);
        for number in block.into_iter().chain([grid]).chain(multiples) {
            feed.number(u64::from(number));
        }
        Self(feed.finish())
    }

    /// Its bytes.
    pub(crate) fn bytes(&self) -> &[u8; 32] {
        &self.0
    }

    fn and_reach(request: &Request, build: [&str; 3]) -> (Self, bool) {
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
        (Self(feed.finish()), !feed.functions.has_addresses)
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
struct Functions {
    digests: HashMap<*const FunctionDef, [u8; 32]>,
    /// An address of this process was fed.
    has_addresses: bool,
}

impl Functions {
    fn digest(&mut self, function: &Arc<FunctionDef>) -> [u8; 32] {
        if let Some(known) = self.digests.get(&Arc::as_ptr(function)) {
            return *known;
        }
        let mut feed = Feed { hasher: blake3::Hasher::new(), functions: std::mem::take(self) };
        feed.function(function);
        *self = std::mem::take(&mut feed.functions);
        let digest = feed.finish();
        self.digests.insert(Arc::as_ptr(function), digest);
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
}
