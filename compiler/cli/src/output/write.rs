//! Puts files where they belong. A regular file is written beside its place and renamed, so that whoever reads it sees
//! the old one or the new one, and all files are written before the first is renamed: a call that cannot write one
//! leaves none. A device, a pipe or an open file (`/dev/fd/3`) is written to as it is.

use std::{
    fs::{self, File, OpenOptions, Permissions},
    io::{self, Write as _},
    path::{Path, PathBuf},
};

use super::cannot_write;
use crate::report::Stop;

/// Links to follow before they count as a circle, as Linux does.
const MAX_LINKS: usize = 40;

/// Writes files: each a path and its bytes.
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
                    // What cannot be taken back stays: the message says what went wrong.
                    let _stays = fs::remove_file(path);
                }
                return Err(cannot_write(path, &error));
            }
        }
    }
    Ok(())
}

/// A file that is ready to be put in its place.
enum Staged<'a> {
    /// Written beside its place, under a name that goes if it is not renamed.
    Beside {
        temporary: Temporary,
        place: PathBuf,
        /// Nothing is there yet.
        fresh: bool,
    },
    /// Something that is written to as it is.
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
                // A file that may not be written is not replaced either.
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

    /// Gives the path of a file that was not there before.
    fn finish(self) -> io::Result<Option<PathBuf>> {
        match self {
            Self::Beside { temporary, place, fresh } => {
                fs::rename(&temporary.0, &place)?;
                Ok(fresh.then_some(place))
            }
            // What is appended to a device or a pipe is written to it; a file that was opened for the command, with
            // `>` or `>>`, keeps what it has.
            Self::Open(path, bytes) => OpenOptions::new().append(true).open(path)?.write_all(bytes).map(|()| None),
        }
    }
}

/// A file that goes when it is dropped, unless it has another name by then.
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
        // Renamed, it is there no more.
        let _renamed = fs::remove_file(&self.0);
    }
}

/// The target of a path after its symbolic links.
enum LinkTarget {
    /// The path at the end of the links, whether something is there or not.
    Name(PathBuf),
    /// A file that some process has open (`/proc/self/fd/1`): a link that no path can stand for.
    Open,
}

/// Follows symbolic links. (`canonicalize` fails where the last one leads to nothing yet, and gives open files a path.)
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

/// A name in the same folder that no other process takes.
fn beside(path: &Path) -> PathBuf {
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    path.with_file_name(format!(".{name}.{}.tmp", std::process::id()))
}
