//! A warp: 32 lanes in lockstep.
//!
//! Lanes that diverge become two paths, which converge at the immediate post-dominator of the branch: the path that
//! branched waits there for both. A call makes a frame with a path of its own. Where a path waits (at a barrier, at a
//! collective whose lanes are not all there, or in a loop that polls memory), another path of the warp runs.

mod diverge;
mod waits;

use super::{
    Context, Local, Machine, asynchronous, collective, compare, in_flight::InFlight, lanes::active, pattern::Patterns,
    simple, special,
};
use crate::{
    decode::{Barrier, BarrierResult, Call, Callee, Collective, Function, Operation},
    error::Error,
};

/// A path that runs this many instructions lets other paths of its warp run: one may wait for another.
const PATH_SLICE: u64 = 5_000;
/// Calls deeper than this are an error.
const MAX_FRAMES: usize = 20_000;

/// The registers and parameters of a call, for all lanes.
#[derive(Debug, Default)]
pub(super) struct Frame {
    function: usize,
    pub(super) words: Vec<[u32; 32]>,
    pub(super) longs: Vec<[u64; 32]>,
    pub(super) predicates: Vec<u32>,
    /// Parameters, results, and parameters of calls, one lane after the other.
    pub(super) params: Vec<u8>,
    /// Where the frame begins in local memory.
    local_base: u64,
    /// Lanes that have not returned.
    live: u32,
    /// The number of its paths.
    paths: u32,
    /// The path that called it.
    caller: Option<usize>,
    pub(super) in_flight: InFlight,
}

impl Frame {
    #[cfg(test)]
    pub(super) fn empty(words: usize, longs: usize, predicates: usize) -> Self {
        Self {
            function: 0,
            words: vec![[0; 32]; words],
            longs: vec![[0; 32]; longs],
            predicates: vec![0; predicates],
            params: Vec::new(),
            local_base: 0,
            live: u32::MAX,
            paths: 0,
            caller: None,
            in_flight: InFlight::default(),
        }
    }
}

/// What a path does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Ready,
    /// It waits for the paths that diverged from it, or for a call.
    Waits,
    /// It waits for other lanes at a collective.
    AtCollective,
    /// It waits for other warps at a barrier of the block.
    AtBarrier,
    /// It waits for a phase of a barrier in shared memory, or of that of the cluster.
    AtPhase,
    Free,
}

/// Lanes that execute the same instructions.
#[derive(Debug, Clone, Copy)]
struct Path {
    frame: usize,
    pc: u32,
    /// Where the path ends and its parent continues.
    join: u32,
    mask: u32,
    parent: Option<usize>,
    children: u32,
    state: State,
}

/// A warp's arrival at a barrier of the block.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Arrival {
    pub(crate) id: u32,
    /// The counter of the instruction.
    pub(crate) counter: usize,
    /// The threads that the barrier expects, if not all of the block.
    pub(crate) threads: Option<u32>,
    pub(crate) waits: bool,
    /// The lanes that arrive, and those whose predicate holds.
    pub(crate) lanes: u32,
    pub(crate) holds: u32,
}

/// Why a warp stopped.
#[derive(Debug)]
pub(crate) enum Stop {
    /// All lanes have ended.
    Done,
    /// It ran as long as it may for now.
    Slice,
    /// All lanes wait at a barrier, or have arrived at one that does not wait.
    Barrier(Arrival),
    /// Lanes wait for a phase, and the others for them.
    Phase,
}

/// Why a path stopped.
enum PathStop {
    Ended,
    Waits,
    Slice,
    Arrived(Arrival),
}

/// A warp.
#[derive(Debug)]
pub(crate) struct Warp {
    number: u32,
    block: [u32; 3],
    frames: Vec<Option<Box<Frame>>>,
    paths: Vec<Path>,
    /// Paths that can run; the last runs first.
    ready: Vec<usize>,
    /// Lanes that have not ended.
    live: u32,
    local: Local,
}

impl Warp {
    /// The warp with a number of a block.
    pub(crate) fn new(machine: &Machine, number: u32, block: [u32; 3]) -> Self {
        let threads: u32 = machine.setup.block.iter().product();
        let count = (threads - number * 32).min(32);
        let live = u32::MAX >> (32 - count);
        let mut warp = Self {
            number,
            block,
            frames: Vec::new(),
            paths: Vec::new(),
            ready: Vec::new(),
            live,
            local: Local::default(),
        };
        warp.enter(machine, machine.setup.kernel, live, (None, 0));
        warp
    }

    /// Makes a frame of a function and its path.
    fn enter(&mut self, machine: &Machine, function: usize, mask: u32, (caller, local_base): (Option<usize>, u64)) {
        let (setup, code) = (machine.setup, &machine.setup.program.functions[function]);
        let template = &setup.templates[function];
        let mut frame = machine.frames.borrow_mut().pop().unwrap_or_default();
        frame.words.clone_from(&template.words);
        frame.longs.clone_from(&template.longs);
        frame.predicates.clone_from(&template.predicates);
        frame.in_flight.clear();
        frame.params.clear();
        frame.params.resize(32 * code.param_size as usize, 0);
        (frame.function, frame.local_base, frame.live, frame.paths, frame.caller) =
            (function, local_base, mask, 1, caller);
        for (register, name) in &code.specials {
            frame.words[*register as usize] = special(setup, *name, self.number, self.block);
        }
        for (register, offset) in &code.local_addresses {
            frame.longs[*register as usize] = [local_base + u64::from(*offset); 32];
        }
        self.local.reserve((local_base + u64::from(code.local_size)) as usize);
        let slot = self.frames.iter().rposition(Option::is_none).unwrap_or_else(|| {
            self.frames.push(None);
            self.frames.len() - 1
        });
        self.frames[slot] = Some(frame);
        let join = code.instructions.len() as u32;
        self.add_path(Path { frame: slot, pc: 0, join, mask, parent: None, children: 0, state: State::Ready });
    }

    fn add_path(&mut self, path: Path) -> usize {
        let slot = self.paths.iter().position(|path| path.state == State::Free).unwrap_or_else(|| {
            self.paths.push(path);
            self.paths.len() - 1
        });
        self.paths[slot] = path;
        self.ready.push(slot);
        slot
    }

    fn resume(&mut self, path: usize) {
        self.paths[path].state = State::Ready;
        self.ready.push(path);
    }

    /// Runs until the warp ends, waits, or has run `budget` instructions.
    pub(crate) fn run(&mut self, machine: &mut Machine, budget: u64) -> Result<Stop, Error> {
        let end = machine.clock + budget;
        loop {
            let Some(path) = self.ready.pop() else {
                if let Some(stop) = self.stalled(machine)? {
                    return Ok(stop);
                }
                continue;
            };
            let polled = std::mem::take(&mut machine.polls);
            let stop = self.run_path(machine, path, machine.clock + PATH_SLICE)?;
            let polls = machine.polls;
            machine.polls |= polled;
            match stop {
                PathStop::Ended => self.end(machine, path),
                PathStop::Waits => {}
                PathStop::Slice => {
                    if polls && self.ready.is_empty() {
                        self.continue_arrived(path);
                    }
                    self.ready.insert(0, path);
                }
                PathStop::Arrived(arrival) => {
                    self.ready.push(path);
                    return Ok(Stop::Barrier(arrival));
                }
            }
            if machine.clock >= end && !self.ready.is_empty() {
                return Ok(Stop::Slice);
            }
        }
    }

    /// No path can run: the warp has ended, waits at a barrier, or is stuck.
    fn stalled(&mut self, machine: &mut Machine) -> Result<Option<Stop>, Error> {
        match self.at_phases(machine)? {
            waits::Waiting::None => {}
            waits::Waiting::Continues => return Ok(None),
            waits::Waiting::All => return Ok(Some(Stop::Phase)),
        }
        for path in 0..self.paths.len() {
            if self.paths[path].state == State::AtCollective && self.try_collective(machine, path) {
                return Ok(None);
            }
        }
        let waiting = self.paths.iter().find(|path| path.state == State::AtCollective);
        if let Some(path) = waiting {
            let line = self.code(machine, path.frame).instructions[path.pc as usize].line;
            return Err(Error {
                lane: Some(path.mask.trailing_zeros()),
                ..Error::at(line, "the lanes of a warp wait for lanes that do not arrive")
            });
        }
        let mut arrival: Option<Arrival> = None;
        for path in self.paths.iter().filter(|path| path.state == State::AtBarrier) {
            let own = self.arrival(machine, path);
            let line = self.code(machine, path.frame).instructions[path.pc as usize].line;
            match &mut arrival {
                None => arrival = Some(own),
                Some(all) if all.id == own.id && all.threads == own.threads => {
                    all.lanes |= own.lanes;
                    all.holds |= own.holds;
                }
                Some(_) => return Err(Error::at(line, "the lanes of a warp wait at different barriers")),
            }
        }
        Ok(Some(arrival.map_or(Stop::Done, Stop::Barrier)))
    }

    fn code<'a>(&self, machine: &Machine<'a>, frame: usize) -> &'a Function {
        let function = self.frames[frame].as_ref().map_or(0, |frame| frame.function);
        &machine.setup.program.functions[function]
    }

    fn arrival(&self, machine: &Machine, path: &Path) -> Arrival {
        let none = Arrival { id: 0, counter: 0, threads: None, waits: true, lanes: 0, holds: 0 };
        let Some(frame) = &self.frames[path.frame] else { return none };
        let code = self.code(machine, path.frame);
        let Operation::Barrier(barrier) = &code.instructions[path.pc as usize].operation else { return none };
        arrive(frame, barrier, path.mask & frame.live, code.first_counter + path.pc as usize)
    }

    /// Lets the lanes that wait at a barrier continue, with the results of its reduction.
    pub(crate) fn release(&mut self, machine: &Machine, count: u32, all: bool, any: bool) {
        for index in 0..self.paths.len() {
            let path = self.paths[index];
            if path.state != State::AtBarrier {
                continue;
            }
            let code = self.code(machine, path.frame);
            let Some(frame) = &mut self.frames[path.frame] else { continue };
            if let Operation::Barrier(barrier) = &code.instructions[path.pc as usize].operation {
                let mask = path.mask & frame.live;
                let truth = |value: bool| if value { u32::MAX } else { 0 };
                match barrier.result {
                    BarrierResult::None => {}
                    BarrierResult::And(p) => compare::set_predicate(frame, p, mask, truth(all)),
                    BarrierResult::Or(p) => compare::set_predicate(frame, p, mask, truth(any)),
                    BarrierResult::Popc(d) => super::lanes::set(&mut frame.words, d, mask, &[count; 32]),
                }
            }
            self.paths[index].pc += 1;
            self.resume(index);
        }
    }

    /// Frees a path that has reached its join, or whose lanes have ended.
    fn end(&mut self, machine: &Machine, path: usize) {
        let Path { frame: slot, parent, .. } = self.paths[path];
        self.paths[path].state = State::Free;
        if let Some(parent) = parent {
            self.paths[parent].children -= 1;
            if self.paths[parent].children == 0 {
                self.resume(parent);
            }
        }
        let Some(frame) = &mut self.frames[slot] else { return };
        frame.paths -= 1;
        if frame.paths > 0 {
            return;
        }
        // All lanes have returned: their results are parameters of the caller's call.
        let Some(frame) = self.frames[slot].take() else { return };
        let Some(caller) = frame.caller else {
            machine.frames.borrow_mut().push(frame);
            return;
        };
        let Path { frame: caller_slot, pc, .. } = self.paths[caller];
        let code = self.code(machine, caller_slot);
        if let (Operation::Call(call), Some(into)) =
            (&code.instructions[pc as usize].operation, &mut self.frames[caller_slot])
        {
            let returns = &machine.setup.program.functions[frame.function].returns;
            let pairs = call.results.iter().zip(returns);
            let mask = self.paths[caller].mask;
            pairs.for_each(|(to, from)| copy(into, to.offset, &frame, from.offset, (from.size.min(to.size), mask)));
        }
        machine.frames.borrow_mut().push(frame);
        self.paths[caller].pc += 1;
        self.resume(caller);
    }

    /// Runs a path until it ends or waits, or until a time.
    fn run_path(&mut self, machine: &mut Machine, path: usize, until: u64) -> Result<PathStop, Error> {
        let slot = self.paths[path].frame;
        let Some(mut frame) = self.frames[slot].take() else { return Ok(PathStop::Ended) };
        let mut patterns = std::mem::take(&mut machine.patterns);
        let rank = machine.cluster.rank;
        let mut shared = std::mem::take(&mut machine.cluster.memory[rank]);
        let stop = self.run_in(machine, (&mut shared, &mut patterns), path, &mut frame, until);
        machine.cluster.memory[rank] = shared;
        machine.patterns = patterns;
        let call = matches!(stop, Ok(Step::Call(..)));
        let (base, live) = (frame.local_base, frame.live);
        self.frames[slot] = Some(frame);
        self.paths[path].state = match &stop {
            Ok(Step::Stop(PathStop::Slice | PathStop::Arrived(_))) => State::Ready,
            _ if call => State::Waits,
            _ => self.paths[path].state,
        };
        match stop? {
            Step::Stop(stop) => Ok(stop),
            Step::Collective => {
                self.paths[path].state = State::AtCollective;
                self.try_collective(machine, path);
                Ok(PathStop::Waits)
            }
            Step::Call(call) => {
                self.call(machine, path, call, (base, live))?;
                Ok(PathStop::Waits)
            }
        }
    }

    /// Executes blocks of a path.
    fn run_in<'a>(
        &mut self,
        machine: &mut Machine<'a>,
        (shared, patterns): (&mut Vec<u8>, &mut [Patterns]),
        path: usize,
        frame: &mut Frame,
        until: u64,
    ) -> Result<Step<'a>, Error> {
        let code = &machine.setup.program.functions[frame.function];
        loop {
            let Path { pc, join, mask, .. } = self.paths[path];
            let mask = mask & frame.live;
            if mask == 0 || pc == join {
                return Ok(Step::Stop(PathStop::Ended));
            }
            if machine.clock >= until {
                return Ok(Step::Stop(PathStop::Slice));
            }
            let block = code.blocks[code.block_of[pc as usize] as usize];
            machine.clock += u64::from(block.end - block.start);
            let executed = &mut machine.counters.executed[code.first_counter + block.start as usize];
            executed.warps += 1;
            executed.lanes += u64::from(mask.count_ones());
            let last = block.end as usize - 1;
            let mut context = Context {
                machine: &mut *machine,
                shared: &mut *shared,
                local: &mut self.local,
                counter: code.first_counter + pc as usize,
                patterns: &mut *patterns,
                block: self.block,
                warp: self.number,
            };
            let active = simple::block(&mut context, frame, &code.instructions[block.start as usize..=last], mask)?;
            let (counter, instruction) = (code.first_counter + last, &code.instructions[last]);
            let operation = &instruction.operation;
            if let Operation::Branch(target) = operation {
                self.branch(machine, path, (&mut *frame, code), (*target, block.join, active, counter));
                if self.paths[path].state == State::Waits {
                    return Ok(Step::Stop(PathStop::Waits));
                }
                continue;
            }
            self.paths[path].pc = block.end;
            if active == 0 {
                continue;
            }
            if let Operation::Return | Operation::Exit = operation {
                frame.live &= !active;
                if matches!(operation, Operation::Exit) || frame.caller.is_none() {
                    machine.cluster.exit(self.number, active);
                    self.exit(frame.caller, active);
                }
            } else if let Operation::Trap = operation {
                let lane = active.trailing_zeros();
                return Err(Error { line: instruction.line, ..Error::in_lane(lane, "the kernel trapped") });
            } else if let Operation::Call(call) = operation {
                if active != mask {
                    return Err(Error::at(instruction.line, "calls with a predicate that differs are not supported"));
                }
                self.paths[path].pc = last as u32;
                return Ok(Step::Call(call));
            } else if let Operation::Collective(kind, members) = operation {
                if collective::named(frame, *members, active) & self.live & !active != 0 {
                    self.paths[path].pc = last as u32;
                    return Ok(Step::Collective);
                }
                collective::execute(frame, kind, *members, active);
            } else if let Operation::Async(op) = operation {
                let lanes = asynchronous::Lanes { warp: self.number, mask: active, counter };
                let rank = machine.cluster.rank;
                std::mem::swap(shared, &mut machine.cluster.memory[rank]);
                let done = asynchronous::execute(machine, frame, op, lanes);
                std::mem::swap(shared, &mut machine.cluster.memory[rank]);
                if !done.map_err(|error| Error { line: instruction.line, ..error })? {
                    if active != mask {
                        return Err(Error::at(
                            instruction.line,
                            "a wait with a predicate that differs is not supported",
                        ));
                    }
                    self.paths[path].pc = last as u32;
                    self.paths[path].state = State::AtPhase;
                    return Ok(Step::Stop(PathStop::Waits));
                }
            } else if let Operation::Barrier(barrier) = operation {
                if !barrier.waits {
                    return Ok(Step::Stop(PathStop::Arrived(arrive(frame, barrier, active, counter))));
                }
                self.paths[path].pc = last as u32;
                self.paths[path].state = State::AtBarrier;
                return Ok(Step::Stop(PathStop::Waits));
            }
        }
    }

    /// Lanes end in all frames.
    fn exit(&mut self, mut caller: Option<usize>, lanes: u32) {
        self.live &= !lanes;
        while let Some(path) = caller {
            let Some(frame) = &mut self.frames[self.paths[path].frame] else { break };
            frame.live &= !lanes;
            caller = frame.caller;
        }
    }

    /// Calls a function.
    fn call(&mut self, machine: &Machine, path: usize, call: &Call, (base, live): (u64, u32)) -> Result<(), Error> {
        let Path { frame: slot, pc, mask, .. } = self.paths[path];
        let code = self.code(machine, slot);
        let line = code.instructions[pc as usize].line;
        let function = match &call.callee {
            Callee::Function(function) => *function,
            // The output of `printf` is discarded: a launch on a device writes it.
            Callee::External(name) if name == "vprintf" => {
                self.paths[path].pc += 1;
                self.resume(path);
                return Ok(());
            }
            Callee::External(name) => {
                return Err(Error::at(line, format!("the function `{name}` is in another module")));
            }
        };
        if self.frames.len() >= MAX_FRAMES {
            return Err(Error::at(line, "calls are too deep"));
        }
        self.enter(machine, function, mask & live, (Some(path), base + u64::from(code.local_size)));
        let Some(entered) = self.ready.last().map(|path| self.paths[*path].frame) else { return Ok(()) };
        let params = &machine.setup.program.functions[function].params;
        if let (Some(from), Some(mut into)) = (self.frames[slot].take(), self.frames[entered].take()) {
            for (arg, param) in call.args.iter().zip(params) {
                copy(&mut into, param.offset, &from, arg.offset, (arg.size.min(param.size), mask));
            }
            self.frames[slot] = Some(from);
            self.frames[entered] = Some(into);
        }
        Ok(())
    }

    /// Executes a collective at which a path waits, if all lanes that it names are there. Returns whether they are.
    fn try_collective(&mut self, machine: &Machine, path: usize) -> bool {
        let Path { frame: slot, pc, .. } = self.paths[path];
        let code = self.code(machine, slot);
        let Operation::Collective(kind, members) = &code.instructions[pc as usize].operation else { return false };
        let is_barrier = matches!(kind, Collective::Barrier);
        let is_there = |other: &Path| {
            let same = (other.frame, other.pc) == (slot, pc);
            other.state == State::AtCollective && (same || is_barrier && self.is_warp_barrier(machine, other))
        };
        let there: Vec<usize> = (0..self.paths.len()).filter(|other| is_there(&self.paths[*other])).collect();
        let Some(live) = self.frames[slot].as_ref().map(|frame| frame.live) else { return false };
        let lanes = there.iter().fold(0, |lanes, other| lanes | self.paths[*other].mask) & self.live;
        let own = self.paths[path].mask & live;
        let Some(frame) = &mut self.frames[slot] else { return false };
        let acting = if is_barrier { own } else { lanes & live };
        if collective::named(frame, *members, acting) & self.live & !lanes != 0 {
            return false;
        }
        collective::execute(frame, kind, *members, acting);
        for other in there {
            self.paths[other].pc += 1;
            self.resume(other);
        }
        true
    }

    fn is_warp_barrier(&self, machine: &Machine, path: &Path) -> bool {
        let operation = &self.code(machine, path.frame).instructions[path.pc as usize].operation;
        matches!(operation, Operation::Collective(Collective::Barrier, _))
    }
}

/// Why a path stopped, with what the warp does next.
enum Step<'a> {
    Stop(PathStop),
    Collective,
    Call(&'a Call),
}

fn arrive(frame: &Frame, barrier: &Barrier, lanes: u32, counter: usize) -> Arrival {
    let first = lanes.trailing_zeros() as usize & 31;
    Arrival {
        id: frame.words[barrier.id as usize][first],
        counter,
        threads: barrier.threads.map(|threads| frame.words[threads as usize][first]),
        waits: barrier.waits,
        lanes,
        holds: compare::truth(frame, barrier.p) & lanes,
    }
}

/// Copies parameters between frames.
fn copy(into: &mut Frame, to: u32, from: &Frame, at: u32, (size, mask): (u32, u32)) {
    let (stride, from_stride) = (into.params.len() / 32, from.params.len() / 32);
    for lane in active(mask) {
        let (to, at) = (lane * stride + to as usize, lane * from_stride + at as usize);
        into.params[to..to + size as usize].copy_from_slice(&from.params[at..at + size as usize]);
    }
}
