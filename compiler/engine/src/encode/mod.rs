//! What a compilation made, as bytes and back: for other processes.
//!
//! Numbers are little-endian, texts and lists have their length in front, a variant is a byte. What a process numbers for
//! itself (compound types, classes) is written as its description, and numbered anew where it is read. Structures are taken
//! apart and put together field by field, without `..`, and variants by `match`, so that neither a field nor a variant that
//! is new compiles before it is written here. What is read is taken at its word as far as it has a meaning: whoever keeps
//! bytes sees to it that they are those that were written (a digest), and that the same build reads them
//! ([`BUILD`](crate::BUILD)). Bytes that have no meaning are [`Malformed`], never a panic.

mod artifact;
mod output;

use std::sync::Arc;

use weft_compiler::{pipeline::Output, request::Outcome};

/// Bytes that no output was written as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Malformed;

/// How deep types and constants may lie in each other. What is deeper is not read, and compiled again.
const MAX_DEPTH: u32 = 256;

/// The bytes of what came of a request.
pub fn encode(outcome: &Outcome<Arc<Output>>) -> Vec<u8> {
    let code = match outcome {
        Outcome::Made(output) => output.artifact.code.len(),
        Outcome::Queries(_) => 0,
    };
    let mut bytes = Vec::with_capacity(code + 1024);
    outcome.write(&mut bytes);
    bytes
}

/// What bytes were written from.
///
/// # Errors
///
/// [`Malformed`] for others, if they have no meaning.
pub fn decode(bytes: &[u8]) -> Result<Outcome<Arc<Output>>, Malformed> {
    let mut reader = Reader::new(bytes);
    let outcome = Outcome::read(&mut reader)?;
    if reader.rest().is_empty() { Ok(outcome) } else { Err(Malformed) }
}

/// Bytes that are read from front to back.
pub(crate) struct Reader<'a> {
    rest: &'a [u8],
    depth: u32,
}

impl<'a> Reader<'a> {
    /// Begins at the front.
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes, depth: 0 }
    }

    /// What was not read.
    pub(crate) fn rest(&self) -> &'a [u8] {
        self.rest
    }

    fn take(&mut self, len: usize) -> Result<&'a [u8], Malformed> {
        let (taken, rest) = self.rest.split_at_checked(len).ok_or(Malformed)?;
        self.rest = rest;
        Ok(taken)
    }

    /// How many items follow; each has a byte at least.
    fn len(&mut self) -> Result<usize, Malformed> {
        let len = usize::try_from(u64::read(self)?).map_err(|_| Malformed)?;
        if len <= self.rest.len() { Ok(len) } else { Err(Malformed) }
    }

    /// Something that may hold more of its kind.
    fn deeper<T>(&mut self, read: impl FnOnce(&mut Self) -> Result<T, Malformed>) -> Result<T, Malformed> {
        if self.depth == MAX_DEPTH {
            return Err(Malformed);
        }
        self.depth += 1;
        let found = read(self);
        self.depth -= 1;
        found
    }
}

/// What has a form in bytes. What is written takes a byte at least.
pub(crate) trait Encode: Sized {
    /// Appends its bytes.
    fn write(&self, out: &mut Vec<u8>);
    /// Reads what was written.
    fn read(from: &mut Reader<'_>) -> Result<Self, Malformed>;
}

/// A structure: its fields, in the order in which they are named.
macro_rules! fields {
    ($type:ty { $($field:ident),* $(,)? }) => {
        impl Encode for $type {
            fn write(&self, out: &mut Vec<u8>) {
                let Self { $($field),* } = self;
                $(Encode::write($field, out);)*
            }
            fn read(from: &mut Reader<'_>) -> Result<Self, Malformed> {
                $(let $field = Encode::read(from)?;)*
                Ok(Self { $($field),* })
            }
        }
    };
}

/// An enumeration: the byte of each variant, and what it holds.
macro_rules! variants {
    ($type:ty { $($tag:literal => $variant:ident $(( $($item:ident),* ))? $({ $($field:ident),* })?),* $(,)? }) => {
        impl Encode for $type {
            fn write(&self, out: &mut Vec<u8>) {
                match self {
                    $(Self::$variant $(( $($item),* ))? $({ $($field),* })? => {
                        out.push($tag);
                        $($(Encode::write($item, out);)*)?
                        $($(Encode::write($field, out);)*)?
                    })*
                }
            }
            fn read(from: &mut Reader<'_>) -> Result<Self, Malformed> {
                from.deeper(|from| match u8::read(from)? {
                    $($tag => {
                        $($(let $item = Encode::read(from)?;)*)?
                        $($(let $field = Encode::read(from)?;)*)?
                        Ok(Self::$variant $(( $($item),* ))? $({ $($field),* })?)
                    })*
                    _ => Err(Malformed),
                })
            }
        }
    };
}

pub(crate) use fields;
use variants;

/// Numbers, as their bytes.
macro_rules! numbers {
    ($($number:ty),*) => {
        $(impl Encode for $number {
            fn write(&self, out: &mut Vec<u8>) {
                out.extend(self.to_le_bytes());
            }
            fn read(from: &mut Reader<'_>) -> Result<Self, Malformed> {
                let bytes = from.take(size_of::<Self>())?;
                bytes.try_into().map(Self::from_le_bytes).map_err(|_| Malformed)
            }
        })*
    };
}

numbers!(u8, u32, u64, i128);

impl Encode for bool {
    fn write(&self, out: &mut Vec<u8>) {
        out.push((*self).into());
    }

    fn read(from: &mut Reader<'_>) -> Result<Self, Malformed> {
        match u8::read(from)? {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(Malformed),
        }
    }
}

/// Bytes that are no items of their own: code.
struct Bytes(Vec<u8>);

fn write_bytes(bytes: &[u8], out: &mut Vec<u8>) {
    (bytes.len() as u64).write(out);
    out.extend(bytes);
}

impl Encode for Bytes {
    fn write(&self, out: &mut Vec<u8>) {
        write_bytes(&self.0, out);
    }

    fn read(from: &mut Reader<'_>) -> Result<Self, Malformed> {
        let len = from.len()?;
        Ok(Self(from.take(len)?.to_vec()))
    }
}

impl Encode for String {
    fn write(&self, out: &mut Vec<u8>) {
        write_bytes(self.as_bytes(), out);
    }

    fn read(from: &mut Reader<'_>) -> Result<Self, Malformed> {
        let Bytes(bytes) = Bytes::read(from)?;
        Self::from_utf8(bytes).map_err(|_| Malformed)
    }
}

impl<T: Encode> Encode for Vec<T> {
    fn write(&self, out: &mut Vec<u8>) {
        (self.len() as u64).write(out);
        for item in self {
            item.write(out);
        }
    }

    fn read(from: &mut Reader<'_>) -> Result<Self, Malformed> {
        // Nothing is reserved for what may not follow.
        (0..from.len()?).map(|_| T::read(from)).collect()
    }
}

impl<T: Encode> Encode for Option<T> {
    fn write(&self, out: &mut Vec<u8>) {
        self.is_some().write(out);
        if let Some(value) = self {
            value.write(out);
        }
    }

    fn read(from: &mut Reader<'_>) -> Result<Self, Malformed> {
        bool::read(from)?.then(|| T::read(from)).transpose()
    }
}

impl<T: Encode> Encode for Box<T> {
    fn write(&self, out: &mut Vec<u8>) {
        T::write(self, out);
    }

    fn read(from: &mut Reader<'_>) -> Result<Self, Malformed> {
        T::read(from).map(Self::new)
    }
}

impl<T: Encode> Encode for Arc<T> {
    fn write(&self, out: &mut Vec<u8>) {
        T::write(self, out);
    }

    fn read(from: &mut Reader<'_>) -> Result<Self, Malformed> {
        T::read(from).map(Self::new)
    }
}

impl<A: Encode, B: Encode> Encode for (A, B) {
    fn write(&self, out: &mut Vec<u8>) {
        let (a, b) = self;
        a.write(out);
        b.write(out);
    }

    fn read(from: &mut Reader<'_>) -> Result<Self, Malformed> {
        Ok((A::read(from)?, B::read(from)?))
    }
}
