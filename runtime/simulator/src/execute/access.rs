//! Loads and stores. Addresses outside of arrays, variables and the memory of the block, and misaligned ones, are
//! errors.

#![expect(clippy::inline_always, reason = "the callers are compiled twice: see `simple::block`")]

use super::{
    Context, convert,
    lanes::{active, each, for_active, mask_of, set},
    transfer,
    warp::Frame,
};
use crate::{
    count::{self, NO_REGION},
    decode::{Access, Address, Bank, LOCAL_BASE, ParamAccess, RANK_SHIFT, Reg, SHARED_BASE, WINDOW},
    error::Error,
    memory::Region,
    parse::{Space, Type},
};

/// The addresses of all lanes.
#[inline(always)]
pub(super) fn addresses(frame: &Frame, address: Address) -> [u64; 32] {
    let offset = address.offset as u64;
    match address.bank {
        Bank::Long => each(&frame.longs[address.base as usize], |base| base.wrapping_add(offset)),
        Bank::Word | Bank::Predicate => {
            each(&frame.words[address.base as usize], |base| u64::from(base).wrapping_add(offset))
        }
    }
}

/// Lanes whose addresses are in one space.
pub(super) struct Split {
    pub(super) space: Space,
    pub(super) mask: u32,
    pub(super) addresses: [u64; 32],
}

/// The lanes of an access by space. Only generic addresses can be in several.
pub(super) fn split(space: Space, addresses: &[u64; 32], mask: u32) -> impl Iterator<Item = Split> {
    let is_generic = space == Space::Generic;
    let within =
        |base: u64| if is_generic { mask & mask_of(|lane| addresses[lane].wrapping_sub(base) < WINDOW) } else { 0 };
    let (shared, local) = (within(SHARED_BASE), within(LOCAL_BASE));
    let rest = if is_generic { Space::Global } else { space };
    let parts =
        [(Space::Shared, shared, SHARED_BASE), (Space::Local, local, LOCAL_BASE), (rest, mask & !shared & !local, 0)];
    let addresses = *addresses;
    parts.into_iter().filter(|(_, mask, _)| *mask != 0).map(move |(space, mask, base)| Split {
        space,
        mask,
        addresses: if base == 0 { addresses } else { addresses.map(|address| address.wrapping_sub(base)) },
    })
}

/// Fails if an active lane's address is not a multiple of the size.
pub(super) fn check_alignment(addresses: &[u64; 32], mask: u32, size: u32) -> Result<(), Error> {
    let low = u64::from(size) - 1;
    if addresses.iter().fold(0, |bits, address| bits | address) & low == 0 {
        return Ok(());
    }
    let misaligned = mask & mask_of(|lane| addresses[lane] & low != 0);
    if misaligned == 0 {
        return Ok(());
    }
    let lane = misaligned.trailing_zeros();
    let address = addresses[lane as usize];
    Err(Error::in_lane(lane, format!("the address {address:#x} is not aligned to {size} bytes")))
}

/// Up to eight bytes as an integer.
pub(super) fn load_bytes(bytes: &[u8]) -> u64 {
    match *bytes {
        [a, b, c, d] => u64::from(u32::from_le_bytes([a, b, c, d])),
        [a, b, c, d, e, f, g, h] => u64::from_le_bytes([a, b, c, d, e, f, g, h]),
        _ => bytes.iter().rev().fold(0, |value, byte| value << 8 | u64::from(*byte)),
    }
}

/// Writes the low bytes of an integer.
pub(super) fn store_bytes(bytes: &mut [u8], value: u64) {
    match bytes {
        [a, b, c, d] => [*a, *b, *c, *d] = (value as u32).to_le_bytes(),
        _ => bytes.copy_from_slice(&value.to_le_bytes()[..bytes.len()]),
    }
}

impl<'a> Context<'_, 'a> {
    /// Adds counts to the current instruction.
    pub(super) fn count(&mut self, space: Space, region: u32, count: count::Count) {
        self.machine.counters.access(self.counter, space, region, count);
    }

    /// Records an access of the current instruction.
    pub(super) fn record(&mut self, space: Space, region: u32, lanes: count::Lanes) {
        let regions = self.machine.memory.regions();
        self.machine.counters.requests.add(self.counter, self.block, (space, region), regions, lanes);
    }

    /// Whether an access of the current instruction is to be recorded.
    pub(super) fn records(&self) -> bool {
        self.machine.counters.requests.records(self.counter, self.block)
    }

    /// Adds the counts of a load of a region.
    fn count_load(&mut self, space: Space, region: u32, lanes: count::Lanes) {
        let mut count = counted(space, lanes, true);
        if space == Space::Global {
            lanes.ranges(|address, size| count.l2_sectors += self.machine.loaded.load(address, size));
        }
        self.record(space, region, lanes);
        self.count(space, region, count);
    }

    /// Adds the counts of an access of shared or local memory. How a GPU counts accesses of the shared memory of another
    /// block is not known: they are not counted.
    pub(super) fn count_private(&mut self, space: Space, lanes: count::Lanes, count: count::Count) {
        let is_remote = |lane: usize| self.machine.cluster.is_remote(lanes.addresses[lane]);
        if space == Space::Shared && active(lanes.mask).any(is_remote) {
            return;
        }
        self.record(space, NO_REGION, lanes);
        self.count(space, NO_REGION, count);
    }

    /// The region of an access of global or constant memory, with its number.
    pub(super) fn region(&self, lane: usize, address: u64, size: u32) -> Result<(usize, &'a Region), Error> {
        let memory = self.machine.memory;
        let Some(number) = memory.find(address, u64::from(size)) else {
            let near = match memory.nearest(address) {
                Some((region, past @ 0..)) => format!(": it is {past} bytes past the end of `{}`", region.name()),
                Some((region, before)) => format!(": it is {} bytes before `{}`", before.unsigned_abs(), region.name()),
                None => String::new(),
            };
            let message = format!("an access of {size} bytes at {address:#x} is in no array{near}");
            return Err(Error::in_lane(lane as u32, message));
        };
        Ok((number, &memory.regions()[number]))
    }

    /// Bytes of shared or local memory.
    pub(super) fn private(&mut self, space: Space, lane: usize, address: u64, size: u32) -> Result<&mut [u8], Error> {
        let mut address = address;
        if space == Space::Shared && address >> RANK_SHIFT != 0 {
            let at = self.machine.cluster.at(address);
            if at.rank != self.machine.cluster.rank && at.rank < self.machine.cluster.size() {
                let cluster = &mut self.machine.cluster;
                return match cluster.fault(at, u64::from(size)) {
                    Some(message) => Err(Error::in_lane(lane as u32, message)),
                    None => Ok(cluster.bytes(at, size as usize)),
                };
            }
            if at.rank == self.machine.cluster.rank {
                address = at.offset;
            }
        }
        let (at, size) = (address as usize, size as usize);
        let (bytes, name) = if space == Space::Shared {
            (&mut self.shared[..], "shared")
        } else {
            let stride = self.local.stride;
            (&mut self.local.bytes[lane * stride..(lane + 1) * stride], "local")
        };
        let len = bytes.len();
        bytes.get_mut(at..at.saturating_add(size)).ok_or_else(|| {
            let message =
                format!("an access of {size} bytes at {at:#x} is outside of the {len} bytes of {name} memory");
            Error::in_lane(lane as u32, message)
        })
    }

    /// The region that holds accesses of a size at the least and the greatest address of a warp, if one does.
    pub(super) fn common_region(&self, (low, high): (u64, u64), size: u32) -> Option<(usize, &'a Region)> {
        let size = u64::from(size);
        let regions = self.machine.memory.regions();
        // An instruction mostly accesses the region that it accessed first.
        if let Some((_, number, _)) = self.machine.counters.accesses[self.counter].first()
            && let Some(region) = regions.get(*number as usize)
            && region.contains(low, size)
            && region.contains(high, size)
        {
            return Some((*number as usize, region));
        }
        let number = self.machine.memory.find(low, size)?;
        regions[number].contains(high, size).then_some((number, &regions[number]))
    }

    /// Whether the accesses of all active lanes, of some bytes from each address, are in shared memory.
    fn has_shared(&self, space: Space, lanes: count::Lanes, bytes: u64) -> bool {
        let end = lanes.bounds().1.checked_add(bytes);
        space == Space::Shared && end.is_some_and(|end| end <= self.shared.len() as u64)
    }
}

/// The counts of a load or store.
pub(super) fn counted(space: Space, lanes: count::Lanes, is_load: bool) -> count::Count {
    let count = match space {
        Space::Shared => count::shared(lanes, is_load),
        Space::Local => count::local(lanes),
        Space::Const => count::constant(lanes),
        Space::Global | Space::Param | Space::Generic => count::global(lanes),
    };
    count::Count { stride: lanes.observed_stride(), ..count }
}

/// Executes a load.
#[inline(always)]
pub(super) fn load(context: &mut Context, frame: &mut Frame, access: &Access, mask: u32) -> Result<(), Error> {
    context.machine.polls |= access.polls;
    let all = addresses(frame, access.address);
    if access.space != Space::Generic {
        return load_part(context, frame, access, access.space, (&all, mask));
    }
    load_generic(context, frame, access, (&all, mask))
}

/// Loads from generic addresses, which may be in several spaces.
#[inline(never)]
fn load_generic(
    context: &mut Context,
    frame: &mut Frame,
    access: &Access,
    (addresses, mask): (&[u64; 32], u32),
) -> Result<(), Error> {
    split(access.space, addresses, mask)
        .try_for_each(|part| load_part(context, frame, access, part.space, (&part.addresses, part.mask)))
}

/// Loads in lanes whose addresses are in one space.
#[inline(always)]
fn load_part(
    context: &mut Context,
    frame: &mut Frame,
    access: &Access,
    space: Space,
    (addresses, mask): (&[u64; 32], u32),
) -> Result<(), Error> {
    if transfer::load(context, frame, access, space, (addresses, mask)) {
        return Ok(());
    }
    load_irregular(context, frame, access, space, (addresses, mask))
}

/// Loads in lanes whose addresses have no known pattern.
#[inline(never)]
fn load_irregular(
    context: &mut Context,
    frame: &mut Frame,
    access: &Access,
    space: Space,
    (addresses, mask): (&[u64; 32], u32),
) -> Result<(), Error> {
    let element = access.ty.size();
    let size = element * access.registers.len() as u32;
    check_alignment(addresses, mask, size)?;
    let lanes = count::Lanes::new(addresses, mask, size);
    if matches!(space, Space::Shared | Space::Local) {
        for (index, register) in access.registers.iter().enumerate() {
            let offset = index as u64 * u64::from(element);
            if context.has_shared(space, lanes, offset + u64::from(element)) {
                load_shared(frame, context.shared, (access, *register), lanes, offset);
                continue;
            }
            let mut values = [0; 32];
            for lane in active(mask) {
                let at = addresses[lane].wrapping_add(offset);
                values[lane] = load_bytes(context.private(space, lane, at, element)?);
            }
            put(frame, *register, access.ty, mask, &values);
        }
        context.count_private(space, lanes, counted(space, lanes, true));
        return Ok(());
    }
    if let Some((number, region)) = context.common_region(lanes.bounds(), size) {
        context.count_load(space, number as u32, lanes);
        load_from(frame, region, access, lanes);
        return Ok(());
    }
    let first = mask.trailing_zeros() as usize;
    let number = context.region(first, addresses[first], size)?.0;
    for lane in active(mask) {
        let (_, region) = context.region(lane, addresses[lane], size)?;
        load_from(frame, region, access, count::Lanes::new(addresses, 1 << lane, size));
    }
    context.count_load(space, number as u32, lanes);
    Ok(())
}

/// Loads from shared memory that holds all accesses.
fn load_shared(
    frame: &mut Frame,
    shared: &[u8],
    (access, register): (&Access, (Bank, Reg)),
    lanes: count::Lanes,
    offset: u64,
) {
    let count::Lanes { addresses, mask, .. } = lanes;
    let size = access.ty.size() as usize;
    let bytes = |lane: usize| {
        let at = (addresses[lane] + offset) as usize;
        &shared[at..at + size]
    };
    if let (4, Bank::Word) = (size, register.0) {
        let mut values = [0; 32];
        for_active(mask, |lane| values[lane] = load_bytes(bytes(lane)) as u32);
        set(&mut frame.words, register.1, mask, &values);
    } else {
        let mut values = [0; 32];
        for_active(mask, |lane| values[lane] = load_bytes(bytes(lane)));
        put(frame, register, access.ty, mask, &values);
    }
}

/// Loads from a region that holds all accesses.
fn load_from(frame: &mut Frame, region: &Region, access: &Access, lanes: count::Lanes) {
    let count::Lanes { addresses, mask, .. } = lanes;
    let element = access.ty.size();
    lanes.ranges(|address, size| region.touch(address, size));
    for (index, (bank, register)) in access.registers.iter().enumerate() {
        let offset = index as u64 * u64::from(element);
        if element == 4 && *bank == Bank::Word {
            let (words, mut values) = (region.words(region.base()), [0; 32]);
            for_active(mask, |lane| {
                let at = (addresses[lane] + offset - region.base()) / 4;
                values[lane] = words[at as usize].load(std::sync::atomic::Ordering::Acquire);
            });
            set(&mut frame.words, *register, mask, &values);
        } else {
            let mut values = [0; 32];
            for_active(mask, |lane| values[lane] = region.load(addresses[lane] + offset, element));
            put(frame, (*bank, *register), access.ty, mask, &values);
        }
    }
}

/// Writes loaded values to a register, extended to its size.
#[inline(always)]
pub(super) fn put(frame: &mut Frame, register: (Bank, Reg), ty: Type, mask: u32, values: &[u64; 32]) {
    if ty.is_signed() {
        convert::write(frame, register, mask, &each(values, |value| convert::extend(value, ty)));
    } else {
        convert::write(frame, register, mask, values);
    }
}

/// Executes a store.
#[inline(always)]
pub(super) fn store(context: &mut Context, frame: &Frame, access: &Access, mask: u32) -> Result<(), Error> {
    let all = addresses(frame, access.address);
    if access.space != Space::Generic {
        return store_part(context, frame, access, access.space, (&all, mask));
    }
    store_generic(context, frame, access, (&all, mask))
}

/// Stores to generic addresses, which may be in several spaces.
#[inline(never)]
fn store_generic(
    context: &mut Context,
    frame: &Frame,
    access: &Access,
    (addresses, mask): (&[u64; 32], u32),
) -> Result<(), Error> {
    split(access.space, addresses, mask)
        .try_for_each(|part| store_part(context, frame, access, part.space, (&part.addresses, part.mask)))
}

/// Stores in lanes whose addresses are in one space.
#[inline(always)]
fn store_part(
    context: &mut Context,
    frame: &Frame,
    access: &Access,
    space: Space,
    (addresses, mask): (&[u64; 32], u32),
) -> Result<(), Error> {
    if transfer::store(context, frame, access, space, (addresses, mask)) {
        return Ok(());
    }
    store_irregular(context, frame, access, space, (addresses, mask))
}

/// Stores in lanes whose addresses have no known pattern.
#[inline(never)]
fn store_irregular(
    context: &mut Context,
    frame: &Frame,
    access: &Access,
    space: Space,
    (addresses, mask): (&[u64; 32], u32),
) -> Result<(), Error> {
    let element = access.ty.size();
    let size = element * access.registers.len() as u32;
    check_alignment(addresses, mask, size)?;
    let lanes = count::Lanes::new(addresses, mask, size);
    if matches!(space, Space::Shared | Space::Local) {
        for (index, register) in access.registers.iter().enumerate() {
            let values = convert::read(frame, *register);
            let offset = index as u64 * u64::from(element);
            if context.has_shared(space, lanes, offset + u64::from(element)) {
                for_active(mask, |lane| {
                    let at = (addresses[lane] + offset) as usize;
                    store_bytes(&mut context.shared[at..at + element as usize], values[lane]);
                });
                continue;
            }
            for lane in active(mask) {
                let at = addresses[lane].wrapping_add(offset);
                let cell = context.private(space, lane, at, element)?;
                cell.copy_from_slice(&values[lane].to_le_bytes()[..element as usize]);
            }
        }
        context.count_private(space, lanes, counted(space, lanes, false));
        return Ok(());
    }
    let common = context.common_region(lanes.bounds(), size);
    if let Some((_, region)) = common {
        lanes.ranges(|address, size| region.touch(address, size));
    }
    let first = mask.trailing_zeros() as usize;
    let number = if let Some((number, _)) = common { number } else { context.region(first, addresses[first], size)?.0 };
    for (index, register) in access.registers.iter().enumerate() {
        let values = convert::read(frame, *register);
        let offset = index as u64 * u64::from(element);
        if let Some((_, region)) = common {
            for_active(mask, |lane| region.store(addresses[lane] + offset, element, values[lane]));
            continue;
        }
        for lane in active(mask) {
            let (_, region) = context.region(lane, addresses[lane], size)?;
            region.touch(addresses[lane], u64::from(size));
            region.store(addresses[lane] + offset, element, values[lane]);
        }
    }
    context.record(space, number as u32, lanes);
    let stored = counted(space, lanes, false);
    context.count(space, number as u32, count::Count { l2_sectors: stored.sectors, ..stored });
    Ok(())
}

/// Loads a parameter of the launch or of the frame.
#[inline(never)]
pub(super) fn load_param(frame: &mut Frame, params: &[u8], access: &ParamAccess, mask: u32) -> Result<(), Error> {
    let element = access.ty.size() as usize;
    for (index, register) in access.registers.iter().enumerate() {
        let at = access.offset as usize + index * element;
        let values = if access.of_kernel {
            let bytes = params.get(at..at + element);
            let value = bytes.map(load_bytes).ok_or_else(|| Error::in_lane(0, "the launch lacks a parameter"))?;
            if element == 4 && register.0 == Bank::Word {
                set(&mut frame.words, register.1, mask, &[value as u32; 32]);
                continue;
            }
            [value; 32]
        } else {
            let stride = frame.params.len() / 32;
            let value = |lane: usize| load_bytes(&frame.params[lane * stride + at..lane * stride + at + element]);
            std::array::from_fn(value)
        };
        put(frame, *register, access.ty, mask, &values);
    }
    Ok(())
}

/// Stores a parameter of a call, or a result.
#[inline(never)]
pub(super) fn store_param(frame: &mut Frame, access: &ParamAccess, mask: u32) {
    let element = access.ty.size() as usize;
    let stride = frame.params.len() / 32;
    for (index, register) in access.registers.iter().enumerate() {
        let values = convert::read(frame, *register);
        for lane in active(mask) {
            let at = lane * stride + access.offset as usize + index * element;
            frame.params[at..at + element].copy_from_slice(&values[lane].to_le_bytes()[..element]);
        }
    }
}
