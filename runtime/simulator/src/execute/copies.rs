//! Copies between shared and global memory that barriers or groups count. They are made as late as the program allows, as on
//! the CPU: a copy to shared memory where a thread waits for a phase in which only bytes are missing, one to global memory
//! where its thread waits for its group. So a program that reads without waiting reads what was there before.

use std::collections::VecDeque;

use weft_artifact::{BoxMap, MAP_BYTES, MAP_DIMS};

use super::{
    Machine,
    cluster::{At, Cluster},
};
use crate::memory::{Memory, Region};

/// The bytes of a sector.
pub(super) const SECTOR: u64 = 32;
/// The largest extent of a box.
const MOST: u32 = 256;

/// Memory that a copy reads or writes.
#[derive(Debug, Clone, Copy)]
pub(super) enum Side {
    Shared(At, u64),
    Global(u64, u64),
    /// A box of an array in global memory, and its first indices.
    Box(BoxMap, [i64; MAP_DIMS]),
}

/// A copy to shared memory.
#[derive(Debug, Clone, Copy)]
pub(super) struct Copy {
    pub(super) to: At,
    pub(super) from: Side,
}

/// A copy to global memory.
#[derive(Debug)]
pub(super) struct Store {
    pub(super) to: Side,
    pub(super) from: At,
    /// The source, if it has been read.
    pub(super) read: Option<Vec<u8>>,
}

/// The copies of a thread to global memory.
#[derive(Debug, Default)]
pub(super) struct Groups {
    /// Since the latest group.
    pub(super) open: Vec<Store>,
    /// The groups, the oldest first.
    pub(super) closed: VecDeque<Vec<Store>>,
}

/// Reads the tensor map at an address, for an instruction with a number of dimensions.
pub(super) fn map(memory: &Memory, address: u64, dims: usize) -> Result<BoxMap, String> {
    let Some(number) = memory.find(address, MAP_BYTES as u64).filter(|_| address.is_multiple_of(64)) else {
        return Err(format!("there is no tensor map at the address {address:#x}"));
    };
    let region = &memory.regions()[number];
    let words = std::array::from_fn(|word| region.load(address + 8 * word as u64, 8));
    let map = BoxMap::read(&words);
    let is_known = map.words() == words
        && (1..=MAP_DIMS).contains(&map.dims)
        && matches!(map.element, 1 | 2 | 4 | 8 | 16)
        && matches!(map.swizzle, 0 | 32 | 64 | 128)
        && map.sizes[..map.dims].iter().all(|size| (1..=MOST).contains(size));
    if !is_known {
        return Err("the tensor map is not one of the CPU: only a GPU reads its own tensor maps".to_owned());
    }
    if map.dims != dims {
        return Err(format!("a copy of a box with {dims} dimensions by a tensor map with {}", map.dims));
    }
    Ok(map)
}

impl Side {
    /// The number of bytes.
    pub(super) fn bytes(&self) -> u64 {
        match self {
            Self::Shared(_, bytes) | Self::Global(_, bytes) => *bytes,
            Self::Box(map, _) => map.box_bytes(),
        }
    }

    /// The number of bytes in global memory: without those of a box outside of its array.
    pub(super) fn bytes_inside(&self) -> u64 {
        self.ranges().iter().map(|(_, bytes)| bytes).sum()
    }

    /// The ranges of global memory.
    pub(super) fn ranges(&self) -> Vec<(u64, u64)> {
        match self {
            Self::Shared(..) => Vec::new(),
            Self::Global(address, bytes) => vec![(*address, *bytes)],
            Self::Box(map, first) => map.ranges(*first),
        }
    }
}

/// The sectors of ranges of global memory.
pub(super) fn sectors(ranges: &[(u64, u64)]) -> u64 {
    let sectors = |(address, bytes): &(u64, u64)| (address + bytes).div_ceil(SECTOR) - address / SECTOR;
    ranges.iter().filter(|(_, bytes)| *bytes > 0).map(sectors).sum()
}

/// The region of some bytes, which were found before.
fn region(memory: &Memory, address: u64, bytes: u64) -> Option<&Region> {
    memory.find(address, bytes).map(|number| &memory.regions()[number])
}

/// Reads bytes of global memory, in units of up to 8 bytes.
fn read(memory: &Memory, address: u64, bytes: &mut [u8]) {
    let Some(region) = region(memory, address, bytes.len() as u64) else { return };
    let unit = unit(address, bytes.len());
    for (at, part) in bytes.chunks_mut(unit).enumerate() {
        let value = region.load(address + (at * unit) as u64, unit as u32);
        part.copy_from_slice(&value.to_le_bytes()[..unit]);
    }
}

/// Writes bytes to global memory.
fn write(memory: &Memory, address: u64, bytes: &[u8]) {
    let Some(region) = region(memory, address, bytes.len() as u64) else { return };
    let unit = unit(address, bytes.len());
    for (at, part) in bytes.chunks(unit).enumerate() {
        region.store(address + (at * unit) as u64, unit as u32, super::access::load_bytes(part));
    }
}

/// The largest unit of which an address and a size are multiples.
fn unit(address: u64, bytes: usize) -> usize {
    [8, 4, 2].into_iter().find(|unit| (address as usize | bytes).is_multiple_of(*unit)).unwrap_or(1)
}

impl Copy {
    /// Makes the copy.
    fn make(&self, memory: &Memory, cluster: &mut Cluster) {
        match self.from {
            Side::Shared(from, bytes) => {
                let copied = cluster.bytes(from, bytes as usize).to_vec();
                cluster.bytes(self.to, copied.len()).copy_from_slice(&copied);
            }
            Side::Global(from, bytes) => read(memory, from, cluster.bytes(self.to, bytes as usize)),
            Side::Box(map, first) => map.for_each_row(first, &mut |row, elements| {
                let mut bytes = vec![0; row.bytes];
                for (number, address) in elements {
                    read(memory, *address, &mut bytes[number * map.element..(number + 1) * map.element]);
                }
                row.for_each_part(self.to.offset, &mut |from, distance, n| {
                    let to = At { offset: self.to.offset + distance, ..self.to };
                    cluster.bytes(to, n).copy_from_slice(&bytes[from..from + n]);
                });
            }),
        }
    }
}

impl Store {
    fn source(&self, cluster: &mut Cluster) -> Vec<u8> {
        cluster.bytes(self.from, self.to.bytes() as usize).to_vec()
    }

    /// Reads the source, unless it was read before.
    pub(super) fn read(&mut self, cluster: &mut Cluster) {
        if self.read.is_none() {
            self.read = Some(self.source(cluster));
        }
    }

    /// Writes the source to global memory.
    pub(super) fn write(&self, memory: &Memory, cluster: &mut Cluster) {
        let source = self.read.clone().unwrap_or_else(|| self.source(cluster));
        match self.to {
            Side::Shared(..) => {}
            Side::Global(to, _) => write(memory, to, &source),
            Side::Box(map, first) => map.for_each_row(first, &mut |row, elements| {
                let mut bytes = vec![0; row.bytes];
                row.for_each_part(self.from.offset, &mut |to, distance, n| {
                    bytes[to..to + n].copy_from_slice(&source[distance as usize..distance as usize + n]);
                });
                for (number, address) in elements {
                    write(memory, *address, &bytes[number * map.element..(number + 1) * map.element]);
                }
            }),
        }
    }
}

impl Machine<'_> {
    /// Makes the copies for which alone the phase of a barrier waits.
    pub(super) fn make_copies(&mut self, at: At) {
        while let Some(barrier) = self.cluster.barriers.get_mut(&at)
            && barrier.waits_for_bytes()
            && let Some(copy) = barrier.copies.pop_front()
        {
            copy.make(self.memory, &mut self.cluster);
            self.cluster.changes += 1;
            if let Some(barrier) = self.cluster.barriers.get_mut(&at) {
                barrier.add(copy.from.bytes());
            }
        }
    }

    /// The blocks of the cluster have ended: makes the copies to global memory for whose sources their threads have waited.
    pub(crate) fn end_cluster(&mut self) {
        let groups = std::mem::take(&mut self.cluster.groups);
        let stores = groups.into_values().flat_map(|groups| groups.closed).flatten();
        stores.filter(|store| store.read.is_some()).for_each(|store| store.write(self.memory, &mut self.cluster));
    }
}
