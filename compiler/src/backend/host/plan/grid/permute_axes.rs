//! Thread-axis permutation, an interchange of the thread loops: selects the axis that the innermost thread loop runs
//! along.
//!
//! With `i, j = cuda.grid(2)` and `a[i, j]`, threads that are neighbors along `x` access a column. Along `y` they
//! access contiguous elements. The pass exchanges the axis of least cost with `x` in all functions, and the launch
//! exchanges the axes of its grid and its blocks.
//!
//! Legal because nothing orders the threads of a block between its barriers. The kernel must not observe how threads are
//! numbered ([`thread_order::may_move_all`]), as operations of a warp or the grid do.
//!
//! Profitable if the estimated cost of the kernel's memory accesses is lower along that axis. The cost depends only on
//! the stride, the memory space and the loop depth of each access. An axis along which the launch is expected to have one
//! thread is no choice: all accesses along it seem to be free.

use crate::{
    analysis::Rematerializable,
    backend::host::plan::analysis::{
        strides::{Form, Forms},
        thread_order,
    },
    ir::{
        Class, ExprId, ExprKind, FuncId, Function, Leaf, LocalId, Module, Space, SpecialRegister, Stmt, StmtKind, Type,
        for_each_expr, for_each_stmt,
    },
};

/// Assumed trip count of a loop: the factor by which its accesses are weighted.
const ASSUMED_TRIP_COUNT: u64 = 4;

/// Cost of an access by its stride along the axis: unit stride, any other stride, any other stride in shared memory
/// (resident in L1). Accesses of one address by all threads are free.
const UNIT_STRIDE_COST: u64 = 1;
const STRIDED_COST: u64 = 8;
const STRIDED_SHARED_COST: u64 = 4;

/// The axis to exchange with `x`. It is 0, for no exchange, if an exchange is illegal, if the kernel does not read
/// `threadIdx.x`, or if no other axis is cheaper.
pub(crate) fn best(module: &Module, kernel: FuncId) -> u8 {
    if !legal!("permute_axes.movable", thread_order::may_move_all(module)) {
        return 0;
    }
    let function = &module.functions[kernel];
    let has_threads = |axis: u8| match module.likely_block {
        Some(block) => axis == 0 || block[0] == 1 || block[usize::from(axis)] > 1,
        None => true,
    };
    let costs = [0, 1, 2].map(|axis| {
        if !has_threads(axis) {
            return None;
        }
        let accesses = Accesses::of(function, axis)?;
        Some(accesses.iter().fold(0_u64, |total, access| total.saturating_add(access.cost())))
    });
    let [Some(along_x), along_y, along_z] = costs else { return 0 };
    let mut best = (along_x, 0);
    for (cost, axis) in [(along_y, 1), (along_z, 2)] {
        if let Some(cost) = cost
            && cost < best.0
        {
            best = (cost, axis);
        }
    }
    best.1
}

/// Whether threads that are neighbors along `y` or `z` access neighboring elements of global memory, and those along `x`
/// do not, as in one of the arrays of a transposition. The lines of memory that a row of threads accesses are then
/// accessed again by the next rows.
pub(crate) fn reuses_lines(function: &Function) -> bool {
    let [Some(along_x), along_y, along_z] = [0, 1, 2].map(|axis| Accesses::of(function, axis)) else { return false };
    [along_y, along_z].iter().flatten().any(|along| {
        along_x
            .iter()
            .zip(along)
            .any(|(x, other)| x.space == Space::Global && x.form == Form::Other && other.form == Form::Step)
    })
}

/// Exchanges an axis with `x` in the special registers of all functions.
pub(crate) fn exchange(module: &mut Module, axis: u8) {
    let other = |of: u8| match of {
        0 => axis,
        of if of == axis => 0,
        of => of,
    };
    for (_, function) in module.functions.iter_mut() {
        for (_, expr) in function.exprs.iter_mut() {
            if let ExprKind::Special(register) = &mut expr.kind {
                match register {
                    SpecialRegister::ThreadIdx(of)
                    | SpecialRegister::BlockIdx(of)
                    | SpecialRegister::BlockDim(of)
                    | SpecialRegister::GridDim(of) => *of = other(*of),
                    SpecialRegister::LaneId
                    | SpecialRegister::WarpSize
                    | SpecialRegister::DynamicSharedBytes
                    | SpecialRegister::OfRow(_) => {}
                }
            }
        }
    }
}

/// A load or a store outside local memory.
struct Access {
    space: Space,
    /// How its address changes along the axis.
    form: Form,
    /// The assumed number of times that a thread executes it.
    weight: u64,
}

impl Access {
    fn cost(&self) -> u64 {
        let cost = match self.form {
            Form::Same => 0,
            Form::Step => UNIT_STRIDE_COST,
            Form::Other if self.space == Space::Shared => STRIDED_SHARED_COST,
            Form::Other => STRIDED_COST,
        };
        self.weight.saturating_mul(cost)
    }
}

/// The accesses of a function in the order of the code, in a thread loop along an axis.
struct Accesses<'a> {
    forms: Forms<'a>,
    all: Vec<Access>,
}

impl Accesses<'_> {
    /// The accesses of a function along an axis; `None` if the function does not read the thread index of that axis.
    fn of(function: &Function, axis: u8) -> Option<Vec<Access>> {
        let body = &function.body;
        let mut values: Vec<Vec<ExprId>> = vec![Vec::new(); function.locals.len()];
        let mut unknown = vec![false; function.locals.len()];
        for_each_stmt(body, &mut |stmt| match stmt.kind {
            StmtKind::Assign(local, value) => values[local.index()].push(value),
            StmtKind::Store { .. }
            | StmtKind::Op { .. }
            | StmtKind::Call { .. }
            | StmtKind::If { .. }
            | StmtKind::Loop { .. }
            | StmtKind::Break
            | StmtKind::Continue
            | StmtKind::Return(_) => stmt.kind.assigned().into_iter().for_each(|local| unknown[local.index()] = true),
        });
        let mut varies = unknown;
        loop {
            let before = varies.clone();
            for (local, _) in function.locals.iter() {
                varies[local.index()] |=
                    values[local.index()].iter().any(|&value| depends(function, &varies, value, axis));
            }
            if varies == before {
                break;
            }
        }
        let mut along = false;
        for_each_stmt(body, &mut |stmt| {
            for root in stmt.kind.exprs() {
                for_each_expr(function, root, &mut |id| along |= is_thread(function, id, axis));
            }
        });
        if !along {
            return None;
        }
        let fixed = Rematerializable::of(function, body);
        let shared = |local: LocalId| !varies[local.index()];
        let sole = |local: LocalId| match values[local.index()].as_slice() {
            [value] => Some(*value),
            _ => None,
        };
        let forms = Forms { function, fixed: &fixed, shared: &shared, sole: &sole, axis };
        let mut accesses = Accesses { forms, all: Vec::new() };
        accesses.list(body, 1);
        Some(accesses.all)
    }

    fn list(&mut self, list: &[Stmt], weight: u64) {
        for stmt in list {
            if let StmtKind::Store { pointer, .. } = stmt.kind {
                self.access(pointer, weight);
            }
            for root in stmt.kind.exprs() {
                let mut loads = Vec::new();
                for_each_expr(self.forms.function, root, &mut |id| {
                    if let ExprKind::Load(pointer, _) = self.forms.function.exprs[id].kind {
                        loads.push(pointer);
                    }
                });
                for pointer in loads {
                    self.access(pointer, weight);
                }
            }
            match &stmt.kind {
                StmtKind::If { then, otherwise, .. } => {
                    self.list(then, weight);
                    self.list(otherwise, weight);
                }
                StmtKind::Loop { body, step } => {
                    let weight = weight.saturating_mul(ASSUMED_TRIP_COUNT);
                    self.list(body, weight);
                    self.list(step, weight);
                }
                StmtKind::Assign(..)
                | StmtKind::Store { .. }
                | StmtKind::Op { .. }
                | StmtKind::Call { .. }
                | StmtKind::Break
                | StmtKind::Continue
                | StmtKind::Return(_) => {}
            }
        }
    }

    fn access(&mut self, pointer: ExprId, weight: u64) {
        let function = self.forms.function;
        let Type::Ptr(_, space) = function.exprs[pointer].ty else { return };
        if space == Space::Local {
            return;
        }
        let form = match function.class(pointer) {
            Class::Address { base, by, .. } if self.forms.form(base) == Form::Same => self.forms.form(by),
            Class::Leaf(_) | Class::Arith(_) | Class::Address { .. } | Class::Load(_) => self.forms.form(pointer),
        };
        self.all.push(Access { space, form, weight });
    }
}

fn is_thread(function: &Function, id: ExprId, axis: u8) -> bool {
    function.exprs[id].kind == ExprKind::Special(SpecialRegister::ThreadIdx(axis))
}

/// Whether a value depends on the thread index of an axis, given the locals that do.
fn depends(function: &Function, varies: &[bool], root: ExprId, axis: u8) -> bool {
    let mut depends = false;
    for_each_expr(function, root, &mut |id| {
        depends |= is_thread(function, id, axis);
        if let Class::Leaf(Leaf::Local(local)) = function.class(id) {
            depends |= varies[local.index()];
        }
    });
    depends
}
