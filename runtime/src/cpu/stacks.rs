//! Stacks for the threads of a block: one piece of memory, a guard page below each stack.
//!
//! Memory is taken from the system as it is used, so that a stack costs a page or two. Where the system can guard a page
//! without dividing the mapping (Linux 6.13), hundreds of thousands fit; elsewhere the number of mappings bounds them.
#![expect(unsafe_code, reason = "maps memory")]

#[cfg(target_os = "linux")]
pub(super) use linux::{BlockStack, Stacks};
#[cfg(not(target_os = "linux"))]
pub(super) use other::{BlockStack, Stacks};

#[cfg(target_os = "linux")]
mod linux {
    use std::{num::NonZeroUsize, ptr};

    use corosensei::stack::{Stack, StackPointer};

    unsafe extern "C" {
        fn mmap(at: *mut u8, bytes: usize, protection: i32, flags: i32, file: i32, offset: i64) -> *mut u8;
        fn munmap(start: *mut u8, bytes: usize) -> i32;
        fn madvise(start: *mut u8, bytes: usize, advice: i32) -> i32;
        fn mprotect(start: *mut u8, bytes: usize, protection: i32) -> i32;
    }
    const PROT_NONE: i32 = 0;
    const PROT_READ_WRITE: i32 = 3;
    /// Flags for private, anonymous memory without reserved swap space.
    const FLAGS: i32 = 0x2 | 0x20 | 0x4000;
    const MADV_NOHUGEPAGE: i32 = 15;
    const MADV_GUARD_INSTALL: i32 = 102;
    /// The largest page size of the supported systems: a guard and a stack are multiples of it.
    const PAGE: usize = if cfg!(target_arch = "x86_64") { 4 << 10 } else { 64 << 10 };

    /// The offset between the starts of consecutive stacks within a page: without it the hot parts of all stacks would
    /// map to few cache sets.
    const SHIFT: usize = 256;
    /// The range of these offsets.
    const SHIFTS: usize = 4096;

    /// The memory of the stacks of a block's threads. Freed when dropped: no fiber is on one of them then.
    pub(crate) struct Stacks {
        start: *mut u8,
        /// Of a stack with its guard page.
        stride: usize,
        count: usize,
    }

    /// One of them. It does not own its memory.
    pub(crate) struct BlockStack {
        base: NonZeroUsize,
        limit: NonZeroUsize,
    }

    // SAFETY: the memory between the two is a stack with a guard page at its low end, which is mapped as long as the
    // `Stacks` that it came from, whose owner holds them longer than the fibers.
    unsafe impl Stack for BlockStack {
        fn base(&self) -> StackPointer {
            self.base
        }

        fn limit(&self) -> StackPointer {
            self.limit
        }
    }

    impl Stacks {
        /// The memory and all the stacks in it; `None` if there is not the memory, or if the system has no more mappings.
        pub(crate) fn new(n_stacks: usize, bytes: usize) -> Option<(Self, Vec<BlockStack>)> {
            let stride = bytes.checked_add(SHIFTS)?.checked_next_multiple_of(PAGE)?.checked_add(PAGE)?;
            let all = stride.checked_mul(n_stacks)?;
            // SAFETY: maps new memory.
            let start = unsafe { mmap(ptr::null_mut(), all, PROT_READ_WRITE, FLAGS, -1, 0) };
            if start.is_null() || start.addr() == usize::MAX {
                return None;
            }
            let this = Self { start, stride, count: n_stacks };
            // A huge page would commit many stacks at once.
            // SAFETY: the memory was just mapped.
            let _refused = unsafe { madvise(start, all, MADV_NOHUGEPAGE) };
            let stacks = (0..n_stacks).map(|index| this.stack(index)).collect::<Option<_>>()?;
            Some((this, stacks))
        }

        /// A stack above its guard page; it is used by one fiber at a time.
        fn stack(&self, index: usize) -> Option<BlockStack> {
            let limit = NonZeroUsize::new(self.lowest(index).expose_provenance()).filter(|_| self.guard(index))?;
            let base = limit.checked_add(self.stride - index * SHIFT % SHIFTS)?;
            Some(BlockStack { base, limit })
        }

        fn lowest(&self, index: usize) -> *mut u8 {
            self.start.wrapping_byte_add(self.stride * index)
        }

        fn guard(&self, index: usize) -> bool {
            let page = self.lowest(index);
            // SAFETY: the page is this mapping's, and nothing is on it.
            let guarded = unsafe { madvise(page, PAGE, MADV_GUARD_INSTALL) } == 0;
            // SAFETY: as above.
            guarded || unsafe { mprotect(page, PAGE, PROT_NONE) } == 0
        }
    }

    impl Drop for Stacks {
        fn drop(&mut self) {
            // SAFETY: it was mapped with this size, and is unmapped once.
            let _unmapped = unsafe { munmap(self.start, self.stride * self.count) };
        }
    }
}

#[cfg(not(target_os = "linux"))]
mod other {
    use corosensei::stack::DefaultStack;

    pub(crate) type BlockStack = DefaultStack;

    /// Each stack has its own memory.
    pub(crate) struct Stacks;

    impl Stacks {
        /// All the stacks; `None` if there is not the memory.
        pub(crate) fn new(n_stacks: usize, bytes: usize) -> Option<(Self, Vec<BlockStack>)> {
            let stacks = (0..n_stacks).map(|_| DefaultStack::new(bytes).ok()).collect::<Option<_>>()?;
            Some((Self, stacks))
        }
    }
}

#[cfg(test)]
mod tests {
    use corosensei::{Coroutine, CoroutineResult, stack::Stack};

    use super::*;

    #[test]
    fn stacks_lie_apart() {
        let bytes = 100_000;
        let (_memory, all) = Stacks::new(50, bytes).expect("there is the memory");
        assert_eq!(all.len(), 50);
        let mut ends: Vec<(usize, usize)> = all.iter().map(|s| (s.limit().get(), s.base().get())).collect();
        ends.sort_unstable();
        assert!(ends.iter().all(|(low, high)| high - low >= bytes));
        assert!(ends.windows(2).all(|pair| pair[0].1 <= pair[1].0));
    }

    #[test]
    fn a_stack_can_be_used_again() {
        let (_memory, mut stacks) = Stacks::new(1, 64 << 10).expect("there is the memory");
        for turn in 0..3 {
            let stack = stacks.pop().expect("there is one");
            let mut fiber = Coroutine::with_stack(stack, move |yielder, ()| {
                let all = std::hint::black_box([turn; 4000]);
                yielder.suspend(all[3999]);
            });
            assert!(matches!(fiber.resume(()), CoroutineResult::Yield(value) if value == turn));
            assert!(matches!(fiber.resume(()), CoroutineResult::Return(())));
            stacks.push(fiber.into_stack());
        }
    }
}
