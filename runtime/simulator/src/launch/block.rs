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
    shared: Vec<u8>,
    barriers: [Barrier; BARRIERS],
}

impl Block {
    /// The block with a number of the grid.
    pub(super) fn new(machine: &Machine, number: u64) -> Self {
        let setup = machine.setup;
        let [x, y, _] = setup.grid;
        let index =
            [number % u64::from(x), number / u64::from(x) % u64::from(y), number / (u64::from(x) * u64::from(y))];
        let index = index.map(|n| n as u32);
        let warps = setup.block.iter().product::<u32>().div_ceil(32);
        Self {
            warps: (0..warps).map(|warp| Warp::new(machine, warp, index)).collect(),
            states: vec![State::Ready; warps as usize],
            phases: vec![Phase::default(); warps as usize],
            shared: vec![0; (setup.program.static_shared + setup.dynamic_shared) as usize],
            barriers: [Barrier::default(); BARRIERS],
        }
    }

    /// Runs all warps until they end. Returns false if the block seems to wait for another block.
    pub(super) fn run(&mut self, machine: &mut Machine, slice: u64) -> Result<bool, Error> {
        loop {
            let (mut ran, mut progressed, mut polls) = (false, false, false);
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
                let stop = self.warps[number].run(machine, &mut self.shared, slice)?;
                self.phases[number].instructions += machine.clock - clock;
                self.phases[number].polled |= machine.polls;
                polls |= machine.polls;
                match stop {
                    Stop::Done => {
                        self.states[number] = State::Done;
                        progressed = true;
                        self.release(machine);
                    }
                    Stop::Slice => {}
                    Stop::Barrier(arrival) => {
                        progressed = true;
                        self.arrive(machine, number, arrival)?;
                    }
                }
            }
            if self.states.iter().all(|state| *state == State::Done) {
                return Ok(true);
            }
            if !ran {
                return Err(Error::at(0, "the warps of a block wait at different barriers"));
            }
            if !progressed && polls {
                return Ok(false);
            }
        }
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
