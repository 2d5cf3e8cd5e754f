//! Matrices in shared memory that products of a warpgroup read. A copy may overwrite them only if its thread knows that the
//! product is complete.
//!
//! One thread of a warpgroup may arrive at a barrier for all of them. So a product is complete for the whole warpgroup where
//! one of its warps has it: a vector clock has the number of complete products of a warpgroup as the time of a thread that
//! does not exist.

use std::sync::Arc;

use super::{
    clock::{Vector, WARP, join},
    finding::{Finding, triple},
    launch::{Launch, LiveThread},
    phases::{PHASES, Range},
    record::Spot,
    shadow::ByNumber,
};

/// The warps of a warpgroup.
const WARPS: usize = 4;

/// What a warp has read for a product.
#[derive(Clone, Debug)]
struct Read {
    warp: usize,
    /// The number of the product among those of its warpgroup.
    number: u32,
    /// Disjoint and ascending.
    ranges: Vec<Range>,
    by: (Spot, usize),
}

/// The products of a block.
#[derive(Debug, Default)]
pub(super) struct Products {
    reads: Vec<Read>,
    /// The number of products of each warp.
    counts: ByNumber<usize, u32>,
}

impl Products {
    pub(super) fn clear(&mut self) {
        self.reads.clear();
        self.counts.clear();
    }
}

/// The thread that stands for the warpgroup of a warp, in the block in a slot.
fn id(slot: usize, warp: usize) -> (u32, u16) {
    (u32::MAX - slot as u32, (warp / WARPS) as u16)
}

/// The union of ranges.
fn union(ranges: &[Range]) -> Vec<Range> {
    let mut sorted = ranges.to_vec();
    sorted.sort_unstable();
    let mut found: Vec<Range> = Vec::new();
    for (start, bytes) in sorted {
        match found.last_mut() {
            Some((first, length)) if start <= *first + *length => *length = (*length).max(start + bytes - *first),
            Some(_) | None => found.push((start, bytes)),
        }
    }
    found
}

impl Launch {
    /// A warp has read ranges of shared memory for its rows of a product.
    pub(super) fn record_product(&mut self, caller: LiveThread, spot: Spot, ranges: &[Range]) {
        let number = self.number(caller.slot);
        let Some(block) = self.blocks.get_mut(caller.slot) else { return };
        let warp = caller.thread / WARP;
        let count = block.products.counts.entry(warp).or_default();
        *count += 1;
        let (count, ranges) = (*count, union(ranges));
        // What is read again is free after the last product that reads it.
        block.products.reads.retain(|read| read.warp != warp || read.ranges != ranges);
        block.products.reads.push(Read { warp, number: count, ranges, by: (spot, caller.thread) });
        let mut vector = Vector::default();
        vector.add_thread(id(caller.slot, warp), (PHASES, count));
        let vector = Arc::new(vector);
        for (lane, thread) in block.threads.iter_mut().enumerate().skip(warp * WARP).take(WARP) {
            join(&mut thread.known, &vector);
            thread.see(number, lane);
        }
    }

    /// A copy begins to overwrite a range of the shared memory of the block in the slot `owner`.
    pub(super) fn check_products(&mut self, caller: LiveThread, owner: usize, spot: Spot, (start, bytes): Range) {
        let known = self.thread(caller).and_then(|thread| thread.known.clone());
        let Some(block) = self.blocks.get_mut(owner) else { return };
        let (mut reads, mut unknown) = (Vec::new(), Vec::new());
        for read in std::mem::take(&mut block.products.reads) {
            if !read.ranges.iter().any(|(first, length)| *first < start + bytes && start < *first + *length) {
                reads.push(read);
                continue;
            }
            let time = (PHASES, read.number);
            let logs = &self.released;
            if !known.as_ref().is_some_and(|known| known.knows(logs, id(owner, read.warp), time)) {
                unknown.push(read);
            }
        }
        block.products.reads = reads;
        for Read { by: (by, thread), .. } in unknown {
            let reader = LiveThread { slot: owner, thread };
            let (Some(copy), Some(product)) =
                (self.location(caller, spot, Some(start)), self.location(reader, by, None))
            else {
                continue;
            };
            let message = format!(
                "thread {} of block {} copies over a matrix, before it knows that the product by the warpgroup of thread \
                 {} has read it",
                triple(copy.thread),
                triple(copy.block),
                triple(product.thread),
            );
            let kernel = self.plan.kernel.clone();
            self.findings.add("product", &[&copy.site.clone(), &product.site.clone()], || Finding {
                tool: "racecheck",
                kind: "copy over a matrix",
                kernel,
                message,
                help: "let a thread of the warpgroup arrive at a barrier after the product, and wait for its phase before \
                       the copy"
                    .to_owned(),
                count: 1,
                accesses: vec![copy, product],
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::union;

    #[test]
    fn adjacent_ranges_are_one() {
        assert_eq!(union(&[(8, 4), (0, 4), (4, 4), (16, 2), (16, 4), (32, 1)]), [(0, 12), (16, 4), (32, 1)]);
    }
}
