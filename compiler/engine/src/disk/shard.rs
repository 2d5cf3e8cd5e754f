//! A sixteenth of a cache: a folder with entries.

use std::{
    fs::{self, OpenOptions},
    io::{self, Write as _},
    path::{Path, PathBuf},
    process,
    sync::atomic::{AtomicU64, Ordering},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use crate::digest::Digest;

/// Hexadecimal digits of a key: an entry's name.
const DIGITS: usize = 64;
/// The suffix of an entry's name while it is written.
const UNFINISHED: &str = ".tmp";
/// A temporary file that is older than this belongs to a writer that was killed.
const LONGEST_WRITE: Duration = Duration::from_hours(1);
/// A shard is checked for its size about once per `limit / LOOKS` bytes written to it.
const LOOKS: u64 = 64;

/// See the module.
pub(super) struct Shard {
    pub(super) folder: PathBuf,
    /// The most bytes of its entries.
    pub(super) limit: u64,
}

/// The file of an entry.
pub(super) struct EntryFile {
    pub(super) path: PathBuf,
    pub(super) bytes: u64,
    pub(super) used: SystemTime,
}

impl Shard {
    /// Writes an entry, if it can be written and is at most a quarter of the limit.
    pub(super) fn write(&self, key: &Digest, bytes: &[u8]) {
        let size = bytes.len() as u64;
        if size > self.limit / 4 || fs::create_dir_all(&self.folder).is_err() {
            return;
        }
        let name = key.to_string();
        let unfinished = self.folder.join(format!("{name}.{}{UNFINISHED}", unlike_others()));
        let written = write_new(&unfinished, bytes).and_then(|()| fs::rename(&unfinished, self.folder.join(name)));
        if written.is_err() {
            // The file may not exist.
            let _removed: io::Result<()> = fs::remove_file(&unfinished);
        }
        // The size is checked after a fraction of the writes, chosen by the key: checking after each would cost as much
        // as the write.
        let [.., chance, _] = key.bytes();
        let wanted = size.saturating_mul(LOOKS).saturating_mul(256) / self.limit.max(1);
        if u64::from(*chance) < wanted {
            self.make_room();
        }
    }

    /// If the shard is over its limit, removes the least recently used entries until an eighth of the limit is free.
    fn make_room(&self) {
        let _removed: io::Result<()> = self.remove_unfinished(LONGEST_WRITE);
        let Ok(mut entries) = self.entries() else { return };
        let mut bytes: u64 = entries.iter().map(|file| file.bytes).sum();
        if bytes <= self.limit {
            return;
        }
        entries.sort_by_key(|file| file.used);
        for file in entries {
            if bytes <= self.limit / 8 * 7 {
                break;
            }
            // If another process has removed it already, it counts as removed, too.
            let _removed: io::Result<()> = fs::remove_file(&file.path);
            bytes -= file.bytes;
        }
    }

    /// The files of all entries.
    pub(super) fn entries(&self) -> io::Result<Vec<EntryFile>> {
        let mut entries = Vec::new();
        self.each(|name, path| {
            if !is_key(name) {
                return Ok(());
            }
            // Another process may have removed it.
            if let Ok(known) = fs::symlink_metadata(&path)
                && known.is_file()
            {
                entries.push(EntryFile { path, bytes: known.len(), used: known.modified().unwrap_or(UNIX_EPOCH) });
            }
            Ok(())
        })?;
        Ok(entries)
    }

    /// Removes temporary files of killed writers: those not written to for `age`.
    pub(super) fn remove_unfinished(&self, age: Duration) -> io::Result<()> {
        self.each(|name, path| {
            let is_unfinished = name.get(..DIGITS).is_some_and(is_key)
                && name.get(DIGITS..).is_some_and(|rest| rest.starts_with('.') && rest.ends_with(UNFINISHED));
            let is_old = |path: &Path| {
                let written = fs::symlink_metadata(path).and_then(|known| known.modified());
                written.is_ok_and(|written| written.elapsed().unwrap_or_default() >= age)
            };
            if is_unfinished && is_old(&path) {
                match fs::remove_file(&path) {
                    Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                    Ok(()) | Err(_) => {}
                }
            }
            Ok(())
        })
    }

    /// Calls `look` for each file. A missing folder has no files.
    fn each(&self, mut look: impl FnMut(&str, PathBuf) -> io::Result<()>) -> io::Result<()> {
        let files = match fs::read_dir(&self.folder) {
            Ok(files) => files,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(error) => return Err(error),
        };
        for file in files {
            let file = file?;
            if let Some(name) = file.file_name().to_str() {
                look(name, file.path())?;
            }
        }
        Ok(())
    }
}

/// Whether a name is that of an entry.
fn is_key(name: &str) -> bool {
    name.len() == DIGITS && name.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

fn write_new(path: &Path, bytes: &[u8]) -> io::Result<()> {
    OpenOptions::new().write(true).create_new(true).open(path)?.write_all(bytes)
}

/// A string that no other writer has. The process id alone is not unique: another machine on the same network may have
/// a process with the same id.
fn unlike_others() -> String {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos();
    format!("{}.{:x}.{now:x}", process::id(), COUNT.fetch_add(1, Ordering::Relaxed))
}
