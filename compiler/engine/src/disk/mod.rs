//! The disk cache: compiled code for other processes, in a folder with one file per entry.
//!
//! - A writer writes an entry under a temporary name and renames it. So no reader sees a partial entry, even if a
//!   writer is killed or several processes write the same one.
//! - A reader accepts an entry only if its hash matches its bytes and its key is the requested one (`entry.rs`).
//!   Otherwise the request is compiled again and the entry is replaced.
//! - Failures are not errors: if an entry cannot be read, the request is compiled; if it cannot be written, it is not
//!   cached.
//! - Only files with names of entries are ever removed. Other files in the folder are preserved.
//!
//! Entries are stored in sixteen shards, by the first digit of their key. Each shard has an equal part of the size
//! limit and removes the least recently used entries first (`shard.rs`). A file's modification time is the time of its
//! last use, to a day.

mod entry;
mod shard;

use std::{
    fs::{self, File},
    io,
    path::{Path, PathBuf},
    time::{Duration, SystemTime},
};

pub use entry::About;

use crate::digest::Digest;

/// Shards of a cache.
const SHARDS: u64 = 16;

/// The modification time of an entry is not updated again within this time.
const NOTED_FOR: Duration = Duration::from_hours(24);

/// A folder of entries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DiskCache {
    folder: PathBuf,
    limit: u64,
}

/// An entry in a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The description; `None` if the file is damaged or written by another version of weft.
    pub about: Option<About>,
    /// Its size.
    pub bytes: u64,
    /// When it was last used, to a day.
    pub used: SystemTime,
}

impl DiskCache {
    /// The cache in a folder, which need not exist, with a size limit of about `limit` bytes.
    pub fn new(folder: PathBuf, limit: u64) -> Self {
        Self { folder, limit }
    }

    /// The folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The size limit in bytes.
    pub fn limit(&self) -> u64 {
        self.limit
    }

    /// Reads the content of a key's entry.
    pub fn read(&self, key: &Digest) -> Option<Vec<u8>> {
        let path = self.shard_of(key).join(key.to_string());
        // Reading something that is not a regular file, such as a pipe, may never end.
        let known = fs::metadata(&path).ok().filter(fs::Metadata::is_file)?;
        let bytes = fs::read(&path).ok()?;
        let content = entry::content(&bytes, key)?;
        let is_recent = |used: SystemTime| used.elapsed().is_ok_and(|past| past < NOTED_FOR);
        if !known.modified().is_ok_and(is_recent) {
            let _noted: io::Result<()> = File::open(&path).and_then(|file| file.set_modified(SystemTime::now()));
        }
        Some(content.to_vec())
    }

    /// Stores content for a key.
    pub fn write(&self, key: &Digest, about: &About, content: &[u8]) {
        let shard = shard::Shard { folder: self.shard_of(key), limit: self.limit / SHARDS };
        shard.write(key, &entry::bytes(key, about, content));
    }

    /// Removes a key's entry, if there is one and it can be removed.
    pub fn remove(&self, key: &Digest) {
        let _removed: io::Result<()> = fs::remove_file(self.shard_of(key).join(key.to_string()));
    }

    /// All entries, the most recently used first.
    ///
    /// # Errors
    ///
    /// The folder is there and cannot be read.
    pub fn entries(&self) -> io::Result<Vec<Entry>> {
        let mut entries = Vec::new();
        for file in self.files()? {
            let about = entry::about(&file.path);
            entries.push(Entry { about, bytes: file.bytes, used: file.used });
        }
        entries.sort_by_key(|entry| std::cmp::Reverse(entry.used));
        Ok(entries)
    }

    /// Removes all entries, and temporary files of writers that were killed. Returns the number of entries and of their
    /// bytes.
    ///
    /// # Errors
    ///
    /// The folder is there and cannot be read, or an entry cannot be removed.
    pub fn clear(&self) -> io::Result<(usize, u64)> {
        let (mut count, mut bytes) = (0, 0);
        for file in self.files()? {
            match fs::remove_file(&file.path) {
                Ok(()) => {
                    count += 1;
                    bytes += file.bytes;
                }
                // Another process has removed it.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(error),
            }
        }
        for shard in self.shards() {
            shard.remove_unfinished(Duration::ZERO)?;
            // A folder that contains other files is preserved.
            let _removed: io::Result<()> = fs::remove_dir(shard.folder);
        }
        Ok((count, bytes))
    }

    fn files(&self) -> io::Result<Vec<shard::EntryFile>> {
        let mut files = Vec::new();
        for shard in self.shards() {
            files.extend(shard.entries()?);
        }
        Ok(files)
    }

    fn shards(&self) -> impl Iterator<Item = shard::Shard> {
        let shard = |index| shard::Shard { folder: self.folder.join(format!("{index:x}")), limit: self.limit / SHARDS };
        (0..SHARDS).map(shard)
    }

    /// The folder of the shard that a key belongs to.
    fn shard_of(&self, key: &Digest) -> PathBuf {
        self.folder.join(format!("{:x}", key.bytes()[0] >> 4))
    }
}
