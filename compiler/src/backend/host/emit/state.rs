//! The state of the emitter for one function of the host: where its thread is, and what its operations need.

use std::cell::{Cell, RefCell};

use inkwell::{
    basic_block::BasicBlock,
    values::{IntValue, PointerValue},
};

use crate::{
    analysis::Rematerializable,
    backend::{
        host::{
            checked::{calls::Instrumentation, seen::Seen},
            emit::{frame::Offsets, position::Frame, watch::Watch},
            plan::Polling,
        },
        llvm::{FunctionEmitter, Result},
    },
    ir::FuncId,
};

/// The hooks of one function of the host.
pub(crate) struct HostHooks<'a, 'ctx> {
    /// The layout of scratch memory.
    pub offsets: &'a Offsets,
    /// The current thread.
    pub frame: Cell<Frame<'ctx>>,
    /// Values of [`SpecialRegister::OfRow`](crate::ir::SpecialRegister): the index, quotients and remainders of the
    /// first thread in a part of a row. Where a warp is a block: the warp's coordinates in its block, and the number of
    /// warps in a row.
    pub of_row: RefCell<Vec<IntValue<'ctx>>>,
    /// Addresses of the cell arrays on the stack, by the shared array's index, where a warp is a block.
    pub cells: RefCell<Vec<Option<PointerValue<'ctx>>>>,
    /// Addresses of the current thread's local arrays, by index.
    pub arrays: RefCell<Vec<Option<PointerValue<'ctx>>>>,
    /// By index: the distance between the elements of a local array, in elements; the width of the strip for an array of
    /// lanes.
    pub array_strides: RefCell<Vec<u64>>,
    /// Target of a kernel's `return`. A device function returns to its caller.
    pub return_to: Cell<Option<BasicBlock<'ctx>>>,
    /// Records accesses for the sanitizer, in sanitized code.
    pub instrumentation: Option<Instrumentation<'a>>,
    /// The sanitizer's state that accesses are compared with, in sanitized code.
    pub seen: Cell<Option<Seen<'ctx>>>,
    /// Each thread has a stack of its own: it runs on a fiber.
    pub stacks: bool,
    /// The loops and calls at which threads poll.
    pub polling: &'a Polling,
    /// The function's rematerializable locals.
    pub fixed: &'a Rematerializable,
    /// The cancellation flag that thread loops poll.
    pub watch: Cell<Option<Watch<'ctx>>>,
    /// Target of a poll that finds the launch cancelled.
    pub stop_to: Cell<Option<BasicBlock<'ctx>>>,
    /// Number of the next `activemask` site.
    pub next_site: Cell<u32>,
}

impl<'a, 'ctx> HostHooks<'a, 'ctx> {
    /// Hooks with an initial frame.
    pub(crate) fn new(
        offsets: &'a Offsets,
        frame: Frame<'ctx>,
        (polling, fixed): (&'a Polling, &'a Rematerializable),
    ) -> Self {
        Self {
            offsets,
            frame: Cell::new(frame),
            of_row: RefCell::default(),
            cells: RefCell::default(),
            arrays: RefCell::default(),
            array_strides: RefCell::default(),
            return_to: Cell::new(None),
            instrumentation: None,
            seen: Cell::new(None),
            stacks: false,
            polling,
            fixed,
            watch: Cell::new(None),
            stop_to: Cell::new(None),
            next_site: Cell::new(0),
        }
    }

    /// Reloads the state that accesses are compared with, in sanitized code. The preceding operation may have changed
    /// it.
    pub(crate) fn reload(&self, emitter: &FunctionEmitter<'_, 'ctx>) -> Result<()> {
        self.seen.get().map_or(Ok(()), |seen| seen.reload(emitter))
    }

    /// Number of a function's first `activemask` site. Numbers are unique in a module.
    pub(crate) fn first_site(function: FuncId) -> u32 {
        (function.index() as u32) << 16
    }

    /// Returns a new site number.
    pub(crate) fn site(&self) -> u32 {
        let site = self.next_site.get();
        self.next_site.set(site + 1);
        site
    }
}
