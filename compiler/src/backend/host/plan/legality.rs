//! Legality conditions by name, so that tests can run without one of them.
//!
//! A pass writes `legal!("merge_blocks.one-extent", condition)`. The value is that of the condition. `tests/legality/`
//! lists each name, what the condition protects, and a test that fails without it.
//!
//! In debug builds, the condition that the environment variable `WEFT_DROP_CONDITION` names holds always, and each
//! condition that does not hold is appended to the file that `WEFT_LOG_CONDITIONS` names, with the test of pytest that
//! runs. Release builds read neither variable.

use std::{
    collections::BTreeSet,
    env,
    fs::OpenOptions,
    io::Write,
    sync::{Mutex, OnceLock},
};

/// The value of a legality condition with a name. The name is that of the pass, a dot, and what must hold.
macro_rules! legal {
    ($name:literal, $condition:expr $(,)?) => {
        ($condition) || (cfg!(debug_assertions) && $crate::backend::host::plan::legality::is_dropped($name))
    };
}

/// Whether a condition that does not hold is treated as if it did.
pub(crate) fn is_dropped(name: &'static str) -> bool {
    static DROPPED: OnceLock<Option<String>> = OnceLock::new();
    log(name);
    DROPPED.get_or_init(|| variable("WEFT_DROP_CONDITION")).as_deref() == Some(name)
}

/// An environment variable.
#[expect(clippy::disallowed_methods, reason = "tests of debug builds only: a request never depends on it")]
fn variable(name: &str) -> Option<String> {
    env::var(name).ok()
}

/// Appends a condition that does not hold, and the test that runs, to the log.
fn log(name: &'static str) {
    static PATH: OnceLock<Option<String>> = OnceLock::new();
    static LOGGED: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());
    let Some(path) = PATH.get_or_init(|| variable("WEFT_LOG_CONDITIONS")) else { return };
    // pytest names the test; a Rust test has no name here, because the compiler runs in a thread of its own.
    let line = format!("{name}\t{}\n", variable("PYTEST_CURRENT_TEST").unwrap_or_default());
    let is_new = LOGGED.lock().is_ok_and(|mut logged| logged.insert(line.clone()));
    if is_new && let Ok(mut file) = OpenOptions::new().create(true).append(true).open(path) {
        // A log that cannot be written has fewer lines.
        drop(file.write_all(line.as_bytes()));
    }
}
