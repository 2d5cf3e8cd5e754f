//! Launches that are given up on the CPU executor, with kernels that are functions of this test.
#![expect(unsafe_code, reason = "plays the part of compiled code")]

mod support;

use std::{
    cell::{Cell, RefCell},
    sync::atomic::{AtomicU64, Ordering},
    thread,
    time::{Duration, Instant},
};

use support::{config, cpu_with, expect_error, load};
use weft_artifact::HostContext;
use weft_runtime::ErrorKind;

/// Slot 0: a `&AtomicU64` that counts the blocks that have begun; slot 1: another that counts those that are left.
struct Counts {
    begun: AtomicU64,
    left: AtomicU64,
}

impl Counts {
    fn slots(&self) -> [u64; 2] {
        [&raw const self.begun as u64, &raw const self.left as u64]
    }

    fn get(&self) -> (u64, u64) {
        (self.begun.load(Ordering::Relaxed), self.left.load(Ordering::Relaxed))
    }
}

fn counts() -> Counts {
    Counts { begun: AtomicU64::new(0), left: AtomicU64::new(0) }
}

/// Waits in each block for what never comes.
unsafe extern "C" fn hang(context: *mut HostContext) {
    let HostContext { slots, config, first_block: first, last_block: last, .. } = support::given(context);
    let (begun, left): (&AtomicU64, &AtomicU64) = (support::reference(slots, 0), support::reference(slots, 1));
    for _ in first..last {
        begun.fetch_add(1, Ordering::Relaxed);
        let start = Instant::now();
        while !support::leaves(config) {
            assert!(start.elapsed() < Duration::from_mins(1), "no one says that it is to leave");
            std::hint::spin_loop();
        }
        left.fetch_add(1, Ordering::Relaxed);
    }
}

/// Takes two milliseconds for each block, and never looks up.
unsafe extern "C" fn doze(context: *mut HostContext) {
    let HostContext { slots, first_block: first, last_block: last, .. } = support::given(context);
    let (begun, left): (&AtomicU64, &AtomicU64) = (support::reference(slots, 0), support::reference(slots, 1));
    for _ in first..last {
        begun.fetch_add(1, Ordering::Relaxed);
        thread::sleep(Duration::from_millis(2));
        left.fetch_add(1, Ordering::Relaxed);
    }
}

#[test]
fn a_kernel_that_does_not_end_is_given_up() {
    for n_threads in [1, 2, 4] {
        let device = cpu_with(n_threads);
        let kernel = load(&device, hang, 2);
        for n_blocks in [1, 2, 1000] {
            let (counts, asked, caller) = (counts(), Cell::new(0), thread::current().id());
            let poll = || {
                assert_eq!(thread::current().id(), caller);
                asked.set(asked.get() + 1);
                asked.get() == 3
            };
            let launched =
                kernel.launch_polled(&config([n_blocks, 1, 1], [1; 3]), None, &mut counts.slots(), Some(&poll));
            let error = expect_error(launched);
            assert_eq!(
                (error.kind, error.message.as_str()),
                (ErrorKind::Interrupted, "the launch of `probe` was interrupted")
            );
            assert!(asked.get() >= 3);
            let (begun, left) = counts.get();
            assert!(begun == left && begun >= 1, "{begun} blocks have begun, {left} are left");
        }
    }
}

#[test]
fn a_launch_of_many_blocks_is_given_up_between_them() {
    for n_threads in [1, 3] {
        let device = cpu_with(n_threads);
        let kernel = load(&device, doze, 2);
        // At first nothing is known of its cost.
        for _ in 0..2 {
            let (counts, start) = (counts(), Instant::now());
            let poll = || true;
            let launched =
                kernel.launch_polled(&config([60_000, 1, 1], [1; 3]), None, &mut counts.slots(), Some(&poll));
            assert_eq!(expect_error(launched).kind, ErrorKind::Interrupted);
            assert!(start.elapsed() < Duration::from_secs(20), "{:?}", start.elapsed());
            let (begun, left) = counts.get();
            assert!(begun == left && begun < 60_000, "{begun} blocks have begun, {left} are left");
        }
    }
}

#[test]
fn a_launch_goes_on_while_the_answer_is_no() {
    let device = cpu_with(2);
    let kernel = load(&device, doze, 2);
    let (counts, asked) = (counts(), Cell::new(0));
    let poll = || {
        asked.set(asked.get() + 1);
        false
    };
    kernel.launch_polled(&config([300, 1, 1], [1; 3]), None, &mut counts.slots(), Some(&poll)).expect("it ends");
    assert_eq!(counts.get(), (300, 300));
    assert!(asked.get() >= 1, "it takes at least 0.3 s");
}

#[test]
fn a_short_launch_is_not_asked_about() {
    let device = cpu_with(2);
    let kernel = load(&device, doze, 2);
    let counts = counts();
    let poll = || true;
    kernel.launch_polled(&config([1; 3], [1; 3]), None, &mut counts.slots(), Some(&poll)).expect("it ends");
    assert_eq!(counts.get(), (1, 1));
}

#[test]
fn who_waits_for_the_threads_can_give_up() {
    let device = cpu_with(2);
    let kernel = &*load(&device, hang, 2);
    let (first, second) = (&counts(), &counts());
    let over = &AtomicU64::new(0);
    thread::scope(|scope| {
        scope.spawn(move || {
            let poll = || over.load(Ordering::Relaxed) != 0;
            let launched = kernel.launch_polled(&config([4, 1, 1], [1; 3]), None, &mut first.slots(), Some(&poll));
            assert_eq!(expect_error(launched).kind, ErrorKind::Interrupted);
        });
        while first.get().0 < 2 {
            thread::yield_now();
        }
        let launched = kernel.launch_polled(&config([4, 1, 1], [1; 3]), None, &mut second.slots(), Some(&|| true));
        assert_eq!(expect_error(launched).kind, ErrorKind::Interrupted);
        assert_eq!(second.get(), (0, 0), "none of its blocks has begun");
        over.store(1, Ordering::Relaxed);
    });
}

/// As the handler of a signal may: the threads, the scratch and the flag are the outer launch's.
#[test]
fn a_launch_inside_of_a_poll_runs() {
    for n_threads in [1, 3] {
        let device = cpu_with(n_threads);
        let (outer, inner) = (load(&device, hang, 2), load(&device, doze, 2));
        for n_blocks in [1, 8] {
            let (hung, dozed, results) = (counts(), counts(), RefCell::new(Vec::new()));
            let poll = || {
                let launch = config([20, 1, 1], [1; 3]);
                results.borrow_mut().push(inner.launch_polled(&launch, None, &mut dozed.slots(), Some(&|| false)));
                results.borrow().len() == 2
            };
            let launched = outer.launch_polled(&config([n_blocks, 1, 1], [1; 3]), None, &mut hung.slots(), Some(&poll));
            assert_eq!(expect_error(launched).kind, ErrorKind::Interrupted);
            assert!(results.borrow().iter().all(Result::is_ok), "{:?}", results.borrow());
            assert_eq!(dozed.get().0, 20 * results.borrow().len() as u64);
        }
    }
}

#[test]
fn many_threads_launch_and_some_give_up() {
    let device = cpu_with(4);
    let (hangs, ends) = (&*load(&device, hang, 2), &*load(&device, doze, 2));
    thread::scope(|scope| {
        for i in 0..64 {
            scope.spawn(move || {
                let counts = counts();
                let kernel = if i % 8 == 0 { hangs } else { ends };
                let n_blocks = 1 + i as u32 % 5;
                let start = Instant::now();
                let poll = || i % 8 == 0 && start.elapsed() > Duration::from_millis(100);
                let launch = config([n_blocks, 1, 1], [1; 3]);
                let launched = kernel.launch_polled(&launch, None, &mut counts.slots(), Some(&poll));
                let (begun, left) = counts.get();
                assert_eq!(begun, left);
                match launched {
                    Ok(()) => assert_eq!(begun, u64::from(n_blocks)),
                    Err(error) => assert!(i % 8 == 0 && error.kind == ErrorKind::Interrupted, "{error}"),
                }
            });
        }
    });
}

#[test]
#[cfg(target_os = "linux")]
fn a_forked_process_is_asked_too() {
    let device = cpu_with(2);
    let kernel = load(&device, hang, 2);
    let give_up = || {
        let counts = counts();
        let launched = kernel.launch_polled(&config([4, 1, 1], [1; 3]), None, &mut counts.slots(), Some(&|| true));
        launched.is_err_and(|error| error.kind == ErrorKind::Interrupted)
    };
    assert!(give_up());
    assert!(support::in_fork(|| {
        weft_runtime::cpu::after_fork();
        give_up()
    }));
}
