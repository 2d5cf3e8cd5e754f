//! Divergence analysis: which locals are uniform over a block, and which jumps are divergent.
//!
//! A value is uniform if it is the same for all threads that are active where it is read. These vary:
//!
//! - `threadIdx`, the lane, and addresses of thread-local memory;
//! - loads, except those that are assigned to a local and read memory that no thread writes while the kernel runs,
//!   or shared memory that no thread writes between two barriers ([`broadcasts`](crate::backend::host::plan::normalize::broadcasts));
//! - results of operations and calls;
//! - locals that are assigned under divergent control flow;
//! - locals that are assigned in a loop with divergent exits (temporal divergence);
//! - locals that are assigned in a guarded region ([`Regions`]) and mentioned outside of it.
//!
//! All locals start as uniform. The analysis repeats until no more locals vary.

use std::{collections::HashSet, ptr};

use crate::{
    backend::host::plan::analysis::guarded::Regions,
    ir::{Class, ExprId, Function, Leaf, LocalId, Stmt, StmtKind, for_each_expr, for_each_stmt},
};

/// The result for one body. Statements are identified by their address.
#[derive(Clone, Debug, Default)]
pub(crate) struct Uniformity {
    /// By the local's index: it may vary.
    pub varying: Vec<bool>,
    /// Loops with a divergent `Break`.
    split_loops: HashSet<*const Stmt>,
    /// Loops with a divergent `Continue`.
    split_turns: HashSet<*const Stmt>,
    /// Divergent jumps: a `Break`, `Continue` or `Return` that only some of the threads that could take it may take.
    split_jumps: HashSet<*const Stmt>,
}

impl Uniformity {
    /// Analyzes a body. Locals in `pinned` vary.
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

    /// `true` if an expression may vary.
    pub(crate) fn varies(&self, function: &Function, root: ExprId) -> bool {
        self.differs(function, root, UniformLoads::None)
    }

    /// `true` if an expression may vary. Loads of `loads` are uniform if their address is.
    fn differs(&self, function: &Function, root: ExprId, loads: UniformLoads) -> bool {
        let mut varies = false;
        for_each_expr(function, root, &mut |id| {
            varies |= match function.class(id) {
                Class::Leaf(Leaf::Local(local)) => self.local_varies(local),
                Class::Leaf(Leaf::Special(register)) => !register.is_of_block(),
                Class::Leaf(Leaf::Base(base)) => !base.is_of_block(),
                Class::Load(pointer) => match loads {
                    UniformLoads::None => true,
                    UniformLoads::NeverWritten => !is_never_written(function, pointer),
                    UniformLoads::All => false,
                },
                Class::Leaf(Leaf::Const(_)) | Class::Arith(_) | Class::Address { .. } => false,
            };
        });
        varies
    }

    /// `true` if a local may vary. Locals that were created after the analysis vary.
    pub(crate) fn local_varies(&self, local: LocalId) -> bool {
        self.varying.get(local.index()).copied().unwrap_or(true)
    }

    /// `true` if the loop has a divergent `Break`.
    pub(crate) fn splits_loop(&self, stmt: &Stmt) -> bool {
        self.split_loops.contains(&ptr::from_ref(stmt))
    }

    /// `true` if the loop has a divergent `Continue`.
    pub(crate) fn splits_iteration(&self, stmt: &Stmt) -> bool {
        self.split_turns.contains(&ptr::from_ref(stmt))
    }

    /// `true` if a jump may be divergent.
    pub(crate) fn splits_jump(&self, stmt: &Stmt) -> bool {
        self.split_jumps.contains(&ptr::from_ref(stmt))
    }
}

/// Which loads from uniform addresses are uniform.
#[derive(Clone, Copy)]
enum UniformLoads {
    None,
    /// Those of memory that no thread writes while the kernel runs.
    NeverWritten,
    /// All: they are broadcasts ([`broadcasts`](crate::backend::host::plan::normalize::broadcasts)).
    All,
}

/// Whether no thread writes the memory of a pointer while the kernel runs.
fn is_never_written(function: &Function, mut pointer: ExprId) -> bool {
    while let Class::Address { base, .. } = function.class(pointer) {
        pointer = base;
    }
    function.local(pointer).is_some_and(|local| function.locals[local].never_written)
}

/// The divergence of the current position.
#[derive(Clone, Copy, Default)]
struct Context {
    /// Some active threads of the block may not reach the position.
    split: bool,
    /// Some threads that are in the innermost loop may not reach the position.
    split_in_loop: bool,
    /// The position is in a guarded region: threads that do not pass the guard do not return with those that do.
    guarded: bool,
}

struct Walk<'a> {
    function: &'a Function,
    regions: &'a Regions,
    result: &'a mut Uniformity,
    loops: Vec<*const Stmt>,
}

impl Walk<'_> {
    /// The uniform loads in a value that is assigned to a local.
    fn loads_of(&self, local: LocalId) -> UniformLoads {
        if self.function.locals[local].broadcast { UniformLoads::All } else { UniformLoads::NeverWritten }
    }

    /// Analyzes a list; `true` if some threads may have skipped the rest of the innermost loop's iteration.
    fn block(&mut self, block: &[Stmt], mut context: Context) -> bool {
        let mut skips = false;
        for stmt in block {
            match &stmt.kind {
                StmtKind::Assign(local, value) => {
                    if context.split || self.result.differs(self.function, *value, self.loads_of(*local)) {
                        self.result.varying[local.index()] = true;
                    }
                }
                StmtKind::Op { .. } | StmtKind::Call { .. } => {
                    for local in stmt.kind.assigned() {
                        self.result.varying[local.index()] = true;
                    }
                }
                StmtKind::If { then, .. } if self.regions.inside(stmt).is_some() => {
                    // All threads that pass the guard reach this code. The others must not see its assignments.
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
                StmtKind::Loop { body, step } => self.iterations(stmt, body, step, context),
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

    fn iterations(&mut self, stmt: &Stmt, body: &[Stmt], step: &[Stmt], context: Context) {
        let key = ptr::from_ref(stmt);
        let left_apart = self.result.split_loops.contains(&key);
        let inner = Context { split: context.split || left_apart, split_in_loop: false, ..context };
        self.loops.push(key);
        self.block(body, inner);
        self.block(step, inner);
        self.loops.pop();
        if self.result.split_loops.contains(&key) {
            // Threads that leave in different iterations have values of different iterations.
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
