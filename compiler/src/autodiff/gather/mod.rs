//! Gradients of arrays that threads load at constant distances from their own index: each thread gathers the sum of one
//! element, in place of atomic additions to the elements that it loaded.
//!
//! ```text
//! if 0 < $i < n - 1 {                               $sum = 0.0
//!     $g = load out.adjoint[$i]                     if 0 < $i + 1 < n - 1 {
//!     atomic.add u.adjoint[$i - 1], a * $g              $sum = $sum + a * load out.adjoint[$i + 1]
//!     atomic.add u.adjoint[$i + 1], b * $g          }
//! }                                                 if 0 < $i - 1 < n - 1 {
//!                                                       $sum = $sum + b * load out.adjoint[$i - 1]
//!                                                   }
//!                                                   store u.adjoint[$i] = load u.adjoint[$i] + $sum
//! ```
//!
//! The thread of element `i` computes what the thread of index `i - c` adds to it, for each addition to an element at the
//! distance `c`: under the same conditions, and if that thread exists. `c` may be a counter; the loop is then repeated
//! around these conditions. The first threads also have the elements after those of the last thread.
//!
//! Legal if what is added, and the conditions, depend on a thread only by its index in the grid, and on arrays that the
//! adjoint kernel does not write. No two threads have the same index: all axes of the grid that they depend on are in the
//! element's indices, and each thread that adds also stores to an element, so that the kernel would have races
//! otherwise. It has no barriers.
//!
//! Other threads read the incoming gradients, `out.adjoint`, so the adjoint kernel cannot set them to 0. The launch runs
//! another kernel for that, which has only these stores ([`Incoming::Cleared`]).
//!
//! Profitable on the CPU if computing a term again is cheaper than an atomic addition: the loop over threads then has none,
//! and is vectorized. The adjoint of a stencil of five points takes a twelfth of the time. On a GPU it is not: lanes whose
//! sums slide (`combine_additions`) need one atomic operation for each element, while the conditions of each term delay the loads
//! of the next one, and the launch of the other kernel writes each incoming gradient once more. On an H200 the adjoint of the
//! stencil took 0.34 ms instead of 0.18.

mod emit;
mod index;
mod slice;

use std::collections::{BTreeMap, BTreeSet};

use self::{
    emit::Emitter,
    index::{Index, Values},
    slice::{Path, Slice},
};
use super::{
    arrays::{Arrays, Memory},
    merge_additions::{addition, only_added_to},
};
use crate::{
    analysis::{Access, for_each_access},
    ir::{Block, Class, Const, ExprId, ExprKind, Function, LocalId, Stmt, StmtKind, for_each_expr_of_stmt},
    request::Incoming,
    source::Span,
};

/// The greatest cost of a term; that of an operation on floats is 1.
const MOST_COST: usize = 40;

/// The most additions to an array.
const MOST_ADDITIONS: usize = 64;

/// An addition to an element of a gradient.
struct Addition<'a> {
    pointer: ExprId,
    term: ExprId,
    span: Span,
    path: Path<'a>,
}

/// What a thread adds to the elements of a gradient.
struct Term {
    /// By dimension.
    indices: Vec<Index>,
    slice: Slice,
    span: Span,
}

/// The gradient of an array.
struct Gathered {
    /// The number of the adjoint's parameter.
    adjoint: u32,
    /// An address of an element, and its indices.
    pointer: ExprId,
    indices: Vec<ExprId>,
    terms: Vec<Term>,
    /// The adjoints whose elements the terms load and the kernel sets to 0.
    incoming: BTreeSet<u32>,
}

/// What is gathered. It is the same in all specialized variants of an adjoint kernel, and in the kernel that sets incoming
/// gradients to 0.
#[derive(Clone, Debug, Default)]
pub(super) struct Decided {
    /// The adjoints whose elements are gathered.
    gathered: BTreeSet<u32>,
    /// The adjoints that the other kernel sets to 0.
    cleared: BTreeSet<u32>,
}

/// Gathers gradients. `plain`: the arrays whose gradients need no atomic operations otherwise. Decides what is gathered if
/// nothing is decided yet.
pub(super) fn run(
    function: &mut Function,
    arrays: &Arrays,
    plain: &[u32],
    incoming: Incoming,
    decided: &mut Option<Decided>,
) {
    if incoming == Incoming::Consumed {
        return;
    }
    let mut body = std::mem::take(&mut function.body);
    let values = Values::of(function, &body);
    let mut gathered = find(function, arrays, &values, &body, plain);
    let Decided { gathered: chosen, cleared } = decided.get_or_insert_with(|| Decided {
        gathered: gathered.iter().map(|one| one.adjoint).collect(),
        cleared: gathered.iter().flat_map(|one| one.incoming.iter().copied()).collect(),
    });
    gathered.retain(|one| chosen.contains(&one.adjoint) && one.incoming.is_subset(cleared));
    let is_clearing = |function: &Function, stmt: &Stmt| {
        cleared_adjoint(function, arrays, stmt).is_some_and(|adjoint| cleared.contains(&adjoint))
    };
    if incoming == Incoming::Cleared {
        let has_effect = |stmt: &Stmt| matches!(stmt.kind, StmtKind::Store { .. }) || addition(stmt).is_some();
        retain(&mut body, &|stmt| !has_effect(stmt) || is_clearing(function, stmt));
    } else {
        let is_own = |stmt: &Stmt| {
            let Some((pointer, _)) = addition(stmt) else { return false };
            let memory = arrays.memory(function, pointer);
            gathered.iter().any(|one| memory == Memory::Param(one.adjoint))
        };
        retain(&mut body, &|stmt| !is_own(stmt) && !is_clearing(function, stmt));
        for one in &gathered {
            Emitter::new(function, arrays, &values, one).emit(&mut body);
        }
    }
    function.body = body;
}

/// Finds the gradients that can be gathered.
fn find(function: &Function, arrays: &Arrays, values: &Values, body: &Block, plain: &[u32]) -> Vec<Gathered> {
    let mut is_ordered = false;
    for_each_access(function, body, &mut |access| is_ordered |= matches!(access, Access::Order | Access::Any));
    if is_ordered {
        return Vec::new();
    }
    let mut all = Vec::new();
    collect(body, &mut Path::default(), &mut all);
    let only_added_to = only_added_to(function, arrays, body);
    let incoming = incoming(function, arrays, body);
    let written = written(function, arrays, body);
    let mut found = Vec::new();
    for (of, adjoint) in arrays.adjoints() {
        if plain.contains(&of) || !only_added_to.contains(&adjoint) {
            continue;
        }
        let is_own = |one: &&Addition<'_>| arrays.memory(function, one.pointer) == Memory::Param(adjoint);
        let own: Vec<&Addition<'_>> = all.iter().filter(is_own).collect();
        if own.is_empty() || own.len() > MOST_ADDITIONS {
            continue;
        }
        let finder = Finder { function, arrays, values, incoming: &incoming, written: &written };
        found.extend(finder.gathered(adjoint, &own));
    }
    found
}

/// Calls `found.push` for each addition of a list of statements.
fn collect<'a>(list: &'a [Stmt], path: &mut Path<'a>, found: &mut Vec<Addition<'a>>) {
    for (at, stmt) in list.iter().enumerate() {
        path.steps.push((list, at));
        if let Some((pointer, term)) = addition(stmt) {
            found.push(Addition { pointer, term, span: stmt.span, path: path.clone() });
        }
        for inner in stmt.kind.blocks().into_iter().flatten() {
            collect(inner, path, found);
        }
        path.steps.pop();
    }
}

/// The adjoint of which a statement sets an element to 0.
fn cleared_adjoint(function: &Function, arrays: &Arrays, stmt: &Stmt) -> Option<u32> {
    let StmtKind::Store { pointer, value, .. } = stmt.kind else { return None };
    let Memory::Param(param) = arrays.memory(function, pointer) else { return None };
    let is_zero = matches!(function.exprs[value].kind, ExprKind::Const(Const::Float(zero)) if zero == 0.0);
    (is_zero && arrays.adjoints().any(|(_, adjoint)| adjoint == param)).then_some(param)
}

/// The parameters whose arrays statements may write.
fn written(function: &Function, arrays: &Arrays, body: &Block) -> BTreeSet<u32> {
    let mut all = BTreeSet::new();
    for_each_access(function, body, &mut |access| match access {
        Access::Write(pointer) | Access::Add(pointer) => {
            all.extend(arrays.numbers().filter(|&param| arrays.may_be(function, pointer, param)));
        }
        Access::Read(_) | Access::Order | Access::Any => {}
    });
    all
}

/// The adjoints that the kernel only reads, and then sets elements to 0.
fn incoming(function: &Function, arrays: &Arrays, body: &Block) -> BTreeSet<u32> {
    let mut states = BTreeMap::new();
    order(function, arrays, body, &mut states);
    states.into_iter().filter(|&(_, state)| state == State::Cleared).map(|(adjoint, _)| adjoint).collect()
}

/// What has happened to an adjoint.
#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    /// Elements were set to 0.
    Cleared,
    /// Elements were added to or stored, or loaded after some were set to 0.
    Other,
}

fn order(function: &Function, arrays: &Arrays, list: &[Stmt], states: &mut BTreeMap<u32, State>) {
    let numbers: Vec<u32> = arrays.adjoints().map(|(_, adjoint)| adjoint).collect();
    let may_be =
        |pointer: ExprId| numbers.iter().copied().filter(move |&param| arrays.may_be(function, pointer, param));
    for stmt in list {
        for_each_expr_of_stmt(function, &stmt.kind, &mut |id| {
            if let Class::Load(pointer) = function.class(id) {
                for param in may_be(pointer) {
                    states.entry(param).and_modify(|state| *state = State::Other);
                }
            }
        });
        if let Some(adjoint) = cleared_adjoint(function, arrays, stmt) {
            states.entry(adjoint).or_insert(State::Cleared);
        } else if let StmtKind::Store { pointer, .. } = stmt.kind {
            states.extend(may_be(pointer).map(|param| (param, State::Other)));
        } else if let Some((pointer, _)) = addition(stmt) {
            states.extend(may_be(pointer).map(|param| (param, State::Other)));
        }
        let is_loop = matches!(stmt.kind, StmtKind::Loop { .. });
        // An iteration follows another one.
        for _ in 0..=usize::from(is_loop) {
            for inner in stmt.kind.blocks().into_iter().flatten() {
                order(function, arrays, inner, states);
            }
        }
    }
}

struct Finder<'a> {
    function: &'a Function,
    arrays: &'a Arrays,
    values: &'a Values,
    /// The adjoints that the kernel reads before it sets elements to 0.
    incoming: &'a BTreeSet<u32>,
    /// The parameters whose arrays the kernel writes.
    written: &'a BTreeSet<u32>,
}

impl Finder<'_> {
    fn gathered(&self, adjoint: u32, own: &[&Addition<'_>]) -> Option<Gathered> {
        let mut terms = Vec::new();
        let mut incoming = BTreeSet::new();
        for one in own {
            let indices = self.indices(one)?;
            let axes: BTreeSet<u8> = indices.iter().map(|index| index.axis).collect();
            let is_same = terms.first().is_none_or(|first: &Term| {
                first.indices.len() == indices.len()
                    && first.indices.iter().zip(&indices).all(|(first, own)| first.axis == own.axis)
            });
            if axes.len() < indices.len() || !is_same {
                return None;
            }
            let slice = slice::of(self.function, self.values, &one.path, one.term)?;
            if !slice.axes.is_subset(&axes) || slice.cost(self.function) > MOST_COST || !self.stores(&one.path) {
                return None;
            }
            for &pointer in &slice.loads {
                incoming.extend(self.loaded(pointer)?);
            }
            let loops: BTreeSet<LocalId> = slice.loops.iter().map(|counted| counted.counter).collect();
            if !indices.iter().all(|index| index.counters.is_subset(&loops) && index.has_limit(self.function, &slice)) {
                return None;
            }
            terms.push(Term { indices, slice, span: one.span });
        }
        let first = own.first()?;
        let (_, indices) = self.arrays.indices(self.function, first.pointer)?;
        Some(Gathered { adjoint, pointer: first.pointer, indices, terms, incoming })
    }

    /// The indices of an element, each one of the thread in the grid and a distance.
    fn indices(&self, one: &Addition<'_>) -> Option<Vec<Index>> {
        let (_, indices) = self.arrays.indices(self.function, one.pointer)?;
        indices.into_iter().map(|index| self.values.index(self.function, index)).collect()
    }

    /// Whether each thread that reaches the end of a path sets an element to 0: it has stored to the array.
    fn stores(&self, path: &Path<'_>) -> bool {
        let clears = |stmt: &Stmt| cleared_adjoint(self.function, self.arrays, stmt).is_some();
        path.steps.iter().any(|&(list, _)| list.iter().any(clears))
    }

    /// The incoming gradients that a load loads from: one or none. `None` if other threads may change the element.
    fn loaded(&self, pointer: ExprId) -> Option<Vec<u32>> {
        match self.arrays.memory(self.function, pointer) {
            Memory::Param(param) if self.incoming.contains(&param) => Some(vec![param]),
            Memory::Param(param) => (!self.written.contains(&param)).then(Vec::new),
            Memory::Captured => Some(Vec::new()),
            Memory::Shared(_) | Memory::Local(_) | Memory::Dynamic | Memory::Other => None,
        }
    }
}

/// Keeps some statements of a list and of nested ones.
fn retain(block: &mut Block, keep: &dyn Fn(&Stmt) -> bool) {
    block.retain(keep);
    for stmt in block {
        for inner in stmt.kind.blocks_mut().into_iter().flatten() {
            retain(inner, keep);
        }
    }
}
