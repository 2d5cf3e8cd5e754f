//! The owner of the memory that a pointer points into, for sanitized code: a parameter, a declared array, or unknown.

use weft_artifact::{ArgType, HostChecks};

use crate::ir::{Arith, Base, Class, Const, ExprId, Function, Leaf, LocalId, Memory, Module, StmtKind, for_each_stmt};

/// The owner of the memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Owner {
    /// No known owner.
    Nothing,
    /// The memory of the parameter with this index.
    Param(usize),
    /// An array that the function or its module declares.
    Declared,
    /// One of several, or unknown.
    Unknown,
}

impl Owner {
    fn join(self, other: Self) -> Self {
        match (self, other) {
            (Self::Nothing, one) | (one, Self::Nothing) => one,
            (one, two) if one == two => one,
            (Self::Param(_) | Self::Declared | Self::Unknown, Self::Param(_) | Self::Declared | Self::Unknown) => {
                Self::Unknown
            }
        }
    }
}

/// The origins of a function's pointers.
#[derive(Clone, Debug)]
pub(crate) struct Origins(Vec<Owner>);

impl Origins {
    pub(crate) fn of(function: &Function) -> Self {
        let mut all = Self(vec![Owner::Nothing; function.locals.len()]);
        for (index, param) in function.params.iter().enumerate() {
            all.0[param.index()] = Owner::Param(index);
        }
        loop {
            let mut changed = false;
            for_each_stmt(&function.body, &mut |stmt| {
                let (locals, origin): (&[LocalId], _) = match &stmt.kind {
                    StmtKind::Assign(local, value) => (std::slice::from_ref(local), all.origin(function, *value)),
                    StmtKind::Call { results, .. } | StmtKind::Op { results, .. } => (results, Owner::Unknown),
                    StmtKind::Store { .. }
                    | StmtKind::If { .. }
                    | StmtKind::Loop { .. }
                    | StmtKind::Break
                    | StmtKind::Continue
                    | StmtKind::Return(_) => (&[], Owner::Nothing),
                };
                for local in locals {
                    let known = all.0[local.index()];
                    let joined = known.join(origin);
                    changed |= joined != known;
                    all.0[local.index()] = joined;
                }
            });
            if !changed {
                return all;
            }
        }
    }

    /// The owner of the memory that a pointer points into.
    pub(crate) fn origin(&self, function: &Function, id: ExprId) -> Owner {
        match function.class(id) {
            Class::Leaf(Leaf::Local(local)) => self.0.get(local.index()).copied().unwrap_or(Owner::Unknown),
            Class::Leaf(Leaf::Const(Const::Address(HostChecks::NOWHERE))) => Owner::Nothing,
            Class::Leaf(Leaf::Base(_)) => Owner::Declared,
            Class::Arith(Arith::Convert(base)) | Class::Address { base, .. } => self.origin(function, base),
            Class::Arith(Arith::Select(_, a, b)) => self.origin(function, a).join(self.origin(function, b)),
            Class::Leaf(Leaf::Const(_) | Leaf::Special(_)) | Class::Arith(_) | Class::Load(_) => Owner::Unknown,
        }
    }
}

/// The declared array that a pointer points into, if its expression shows it.
pub(crate) fn base(function: &Function, id: ExprId) -> Option<Base> {
    match function.class(id) {
        Class::Leaf(Leaf::Base(base)) => Some(base),
        Class::Arith(Arith::Convert(inner)) | Class::Address { base: inner, .. } => base(function, inner),
        Class::Leaf(_) | Class::Arith(_) | Class::Load(_) => None,
    }
}

/// The indices of the array parameters that the kernel only reads; empty if it may write memory other than array
/// parameters and declared arrays. The accesses of the parameters must be known.
pub(crate) fn only_read(module: &Module) -> Vec<u32> {
    let knows = module.functions.iter().all(|(_, function)| knows_writes(function))
        && module.params.iter().all(|param| !param.access.writes || matches!(param.ty, ArgType::Array(_)));
    if !knows {
        return Vec::new();
    }
    let all = (0..).zip(&module.params);
    all.filter(|(_, param)| !param.access.writes && matches!(param.ty, ArgType::Array(_))).map(|(at, _)| at).collect()
}

/// Whether the owner of all memory is known that a function writes or passes on.
fn knows_writes(function: &Function) -> bool {
    let origins = Origins::of(function);
    let is_unknown = |id: ExprId| origins.origin(function, id) == Owner::Unknown;
    let is_pointer = |id: ExprId| function.exprs[id].ty.scalar().is_none();
    let mut knows = true;
    for_each_stmt(&function.body, &mut |stmt| {
        knows &= match &stmt.kind {
            StmtKind::Store { pointer, .. } => !is_unknown(*pointer),
            StmtKind::Op { op, args, .. } => {
                let memory = op.row().memory;
                let writes = memory.writes() && args.iter().any(|&arg| is_pointer(arg) && is_unknown(arg));
                memory != Memory::All && !writes
            }
            StmtKind::Call { args, .. } => !args.iter().any(|&arg| is_pointer(arg) && is_unknown(arg)),
            StmtKind::Assign(..)
            | StmtKind::If { .. }
            | StmtKind::Loop { .. }
            | StmtKind::Break
            | StmtKind::Continue
            | StmtKind::Return(_) => true,
        };
    });
    knows
}
