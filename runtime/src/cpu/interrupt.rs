//! Interruption of long launches.
//!
//! The calling thread takes part in a launch, and only it may poll whether to continue: on Python's main thread it runs
//! signal handlers. Compiled code cannot read a clock, so a timer thread raises a flag of each thread whose launch has
//! been running for a while, and code that sees the flag calls back.
//!
//! - A launch writes two words and reads a third. It wakes no thread, and only the first of many launches starts one.
//! - A raised flag requests a poll, not a stop: a spurious flag costs one poll.
//! - The memory of a launch is freed when all threads have left it, stopped or not.
#![expect(unsafe_code, reason = "compiled code gets pointers to what it polls")]

use std::{
    cell::{Cell, OnceCell},
    ptr,
    sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64, Ordering},
    thread,
    time::Duration,
};

use weft_artifact::HostWatch;

use super::invalid_access;
use crate::{executor::Poll, print};

/// The time that a launch runs before the first poll, and between polls.
pub(super) const TICK: Duration = Duration::from_millis(50);
/// The timer thread ends after this number of ticks without a launch.
const IDLE_TICKS: u32 = 20;

/// Whether to leave the launch, for the runtime's own loops. Polls only if the flag is raised.
///
/// # Safety
///
/// `watch` belongs to the launch that this thread runs, and the code runs on the thread's own stack.
pub(super) unsafe fn leaves(watch: *const HostWatch) -> bool {
    // SAFETY: the caller's promise.
    let HostWatch { flag, look, .. } = unsafe { *watch };
    // SAFETY: the flag is an atomic one, and lives as long as its watch.
    let raised = unsafe { &*flag.cast::<AtomicU32>() }.load(Ordering::Relaxed) != 0;
    // SAFETY: as above.
    raised && unsafe { look(watch) } != 0
}

/// Whether the flag is raised: the caller must then call [`leaves`] on the thread's own stack.
///
/// # Safety
///
/// `watch` belongs to the launch that this thread runs.
pub(super) unsafe fn is_raised(watch: *const HostWatch) -> bool {
    // SAFETY: the caller's promise.
    let HostWatch { flag, .. } = unsafe { *watch };
    // SAFETY: the flag is an atomic one, and lives as long as its watch.
    unsafe { &*flag.cast::<AtomicU32>() }.load(Ordering::Relaxed) != 0
}

/// The watch of a worker thread. Its flag is the launch's stop flag.
#[repr(C)]
pub(super) struct Helper<'a> {
    watch: HostWatch,
    stop: &'a AtomicU32,
}

impl<'a> Helper<'a> {
    pub(super) fn new(stop: &'a AtomicU32) -> Self {
        /// A raised flag already means stop.
        unsafe extern "C" fn look(_watch: *const HostWatch) -> u32 {
            1
        }
        unsafe extern "C" fn give_up(watch: *const HostWatch) {
            // SAFETY: it is the first field of a `Helper`, which lives.
            let helper = unsafe { &*watch.cast::<Helper<'_>>() };
            helper.stop.store(1, Ordering::Relaxed);
        }
        Self { watch: HostWatch { flag: ptr::from_ref(stop).cast(), look, give_up }, stop }
    }

    /// The pointer for compiled code. It covers the whole struct, because `give_up` reads beyond the first field.
    pub(super) fn watch(&self) -> *const HostWatch {
        ptr::from_ref(self).cast::<HostWatch>()
    }

    /// Whether to stop the launch.
    pub(super) fn stops(&self) -> bool {
        self.stop.load(Ordering::Relaxed) != 0
    }
}

/// The calling thread's part in a launch.
#[repr(C)]
pub(super) struct Caller<'a> {
    watch: HostWatch,
    poll: Option<Poll<'a>>,
    stop: &'a AtomicU32,
    seat: Option<Running>,
}

impl<'a> Caller<'a> {
    /// Enters a launch. The other threads leave it when `stop` is not 0.
    pub(super) fn enter(poll: Option<Poll<'a>>, stop: &'a AtomicU32) -> Self {
        /// Polls whether to continue.
        unsafe extern "C" fn look(watch: *const HostWatch) -> u32 {
            // SAFETY: it is the first field of a `Caller`, whose address the code got as a whole, and which lives.
            let caller = unsafe { &*watch.cast::<Caller<'_>>() };
            u32::from(caller.poll_now())
        }
        unsafe extern "C" fn give_up(watch: *const HostWatch) {
            // SAFETY: as above.
            let caller = unsafe { &*watch.cast::<Caller<'_>>() };
            caller.stop.store(1, Ordering::Relaxed);
            caller.poll_now();
        }
        let seat = poll.and_then(|_| Running::start());
        let flag = seat.as_ref().map_or(ptr::from_ref(stop), |seat| ptr::from_ref(&seat.0.flag));
        Self { watch: HostWatch { flag: flag.cast(), look, give_up }, poll, stop, seat }
    }

    /// The pointer for compiled code. It covers the whole struct, because `look` reads beyond the first field.
    pub(super) fn watch(&self) -> *const HostWatch {
        ptr::from_ref(self).cast::<HostWatch>()
    }

    /// Whether there is a function to poll.
    pub(super) fn polls(&self) -> bool {
        self.poll.is_some()
    }

    /// Whether to stop. Polls only if the flag is raised.
    pub(super) fn stops(&self) -> bool {
        match &self.seat {
            Some(seat) if seat.0.flag.load(Ordering::Relaxed) != 0 => self.poll_now(),
            _ => self.stop.load(Ordering::Relaxed) != 0,
        }
    }

    /// Whether to stop. Polls now.
    pub(super) fn poll_now(&self) -> bool {
        if let Some(seat) = &self.seat {
            seat.0.flag.store(0, Ordering::Relaxed);
        }
        // The output of kernels appears while the caller waits.
        invalid_access::outside(print::flush);
        // After a stop, do not poll again.
        if self.stop.load(Ordering::Relaxed) == 0 && self.poll.is_some_and(invalid_access::outside) {
            self.stop.store(1, Ordering::Relaxed);
        }
        let stops = self.stop.load(Ordering::Relaxed) != 0;
        if let (true, Some(seat)) = (stops, &self.seat) {
            // The flag remains raised: compiled code calls back again and again until it has left the launch.
            seat.0.flag.store(1, Ordering::Relaxed);
        }
        stops
    }
}

/// The slot of a launching thread. Slots are never freed; a later thread reuses them.
struct LauncherSlot {
    flag: AtomicU32,
    /// Odd while a launch runs.
    serial: AtomicU64,
    taken: AtomicBool,
    next: AtomicPtr<LauncherSlot>,
}

/// All slots, the newest first. They are added and never removed.
static SEATS: AtomicPtr<LauncherSlot> = AtomicPtr::new(ptr::null_mut());
/// Whether the timer thread runs.
static AWAKE: AtomicBool = AtomicBool::new(false);

fn seats() -> impl Iterator<Item = &'static LauncherSlot> {
    let get = |seat: &AtomicPtr<LauncherSlot>| {
        // SAFETY: it is null or from a leaked box.
        unsafe { seat.load(Ordering::Acquire).as_ref() }
    };
    std::iter::successors(get(&SEATS), move |seat| get(&seat.next))
}

impl LauncherSlot {
    fn take() -> &'static Self {
        let free = |seat: &&Self| seat.taken.compare_exchange(false, true, Ordering::AcqRel, Ordering::Relaxed).is_ok();
        if let Some(seat) = seats().find(free) {
            return seat;
        }
        let seat: &'static Self = Box::leak(Box::new(Self {
            flag: AtomicU32::new(0),
            serial: AtomicU64::new(0),
            taken: AtomicBool::new(true),
            next: AtomicPtr::new(ptr::null_mut()),
        }));
        let new = ptr::from_ref(seat).cast_mut();
        let mut first = SEATS.load(Ordering::Acquire);
        loop {
            seat.next.store(first, Ordering::Relaxed);
            match SEATS.compare_exchange_weak(first, new, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => return seat,
                Err(now) => first = now,
            }
        }
    }
}

/// A thread's slot. It is released when the thread ends.
struct LauncherGuard(&'static LauncherSlot);

impl Drop for LauncherGuard {
    fn drop(&mut self) {
        self.0.taken.store(false, Ordering::Release);
    }
}

thread_local! {
    static MINE: OnceCell<LauncherGuard> = const { OnceCell::new() };
    static RUNS: Cell<bool> = const { Cell::new(false) };
}

/// A launch on this thread. A signal handler may launch inside another launch; the nested launch then shares the outer
/// one's flag.
struct Running(&'static LauncherSlot, bool);

impl Running {
    /// `None` if the thread is ending.
    fn start() -> Option<Self> {
        let seat = MINE.try_with(|mine| mine.get_or_init(|| LauncherGuard(LauncherSlot::take())).0).ok()?;
        let outermost = !RUNS.replace(true);
        if outermost {
            seat.flag.store(0, Ordering::Relaxed);
            // Sequentially consistent with the store to `AWAKE` at the end of `raise_flags`: at least one of the two
            // threads sees the other's store.
            seat.serial.fetch_add(1, Ordering::SeqCst);
            if !AWAKE.load(Ordering::SeqCst) {
                wake();
            }
        }
        Some(Self(seat, outermost))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if self.1 {
            // Only this thread writes the serial number.
            let serial = self.0.serial.load(Ordering::Relaxed);
            self.0.serial.store(serial + 1, Ordering::Release);
            RUNS.set(false);
        }
    }
}

#[cold]
fn wake() {
    if AWAKE.swap(true, Ordering::SeqCst) {
        return;
    }
    // Without the timer thread, launches cannot be interrupted inside a block. The next launch tries again to start it.
    if thread::Builder::new().name("weft-cpu-ask".to_owned()).spawn(raise_flags).is_err() {
        AWAKE.store(false, Ordering::SeqCst);
    }
}

/// The main loop of the timer thread.
fn raise_flags() {
    let mut idle = 0;
    let mut seen: Vec<(&LauncherSlot, u64)> = Vec::new();
    loop {
        thread::sleep(TICK);
        let now: Vec<(&LauncherSlot, u64)> = seats().map(|seat| (seat, seat.serial.load(Ordering::SeqCst))).collect();
        for (seat, serial) in &now {
            let before = seen.iter().find(|(other, _)| ptr::eq(*other, *seat));
            if serial % 2 == 1 && before.is_some_and(|(_, before)| before == serial) {
                seat.flag.store(1, Ordering::Relaxed);
            }
        }
        let runs = now.iter().any(|(_, serial)| serial % 2 == 1);
        idle = if runs || now != seen { 0 } else { idle + 1 };
        seen = now;
        if idle < IDLE_TICKS {
            continue;
        }
        AWAKE.store(false, Ordering::SeqCst);
        let late = seats().any(|seat| seat.serial.load(Ordering::SeqCst) % 2 == 1);
        // A launch that has just begun either has started another timer thread, or has not seen that this one is about
        // to end.
        if !late || AWAKE.swap(true, Ordering::SeqCst) {
            return;
        }
        idle = 0;
    }
}

impl PartialEq for LauncherSlot {
    fn eq(&self, other: &Self) -> bool {
        ptr::eq(self, other)
    }
}

/// Resets the state in a forked process, which has no timer thread.
pub(crate) fn after_fork() {
    AWAKE.store(false, Ordering::SeqCst);
}
