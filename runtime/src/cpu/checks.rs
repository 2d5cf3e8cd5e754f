//! Functions that sanitized code calls. They forward to the launch's [sanitizer](crate::sanitize), which also observes
//! barriers.
#![expect(unsafe_code, reason = "is called by code that was compiled at run time, and reads what is to be overwritten")]

use std::{
    cell::UnsafeCell,
    ptr,
    sync::{Mutex, atomic::AtomicU64},
};

use weft_artifact::{AccessBits, ArgType, HostChecks, HostContext, Kernel, Layout, SlotField, SlotSource};

use super::readable_tail;
use crate::sanitize::{AccessRecord, Argument, Launch, LaunchParts, Lines, LiveThread, Pause, Verdict};

/// The checks that sanitized code calls.
pub(super) const CHECKS: HostChecks = HostChecks { access, event };

/// Rounds over all threads without progress after which waiting threads are taken to wait forever.
const PATIENCE: u32 = 8192;
/// Rounds after which the sanitizer checks whether accesses change something.
const QUIET: u32 = 16;
/// Rounds after which threads in loops are taken to wait.
const WAITS: u32 = QUIET + 4;

/// The target of accesses that must not touch memory of the program.
#[repr(C, align(64))]
struct Nowhere(UnsafeCell<[u8; 64]>);

// SAFETY: stores there are never read.
unsafe impl Sync for Nowhere {}

static NOWHERE: Nowhere = Nowhere(UnsafeCell::new([0; 64]));

/// The launch's sanitizer that a thread reports to, and the slot of its block there.
#[derive(Clone, Copy)]
pub(super) struct Watched {
    /// Null if the launch is not sanitized.
    launch: *mut Launch,
    slot: usize,
}

/// The context of sanitized code, with the launch's sanitizer.
#[repr(C)]
pub(super) struct SanitizedContext {
    pub(super) context: HostContext,
    pub(super) watched: Watched,
}

impl SanitizedContext {
    /// The reporting thread, and the launch's sanitizer, which is null if the launch is not sanitized.
    ///
    /// # Safety
    ///
    /// The context is the first field of a [`SanitizedContext`].
    unsafe fn caller(context: *const HostContext) -> (*mut Launch, LiveThread) {
        // SAFETY: as above.
        let telling = unsafe { &*context.cast::<Self>() };
        let Watched { launch, slot } = telling.watched;
        (launch, LiveThread { slot, thread: telling.context.thread as usize })
    }
}

impl Watched {
    /// The launch is not sanitized.
    pub(super) const fn none() -> Self {
        Self { launch: ptr::null_mut(), slot: 0 }
    }

    pub(super) const fn new(launch: *mut Launch, slot: usize) -> Self {
        Self { launch, slot }
    }
}

extern "C" fn access(
    context: *const HostContext,
    site: u32,
    pointer: *mut u8,
    bits: u32,
    value: u64,
    copy: u32,
) -> *mut u8 {
    // SAFETY: sanitized code is called with the context of a `SanitizedContext`, which outlives the call.
    let (launch, caller) = unsafe { SanitizedContext::caller(context) };
    // SAFETY: it is null, or the launch's, which this thread of the system alone uses while it runs.
    let Some(launch) = (unsafe { launch.as_mut() }) else { return pointer };
    let record = AccessRecord { site, address: pointer.addr() as u64, bits, value, copy };
    let read = || {
        let bytes = (bits & AccessBits::SIZE).min(8) as usize;
        let mut word = [0_u8; 8];
        // SAFETY: the access is about to read or write this many bytes there.
        unsafe { ptr::copy_nonoverlapping(pointer, word.as_mut_ptr(), bytes) };
        u64::from_le_bytes(word)
    };
    match launch.access(caller, record, read) {
        Verdict::Goes => pointer,
        Verdict::Unwritten(number) => {
            // SAFETY: the running code received this context, which no other thread uses concurrently.
            unsafe { (*context.cast_mut()).unwritten = number };
            pointer
        }
        Verdict::Nowhere => NOWHERE.0.get().cast::<u8>(),
    }
}

/// The launch's sanitizer, and the thread that reports to it.
pub(super) struct Checking(*mut Launch, LiveThread);

impl Checking {
    /// Of running code.
    ///
    /// # Safety
    ///
    /// The context is that of running code. The result is used only while its thread runs.
    pub(super) unsafe fn of(context: *const HostContext) -> Self {
        // SAFETY: the caller's promise.
        let (launch, caller) = unsafe { SanitizedContext::caller(context) };
        Self(launch, caller)
    }

    /// Whether the launch is sanitized.
    pub(super) const fn is_on(&self) -> bool {
        !self.0.is_null()
    }

    /// Reports to the sanitizer, if the launch is sanitized.
    pub(super) fn tell(&mut self, report: impl FnOnce(&mut Launch, LiveThread)) {
        // SAFETY: it is null, or the launch's, which this thread of the system alone uses while it runs.
        if let Some(launch) = unsafe { self.0.as_mut() } {
            report(launch, self.1);
        }
    }
}

/// A thread begins an asynchronous copy to `bytes` bytes at an address.
///
/// # Safety
///
/// The context is that of running code.
pub(super) unsafe fn copy_begins(context: *const HostContext, site: u32, to: (u64, u64)) {
    // SAFETY: the caller's promise.
    let (launch, caller) = unsafe { SanitizedContext::caller(context) };
    // SAFETY: as above.
    if let Some(launch) = unsafe { launch.as_mut() } {
        launch.copy_begins(caller, site, to);
    }
}

/// A thread has waited for an asynchronous copy.
///
/// # Safety
///
/// The context is that of running code.
pub(super) unsafe fn copy_ends(context: *const HostContext, to: (u64, u64)) {
    // SAFETY: the caller's promise.
    let (launch, caller) = unsafe { SanitizedContext::caller(context) };
    // SAFETY: as above.
    if let Some(launch) = unsafe { launch.as_mut() } {
        launch.copy_ends(caller, to);
    }
}

extern "C" fn event(context: *const HostContext, site: u32, kind: u32, a: u64, b: u64) {
    // SAFETY: as above.
    let (launch, caller) = unsafe { SanitizedContext::caller(context) };
    // SAFETY: as above.
    if let Some(launch) = unsafe { launch.as_mut() } {
        launch.event(caller, site, kind, a, b);
    }
}

/// Reads a page of the program's memory, which it is about to access; `false` if that cannot be. `is_ours` if it is memory of
/// the device's.
pub(super) fn read_page(address: u64, is_ours: bool, lines: &mut Lines) -> bool {
    if !is_ours {
        return readable_tail::read(address, lines);
    }
    let page = ptr::with_exposed_provenance::<u8>(usize::try_from(address).unwrap_or(0));
    // SAFETY: some of its bytes are mapped, and so are all: mappings begin and end at larger pages. No other thread
    // writes the bytes of the kernel's arrays among them concurrently; bytes of other arrays may change, but are not
    // written back.
    unsafe { ptr::copy_nonoverlapping(page, lines.as_mut_ptr(), lines.len()) };
    true
}

/// Restores the contents of the program's memory before a launch.
pub(super) fn write_back(address: u64, bytes: &[u8]) {
    let place = ptr::with_exposed_provenance_mut::<u8>(usize::try_from(address).unwrap_or(0));
    for (at, &byte) in bytes.iter().enumerate() {
        // SAFETY: the launch has accessed these bytes and has not returned to its caller. Bytes that it only read are
        // unchanged, and may be in read-only memory.
        unsafe {
            let place = place.add(at);
            if place.read() != byte {
                place.write(byte);
            }
        }
    }
}

/// A thread yields; `None` if the launch is not sanitized.
pub(super) fn paused(launch: *mut Launch, slot: usize, thread: usize) -> Option<Pause> {
    // SAFETY: it is null, or the launch's, and no fiber runs now.
    let launch = unsafe { launch.as_mut() }?;
    Some(launch.paused(LiveThread { slot, thread }))
}

/// Checks whether a launch makes progress.
#[derive(Debug, Default)]
pub(super) struct Patience {
    changes: u64,
    rounds: u32,
}

impl Patience {
    /// Called after a round over all threads.
    pub(super) fn look(&mut self, launch: &mut Launch) {
        let changes = launch.changes();
        if changes == self.changes {
            self.rounds += 1;
        } else {
            *self = Self { changes, rounds: 0 };
        }
        launch.look(self.rounds >= QUIET);
    }

    /// Whether all threads that are in loops seem to wait.
    pub(super) fn waits(&self) -> bool {
        self.rounds > WAITS
    }

    /// Whether those that wait do so for ever.
    pub(super) fn is_over(&self) -> bool {
        self.rounds > PATIENCE
    }
}

/// A launch's sanitizer, for the one thread of the system that runs it.
pub(super) type Checked = Mutex<Launch>;

/// The recipient of a launch's events.
#[derive(Clone, Copy)]
pub(super) enum Checks<'a> {
    Off,
    /// For a launch that one system thread runs.
    Alone(&'a Checked),
    /// For a launch that several run, and the number of its finished blocks.
    Parts(&'a LaunchParts, &'a AtomicU64),
}

impl<'a> Checks<'a> {
    /// For a launch that one system thread runs.
    pub(super) const fn alone(self) -> Option<&'a Checked> {
        match self {
            Self::Alone(checked) => Some(checked),
            Self::Off | Self::Parts(..) => None,
        }
    }
}

/// The arrays of a launch, by its cells.
pub(super) fn arguments(kernel: &Kernel, cells: &[u64]) -> Vec<Argument> {
    let mut all: Vec<Argument> = Vec::new();
    let mut of: Vec<(u32, usize)> = Vec::new();
    for (slot, cell) in kernel.slots.iter().zip(kernel.first_cells()) {
        let SlotSource::Argument { param, path, field } = &slot.source else { continue };
        let (Some(&value), Some(known)) = (cells.get(cell), kernel.params.get(*param as usize)) else { continue };
        let ArgType::Array(array) = &known.ty else { continue };
        if !path.is_empty() {
            continue;
        }
        let at = match of.iter().find(|(of, _)| of == param) {
            Some(&(_, at)) => at,
            None => {
                let item = array.dtype.size_bytes();
                all.push(Argument { name: known.name.clone(), parameter: *param, item, ..Argument::default() });
                of.push((*param, all.len() - 1));
                all.len() - 1
            }
        };
        let Some(argument) = all.get_mut(at) else { continue };
        match field {
            SlotField::Data => argument.start = value,
            SlotField::Shape(_) => argument.shape.push(value),
            SlotField::Stride(_) => argument.strides.push(value.cast_signed()),
            SlotField::Value
            | SlotField::Real
            | SlotField::Imag
            | SlotField::Start
            | SlotField::Room
            | SlotField::Least
            | SlotField::Limit => {}
        }
    }
    for (param, at) in of {
        let (Some(argument), Some(known)) = (all.get_mut(at), kernel.params.get(param as usize)) else { continue };
        let ArgType::Array(array) = &known.ty else { continue };
        let n_axes = usize::from(array.ndim);
        argument.is_whole = argument.shape.len() == n_axes
            && (argument.strides.len() == n_axes || matches!(array.layout, Layout::C | Layout::F));
        if argument.strides.len() != argument.shape.len() {
            argument.strides = packed(&argument.shape, argument.item, array.layout == Layout::F);
        }
    }
    all.retain(|argument| argument.start != 0);
    all
}

/// The strides of a contiguous array.
fn packed(shape: &[u64], item: u64, first_fastest: bool) -> Vec<i64> {
    let mut strides = vec![0; shape.len()];
    let mut next = item.cast_signed();
    let mut set = |axis: usize| {
        strides[axis] = next;
        next = next.saturating_mul(shape[axis].cast_signed());
    };
    if first_fastest {
        (0..shape.len()).for_each(&mut set);
    } else {
        (0..shape.len()).rev().for_each(&mut set);
    }
    strides
}
