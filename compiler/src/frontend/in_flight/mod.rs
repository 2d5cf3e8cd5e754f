//! Checks that each product of a warpgroup in flight is waited for or continued exactly once.
//!
//! A data flow over the finished IR of a function. The locals that hold accumulators in flight are known by the operations
//! that begin products; assignments copy them. Types prevent most other uses, and this check reports the rest, so that no
//! code computes with registers that tensor cores write.
//!
//! For each product the check has a lower bound of the number of products that have begun after it. A wait for all but the
//! `n` latest products completes it if the bound is at least `n`.
//!
//! `ptxas` (13.0) does not know which products of earlier iterations a wait completes, unless it waits for all: it serializes the
//! products of a function that reads accumulators after such a wait in the loop. So these waits become waits for all.

mod state;

use std::collections::{BTreeMap, BTreeSet};

use state::{Exits, Flight, Held, Id, MOST_AFTER, State};

use crate::{
    diagnostic::{Code, Diagnostic},
    ir::{
        Block, Const, ExprId, ExprKind, Function, FunctionKind, LocalId, Op, ProductWait, Stmt, StmtKind,
        for_each_expr, for_each_stmt, for_each_stmt_mut,
    },
    source::Span,
};

/// What messages call the accumulators of a product in flight.
pub(super) const IN_FLIGHT: &str = "accumulators in flight";
/// The fix for most errors.
pub(super) const WAIT: &str = "wait for the product first: `acc = cuda.mma.wait(0, acc)`";

/// Checks a function, and adjusts its waits. Returns its errors; `may_end` says that its last result tells whether it has ended
/// the thread.
pub(super) fn check(function: &mut Function, may_end: bool) -> Vec<Diagnostic> {
    let mut has_any = false;
    for_each_stmt(&function.body, &mut |stmt| {
        if let StmtKind::Op { op, .. } = stmt.kind {
            has_any |= matches!(op, Op::Multiply(product) if product.in_flight) || matches!(op, Op::ProductWait(_));
        }
    });
    if !has_any {
        return Vec::new();
    }
    let mut checker = Checker {
        function,
        may_end,
        next: 0,
        used: BTreeMap::new(),
        guarded: BTreeSet::new(),
        loops: Vec::new(),
        found: Vec::new(),
        full: BTreeSet::new(),
        is_quiet: false,
    };
    if let Some(end) = checker.block(&function.body, State::default()) {
        for flight in end.flights.values() {
            checker.report(flight.begun, "no `cuda.mma.wait` completes this product", &[], Some(WAIT));
        }
    }
    let Checker { found, full, .. } = checker;
    for_each_stmt_mut(&mut function.body, &mut |stmt| {
        if let StmtKind::Op { op: Op::ProductWait(wait), results, .. } = &mut stmt.kind
            && results.first().is_some_and(|first| full.contains(first))
        {
            wait.pending = 0;
        }
    });
    found
}

/// Replaces waits by copies, for code that computes products at once.
pub(super) fn complete_at_once(function: &mut Function) {
    let block = std::mem::take(&mut function.body);
    function.body = without_waits(block);
}

fn without_waits(block: Block) -> Block {
    let mut out = Block::with_capacity(block.len());
    for Stmt { mut kind, span } in block {
        for inner in kind.blocks_mut().into_iter().flatten() {
            *inner = without_waits(std::mem::take(inner));
        }
        if let StmtKind::Op { op: Op::ProductWait(wait), results, args } = &kind {
            let values = args.iter().skip(wait.n_left());
            let copies = results.iter().zip(values).map(|(&to, &value)| StmtKind::Assign(to, value));
            out.extend(copies.map(|kind| Stmt { kind, span }));
        } else {
            out.push(Stmt { kind, span });
        }
    }
    out
}

struct Checker<'a> {
    function: &'a Function,
    may_end: bool,
    next: Id,
    /// Where each product was waited for or continued.
    used: BTreeMap<Id, Span>,
    /// The products that were in flight where an enclosing `if` begins.
    guarded: BTreeSet<Id>,
    /// The exits of the enclosing loops.
    loops: Vec<Exits>,
    found: Vec<Diagnostic>,
    /// The waits that become waits for all products, by their first results.
    full: BTreeSet<LocalId>,
    /// Errors are not recorded: the state at a loop's head is not known yet.
    is_quiet: bool,
}

impl Checker<'_> {
    fn report(&mut self, span: Span, message: &str, places: &[(Span, &str)], help: Option<&str>) {
        // Other errors may follow from the first one.
        if self.is_quiet || self.found.first().is_some_and(|first| first.message != message) {
            return;
        }
        let mut diagnostic = Diagnostic::error(Code::InFlight, span, message).help_if(help);
        for (place, text) in places {
            diagnostic = diagnostic.also(*place, *text);
        }
        if !self.found.contains(&diagnostic) {
            self.found.push(diagnostic);
        }
    }

    /// The state after a block; `None` if control does not reach its end.
    fn block(&mut self, block: &Block, mut state: State) -> Option<State> {
        for stmt in block {
            state = self.stmt(stmt, state)?;
        }
        Some(state)
    }

    fn stmt(&mut self, stmt: &Stmt, mut state: State) -> Option<State> {
        let span = stmt.span;
        match &stmt.kind {
            StmtKind::Assign(local, value) => {
                let held = self.local(*value).and_then(|from| state.held.get(&from).copied());
                if held.is_none() {
                    self.other_use(&state, *value, span);
                }
                state.set(*local, held);
            }
            StmtKind::Op { op, results, args } => {
                if let Op::Multiply(product) = op {
                    let n_values = product.tile.values();
                    let (factors, values) = args.split_at(args.len().saturating_sub(n_values));
                    for &arg in factors {
                        self.other_use(&state, arg, span);
                    }
                    let before = self.taken(&mut state, values, span);
                    let begun = product.in_flight.then(|| self.begin(&mut state, before, span));
                    if product.tile.is_of_warpgroup() && begun.is_none() {
                        state.complete(0);
                    }
                    for (at, &result) in results.iter().enumerate() {
                        state.set(result, begun.map(|id| Held::Of(id, at)));
                    }
                } else if let Op::ProductWait(wait) = op {
                    self.wait(&mut state, (*wait, results.first().copied()), args, span);
                    for &result in results {
                        state.set(result, None);
                    }
                } else {
                    for &arg in args {
                        self.other_use(&state, arg, span);
                    }
                    for &result in results {
                        state.set(result, None);
                    }
                }
            }
            StmtKind::Store { .. } | StmtKind::Call { .. } => {
                stmt.kind.exprs().into_iter().for_each(|value| self.other_use(&state, value, span));
                stmt.kind.assigned().into_iter().for_each(|result| state.set(result, None));
            }
            StmtKind::If { cond, then, otherwise } => {
                self.other_use(&state, *cond, span);
                return self.branch([then, otherwise], state);
            }
            StmtKind::Loop { body, step } => return self.repeat(body, step, state),
            StmtKind::Break => {
                self.loops.last_mut()?.breaks.push(state);
                return None;
            }
            StmtKind::Continue => {
                self.loops.last_mut()?.continues.push(state);
                return None;
            }
            StmtKind::Return(values) => {
                self.exit(&state, values, span);
                return None;
            }
        }
        Some(state)
    }

    /// The local that an expression reads.
    fn local(&self, value: ExprId) -> Option<LocalId> {
        if let ExprKind::Local(local) = self.function.exprs[value].kind { Some(local) } else { None }
    }

    /// Reports an expression that reads accumulators in flight.
    fn other_use(&mut self, state: &State, value: ExprId, span: Span) {
        let mut found = None;
        for_each_expr(self.function, value, &mut |expr| {
            found = found.or_else(|| self.local(expr).and_then(|local| state.held.get(&local)).copied());
        });
        let Some(held) = found else { return };
        let begun = match held {
            Held::Of(id, _) => state.flights.get(&id).map(|flight| (flight.begun, "the product begins here")),
            Held::Unclear => None,
        };
        let message =
            format!("{IN_FLIGHT} cannot be used here: only `mma` of their tile and `cuda.mma.wait` take them");
        self.report(span, &message, begun.as_slice(), Some(WAIT));
    }

    /// Ends the state in flight of the accumulators that an operation takes, if they are in flight.
    fn taken(&mut self, state: &mut State, values: &[ExprId], span: Span) -> Option<(Id, Flight)> {
        let held: Vec<Option<Held>> =
            values.iter().map(|&value| self.local(value).and_then(|local| state.held.get(&local)).copied()).collect();
        let Some(first) = held.iter().copied().flatten().next() else {
            for &value in values {
                self.other_use(state, value, span);
            }
            return None;
        };
        let in_order = |id| held.iter().enumerate().all(|(at, held)| *held == Some(Held::Of(id, at)));
        let id = match first {
            Held::Of(id, _) if in_order(id) => id,
            Held::Of(..) | Held::Unclear => {
                let message = "these accumulators are not those of the same product in flight on every path";
                self.report(span, message, &[], Some("begin one product, and wait for it, on every path"));
                return None;
            }
        };
        let Some(flight) = state.flights.get(&id).cloned() else {
            let place = self.used.get(&id).map(|&used| (used, "it is used here"));
            let message = "these accumulators in flight were used before: each product is waited for or continued once";
            self.report(span, message, place.as_slice(), Some("use what that call returns"));
            return None;
        };
        if self.guarded.contains(&id) {
            let message = "a product that is in flight before an `if` cannot be waited for or continued in it: all threads of \
                           the warpgroup do so together";
            let help = "wait for it before the `if`, or begin and wait in the same branch";
            self.report(span, message, &[(flight.begun, "the product begins here")], Some(help));
        }
        state.flights.remove(&id);
        self.used.insert(id, span);
        Some((id, flight))
    }

    /// A new product in flight, which may continue another one.
    fn begin(&mut self, state: &mut State, before: Option<(Id, Flight)>, span: Span) -> Id {
        for flight in state.flights.values_mut() {
            flight.after = (flight.after + 1).min(MOST_AFTER);
        }
        let id = self.next;
        self.next += 1;
        let carried = before.as_ref().is_some_and(|(_, flight)| flight.carried);
        let origin = before.map_or(id, |(before, _)| state.origins.get(&before).copied().unwrap_or(before));
        state.origins.insert(id, origin);
        state.flights.insert(id, Flight { begun: span, after: 0, carried });
        id
    }

    fn wait(&mut self, state: &mut State, (wait, result): (ProductWait, Option<LocalId>), args: &[ExprId], span: Span) {
        let mut pending = wait.pending;
        if wait.tile.is_some() {
            let (words, values) = args.split_at(wait.n_left().min(args.len()));
            for &word in words {
                self.other_use(state, word, span);
            }
            let n_found = self.found.len();
            match self.taken(state, values, span) {
                Some((_, flight)) if flight.after < wait.pending => {
                    let message = format!(
                        "`cuda.mma.wait({}, acc)` may leave this product in flight: {} after it",
                        wait.pending,
                        begun(flight.after)
                    );
                    let help = format!("pass {} as `n`", flight.after);
                    self.report(span, &message, &[(flight.begun, "the product begins here")], Some(&help));
                }
                Some((_, flight)) => {
                    if flight.carried {
                        pending = 0;
                        self.full.extend(result.filter(|_| !self.is_quiet));
                    }
                }
                None if self.found.len() > n_found => {}
                None => self.report(span, "these accumulators are not in flight here", &[], None),
            }
        }
        state.complete(pending);
    }

    fn branch(&mut self, [then, otherwise]: [&Block; 2], state: State) -> Option<State> {
        let guarded = self.guarded.clone();
        self.guarded.extend(state.flights.keys());
        let arms = [self.block(then, state.clone()), self.block(otherwise, state)];
        self.guarded = guarded;
        match arms {
            [Some(a), Some(b)] => Some(self.join(a, b)),
            [one, other] => one.or(other),
        }
    }

    /// The state where two paths meet. A product in flight is so on both.
    fn join(&mut self, a: State, b: State) -> State {
        for (one, other) in [(&a, &b), (&b, &a)] {
            for (id, flight) in &one.flights {
                if !other.flights.contains_key(id) {
                    let message = "a product that begins under a condition is not waited for there";
                    self.report(
                        flight.begun,
                        message,
                        &[],
                        Some("wait for it in the same branch, or begin it on every path"),
                    );
                }
            }
        }
        a.joined(b)
    }

    /// A loop. The state at its head is the least fixpoint of its entry and its ends of iterations.
    fn repeat(&mut self, body: &Block, step: &Block, mut head: State) -> Option<State> {
        head.origins.clear();
        let before = head.flights.clone();
        head.flights.values_mut().for_each(|flight| flight.carried = true);
        let was_quiet = std::mem::replace(&mut self.is_quiet, true);
        loop {
            let (ends, _) = self.iteration(body, step, head.clone());
            let mut next = head.clone();
            for end in &ends {
                next = self.matched(next, end);
            }
            if next == head {
                break;
            }
            head = next;
        }
        self.is_quiet = was_quiet;
        let (ends, exits) = self.iteration(body, step, head.clone());
        for end in &ends {
            self.matched(head.clone(), end);
        }
        let mut exit = exits.into_iter().reduce(|a, b| self.join(a, b))?;
        for (id, flight) in &mut exit.flights {
            flight.carried = before.get(id).is_some_and(|entry| entry.carried);
        }
        Some(exit)
    }

    /// The states at the end of an iteration and at the exits of the loop.
    fn iteration(&mut self, body: &Block, step: &Block, head: State) -> (Vec<State>, Vec<State>) {
        self.loops.push(Exits::default());
        let end = self.block(body, head);
        let exits = self.loops.pop().unwrap_or_default();
        let ends = end.into_iter().chain(exits.continues);
        let ends = ends.collect::<Vec<_>>().into_iter().filter_map(|end| self.block(step, end)).collect();
        (ends, exits.breaks)
    }

    /// The state at the head of a loop, for a state at the end of an iteration: a variable that is in flight at the head is so
    /// at the end, and has the same product, one that continues it, or a new one.
    fn matched(&mut self, head: State, end: &State) -> State {
        let pairs = head.pairs(end);
        for (id, flight) in &head.flights {
            let found: BTreeSet<Id> = pairs.iter().filter(|(old, _)| old == id).map(|(_, new)| *new).collect();
            let place = [(flight.begun, "the product begins here")];
            let mut only = found.iter();
            match (only.next(), only.next()) {
                (Some(new), None) => {
                    let origin = end.origins.get(new).copied().unwrap_or(*new);
                    if origin != *id && head.flights.contains_key(&origin) {
                        let message = "a product in flight moves to another variable in a loop";
                        self.report(end.begun(*new), message, &place, Some("keep each product in its variable"));
                    }
                }
                (None, _) => {
                    let used = self.used.get(id).copied().unwrap_or(flight.begun);
                    let message =
                        "a product is in flight at the start of an iteration, but its variable is not at the end";
                    let help = "wait for it before the loop, or begin the next product in each iteration";
                    self.report(used, message, &place, Some(help));
                }
                (Some(_), Some(_)) => {
                    let message = "a product in flight is in different variables at the end of an iteration";
                    self.report(flight.begun, message, &[], Some("keep each product in its variable"));
                }
            }
        }
        for (id, flight) in &end.flights {
            if !pairs.iter().any(|(_, new)| new == id) {
                let message = "a product that begins in an iteration is not waited for there, and no product was in its \
                               variable at the start";
                self.report(flight.begun, message, &[], Some(WAIT));
            }
        }
        head.at_head(end, &pairs)
    }

    /// The end of the function. A kernel's thread may end while products are in flight.
    fn exit(&mut self, state: &State, values: &[ExprId], span: Span) {
        for &value in values {
            self.other_use(state, value, span);
        }
        let ends = self.may_end
            && values.last().is_some_and(|&last| {
                !matches!(self.function.exprs[last].kind, ExprKind::Const(Const::Int(0) | Const::Bool(false)))
            });
        if self.function.kind == FunctionKind::Kernel || ends {
            return;
        }
        for flight in state.flights.values() {
            let place = [(span, "the function returns here")];
            self.report(flight.begun, "no `cuda.mma.wait` completes this product", &place, Some(WAIT));
        }
    }
}

/// `2 products begin`.
fn begun(n: u8) -> String {
    match n {
        0 => "no product begins".to_owned(),
        1 => "1 product begins".to_owned(),
        _ => format!("{n} products begin"),
    }
}
