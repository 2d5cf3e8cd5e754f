//! The record of an access: thread, time and location.
//!
//! Sanitized code compares and writes these: their fields have the layout that `inline_checks.ll` of the compiler's host back
//! end specifies.

/// Of an access: it was atomic, and so among the threads of a block only.
pub(super) const ATOMIC: u32 = 1;
pub(super) const OF_BLOCK: u32 = 2;
/// An atomic operation that writes: it is stored among the reads.
pub(super) const STEP: u32 = 4;

/// Later clock values are not distinguished.
pub(super) const MOST_CLOCK: u32 = (1 << 19) - 1;

/// An access by itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct When {
    /// The block's number among all that there were; 0 is no block's.
    pub(super) block: u32,
    pub(super) thread: u32,
    pub(super) epoch: u32,
    pub(super) clock: u32,
    /// [`ATOMIC`], [`OF_BLOCK`] and [`STEP`].
    pub(super) how: u32,
    /// A site and the calls that led there.
    pub(super) spot: Spot,
}

/// A site with the calls that led there: 18 bits of one, 14 of the others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Spot(u32);

impl Spot {
    const SITES: u32 = (1 << 18) - 1;

    #[inline]
    pub(super) fn new(site: u32, calls: u32) -> Self {
        Self(calls << 18 | site.min(Self::SITES))
    }

    /// As code knows it.
    pub(super) const fn bits(self) -> u32 {
        self.0
    }

    pub(super) const fn of_bits(bits: u32) -> Self {
        Self(bits)
    }

    pub(super) const fn site(self) -> u32 {
        self.0 & Self::SITES
    }

    pub(super) const fn chain(self) -> u32 {
        self.0 >> 18
    }
}

/// The last write.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Write {
    pub(super) block: u32,
    pub(super) epoch: u32,
    spot: Spot,
    /// The clock, ten bits of the thread, three bits of how.
    packed: u32,
}

/// Reads of some lanes of a warp at one time.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Reads {
    pub(super) block: u32,
    pub(super) epoch: u32,
    pub(super) spot: Spot,
    /// The clock, five bits of the warp, three bits of how.
    pub(super) packed: u32,
    /// Which lanes; 0 if there is no read.
    pub(super) lanes: u32,
}

impl Write {
    #[inline]
    pub(super) fn of(when: &When) -> Self {
        let When { block, thread, epoch, clock, how, spot } = *when;
        Self { block, epoch, spot, packed: clock << 13 | thread << 3 | how }
    }

    #[inline]
    pub(super) const fn thread(&self) -> u32 {
        self.packed >> 3 & 1023
    }

    pub(super) const fn packed(&self) -> u32 {
        self.packed
    }

    pub(super) fn when(&self) -> When {
        let Self { block, epoch, spot, packed } = *self;
        When { block, thread: self.thread(), epoch, clock: packed >> 13, how: packed & 7, spot }
    }
}

impl Reads {
    #[inline]
    pub(super) fn of(when: &When) -> Self {
        let When { block, thread, epoch, clock, how, spot } = *when;
        Self { block, epoch, lanes: 1 << (thread % 32), spot, packed: clock << 8 | ((thread / 32) << 3) | how }
    }

    pub(super) const fn packed(&self) -> u32 {
        self.packed
    }

    /// The site and the calls, as code knows them.
    pub(super) const fn spot_bits(&self) -> u32 {
        self.spot.bits()
    }

    /// [`ATOMIC`], [`OF_BLOCK`] and [`STEP`].
    pub(super) const fn how(&self) -> u32 {
        self.packed & 7
    }

    /// Whether they are steps that write.
    #[inline]
    pub(super) const fn writes(&self) -> bool {
        self.packed & STEP != 0
    }

    #[inline]
    pub(super) const fn warp(&self) -> u32 {
        self.packed >> 3 & 31
    }

    /// Whether a read differs from these in its lane alone.
    #[inline]
    pub(super) fn takes(&self, read: &Self) -> bool {
        (self.block, self.epoch, self.spot, self.packed) == (read.block, read.epoch, read.spot, read.packed)
    }

    /// Each of them.
    pub(super) fn each(self) -> impl Iterator<Item = When> {
        let Self { block, epoch, lanes, spot, packed } = self;
        let warp = self.warp() * 32;
        (0..32).filter(move |lane| lanes >> lane & 1 == 1).map(move |lane| When {
            block,
            thread: warp + lane,
            epoch,
            clock: packed >> 8,
            how: packed & 7,
            spot,
        })
    }
}

#[cfg(test)]
mod tests {
    use std::mem::{offset_of, size_of};

    use weft_artifact::HostSeen;

    use super::{ATOMIC, OF_BLOCK, Reads, STEP, Spot, When, Write};

    /// As `inline_checks.ll` counts.
    #[test]
    fn fields_lie_where_code_looks() {
        assert_eq!((size_of::<Write>(), size_of::<Reads>()), (16, 20));
        let write = Write::of(&When { block: 1, thread: 33, epoch: 2, clock: 1, how: 0, spot: Spot::new(4, 0) });
        assert_eq!((offset_of!(Write, spot), offset_of!(Write, packed), write.packed() & 0x1ff8), (8, 12, 33 << 3));
        assert_eq!((offset_of!(Reads, spot), offset_of!(Reads, packed), offset_of!(Reads, lanes)), (8, 12, 16));
    }

    #[test]
    fn accesses_are_packed_and_unpacked() {
        let when = When { block: 9, thread: 1023, epoch: 7, clock: super::MOST_CLOCK, how: 7, spot: Spot::new(3, 4) };
        assert_eq!(Write::of(&when).when(), when);
        assert_eq!(Reads::of(&when).each().collect::<Vec<_>>(), [when]);
        assert_eq!((when.spot.site(), when.spot.chain()), (3, 4));
    }

    /// As code makes them.
    #[test]
    fn first_accesses_and_steps_are_as_code_says() {
        let when = When { block: 1, thread: 0, epoch: 0, clock: 1, how: ATOMIC | STEP, spot: Spot::default() };
        assert_eq!(Reads::of(&when).packed(), HostSeen::FIRST_READ | HostSeen::STEP as u32);
        assert_eq!(Write::of(&When { how: 0, ..when }).packed(), HostSeen::FIRST_WRITE);
        assert_eq!(u64::from(OF_BLOCK), HostSeen::OF_BLOCK);
    }
}
