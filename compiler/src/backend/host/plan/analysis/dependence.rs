//! Whether the threads of a segment may be promised to LLVM to run side by side, for the order of what one of them does.
//!
//! LLVM takes the promise for one about the accesses of a single thread, too. Where it makes one wide access of several
//! at a constant stride (elements of a row, parts of complex numbers), loads move up to the first of them and stores
//! down to the last, past any access between them that is at no stride. So nothing is promised where a thread may come
//! back to a place that it has written, and there is more than one access to put together.

use std::iter::repeat;

use crate::{
    analysis::Rematerializable,
    backend::host::plan::analysis::address_difference::{Place, Places},
    ir::{
        Base, Class, Effects, ExprId, ExprKind, Function, Leaf, LocalArrayId, LocalId, SharedId, Space, Stmt, StmtKind,
        Touches, Type, for_each_expr_of_stmt,
    },
};

/// Times that what stands in a loop is done: it may be unrolled.
const MANY: u32 = 4;

/// Whose memory an access is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Root {
    Local(LocalArrayId),
    Shared(SharedId),
    /// That a pointer variable points to: a kernel's argument, if it has no other value.
    Pointer(LocalId),
    Unknown,
}

/// The accesses to one memory so far.
#[derive(Debug)]
struct Accesses {
    root: Root,
    space: Space,
    loads: u32,
    stores: u32,
    /// There is a store that may stand before what is looked at now.
    written: bool,
    /// Where the stores go, while each of them goes to an element of its own.
    places: Option<Vec<Place>>,
}

impl Accesses {
    fn may_be(&self, other: &Self, read_only: &[LocalId]) -> bool {
        self.root.may_be(self.space, other.root, other.space, read_only)
    }
}

impl Root {
    /// Two arguments may overlap, if one of them is not for reading only; two arrays of the block or of the thread do not.
    pub(crate) fn may_be(self, space: Space, other: Self, other_space: Space, read_only: &[LocalId]) -> bool {
        let is_read_only = |root: Self| matches!(root, Self::Pointer(param) if read_only.contains(&param));
        if is_read_only(self) || is_read_only(other) {
            // One of the two is written.
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

/// `false` if LLVM may change the order of what a thread does in a segment. Nobody writes what the parameters `read_only` point to.
pub(crate) fn is_kept(
    function: &Function,
    fixed: &Rematerializable,
    functions: &[Effects],
    read_only: &[LocalId],
    body: &[Stmt],
) -> bool {
    let places = Places::of(function, fixed, body);
    let mut order = Order { function, fixed, functions, read_only, places, memories: Vec::new(), again: Vec::new() };
    order.block(body, 1);
    order.again.iter().all(|&(written, memory, stored)| {
        let (written, other) = (&order.memories[written], &order.memories[memory]);
        match (stored, written.root == other.root && written.space == other.space) {
            (false, _) => other.loads < 2 && written.stores < 2,
            (true, true) => written.stores < 3 || written.places.is_some(),
            (true, false) => written.stores < 2 && other.stores < 2,
        }
    })
}

struct Order<'a> {
    function: &'a Function,
    fixed: &'a Rematerializable,
    functions: &'a [Effects],
    read_only: &'a [LocalId],
    places: Places<'a>,
    memories: Vec<Accesses>,
    /// What was written, what may be the same and was touched after it, and whether that was a store.
    again: Vec<(usize, usize, bool)>,
}

impl Order<'_> {
    /// The accesses of a block, each `times` times.
    fn block(&mut self, block: &[Stmt], times: u32) {
        for stmt in block {
            let mut loads = Vec::new();
            for_each_expr_of_stmt(self.function, &stmt.kind, &mut |id| {
                if let ExprKind::Load(pointer, _) = self.function.exprs[id].kind {
                    loads.push(pointer);
                }
            });
            for pointer in loads {
                self.access(pointer, false, times);
            }
            match &stmt.kind {
                StmtKind::Store { pointer, .. } => self.access(*pointer, true, times),
                StmtKind::If { then, otherwise, .. } => {
                    // A thread takes one of the two.
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
                    // What comes later in a turn comes before the next one; its accesses are many once it is unrolled.
                    for part in [body, step, body, step] {
                        self.block(part, MANY);
                    }
                }
                StmtKind::Op { op, .. } => self.anywhere(op.row().memory.reads(), op.row().memory.writes()),
                StmtKind::Call { func, .. } => {
                    let touches = Effects::of_function(self.functions, *func).touches;
                    self.anywhere(touches >= Touches::Reads, touches >= Touches::Writes);
                }
                StmtKind::Assign(..) | StmtKind::Break | StmtKind::Continue | StmtKind::Return(_) => {}
            }
        }
    }

    fn access(&mut self, pointer: ExprId, store: bool, times: u32) {
        let space = match self.function.exprs[pointer].ty {
            Type::Ptr(_, space) => space,
            Type::Scalar(_) => Space::Generic,
        };
        let place = if store && times == 1 { self.places.place(pointer) } else { None };
        self.touch(root(self.function, self.fixed, pointer), space, store, times, place);
    }

    /// Adds a place to those of stores, if it is none of them.
    fn apart(&self, places: Option<Vec<Place>>, place: Option<Place>) -> Option<Vec<Place>> {
        let (mut places, place) = (places?, place?);
        places.iter().all(|known| self.places.are_apart(known, &place)).then(|| {
            places.push(place);
            places
        })
    }

    /// What is not followed: it may be any memory, and more than once.
    fn anywhere(&mut self, reads: bool, writes: bool) {
        for (done, store) in [(reads, false), (writes, true)] {
            if done {
                self.touch(Root::Unknown, Space::Generic, store, MANY, None);
            }
        }
    }

    fn touch(&mut self, root: Root, space: Space, store: bool, times: u32, place: Option<Place>) {
        let known = self.memories.iter().position(|memory| memory.root == root && memory.space == space);
        let memory = known.unwrap_or_else(|| {
            self.memories.push(Accesses { root, space, loads: 0, stores: 0, written: false, places: Some(Vec::new()) });
            self.memories.len() - 1
        });
        for written in 0..self.memories.len() {
            let seen = (written, memory, store);
            if self.memories[written].written
                && self.memories[written].may_be(&self.memories[memory], self.read_only)
                && !self.again.contains(&seen)
            {
                self.again.push(seen);
            }
        }
        if store {
            let places = self.memories[memory].places.take();
            self.memories[memory].places = self.apart(places, place);
        }
        let memory = &mut self.memories[memory];
        memory.written |= store;
        let count = if store { &mut memory.stores } else { &mut memory.loads };
        *count = count.saturating_add(times);
    }

    /// Which memories are written before what is looked at now.
    fn written(&self) -> Vec<bool> {
        self.memories.iter().map(|memory| memory.written).collect()
    }
}

/// Whose memory a pointer points to.
pub(crate) fn root(function: &Function, fixed: &Rematerializable, pointer: ExprId) -> Root {
    match function.class(pointer) {
        Class::Address { base, .. } => root(function, fixed, base),
        Class::Leaf(Leaf::Base(Base::Local(array))) => Root::Local(array),
        Class::Leaf(Leaf::Base(Base::Shared(array))) => Root::Shared(array),
        // Nobody writes a constant array, and nothing is known of the others.
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
