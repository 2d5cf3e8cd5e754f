//! Encodes the result of a compilation as bytes, and decodes it, for other processes.
//!
//! Numbers are little-endian, strings and lists have a length prefix, a variant is a byte. Objects that each process
//! numbers for itself (compound types, classes) are written as their descriptions, and get new numbers in the reading
//! process. Structures are encoded field by field, without `..`, and variants by `match`, so that a new field or
//! variant does not compile until it is encoded here. The reader does not validate more than the encoding: the caller
//! ensures that the bytes are those that were written (by a digest), and that the same build reads them
//! ([`BUILD`](crate::BUILD)). Bytes that are not a valid encoding result in [`Malformed`], never in a panic.

mod artifact;
mod output;

use std::sync::Arc;

use weft_compiler::{pipeline::Output, request::Outcome};

/// The error for bytes that are not a valid encoding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Malformed;

/// The limit of nesting of types and constants. A deeper result is not read, and compiled again.
const MAX_DEPTH: u32 = 256;

/// Encodes the result of a request.
pub fn encode(outcome: &Outcome<Arc<Output>>) -> Vec<u8> {
    let code = match outcome {
        Outcome::Made(output) => output.artifact.code.len(),
        Outcome::Queries(_) => 0,
    };
    let mut bytes = Vec::with_capacity(code + 1024);
    outcome.write(&mut bytes);
    bytes
}

/// Decodes the result of a request.
///
/// # Errors
///
/// [`Malformed`] if the bytes are not a valid encoding.
pub fn decode(bytes: &[u8]) -> Result<Outcome<Arc<Output>>, Malformed> {
    let mut reader = Reader::new(bytes);
    let outcome = Outcome::read(&mut reader)?;
    if reader.rest().is_empty() { Ok(outcome) } else { Err(Malformed) }
}

/// Reads bytes from front to back.
pub(crate) struct Reader<'a> {
    rest: &'a [u8],
    depth: u32,
}

impl<'a> Reader<'a> {
    /// Starts at the front.
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes, depth: 0 }
    }

    /// The bytes that have not been read.
    pub(crate) fn rest(&self) -> &'a [u8] {
        self.rest
    }

    fn take(&mut self, len: usize) -> Result<&'a [u8], Malformed> {
        let (taken, rest) = self.rest.split_at_checked(len).ok_or(Malformed)?;
        self.rest = rest;
        Ok(taken)
    }

    /// Reads the number of items that follow; each takes at least a byte.
    fn len(&mut self) -> Result<usize, Malformed> {
        let len = usize::try_from(u64::read(self)?).map_err(|_| Malformed)?;
        if len <= self.rest.len() { Ok(len) } else { Err(Malformed) }
    }

    /// Reads a value that may contain values of its own kind.
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

/// A type that can be encoded. The encoding of each value takes at least a byte.
pub(crate) trait Encode: Sized {
    /// Appends the encoding.
    fn write(&self, out: &mut Vec<u8>);
    /// Decodes a value.
    fn read(from: &mut Reader<'_>) -> Result<Self, Malformed>;
}

/// Implements [`Encode`] for a structure: its fields, in the given order.
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

/// Implements [`Encode`] for an enumeration: the byte of each variant, and its fields.
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

/// Implements [`Encode`] for numbers: their bytes.
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

/// A byte string, such as code.
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
        // No capacity is reserved: the length may be wrong.
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
