//! What the plan's steps hand to each other: nodes, segments and guards. Data, and the walks over it.

use crate::ir::{Block, CompareOp, ExprId, LocalId, SharedId};

/// Threads a block can have.
pub(crate) const MAX_THREADS: u64 = 1024;

/// Threads of a warp.
pub(crate) const LANES: u64 = 32;

/// Threads of a row of joined blocks that keep nothing.
pub(crate) const MAX_ROW: u64 = 16 * MAX_THREADS;

/// A byte for each thread that says whether it takes part; by number.
pub(crate) type MaskId = u32;

/// What a block does, in order.
#[derive(Clone, Debug)]
pub(crate) enum Node {
    /// Statements on values that all threads share, executed once.
    Once {
        /// They hold a loop, which may never end for values that no thread gets here with: executed if a thread is in
        /// this mask, of those that the guard lets through. Else the statements see to nothing but locals.
        active: Option<MaskId>,
        /// The guard of the part around it.
        guard: Option<Guard>,
        /// The statements.
        block: Block,
    },
    /// Statements that every thread executes before any goes on.
    Segment(Box<Segment>),
    /// All threads go the same way.
    If {
        /// A uniform `Bool`.
        cond: ExprId,
        /// If true.
        then: Vec<Node>,
        /// If false.
        otherwise: Vec<Node>,
    },
    /// Only the threads of a guard are here; skipped if the block has none.
    Guarded {
        /// Who is here.
        guard: Guard,
        /// What they do; each segment inside has the guard too.
        inside: Vec<Node>,
    },
    /// Threads go different ways: first those of the one arm, then those of the other.
    Split {
        /// Takes part now, of those that the guard lets through.
        active: Option<MaskId>,
        /// The guard of the part around it.
        guard: Option<Guard>,
        /// The condition of each thread; it crosses from the segment before.
        cond: LocalId,
        /// Which threads run `then`.
        then_mask: MaskId,
        /// Which threads run `otherwise`.
        else_mask: MaskId,
        /// If true.
        then: Vec<Node>,
        /// If false.
        otherwise: Vec<Node>,
    },
    /// Threads wait for each other here: those of two strips do not pass it one after the other.
    Barrier,
    /// Nodes that each strip of a row goes through before the next strip begins.
    Strips(Box<Strips>),
    /// A loop with a barrier in it.
    Loop {
        /// What it counts by, up to a limit.
        counter: Option<LocalId>,
        /// Takes part when it begins, of those that the guard lets through.
        active: Option<MaskId>,
        /// The guard of the part around it.
        guard: Option<Guard>,
        /// Which threads have not left it yet, if they leave in different turns.
        mask: Option<MaskId>,
        /// Which threads still run this turn's body, if some skip the rest of it.
        turn_mask: Option<MaskId>,
        /// The body.
        body: Vec<Node>,
        /// Between two turns.
        step: Vec<Node>,
    },
    /// Some turns of a loop around it, in which each thread goes on along a row of its own.
    Walked(Box<Walked>),
    /// All threads leave the innermost [`Node::Loop`].
    Break,
    /// All threads go to the step of the innermost [`Node::Loop`].
    Continue,
    /// All threads leave the kernel.
    Return,
}

/// Nodes without a barrier that are run for a few neighboring threads at a time, which carry in registers what others carry
/// in scratch memory. [`crate::backend::host::plan::vector::strip_mine`] makes them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Strips {
    /// The nodes.
    pub nodes: Vec<Node>,
    /// Who is here: the guard of each of the segments.
    pub guard: Option<Guard>,
    /// Threads of a strip in a row.
    pub width: u32,
    /// Rows of a strip.
    pub rows: u32,
    /// Rows are whole strips as the code says: a strip that is shorter is not worth vectors.
    pub exact: bool,
    /// They touch memory apart: their operations are put beside each other as they are, not made vectors of.
    pub apart: bool,
    /// All loops that touch memory apart are walks along rows ([`Node::Walked`]): a strip that is shorter has vectors, too.
    pub walked: bool,
    /// Locals of the block that the nodes assign: each strip begins with their first values.
    pub shared: Vec<LocalId>,
    /// Crossing locals that have a place for each thread of a strip.
    pub places: Vec<LocalId>,
    /// Those of them that come from before.
    pub inward: Vec<LocalId>,
    /// Those of them that are read later.
    pub outward: Vec<LocalId>,
    /// Segments in front of them whose rows load in the next turn what is asked for here, row by row ([`Segment::next`]).
    pub before: Vec<Segment>,
}

impl Strips {
    /// Whether several rows of so many threads are whole strips: nobody is left.
    pub(crate) fn is_of_rows(&self, width: u64) -> bool {
        self.rows > 1 && self.guard.is_none() && width.is_multiple_of(u64::from(self.width))
    }
}

/// Turns of a loop in strips in which each thread loads the next element of a row of its own. What several turns load is loaded ahead
/// of the first of them, as a vector of each row, and turned round: a vector of the threads for each turn. [`crate::backend::host::plan::vector::transpose`] finds it.
#[derive(Clone, Debug)]
pub(crate) struct Walked {
    /// What the loop counts by. There is a turn left.
    pub counter: LocalId,
    /// Up to what; no turn changes it.
    pub limit: ExprId,
    /// Up to what each thread does, if not all have the same turns.
    pub own_limit: Option<ExprId>,
    /// What turns put back, if not all threads have the same: it stays what it was in a thread's last turn.
    pub kept: Vec<LocalId>,
    /// Without a body: what a thread computes of locals before it can tell its addresses.
    pub rows: Segment,
    /// What is loaded ahead.
    pub loads: Vec<WalkedLoad>,
    /// What is stored behind the turns.
    pub stores: Vec<WalkedStore>,
    /// What must not be one memory: where it is, a turn is taken as it stands.
    pub clashes: Vec<Clash>,
    /// Loads of one element for all threads, and the same as each turn makes it once, ahead of them.
    pub once: Vec<(ExprId, ExprId)>,
    /// Where the counter is one of these for a thread, it does not load everything, and a turn is taken as it stands.
    pub apart: Vec<ExprId>,
    /// A turn does nothing that a thread could not do which is not there, but for its loads and stores that stand here: it need not be
    /// asked.
    pub unasked: bool,
    /// A turn, without its test.
    pub nodes: Vec<Node>,
    /// The same where everyone loads everything, without branches that ask for that.
    pub plain: Vec<Node>,
    /// Between two turns.
    pub step: Vec<Node>,
}

/// An element of a row that each turn loads, the next one in the next turn.
#[derive(Clone, Debug)]
pub(crate) struct WalkedLoad {
    /// The loads.
    pub loads: Vec<ExprId>,
    /// Where the next turn loads from.
    pub pointer: ExprId,
    /// That is as far from thread to thread.
    pub even: bool,
}

/// An element of a row that each turn stores, the next one in the next turn.
#[derive(Clone, Debug)]
pub(crate) struct WalkedStore {
    /// The pointers of the stores in [`Walked::plain`], which no other expression there is or has.
    pub pointers: Vec<ExprId>,
    /// Loads of what was stored in the same turn.
    pub reads: Vec<ExprId>,
    /// Where the next turn stores to.
    pub pointer: ExprId,
    /// That is as far from thread to thread.
    pub even: bool,
}

/// Two pointers of a thread, which clash if the second is more than so many bytes and less than so many bytes behind the first: then
/// several turns at once were not the same as one after the other.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clash {
    /// One of them.
    pub first: ExprId,
    /// The other.
    pub second: ExprId,
    /// More than so many bytes.
    pub from: i64,
    /// Less than so many bytes.
    pub to: i64,
}

/// Statements without a barrier, run for one thread after the other.
///
/// [`crate::backend::host::plan::regions::form`] fills the first part; [`crate::backend::host::plan::regions::context`] and [`crate::backend::host::plan::domain::guards`] the second.
#[derive(Clone, Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
pub(crate) struct Segment {
    /// The statements.
    pub body: Block,
    /// Only these threads run it; all if `None`.
    pub active: Option<MaskId>,
    /// Masks that a thread leaves by `Return`.
    pub on_return: Vec<MaskId>,
    /// Masks that a thread leaves by `Break`.
    pub on_break: Vec<MaskId>,
    /// Masks that a thread leaves by `Continue`.
    pub on_continue: Vec<MaskId>,
    /// For whom it runs.
    pub runs: Runs,
    /// It stands in a lifted loop, so that it may run again for the same thread.
    pub repeats: bool,

    /// Every local of a thread's own that the segment mentions: each has a place while it runs.
    pub locals: Vec<LocalId>,
    /// Fixed locals to compute again first, in this order.
    pub recompute: Vec<LocalId>,
    /// Crossing locals to fetch first.
    pub load: Vec<LocalId>,
    /// Crossing locals to put back last.
    pub store: Vec<LocalId>,
    /// In strips: which of the threads that are here run it.
    pub some: Option<Guard>,
    /// In strips: the largest of what some threads compute becomes a local of the block, and that is all.
    pub largest: Option<(LocalId, ExprId)>,
    /// In strips that are vectors: it is nothing to make vectors of, and is run for one thread after the other.
    pub alone: bool,
    /// Which threads have anything to do, where that can be said before they start. [`crate::backend::host::plan::regions::form`] gives it the
    /// guards around the segment.
    pub guard: Option<Guard>,
    /// Its threads may be run side by side: nothing orders them, and they share no memory but the program's own.
    pub parallel: bool,
    /// What the threads load in a later turn, which may be asked for ahead of it; [`crate::backend::host::plan::prefetch::next_stride`] finds it.
    pub ahead: Vec<Ahead>,
    /// What the threads load in the next turn of the block's loop around them; [`crate::backend::host::plan::prefetch::next_iteration`] finds it.
    pub next: Vec<Next>,
    /// What threads do that are near no border; [`crate::backend::host::plan::domain::interior`] finds it.
    pub interior: Option<Interior>,
    /// Of sanitized code: shared arrays of which no read races; [`crate::backend::host::plan::sanitize::race_free`] finds them.
    pub settled: Vec<SharedId>,
    /// Which threads of those that the guard lets through do nothing: those on either side of them run the body.
    pub outside: Option<Guard>,
    /// What threads do that look at partners; [`crate::backend::host::plan::domain::xor_partner`] finds it.
    pub partners: Option<Partners>,
    /// What every so many threads do, where that is all; [`crate::backend::host::plan::domain::residue`] finds it.
    pub every: Option<Every>,
    /// What the threads do up to one of them, where that is all; [`crate::backend::host::plan::domain::scaled`] finds it.
    pub multiples: Option<Multiples>,
    /// Its threads store elements that lie apart by a number that is not known: no vectors are made of them.
    pub scatters: bool,
}

/// For whom a segment runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Runs {
    /// For each thread that is here.
    #[default]
    EachThread,
    /// Once a warp, for the number of its first thread, whoever of the warp is here: it has neither mask nor guard.
    Warps,
    /// Once for the threads of a row whose `threadIdx.x` is the same but for the lowest five bits; they get what it puts
    /// back. It has no mask.
    Groups,
    /// For the first of each of these groups at most.
    FirstOfGroups,
    /// For the first lane of each warp at most.
    FirstLanes,
    /// For one thread of a row at most, as its guard will say.
    OneThread,
}

/// What threads do whose partner's number differs in one bit.
#[derive(Clone, Debug)]
pub(crate) struct Partners {
    /// One range, whose value is the thread's own number, and whose bound is the bit.
    pub sides: Guard,
    /// Where the bit is clear.
    pub lower: Interior,
    /// Where it is set.
    pub upper: Interior,
}

/// What every so many threads do.
#[derive(Clone, Debug)]
pub(crate) struct Every {
    /// A range, whose value is divided, and whose bound is what must be left; a second one's bound is the modulus, where that
    /// is not a constant.
    pub of: Guard,
    /// The constant modulus.
    pub modulus: Option<i64>,
    /// The modulus is 2, and the other remainder is meant.
    pub other: bool,
    /// The body without the condition, and who of these threads runs it.
    pub part: Interior,
}

/// What the threads do whose indices grow by more than one from thread to thread.
#[derive(Clone, Debug)]
pub(crate) struct Multiples {
    /// Two ranges for each index: the value of the row's first thread and what it is compared with, and by how much it grows from thread
    /// to thread.
    pub of: Guard,
    /// So many of them are bounds, for positive growth: each holds for the threads up to one of them, or from it on. The others are
    /// not negative for those threads.
    pub bounds: usize,
    /// The body without the condition and for indices that are not negative, and who of these threads runs it.
    pub part: Interior,
}

/// What a row of threads loads, next to each other, and how many elements later it does so in the next turn.
#[derive(Clone, Debug)]
pub(crate) struct Ahead {
    /// The address of a thread's element.
    pub pointer: ExprId,
    /// The distance; `I64`, the same for all threads.
    pub step: ExprId,
    /// Locals that the address reads, to be computed first, in this order.
    pub before: Vec<(LocalId, ExprId)>,
}

/// What a row of threads loads, next to each other, in the next turn of a loop that all threads of the block take together.
#[derive(Clone, Debug)]
pub(crate) struct Next {
    /// The address of a thread's element.
    pub pointer: ExprId,
    /// Bytes of an element.
    pub size: u64,
    /// What locals that it reads are in the next turn, each worked out with those before it.
    pub values: Vec<(LocalId, ExprId)>,
    /// Strips behind the segment ask for it, where rows have the length that they seem to have.
    pub by_strips: bool,
}

/// What the threads do that are near no border.
#[derive(Clone, Debug)]
pub(crate) struct Interior {
    /// Which threads these are, of those that the segment's guard lets through.
    pub guard: Guard,
    /// The segment's body without what does nothing for them.
    pub body: Block,
}

/// The cut body.
#[derive(Debug)]
pub(crate) struct Cut {
    /// What to do.
    pub nodes: Vec<Node>,
    /// How many masks there are.
    pub masks: u32,
    /// The mask of threads that have not returned, set when the block begins.
    pub alive: Option<MaskId>,
}

/// Which threads of a row run.
#[derive(Clone, Debug, Default)]
pub(crate) struct Guard {
    /// Fixed locals that the other fields read, in the order in which they are to be computed.
    pub recompute: Vec<LocalId>,
    /// Conditions on the row, and whether each must be false instead of true.
    pub rows: Vec<(ExprId, bool)>,
    /// Bounds of the row.
    pub ranges: Vec<Range>,
}

impl Guard {
    /// `true` if both let the same threads through, for the same reasons.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        self.rows == other.rows && self.ranges == other.ranges
    }

    /// `true` if it lets all threads through.
    pub(crate) fn is_empty(&self) -> bool {
        self.rows.is_empty() && self.ranges.is_empty()
    }

    /// `true` if it lets no more than one thread of a row through.
    pub(crate) fn names_one(&self) -> bool {
        self.ranges.iter().any(|range| range.op == CompareOp::Eq && range.times == 1)
    }

    /// What it asks for after what another one does with which it begins.
    pub(crate) fn after(&self, first: &Self) -> Option<Self> {
        let rows = self.rows.strip_prefix(first.rows.as_slice())?.to_vec();
        let ranges = self.ranges.strip_prefix(first.ranges.as_slice())?.to_vec();
        Some(Self { recompute: self.recompute.clone(), rows, ranges })
    }

    /// Lets only those through that another one lets through too.
    pub(crate) fn add(&mut self, other: &Self) {
        self.rows.extend(&other.rows);
        self.ranges.extend(&other.ranges);
    }
}

/// `value op bound * times + plus`, where `value` grows by one from thread to thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Range {
    /// The left side; `I32` or `I64`.
    pub value: ExprId,
    /// Any but `Ne`.
    pub op: CompareOp,
    /// The right side, of the same type; the same for the whole row.
    pub bound: ExprId,
    /// So often. The product is no larger than an integer.
    pub times: i64,
    /// And so much more, less than `times`.
    pub plus: i64,
    /// The value may pass the largest integer within a row, and go on from the smallest.
    pub wraps: bool,
}

/// The parts of a condition.
#[derive(Debug, Default)]
pub(crate) struct Parts {
    /// Those that a row can be asked about before it starts.
    pub guard: Guard,
    /// The others, and whether each must be false instead of true.
    pub residual: Vec<(ExprId, bool)>,
}

impl Node {
    /// The nodes inside, if there are some.
    pub(crate) fn parts(&self) -> [&[Self]; 2] {
        match self {
            Self::If { then: first, otherwise: second, .. }
            | Self::Split { then: first, otherwise: second, .. }
            | Self::Loop { body: first, step: second, .. } => [first, second],
            Self::Guarded { inside, .. } => [inside, &[]],
            Self::Strips(strips) => [&strips.nodes, &[]],
            Self::Walked(walked) => [&walked.nodes, &walked.step],
            Self::Segment(_) | Self::Once { .. } | Self::Barrier | Self::Break | Self::Continue | Self::Return => {
                [&[], &[]]
            }
        }
    }

    pub(crate) fn parts_mut(&mut self) -> [&mut [Self]; 2] {
        match self {
            Self::If { then: first, otherwise: second, .. }
            | Self::Split { then: first, otherwise: second, .. }
            | Self::Loop { body: first, step: second, .. } => [first, second],
            Self::Guarded { inside, .. } => [inside, &mut []],
            Self::Strips(strips) => [&mut strips.nodes, &mut []],
            Self::Walked(walked) => [&mut walked.nodes, &mut walked.step],
            Self::Segment(_) | Self::Once { .. } | Self::Barrier | Self::Break | Self::Continue | Self::Return => {
                [&mut [], &mut []]
            }
        }
    }
}

/// Calls `visit` on every segment.
pub(crate) fn for_each_segment(nodes: &mut [Node], visit: &mut dyn FnMut(&mut Segment)) {
    for node in nodes {
        if let Node::Segment(segment) = node {
            visit(segment);
        }
        for part in node.parts_mut() {
            for_each_segment(part, visit);
        }
    }
}

/// Calls `visit` on every guard but those of segments.
pub(crate) fn for_each_guard(nodes: &mut [Node], visit: &mut dyn FnMut(&mut Guard)) {
    for node in nodes {
        if let Node::Split { guard: Some(guard), .. }
        | Node::Once { guard: Some(guard), .. }
        | Node::Loop { guard: Some(guard), .. }
        | Node::Guarded { guard, .. } = node
        {
            visit(guard);
        }
        if let Node::Strips(strips) = node {
            strips.guard.iter_mut().for_each(&mut *visit);
        }
        for part in node.parts_mut() {
            for_each_guard(part, visit);
        }
    }
}

/// Calls `visit` on the condition of every [`Node::Split`].
pub(crate) fn for_each_split(nodes: &[Node], visit: &mut dyn FnMut(LocalId)) {
    for node in nodes {
        if let Node::Split { cond, .. } = node {
            visit(*cond);
        }
        for part in node.parts() {
            for_each_split(part, visit);
        }
    }
}
