//! Loop normalization: a counted loop whose start differs between threads, but whose trip count is the same for all of
//! them, counts from zero.
//!
//! ```text
//! $c = $column - 2                 $first = $column - 2
//! $end = $column + 3               $k = 0
//! loop {                           loop {
//!     if not $c < $end { break }       if not $k < 5 { break }
//!     …                                $c = $first + $k
//!                                      …
//! } step { $c = $c + 1 }           } step { $k = $k + 1 }
//! ```
//!
//! Legal if the end minus the start, as a polynomial, is a constant or depends only on values that all threads share, if
//! these do not change in the loop, and if neither end nor start wraps: then the difference of the integers is the
//! polynomial's value, too. Nothing else may assign or read the counter. A step other than one needs a constant difference.
//!
//! Profitable because all threads then run the same iterations: the loop can be interchanged with the thread loop or
//! unrolled, and its body has no mask. A start that all threads share gains nothing.

use crate::{
    analysis::{
        Rematerializable,
        affine::{Atoms, ByStructure, Magnitude, Polynomial, Precision, polynomial},
        any_expr, assigns, for_each_mention,
    },
    backend::host::plan::{MAX_ROW, analysis::structure::counter_by},
    ir::{
        BinaryOp, Block, CompareOp, ExprId, ExprKind, Function, Local, LocalId, LocalKind, Stmt, StmtKind, Type,
        UnaryOp, for_each_expr,
    },
    source::Span,
};

/// The largest difference between the end and the start of a loop that is normalized.
const MAX_DISTANCE: i128 = i32::MAX as i128;

/// Normalizes the loops of a kernel's body.
pub(crate) fn normalize(function: &mut Function, body: &mut Block) {
    let mut mentions = vec![0; function.locals.len()];
    for_each_mention(function, body, &mut |local| mentions[local.index()] += 1);
    let fixed = Rematerializable::of(function, body);
    Normalizer { fixed, mentions }.list(function, body);
}

struct Normalizer {
    fixed: Rematerializable,
    /// By local: how often the kernel mentions it.
    mentions: Vec<usize>,
}

/// A loop to normalize.
struct Found {
    counter: LocalId,
    /// The statement before the loop that assigns the start to the counter.
    start: usize,
    by: i128,
    trip_count: TripCount,
}

/// A coefficient, and the factors of a product.
type Term = (i128, Vec<ExprId>);

enum TripCount {
    Constant(i128),
    /// The sum of products of values that all threads share.
    Shared(Vec<Term>),
}

impl Normalizer {
    fn list(&self, function: &mut Function, list: &mut Block) {
        let mut at = 0;
        while at < list.len() {
            for inner in list[at].kind.blocks_mut().into_iter().flatten() {
                self.list(function, inner);
            }
            if let Some(found) = self.find(function, &list[..at], &list[at]) {
                let more = list.len();
                rewrite(function, list, at, &found);
                at += list.len() - more;
            }
            at += 1;
        }
    }

    /// The loop, if a statement that follows `before` is one to normalize.
    fn find(&self, function: &Function, before: &[Stmt], stmt: &Stmt) -> Option<Found> {
        let StmtKind::Loop { body, step } = &stmt.kind else { return None };
        let (counter, limit, by) = counter_by(function, body, step)?;
        if function.locals[counter].ty != Type::I64 {
            return None;
        }
        let (start, start_value) = last_assignment(before, counter)?;
        if !self.differs(function, start_value) {
            return None;
        }
        let in_loop = |local: LocalId| assigns(std::slice::from_ref(stmt), local);
        let (end, end_value) = match function.local(limit) {
            Some(local) if self.fixed.value(local).is_none() && !function.params.contains(&local) => {
                if !legal!("normalize_loops.same-end", !in_loop(local)) {
                    return None;
                }
                last_assignment(before, local)?
            }
            Some(_) | None => (before.len(), limit),
        };
        let changes = |local: LocalId| {
            // The locals of both values have the same values at both places, and in each test of the loop.
            assigns(&before[start.min(end)..], local) || in_loop(local)
        };
        let trip_count = self.trip_count(function, end_value, start_value, by, &changes)?;
        let magnitude = Magnitude { function, fixed: &self.fixed, max_row: MAX_ROW };
        let is_exact =
            legal!("normalize_loops.no-wrap", magnitude.is_small(start_value) && magnitude.is_small(end_value));
        let mut inside = 1;
        for_each_mention(function, std::slice::from_ref(stmt), &mut |local| inside += usize::from(local == counter));
        let is_own = legal!("normalize_loops.own-counter", self.mentions.get(counter.index()) == Some(&inside));
        (is_exact && is_own).then_some(Found { counter, start, by, trip_count })
    }

    /// Whether a value may differ between threads.
    fn differs(&self, function: &Function, value: ExprId) -> bool {
        let dependence = self.fixed.dependence(function, value);
        let mut differs = dependence.x || dependence.row;
        for_each_expr(function, value, &mut |id| {
            differs |= function
                .local(id)
                .is_some_and(|local| self.fixed.value(local).is_none() && !function.params.contains(&local));
        });
        differs
    }

    /// The trip count of a loop, if all threads share it; `changes` tells whether a local may have different values where
    /// the end and the start are computed.
    fn trip_count(
        &self,
        function: &Function,
        end: ExprId,
        start: ExprId,
        by: i128,
        changes: &dyn Fn(LocalId) -> bool,
    ) -> Option<TripCount> {
        let mut atoms = OfThread { normalizer: self, function, changes, atoms: ByStructure::new(function) };
        let end = polynomial(function, Precision::Exact, &mut atoms, end)?;
        let start = polynomial(function, Precision::Exact, &mut atoms, start)?;
        let distance = end.plus(&start, -1)?;
        if let Some(distance) = distance.as_constant() {
            return (distance > 0 && distance <= MAX_DISTANCE).then_some(TripCount::Constant((distance + by - 1) / by));
        }
        let terms = distance.terms().map(|(factors, coefficient)| {
            let factors: Vec<ExprId> = factors.iter().map(|&atom| atoms.atoms.value(atom)).collect();
            (coefficient, factors)
        });
        let terms: Vec<Term> = terms.collect();
        let differs = |(_, factors): &Term| factors.iter().any(|&atom| self.differs(function, atom));
        let is_shared = !terms.iter().any(differs);
        (is_shared && by == 1).then_some(TripCount::Shared(terms))
    }
}

/// The values of a thread that do not change between two places of a program are atoms.
struct OfThread<'a> {
    normalizer: &'a Normalizer,
    function: &'a Function,
    changes: &'a dyn Fn(LocalId) -> bool,
    atoms: ByStructure<'a>,
}

impl Atoms for OfThread<'_> {
    fn local(&mut self, local: LocalId, read: ExprId) -> Option<Polynomial> {
        match self.normalizer.fixed.value(local) {
            Some(value) => polynomial(self.function, Precision::Exact, self, value),
            None => self.opaque(read),
        }
    }

    fn opaque(&mut self, root: ExprId) -> Option<Polynomial> {
        let loads = any_expr(self.function, root, &|kind| matches!(kind, ExprKind::Load(..)));
        let changes = any_expr(
            self.function,
            root,
            &|kind| matches!(*kind, ExprKind::Local(local) if self.normalizer.fixed.value(local).is_none() && (self.changes)(local)),
        );
        if !legal!("normalize_loops.same-memory", !loads) || !legal!("normalize_loops.same-locals", !changes) {
            return None;
        }
        self.atoms.opaque(root)
    }
}

/// The last statement of a list that assigns a local, and its value, if it is an assignment of the list itself.
fn last_assignment(list: &[Stmt], local: LocalId) -> Option<(usize, ExprId)> {
    let at = list.iter().rposition(|stmt| assigns(std::slice::from_ref(stmt), local))?;
    if let StmtKind::Assign(_, value) = list[at].kind { Some((at, value)) } else { None }
}

/// Rewrites the loop at `at`, and inserts statements before it.
fn rewrite(function: &mut Function, list: &mut Block, at: usize, found: &Found) {
    let Found { counter, start, by, ref trip_count } = *found;
    let span = list[at].span;
    let mut local =
        |name: &str, nonneg| function.locals.push(Local { nonneg, ..Local::new(name, LocalKind::Variable, Type::I64) });
    let (first, iteration) = (local("first", false), local("iteration", true));
    if let StmtKind::Assign(to, _) = &mut list[start].kind {
        *to = first;
    }
    let assign = |local, value| Stmt { kind: StmtKind::Assign(local, value), span };
    let mut before = Block::new();
    let count = match trip_count {
        TripCount::Constant(count) => function.edit(span).int(*count, Type::I64),
        TripCount::Shared(terms) => {
            let count = function.locals.push(Local::new("count", LocalKind::Variable, Type::I64));
            let value = sum(function, terms, span);
            before.push(assign(count, value));
            function.edit(span).read(count)
        }
    };
    let mut edit = function.edit(span);
    let read = edit.read(iteration);
    let goes_on = edit.compare(CompareOp::Lt, read, count);
    let ends = edit.expr(ExprKind::Unary(UnaryOp::Not, goes_on), Type::BOOL);
    let (mut offset, factor) = (edit.read(iteration), edit.int(by, Type::I64));
    if by != 1 {
        offset = edit.binary(BinaryOp::Mul, offset, factor);
    }
    let from = edit.read(first);
    let value = edit.binary(BinaryOp::Add, from, offset);
    let (read, one, zero) = (edit.read(iteration), edit.int(1, Type::I64), edit.int(0, Type::I64));
    let next = edit.binary(BinaryOp::Add, read, one);
    if let StmtKind::Loop { body, step } = &mut list[at].kind {
        if let StmtKind::If { cond, .. } = &mut body[0].kind {
            *cond = ends;
        }
        body.insert(1, assign(counter, value));
        *step = vec![assign(iteration, next)];
    }
    before.push(assign(iteration, zero));
    list.splice(at..at, before);
}

/// The sum of products, as a 64-bit integer.
fn sum(function: &mut Function, terms: &[Term], span: Span) -> ExprId {
    let mut total = function.edit(span).int(0, Type::I64);
    for (coefficient, factors) in terms {
        let mut product = function.edit(span).int(*coefficient, Type::I64);
        for &factor in factors {
            let factor = function.copy_expr(factor);
            let mut edit = function.edit(span);
            let is_wide = edit.function.exprs[factor].ty == Type::I64;
            let wide = if is_wide { factor } else { edit.expr(ExprKind::Convert(factor), Type::I64) };
            product = edit.binary(BinaryOp::Mul, product, wide);
        }
        total = function.edit(span).binary(BinaryOp::Add, total, product);
    }
    total
}
