//! Chains of calls, each known by a number: 0 is the kernel itself.

use std::collections::HashMap;

/// The most chains with numbers; threads in others are taken to be in the chain that they came from.
const MOST: u32 = (1 << 14) - 1;

/// All chains that threads were in.
#[derive(Debug, Default)]
pub(super) struct Calls {
    /// Of each but the kernel: the chain that it came from, and the site of its last call.
    all: Vec<(u32, u32)>,
    known: HashMap<(u32, u32), u32>,
}

/// Where a thread is in them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Depth {
    /// The chain.
    pub(super) chain: u32,
    /// Calls that have no number.
    further: u32,
}

impl Calls {
    /// A thread calls a function at a site.
    pub(super) fn enter(&mut self, depth: &mut Depth, site: u32) {
        let next = self.all.len() as u32 + 1;
        let known = self.known.get(&(depth.chain, site)).copied();
        match known.or((next <= MOST).then_some(next)).filter(|_| depth.further == 0) {
            Some(chain) => {
                if known.is_none() {
                    self.all.push((depth.chain, site));
                    self.known.insert((depth.chain, site), chain);
                }
                depth.chain = chain;
            }
            None => depth.further += 1,
        }
    }

    /// It has come back.
    pub(super) fn leave(&self, depth: &mut Depth) {
        if depth.further > 0 {
            depth.further -= 1;
        } else if let Some(&(from, _)) = (depth.chain as usize).checked_sub(1).and_then(|at| self.all.get(at)) {
            depth.chain = from;
        }
    }

    /// The sites of a chain's calls, the last one first.
    pub(super) fn sites(&self, mut chain: u32) -> Vec<u32> {
        let mut sites = Vec::new();
        while let Some(&(from, site)) = (chain as usize).checked_sub(1).and_then(|at| self.all.get(at)) {
            sites.push(site);
            chain = from;
        }
        sites
    }
}

#[cfg(test)]
mod tests {
    use super::{Calls, Depth, MOST};

    #[test]
    fn chains_have_numbers() {
        let (mut calls, mut depth) = (Calls::default(), Depth::default());
        calls.enter(&mut depth, 7);
        calls.enter(&mut depth, 9);
        let inner = depth.chain;
        assert_eq!(calls.sites(inner), [9, 7]);
        calls.leave(&mut depth);
        calls.leave(&mut depth);
        assert_eq!(depth, Depth::default());
        calls.enter(&mut depth, 7);
        calls.enter(&mut depth, 9);
        assert_eq!(depth.chain, inner);
        assert!(calls.sites(0).is_empty());
    }

    #[test]
    fn those_beyond_are_counted() {
        let (mut calls, mut depth) = (Calls::default(), Depth::default());
        for _ in 0..MOST + 5 {
            calls.enter(&mut depth, 1);
        }
        assert_eq!((depth.chain, depth.further), (MOST, 5));
        for _ in 0..MOST + 5 {
            calls.leave(&mut depth);
        }
        assert_eq!(depth, Depth::default());
    }
}
