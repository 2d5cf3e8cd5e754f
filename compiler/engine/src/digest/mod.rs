//! The digest of a request. The same request has the same digest in every process and on every machine. If anything
//! differs that its result depends on, the digest differs.
//!
//! The hash covers no addresses, hash seeds or iteration orders of hash maps, and does not depend on the machine's byte
//! order or word size. Each value is hashed with a tag of its kind, each string and list with its length, so that no
//! two requests have the same encoding. A function is hashed as its source text, its location, and the meaning of its
//! free names; its tree follows from these. A function that it calls is hashed as its own digest, computed once for any
//! number of callers. Definitions are acyclic: each consists of those that it refers to, and a recursive call is the
//! number of a function that the request leads to.

mod request;
mod types;

use std::{collections::HashMap, fmt, sync::Arc};

use weft_artifact::MachineCode;
use weft_compiler::{
    LIBCLC_HASH, VERSION,
    request::{FunctionDef, Keep, Request},
};

/// The build of the compiler: its version, the hash of its sources and LLVM's version (`build.rs`), and the hash of its
/// math library. Another build may generate other code for the same request.
pub const BUILD: [&str; 3] = [VERSION, env!("WEFT_BUILD_ID"), LIBCLC_HASH];

/// A 256-bit hash that identifies a request.
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

    /// The digest of a request to this compiler, and whether another process may make the same request: the request
    /// contains no address of this process.
    pub(crate) fn and_is_lasting(request: &Request) -> (Self, bool) {
        Self::and_reach(request, BUILD)
    }

    /// The digest of machine code that a driver generates from code that this build of weft has compiled.
    pub fn of_machine_code(code: &MachineCode<'_>) -> Self {
        let MachineCode { compute_capability: (major, minor), driver, max_registers, inputs } = *code;
        let mut feed = Feed::default();
        // Increase the number when the runtime builds other code from the same inputs.
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

    /// The digest of a measurement of a kernel's code on a device, for one block and a class of grids: `grid` is the
    /// highest power of two that the grid reaches, `multiples` has factors that divide its extents.
    pub fn of_measurement(code: &[u8], device: &str, block: [u32; 3], grid: u32, multiples: [u32; 3]) -> Self {
        let mut feed = Feed::default();
        // Increase the number when the contents or the meaning of a measurement change.
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

    /// The bytes of the digest.
    pub fn bytes(&self) -> &[u8; 32] {
        &self.0
    }

    fn and_reach(request: &Request, build: [&str; 3]) -> (Self, bool) {
        let Request { function, overloads, args, target, options, keep } = request;
        let mut feed = Feed::default();
        let kernel = feed.functions.digest(function);
        feed.text("weft request 4");
        for part in build {
            feed.text(part);
        }
        feed.bytes(&kernel);
        feed.overloads(overloads);
        feed.types(args);
        feed.target(target);
        feed.options(options);
        let Keep { ir, llvm, asm, unoptimized } = *keep;
        for kept in [ir, llvm, asm, unoptimized] {
            feed.flag(kept);
        }
        (Self(feed.finish()), !feed.functions.has_addresses)
    }
}

/// Formats a digest as hexadecimal digits.
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

/// The digests of the functions of one request, by address. Each is computed once.
#[derive(Default)]
struct Functions {
    digests: HashMap<*const FunctionDef, [u8; 32]>,
    /// Whether an address of this process was hashed.
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

/// The input of the hash, in an unambiguous encoding.
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
