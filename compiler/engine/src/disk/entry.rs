//! An entry's bytes: a mark, a hash of all that follows, the key, what a list shows of it, and what is kept.
//!
//! The hash covers everything behind it, so that any damage, and any cut, is seen.

use std::{fs::File, io::Read as _, path::Path};

use weft_artifact::ArgType;

use crate::{
    digest::{BUILD, Digest},
    encode::{Encode, Malformed, Reader, fields},
};

/// What every entry begins with; the last but one is the version of what follows.
const MAGIC: &[u8; 8] = b"weft\0\x01\r\n";
/// Bytes of a hash.
const HASH: usize = 32;
/// A list reads so much of an entry: what it shows is in front.
const HEAD: u64 = 16 << 10;

/// What a list shows of an entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct About {
    /// The function's name.
    pub name: String,
    /// The types of its arguments, with commas between.
    pub args: String,
    /// `host`, or such as `sm_90`; with ` cubin` behind it where a driver's machine code is kept.
    pub target: String,
    /// The build of weft that wrote it, and alone reads it.
    pub build: String,
}

impl About {
    /// What a list shows of something that this weft has made.
    pub fn of<'a>(name: &str, args: impl IntoIterator<Item = &'a ArgType>, target: String) -> Self {
        let args: Vec<String> = args.into_iter().map(ToString::to_string).collect();
        let [version, text, _] = BUILD;
        let build = format!("{version}-{}", text.get(..12).unwrap_or(text));
        Self { name: name.to_owned(), args: args.join(", "), target, build }
    }
}

fields!(About { name, args, target, build });

/// The bytes of an entry.
pub(super) fn bytes(key: &Digest, about: &About, content: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(content.len() + 512);
    bytes.extend(MAGIC);
    bytes.extend([0; HASH]);
    bytes.extend(key.bytes());
    about.write(&mut bytes);
    bytes.extend(content);
    let (head, hashed) = bytes.split_at_mut(MAGIC.len() + HASH);
    head[MAGIC.len()..].copy_from_slice(blake3::hash(hashed).as_bytes());
    bytes
}

/// What is kept in an entry of a key; `None` if it is not whole, or no such entry.
pub(super) fn content<'a>(bytes: &'a [u8], key: &Digest) -> Option<&'a [u8]> {
    let (hash, hashed) = bytes.strip_prefix(MAGIC)?.split_first_chunk::<HASH>()?;
    if blake3::hash(hashed) != *hash {
        return None;
    }
    let (its_key, rest) = hashed.split_first_chunk::<HASH>()?;
    let mut reader = Reader::new(rest);
    About::read(&mut reader).ok()?;
    (its_key == key.bytes()).then(|| reader.rest())
}

/// What a list shows of an entry, of which only the front is looked at.
pub(super) fn about(path: &Path) -> Option<About> {
    let mut front = Vec::new();
    File::open(path).ok()?.take(HEAD).read_to_end(&mut front).ok()?;
    let rest = front.strip_prefix(MAGIC)?.get(2 * HASH..)?;
    About::read(&mut Reader::new(rest)).ok()
}
