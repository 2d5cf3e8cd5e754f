//! Operations of barriers in shared memory, copies that barriers or groups count, and operations of clusters.

use weft_artifact::MAP_DIMS;

use super::{
    Machine,
    access::addresses,
    cluster::{At, Cluster},
    compare, convert,
    copies::{self, Copy, Side, Store},
    lanes::{active, mask_of, set},
    phases::Barrier,
    warp::Frame,
};
use crate::{
    count::{Count, NO_REGION},
    decode::{AsyncOp, Part, Receivers, SHARED_BASE, Target, WINDOW, WaitsFor},
    error::Error,
    parse::Space,
};

/// The alignment in bytes of copies, of the shared memory of a box, and of a barrier.
const COPY: u64 = 16;
const BOX: u64 = 128;
const BARRIER: u64 = 8;

/// The lanes that execute an operation.
#[derive(Debug, Clone, Copy)]
pub(super) struct Lanes {
    /// The number of the warp in its block.
    pub(super) warp: u32,
    pub(super) mask: u32,
    /// The counter of the instruction.
    pub(super) counter: usize,
}

/// Executes an operation. Returns false, and has changed nothing, if lanes must wait.
pub(super) fn execute(machine: &mut Machine, frame: &mut Frame, op: &AsyncOp, lanes: Lanes) -> Result<bool, Error> {
    match op {
        AsyncOp::Wait { .. } => {
            let done = completed(machine, frame, op, lanes)?;
            if lanes.mask & !done != 0 {
                return Ok(false);
            }
            end_wait(frame, op, lanes.mask, done);
        }
        AsyncOp::ClusterWait => return machine.cluster.wait(lanes.warp, lanes.mask).map_err(in_lane),
        AsyncOp::ProductsCommit => {
            machine.cluster.commit_products(lanes.warp);
            frame.in_flight.commit();
        }
        AsyncOp::ProductsWait { pending } => {
            let is_complete = machine.cluster.has_products(lanes.warp, *pending);
            if is_complete {
                frame.in_flight.wait(*pending);
            }
            return Ok(is_complete);
        }
        AsyncOp::ClusterArrive => machine.cluster.arrive(lanes.warp, lanes.mask).map_err(in_lane)?,
        AsyncOp::Initialize { barrier, .. }
        | AsyncOp::Invalidate(barrier)
        | AsyncOp::Arrive { barrier, .. }
        | AsyncOp::Expect { barrier, .. }
        | AsyncOp::Complete { barrier, .. } => of_barrier(machine, frame, op, (barrier, lanes))?,
        AsyncOp::PendingCount { d, state } => {
            let values = frame.longs[*state as usize].map(Barrier::pending_of_state);
            set(&mut frame.words, *d, lanes.mask, &values);
        }
        AsyncOp::ToShared { .. } => to_shared(machine, frame, op, lanes)?,
        AsyncOp::ToGlobal { to, from, bytes } => to_global(machine, frame, (to, from, *bytes), lanes)?,
        AsyncOp::Commit => {
            for lane in active(lanes.mask) {
                let groups = machine.cluster.groups.entry(thread(machine.cluster.rank, lanes, lane)).or_default();
                let group = std::mem::take(&mut groups.open);
                groups.closed.push_back(group);
            }
        }
        AsyncOp::WaitGroups { pending, is_read } => wait_groups(machine, lanes, (*pending as usize, *is_read)),
        AsyncOp::Map { is_generic, bank, d, a, rank } => {
            let (addresses, ranks) = (convert::read(frame, (*bank, *a)), frame.words[*rank as usize]);
            let base = if *is_generic { SHARED_BASE } else { 0 };
            let mut mapped = [0; 32];
            for lane in active(lanes.mask) {
                let (at, rank) = (machine.cluster.at(addresses[lane].wrapping_sub(base)), ranks[lane] as usize);
                if rank >= machine.cluster.size() {
                    let message = format!("there is no block {rank} in a cluster of {}", machine.cluster.size());
                    return Err(Error::in_lane(lane as u32, message));
                }
                mapped[lane] = base + Cluster::address(At { rank, ..at });
            }
            convert::write(frame, (*bank, *d), lanes.mask, &mapped);
        }
    }
    Ok(true)
}

/// A thread: the rank of its block and its number in the block.
fn thread(rank: usize, lanes: Lanes, lane: usize) -> (usize, u32) {
    (rank, 32 * lanes.warp + lane as u32)
}

fn in_lane((lane, message): (u32, &str)) -> Error {
    Error::in_lane(lane, message)
}

/// The positions of shared memory that lanes name.
fn positions(machine: &Machine, frame: &Frame, target: &Target, mask: u32) -> Result<[At; 32], Error> {
    let own = addresses(frame, target.address);
    let base = if target.space == Space::Generic { SHARED_BASE } else { 0 };
    let outside = mask & mask_of(|lane| own[lane].wrapping_sub(base) >= WINDOW);
    if outside != 0 {
        let lane = outside.trailing_zeros();
        let message = format!("the address {:#x} is not in shared memory", own[lane as usize]);
        return Err(Error::in_lane(lane, message));
    }
    Ok(own.map(|address| machine.cluster.at(address.wrapping_sub(base))))
}

/// Fails if bytes are not aligned, or are outside of the shared memory.
fn check(machine: &Machine, lane: usize, at: At, (bytes, alignment): (u64, u64)) -> Result<(), Error> {
    let misaligned = || format!("the address {:#x} is not aligned to {alignment} bytes", at.offset);
    let fault = machine.cluster.fault(at, bytes);
    let fault = fault.or_else(|| (!at.offset.is_multiple_of(alignment)).then(misaligned));
    fault.map_or(Ok(()), |message| Err(Error::in_lane(lane as u32, message)))
}

/// The barrier at a position.
fn find<'m>(machine: &'m mut Machine, lane: usize, at: At) -> Result<&'m mut Barrier, Error> {
    check(machine, lane, at, (BARRIER, BARRIER))?;
    let none = || Error::in_lane(lane as u32, format!("there is no initialized barrier at {:#x}", at.offset));
    machine.cluster.barriers.get_mut(&at).ok_or_else(none)
}

/// Operations that change a barrier, one lane after the other.
fn of_barrier(
    machine: &mut Machine,
    frame: &mut Frame,
    op: &AsyncOp,
    (barrier, lanes): (&Target, Lanes),
) -> Result<(), Error> {
    let at = positions(machine, frame, barrier, lanes.mask)?;
    for lane in active(lanes.mask) {
        let word = |frame: &Frame, register: u32| frame.words[register as usize][lane];
        let fault = |message: String| Error::in_lane(lane as u32, message);
        machine.cluster.changes += 1;
        match op {
            AsyncOp::Initialize { count, .. } => {
                check(machine, lane, at[lane], (BARRIER, BARRIER))?;
                let made = Barrier::new(word(frame, *count)).map_err(fault)?;
                if machine.cluster.barriers.insert(at[lane], made).is_some() {
                    return Err(fault(format!("there is a barrier at {:#x} already", at[lane].offset)));
                }
            }
            AsyncOp::Invalidate(_) => {
                find(machine, lane, at[lane])?;
                machine.cluster.barriers.remove(&at[lane]);
            }
            AsyncOp::Expect { bytes, .. } => {
                let bytes = word(frame, *bytes);
                find(machine, lane, at[lane])?.expect(bytes).map_err(fault)?;
            }
            AsyncOp::Complete { bytes, .. } => {
                let bytes = word(frame, *bytes);
                find(machine, lane, at[lane])?.add(bytes.into());
            }
            AsyncOp::Arrive { state, count, bytes, drops, .. } => {
                let count = count.map_or(1, |count| word(frame, count));
                let bytes = bytes.map_or(0, |bytes| word(frame, bytes));
                find(machine, lane, at[lane])?;
                // An arrival at a phase that only lacks bytes is for the next phase.
                machine.make_copies(at[lane]);
                let found = find(machine, lane, at[lane])?;
                let before = found.state();
                found.expect(bytes).map_err(fault)?;
                found.arrive(count, *drops).map_err(fault)?;
                frame.longs[*state as usize][lane] = before;
            }
            AsyncOp::Wait { .. }
            | AsyncOp::PendingCount { .. }
            | AsyncOp::ToShared { .. }
            | AsyncOp::ToGlobal { .. }
            | AsyncOp::Commit
            | AsyncOp::WaitGroups { .. }
            | AsyncOp::Map { .. }
            | AsyncOp::ProductsCommit
            | AsyncOp::ProductsWait { .. }
            | AsyncOp::ClusterArrive
            | AsyncOp::ClusterWait => {}
        }
    }
    Ok(())
}

/// The lanes whose phase has completed.
pub(super) fn completed(machine: &mut Machine, frame: &Frame, op: &AsyncOp, lanes: Lanes) -> Result<u32, Error> {
    let AsyncOp::Wait { barrier, phase, .. } = op else { return Ok(0) };
    let at = positions(machine, frame, barrier, lanes.mask)?;
    let mut done = 0;
    for lane in active(lanes.mask) {
        if at[lane].rank != machine.cluster.rank {
            let message = "a thread waits for a barrier of another block: only its own block can";
            return Err(Error::in_lane(lane as u32, message));
        }
        let is_done = |barrier: &Barrier| match phase {
            WaitsFor::Parity(parity) => barrier.has_completed_parity(frame.words[*parity as usize][lane]),
            WaitsFor::State(state) => barrier.has_completed_state(frame.longs[*state as usize][lane]),
        };
        // A wait for an old phase makes no copies.
        let mut completed = is_done(find(machine, lane, at[lane])?);
        if !completed {
            machine.make_copies(at[lane]);
            completed = is_done(find(machine, lane, at[lane])?);
        }
        done |= u32::from(completed) << lane;
    }
    Ok(done)
}

/// What the phase lacks that the first lane waits for.
pub(super) fn missing(machine: &mut Machine, frame: &Frame, op: &AsyncOp, mask: u32) -> String {
    let lane = mask.trailing_zeros() as usize & 31;
    if matches!(op, AsyncOp::ProductsWait { .. }) {
        return "a warp waits for a product that not all warps of its warpgroup execute".to_owned();
    }
    let AsyncOp::Wait { barrier, .. } = op else {
        return "a thread waits for the threads of its cluster, but not all of them arrive".to_owned();
    };
    let found = positions(machine, frame, barrier, mask).ok().and_then(|at| machine.cluster.barriers.get(&at[lane]));
    let lacks = found.map_or_else(String::new, Barrier::missing);
    format!("a thread waits for a phase of a barrier that no other thread can complete: {lacks}")
}

/// Writes the result of a wait.
pub(super) fn end_wait(frame: &mut Frame, op: &AsyncOp, mask: u32, done: u32) {
    if let AsyncOp::Wait { d, .. } = op {
        compare::set_predicate(frame, *d, mask, done);
    }
}

/// Global memory that a lane names, whose elements are all in arrays.
fn global(machine: &Machine, frame: &Frame, (part, bytes): (&Part, u64), lane: usize) -> Result<Side, Error> {
    let fault = |message: String| Error::in_lane(lane as u32, message);
    let side = match part {
        Part::Bytes(target) => {
            let address = addresses(frame, target.address)[lane];
            if !(address | bytes).is_multiple_of(COPY) {
                let message = format!("{bytes} bytes from {address:#x}: both must be multiples of {COPY}");
                return Err(fault(message));
            }
            Side::Global(address, bytes)
        }
        Part::Box(target, indices) => {
            let address = addresses(frame, target.address)[lane];
            let map = copies::map(machine.memory, address, indices.len()).map_err(fault)?;
            let mut first = [0; MAP_DIMS];
            // PTX has the innermost dimension first.
            for (index, register) in first.iter_mut().zip(indices.iter().rev()) {
                *index = i64::from(frame.words[*register as usize][lane].cast_signed());
            }
            Side::Box(map, first)
        }
    };
    for (address, bytes) in side.ranges() {
        if let Some(number) = machine.memory.find(address, bytes) {
            machine.memory.regions()[number].touch(address, bytes.max(1));
        } else if bytes > 0 {
            return Err(fault(format!("a copy accesses {bytes} bytes at {address:#x}, which are in no array")));
        }
    }
    Ok(side)
}

/// Counts the sectors of global memory that a copy touches, which L2 reads or writes. What it adds to other counters of a GPU
/// is not known.
fn count(machine: &mut Machine, counter: usize, side: &Side) {
    let ranges = side.ranges();
    let Some((first, bytes)) = ranges.first().copied() else { return };
    let region = machine.memory.find(first, bytes).map_or(NO_REGION, |number| number as u32);
    let sectors = copies::sectors(&ranges);
    let ideal_sectors = side.bytes_inside().div_ceil(copies::SECTOR);
    let count = Count { sectors, ideal_sectors, l2_sectors: sectors, ..Count::default() };
    machine.counters.access(counter, Space::Global, region, count);
}

fn to_shared(machine: &mut Machine, frame: &Frame, op: &AsyncOp, lanes: Lanes) -> Result<(), Error> {
    let AsyncOp::ToShared { to, from, bytes, barrier, receivers } = op else { return Ok(()) };
    let (targets, barriers) =
        (positions(machine, frame, to, lanes.mask)?, positions(machine, frame, barrier, lanes.mask)?);
    for lane in active(lanes.mask) {
        let bytes = u64::from(frame.words[*bytes as usize][lane]);
        let from = match from {
            Part::Bytes(target) if target.space == Space::Shared => {
                let at = positions(machine, frame, target, 1 << lane)?[lane];
                check(machine, lane, at, (bytes, COPY))?;
                Side::Shared(at, bytes)
            }
            Part::Bytes(_) | Part::Box(..) => global(machine, frame, (from, bytes), lane)?,
        };
        let alignment = if matches!(from, Side::Box(..)) { BOX } else { COPY };
        let size = machine.cluster.size();
        let ranks: Vec<usize> = match receivers {
            Receivers::One => vec![targets[lane].rank],
            Receivers::Mask(mask) => {
                let mask = frame.words[*mask as usize][lane] & 0xFFFF;
                if mask == 0 || u64::from(mask) >> size != 0 {
                    let message = format!("the mask {mask:#b} has no block, or blocks outside of a cluster of {size}");
                    return Err(Error::in_lane(lane as u32, message));
                }
                (0..size).filter(|rank| mask >> rank & 1 != 0).collect()
            }
        };
        let is_one = matches!(receivers, Receivers::One);
        for rank in ranks {
            let to = At { rank, ..targets[lane] };
            let counter = At { rank: if is_one { barriers[lane].rank } else { rank }, ..barriers[lane] };
            check(machine, lane, to, (from.bytes(), alignment))?;
            find(machine, lane, counter)?.copies.push_back(Copy { to, from });
            machine.cluster.changes += 1;
        }
        count(machine, lanes.counter, &from);
    }
    Ok(())
}

fn to_global(
    machine: &mut Machine,
    frame: &Frame,
    (to, from, bytes): (&Part, &Target, u32),
    lanes: Lanes,
) -> Result<(), Error> {
    let sources = positions(machine, frame, from, lanes.mask)?;
    for lane in active(lanes.mask) {
        let to = global(machine, frame, (to, u64::from(frame.words[bytes as usize][lane])), lane)?;
        let alignment = if matches!(to, Side::Box(..)) { BOX } else { COPY };
        check(machine, lane, sources[lane], (to.bytes(), alignment))?;
        count(machine, lanes.counter, &to);
        let groups = machine.cluster.groups.entry(thread(machine.cluster.rank, lanes, lane)).or_default();
        groups.open.push(Store { to, from: sources[lane], read: None });
    }
    Ok(())
}

/// Waits for all groups of each lane but the latest ones: makes their copies, or reads the sources of these.
fn wait_groups(machine: &mut Machine, lanes: Lanes, (pending, is_read): (usize, bool)) {
    for lane in active(lanes.mask) {
        let thread = thread(machine.cluster.rank, lanes, lane);
        let Some(mut groups) = machine.cluster.groups.remove(&thread) else { continue };
        let n_complete = groups.closed.len().saturating_sub(pending);
        if is_read {
            let stores = groups.closed.iter_mut().take(n_complete).flatten();
            stores.for_each(|store| store.read(&mut machine.cluster));
        } else {
            let stores = groups.closed.drain(..n_complete).flatten();
            stores.for_each(|store| store.write(machine.memory, &mut machine.cluster));
        }
        machine.cluster.groups.insert(thread, groups);
    }
}
