//! Logs of releases at addresses. A thread that acquires at an address knows a prefix of its log.
//!
//! A release appends its thread's knowledge to the log, which has a *version* for each append. A thread acquires a
//! version number, not a copy: otherwise a thousand threads that wait at one address and see it change a thousand times
//! would copy a million vectors of a thousand clocks. A log is about all threads, or about those of one block among
//! themselves, and lives as long as the launch.
//! block among themselves, and lives as long as the launch.

use super::{
    clock::Vector,
    shadow::{ByAddress, ByNumber},
    versions::Versions,
};

/// A value that only grows, with the version from which on it was so.
type History<T> = Vec<(u32, T)>;

/// The value of a history at a version.
fn at<T: Copy>(history: &[(u32, T)], version: u32) -> Option<T> {
    // Most queries are for the last value.
    if let Some(&(since, value)) = history.last()
        && since <= version
    {
        return Some(value);
    }
    let after = history.partition_point(|&(since, _)| since <= version);
    history.get(after.checked_sub(1)?).map(|&(_, value)| value)
}

/// Records that a value is at least this from a version on; returns whether that is new.
fn raise<T: Copy + Ord>(history: &mut History<T>, version: u32, value: T) -> bool {
    if history.last().is_some_and(|&(_, known)| known >= value) {
        return false;
    }
    history.push((version, value));
    true
}

/// The log of one address.
#[derive(Debug, Default)]
struct Log {
    version: u32,
    /// Of all threads of a block: those before this epoch.
    blocks: ByNumber<u32, History<u32>>,
    /// Of one thread: those of this epoch up to this clock, and of epochs before.
    threads: ByNumber<(u32, u16), History<(u32, u32)>>,
    /// The knowledge that its releases had of other logs, in the order of the logs.
    logs: Vec<(u32, History<u32>)>,
}

impl Log {
    fn add(&mut self, own: u32, vector: &Vector) {
        let version = self.version + 1;
        let mut is_new = false;
        for (&block, &before) in &vector.blocks {
            is_new |= raise(self.blocks.entry(block).or_default(), version, before);
        }
        for (&thread_id, &when) in &vector.threads {
            is_new |= raise(self.threads.entry(thread_id).or_default(), version, when);
        }
        let (mut at, n_logs) = (0, self.logs.len());
        for (log, known) in vector.logs.iter().filter(|(log, _)| *log != own) {
            while at < n_logs && self.logs[at].0 < log {
                at += 1;
            }
            if at < n_logs && self.logs[at].0 == log {
                is_new |= raise(&mut self.logs[at].1, version, known);
            } else {
                self.logs.push((log, vec![(version, known)]));
                is_new = true;
            }
        }
        if self.logs.len() > n_logs {
            self.logs.sort_by_key(|(log, _)| *log);
        }
        self.version += u32::from(is_new);
    }

    fn knows(&self, version: u32, (block, thread): (u32, u16), when: (u32, u32)) -> bool {
        let of_block = self.blocks.get(&block).and_then(|history| at(history, version));
        let of_thread = || self.threads.get(&(block, thread)).and_then(|history| at(history, version));
        of_block.is_some_and(|before| when.0 < before) || of_thread().is_some_and(|known| when <= known)
    }
}

/// The release logs of an address.
#[derive(Debug, Default)]
struct LocationLogs {
    /// The log of releases to all threads.
    wide: Option<u32>,
    /// To the threads of a block, by it.
    narrow: ByNumber<u32, u32>,
}

/// All that was released in a launch.
#[derive(Debug, Default)]
pub(super) struct Logs {
    all: Vec<Log>,
    locations: ByAddress<LocationLogs>,
    /// The logs with entries of a block's threads.
    of_block: ByNumber<u32, Vec<u32>>,
}

impl Logs {
    /// The log that an operation of a block's thread at an address sees, and its current version, if there is one.
    pub(super) fn seen(&self, location: u64, of_block: Option<u32>) -> Option<(u32, u32)> {
        let location = self.locations.get(&location)?;
        let log = match of_block {
            Some(block) => location.narrow.get(&block).copied(),
            None => location.wide,
        }?;
        self.all.get(log as usize).map(|known| (log, known.version))
    }

    /// Releases a vector at an address, to all threads or to a block.
    pub(super) fn release(&mut self, location: u64, to_block: Option<u32>, vector: &Vector) {
        let Self { all, locations, of_block } = self;
        let location = locations.entry(location).or_default();
        let next = all.len() as u32;
        let number = match to_block {
            Some(block) => *location.narrow.entry(block).or_insert(next),
            None => *location.wide.get_or_insert(next),
        };
        if number == next {
            all.push(Log::default());
        }
        let Some(log) = all.get_mut(number as usize) else { return };
        log.add(number, vector);
        for block in vector.blocks.keys().copied().chain(vector.threads.keys().map(|&(block, _)| block)) {
            let known = of_block.entry(block).or_default();
            if !known.contains(&number) {
                known.push(number);
            }
        }
    }

    /// Adds a log up to a version, with its knowledge of other logs, to the known versions.
    pub(super) fn acquire(&self, known: &mut Versions, (log, version): (u32, u32)) {
        if !known.raise(log, version) {
            return;
        }
        let Some(log) = self.all.get(log as usize) else { return };
        known.merge(log.logs.iter().filter_map(|(other, history)| Some((*other, at(history, version)?))));
    }

    /// Whether an access is contained in the known versions of the logs.
    pub(super) fn knows(&self, known: &Versions, thread_id: (u32, u16), when: (u32, u32)) -> bool {
        let stands =
            |log: u32, version: u32| self.all.get(log as usize).is_some_and(|log| log.knows(version, thread_id, when));
        let Some(having) = self.of_block.get(&thread_id.0) else { return false };
        if having.len() <= known.len() {
            having.iter().any(|&log| known.get(log).is_some_and(|version| stands(log, version)))
        } else {
            known.iter().any(|(log, version)| stands(log, version))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Logs, Vector, Versions};

    fn of(block: u32, thread: u16, when: (u32, u32)) -> Vector {
        Vector { threads: [((block, thread), when)].into_iter().collect(), ..Vector::default() }
    }

    #[test]
    fn who_acquires_knows_what_was_released_until_then() {
        let mut logs = Logs::default();
        logs.release(8, None, &of(1, 0, (0, 5)));
        let early = logs.seen(8, None).expect("something was released");
        logs.release(8, None, &of(1, 0, (0, 7)));
        logs.release(8, None, &of(2, 3, (1, 1)));
        let mut known = Versions::default();
        logs.acquire(&mut known, early);
        let knows = |logs: &Logs, known: &Versions, block, thread, when| logs.knows(known, (block, thread), when);
        assert!(knows(&logs, &known, 1, 0, (0, 5)));
        assert!(!knows(&logs, &known, 1, 0, (0, 6)));
        assert!(!knows(&logs, &known, 2, 3, (0, 0)));
        logs.acquire(&mut known, logs.seen(8, None).expect("something was released"));
        assert!(knows(&logs, &known, 1, 0, (0, 7)));
        assert!(knows(&logs, &known, 2, 3, (0, 9)));
        assert!(!knows(&logs, &known, 2, 3, (1, 2)));
        assert_eq!((logs.seen(8, Some(1)), logs.seen(16, None)), (None, None));
    }

    #[test]
    fn what_is_known_of_one_place_is_handed_on_at_another() {
        let mut logs = Logs::default();
        logs.release(8, None, &of(1, 0, (0, 5)));
        let mut second = of(2, 0, (0, 1));
        logs.acquire(&mut second.logs, logs.seen(8, None).expect("something was released"));
        logs.release(16, Some(2), &second);
        logs.release(8, None, &of(1, 0, (0, 9)));
        let mut known = Versions::default();
        logs.acquire(&mut known, logs.seen(16, Some(2)).expect("something was released"));
        assert!(logs.knows(&known, (1, 0), (0, 5)));
        assert!(!logs.knows(&known, (1, 0), (0, 9)));
        assert!(logs.knows(&known, (2, 0), (0, 1)));
    }

    #[test]
    fn what_is_released_again_makes_no_version() {
        let mut logs = Logs::default();
        logs.release(8, None, &of(1, 0, (0, 5)));
        let before = logs.seen(8, None);
        logs.release(8, None, &of(1, 0, (0, 5)));
        assert_eq!(logs.seen(8, None), before);
    }
}
