//! A block: its warps, its shared memory and its barriers.

use crate::{
    error::Error,
    execute::{Arrival, Machine, Stop, Warp},
};

/// The number of barriers of a block.
const BARRIERS: usize = 16;

/// A barrier at which warps wait.
#[derive(Debug, Clone, Copy, Default)]
struct Barrier {
    /// Threads that have arrived: all those of their warps.
    threads: u32,
    /// Warps that have arrived.
    warps: u32,
    /// Lanes whose predicate holds, and lanes that have arrived.
    holds: u32,
    lanes: u32,
    expected: Option<u32>,
}

/// What a warp does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Ready,
    /// At the barrier with a number.
    Waits(usize),
    Done,
}

/// What a warp has done since the last barrier at which it waited.
#[derive(Debug, Clone, Copy, Default)]
struct Phase {
    instructions: u64,
    /// It may have waited for another thread, so the number of its instructions depends on the order of warps.
    polled: bool,
    /// The counter of the barrier at which it waits.
    counter: usize,
}

/// A block.
#[derive(Debug)]
pub(super) struct Block {
    warps: Vec<Warp>,
    states: Vec<State>,
    phases: Vec<Phase>,
    barriers: [Barrier; BARRIERS],
}

/// What the warps of a cluster have done since each of them ran last.
#[derive(Debug, Clone, Copy)]
pub(super) struct Round {
    /// All have ended.
    pub(super) is_done: bool,
    /// One has ended or arrived at a barrier.
    pub(super) progressed: bool,
    /// One has polled memory.
    pub(super) polls: bool,
}

impl Default for Round {
    fn default() -> Self {
        Self { is_done: true, progressed: false, polls: false }
    }
}

impl Block {
    /// The block at a position in the grid.
    pub(super) fn new(machine: &Machine, index: [u32; 3]) -> Self {
        let warps = machine.setup.block.iter().product::<u32>().div_ceil(32);
        Self {
            warps: (0..warps).map(|warp| Warp::new(machine, warp, index)).collect(),
            states: vec![State::Ready; warps as usize],
            phases: vec![Phase::default(); warps as usize],
            barriers: [Barrier::default(); BARRIERS],
        }
    }

    /// The warps.
    pub(super) fn warps(&mut self) -> impl Iterator<Item = &mut Warp> {
        self.warps.iter_mut()
    }

    /// Runs each warp that can run until it ends or waits, or for a number of instructions.
    pub(super) fn round(&mut self, machine: &mut Machine, slice: u64, round: &mut Round) -> Result<(), Error> {
        let mut ran = false;
        for number in 0..self.warps.len() {
            if self.states[number] != State::Ready {
                continue;
            }
            ran = true;
            if machine.clock > machine.limit {
                return Err(Error::at(0, "the launch runs more instructions than its limit"));
            }
            let clock = machine.clock;
            machine.polls = false;
            let stop = self.warps[number].run(machine, slice)?;
            self.phases[number].instructions += machine.clock - clock;
            self.phases[number].polled |= machine.polls;
            round.polls |= machine.polls;
            match stop {
                Stop::Done => {
                    self.states[number] = State::Done;
                    round.progressed = true;
                    self.release(machine);
                }
                Stop::Slice | Stop::Phase => {}
                Stop::Barrier(arrival) => {
                    round.progressed = true;
                    self.arrive(machine, number, arrival)?;
                }
            }
        }
        let is_done = self.states.iter().all(|state| *state == State::Done);
        if !ran && !is_done {
            return Err(Error::at(0, "the warps of a block wait at different barriers"));
        }
        round.is_done &= is_done;
        Ok(())
    }

    fn arrive(&mut self, machine: &mut Machine, warp: usize, arrival: Arrival) -> Result<(), Error> {
        let id = arrival.id as usize;
        if id >= BARRIERS {
            return Err(Error::at(0, format!("there is no barrier {id}")));
        }
        let barrier = &mut self.barriers[id];
        // A partial last warp counts as a whole one where the number of threads is given.
        barrier.threads += 32;
        barrier.warps += 1;
        barrier.holds += arrival.holds.count_ones();
        barrier.lanes += arrival.lanes.count_ones();
        barrier.expected = barrier.expected.or(arrival.threads);
        if arrival.waits {
            self.states[warp] = State::Waits(id);
            self.phases[warp].counter = arrival.counter;
        }
        self.release(machine);
        Ok(())
    }

    /// Releases the warps at barriers at which all expected threads have arrived.
    fn release(&mut self, machine: &mut Machine) {
        let live = self.states.iter().filter(|state| **state != State::Done).count() as u32;
        for id in 0..BARRIERS {
            let barrier = self.barriers[id];
            let is_complete = match barrier.expected {
                Some(threads) => barrier.threads >= threads.next_multiple_of(32),
                None => barrier.warps >= live,
            };
            if barrier.warps == 0 || !is_complete {
                continue;
            }
            self.barriers[id] = Barrier::default();
            self.count_phases(machine, id);
            let (all, any) = (barrier.holds == barrier.lanes, barrier.holds > 0);
            for (warp, state) in self.warps.iter_mut().zip(&mut self.states) {
                if *state == State::Waits(id) {
                    *state = State::Ready;
                    warp.release(machine, barrier.holds, all, any);
                }
            }
        }
    }

    /// Counts what the warps that wait at a barrier have done before it, and begins their next phase.
    fn count_phases(&mut self, machine: &mut Machine, id: usize) {
        let waiting = self.states.iter().zip(&mut self.phases).filter(|(state, _)| **state == State::Waits(id));
        let phases: Vec<Phase> = waiting.map(|(_, phase)| std::mem::take(phase)).collect();
        if phases.iter().any(|phase| phase.polled) {
            return;
        }
        let longest = phases.iter().map(|phase| phase.instructions).max().unwrap_or(0);
        for Phase { instructions, counter, .. } in phases {
            let waits = &mut machine.counters.waits[counter];
            waits.instructions += instructions;
            waits.missing += longest - instructions;
        }
    }
}
