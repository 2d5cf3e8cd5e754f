//! Which values carry derivatives.
//!
//! A value is *varied* if it depends on an array or a scalar that has an adjoint, by operations with a derivative. It is
//! *useful* if an element that is written depends on it. It is *active* if it is both: only active values have
//! adjoints. Shared and local arrays are active by the same rules: values flow into them and from them. A value that is
//! loaded from such an array is varied only if a varied value may have been stored before. In a kernel without races, a
//! store that follows in the tape, outside of the loops around the load, precedes the load in no thread: a barrier between
//! them, which all threads reach, would have to be before the load and after the store. So collectives may share their
//! arrays, and only those whose operands are varied have an adjoint.

use std::{cell::OnceCell, collections::BTreeSet};

use weft_artifact::Scalar;

use super::{
    arrays::{Arrays, Memory},
    build::is_float,
    refusals::unsupported,
    rules::{self, Rule},
    tape::{Carried, Exchange, Join, List, Node, Values, Write, for_each_loop},
};
use crate::{
    diagnostic::{Code, Diagnostic},
    ir::{Class, ExprId, Function, LocalId, Type},
    source::Span,
};

/// The active values of a kernel.
#[derive(Debug, Default)]
pub(super) struct Activity {
    varied: Values,
    useful: Values,
    /// The shared and local arrays to which varied values are stored.
    varied_memory: BTreeSet<Memory>,
    /// The writes to such an array after which it may have varied values, by the number of the event.
    varied_writes: BTreeSet<usize>,
    /// Those from which useful values are loaded.
    useful_memory: BTreeSet<Memory>,
    /// The arrays from which active values are loaded, by the number of the parameter.
    pub(super) loaded: Vec<u32>,
    /// The type of the elements of dynamic shared memory through which derivatives flow.
    pub(super) dynamic: Option<Scalar>,
}

/// The arrays that a kernel writes.
#[derive(Debug, Default)]
pub(super) struct Written {
    /// By the number of the parameter.
    pub(super) params: Vec<u32>,
    /// Arrays that the kernel captures.
    pub(super) captured: bool,
}

impl Written {
    /// Finds them.
    pub(super) fn of(function: &Function, arrays: &Arrays, list: &List) -> Self {
        let mut written = Self::default();
        for_each_write(list, &mut |write, _| match arrays.memory(function, write.pointer) {
            Memory::Param(param) => written.params.push(param),
            Memory::Captured | Memory::Other => written.captured = true,
            Memory::Shared(_) | Memory::Local(_) | Memory::Dynamic => {}
        });
        written
    }

    /// Whether a kernel may write the memory.
    pub(super) fn contains(&self, memory: Memory) -> bool {
        match memory {
            Memory::Param(param) => self.params.contains(&param),
            Memory::Captured => self.captured,
            // Each thread or block has its own, which a kernel writes before it reads it.
            Memory::Shared(_) | Memory::Local(_) | Memory::Dynamic | Memory::Other => true,
        }
    }
}

/// Calls `visit` on each write of a list, and whether it is atomic.
pub(super) fn for_each_write<'a>(list: &'a List, visit: &mut dyn FnMut(&'a Write, bool)) {
    for node in list {
        match node {
            Node::Store(write) => visit(write, false),
            Node::Add(write) => visit(write, true),
            Node::Define { .. }
            | Node::Unrepeatable { .. }
            | Node::Exchange(_)
            | Node::Call(_)
            | Node::Barrier { .. } => {}
            Node::If(branch) => {
                for_each_write(&branch.then, visit);
                for_each_write(&branch.otherwise, visit);
            }
            Node::Loop(repeat) => {
                for_each_write(&repeat.head, visit);
                for_each_write(&repeat.body, visit);
            }
        }
    }
}

/// The operands that the derivative of an operation may flow to: their numbers, and the values.
pub(super) fn edges(function: &Function, id: ExprId) -> Vec<(usize, LocalId)> {
    let Some((Rule::Partials(partials), operands)) = rules::of(function, id) else { return Vec::new() };
    let float = |&operand: &ExprId| is_float(function.exprs[operand].ty);
    let edges = operands.iter().enumerate().take(partials.len()).filter(|(_, operand)| float(operand));
    edges.filter_map(|(number, &operand)| Some((number, function.local(operand)?))).collect()
}

/// Finds the active values.
pub(super) fn find(function: &Function, arrays: &Arrays, list: &List) -> Result<Activity, Diagnostic> {
    let mut finder = Finder {
        function,
        arrays,
        activity: Activity::default(),
        varied_before: BTreeSet::new(),
        changed: true,
        dynamic: OnceCell::new(),
    };
    finder.activity.varied.extend(arrays.scalars().into_iter().map(|(value, _)| value));
    while std::mem::take(&mut finder.changed) {
        finder.varied_before.clear();
        finder.forward(list)?;
    }
    finder.changed = true;
    while std::mem::take(&mut finder.changed) {
        finder.backward(list)?;
    }
    finder.find_loaded(list);
    Ok(Activity { dynamic: finder.dynamic.into_inner().flatten(), ..finder.activity })
}

struct Finder<'a> {
    function: &'a Function,
    arrays: &'a Arrays,
    activity: Activity,
    /// The shared and local arrays to which a node before the current one, or in a loop around it, stores varied values.
    varied_before: BTreeSet<Memory>,
    changed: bool,
    /// The type of the floats in dynamic shared memory.
    dynamic: OnceCell<Option<Scalar>>,
}

impl Activity {
    /// Whether a value has an adjoint.
    pub(super) fn is_active(&self, value: LocalId) -> bool {
        self.varied.contains(&value) && self.useful.contains(&value)
    }

    /// Whether a shared or local array has an adjoint.
    pub(super) fn is_active_memory(&self, memory: Memory) -> bool {
        self.varied_memory.contains(&memory) && self.useful_memory.contains(&memory)
    }

    /// The shared and local arrays that have adjoints.
    pub(super) fn active_memory(&self) -> impl Iterator<Item = Memory> {
        self.varied_memory.intersection(&self.useful_memory).copied()
    }

    /// Refuses loops whose test's own values carry derivatives: their reverse after the loop is not supported.
    pub(super) fn check_loops(&self, function: &Function, arrays: &Arrays, list: &List) -> Result<(), Diagnostic> {
        let mut refused = None;
        for_each_loop(list, &mut |repeat| {
            if refused.is_none() && repeat.head.iter().any(|node| self.is_reversed(function, arrays, node)) {
                refused = Some(repeat.span);
            }
        });
        refused.map_or(Ok(()), |span| {
            Err(unsupported(
                span,
                "a loop whose condition computes values that its body uses",
                "compute them again in the body",
            ))
        })
    }

    /// Whether a value to be written has an adjoint.
    pub(super) fn writes_active(&self, function: &Function, write: &Write) -> bool {
        function.local(write.value).is_some_and(|value| self.is_active(value))
    }

    /// Whether the reverse sweep has statements for a node.
    pub(super) fn is_reversed(&self, function: &Function, arrays: &Arrays, node: &Node) -> bool {
        let any = |list: &List| list.iter().any(|node| self.is_reversed(function, arrays, node));
        let takes = |write: &Write| match arrays.memory(function, write.pointer) {
            Memory::Param(param) => arrays.has_adjoint(param),
            memory @ (Memory::Shared(_) | Memory::Local(_) | Memory::Dynamic) => {
                self.is_active_memory(memory) && self.varied_writes.contains(&write.event)
            }
            Memory::Captured | Memory::Other => false,
        };
        match node {
            Node::Define { to, .. } | Node::Exchange(Exchange { to, .. }) => self.is_active(*to),
            Node::Call(call) => call.event.is_some() || call.results.iter().any(|&to| self.is_active(to)),
            Node::Unrepeatable { .. } => false,
            Node::Barrier { .. } => true,
            Node::Store(write) => takes(write),
            Node::Add(write) => takes(write) && self.writes_active(function, write),
            Node::If(branch) => {
                any(&branch.then) || any(&branch.otherwise) || branch.joins.iter().any(|join| self.is_active(join.to))
            }
            Node::Loop(repeat) => {
                any(&repeat.head)
                    || any(&repeat.body)
                    || repeat.carried.iter().any(|carried| self.is_active(carried.header))
            }
        }
    }
}

impl Finder<'_> {
    fn varies(&mut self, value: LocalId) {
        self.changed |= self.activity.varied.insert(value);
    }

    fn uses(&mut self, value: LocalId) {
        self.changed |= self.activity.useful.insert(value);
    }

    fn is_varied(&self, value: LocalId) -> bool {
        self.activity.varied.contains(&value)
    }

    fn is_useful(&self, value: LocalId) -> bool {
        self.activity.useful.contains(&value)
    }

    fn forward(&mut self, list: &List) -> Result<(), Diagnostic> {
        for node in list {
            match node {
                Node::Define { to, value, span } => {
                    if self.defines_varied(*value, *span)? {
                        self.varies(*to);
                    }
                }
                Node::Exchange(exchange) => {
                    if self.function.local(exchange.value).is_some_and(|value| self.is_varied(value)) {
                        self.varies(exchange.to);
                    }
                }
                Node::Call(call) => {
                    if call.floats(self.function).any(|value| self.is_varied(value)) {
                        let floats = call.results.iter().filter(|&&to| is_float(self.function.locals[to].ty));
                        floats.for_each(|&to| self.varies(to));
                    }
                }
                Node::Unrepeatable { .. } | Node::Barrier { .. } => {}
                Node::Store(write) | Node::Add(write) => {
                    let memory = self.arrays.memory(self.function, write.pointer);
                    if memory.is_own() && self.function.local(write.value).is_some_and(|value| self.is_varied(value)) {
                        if memory == Memory::Dynamic {
                            self.check_dynamic(self.function.exprs[write.value].ty, write.span)?;
                        }
                        self.changed |= self.activity.varied_memory.insert(memory);
                        self.varied_before.insert(memory);
                    }
                    if self.varied_before.contains(&memory) {
                        self.changed |= self.activity.varied_writes.insert(write.event);
                    }
                }
                Node::If(branch) => {
                    self.forward(&branch.then)?;
                    self.forward(&branch.otherwise)?;
                    for &Join { to, then, otherwise } in &branch.joins {
                        if self.is_varied(then) || self.is_varied(otherwise) {
                            self.varies(to);
                        }
                    }
                }
                Node::Loop(repeat) => {
                    for &Carried { init, header, next } in &repeat.carried {
                        if self.is_varied(next) || init.is_some_and(|init| self.is_varied(init)) {
                            self.varies(header);
                        }
                    }
                    loop {
                        let before = self.varied_before.len();
                        self.forward(&repeat.head)?;
                        self.forward(&repeat.body)?;
                        if self.varied_before.len() == before {
                            break;
                        }
                    }
                }
            }
        }
        Ok(())
    }

    /// Refuses dynamic shared memory with elements of several types, which may be the same bytes.
    fn check_dynamic(&self, ty: Type, span: Span) -> Result<(), Diagnostic> {
        let Some(&known) = self.dynamic.get_or_init(|| ty.scalar()).as_ref() else { return Ok(()) };
        if ty.scalar() == Some(known) {
            return Ok(());
        }
        let help = "let all elements of the dynamic shared memory have one type, and use a shared array of a constant \
                    shape for the others";
        Err(unsupported(span, "an access to dynamic shared memory with elements of several types", help))
    }

    fn defines_varied(&self, value: ExprId, span: Span) -> Result<bool, Diagnostic> {
        if let Class::Load(pointer) = self.function.class(value) {
            return match self.arrays.memory(self.function, pointer) {
                Memory::Param(param) => Ok(self.arrays.has_adjoint(param)),
                Memory::Captured => Ok(false),
                memory @ (Memory::Shared(_) | Memory::Local(_) | Memory::Dynamic) => {
                    let is_varied = self.varied_before.contains(&memory);
                    if is_varied && memory == Memory::Dynamic {
                        self.check_dynamic(self.function.exprs[value].ty, span)?;
                    }
                    if is_varied && !is_float(self.function.exprs[value].ty) {
                        return Err(unsupported(span, "the bits of a float", "load elements of the array's own type"));
                    }
                    Ok(is_varied)
                }
                Memory::Other => Err(elsewhere(span, "load elements")),
            };
        }
        let is_varied = |operand: &ExprId| self.function.local(*operand).is_some_and(|local| self.is_varied(local));
        if let Some((Rule::Refuse(what, help), operands)) = rules::of(self.function, value)
            && operands.iter().any(is_varied)
        {
            return Err(unsupported(span, what, help));
        }
        Ok(is_float(self.function.exprs[value].ty)
            && edges(self.function, value).iter().any(|&(_, operand)| self.is_varied(operand)))
    }

    fn backward(&mut self, list: &List) -> Result<(), Diagnostic> {
        for node in list.iter().rev() {
            match node {
                Node::Define { to, value, .. } => {
                    if self.is_useful(*to) {
                        if let Class::Load(pointer) = self.function.class(*value) {
                            let memory = self.arrays.memory(self.function, pointer);
                            self.changed |= memory.is_own() && self.activity.useful_memory.insert(memory);
                        }
                        for (_, operand) in edges(self.function, *value) {
                            self.uses(operand);
                        }
                    }
                }
                Node::Exchange(exchange) => {
                    if self.is_useful(exchange.to)
                        && let Some(value) = self.function.local(exchange.value)
                    {
                        self.uses(value);
                    }
                }
                Node::Call(call) => {
                    if call.results.iter().any(|&to| self.is_useful(to)) {
                        call.floats(self.function).for_each(|value| self.uses(value));
                    }
                }
                Node::Unrepeatable { .. } | Node::Barrier { .. } => {}
                Node::Store(write) | Node::Add(write) => self.writes(write)?,
                Node::If(branch) => {
                    for &Join { to, then, otherwise } in &branch.joins {
                        if self.is_useful(to) {
                            self.uses(then);
                            self.uses(otherwise);
                        }
                    }
                    self.backward(&branch.then)?;
                    self.backward(&branch.otherwise)?;
                }
                Node::Loop(repeat) => {
                    for &Carried { init, header, next } in &repeat.carried {
                        if self.is_useful(header) {
                            if let Some(init) = init {
                                self.uses(init);
                            }
                            self.uses(next);
                        }
                    }
                    self.backward(&repeat.body)?;
                    self.backward(&repeat.head)?;
                }
            }
        }
        Ok(())
    }

    fn writes(&mut self, write: &Write) -> Result<(), Diagnostic> {
        let varied = self.function.local(write.value).filter(|&value| self.is_varied(value));
        match self.arrays.memory(self.function, write.pointer) {
            Memory::Param(param) if self.arrays.has_adjoint(param) => {
                if let Some(value) = varied {
                    self.uses(value);
                }
                Ok(())
            }
            memory @ (Memory::Shared(_) | Memory::Local(_) | Memory::Dynamic) => {
                if let Some(value) = varied.filter(|_| self.activity.useful_memory.contains(&memory)) {
                    self.uses(value);
                }
                Ok(())
            }
            Memory::Other => Err(elsewhere(write.span, "write results")),
            Memory::Param(_) | Memory::Captured if varied.is_none() => Ok(()),
            Memory::Param(param) => {
                let name = &self.arrays.param(param).name;
                let message = format!("a derivative flows into `{name}`, which has no adjoint");
                Err(Diagnostic::error(Code::NoDerivative, write.span, message)
                    .help("derivatives flow through arrays of floats and of complex numbers"))
            }
            Memory::Captured => Err(unsupported(
                write.span,
                "a write to an array that the kernel captures",
                "pass the array as an argument",
            )),
        }
    }

    /// Finds the arrays that active values are loaded from.
    fn find_loaded(&mut self, list: &List) {
        for node in list {
            match node {
                Node::Define { to, value, .. } => {
                    if let Class::Load(pointer) = self.function.class(*value)
                        && self.activity.is_active(*to)
                        && let Memory::Param(param) = self.arrays.memory(self.function, pointer)
                        && !self.activity.loaded.contains(&param)
                    {
                        self.activity.loaded.push(param);
                    }
                }
                Node::Unrepeatable { .. }
                | Node::Exchange(_)
                | Node::Call(_)
                | Node::Store(_)
                | Node::Add(_)
                | Node::Barrier { .. } => {}
                Node::If(branch) => {
                    self.find_loaded(&branch.then);
                    self.find_loaded(&branch.otherwise);
                }
                Node::Loop(repeat) => {
                    self.find_loaded(&repeat.head);
                    self.find_loaded(&repeat.body);
                }
            }
        }
    }
}

/// An access to memory of which the compiler knows no array.
fn elsewhere(span: Span, what: &str) -> Diagnostic {
    let help = format!("{what} of the kernel's arguments, or of shared and local arrays");
    unsupported(span, "an access to one of several arrays", &help)
}
