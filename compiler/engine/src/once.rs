//! A cache that computes each value once: one thread computes it, others that request it wait, and results are cached
//! for a while.
//!
//! The lock of the state is held for lookups in a map, never during work, and never while a flight's own lock is taken.
//! A key is in flight from the moment that its first caller misses the cache until its result is cached: each caller
//! finds one of the two. Every flight ends: with a result, or because the thread that does the work gives it up or
//! panics. `tests/once.rs` explores the interleavings with loom's locks in place of the standard library's.

use std::{collections::HashMap, hash::Hash, time::Duration};

use super::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, ThreadId, current};

/// The interval at which a caller that waits for another thread calls `poll`.
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// See the module.
pub(crate) struct Once<K, V, E> {
    state: Mutex<OnceState<K, V, E>>,
    /// About how many bytes a value takes.
    weight: fn(&V) -> usize,
    /// The most bytes that are cached.
    limit: usize,
    /// Notified when no work is in flight.
    idle: Condvar,
}

struct OnceState<K, V, E> {
    entries: HashMap<K, CachedValue<V>>,
    flights: HashMap<K, Arc<Flight<V, E>>>,
    /// How much other work is under way ([`Once::alone`]).
    others: usize,
    /// The bytes of all cached values.
    bytes: usize,
    /// Counts the uses.
    clock: u64,
}

struct CachedValue<V> {
    value: Arc<V>,
    bytes: usize,
    /// The clock of the last use. The least recently used value is evicted first.
    used: u64,
}

/// Work under way.
struct Flight<V, E> {
    /// The thread that does the work.
    pilot: ThreadId,
    landed: Mutex<Option<Landed<V, E>>>,
    done: Condvar,
}

enum Landed<V, E> {
    Value(Arc<V>),
    Error(E),
    /// The thread that did the work gave it up.
    GivenUp,
    /// The thread that did the work panicked.
    Crashed,
}

/// The locked state while no computation runs. See [`Once::hold`].
pub(crate) struct OnceGuard<'a, K, V, E> {
    _state: MutexGuard<'a, OnceState<K, V, E>>,
}

impl<K: Clone + Eq + Hash, V, E: Clone> Once<K, V, E> {
    /// Caches at most `limit` bytes; `weight` is the size of a value.
    pub(crate) fn new(limit: usize, weight: fn(&V) -> usize) -> Self {
        let state = OnceState { entries: HashMap::new(), flights: HashMap::new(), others: 0, bytes: 0, clock: 0 };
        Self { state: Mutex::new(state), weight, limit, idle: Condvar::new() }
    }

    /// Returns the value of a key: cached, or from another thread, or made here. A caller that waited for a thread that
    /// panicked gets `crashed()`; one that waited for a thread that gave up tries again. `None` if `make` or `poll`
    /// gives the work up. `poll` is called while the caller waits for another thread; it may call `get` itself.
    pub(crate) fn get(
        &self,
        key: &K,
        mut make: impl FnMut() -> Option<Result<V, E>>,
        crashed: impl Fn() -> E,
        poll: &dyn Fn() -> bool,
    ) -> Option<Result<Arc<V>, E>> {
        loop {
            let mut state = self.lock();
            if let Some(value) = state.used(key) {
                return Some(Ok(value));
            }
            let Some(flight) = state.flights.get(key) else {
                let flight = Arc::new(Flight { pilot: current(), landed: Mutex::new(None), done: Condvar::new() });
                state.flights.insert(key.clone(), Arc::clone(&flight));
                drop(state);
                // From here on, the flight also ends if this thread panics.
                let mut pilot = Pilot { once: self, key: key.clone(), flight, landed: Some(Landed::Crashed) };
                let made = make().map(|made| made.map(Arc::new));
                pilot.landed = Some(match &made {
                    Some(Ok(value)) => Landed::Value(Arc::clone(value)),
                    Some(Err(error)) => Landed::Error(error.clone()),
                    None => Landed::GivenUp,
                });
                return made;
            };
            let flight = Arc::clone(flight);
            drop(state);
            if flight.pilot == current() {
                // `make` polled, and the poll requested the value that is being made: the flight cannot end before this
                // call returns.
                return make().map(|made| made.map(Arc::new));
            }
            match flight.wait(&crashed, poll) {
                Waited::Landed(result) => return Some(result),
                Waited::Again => {}
                Waited::GivenUp => return None,
            }
        }
    }

    /// Runs work for one caller: its result is not cached. [`Once::hold`] waits for it as for all other work.
    pub(crate) fn alone<T>(&self, make: impl FnOnce() -> T) -> T {
        self.lock().others += 1;
        // Dropped also on a panic, which ends the work.
        let _work = Alone { once: self };
        make()
    }

    /// Waits until no work is in flight, and blocks new work while the guard lives. Work itself must not call it.
    pub(crate) fn hold(&self) -> OnceGuard<'_, K, V, E> {
        let mut state = self.lock();
        while !state.is_idle() {
            state = self.idle.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        OnceGuard { _state: state }
    }

    fn lock(&self) -> MutexGuard<'_, OnceState<K, V, E>> {
        // No code that can panic halfway through a change runs under the lock.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<K: Clone + Eq + Hash, V, E> OnceState<K, V, E> {
    fn is_idle(&self) -> bool {
        self.flights.is_empty() && self.others == 0
    }

    fn used(&mut self, key: &K) -> Option<Arc<V>> {
        self.clock += 1;
        let entry = self.entries.get_mut(key)?;
        entry.used = self.clock;
        Some(Arc::clone(&entry.value))
    }

    /// Caches a value, and returns the evicted values: the caller drops them outside of the lock.
    fn keep(&mut self, key: K, value: Arc<V>, bytes: usize, limit: usize) -> Vec<CachedValue<V>> {
        self.clock += 1;
        self.bytes += bytes;
        let mut gone = Vec::new();
        if let Some(old) = self.entries.insert(key, CachedValue { value, bytes, used: self.clock }) {
            self.bytes -= old.bytes;
            gone.push(old);
        }
        while self.bytes > limit {
            let oldest = self.entries.iter().min_by_key(|(_, entry)| entry.used).map(|(key, _)| key.clone());
            let Some(oldest) = oldest.and_then(|key| self.entries.remove(&key)) else { break };
            self.bytes -= oldest.bytes;
            gone.push(oldest);
        }
        gone
    }
}

/// The result of waiting for a flight.
enum Waited<V, E> {
    Landed(Result<Arc<V>, E>),
    /// Its pilot gave it up: the caller tries again.
    Again,
    /// The waiting caller gave up.
    GivenUp,
}

impl<V, E: Clone> Flight<V, E> {
    fn wait(&self, crashed: impl Fn() -> E, poll: &dyn Fn() -> bool) -> Waited<V, E> {
        let mut landed = self.landed.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            match &*landed {
                Some(Landed::Value(value)) => return Waited::Landed(Ok(Arc::clone(value))),
                Some(Landed::Error(error)) => return Waited::Landed(Err(error.clone())),
                Some(Landed::Crashed) => return Waited::Landed(Err(crashed())),
                Some(Landed::GivenUp) => return Waited::Again,
                None => {}
            }
            let (waited, timeout) =
                self.done.wait_timeout(landed, POLL_INTERVAL).unwrap_or_else(PoisonError::into_inner);
            landed = waited;
            if timeout.timed_out() {
                drop(landed);
                if poll() {
                    return Waited::GivenUp;
                }
                landed = self.landed.lock().unwrap_or_else(PoisonError::into_inner);
            }
        }
    }
}

/// The thread that does the work; dropping it ends the flight.
struct Pilot<'a, K: Clone + Eq + Hash, V, E: Clone> {
    once: &'a Once<K, V, E>,
    key: K,
    flight: Arc<Flight<V, E>>,
    landed: Option<Landed<V, E>>,
}

impl<K: Clone + Eq + Hash, V, E: Clone> Drop for Pilot<'_, K, V, E> {
    fn drop(&mut self) {
        let Some(landed) = self.landed.take() else { return };
        let mut state = self.once.lock();
        state.flights.remove(&self.key);
        if state.is_idle() {
            self.once.idle.notify_all();
        }
        let gone = match &landed {
            Landed::Value(value) => {
                let bytes = (self.once.weight)(value);
                state.keep(self.key.clone(), Arc::clone(value), bytes, self.once.limit)
            }
            Landed::Error(_) | Landed::GivenUp | Landed::Crashed => Vec::new(),
        };
        drop(state);
        drop(gone);
        *self.flight.landed.lock().unwrap_or_else(PoisonError::into_inner) = Some(landed);
        self.flight.done.notify_all();
    }
}

/// Work of [`Once::alone`].
struct Alone<'a, K: Clone + Eq + Hash, V, E: Clone> {
    once: &'a Once<K, V, E>,
}

impl<K: Clone + Eq + Hash, V, E: Clone> Drop for Alone<'_, K, V, E> {
    fn drop(&mut self) {
        let mut state = self.once.lock();
        state.others -= 1;
        if state.is_idle() {
            self.once.idle.notify_all();
        }
    }
}
