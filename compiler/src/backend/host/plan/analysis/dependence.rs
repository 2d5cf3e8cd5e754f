//! Dependence test for the annotation of a thread loop's accesses as independent (`llvm.access.group`).
//!
//! Accesses of different threads are independent: anything else is a race. LLVM also applies the annotation to the
//! accesses of one thread. Where it combines several accesses with a constant stride into one wide access (elements of
//! a row, parts of complex numbers), it moves the loads up to the first and the stores down to the last of them, past
//! other accesses. So the annotation is legal only if no thread accesses memory that it has written before, or if there
//! is at most one access that LLVM could combine. Stores to provably different elements
//! ([`address_difference`](super::address_difference)) do not count.

use std::iter::repeat;

use crate::{
    analysis::Rematerializable,
    backend::host::plan::analysis::address_difference::{Address, Addresses},
    ir::{
        Base, Class, Effects, ExprId, ExprKind, Function, Leaf, LocalArrayId, LocalId, SharedId, Space, Stmt, StmtKind,
        Touches, Type, for_each_expr_of_stmt,
    },
    source::Span,
};

/// The count of an access in a loop, which LLVM may unroll.
const LOOP_COUNT: u32 = 4;

/// The memory of an access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Root {
    Local(LocalArrayId),
    Shared(SharedId),
    /// The memory that a pointer variable points to: that of a kernel's argument, if the variable is a parameter.
    Pointer(LocalId),
    Unknown,
}

/// The accesses to one memory before the current position.
#[derive(Debug)]
struct Accesses {
    root: Root,
    space: Space,
    loads: u32,
    stores: u32,
    /// A store may precede the current position.
    written: bool,
    /// The addresses of the stores, if they are pairwise different.
    addresses: Option<Vec<Address>>,
}

impl Accesses {
    fn may_be(&self, other: &Self, read_only: &[LocalId]) -> bool {
        self.root.may_be(self.space, other.root, other.space, read_only)
    }
}

impl Root {
    /// Whether two memories may alias. Two arguments may, unless one of them is only read. Two shared or local arrays
    /// do not.
    pub(crate) fn may_be(self, space: Space, other: Self, other_space: Space, read_only: &[LocalId]) -> bool {
        let is_read_only = |root: Self| matches!(root, Self::Pointer(param) if read_only.contains(&param));
        if is_read_only(self) || is_read_only(other) {
            // A dependence needs a write to one of them.
            return false;
        }
        match (self, other) {
            (Self::Local(a), Self::Local(b)) => a == b,
            (Self::Shared(a), Self::Shared(b)) => a == b,
            (Self::Local(_), Self::Shared(_)) | (Self::Shared(_), Self::Local(_)) => false,
            (Self::Local(_) | Self::Shared(_) | Self::Pointer(_) | Self::Unknown, _) => {
                space == other_space || space == Space::Generic || other_space == Space::Generic
            }
        }
    }
}

/// Checks that the annotation preserves the order of dependent accesses of a thread in a segment. No thread writes the
/// memory of the parameters `read_only`. LLVM combines no accesses of `lane_arrays`: elements of a lane are at a distance of
/// at least a strip's width.
///
/// # Errors
///
/// The later access of a possible dependence that the annotation does not preserve.
pub(crate) fn check(
    function: &Function,
    fixed: &Rematerializable,
    functions: &[Effects],
    (read_only, lane_arrays): (&[LocalId], &[LocalArrayId]),
    body: &[Stmt],
) -> Result<(), Span> {
    let addresses = Addresses::of(function, fixed, body);
    let mut order = Order {
        function,
        fixed,
        functions,
        read_only,
        lane_arrays,
        addresses,
        memories: Vec::new(),
        again: Vec::new(),
    };
    order.block(body, 1);
    let is_kept = |again: &Again| {
        let (written, other) = (&order.memories[again.written], &order.memories[again.memory]);
        match (again.is_store, written.root == other.root && written.space == other.space) {
            (false, _) => other.loads < 2 && written.stores < 2,
            (true, true) => written.stores < 3 || written.addresses.is_some(),
            (true, false) => written.stores < 2 && other.stores < 2,
        }
    };
    order.again.iter().find(|again| !is_kept(again)).map_or(Ok(()), |again| Err(again.span))
}

/// A possible dependence.
struct Again {
    /// The index of the memory that is written first.
    written: usize,
    /// The index of the memory that the later access is to.
    memory: usize,
    /// The later access is a store.
    is_store: bool,
    /// The later access.
    span: Span,
}

struct Order<'a> {
    function: &'a Function,
    fixed: &'a Rematerializable,
    functions: &'a [Effects],
    read_only: &'a [LocalId],
    lane_arrays: &'a [LocalArrayId],
    addresses: Addresses<'a>,
    memories: Vec<Accesses>,
    /// Possible dependences, without duplicates.
    again: Vec<Again>,
}

impl Order<'_> {
    /// Adds the accesses of a block, each counted `times` times.
    fn block(&mut self, block: &[Stmt], times: u32) {
        for stmt in block {
            let mut loads = Vec::new();
            for_each_expr_of_stmt(self.function, &stmt.kind, &mut |id| {
                if let ExprKind::Load(pointer, _) = self.function.exprs[id].kind {
                    loads.push((pointer, self.function.exprs[id].span));
                }
            });
            for (pointer, span) in loads {
                self.access((pointer, span), false, times);
            }
            match &stmt.kind {
                StmtKind::Store { pointer, .. } => self.access((*pointer, stmt.span), true, times),
                StmtKind::If { then, otherwise, .. } => {
                    // A thread executes only one of the two arms.
                    let before = self.written();
                    self.block(then, times);
                    let after = self.written();
                    for (memory, written) in self.memories.iter_mut().zip(before.into_iter().chain(repeat(false))) {
                        memory.written = written;
                    }
                    self.block(otherwise, times);
                    for (memory, written) in self.memories.iter_mut().zip(after) {
                        memory.written |= written;
                    }
                }
                StmtKind::Loop { body, step } => {
                    // The second pass has the dependences that are carried by the loop.
                    for part in [body, step, body, step] {
                        self.block(part, LOOP_COUNT);
                    }
                }
                StmtKind::Op { op, .. } => {
                    self.anywhere(op.row().memory.reads(), op.row().memory.writes(), stmt.span);
                }
                StmtKind::Call { func, .. } => {
                    let touches = Effects::of_function(self.functions, *func).touches;
                    self.anywhere(touches >= Touches::Reads, touches >= Touches::Writes, stmt.span);
                }
                StmtKind::Assign(..) | StmtKind::Break | StmtKind::Continue | StmtKind::Return(_) => {}
            }
        }
    }

    fn access(&mut self, (pointer, span): (ExprId, Span), store: bool, times: u32) {
        let space = match self.function.exprs[pointer].ty {
            Type::Ptr(_, space) => space,
            Type::Scalar(_) => Space::Generic,
        };
        let root = root(self.function, self.fixed, pointer);
        if matches!(root, Root::Local(array) if self.lane_arrays.contains(&array)) {
            return;
        }
        let address = if store && times == 1 { self.addresses.address(pointer) } else { None };
        self.touch((root, space), (store, span), times, address);
    }

    /// Adds an address to those of stores; `None` if it may equal one of them.
    fn disjoint(&self, addresses: Option<Vec<Address>>, address: Option<Address>) -> Option<Vec<Address>> {
        let (mut addresses, address) = (addresses?, address?);
        addresses.iter().all(|known| self.addresses.are_disjoint(known, &address)).then(|| {
            addresses.push(address);
            addresses
        })
    }

    /// Adds unanalyzed accesses: to any memory, any number of times.
    fn anywhere(&mut self, reads: bool, writes: bool, span: Span) {
        for (done, store) in [(reads, false), (writes, true)] {
            if done {
                self.touch((Root::Unknown, Space::Generic), (store, span), LOOP_COUNT, None);
            }
        }
    }

    fn touch(
        &mut self,
        (root, space): (Root, Space),
        (store, span): (bool, Span),
        times: u32,
        address: Option<Address>,
    ) {
        let known = self.memories.iter().position(|memory| memory.root == root && memory.space == space);
        let memory = known.unwrap_or_else(|| {
            self.memories.push(Accesses {
                root,
                space,
                loads: 0,
                stores: 0,
                written: false,
                addresses: Some(Vec::new()),
            });
            self.memories.len() - 1
        });
        for written in 0..self.memories.len() {
            let is_known = |again: &Again| (again.written, again.memory, again.is_store) == (written, memory, store);
            if self.memories[written].written
                && self.memories[written].may_be(&self.memories[memory], self.read_only)
                && !self.again.iter().any(is_known)
            {
                self.again.push(Again { written, memory, is_store: store, span });
            }
        }
        if store {
            let addresses = self.memories[memory].addresses.take();
            self.memories[memory].addresses = self.disjoint(addresses, address);
        }
        let memory = &mut self.memories[memory];
        memory.written |= store;
        let count = if store { &mut memory.stores } else { &mut memory.loads };
        *count = count.saturating_add(times);
    }

    /// By memory: whether a store may precede the current position.
    fn written(&self) -> Vec<bool> {
        self.memories.iter().map(|memory| memory.written).collect()
    }
}

/// The memory that a pointer points to.
pub(crate) fn root(function: &Function, fixed: &Rematerializable, pointer: ExprId) -> Root {
    match function.class(pointer) {
        Class::Address { base, .. } => root(function, fixed, base),
        Class::Leaf(Leaf::Base(Base::Local(array))) => Root::Local(array),
        Class::Leaf(Leaf::Base(Base::Shared(array))) => Root::Shared(array),
        // No thread writes a constant array. The others are unknown.
        Class::Leaf(Leaf::Base(Base::Const(_) | Base::Dynamic) | Leaf::Const(_) | Leaf::Special(_))
        | Class::Arith(_)
        | Class::Load(_) => Root::Unknown,
        Class::Leaf(Leaf::Local(local)) => match fixed.value(local) {
            Some(value) => root(function, fixed, value),
            None if function.params.contains(&local) => Root::Pointer(local),
            None => Root::Unknown,
        },
    }
}
