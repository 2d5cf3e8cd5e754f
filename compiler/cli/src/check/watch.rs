//! `weft check --watch`: checks again whenever a file changes, until the user stops it.
//!
//! It polls the files, which works on every file system, including network and container mounts.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    io::Write,
    path::PathBuf,
    thread,
    time::{Duration, SystemTime},
};

use weft_compiler::request::Signature;
use weft_engine::Engine;

use super::{count, files::walk, run};
use crate::{args::CheckArgs, report::Stop};

/// The polling interval.
const PAUSE: Duration = Duration::from_millis(300);

/// A file's modification time and size, which change with its content.
type Stamp = Option<(SystemTime, u64)>;

/// Checks in a loop. An unreadable file ends the loop only in the first iteration; later, an editor may be writing it.
pub(super) fn watch(
    args: &CheckArgs,
    given: &[Signature],
    engine: &Engine,
    color: bool,
    stdout: &mut dyn Write,
    stderr: &mut dyn Write,
) -> Result<u8, Stop> {
    let mut files = BTreeSet::new();
    let mut is_first = true;
    loop {
        // Taken before the check, so that a change during the check triggers another one.
        let mut seen = stamps(args, &files);
        match run(args, given, engine) {
            Ok(run) => {
                files.clone_from(&run.files);
                run.write(args, color, stdout, stderr)?;
            }
            Err(Stop::Usage(message)) if !is_first => writeln!(stderr, "error: {message}")?,
            Err(stop) => return Err(stop),
        }
        is_first = false;
        for (path, stamp) in stamps(args, &files) {
            seen.entry(path).or_insert(stamp);
        }
        writeln!(stderr, "watching {}; press Ctrl-C to stop", count(seen.len(), "file"))?;
        stdout.flush()?;
        stderr.flush()?;
        let changed = loop {
            thread::sleep(PAUSE);
            let now = stamps(args, &files);
            if now != seen {
                let is_other = |path: &PathBuf| now.get(path).copied().flatten() != seen.get(path).copied().flatten();
                break now.keys().chain(seen.keys()).find(|path| is_other(path)).cloned();
            }
        };
        let name = changed.map_or_else(|| "a folder".to_owned(), |path| path.display().to_string());
        writeln!(stderr, "\n{name} has changed")?;
    }
}

/// The stamps of all files found now and of those used by the last run.
fn stamps(args: &CheckArgs, used: &BTreeSet<PathBuf>) -> BTreeMap<PathBuf, Stamp> {
    let folders = args.files.iter().filter(|path| path.is_dir());
    let found = folders.filter_map(|folder| walk(folder).ok()).flatten();
    let paths = args.files.iter().filter(|path| !path.is_dir()).cloned().chain(found).chain(used.iter().cloned());
    let stamp = |path: &PathBuf| {
        let known = fs::metadata(path).ok()?;
        Some((known.modified().ok()?, known.len()))
    };
    paths.map(|path| (path.clone(), stamp(&path))).collect()
}
