//! Finds the Python files and notebooks below a folder. Hidden files, files that git ignores, virtual environments,
//! caches and build outputs are skipped.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use super::ignored::Ignored;
use crate::report::Stop;

/// Folders with generated or third-party code.
const SKIPPED: [&str; 8] =
    ["__pycache__", "__pypackages__", "node_modules", "site-packages", "venv", "build", "dist", "target"];

/// A file found in a folder is checked only if it mentions one of these.
const MENTIONED: [&str; 3] = ["weft", "numba", "cuda"];

/// Finds the files below a folder, sorted. Links to folders are not followed.
pub(super) fn walk(folder: &Path) -> Result<Vec<PathBuf>, Stop> {
    let mut found = Vec::new();
    let absolute = fs::canonicalize(folder).map_err(|error| unread(folder, &error))?;
    let mut ignored = Ignored::of(&absolute);
    // The named folder is searched even if its own name would be skipped.
    inside(folder, &absolute, &mut ignored, &mut found)?;
    found.sort();
    Ok(found)
}

/// Whether a file mentions one of [`MENTIONED`].
pub(super) fn mentions_kernels(path: &Path) -> Result<bool, Stop> {
    fs::read(path).map(|bytes| mentions(&bytes)).map_err(|error| unread(path, &error))
}

/// Whether a text mentions one of [`MENTIONED`].
pub(crate) fn mentions(text: &[u8]) -> bool {
    MENTIONED.iter().any(|word| text.windows(word.len()).any(|window| window == word.as_bytes()))
}

fn unread(path: &Path, error: &io::Error) -> Stop {
    Stop::Usage(format!("cannot read {}: {error}", path.display()))
}

/// `shown` is the folder's path for messages. `real` is its canonical path, to which ignore rules apply.
fn inside(shown: &Path, real: &Path, ignored: &mut Ignored, found: &mut Vec<PathBuf>) -> Result<(), Stop> {
    let entries = fs::read_dir(shown).map_err(|error| unread(shown, &error))?;
    for entry in entries {
        let entry = entry.map_err(|error| unread(shown, &error))?;
        let name = entry.file_name();
        let (path, real) = (shown.join(&name), real.join(&name));
        let Ok(kind) = entry.file_type() else { continue };
        let text = name.to_string_lossy();
        if text.starts_with('.') || ignored.has(&real, kind.is_dir()) {
            continue;
        }
        if kind.is_dir() {
            if SKIPPED.contains(&text.as_ref()) || path.join("pyvenv.cfg").exists() {
                continue;
            }
            ignored.enter(&real);
            inside(&path, &real, ignored, found)?;
            ignored.leave(&real);
        } else if is_python(&path) && path.is_file() {
            found.push(path);
        }
    }
    Ok(())
}

/// Whether a file's name is that of a Python file or a notebook.
fn is_python(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "py" || extension == "ipynb")
}
