//! Writes files atomically. A regular file is written under a temporary name in the same folder and renamed, so readers
//! see either the old file or the new one. All temporary files are written before the first rename: if one cannot be
//! written, the call leaves no file. A device, a pipe or an open file (`/dev/fd/3`) is written to directly.

use std::{
    fs::{self, File, OpenOptions, Permissions},
    io::{self, Write as _},
    path::{Path, PathBuf},
};

use super::cannot_write;
use crate::report::Stop;

/// The maximum number of links to follow, as in Linux. More count as a cycle.
const MAX_LINKS: usize = 40;

/// Writes files, given as pairs of path and bytes.
pub(super) fn all(files: &[(PathBuf, &[u8])]) -> Result<(), Stop> {
    let mut staged = Vec::new();
    for (path, bytes) in files {
        staged.push((path, Staged::new(path, bytes).map_err(|error| cannot_write(path, &error))?));
    }
    let mut done = Vec::new();
    for (path, file) in staged {
        match file.finish() {
            Ok(fresh) => done.extend(fresh),
            Err(error) => {
                for path in done {
                    // A failed removal is ignored: the error message names the original cause.
                    let _stays = fs::remove_file(path);
                }
                return Err(cannot_write(path, &error));
            }
        }
    }
    Ok(())
}

/// A file that is ready to be written.
enum Staged<'a> {
    /// A temporary file in the same folder, to be renamed to `place`. It is removed if it is not renamed.
    Beside {
        temporary: Temporary,
        place: PathBuf,
        /// Whether `place` did not exist before.
        fresh: bool,
    },
    /// A file that is written to directly, and its bytes.
    Open(PathBuf, &'a [u8]),
}

impl<'a> Staged<'a> {
    fn new(path: &Path, bytes: &'a [u8]) -> io::Result<Self> {
        let place = match resolve(path)? {
            LinkTarget::Name(place) => place,
            LinkTarget::Open => return Ok(Self::Open(path.to_path_buf(), bytes)),
        };
        let known = match fs::metadata(&place) {
            Ok(known) if known.is_dir() => return Err(io::ErrorKind::IsADirectory.into()),
            Ok(known) if !known.is_file() => return Ok(Self::Open(place, bytes)),
            Ok(known) => {
                // A file without write permission must not be replaced either.
                OpenOptions::new().write(true).open(&place)?;
                Some(known)
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(error),
        };
        let permissions = known.as_ref().map(fs::Metadata::permissions);
        let temporary = Temporary::write(beside(&place), bytes, permissions)?;
        Ok(Self::Beside { temporary, place, fresh: known.is_none() })
    }

    /// Returns the path if the file did not exist before.
    fn finish(self) -> io::Result<Option<PathBuf>> {
        match self {
            Self::Beside { temporary, place, fresh } => {
                fs::rename(&temporary.0, &place)?;
                Ok(fresh.then_some(place))
            }
            // Append mode works for devices and pipes, and preserves the contents of a file that the shell opened with
            // `>` or `>>`.
            Self::Open(path, bytes) => OpenOptions::new().append(true).open(path)?.write_all(bytes).map(|()| None),
        }
    }
}

/// A temporary file. It is removed on drop unless it has been renamed.
struct Temporary(PathBuf);

impl Temporary {
    fn write(path: PathBuf, bytes: &[u8], permissions: Option<Permissions>) -> io::Result<Self> {
        let mut file = File::create(&path)?;
        let temporary = Self(path);
        if let Some(permissions) = permissions {
            file.set_permissions(permissions)?;
        }
        file.write_all(bytes)?;
        Ok(temporary)
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        // Fails if the file has been renamed.
        let _renamed = fs::remove_file(&self.0);
    }
}

/// The target of a path after its symbolic links.
enum LinkTarget {
    /// The path at the end of the links. It need not exist.
    Name(PathBuf),
    /// A file that a process has open (`/proc/self/fd/1`). No path can replace this link.
    Open,
}

/// Follows symbolic links. (`canonicalize` fails if the last target does not exist, and returns a path for open files.)
fn resolve(path: &Path) -> io::Result<LinkTarget> {
    let mut path = path.to_path_buf();
    for _ in 0..MAX_LINKS {
        let Ok(to) = fs::read_link(&path) else { return Ok(LinkTarget::Name(path)) };
        let folder = match path.parent() {
            Some(folder) if folder.as_os_str().is_empty() => Path::new("."),
            Some(folder) => folder,
            None => return Ok(LinkTarget::Name(path)),
        };
        let folder = fs::canonicalize(folder)?;
        if folder.starts_with("/proc") {
            return Ok(LinkTarget::Open);
        }
        path = folder.join(to);
    }
    Err(io::Error::other("too many links"))
}

/// A temporary name in the same folder, unique to this process.
fn beside(path: &Path) -> PathBuf {
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    path.with_file_name(format!(".{name}.{}.tmp", std::process::id()))
}
