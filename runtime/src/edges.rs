//! The dependency edges of a recorded graph. Nodes of one stream run in order, and events order nodes of different
//! streams.
//!
//! The default stream is CUDA's legacy one: its nodes run after everything recorded before, and all later nodes run
//! after them. (CUDA driver API, "Stream synchronization behavior".) Here this holds for every other stream, including
//! non-blocking streams of other libraries.

use std::collections::BTreeMap;

/// The default stream's number: see `Stream::order`.
const DEFAULT: u64 = 0;

/// The predecessors of the next node of each stream. Nodes are numbered from 0.
#[derive(Debug, Default)]
pub struct Edges {
    n_steps: usize,
    /// The predecessors for streams that were not used since the default stream's last node or event.
    base: Vec<usize>,
    /// The predecessors for each stream that was used since. All of these run after `base`.
    streams: BTreeMap<u64, Vec<usize>>,
    /// The predecessors of each event.
    events: BTreeMap<usize, Vec<usize>>,
}

impl Edges {
    /// Adds a node to a stream. Returns its direct predecessors without duplicates, in ascending order.
    pub fn step(&mut self, stream: u64) -> Vec<usize> {
        let predecessors = self.last(stream);
        self.set(stream, vec![self.n_steps]);
        self.n_steps += 1;
        predecessors
    }

    /// Records an event, identified by a number, after the current work of a stream.
    pub fn record(&mut self, event: usize, stream: u64) {
        let last = self.last(stream);
        self.events.insert(event, last.clone());
        // An event in the default stream synchronizes with all other streams in both directions.
        self.set(stream, last);
    }

    /// Orders the later nodes of a stream after an event. Returns `false` if the event was not recorded.
    pub fn wait(&mut self, event: usize, stream: u64) -> bool {
        let Some(recorded) = self.events.get(&event) else { return false };
        let both = merged([recorded, &self.last(stream)]);
        self.set(stream, both);
        true
    }

    /// The predecessors of the next node of a stream.
    fn last(&self, stream: u64) -> Vec<usize> {
        if stream == DEFAULT && !self.streams.is_empty() {
            return merged(self.streams.values());
        }
        self.streams.get(&stream).unwrap_or(&self.base).clone()
    }

    fn set(&mut self, stream: u64, last: Vec<usize>) {
        if stream == DEFAULT {
            self.streams.clear();
            self.base = last;
        } else {
            self.streams.insert(stream, last);
        }
    }
}

fn merged<'a>(of: impl IntoIterator<Item = &'a Vec<usize>>) -> Vec<usize> {
    let mut all: Vec<usize> = of.into_iter().flatten().copied().collect();
    all.sort_unstable();
    all.dedup();
    all
}

#[cfg(test)]
mod tests {
    use super::{DEFAULT, Edges};

    #[test]
    fn one_stream_is_a_chain() {
        for stream in [DEFAULT, 7] {
            let mut edges = Edges::default();
            let predecessors: Vec<_> = (0..4).map(|_| edges.step(stream)).collect();
            assert_eq!(predecessors, [vec![], vec![0], vec![1], vec![2]]);
        }
    }

    #[test]
    fn streams_are_branches() {
        let mut edges = Edges::default();
        let predecessors: Vec<_> = [5, 6, 5, 6].into_iter().map(|stream| edges.step(stream)).collect();
        assert_eq!(predecessors, [vec![], vec![], vec![0], vec![1]]);
    }

    #[test]
    fn the_default_stream_comes_between_all() {
        let mut edges = Edges::default();
        let predecessors: Vec<_> = [0, 5, 6, 6, 0, 0, 7, 5].into_iter().map(|stream| edges.step(stream)).collect();
        assert_eq!(predecessors, [vec![], vec![0], vec![0], vec![2], vec![1, 3], vec![4], vec![5], vec![5]]);
    }

    #[test]
    fn events_carry_steps_from_stream_to_stream() {
        let mut edges = Edges::default();
        assert!(!edges.wait(1, 5));
        edges.step(5);
        edges.record(1, 5);
        edges.step(5);
        edges.step(6);
        assert!(edges.wait(1, 6));
        assert!(edges.wait(1, 6));
        assert_eq!(edges.step(6), [0, 2]);
        assert_eq!(edges.step(7), []);
        // Recording the event again replaces the earlier record.
        edges.record(1, 7);
        assert!(edges.wait(1, 8));
        assert_eq!(edges.step(8), [4]);
        assert_eq!(edges.step(5), [1]);
    }

    #[test]
    fn an_event_of_nothing_waits_for_nothing() {
        let mut edges = Edges::default();
        edges.record(1, 5);
        assert!(edges.wait(1, 6));
        assert_eq!(edges.step(6), []);
    }

    #[test]
    fn events_in_the_default_stream_wait_for_all() {
        let mut edges = Edges::default();
        edges.step(5);
        edges.step(6);
        edges.record(1, DEFAULT);
        assert_eq!(edges.step(7), [0, 1]);
        let mut edges = Edges::default();
        edges.step(5);
        edges.record(1, 5);
        edges.step(6);
        assert!(edges.wait(1, DEFAULT));
        assert_eq!(edges.step(7), [0, 1]);
    }

    /// Checks CUDA's ordering rules for every pair of nodes in random recordings.
    #[test]
    fn all_that_cuda_orders_is_ordered() {
        let mut seed = 1_u64;
        let mut random = |below: u64| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (seed >> 33) % below
        };
        for _ in 0..200 {
            let mut edges = Edges::default();
            // The transitive predecessors of each node, and those of streams and events, as sets.
            let mut before: Vec<Vec<bool>> = Vec::new();
            let mut streams = vec![vec![false; 40]; 4];
            let mut events: Vec<Option<Vec<bool>>> = vec![None; 3];
            let join = |one: &mut Vec<bool>, other: &[bool]| one.iter_mut().zip(other).for_each(|(a, b)| *a |= b);
            for _ in 0..40 {
                let (what, stream, event) = (random(4), random(4), random(3) as usize);
                if what == 3 && events[event].is_none() {
                    assert!(!edges.wait(event, stream));
                    continue;
                }
                // A node or event in the default stream runs after all streams, and they run after it.
                if stream == DEFAULT {
                    let all = streams.clone();
                    for each in &all {
                        join(&mut streams[0], each);
                    }
                }
                if what <= 1 {
                    let predecessors = edges.step(stream);
                    let mut reached = vec![false; 40];
                    for step in predecessors {
                        reached[step] = true;
                        join(&mut reached, &before[step].clone());
                    }
                    for (step, must) in streams[stream as usize].iter().enumerate() {
                        assert!(!must || reached[step], "step {} is not ordered after {step}", before.len());
                    }
                    streams[stream as usize][before.len()] = true;
                    before.push(reached);
                } else if what != 3 {
                    edges.record(event, stream);
                    events[event] = Some(streams[stream as usize].clone());
                } else {
                    assert!(edges.wait(event, stream));
                    if let Some(recorded) = &events[event] {
                        join(&mut streams[stream as usize], recorded);
                    }
                }
                if stream == DEFAULT {
                    let default = streams[0].clone();
                    for each in &mut streams {
                        join(each, &default);
                    }
                }
            }
        }
    }
}
