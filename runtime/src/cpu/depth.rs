//! The limit of the call depth of kernels on a thread of the process.
//!
//! Recursive functions compare their stack address with a lowest address, and a launch checks that the calls of others
//! have room above it. Below it there is room for a signal handler, which may run Python.
#![expect(unsafe_code, reason = "queries the address of a thread's stack")]

use std::cell::Cell;

/// Reserved at the end of a stack for other code that runs on it.
const RESERVE: usize = 256 << 10;
/// The stack bytes that a launch may use if the stack's bounds are not known.
const UNKNOWN: usize = 128 << 10;

thread_local! {
    /// The lowest address of this thread's stack, queried on first use; 0 where it is not known.
    static BOTTOM: Cell<Option<usize>> = const { Cell::new(None) };
}

/// About where this thread's stack ends now.
pub(super) fn here() -> u64 {
    let here = 0_u8;
    (&raw const here).addr() as u64
}

/// The lowest address that kernels may use on this thread's stack.
pub(super) fn lowest() -> u64 {
    let here = 0_u8;
    let here = (&raw const here).addr();
    let bottom = BOTTOM.try_with(|known| {
        known.get().unwrap_or_else(|| {
            let bottom = bottom().unwrap_or(0);
            known.set(Some(bottom));
            bottom
        })
    });
    // A stack that a library allocated, such as a coroutine's, is elsewhere.
    let known = bottom.ok().filter(|bottom| *bottom != 0 && (*bottom..=bottom.saturating_add(MOST)).contains(&here));
    let lowest = match known {
        // Of a small stack, a quarter is left.
        Some(bottom) => bottom + RESERVE.min((here - bottom) / 4),
        None => here.saturating_sub(UNKNOWN),
    };
    lowest as u64
}

/// No stack is larger; one without a limit counts as one of this size.
const MOST: usize = 1 << 40;

#[cfg(target_os = "linux")]
fn bottom() -> Option<usize> {
    use std::{mem::MaybeUninit, ptr};

    /// `pthread_attr_t`, which takes 56 or 64 bytes on 64-bit systems.
    #[repr(C, align(16))]
    struct Attributes([u8; 128]);
    unsafe extern "C" {
        fn pthread_self() -> usize;
        fn pthread_getattr_np(thread: usize, attributes: *mut Attributes) -> i32;
        fn pthread_attr_getstack(attributes: *const Attributes, start: *mut *mut u8, bytes: *mut usize) -> i32;
        fn pthread_attr_destroy(attributes: *mut Attributes) -> i32;
    }
    let mut attributes = MaybeUninit::<Attributes>::uninit();
    // SAFETY: it names the calling thread.
    let thread = unsafe { pthread_self() };
    // SAFETY: the thread lives, and there is room for its attributes.
    if unsafe { pthread_getattr_np(thread, attributes.as_mut_ptr()) } != 0 {
        return None;
    }
    let (mut start, mut bytes) = (ptr::null_mut(), 0);
    // SAFETY: the attributes were just filled in; it writes an address and a size.
    let got = unsafe { pthread_attr_getstack(attributes.as_ptr(), &raw mut start, &raw mut bytes) };
    // SAFETY: they were filled in, and are not used again.
    let _freed = unsafe { pthread_attr_destroy(attributes.as_mut_ptr()) };
    // A guard page may be counted in.
    (got == 0 && bytes > 0).then(|| start.addr() + (64 << 10).min(bytes / 8))
}

#[cfg(not(target_os = "linux"))]
fn bottom() -> Option<usize> {
    None
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    #[test]
    fn the_lowest_address_is_on_the_stack_of_the_thread() {
        for bytes in [512 << 10, 8 << 20] {
            let spawned = thread::Builder::new().stack_size(bytes).spawn(move || {
                let here = 0_u8;
                let here = (&raw const here).addr();
                let lowest = usize::try_from(lowest()).expect("an address");
                assert!(lowest < here && here - lowest <= bytes, "{lowest:x} {here:x}");
                if cfg!(target_os = "linux") {
                    assert!(here - lowest > bytes / 2, "{lowest:x} {here:x}");
                }
            });
            spawned.expect("a thread").join().expect("it holds");
        }
    }
}
