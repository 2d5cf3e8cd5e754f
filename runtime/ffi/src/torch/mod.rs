//! Operators of PyTorch: one function for each, from a table of functions that know their number.
//!
//! Python defines an operator's schema; here it gets its implementation for the CPU and for CUDA. A word of the schema's
//! `Tensor` is a handle that the callee owns. The functions run without Python's lock. A version counter cannot be
//! changed by libtorch's C ABI: Python's side does that for arrays that the kernel writes.
#![expect(unsafe_code, reason = "is called by libtorch")]

mod call;
mod library;

use std::{
    ffi::CString,
    panic::{AssertUnwindSafe, catch_unwind},
    ptr, slice,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicPtr, Ordering},
    },
};

use self::library::{Boxed, Functions};
use crate::Operator;

/// The number of operators that a process can have.
const SLOTS: usize = 512;

/// What a function of the table calls.
#[derive(Debug)]
struct Slot {
    operator: Arc<dyn Operator>,
    /// Whether the first two arguments say which arrays have a batch as their first dimension, and its size.
    is_batched: bool,
}

/// The slots by number. A slot that is replaced stays allocated, because a thread may be in it.
static TABLE: [AtomicPtr<Slot>; SLOTS] = [const { AtomicPtr::new(ptr::null_mut()) }; SLOTS];
static USED: Mutex<usize> = Mutex::new(0);

unsafe extern "C-unwind" fn trampoline<const INDEX: usize>(words: *mut u64, inputs: u64, outputs: u64) {
    // SAFETY: libtorch calls it with words for its arguments and its results.
    unsafe { run(INDEX, words, inputs, outputs) };
}

macro_rules! rows {
    ($($row:literal)*) => {
        [$(row!($row)),*]
    };
}
macro_rules! row {
    ($row:literal) => {
        row!($row: 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15)
    };
    ($row:literal: $($column:literal)*) => {
        [$(trampoline::<{ $row * 16 + $column }> as Boxed),*]
    };
}

static FUNCTIONS: [[Boxed; 16]; SLOTS / 16] =
    rows!(0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31);

/// A call of the operator with a number.
///
/// # Safety
///
/// As libtorch calls a boxed function: there are words for the larger of the numbers of arguments and results.
unsafe fn run(index: usize, words: *mut u64, inputs: u64, outputs: u64) {
    let Ok(functions) = Functions::get() else { return };
    // SAFETY: the slot was set before the function was registered, and is never freed.
    let Some(slot) = (unsafe { TABLE[index].load(Ordering::Acquire).as_ref() }) else { return };
    // SAFETY: by this function's contract.
    let words = unsafe { slice::from_raw_parts_mut(words, inputs.max(outputs) as usize) };
    let called = catch_unwind(AssertUnwindSafe(|| call::call(slot, functions, words, inputs as usize)));
    let message = match called {
        Ok(Ok(())) => return,
        Ok(Err(message)) => message,
        Err(_) => format!("{}: an internal error of weft", slot.operator.name()),
    };
    let message = CString::new(message.replace('\0', " ")).unwrap_or_default();
    // SAFETY: strings that end with 0. It throws an exception of C++, which unwinds this frame.
    unsafe { (functions.check)(false, c"weft".as_ptr(), c"weft".as_ptr(), 0, message.as_ptr()) };
}

/// What the loaded libtorch lacks: `None` if operators can be registered.
pub fn missing() -> Option<String> {
    Functions::get().err()
}

/// Gives an operator that Python has defined its implementation for the CPU and for CUDA, and returns its number. With
/// `is_batched`, the schema has two more integers in front: a bit for each array that has a batch as its first
/// dimension, and the batch's size.
///
/// # Errors
///
/// The name of what libtorch lacks; libtorch refuses; there are too many operators.
pub fn register(namespace: &str, name: &str, operator: Arc<dyn Operator>, is_batched: bool) -> Result<usize, String> {
    let functions = Functions::get().map_err(|missing| format!("torch has no {missing}"))?;
    let mut used = USED.lock().unwrap_or_else(PoisonError::into_inner);
    let index = *used;
    let Some(function) = FUNCTIONS.as_flattened().get(index).copied() else {
        return Err(format!("a process can have {SLOTS} operators"));
    };
    set(index, operator, is_batched);
    let text = |text: &str| CString::new(text).map_err(|_| format!("{text:?} is no name"));
    let (namespace_c, name_c) = (text(namespace)?, text(name)?);
    for key in [c"CPU", c"CUDA"] {
        let mut library = ptr::null_mut();
        // SAFETY: strings that end with 0, and a place for the handle, which is never deleted: that would take the
        // implementation away.
        let status =
            unsafe { (functions.new_impl)(namespace_c.as_ptr(), key.as_ptr(), c"weft".as_ptr(), 0, &raw mut library) };
        if status != 0 || !functions.implement(library, name_c.as_ptr(), function) {
            return Err(format!("torch refuses an implementation of {namespace}::{name}"));
        }
    }
    *used += 1;
    Ok(index)
}

/// Replaces the operator with a number by another one of the same schema.
pub fn set(index: usize, operator: Arc<dyn Operator>, is_batched: bool) {
    if let Some(place) = TABLE.get(index) {
        place.store(Box::into_raw(Box::new(Slot { operator, is_batched })), Ordering::Release);
    }
}
