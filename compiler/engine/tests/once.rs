//! `once.rs` under loom: all interleavings of a few threads that request the same and different keys.

#![allow(dead_code, unreachable_pub, missing_docs, reason = "the module is the engine's, with other locks")]

mod sync {
    pub(crate) use std::sync::PoisonError;

    pub(crate) use loom::{
        sync::{Arc, Condvar, Mutex, MutexGuard},
        thread::ThreadId,
    };

    pub(crate) fn current() -> ThreadId {
        loom::thread::current().id()
    }
}

#[path = "../src/once.rs"]
mod once;

use loom::{
    sync::{Arc, atomic::AtomicUsize, atomic::Ordering::SeqCst},
    thread,
};
use once::Once;

type Texts = Once<u32, String, String>;

fn texts(limit: usize) -> Arc<Texts> {
    Arc::new(Once::new(limit, String::len))
}

fn get(once: &Texts, key: u32, made: &AtomicUsize) -> Result<String, String> {
    let make = || {
        made.fetch_add(1, SeqCst);
        // Other threads may run during the work.
        thread::yield_now();
        Some(if key < 10 { Ok(format!("value {key}")) } else { Err(format!("error {key}")) })
    };
    let got = once.get(&key, make, || "crashed".to_owned(), &|| false);
    got.expect("no caller cancels it").map(|value| value.as_str().to_owned())
}

#[test]
fn one_makes_what_two_ask_for() {
    loom::model(|| several(2));
}

#[test]
fn one_makes_what_three_ask_for() {
    // Three threads have too many interleavings to try all. This tries those with at most two preemptions.
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(2);
    model.check(|| several(3));
}

fn several(n_threads: usize) {
    let (once, made) = (texts(100), Arc::new(AtomicUsize::new(0)));
    let threads: Vec<_> = (1..n_threads)
        .map(|_| {
            let (once, made) = (Arc::clone(&once), Arc::clone(&made));
            thread::spawn(move || get(&once, 1, &made))
        })
        .collect();
    assert_eq!(get(&once, 1, &made), Ok("value 1".to_owned()));
    for thread in threads {
        assert_eq!(thread.join().expect("no panic"), Ok("value 1".to_owned()));
    }
    assert_eq!(made.load(SeqCst), 1);
}

#[test]
fn different_things_do_not_meet() {
    loom::model(|| {
        let (once, made) = (texts(100), Arc::new(AtomicUsize::new(0)));
        let other = {
            let (once, made) = (Arc::clone(&once), Arc::clone(&made));
            thread::spawn(move || get(&once, 2, &made))
        };
        assert_eq!(get(&once, 1, &made), Ok("value 1".to_owned()));
        assert_eq!(other.join().expect("no panic"), Ok("value 2".to_owned()));
        assert_eq!(made.load(SeqCst), 2);
    });
}

#[test]
fn everyone_gets_the_error_and_the_next_one_tries_again() {
    loom::model(|| {
        let (once, made) = (texts(100), Arc::new(AtomicUsize::new(0)));
        let other = {
            let (once, made) = (Arc::clone(&once), Arc::clone(&made));
            thread::spawn(move || get(&once, 11, &made))
        };
        assert_eq!(get(&once, 11, &made), Err("error 11".to_owned()));
        assert_eq!(other.join().expect("no panic"), Err("error 11".to_owned()));
        let before = made.load(SeqCst);
        assert!((1..=2).contains(&before), "{before}");
        assert_eq!(get(&once, 11, &made), Err("error 11".to_owned()));
        assert_eq!(made.load(SeqCst), before + 1);
    });
}

/// Ends a flight by a panic, without a result.
fn crash(once: &Texts) {
    let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        once.get(&1, || std::panic::resume_unwind(Box::new("on purpose")), || "crashed".to_owned(), &|| false)
    }));
    // If the other thread came first, this one has its value; if it waited for the thread that panicked, an error.
    if let Ok(Some(result)) = panicked {
        assert!(matches!(result.as_deref().map(String::as_str), Ok("value 1") | Err(_)));
    }
}

#[test]
fn a_panic_leaves_nobody_waiting() {
    loom::model(|| {
        let (once, made) = (texts(100), Arc::new(AtomicUsize::new(0)));
        let other = {
            let once = Arc::clone(&once);
            thread::spawn(move || crash(&once))
        };
        let got = get(&once, 1, &made);
        assert!(got == Ok("value 1".to_owned()) || got == Err("crashed".to_owned()), "{got:?}");
        other.join().expect("the panic was caught");
        // The key is free again.
        assert_eq!(get(&once, 1, &made), Ok("value 1".to_owned()));
    });
}

#[test]
fn who_waited_for_what_was_given_up_makes_it() {
    loom::model(|| {
        let (once, made) = (texts(100), Arc::new(AtomicUsize::new(0)));
        let other = {
            let once = Arc::clone(&once);
            thread::spawn(move || {
                let give_up = || {
                    thread::yield_now();
                    None
                };
                let got = once.get(&1, give_up, || "crashed".to_owned(), &|| false);
                got.map(|got| got.map(|text| text.as_str().to_owned()))
            })
        };
        assert_eq!(get(&once, 1, &made), Ok("value 1".to_owned()));
        let given_up = other.join().expect("no panic");
        assert!(given_up.is_none() || given_up == Some(Ok("value 1".to_owned())), "{given_up:?}");
        assert_eq!(made.load(SeqCst), 1);
    });
}

#[test]
fn what_is_asked_for_in_the_midst_of_it_is_made_apart() {
    loom::model(|| {
        let (once, made) = (texts(100), Arc::new(AtomicUsize::new(0)));
        let make = || {
            assert_eq!(get(&once, 1, &made), Ok("value 1".to_owned()));
            Some(Ok("outer".to_owned()))
        };
        let got = once.get(&1, make, || "crashed".to_owned(), &|| false).expect("no caller cancels it");
        assert_eq!(got.map(|text| text.as_str().to_owned()), Ok("outer".to_owned()));
        assert_eq!(get(&once, 1, &made), Ok("outer".to_owned()));
        assert_eq!(made.load(SeqCst), 1);
    });
}

#[test]
fn the_least_recently_used_goes_first() {
    loom::model(|| {
        // The cache holds two values of seven bytes.
        let (once, made) = (texts(15), Arc::new(AtomicUsize::new(0)));
        for key in [1, 2, 1, 3, 1] {
            assert_eq!(get(&once, key, &made), Ok(format!("value {key}")));
        }
        assert_eq!(made.load(SeqCst), 3);
        assert_eq!(get(&once, 2, &made), Ok("value 2".to_owned()));
        assert_eq!(made.load(SeqCst), 4, "2 had gone for 3");
    });
}

#[test]
fn nothing_is_under_way_while_it_is_held() {
    held(|once, work| {
        once.get(&1, || Some(Ok(work())), || "crashed".to_owned(), &|| false).expect("no caller cancels it").map(drop)
    });
}

#[test]
fn neither_is_work_that_nobody_else_asks_for() {
    held(|once, work| once.alone(|| Ok(work())).map(drop));
}

/// Another thread works while this one holds the cache.
fn held(begin: fn(&Texts, &dyn Fn() -> String) -> Result<(), String>) {
    loom::model(move || {
        let (once, made) = (texts(100), Arc::new(AtomicUsize::new(0)));
        let busy = Arc::new(AtomicUsize::new(0));
        let other = {
            let (once, busy) = (Arc::clone(&once), Arc::clone(&busy));
            thread::spawn(move || {
                begin(&once, &|| {
                    busy.store(1, SeqCst);
                    thread::yield_now();
                    busy.store(0, SeqCst);
                    "value".to_owned()
                })
            })
        };
        let held = once.hold();
        assert_eq!(busy.load(SeqCst), 0);
        thread::yield_now();
        assert_eq!(busy.load(SeqCst), 0);
        drop(held);
        assert_eq!(get(&once, 2, &made), Ok("value 2".to_owned()));
        assert_eq!(other.join().expect("no panic"), Ok(()));
    });
}
