//! The extent of the memory that a pointer points into: whether 32-bit offsets reach all of it.
//!
//! Pointers come from array arguments, whose extents the assumptions of a launch bound, and from shared, local and
//! constant arrays, whose extents are known. The analysis follows them through locals, addresses, conversions and
//! calls; the extents of other pointers are unknown.

use weft_artifact::{ArgItem, Layout, SlotField, SlotSource};

use crate::ir::{
    Arith, Base, Class, Const, ExprId, Function, FunctionKind, Leaf, LocalId, Module, Space, StmtKind, Type,
    for_each_stmt,
};

/// The extent of the memory that a pointer points into.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PointerExtent {
    /// It has fewer than 2^31 times this number of bytes.
    pub unit: u64,
    /// The pointer points to its first byte.
    pub starts: bool,
}

/// The extents of the pointers among the locals of each function.
#[derive(Debug)]
pub(crate) struct PointerExtents {
    /// By the function's and the local's index. `None` for a local that is never assigned; a pointer of unknown origin
    /// has no limit: `u64::MAX`.
    locals: Vec<Vec<Option<PointerExtent>>>,
}

impl PointerExtent {
    const UNKNOWN: Self = Self { unit: u64::MAX, starts: false };
    /// Fewer than 2^31 bytes, from the first one on.
    const WHOLE: Self = Self { unit: 1, starts: true };

    fn join(self, other: Self) -> Self {
        Self { unit: self.unit.max(other.unit), starts: self.starts && other.starts }
    }
}

impl PointerExtents {
    /// Analyzes all functions of a module.
    pub(crate) fn of(module: &Module) -> Self {
        let locals = module.functions.iter().map(|(_, function)| at_entry(module, function)).collect();
        let mut all = Self { locals };
        while all.update(module) {}
        all
    }

    /// Propagates the extents through each assignment and call; returns whether one has changed.
    fn update(&mut self, module: &Module) -> bool {
        let mut changed = false;
        for (id, function) in module.functions.iter() {
            for_each_stmt(&function.body, &mut |stmt| match &stmt.kind {
                StmtKind::Assign(local, value) => {
                    let found = self.find(module, id.index(), function, *value);
                    changed |= self.add(id.index(), *local, found);
                }
                StmtKind::Op { results, .. } => {
                    for local in results {
                        changed |= self.add(id.index(), *local, Some(PointerExtent::UNKNOWN));
                    }
                }
                StmtKind::Call { results, func, args } => {
                    for local in results {
                        changed |= self.add(id.index(), *local, Some(PointerExtent::UNKNOWN));
                    }
                    for (param, arg) in module.functions[*func].params.iter().zip(args) {
                        let found = self.find(module, id.index(), function, *arg);
                        changed |= self.add(func.index(), *param, found);
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

    fn add(&mut self, function: usize, local: LocalId, found: Option<PointerExtent>) -> bool {
        let Some(found) = found else { return false };
        let known = &mut self.locals[function][local.index()];
        let joined = known.map_or(found, |known| known.join(found));
        let changed = *known != Some(joined);
        *known = Some(joined);
        changed
    }

    /// The extent of a pointer in function `number`; `None` if it has no value yet, or is no pointer.
    fn find(&self, module: &Module, number: usize, function: &Function, id: ExprId) -> Option<PointerExtent> {
        let Type::Ptr(_, space) = function.exprs[id].ty else { return None };
        let found = match function.class(id) {
            Class::Leaf(Leaf::Local(local)) => self.locals[number][local.index()]?,
            Class::Leaf(Leaf::Const(Const::Null)) => return None,
            Class::Leaf(Leaf::Base(Base::Const(array))) => {
                let fits = i32::try_from(module.constants[array].bytes.len()).is_ok();
                if fits { PointerExtent::WHOLE } else { PointerExtent::UNKNOWN }
            }
            Class::Leaf(Leaf::Base(Base::Shared(_) | Base::Dynamic | Base::Local(_))) => PointerExtent::WHOLE,
            Class::Arith(Arith::Convert(from)) => self.find(module, number, function, from)?,
            Class::Arith(Arith::Select(_, a, b)) => {
                let (a, b) = (self.find(module, number, function, a), self.find(module, number, function, b));
                match (a, b) {
                    (Some(a), Some(b)) => a.join(b),
                    (one, other) => one.or(other)?,
                }
            }
            Class::Address { base, .. } => {
                PointerExtent { starts: false, ..self.find(module, number, function, base)? }
            }
            Class::Leaf(Leaf::Const(_) | Leaf::Special(_)) | Class::Arith(_) | Class::Load(_) => PointerExtent::UNKNOWN,
        };
        // Memory of a block or a thread is smaller.
        let own = matches!(space, Space::Shared | Space::Local);
        Some(if own { PointerExtent { unit: 1, ..found } } else { found })
    }

    /// The extent of a pointer in function `number`.
    pub(crate) fn get(&self, module: &Module, number: usize, function: &Function, id: ExprId) -> Option<PointerExtent> {
        self.find(module, number, function, id).filter(|found| found.unit != u64::MAX)
    }
}

/// The extents at the entry of a function.
fn at_entry(module: &Module, function: &Function) -> Vec<Option<PointerExtent>> {
    let mut locals = vec![None; function.locals.len()];
    if function.kind == FunctionKind::Device {
        return locals;
    }
    for (index, local) in function.params.iter().enumerate() {
        locals[local.index()] = Some(of_slot(module, function, index).unwrap_or(PointerExtent::UNKNOWN));
    }
    locals
}

/// The extent of an array in a launch with small arrays, as `dispatcher/variants/assumptions.rs` of the bindings tests
/// it: fewer than 2^31 elements, or bytes if the layout is unknown.
fn of_slot(module: &Module, function: &Function, index: usize) -> Option<PointerExtent> {
    let SlotSource::Argument { param, path, field: SlotField::Data } = function.slots.get(index)? else { return None };
    let ArgItem::Array(array) = module.params.get(*param as usize)?.ty.leaf(path)? else { return None };
    if !module.assumptions.small {
        return None;
    }
    let packed = array.layout != Layout::Any;
    let unit = if packed { array.dtype.size_bytes().max(1) } else { 1 };
    Some(PointerExtent { unit, starts: packed })
}
