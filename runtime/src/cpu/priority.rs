//! The priority of threads whose results no caller waits for.
#![expect(unsafe_code, reason = "sets a thread's priority")]

/// Lowers the priority of the calling thread, and of the threads that it starts, below that of the program's threads. If
/// the system refuses, the priority is unchanged. Linux only: elsewhere the call would concern the whole process.
pub fn lower_thread_priority() {
    #[cfg(target_os = "linux")]
    {
        /// Added to the nice value: the thread gets about a tenth of a busy core (setpriority(2)).
        const NICE: libc::c_int = 10;
        // SAFETY: the call takes numbers only; 0 is the calling thread.
        unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, NICE) };
    }
}
