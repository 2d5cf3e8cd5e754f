//! The bytes of an entry: magic bytes, a hash of everything after it, the key, the description that a list shows, and
//! the content.
//!
//! A reader detects any damaged or truncated file by the hash.

use std::{fs::File, io::Read as _, path::Path};

use weft_artifact::ArgType;

use crate::{
    digest::{BUILD, Digest},
    encode::{Encode, Malformed, Reader, fields},
};

/// The first bytes of every entry; the sixth byte is the version of the format.
const MAGIC: &[u8; 8] = b"weft\0\x01\r\n";
/// Bytes of a hash.
const HASH: usize = 32;
/// Bytes that a list reads of an entry: the description is at the front.
const HEAD: u64 = 16 << 10;

/// The description of an entry in a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct About {
    /// The function's name.
    pub name: String,
    /// The types of its arguments, with commas between.
    pub args: String,
    /// `host`, or such as `sm_90`; with the suffix ` cubin` for a driver's machine code.
    pub target: String,
    /// The build of weft that wrote the entry. Only this build reads it.
    pub build: String,
}

impl About {
    /// The description of an entry that this build of weft writes.
    pub fn of<'a>(name: &str, args: impl IntoIterator<Item = &'a ArgType>, target: String) -> Self {
        let args: Vec<String> = args.into_iter().map(ToString::to_string).collect();
        let [version, text, _] = BUILD;
        let build = format!("{version}-{}", text.get(..12).unwrap_or(text));
        Self { name: name.to_owned(), args: args.join(", "), target, build }
    }
}

fields!(About { name, args, target, build });

/// Encodes an entry.
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

/// The content of an entry; `None` if the entry is damaged or has another key.
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

/// The description of an entry. Only the front of the file is read.
pub(super) fn about(path: &Path) -> Option<About> {
    let mut front = Vec::new();
    File::open(path).ok()?.take(HEAD).read_to_end(&mut front).ok()?;
    let rest = front.strip_prefix(MAGIC)?.get(2 * HASH..)?;
    About::read(&mut Reader::new(rest)).ok()
}
