//! Which locals have one value for all threads of a block, and which jumps all of them take together.
//!
//! A value is uniform if it is the same for every thread that is still running where it is read. Loads are taken to
//! vary, but for one that is assigned to a local, of what nobody writes while the kernel runs. A local that is assigned where not all threads are, or in a loop that threads leave in different turns,
//! varies. Everything starts out uniform; the walk is repeated until it finds nothing more that varies.

use std::{collections::HashSet, ptr};

use crate::{
    backend::host::plan::regions::guarded::Regions,
    ir::{Class, ExprId, Function, Leaf, LocalId, Stmt, StmtKind, for_each_expr, for_each_stmt},
};

/// The result, for one body: statements are known by their address.
#[derive(Clone, Debug)]
pub(crate) struct Uniformity {
    /// By the local's index: it may differ between threads.
    pub varying: Vec<bool>,
    /// Loops that some threads leave by `Break` while others stay.
    split_loops: HashSet<*const Stmt>,
    /// Loops of which some threads skip the rest of a turn while others do not.
    split_turns: HashSet<*const Stmt>,
    /// `Break`, `Continue` and `Return` that not all threads take which could.
    split_jumps: HashSet<*const Stmt>,
}

impl Uniformity {
    /// Analyses a body. Locals in `pinned` are taken to vary.
    pub(crate) fn of(function: &Function, body: &[Stmt], regions: &Regions, pinned: &[LocalId]) -> Self {
        let mut this = Self {
            varying: vec![false; function.locals.len()],
            split_loops: HashSet::new(),
            split_turns: HashSet::new(),
            split_jumps: HashSet::new(),
        };
        for local in pinned {
            this.varying[local.index()] = true;
        }
        loop {
            let before = this.size();
            let mut walk = Walk { function, regions, result: &mut this, loops: Vec::new() };
            walk.block(body, Context::default());
            if this.size() == before {
                return this;
            }
        }
    }

    fn size(&self) -> (usize, usize, usize, usize) {
        let varying = self.varying.iter().filter(|&&varying| varying).count();
        (varying, self.split_loops.len(), self.split_turns.len(), self.split_jumps.len())
    }

    /// `true` if an expression may differ between threads.
    pub(crate) fn varies(&self, function: &Function, root: ExprId) -> bool {
        self.differs(function, root, false)
    }

    /// `true` if an expression may differ between threads, of which loads may have been made once for all.
    fn differs(&self, function: &Function, root: ExprId, may_load: bool) -> bool {
        let mut varies = false;
        for_each_expr(function, root, &mut |id| {
            varies |= match function.class(id) {
                Class::Leaf(Leaf::Local(local)) => self.local_varies(local),
                Class::Leaf(Leaf::Special(register)) => !register.is_of_block(),
                Class::Leaf(Leaf::Base(base)) => !base.is_of_block(),
                Class::Load(pointer) => !may_load || !is_never_written(function, pointer),
                Class::Leaf(Leaf::Const(_)) | Class::Arith(_) | Class::Address { .. } => false,
            };
        });
        varies
    }

    /// `true` if a local may differ between threads; one made after the analysis does.
    pub(crate) fn local_varies(&self, local: LocalId) -> bool {
        self.varying.get(local.index()).copied().unwrap_or(true)
    }

    /// `true` if some threads may leave the loop by `Break` while others stay.
    pub(crate) fn splits_loop(&self, stmt: &Stmt) -> bool {
        self.split_loops.contains(&ptr::from_ref(stmt))
    }

    /// `true` if some threads may skip the rest of a turn while others do not.
    pub(crate) fn splits_turn(&self, stmt: &Stmt) -> bool {
        self.split_turns.contains(&ptr::from_ref(stmt))
    }

    /// `true` if a jump may be taken by some threads and not by others.
    pub(crate) fn splits_jump(&self, stmt: &Stmt) -> bool {
        self.split_jumps.contains(&ptr::from_ref(stmt))
    }
}

/// Whether nobody writes what a pointer points to while the kernel runs.
fn is_never_written(function: &Function, mut pointer: ExprId) -> bool {
    while let Class::Address { base, .. } = function.class(pointer) {
        pointer = base;
    }
    function.local(pointer).is_some_and(|local| function.locals[local].never_written)
}

/// Where the walk stands.
#[derive(Clone, Copy, Default)]
struct Context {
    /// Not all running threads of the block need be here.
    split: bool,
    /// Not all running threads that are in the innermost loop need be here.
    split_in_loop: bool,
    /// In a guarded part: the threads outside of it do not return with those inside.
    guarded: bool,
}

struct Walk<'a> {
    function: &'a Function,
    regions: &'a Regions,
    result: &'a mut Uniformity,
    loops: Vec<*const Stmt>,
}

impl Walk<'_> {
    /// Walks a list; `true` if some threads may have skipped the rest of the innermost loop's turn.
    fn block(&mut self, block: &[Stmt], mut context: Context) -> bool {
        let mut skips = false;
        for stmt in block {
            match &stmt.kind {
                StmtKind::Assign(local, value) => {
                    if context.split || self.result.differs(self.function, *value, true) {
                        self.result.varying[local.index()] = true;
                    }
                }
                StmtKind::Op { .. } | StmtKind::Call { .. } => {
                    for local in stmt.kind.assigned() {
                        self.result.varying[local.index()] = true;
                    }
                }
                StmtKind::If { then, .. } if self.regions.inside(stmt).is_some() => {
                    // All threads of the guard are here; the others see nothing of what is assigned here.
                    for_each_stmt(then, &mut |inner| {
                        for local in inner.kind.assigned() {
                            if self.regions.escapes(local) {
                                self.result.varying[local.index()] = true;
                            }
                        }
                    });
                    let inner = Context { split_in_loop: true, guarded: true, ..context };
                    if self.block(then, inner) {
                        skips = true;
                        context = Context { split: true, split_in_loop: true, ..context };
                    }
                }
                StmtKind::If { cond, then, otherwise } => {
                    let varies = self.result.varies(self.function, *cond);
                    let inner = Context {
                        split: context.split || varies,
                        split_in_loop: context.split_in_loop || varies,
                        ..context
                    };
                    let skipped = self.block(then, inner) | self.block(otherwise, inner);
                    if skipped {
                        skips = true;
                        context = Context { split: true, split_in_loop: true, ..context };
                    }
                }
                StmtKind::Loop { body, step } => self.turns(stmt, body, step, context),
                StmtKind::Break => {
                    if context.split_in_loop {
                        self.result.split_jumps.insert(ptr::from_ref(stmt));
                        self.result.split_loops.extend(self.loops.last());
                    }
                }
                StmtKind::Continue => {
                    if context.split_in_loop {
                        self.result.split_jumps.insert(ptr::from_ref(stmt));
                        self.result.split_turns.extend(self.loops.last());
                        skips = true;
                    }
                }
                StmtKind::Return(_) => {
                    if context.split || context.guarded {
                        self.result.split_jumps.insert(ptr::from_ref(stmt));
                    }
                }
                StmtKind::Store { .. } => {}
            }
        }
        skips
    }

    fn turns(&mut self, stmt: &Stmt, body: &[Stmt], step: &[Stmt], context: Context) {
        let key = ptr::from_ref(stmt);
        let left_apart = self.result.split_loops.contains(&key);
        let inner = Context { split: context.split || left_apart, split_in_loop: false, ..context };
        self.loops.push(key);
        self.block(body, inner);
        self.block(step, inner);
        self.loops.pop();
        if self.result.split_loops.contains(&key) {
            // Threads that left in different turns see values of different turns.
            for part in [body, step] {
                for_each_stmt(part, &mut |inner| {
                    for local in inner.kind.assigned() {
                        self.result.varying[local.index()] = true;
                    }
                });
            }
        }
    }
}
