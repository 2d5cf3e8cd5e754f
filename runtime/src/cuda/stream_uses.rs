//! The streams besides its own that have used a buffer.
//!
//! - A recorded use is found when the buffer is freed, unless its work was seen to be done after the record.
//! - A use is recorded after its work is queued: a thread that checks whether a stream's work is done then sees that
//!   work, or has not begun to check when the use is recorded.
//! - A stream that uses a buffer repeatedly takes no lock.

use std::fmt;

use sync::{AtomicU64, Mutex, MutexGuard, Ordering, fence};

#[cfg(not(all(loom, test)))]
mod sync {
    pub(super) use std::sync::{
        Mutex, MutexGuard,
        atomic::{AtomicU64, Ordering, fence},
    };
}
#[cfg(all(loom, test))]
mod sync {
    pub(super) use loom::sync::{
        Mutex, MutexGuard,
        atomic::{AtomicU64, Ordering, fence},
    };
}

/// From this number on, recorded uses are checked for finished work: a buffer that is used in a new stream each time
/// must not hold all of them.
const MANY: usize = if cfg!(all(loom, test)) { 1 } else { 8 };

/// Notes of what is freed with the buffer. Keys are not 0, and no two notes that live have the same.
pub(super) struct Uses<U> {
    /// The key that was noted last, which is in the list; 0 where that is not certain.
    last: AtomicU64,
    list: Mutex<List<U>>,
}

struct List<U> {
    notes: Vec<(u64, U)>,
    /// When the list is as long, it is looked through.
    most: usize,
}

impl<U> Default for Uses<U> {
    fn default() -> Self {
        Self { last: AtomicU64::new(0), list: Mutex::new(List { notes: Vec::new(), most: MANY }) }
    }
}

impl<U> fmt::Debug for Uses<U> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Uses").finish_non_exhaustive()
    }
}

impl<U: Clone> Uses<U> {
    /// Records a use, whose work has been queued.
    pub(super) fn note(&self, key: u64, used: &U, is_done: impl FnMut(&U) -> bool) {
        // The fence pairs with the one below: either this thread sees that the key was cleared, or the thread that
        // cleared it sees the work that is queued here.
        fence(Ordering::SeqCst);
        if self.last.load(Ordering::Relaxed) != key {
            self.note_in_list(key, used, is_done);
        }
    }

    #[cold]
    fn note_in_list(&self, key: u64, used: &U, mut is_done: impl FnMut(&U) -> bool) {
        let mut list = self.lock();
        if !list.notes.iter().any(|(known, _)| *known == key) {
            if list.notes.len() >= list.most {
                self.last.store(0, Ordering::Relaxed);
                fence(Ordering::SeqCst);
                list.notes.retain(|(_, used)| !is_done(used));
                list.most = MANY.max(2 * list.notes.len());
            }
            list.notes.push((key, used.clone()));
        }
        self.last.store(key, Ordering::Relaxed);
    }

    /// All that was noted.
    pub(super) fn take(&mut self) -> Vec<U> {
        self.last.store(0, Ordering::Relaxed);
        std::mem::take(&mut self.lock().notes).into_iter().map(|(_, used)| used).collect()
    }

    fn lock(&self) -> MutexGuard<'_, List<U>> {
        // Nothing that can panic happens under the lock but `is_done`, which leaves the list whole.
        match self.list.lock() {
            Ok(list) => list,
            Err(poisoned) => poisoned.into_inner(),
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::Uses;

    #[test]
    fn each_use_is_noted_once() {
        let mut uses = Uses::default();
        for key in [3, 3, 5, 3, 7, 5] {
            uses.note(key, &key, |_| false);
        }
        assert_eq!(uses.take(), [3, 5, 7]);
        assert_eq!(uses.take(), [0; 0]);
        uses.note(7, &7, |_| false);
        assert_eq!(uses.take(), [7]);
    }

    #[test]
    fn what_is_done_is_dropped_and_may_come_back() {
        let mut uses = Uses::default();
        for key in 1..=8 {
            uses.note(key, &key, |_| false);
        }
        uses.note(9, &9, |key| *key != 4);
        uses.note(8, &8, |_| panic!("there are few again"));
        assert_eq!(uses.take(), [4, 9, 8]);
    }

    #[test]
    fn what_is_not_done_stays_however_much_it_is() {
        let mut uses = Uses::default();
        let mut looked = 0;
        for key in 1..=100 {
            uses.note(key, &key, |_| {
                looked += 1;
                false
            });
        }
        assert_eq!(uses.take(), (1..=100).collect::<Vec<_>>());
        assert!(looked < 200, "{looked}");
    }
}

/// All interleavings of two or three threads that the memory model allows.
#[cfg(all(test, loom))]
mod tests {
    use loom::{
        model::Builder,
        sync::{
            Arc,
            atomic::{AtomicBool, Ordering},
        },
        thread,
    };

    use super::Uses;

    /// Streams that are busy, as a driver without any lock would know it: nothing but the fences orders it.
    struct Streams {
        busy: [AtomicBool; 4],
        uses: Uses<usize>,
    }

    impl Streams {
        fn launch(&self, stream: usize) {
            self.busy[stream].store(true, Ordering::Relaxed);
            self.note(stream);
        }

        fn note(&self, stream: usize) {
            let is_done = |stream: &usize| !self.busy[*stream].load(Ordering::Relaxed);
            self.uses.note(stream as u64, &stream, is_done);
        }

        /// The uses that freeing would wait for.
        fn end(streams: Arc<Self>) -> Vec<usize> {
            let mut uses = Arc::try_unwrap(streams).ok().expect("all threads are done").uses.take();
            uses.sort_unstable();
            uses
        }
    }

    fn streams() -> Arc<Streams> {
        Arc::new(Streams { busy: Default::default(), uses: Uses::default() })
    }

    /// With at most `switches` preemptions.
    fn run(launches: &'static [usize], switches: Option<usize>) {
        let mut model = Builder::new();
        model.preemption_bound = switches;
        model.check(move || {
            let streams = streams();
            // Recorded before, and done by now: the other threads may drop it.
            streams.note(1);
            let threads: Vec<_> = launches
                .iter()
                .map(|&stream| {
                    let streams = Arc::clone(&streams);
                    thread::spawn(move || streams.launch(stream))
                })
                .collect();
            threads.into_iter().for_each(|thread| thread.join().expect("no thread panics"));
            let mut expected = launches.to_vec();
            expected.sort_unstable();
            let found = Streams::end(streams);
            assert!(expected.iter().all(|stream| found.contains(stream)), "{expected:?} in {found:?}");
        });
    }

    #[test]
    fn a_stream_that_is_used_again_is_not_dropped() {
        run(&[1, 2], None);
    }

    #[test]
    fn nor_is_one_of_three() {
        run(&[1, 2, 3], Some(2));
    }
}
