//! `weft cache`: manages the compiled kernels in the disk cache.

use std::{io::Write, path::Path, time::SystemTime};

use weft_engine::{DiskCache, Entry};
use weft_runtime::Settings;

use crate::{Surroundings, args::CacheCommand, report::Stop};

/// Shows the folder, lists its entries, or removes them.
pub(crate) fn cache(command: CacheCommand, surroundings: &Surroundings, stdout: &mut dyn Write) -> Result<u8, Stop> {
    let settings = Settings::from_env(surroundings.variable).map_err(|error| Stop::Usage(error.message))?;
    // A disabled cache may still have entries on disk.
    let settings = Settings { cache: true, ..settings };
    let Some(folder) = settings.cache_folder(surroundings.variable) else {
        return Err(Stop::Usage("no cache folder is known: set WEFT_CACHE_DIR or HOME".to_owned()));
    };
    let cache = DiskCache::new(folder, settings.cache_bytes);
    match command {
        CacheCommand::Path => writeln!(stdout, "{}", cache.folder().display())?,
        CacheCommand::Ls => {
            let entries = cache.entries().map_err(|error| failed("read", cache.folder(), &error))?;
            list(&cache, &entries, stdout)?;
        }
        CacheCommand::Clear => {
            let (count, bytes) = cache.clear().map_err(|error| failed("clear", cache.folder(), &error))?;
            writeln!(stdout, "removed {}, {}", counted(count), size(bytes))?;
        }
    }
    Ok(0)
}

fn failed(what: &str, folder: &Path, error: &std::io::Error) -> Stop {
    Stop::Usage(format!("cannot {what} {}: {error}", folder.display()))
}

/// Writes one line per entry, most recently used first, and a total.
fn list(cache: &DiskCache, entries: &[Entry], stdout: &mut dyn Write) -> Result<(), Stop> {
    let now = SystemTime::now();
    for Entry { about, bytes, used } in entries {
        let (size, age) = (size(*bytes), age(now.duration_since(*used).unwrap_or_default().as_secs()));
        match about {
            Some(about) => writeln!(
                stdout,
                "{size:>9}  {age:>8}  {:<6}  {}({})  by {}",
                about.target, about.name, about.args, about.build
            )?,
            None => writeln!(stdout, "{size:>9}  {age:>8}  incomplete, or from another version")?,
        }
    }
    let bytes = entries.iter().map(|entry| entry.bytes).sum();
    let (folder, limit) = (cache.folder().display(), cache.limit());
    writeln!(stdout, "{}, {} of {} in {folder}", counted(entries.len()), size(bytes), size(limit))?;
    Ok(())
}

fn counted(entries: usize) -> String {
    if entries == 1 { "1 entry".to_owned() } else { format!("{entries} entries") }
}

/// A size with a binary unit (powers of 1024).
pub(crate) fn size(bytes: u64) -> String {
    match bytes {
        0..1024 => format!("{bytes} B"),
        1024..1_048_576 => format!("{:.1} KiB", bytes as f64 / 1024.0),
        1_048_576..1_073_741_824 => format!("{:.1} MiB", bytes as f64 / 1_048_576.0),
        1_073_741_824.. => format!("{:.1} GiB", bytes as f64 / 1_073_741_824.0),
    }
}

/// The time since the last use, in the largest unit.
fn age(seconds: u64) -> String {
    match seconds {
        0..60 => "now".to_owned(),
        60..3600 => format!("{} min", seconds / 60),
        3600..86_400 => format!("{} h", seconds / 3600),
        86_400.. => format!("{} d", seconds / 86_400),
    }
}

#[cfg(test)]
mod tests {
    use super::{age, size};

    #[test]
    fn sizes_and_ages_have_units() {
        assert_eq!([0, 1023, 1024, 1 << 20, 3 << 29].map(size), ["0 B", "1023 B", "1.0 KiB", "1.0 MiB", "1.5 GiB"]);
        assert_eq!([0, 59, 60, 3600, 90_000].map(age), ["now", "now", "1 min", "1 h", "1 d"]);
    }
}
