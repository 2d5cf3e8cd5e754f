//! Properties of the pointers of a module, followed through locals, addresses, conversions and calls.
//!
//! A property of a pointer follows from what it is derived from: an array argument, a declared array. A local that is
//! assigned several pointers has the join of their properties. Pointers from elsewhere (memory, operations, functions of
//! other languages) are unknown.

use crate::ir::{
    Arith, Base, Class, Const, ExprId, FuncId, Function, FunctionKind, Leaf, LocalId, Module, Space, StmtKind, Type,
    for_each_stmt,
};

/// A property of a pointer.
pub(crate) trait PointerProperty: Copy + PartialEq {
    /// The property of a pointer from an unknown origin.
    const UNKNOWN: Self;

    /// The property of a pointer that has one of two properties.
    fn join(self, other: Self) -> Self;

    /// The property of the first address of a declared array or memory.
    fn of_base(module: &Module, function: FuncId, base: Base) -> Self;

    /// The property of a parameter of a kernel or an exported function.
    fn of_param(module: &Module, function: &Function, index: usize) -> Self;

    /// The property of another address in the same memory.
    fn at_offset(self) -> Self;

    /// The property of the same address, if it is in `space`.
    fn in_space(self, _space: Space) -> Self {
        self
    }
}

/// The properties of the pointers among the locals of each function.
#[derive(Debug)]
pub(crate) struct Pointers<F> {
    /// By the function's and the local's index; `None` for a local that is never assigned, or is no pointer.
    locals: Vec<Vec<Option<F>>>,
}

impl<F: PointerProperty> Pointers<F> {
    /// Analyzes all functions of a module.
    pub(crate) fn of(module: &Module) -> Self {
        let locals = module.functions.iter().map(|(_, function)| at_entry(module, function)).collect();
        let mut all = Self { locals };
        while all.update(module) {}
        all
    }

    /// Propagates the properties through each assignment and call; returns whether one has changed.
    fn update(&mut self, module: &Module) -> bool {
        let mut changed = false;
        for (id, function) in module.functions.iter() {
            for_each_stmt(&function.body, &mut |stmt| match &stmt.kind {
                StmtKind::Assign(local, value) => {
                    let found = self.find(module, id, function, *value);
                    changed |= self.add(id, *local, found);
                }
                StmtKind::Op { results, .. } => {
                    for local in results {
                        changed |= self.add(id, *local, Some(F::UNKNOWN));
                    }
                }
                StmtKind::Call { results, func, args } => {
                    for local in results {
                        changed |= self.add(id, *local, Some(F::UNKNOWN));
                    }
                    for (param, arg) in module.functions[*func].params.iter().zip(args) {
                        let found = self.find(module, id, function, *arg);
                        changed |= self.add(*func, *param, found);
                    }
                }
                StmtKind::Store { .. }
                | StmtKind::If { .. }
                | StmtKind::Loop { .. }
                | StmtKind::Break
                | StmtKind::Continue
                | StmtKind::Return(_) => {}
            });
        }
        changed
    }

    fn add(&mut self, function: FuncId, local: LocalId, found: Option<F>) -> bool {
        let Some(found) = found else { return false };
        let known = &mut self.locals[function.index()][local.index()];
        let joined = known.map_or(found, |known| known.join(found));
        let changed = *known != Some(joined);
        *known = Some(joined);
        changed
    }

    /// The property of a pointer in a function; `None` if it has no value yet, or is no pointer.
    pub(crate) fn find(&self, module: &Module, number: FuncId, function: &Function, id: ExprId) -> Option<F> {
        let Type::Ptr(_, space) = function.exprs[id].ty else { return None };
        let found = match function.class(id) {
            // A local that was created after the analysis is unknown.
            Class::Leaf(Leaf::Local(local)) => {
                self.locals[number.index()].get(local.index()).copied().unwrap_or(Some(F::UNKNOWN))?
            }
            Class::Leaf(Leaf::Const(Const::Null)) => return None,
            Class::Leaf(Leaf::Base(base)) => F::of_base(module, number, base),
            Class::Arith(Arith::Convert(from)) => self.find(module, number, function, from)?,
            Class::Arith(Arith::Select(_, a, b)) => {
                let (a, b) = (self.find(module, number, function, a), self.find(module, number, function, b));
                match (a, b) {
                    (Some(a), Some(b)) => a.join(b),
                    (one, other) => one.or(other)?,
                }
            }
            Class::Address { base, .. } => self.find(module, number, function, base)?.at_offset(),
            Class::Leaf(Leaf::Const(_) | Leaf::Special(_)) | Class::Arith(_) | Class::Load(_) => F::UNKNOWN,
        };
        Some(found.in_space(space))
    }
}

/// The properties at the entry of a function.
fn at_entry<F: PointerProperty>(module: &Module, function: &Function) -> Vec<Option<F>> {
    let mut locals = vec![None; function.locals.len()];
    if function.kind == FunctionKind::Device {
        return locals;
    }
    for (index, local) in function.params.iter().enumerate() {
        locals[local.index()] = Some(F::of_param(module, function, index));
    }
    locals
}
