//! The handler of SIGSEGV and SIGBUS, and the exit from a kernel's code.
//!
//! - Before the first launch on the CPU nothing is installed. The previous handler is preserved, and called for every
//!   signal that is not an invalid access by a kernel.
//! - [`enter`] calls an entry and saves the stack pointer: the handler resumes the thread there. The abandoned frames
//!   are generated code and C functions that it called (`memcpy`), never Rust functions: a thread in a callback counts
//!   as outside of its kernel ([`outside`], [`ThreadSlot::leave`]).
//! - The handler runs on a stack of its own, since the thread's stack may have overflowed. It calls nothing that
//!   allocates or locks, except to iterate over the loaded libraries.
//! - A forked process has the handler, and the state of the thread that called fork. A thread removes its state when it
//!   ends.
#![expect(unsafe_code, reason = "handles signals, and leaves code that was compiled at run time")]

use std::{
    arch::naked_asm,
    cell::UnsafeCell,
    ffi::{c_int, c_void},
    mem, ptr,
    rc::Rc,
    sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicUsize, Ordering},
    thread,
};

use libc::{
    AT_MINSIGSTKSZ, MAP_ANONYMOUS, MAP_FAILED, MAP_PRIVATE, PROT_NONE, PROT_READ, PROT_WRITE, PT_LOAD, REG_EFL,
    REG_ERR, REG_RIP, REG_RSP, SA_ONSTACK, SA_SIGINFO, SIG_DFL, SIG_IGN, SIGBUS, SIGSEGV, SS_DISABLE, dl_iterate_phdr,
    dl_phdr_info, getauxval, mmap, mprotect, munmap, pthread_getspecific, pthread_key_create, pthread_key_t,
    pthread_setspecific, raise, sigaction, sigaltstack, siginfo_t, size_t, stack_t, ucontext_t,
};
use weft_artifact::HostContext;

use super::{super::module::Entry, AccessError, AccessKind, InvalidAccess};

/// The handled signals.
const SIGNALS: [c_int; 2] = [SIGSEGV, SIGBUS];
/// `si_code`s of the system's; those of signals that processes send are not positive.
const SEGV_MAPERR: c_int = 1;
const SEGV_ACCERR: c_int = 2;
/// The processor's, in its error code of a page fault.
const WAS_WRITE: i64 = 1 << 1;
const WAS_FETCH: i64 = 1 << 4;
/// The flag of string operations that go downwards, which must be clear in C.
const DIRECTION: i64 = 1 << 10;
/// An access at most this far below the stack pointer is an access to the stack.
const NEAR: usize = 64 << 10;
/// A page, of which one guards a stack.
const PAGE: usize = 4 << 10;
/// Of a stack for handlers: those that were there before run on it, too.
const STACK_BYTES: usize = 64 << 10;

const NOT_YET: u32 = 0;
const UNDER_WAY: u32 = 1;
const DONE: u32 = 2;
const FAILED: u32 = 3;

/// Whether the handler is installed.
static INSTALLED: AtomicU32 = AtomicU32::new(NOT_YET);
/// The key of a thread's slot. A handler may read the key and a thread's state, unlike those of `thread_local`, which
/// may be allocated on first access.
static KEY: AtomicU32 = AtomicU32::new(0);
/// The previous handlers, for each of [`SIGNALS`]; from `Box::into_raw`, never freed.
static BEFORE: [AtomicPtr<sigaction>; 2] = [const { AtomicPtr::new(ptr::null_mut()) }; 2];

/// A call of an entry: the location at which the handler resumes the thread.
#[repr(C)]
struct Call {
    /// The stack pointer, and the address of the code; both written by [`enter`].
    stack: UnsafeCell<usize>,
    code: UnsafeCell<usize>,
    kernel: *const str,
}

/// A thread's state for the handler.
pub(crate) struct ThreadSlot {
    /// The kernel's call that it is in, or null.
    call: AtomicPtr<Call>,
    /// The kernel is in a callback: the running code is not its own.
    is_outside: AtomicBool,
    /// The handler's result.
    address: AtomicUsize,
    found: AtomicU32,
    _stack: Option<AlternateStack>,
}

/// Where a thread was when it left its kernel for a while.
pub(crate) struct Frame(*mut Call, bool);

/// The encoding of [`ThreadSlot::found`].
const ACCESS: [AccessKind; 4] = [AccessKind::Read, AccessKind::Write, AccessKind::Jump, AccessKind::Either];
const WHY: [AccessError; 3] = [AccessError::Missing, AccessError::Protected, AccessError::Lost];
const HAS_ADDRESS: u32 = 1 << 16;
const ON_STACK: u32 = 1 << 17;

impl ThreadSlot {
    /// The thread leaves the kernel for other code on this system thread.
    pub(crate) fn leave(&self) -> Frame {
        // Only this thread and its handlers, which return here, access its slot: two separate stores suffice.
        let frame = Frame(self.call.load(Ordering::Relaxed), self.is_outside.load(Ordering::Relaxed));
        self.call.store(ptr::null_mut(), Ordering::Relaxed);
        self.is_outside.store(false, Ordering::Relaxed);
        frame
    }

    /// It is back.
    pub(crate) fn come_back(&self, Frame(call, is_outside): Frame) {
        self.call.store(call, Ordering::Relaxed);
        self.is_outside.store(is_outside, Ordering::Relaxed);
    }

    /// The handler's result.
    fn invalid(&self) -> InvalidAccess {
        let found = self.found.load(Ordering::Relaxed);
        InvalidAccess {
            access: ACCESS[(found & 0xff) as usize % ACCESS.len()],
            why: WHY[(found >> 8 & 0xff) as usize % WHY.len()],
            address: (found & HAS_ADDRESS != 0).then(|| self.address.load(Ordering::Relaxed)),
            on_stack: found & ON_STACK != 0,
        }
    }
}

/// A thread's reference to its slot.
struct ThreadSlotRef(Rc<ThreadSlot>);

impl Drop for ThreadSlotRef {
    fn drop(&mut self) {
        // SAFETY: the key was made before the seat. No kernel runs on a thread that ends.
        let _cleared = unsafe { pthread_setspecific(KEY.load(Ordering::Relaxed), ptr::null()) };
    }
}

thread_local! {
    static MINE: Option<ThreadSlotRef> = take();
}

/// In the child of a fork: if another thread of the parent was installing the handler, that thread does not exist here.
pub(crate) fn after_fork() {
    let _unfinished = INSTALLED.compare_exchange(UNDER_WAY, FAILED, Ordering::AcqRel, Ordering::Acquire);
}

/// This thread's slot. The first call creates it and installs the handler. `None` if the thread is ending, or the
/// system refuses: then invalid accesses end the process.
pub(crate) fn seat() -> Option<Rc<ThreadSlot>> {
    mine().or_else(|| if install() { mine() } else { None })
}

/// The same if the handler is installed.
fn mine() -> Option<Rc<ThreadSlot>> {
    if INSTALLED.load(Ordering::Acquire) != DONE {
        return None;
    }
    MINE.try_with(|mine| mine.as_ref().map(|taken| Rc::clone(&taken.0))).ok().flatten()
}

fn take() -> Option<ThreadSlotRef> {
    let seat = Rc::new(ThreadSlot {
        call: AtomicPtr::new(ptr::null_mut()),
        is_outside: AtomicBool::new(false),
        address: AtomicUsize::new(0),
        found: AtomicU32::new(0),
        _stack: AlternateStack::new(),
    });
    // SAFETY: the key was made before the handler was installed, and the seat lives until `ThreadSlotRef` goes.
    let set = unsafe { pthread_setspecific(KEY.load(Ordering::Relaxed), Rc::as_ptr(&seat).cast()) };
    (set == 0).then_some(ThreadSlotRef(seat))
}

/// Runs a kernel's callback, which may run foreign code.
pub(crate) fn outside<R>(run: impl FnOnce() -> R) -> R {
    let Some(seat) = mine() else { return run() };
    let was = seat.is_outside.swap(true, Ordering::Relaxed);
    let result = run();
    seat.is_outside.store(was, Ordering::Relaxed);
    result
}

/// Calls an entry on this thread, which owns the slot. Returns the invalid access if the entry did not return.
///
/// # Safety
///
/// The entry has this signature, and the context is as it says.
pub(crate) unsafe fn call(
    seat: Option<&ThreadSlot>,
    entry: Entry,
    context: *mut HostContext,
    kernel: &str,
) -> Result<(), InvalidAccess> {
    let Some(seat) = seat else {
        // SAFETY: the caller's promise.
        unsafe { entry(context) };
        return Ok(());
    };
    let call = Call { stack: UnsafeCell::new(0), code: UnsafeCell::new(0), kernel: ptr::from_ref(kernel) };
    let outer = seat.leave();
    seat.come_back(Frame((&raw const call).cast_mut(), false));
    // SAFETY: the caller's promise; the call lives until it has returned.
    let left = unsafe { enter(entry, context, &raw const call) };
    seat.come_back(outer);
    if left == 0 { Ok(()) } else { Err(seat.invalid()) }
}

/// Calls an entry after storing in `call` the location at which the handler resumes. Returns 0 if the entry returned, 1
/// if the handler resumed here.
///
/// # Safety
///
/// As [`call`].
#[unsafe(naked)]
unsafe extern "C" fn enter(entry: Entry, context: *mut HostContext, call: *const Call) -> u32 {
    // The registers that a function keeps for its caller lie on the stack, above all that the entry uses.
    naked_asm!(
        "push rbp",
        "push rbx",
        "push r12",
        "push r13",
        "push r14",
        "push r15",
        "sub rsp, 8",
        "mov [rdx], rsp",
        "lea rax, [rip + 2f]",
        "mov [rdx + 8], rax",
        "mov rax, rdi",
        "mov rdi, rsi",
        "call rax",
        "xor eax, eax",
        "jmp 3f",
        "2:",
        "mov eax, 1",
        "3:",
        "add rsp, 8",
        "pop r15",
        "pop r14",
        "pop r13",
        "pop r12",
        "pop rbx",
        "pop rbp",
        "ret",
    )
}

/// Installs the handler, or waits until the thread that is at it has done so: the first launch comes here on several threads
/// at once, and none may run a kernel before it is there. `false` if the system refuses.
#[cold]
fn install() -> bool {
    if INSTALLED.compare_exchange(NOT_YET, UNDER_WAY, Ordering::AcqRel, Ordering::Acquire).is_err() {
        while INSTALLED.load(Ordering::Acquire) == UNDER_WAY {
            thread::yield_now();
        }
        return INSTALLED.load(Ordering::Acquire) == DONE;
    }
    let mut key: pthread_key_t = 0;
    // SAFETY: it writes the key's number.
    if unsafe { pthread_key_create(&raw mut key, None) } != 0 {
        INSTALLED.store(FAILED, Ordering::Release);
        return false;
    }
    KEY.store(key, Ordering::Release);
    let mut installed = true;
    for (signal, place) in SIGNALS.into_iter().zip(&BEFORE) {
        let mut before = Box::new(no_action());
        // SAFETY: queries the installed handler, which is written to the box.
        installed &= unsafe { sigaction(signal, ptr::null(), &raw mut *before) } == 0;
        place.store(Box::into_raw(before), Ordering::Release);
        let mut ours = no_action();
        ours.sa_sigaction = handle as extern "C" fn(c_int, *mut siginfo_t, *mut c_void) as usize;
        ours.sa_flags = SA_SIGINFO | SA_ONSTACK;
        // SAFETY: the handler has the signature for `SA_SIGINFO`, and finds the previous handlers.
        installed = installed && unsafe { sigaction(signal, &raw const ours, ptr::null_mut()) } == 0;
    }
    INSTALLED.store(if installed { DONE } else { FAILED }, Ordering::Release);
    installed
}

fn no_action() -> sigaction {
    // SAFETY: an action of zeros is the system's own, with an empty mask.
    unsafe { mem::zeroed() }
}

/// The handler.
extern "C" fn handle(signal: c_int, info: *mut siginfo_t, context: *mut c_void) {
    // SAFETY: the system passes the signal's information.
    let code = unsafe { (*info).si_code };
    // SAFETY: the key was made before the handler was installed; it gives null for a thread without a seat.
    let seat = unsafe { pthread_getspecific(KEY.load(Ordering::Relaxed)) }.cast::<ThreadSlot>();
    // SAFETY: it is null, or the seat of this thread, which lives as long as it is set.
    if let Some(seat) = unsafe { seat.as_ref() }
        && code > 0
    {
        let call = seat.call.load(Ordering::Relaxed);
        // SAFETY: it is null, or the call that this thread is in.
        if let Some(call) = unsafe { call.as_ref() } {
            // SAFETY: the system passes the state of the thread, which is set again when the handler returns.
            let registers = unsafe { &mut (*context.cast::<ucontext_t>()).uc_mcontext.gregs };
            if !seat.is_outside.load(Ordering::Relaxed) && is_own(registers) {
                // SAFETY: for a fault, the system sets the address.
                let address = unsafe { (*info).si_addr() }.addr();
                note(seat, signal, code, address, registers);
                // SAFETY: `enter` has written it, and nothing writes it concurrently.
                let stack = unsafe { *call.stack.get() };
                // SAFETY: as above.
                let code = unsafe { *call.code.get() };
                registers[REG_RSP as usize] = stack as i64;
                registers[REG_RIP as usize] = code as i64;
                registers[REG_EFL as usize] &= !DIRECTION;
                return;
            }
            // SAFETY: the name lives as long as the kernel's call.
            tell(signal, unsafe { &*call.kernel });
        }
    }
    // SAFETY: the arguments are those of the handler.
    unsafe { call_previous_handler(signal, info, context, code) };
}

/// Whether a kernel's code was running, or a function that it has called and that has no frame, as `memcpy` has none:
/// handlers of signals of others may run on top of a kernel, and are not left.
fn is_own(registers: &[i64; 23]) -> bool {
    let [code, stack] = [REG_RIP, REG_RSP].map(|register| registers[register as usize] as usize);
    if !is_in_library(code) {
        return true;
    }
    // SAFETY: in a function of a library the stack pointer points to the stack.
    let back = unsafe { ptr::with_exposed_provenance::<usize>(stack).read_unaligned() };
    !is_in_library(back)
}

/// Whether an address is in code of a library or of the program: code compiled at run time is in neither.
fn is_in_library(address: usize) -> bool {
    struct LibraryQuery {
        address: usize,
        is_there: bool,
    }
    unsafe extern "C" fn look(info: *mut dl_phdr_info, _size: size_t, asked: *mut c_void) -> c_int {
        // SAFETY: it is the `LibraryQuery` below.
        let asked = unsafe { &mut *asked.cast::<LibraryQuery>() };
        // SAFETY: the system passes a valid description of a library.
        let info = unsafe { &*info };
        for index in 0..info.dlpi_phnum as usize {
            // SAFETY: there are `dlpi_phnum` headers.
            let header = unsafe { &*info.dlpi_phdr.wrapping_add(index) };
            let start = (info.dlpi_addr as usize).wrapping_add(header.p_vaddr as usize);
            if header.p_type == PT_LOAD && asked.address.wrapping_sub(start) < header.p_memsz as usize {
                asked.is_there = true;
                return 1;
            }
        }
        0
    }
    let mut asked = LibraryQuery { address, is_there: false };
    // SAFETY: it calls the function with the pointer.
    let _stopped = unsafe { dl_iterate_phdr(Some(look), (&raw mut asked).cast()) };
    asked.is_there
}

/// Records the access, for [`ThreadSlot::invalid`].
fn note(seat: &ThreadSlot, signal: c_int, code: c_int, address: usize, registers: &[i64; 23]) {
    let error = registers[REG_ERR as usize];
    // The system does not report a non-canonical address, nor whether the access was a write.
    let is_known = signal == SIGBUS || matches!(code, SEGV_MAPERR | SEGV_ACCERR);
    let access = match (is_known, error & WAS_FETCH != 0, error & WAS_WRITE != 0) {
        (false, _, _) => 3,
        (true, true, _) => 2,
        (true, false, true) => 1,
        (true, false, false) => 0,
    };
    let why = match (signal, code) {
        (SIGBUS, _) => 2,
        (_, SEGV_ACCERR) => 1,
        _ => 0,
    };
    let below = (registers[REG_RSP as usize] as usize).wrapping_sub(NEAR);
    let on_stack = is_known && signal == SIGSEGV && address.wrapping_sub(below) <= NEAR;
    let (is_known, on_stack) = (u32::from(is_known) * HAS_ADDRESS, u32::from(on_stack) * ON_STACK);
    let found = access | (why << 8) | is_known | on_stack;
    seat.address.store(address, Ordering::Relaxed);
    seat.found.store(found, Ordering::Relaxed);
}

/// Says on the standard error in which kernel the process ends.
fn tell(signal: c_int, kernel: &str) {
    let name = if signal == SIGBUS { "SIGBUS" } else { "SIGSEGV" };
    let text = [
        "weft: ",
        name,
        " outside the code of the kernel `",
        kernel,
        "`, which has called back: the process cannot continue\n",
    ];
    for part in text {
        // SAFETY: `part` has this many bytes.
        let _written = unsafe { libc::write(libc::STDERR_FILENO, part.as_ptr().cast(), part.len()) };
    }
}

/// Does what was installed before.
///
/// # Safety
///
/// The arguments are those of the handler.
unsafe fn call_previous_handler(signal: c_int, info: *mut siginfo_t, context: *mut c_void, code: c_int) {
    let place = &BEFORE[usize::from(signal != SIGNALS[0])];
    // SAFETY: it is from `Box::into_raw` and never freed, and was stored before the handler was installed.
    let Some(before) = (unsafe { place.load(Ordering::Acquire).as_ref() }) else { return };
    let is_sent = code <= 0;
    match before.sa_sigaction {
        SIG_IGN if is_sent => {}
        SIG_IGN | SIG_DFL => {
            let default = no_action();
            // SAFETY: the system's own action.
            let _set = unsafe { sigaction(signal, &raw const default, ptr::null_mut()) };
            // A fault comes again when the handler has returned, and ends the process there.
            if is_sent {
                // SAFETY: sends this thread the signal, which comes when the handler has returned.
                let _sent = unsafe { raise(signal) };
            }
        }
        function if before.sa_flags & SA_SIGINFO != 0 => {
            // SAFETY: it was installed as such a function.
            let function =
                unsafe { mem::transmute::<usize, unsafe extern "C" fn(c_int, *mut siginfo_t, *mut c_void)>(function) };
            // SAFETY: the arguments are those that the system would pass.
            unsafe { function(signal, info, context) };
        }
        function => {
            // SAFETY: as above.
            let function = unsafe { mem::transmute::<usize, unsafe extern "C" fn(c_int)>(function) };
            // SAFETY: as above.
            unsafe { function(signal) };
        }
    }
}

/// A stack for handlers, where a thread has none yet.
struct AlternateStack {
    start: *mut c_void,
    bytes: usize,
}

impl AlternateStack {
    /// `None` if the thread has one, or the system refuses.
    fn new() -> Option<Self> {
        let known = Self::known()?;
        if known.ss_flags & SS_DISABLE == 0 {
            return None;
        }
        // SAFETY: queries the stack size that the system needs for a signal; 0 if unknown.
        let least = unsafe { getauxval(AT_MINSIGSTKSZ) } as usize;
        let bytes = (STACK_BYTES + least).next_multiple_of(PAGE) + PAGE;
        // SAFETY: maps new memory.
        let start = unsafe { mmap(ptr::null_mut(), bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) };
        if start == MAP_FAILED {
            return None;
        }
        let this = Self { start, bytes };
        // SAFETY: the page is this mapping's, and nothing is on it.
        let _guarded = unsafe { mprotect(start, PAGE, PROT_NONE) };
        let stack = stack_t { ss_sp: start.wrapping_byte_add(PAGE), ss_flags: 0, ss_size: bytes - PAGE };
        // SAFETY: the memory is this thread's until it is taken back.
        (unsafe { sigaltstack(&raw const stack, ptr::null_mut()) } == 0).then_some(this)
    }

    /// This thread's alternate stack.
    fn known() -> Option<stack_t> {
        let mut known = stack_t { ss_sp: ptr::null_mut(), ss_flags: 0, ss_size: 0 };
        // SAFETY: only queries it.
        (unsafe { sigaltstack(ptr::null(), &raw mut known) } == 0).then_some(known)
    }
}

impl Drop for AlternateStack {
    fn drop(&mut self) {
        if Self::known().is_some_and(|known| known.ss_sp == self.start.wrapping_byte_add(PAGE)) {
            let none = stack_t { ss_sp: ptr::null_mut(), ss_flags: SS_DISABLE, ss_size: 0 };
            // SAFETY: this thread, which ends, runs no handler.
            let _taken_back = unsafe { sigaltstack(&raw const none, ptr::null_mut()) };
        }
        // SAFETY: it was mapped with this size, and no handler has it any more.
        let _unmapped = unsafe { munmap(self.start, self.bytes) };
    }
}
