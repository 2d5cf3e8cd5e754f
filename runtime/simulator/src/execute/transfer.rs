//! Values between registers and memory for accesses whose pattern is known: the runs of contiguous and of equal lanes
//! are copied together.

#![expect(clippy::inline_always, reason = "the callers are compiled twice: see `simple::block`")]

use std::sync::atomic::Ordering::{Acquire, Relaxed};

use super::{
    Context, access, convert,
    lanes::set,
    pattern::{Known, Patterns, Step},
    warp::Frame,
};
use crate::{
    count::{Count, Lanes, NO_REGION},
    decode::{Access, Bank},
    memory::Region,
    parse::Space,
};

/// Loads in lanes whose addresses are in one space, if their pattern is known and all are in one region or in shared
/// memory. Returns false, and loads nothing, if not.
#[inline(always)]
pub(super) fn load(
    context: &mut Context,
    frame: &mut Frame,
    access: &Access,
    space: Space,
    lanes: (&[u64; 32], u32),
) -> bool {
    let patterns = std::mem::take(&mut context.patterns);
    let mut is_done = false;
    if let Some(known) = find(&mut patterns[context.counter], (access, space), lanes, true)
        && let Some((region, l2_sectors)) = load_known(context, frame, access, (space, lanes.1), &known)
    {
        context.count_known((space, region, l2_sectors), lanes, &known);
        is_done = true;
    }
    context.patterns = patterns;
    is_done
}

/// Stores in lanes whose addresses are in one space, if their pattern is known and all are in one region or in shared
/// memory. Returns false, and stores nothing, if not.
#[inline(always)]
pub(super) fn store(
    context: &mut Context,
    frame: &Frame,
    access: &Access,
    space: Space,
    lanes: (&[u64; 32], u32),
) -> bool {
    let patterns = std::mem::take(&mut context.patterns);
    let mut is_done = false;
    if let Some(known) = find(&mut patterns[context.counter], (access, space), lanes, false)
        && let Some((region, l2_sectors)) = store_known(context, frame, access, space, &known)
    {
        context.count_known((space, region, l2_sectors), lanes, &known);
        is_done = true;
    }
    context.patterns = patterns;
    is_done
}

/// The pattern of an access. None for local memory, which has an address space for each lane.
#[inline(always)]
fn find<'p>(
    patterns: &'p mut Patterns,
    (access, space): (&Access, Space),
    lanes: (&[u64; 32], u32),
    is_load: bool,
) -> Option<Known<'p>> {
    if space == Space::Local {
        return None;
    }
    let element = access.ty.size();
    let sizes = (element * access.registers.len() as u32, element);
    patterns.find(space, lanes, sizes, |lanes| access::counted(space, lanes, is_load))
}

impl Context<'_, '_> {
    /// Adds the counts of an access, and records it if it is one of the first.
    fn count_known(
        &mut self,
        (space, region, l2_sectors): (Space, u32, u64),
        (addresses, mask): (&[u64; 32], u32),
        known: &Known,
    ) {
        if self.records() {
            self.record(space, region, Lanes::new(addresses, mask, known.size));
        }
        self.count(space, region, Count { l2_sectors, ..*known.count });
    }
}

/// The shared memory from an address to the end of the access at the greatest address.
fn range(low: u64, high: u64, size: u32) -> std::ops::Range<usize> {
    low as usize..high.saturating_add(u64::from(size)) as usize
}

#[inline(always)]
fn load_known(
    context: &mut Context,
    frame: &mut Frame,
    access: &Access,
    (space, mask): (Space, u32),
    known: &Known,
) -> Option<(u32, u64)> {
    let element = access.ty.size();
    let (low, high) = known.bounds();
    if space == Space::Shared {
        let bytes = context.shared.get(range(low, high, known.size))?;
        for (offset, (bank, register)) in access.registers.iter().enumerate() {
            if element == 4 && *bank == Bank::Word {
                set(&mut frame.words, *register, mask, &words_of_bytes(known, bytes, offset));
            } else {
                let values = values_of_bytes(known, bytes, offset, element);
                access::put(frame, (*bank, *register), access.ty, mask, &values);
            }
        }
        return Some((NO_REGION, 0));
    }
    let (number, region) = context.common_region((low, high), known.size)?;
    let mut l2_sectors = 0;
    for (address, size) in known.ranges() {
        region.touch(address, size);
        if space == Space::Global {
            l2_sectors += context.machine.loaded.load(address, size);
        }
    }
    for (offset, (bank, register)) in access.registers.iter().enumerate() {
        if element == 4 && *bank == Bank::Word {
            set(&mut frame.words, *register, mask, &words_of_region(known, region, offset));
        } else {
            let values = values_of_region(known, region, offset, element);
            access::put(frame, (*bank, *register), access.ty, mask, &values);
        }
    }
    Some((number as u32, l2_sectors))
}

#[inline(always)]
fn store_known(
    context: &mut Context,
    frame: &Frame,
    access: &Access,
    space: Space,
    known: &Known,
) -> Option<(u32, u64)> {
    let element = access.ty.size();
    let (low, high) = known.bounds();
    if space == Space::Shared {
        let bytes = context.shared.get_mut(range(low, high, known.size))?;
        for (offset, (bank, register)) in access.registers.iter().enumerate() {
            if element == 4 && *bank == Bank::Word {
                words_to_bytes(known, bytes, offset, &frame.words[*register as usize]);
            } else {
                values_to_bytes(known, bytes, (offset, element), &convert::read(frame, (*bank, *register)));
            }
        }
        return Some((NO_REGION, 0));
    }
    let (number, region) = context.common_region((low, high), known.size)?;
    known.ranges().for_each(|(address, size)| region.touch(address, size));
    for (offset, (bank, register)) in access.registers.iter().enumerate() {
        if element == 4 && *bank == Bank::Word {
            words_to_region(known, region, offset, &frame.words[*register as usize]);
        } else {
            values_to_region(known, region, (offset, element), &convert::read(frame, (*bank, *register)));
        }
    }
    Some((number as u32, known.count.sectors))
}

/// Copies as many elements as there are targets, through a function. In pieces of a fixed length, which are vectors.
#[inline(always)]
fn copy<T, U>(into: &mut [T], from: &[U], convert: impl Fn(&U) -> T) {
    let from = &from[..into.len()];
    let ((whole, rest), (whole_from, rest_from)) = (into.as_chunks_mut::<8>(), from.as_chunks::<8>());
    for (into, from) in whole.iter_mut().zip(whole_from) {
        for lane in 0..8 {
            into[lane] = convert(&from[lane]);
        }
    }
    for (into, from) in rest.iter_mut().zip(rest_from) {
        *into = convert(from);
    }
}

/// Sets all elements to a value.
#[inline(always)]
fn fill<T: Copy>(into: &mut [T], value: T) {
    let (whole, rest) = into.as_chunks_mut::<8>();
    for piece in whole {
        *piece = [value; 8];
    }
    for one in rest {
        *one = value;
    }
}

/// Loads an element of each active lane, which is as many elements from its address: `read` copies consecutive elements,
/// counted from the one at the least address.
#[inline(always)]
fn gather<T: Copy + Default>(known: &Known, offset: usize, read: impl Fn(usize, &mut [T])) -> [T; 32] {
    let mut values = [T::default(); 32];
    let elements = &known.pattern.elements;
    for run in &known.pattern.runs {
        let lanes = run.lane..run.lane + run.len;
        let start = elements[run.lane] as usize + offset;
        match run.step {
            Step::Next => read(start, &mut values[lanes]),
            Step::Same => {
                let mut value = [T::default()];
                read(start, &mut value);
                fill(&mut values[lanes], value[0]);
            }
            Step::Other => {
                for (value, element) in values[lanes.clone()].iter_mut().zip(&elements[lanes]) {
                    read(*element as usize + offset, std::slice::from_mut(value));
                }
            }
        }
    }
    values
}

/// Stores an element of each active lane, as [`gather`] loads it. Of lanes with the same element the last one is stored.
#[inline(always)]
fn scatter<T: Copy>(known: &Known, offset: usize, values: &[T; 32], mut write: impl FnMut(usize, &[T])) {
    let elements = &known.pattern.elements;
    for run in &known.pattern.runs {
        let lanes = run.lane..run.lane + run.len;
        let start = elements[run.lane] as usize + offset;
        match run.step {
            Step::Next => write(start, &values[lanes]),
            Step::Same => write(start, &values[lanes.end - 1..lanes.end]),
            Step::Other => {
                for (value, element) in values[lanes.clone()].iter().zip(&elements[lanes]) {
                    write(*element as usize + offset, std::slice::from_ref(value));
                }
            }
        }
    }
}

/// Loads words from bytes, which begin at the least address.
#[inline(always)]
fn words_of_bytes(known: &Known, bytes: &[u8], offset: usize) -> [u32; 32] {
    let (words, _) = bytes.as_chunks::<4>();
    gather(known, offset, |start, into: &mut [u32]| {
        copy(into, &words[start..], |word| u32::from_le_bytes(*word));
    })
}

/// Loads elements of a size from bytes, which begin at the least address.
#[inline(never)]
fn values_of_bytes(known: &Known, bytes: &[u8], offset: usize, element: u32) -> [u64; 32] {
    let element = element as usize;
    gather(known, offset, |start, into: &mut [u64]| {
        for (value, own) in into.iter_mut().zip(bytes[start * element..].chunks_exact(element)) {
            *value = access::load_bytes(own);
        }
    })
}

/// Stores words to bytes.
#[inline(always)]
fn words_to_bytes(known: &Known, bytes: &mut [u8], offset: usize, values: &[u32; 32]) {
    let (words, _) = bytes.as_chunks_mut::<4>();
    scatter(known, offset, values, |start, from| {
        copy(&mut words[start..start + from.len()], from, |value| value.to_le_bytes());
    });
}

/// Stores elements of a size to bytes.
#[inline(never)]
fn values_to_bytes(known: &Known, bytes: &mut [u8], (offset, element): (usize, u32), values: &[u64; 32]) {
    let element = element as usize;
    scatter(known, offset, values, |start, from| {
        for (own, value) in bytes[start * element..].chunks_exact_mut(element).zip(from) {
            access::store_bytes(own, *value);
        }
    });
}

/// Loads words from a region.
#[inline(always)]
fn words_of_region(known: &Known, region: &Region, offset: usize) -> [u32; 32] {
    let words = region.words(known.bounds().0);
    gather(known, offset, |start, into: &mut [u32]| {
        copy(into, &words[start..], |word| word.load(Acquire));
    })
}

/// Loads elements of a size from a region.
#[inline(never)]
fn values_of_region(known: &Known, region: &Region, offset: usize, element: u32) -> [u64; 32] {
    let low = known.bounds().0;
    gather(known, offset, |start, into: &mut [u64]| {
        for (index, value) in into.iter_mut().enumerate() {
            *value = region.load(low + (start + index) as u64 * u64::from(element), element);
        }
    })
}

/// Stores words to a region.
#[inline(always)]
fn words_to_region(known: &Known, region: &Region, offset: usize, values: &[u32; 32]) {
    let words = region.words(known.bounds().0);
    scatter(known, offset, values, |start, from| {
        for (word, value) in words[start..].iter().zip(from) {
            word.store(*value, Relaxed);
        }
    });
}

/// Stores elements of a size to a region.
#[inline(never)]
fn values_to_region(known: &Known, region: &Region, (offset, element): (usize, u32), values: &[u64; 32]) {
    let low = known.bounds().0;
    scatter(known, offset, values, |start, from| {
        for (index, value) in from.iter().enumerate() {
            region.store(low + (start + index) as u64 * u64::from(element), element, *value);
        }
    });
}
