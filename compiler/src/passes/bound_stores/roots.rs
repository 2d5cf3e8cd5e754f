//! Determines the memory that pointers point into, and the locals with an array's extents.

use std::collections::BTreeMap;

use weft_artifact::{ArgItem, Layout, SlotField, SlotSource};

use super::Summary;
use crate::ir::{
    Arith, Class, Const, ExprId, Function, FunctionKind, Leaf, LocalId, Module, Space, StmtKind, Type, for_each_stmt,
};

/// The memory that a pointer points into.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Root {
    /// None: it is not a pointer, or a null pointer.
    #[default]
    None,
    /// Private memory of the kernel, or of the device: stores there need no check.
    Own,
    /// The memory of the parameter with this local.
    Param(LocalId),
    /// One of several, or unknown.
    Unknown,
}

impl Root {
    pub(super) fn join(self, other: Self) -> Self {
        match (self, other) {
            (Self::None, known) | (known, Self::None) => known,
            (one, two) if one == two => one,
            (Self::Own | Self::Param(_) | Self::Unknown, Self::Own | Self::Param(_) | Self::Unknown) => Self::Unknown,
        }
    }
}

/// By local: the memory that it points into.
pub(super) fn roots(module: &Module, function: &Function, summaries: &[Summary]) -> Vec<Root> {
    let mut roots = vec![Root::None; function.locals.len()];
    for (place, param) in function.params.iter().enumerate() {
        if matches!(function.locals[*param].ty, Type::Ptr(..)) {
            roots[param.index()] = match function.slots.get(place) {
                None => Root::Param(*param),
                Some(SlotSource::Argument { param: argument, path, .. }) => {
                    match module.params.get(*argument as usize).and_then(|argument| argument.ty.leaf(path)) {
                        Some(ArgItem::Array(_)) => Root::Param(*param),
                        // A record argument is in device memory, or is copied there.
                        Some(ArgItem::Record(_)) => Root::Own,
                        Some(ArgItem::Pointer(_) | ArgItem::Value(_)) | None => Root::Unknown,
                    }
                }
                Some(SlotSource::Runtime(slot)) => match *slot {},
            };
        }
    }
    loop {
        let before = roots.clone();
        for_each_stmt(&function.body, &mut |stmt| {
            let values: Vec<(LocalId, Root)> = match &stmt.kind {
                StmtKind::Assign(local, value) => vec![(*local, root(function, &roots, *value))],
                StmtKind::Call { results, func, args } => {
                    let callee = summaries.get(func.index());
                    let given = |place: usize| {
                        let root = callee.and_then(|callee| callee.results.get(place)).copied();
                        match root.unwrap_or(Root::Unknown) {
                            Root::Param(param) => {
                                let place = callee.and_then(|callee| callee.params.iter().position(|p| *p == param));
                                let arg = place.and_then(|place| args.get(place));
                                arg.map_or(Root::Unknown, |arg| root_of(function, &roots, *arg))
                            }
                            known @ (Root::None | Root::Own | Root::Unknown) => known,
                        }
                    };
                    results.iter().enumerate().map(|(place, local)| (*local, given(place))).collect()
                }
                StmtKind::Op { results, .. } => results.iter().map(|local| (*local, Root::Unknown)).collect(),
                StmtKind::Store { .. }
                | StmtKind::If { .. }
                | StmtKind::Loop { .. }
                | StmtKind::Break
                | StmtKind::Continue
                | StmtKind::Return(_) => Vec::new(),
            };
            for (local, new) in values {
                if matches!(function.locals[local].ty, Type::Ptr(..)) {
                    roots[local.index()] = roots[local.index()].join(new);
                }
            }
        });
        if roots == before {
            return roots;
        }
    }
}

/// The root of a pointer.
pub(super) fn root_of(function: &Function, roots: &[Root], pointer: ExprId) -> Root {
    match function.exprs[pointer].ty {
        Type::Ptr(_, Space::Shared | Space::Local | Space::Constant) => Root::Own,
        Type::Ptr(_, Space::Global | Space::Generic) => root(function, roots, pointer),
        Type::Scalar(_) => Root::None,
    }
}

fn root(function: &Function, roots: &[Root], id: ExprId) -> Root {
    if matches!(function.exprs[id].ty, Type::Scalar(_)) {
        return Root::None;
    }
    match function.class(id) {
        Class::Leaf(Leaf::Local(local)) => roots[local.index()],
        Class::Leaf(Leaf::Base(_) | Leaf::Const(Const::Address(_))) => Root::Own,
        Class::Leaf(Leaf::Const(Const::Null)) => Root::None,
        Class::Arith(Arith::Convert(base)) | Class::Address { base, .. } => root(function, roots, base),
        Class::Arith(Arith::Select(_, a, b)) => root(function, roots, a).join(root(function, roots, b)),
        Class::Leaf(_) | Class::Arith(_) | Class::Load(_) => Root::Unknown,
    }
}

/// An array parameter.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Tie {
    pub(super) layout: Layout,
    /// By dimension: the local with its extent.
    pub(super) shape: Vec<LocalId>,
    /// By dimension: the local with its stride, unless the layout implies it.
    pub(super) strides: Vec<LocalId>,
    /// The size of an element in bytes.
    pub(super) bytes: u64,
}

/// The array parameters of a function, by the pointers to their data.
pub(super) type Arrays = BTreeMap<LocalId, Tie>;

/// Finds the array parameters.
pub(super) struct Ties;

impl Ties {
    /// For each function of a module: those of a kernel by its slots, and those of other functions by the arguments of
    /// all calls.
    pub(super) fn of_module(module: &Module) -> Vec<Arrays> {
        let mut all: Vec<Arrays> = vec![Arrays::new(); module.functions.len()];
        let mut given: Vec<Option<Arrays>> = vec![None; module.functions.len()];
        let functions: Vec<_> = module.functions.iter().collect();
        // Callers come after callees.
        for (id, function) in functions.into_iter().rev() {
            let own = match function.kind {
                FunctionKind::Kernel => of_kernel(module, function),
                FunctionKind::Device | FunctionKind::Export => given[id.index()].take().unwrap_or_default(),
            };
            for_each_stmt(&function.body, &mut |stmt| {
                let StmtKind::Call { func, args, .. } = &stmt.kind else { return };
                let through = of_call(function, &own, &module.functions[*func], args);
                let known = &mut given[func.index()];
                match known {
                    None => *known = Some(through),
                    Some(known) => known.retain(|local, tie| through.get(local) == Some(tie)),
                }
            });
            all[id.index()] = own;
        }
        all
    }
}

fn of_kernel(module: &Module, function: &Function) -> Arrays {
    let mut arrays = Arrays::new();
    for (slot, local) in function.slots.iter().zip(&function.params) {
        let SlotSource::Argument { param, path, field: SlotField::Data } = slot else { continue };
        let leaf = module.params.get(*param as usize).and_then(|argument| argument.ty.leaf(path));
        let Some(ArgItem::Array(array)) = leaf else { continue };
        let find = |field: SlotField| {
            let wanted = SlotSource::Argument { param: *param, path: path.clone(), field };
            let place = function.slots.iter().position(|slot| *slot == wanted)?;
            function.params.get(place).copied()
        };
        let Some(shape) = (0..array.ndim).map(|dim| find(SlotField::Shape(dim))).collect() else { continue };
        let strides = match array.layout {
            Layout::C | Layout::F => Some(Vec::new()),
            Layout::Any => (0..array.ndim).map(|dim| find(SlotField::Stride(dim))).collect(),
        };
        let Some(strides) = strides else { continue };
        let bytes = array.dtype.size_bytes();
        arrays.insert(*local, Tie { layout: array.layout, shape, strides, bytes });
    }
    arrays
}

/// The arrays that a call passes on unchanged.
fn of_call(caller: &Function, own: &Arrays, callee: &Function, args: &[ExprId]) -> Arrays {
    let mut arrays = Arrays::new();
    for (arg, param) in args.iter().zip(&callee.params) {
        let Some(tie) = caller.local(*arg).and_then(|local| own.get(&local)) else { continue };
        let find = |wanted: &LocalId| {
            let place = args.iter().position(|arg| caller.local(*arg) == Some(*wanted))?;
            callee.params.get(place).copied()
        };
        let (Some(shape), Some(strides)) =
            (tie.shape.iter().map(find).collect(), tie.strides.iter().map(find).collect())
        else {
            continue;
        };
        arrays.insert(*param, Tie { layout: tie.layout, shape, strides, bytes: tie.bytes });
    }
    arrays
}
