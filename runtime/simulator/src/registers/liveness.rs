//! Which registers are live in each basic block.

use std::ops::Range;

use crate::decode::{self, Bank, Function, Reg};

/// A set of registers.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Set(Vec<u64>);

impl Set {
    fn new(count: usize) -> Self {
        Self(vec![0; count.div_ceil(64)])
    }

    pub(super) fn contains(&self, value: usize) -> bool {
        self.0[value / 64] >> (value % 64) & 1 != 0
    }

    /// Whether the value is new.
    pub(super) fn insert(&mut self, value: usize) -> bool {
        let is_new = !self.contains(value);
        self.0[value / 64] |= 1 << (value % 64);
        is_new
    }

    /// Whether the value was in the set.
    pub(super) fn remove(&mut self, value: usize) -> bool {
        let is_in = self.contains(value);
        self.0[value / 64] &= !(1 << (value % 64));
        is_in
    }

    fn extend(&mut self, other: &Self) {
        self.0.iter_mut().zip(&other.0).for_each(|(own, other)| *own |= other);
    }
}

/// The values that an instruction reads and writes.
#[derive(Default)]
pub(super) struct Uses {
    pub(super) reads: Vec<usize>,
    pub(super) writes: Vec<usize>,
    /// The values that it writes have no older value afterwards: it has no guard.
    pub(super) replaces: bool,
}

/// The live registers of a function. A value is the number of a register over all banks.
pub(super) struct Liveness {
    words: usize,
    longs: usize,
    /// The number of values.
    pub(super) count: usize,
    pub(super) uses: Vec<Uses>,
    blocks: Vec<Range<usize>>,
    pub(super) successors: Vec<Vec<usize>>,
    /// The values that are live before a block.
    before: Vec<Set>,
}

impl Liveness {
    /// Computes the live registers of a function.
    pub(super) fn of(function: &Function) -> Self {
        let n = function.blocks.len();
        let (words, longs) = (function.words as usize, function.longs as usize);
        let count = words + longs + function.predicates as usize;
        let mut liveness = Self {
            words,
            longs,
            count,
            uses: Vec::new(),
            blocks: function.blocks.iter().map(|block| block.start as usize..block.end as usize).collect(),
            successors: (0..n).map(|block| decode::successors(function, block, n)).collect(),
            before: vec![Set::new(count); n],
        };
        for instruction in &function.instructions {
            let mut uses = Uses { replaces: instruction.guard.is_none(), ..Uses::default() };
            decode::for_each_register(&instruction.operation, &mut |is_write, bank, register| {
                let list = if is_write { &mut uses.writes } else { &mut uses.reads };
                list.push(liveness.value(bank, register));
            });
            uses.reads.extend(instruction.guard.map(|guard| liveness.value(Bank::Predicate, guard.p)));
            liveness.uses.push(uses);
        }
        let mut changed = true;
        while changed {
            changed = false;
            for block in (0..n).rev() {
                let mut live = liveness.after(block);
                for at in liveness.instructions(block).rev() {
                    let uses = &liveness.uses[at];
                    for value in uses.writes.iter().filter(|_| uses.replaces) {
                        live.remove(*value);
                    }
                    for value in &uses.reads {
                        live.insert(*value);
                    }
                }
                if liveness.before[block] != live {
                    liveness.before[block] = live;
                    changed = true;
                }
            }
        }
        liveness
    }

    /// The value of a register.
    pub(super) fn value(&self, bank: Bank, register: Reg) -> usize {
        let first = match bank {
            Bank::Word => 0,
            Bank::Long => self.words,
            Bank::Predicate => self.words + self.longs,
        };
        first + register as usize
    }

    /// The bank of a value.
    pub(super) fn bank(&self, value: usize) -> Bank {
        if value < self.words {
            Bank::Word
        } else if value < self.words + self.longs {
            Bank::Long
        } else {
            Bank::Predicate
        }
    }

    /// The instructions of a block.
    pub(super) fn instructions(&self, block: usize) -> Range<usize> {
        self.blocks[block].clone()
    }

    /// The values that are live after a block.
    pub(super) fn after(&self, block: usize) -> Set {
        let mut live = Set::new(self.count);
        // The end of the function is a successor without a block.
        for before in self.successors[block].iter().filter_map(|next| self.before.get(*next)) {
            live.extend(before);
        }
        live
    }
}
