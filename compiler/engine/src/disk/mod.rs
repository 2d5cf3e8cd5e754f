//! What was compiled, kept on the disk for other processes: a folder with a file an entry.
//!
//! - An entry is written under another name and renamed, so that nobody reads a part of one, whoever is killed meanwhile and
//!   however many write the same one.
//! - It is believed only where the hash in it is that of its bytes and its key is the one that was asked for (`entry.rs`).
//!   Anything else is no entry, and is compiled again and replaced.
//! - No failure is an error: what cannot be read is compiled, what cannot be written is not kept.
//! - Only files whose names are those of entries are ever removed, whatever else lies in the folder.
//!
//! Entries lie in sixteen shards, by the first digit of their key. Each holds its part of the limit: what was used longest
//! ago goes first (`shard.rs`). A file's time of modification is that of its last use, to a day.

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

/// An entry whose last use is noted and is not longer ago is not noted again.
const NOTED_FOR: Duration = Duration::from_hours(24);

/// A folder of entries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DiskCache {
    folder: PathBuf,
    limit: u64,
}

/// An entry as a list shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// What it is kept for; `None` where the file is damaged or another version of weft's.
    pub about: Option<About>,
    /// Its size.
    pub bytes: u64,
    /// When it was last used, to a day.
    pub used: SystemTime,
}

impl DiskCache {
    /// The cache in a folder, which need not be there yet, with about so many bytes at most.
    pub fn new(folder: PathBuf, limit: u64) -> Self {
        Self { folder, limit }
    }

    /// Its folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// About the most bytes that it holds.
    pub fn limit(&self) -> u64 {
        self.limit
    }

    /// What is kept under a key.
    pub fn read(&self, key: &Digest) -> Option<Vec<u8>> {
        let path = self.shard_of(key).join(key.to_string());
        // What is no file, such as a pipe, may never end.
        let known = fs::metadata(&path).ok().filter(fs::Metadata::is_file)?;
        let bytes = fs::read(&path).ok()?;
        let content = entry::content(&bytes, key)?;
        let is_recent = |used: SystemTime| used.elapsed().is_ok_and(|past| past < NOTED_FOR);
        if !known.modified().is_ok_and(is_recent) {
            let _noted: io::Result<()> = File::open(&path).and_then(|file| file.set_modified(SystemTime::now()));
        }
        Some(content.to_vec())
    }

    /// Keeps something under a key.
    pub fn write(&self, key: &Digest, about: &About, content: &[u8]) {
        let shard = shard::Shard { folder: self.shard_of(key), limit: self.limit / SHARDS };
        shard.write(key, &entry::bytes(key, about, content));
    }

    /// Removes what is kept under a key, if anything is and it can be removed.
    pub fn remove(&self, key: &Digest) {
        let _removed: io::Result<()> = fs::remove_file(self.shard_of(key).join(key.to_string()));
    }

    /// All entries, those that were used last first.
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

    /// Removes all entries, and what writers that were killed have left. Gives how many entries there were, and their bytes.
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
                // Somebody else was quicker.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(error),
            }
        }
        for shard in self.shards() {
            shard.remove_unfinished(Duration::ZERO)?;
            // One with something else in it stays.
            let _removed: io::Result<()> = fs::remove_dir(shard.folder);
        }
        Ok((count, bytes))
    }

    fn files(&self) -> io::Result<Vec<shard::EntryFile>> {
        let mut files = Vec::new();
        for shard in self.shards() {
            files.extend(shard.kept()?);
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
