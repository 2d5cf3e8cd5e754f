//! Advice for a race: a way to order every pair of accesses of one finding.

use std::collections::BTreeSet;

use weft_artifact::{Site, SiteKind, Update};

use super::{launch::Launch, record::Spot};

/// The most different pairs that a finding stores. Advice for more of them is general.
const MOST_PAIRS: usize = 64;

/// The relation between the threads of two accesses, from near to far.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Among {
    /// Lanes of a warp.
    Warp,
    /// Threads of a block, in different warps.
    Block,
    /// Threads of different blocks.
    Grid,
}

impl Among {
    /// The name of a race between them.
    pub(super) const fn race(self) -> &'static str {
        match self {
            Self::Warp => "race within a warp",
            Self::Block => "race within a block",
            Self::Grid => "race between blocks",
        }
    }
}

/// An access's effect on the element.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Does {
    Read,
    Write,
    Atomic,
}

/// An access of a race.
pub(super) type End = (Spot, Does);

/// The pairs of accesses that one finding stands for.
#[derive(Clone, Debug)]
pub(super) struct Pairs {
    /// The farthest of all pairs.
    pub(super) among: Among,
    /// Some pair writes something else than was there.
    pub(super) changes: bool,
    all: BTreeSet<(End, End)>,
    /// There are more than were remembered.
    more: bool,
}

impl Pairs {
    pub(super) fn of(among: Among, changes: bool, pair: (End, End)) -> Self {
        Self { among, changes, all: BTreeSet::from([sorted(pair)]), more: false }
    }

    /// The name of the finding.
    pub(super) const fn kind(&self) -> &'static str {
        if self.changes { self.among.race() } else { "benign race" }
    }

    /// Whether this is to be shown instead of another one: it changes something, or its threads are less closely
    /// related.
    pub(super) fn is_worse(&self, other: &Self) -> bool {
        (self.changes, self.among) > (other.changes, other.among)
    }

    pub(super) fn add(&mut self, other: Self) {
        self.among = self.among.max(other.among);
        self.changes |= other.changes;
        self.more |= other.more;
        for pair in other.all {
            if self.all.len() < MOST_PAIRS {
                self.all.insert(pair);
            } else {
                self.more |= !self.all.contains(&pair);
            }
        }
    }
}

fn sorted((a, b): (End, End)) -> (End, End) {
    if b < a { (b, a) } else { (a, b) }
}

impl Launch {
    /// Advice that orders all pairs of a finding.
    pub(super) fn advice(&self, pairs: &Pairs) -> String {
        let all = |is: &dyn Fn(Does) -> bool| pairs.all.iter().all(|&((_, a), (_, b))| is(a) && is(b));
        if !pairs.changes {
            return "the threads write the same value: let one of them write it".to_owned();
        }
        if all(&|does| does == Does::Atomic) {
            return "an operation with `scope=\"block\"` is atomic among the threads of its block only: \
                    use `scope=\"device\"`"
                .to_owned();
        }
        if let Some(help) = self.for_updates(pairs) {
            return help;
        }
        let barrier = match pairs.among {
            Among::Grid if all(&|does| does == Does::Write) => {
                return "blocks run in any order, and `cuda.syncthreads()` does not order them: let one thread write each \
                        element, or combine the values with a `cuda.atomic` operation"
                    .to_owned();
            }
            Among::Grid => {
                return "blocks run in any order, and `cuda.syncthreads()` does not order them: write in one launch and read in \
                        the next, or use a `cuda.atomic` operation for both accesses"
                    .to_owned();
            }
            Among::Block => "cuda.syncthreads()",
            Among::Warp => "cuda.syncwarp()",
        };
        let each: BTreeSet<String> = pairs.all.iter().filter_map(|&pair| self.for_pair(pair, barrier)).collect();
        let help = match each.into_iter().collect::<Vec<_>>().as_slice() {
            [one] if !pairs.more => one.clone(),
            _ => format!("let each thread write elements of its own, and put a `{barrier}` between reads and writes"),
        };
        match pairs.among {
            Among::Warp => format!("{help}; shuffles and votes order no memory"),
            Among::Block | Among::Grid => help,
        }
    }

    /// The advice where every access is one of a statement that reads and writes the element, or an atomic operation.
    fn for_updates(&self, pairs: &Pairs) -> Option<String> {
        if pairs.more {
            return None;
        }
        let mut updates: Vec<&Update> = Vec::new();
        for (spot, does) in pairs.all.iter().flat_map(|&(a, b)| [a, b]) {
            match &self.site(spot.site())?.update {
                Some(update) if !updates.contains(&update) => updates.push(update),
                Some(_) => {}
                None if does == Does::Atomic => {}
                None => return None,
            }
        }
        let (first, others) = updates.split_first()?;
        // Different operations may occur in any order, with different results: that is hardly intended.
        if others.iter().any(|update| update.operation != first.operation) {
            return None;
        }
        let listed = |of: &dyn Fn(&Update) -> String| -> String {
            updates.iter().map(|update| format!("`{}`", of(update))).collect::<Vec<_>>().join(" and ")
        };
        let what = match others {
            [] => format!("`{}` is a read and a write", first.statement),
            _ => format!("{} are reads and writes", listed(&|update| update.statement.clone())),
        };
        if first.operation.is_empty() {
            let element = &first.element;
            return Some(format!(
                "{what}, and `cuda.atomic` has no operation that does both: let one thread do it, or write a loop with \
                 `cuda.atomic.cas({element}, …, …)`"
            ));
        }
        let calls = listed(&|update| format!("cuda.atomic.{}({}, …)", update.operation, update.element));
        Some(format!("{what}: use {calls}"))
    }

    /// Advice that orders two accesses within a block; `None` where nothing is known of them.
    fn for_pair(&self, ((a, does_a), (b, does_b)): (End, End), barrier: &str) -> Option<String> {
        let (calls_a, calls_b) = (self.frames(a), self.frames(b));
        let is_same = |(a, b): &(&&Site, &&Site)| (&a.file, a.line, a.column) == (&b.file, b.line, b.column);
        let common = calls_a.iter().zip(&calls_b).take_while(is_same).count();
        // In one function: the accesses themselves, or the calls that lead to them.
        let of = |frames: &[&'_ Site]| frames.get(common).or(frames.last()).map(|site| (*site).clone());
        let (a, b) = (of(&calls_a)?, of(&calls_b)?);
        let (first, last) = (a.line.min(b.line), a.line.max(b.line));
        let shared = a.loops.iter().zip(&b.loops).take_while(|(a, b)| a == b).last().map(|(line, _)| *line);
        let around = || calls_a.iter().take(common).rev().find_map(|call| call.loops.last().copied());
        let again = shared.or_else(around);
        let next = |barrier: &str| {
            again.map_or_else(String::new, |line| {
                format!(", and another `{barrier}` before the next iteration of the loop at line {line}")
            })
        };
        if a.file != b.file {
            return Some(format!("put a `{barrier}` between the two accesses{}", next(barrier)));
        }
        if first == last {
            if does_a != Does::Read && does_b != Does::Read {
                return Some(match again {
                    Some(line) => format!(
                        "let each thread write elements of its own; writes in different iterations of the loop at line \
                         {line} need a `{barrier}` in each iteration"
                    ),
                    None => {
                        "let each thread write elements of its own, or let one thread write: no barrier orders the \
                             writes of one statement"
                            .to_owned()
                    }
                });
            }
            return Some(format!(
                "read into a variable in line {first}, then `{barrier}`, then write{}",
                next(barrier)
            ));
        }
        let branch = a.branches.iter().zip(&b.branches).find(|(a, b)| a != b);
        if let Some((&(line, one), &(other, two))) = branch
            && line == other
            && one != two
        {
            return Some(format!(
                "lines {first} and {last} are in different branches of the `if` at line {line}: move one after it, with a \
                 `{barrier}` in between{}",
                next(barrier)
            ));
        }
        Some(match again {
            None => format!("a `{barrier}` between lines {first} and {last} would order them"),
            Some(_) => format!("they need a `{barrier}` between lines {first} and {last}{}", next(barrier)),
        })
    }

    /// The calls that led to an access, from the kernel's on, and the access; without weft's own functions.
    fn frames(&self, spot: Spot) -> Vec<&Site> {
        let mut sites: Vec<u32> = self.calls.sites(spot.chain());
        sites.reverse();
        sites.push(spot.site());
        sites.into_iter().filter_map(|site| self.site(site)).filter(|site| !site.is_own).collect()
    }
}

/// The effect of an access, by the kind of its site.
pub(super) const fn does(kind: SiteKind, writes: bool) -> Does {
    match kind {
        SiteKind::Atomic => Does::Atomic,
        SiteKind::Read if !writes => Does::Read,
        SiteKind::Read
        | SiteKind::Write
        | SiteKind::Barrier
        | SiteKind::Phase
        | SiteKind::WarpBarrier
        | SiteKind::GridBarrier
        | SiteKind::Shuffle
        | SiteKind::Vote
        | SiteKind::Match
        | SiteKind::WarpReduce
        | SiteKind::Multiply
        | SiteKind::End
        | SiteKind::Call => Does::Write,
    }
}
