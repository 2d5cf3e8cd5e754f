//! A page of shadow memory: the state of its elements, each of which has a cell.
//!
//! Cells have the size of the first access to the page, until a smaller or misaligned access occurs. Cells of four and
//! eight bytes are [`Wide`]; smaller ones are [`Packed`], or wide if they differ too much for that. Writes and reads
//! are stored separately, so that memory that is only read or only written takes no more than it needs.

use std::ops::Range;

use super::{
    kinds::{self, Kinds},
    packed::{Full, Packed},
    record::{Reads, Write},
};

/// Bytes of memory of a page.
pub(super) const PAGE: u64 = 2048;

/// Cells with their full state. Elements without a cell have no state yet.
#[derive(Debug, Default)]
pub(super) struct Wide {
    pub(super) writes: Vec<Write>,
    pub(super) reads: [Vec<Reads>; 2],
}

#[derive(Debug)]
pub(super) enum Cells {
    Wide(Wide),
    Packed(Box<Packed>),
}

/// A piece of memory.
#[derive(Debug)]
pub(super) struct Page {
    /// Bytes of a cell, as a power of two.
    shift: u8,
    /// The number of its bytes that were never written, and the launch that counted them.
    pub(super) unwritten: (u32, u32),
    /// Where code finds which these are; 0 if it cannot, and all are written.
    pub(super) bits: u64,
    /// The last launch that stored unwritten bytes there: compiled code takes those for written.
    pub(super) carried: u32,
    /// The last launch on several threads of the system in which it was [claimed](super::claims).
    pub(super) claimed: u32,
    cells: Cells,
}

impl Page {
    /// The page with the first byte of an access.
    pub(super) fn of(address: u64, bytes: u64) -> Self {
        let shift = shift_of(address, bytes);
        Self { shift, unwritten: (0, 0), bits: 0, carried: 0, claimed: 0, cells: Cells::of(shift) }
    }

    /// Bytes of a cell, as a power of two.
    pub(super) const fn shift(&self) -> u8 {
        self.shift
    }

    pub(super) const fn kept(&self) -> &Cells {
        &self.cells
    }

    /// Cells of a page.
    #[inline]
    const fn len(&self) -> usize {
        (PAGE >> self.shift) as usize
    }

    /// The cells of an access within the page.
    #[inline]
    pub(super) fn cells(&mut self, address: u64, bytes: u64) -> Range<usize> {
        let offset = address % PAGE;
        let size = 1_u64 << self.shift;
        if bytes == size && offset & (size - 1) == 0 {
            let first = (offset >> self.shift) as usize;
            return first..first + 1;
        }
        if self.shift > 0 && (bytes < size || offset & (size - 1) != 0) {
            self.split(shift_of(address, bytes).min(self.shift));
        }
        let first = (offset >> self.shift) as usize;
        first..((offset + bytes).min(PAGE).div_ceil(1 << self.shift)) as usize
    }

    /// The last write of a cell; an empty one if there is none.
    #[inline]
    pub(super) fn write(&self, cell: usize) -> Write {
        match &self.cells {
            Cells::Wide(wide) => wide.writes.get(cell).copied().unwrap_or_default(),
            Cells::Packed(packed) => packed.write(cell),
        }
    }

    /// The first or second reads of a cell; without lanes if there are none.
    #[inline]
    pub(super) fn reads(&self, which: usize, cell: usize) -> Reads {
        match &self.cells {
            Cells::Wide(wide) => wide.reads.get(which).and_then(|reads| reads.get(cell)).copied().unwrap_or_default(),
            Cells::Packed(packed) => packed.reads(which, cell),
        }
    }

    /// Stores a write, and drops the reads before it. Blocks before `first` have finished.
    #[inline]
    pub(super) fn set_write(&mut self, cell: usize, write: Write, first: u32) {
        let len = self.len();
        match &mut self.cells {
            Cells::Wide(wide) => wide.set_write(cell, write, len),
            Cells::Packed(packed) => {
                if packed.set_write(cell, write, first) == Err(Full) {
                    let mut wide = Wide::of(packed, len);
                    wide.set_write(cell, write, len);
                    self.cells = Cells::Wide(wide);
                }
            }
        }
    }

    /// Stores reads as the first or second ones.
    #[inline]
    pub(super) fn set_reads(&mut self, which: usize, cell: usize, reads: Reads, first: u32) {
        let len = self.len();
        match &mut self.cells {
            Cells::Wide(wide) => wide.set_reads(which, cell, reads, len),
            Cells::Packed(packed) => {
                if packed.set_reads(which, cell, reads, first) == Err(Full) {
                    let mut wide = Wide::of(packed, len);
                    wide.set_reads(which, cell, reads, len);
                    self.cells = Cells::Wide(wide);
                }
            }
        }
    }

    /// The first of some cells, with those after it that have the same state.
    #[inline]
    pub(super) fn alike(&self, cells: Range<usize>) -> Range<usize> {
        match &self.cells {
            Cells::Wide(_) => cells.start..cells.start + 1,
            Cells::Packed(_) if cells.len() == 1 => cells,
            Cells::Packed(packed) => cells.start..packed.alike(cells),
        }
    }

    /// Copies the state of the first cell to the others, if all had the same state before.
    #[inline]
    pub(super) fn copy_first(&mut self, cells: Range<usize>) {
        if cells.len() == 1 {
            return;
        }
        match &mut self.cells {
            Cells::Packed(packed) => packed.copy_first(cells),
            // They were packed when `alike` was called, and were widened since.
            Cells::Wide(wide) => wide.copy_first(cells),
        }
    }

    /// Adds the kinds of accesses to its bytes by `n_blocks` blocks, from the first one on.
    pub(super) fn add_kinds(&self, (first, n_blocks): (u32, u32), all: &mut Kinds) {
        let counts = |block: u32| block.wrapping_sub(first) < n_blocks;
        let of_reads = |reads: &Reads| if counts(reads.block) { kinds::of_reads(reads.how()) } else { 0 };
        let mut add = |cell: usize, kinds: u8| {
            if kinds != 0 {
                all.add(cell << self.shift..(cell + 1) << self.shift, kinds);
            }
        };
        match &self.cells {
            Cells::Wide(wide) => {
                for (cell, write) in wide.writes.iter().enumerate() {
                    add(cell, if counts(write.block) { kinds::OF_WRITE } else { 0 });
                }
                for (cell, reads) in wide.reads.iter().flat_map(|all| all.iter().enumerate()) {
                    add(cell, if reads.lanes != 0 { of_reads(reads) } else { 0 });
                }
            }
            Cells::Packed(packed) => packed.each(|cell, reads, is_write| {
                add(cell, if is_write && counts(reads.block) { kinds::OF_WRITE } else { of_reads(reads) });
            }),
        }
    }

    /// Drops the state of some bytes.
    pub(super) fn forget(&mut self, address: u64, bytes: u64) {
        for cell in self.cells(address, bytes) {
            match &mut self.cells {
                Cells::Wide(wide) => wide.forget(cell),
                Cells::Packed(packed) => packed.forget(cell),
            }
        }
    }

    /// Splits the cells into smaller ones.
    #[cold]
    fn split(&mut self, shift: u8) {
        let each = 1 << (self.shift - shift);
        let before = std::mem::replace(&mut self.cells, Cells::of(shift));
        let cells = self.len();
        self.shift = shift;
        let (has_writes, has_reads) = match &before {
            Cells::Wide(wide) => (!wide.writes.is_empty(), !wide.reads[0].is_empty()),
            Cells::Packed(packed) => (packed.writes().is_some(), packed.all_reads().is_some()),
        };
        let before = Self { shift: self.shift, unwritten: (0, 0), bits: 0, carried: 0, claimed: 0, cells: before };
        for cell in 0..cells {
            let write = before.write(cell);
            let reads = [before.reads(0, cell), before.reads(1, cell)];
            for part in cell * each..(cell + 1) * each {
                if has_writes {
                    self.set_write(part, write, 0);
                }
                if has_reads {
                    (0..2).filter(|&which| reads[which].lanes != 0).for_each(|which| {
                        self.set_reads(which, part, reads[which], 0);
                    });
                }
            }
        }
    }

    /// Bytes that it takes.
    pub(super) fn size(&self) -> usize {
        let cells = match &self.cells {
            Cells::Wide(wide) => {
                let reads = wide.reads.iter().map(Vec::capacity).sum::<usize>();
                wide.writes.capacity() * size_of::<Write>() + reads * size_of::<Reads>()
            }
            Cells::Packed(packed) => packed.size(),
        };
        cells + size_of::<Self>()
    }
}

/// The cell size for an access, as a power of two.
fn shift_of(address: u64, bytes: u64) -> u8 {
    (address | bytes).trailing_zeros().min(3) as u8
}

impl Cells {
    fn of(shift: u8) -> Self {
        if shift < 2 { Self::Packed(Box::new(Packed::of(PAGE as usize >> shift))) } else { Self::Wide(Wide::default()) }
    }
}

impl Wide {
    /// The same cells.
    #[cold]
    fn of(packed: &Packed, len: usize) -> Self {
        let mut wide = Self::default();
        for cell in 0..len {
            if packed.writes().is_some() {
                wide.set_write(cell, packed.write(cell), len);
            }
            for which in 0..2 {
                let reads = packed.reads(which, cell);
                if reads.lanes != 0 {
                    wide.set_reads(which, cell, reads, len);
                }
            }
        }
        wide
    }

    fn set_write(&mut self, cell: usize, write: Write, len: usize) {
        if self.writes.is_empty() {
            self.writes = vec![Write::default(); len];
        }
        if let Some(kept) = self.writes.get_mut(cell) {
            *kept = write;
        }
        for reads in self.reads.iter_mut().filter_map(|reads| reads.get_mut(cell)) {
            reads.lanes = 0;
        }
    }

    fn set_reads(&mut self, which: usize, cell: usize, reads: Reads, len: usize) {
        // Compiled code assumes that there are first reads where there are second ones.
        for kept in self.reads.iter_mut().take(which + 1).filter(|kept| kept.is_empty()) {
            *kept = vec![Reads::default(); len];
        }
        if let Some(kept) = self.reads.get_mut(which).and_then(|kept| kept.get_mut(cell)) {
            *kept = reads;
        }
    }

    fn copy_first(&mut self, cells: Range<usize>) {
        if let Some(writes) = self.writes.get_mut(cells.clone()) {
            let first = writes[0];
            writes.fill(first);
        }
        for reads in self.reads.iter_mut().filter_map(|reads| reads.get_mut(cells.clone())) {
            let first = reads[0];
            reads.fill(first);
        }
    }

    fn forget(&mut self, cell: usize) {
        if let Some(write) = self.writes.get_mut(cell) {
            *write = Write::default();
        }
        for reads in self.reads.iter_mut().filter_map(|reads| reads.get_mut(cell)) {
            *reads = Reads::default();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Cells, PAGE, Page, Reads, Write};
    use crate::sanitize::{
        record::{Spot, When},
        shadow::Shadow,
    };

    #[test]
    fn cells_have_the_size_of_accesses() {
        let mut shadow = Shadow::default();
        let mut cells = |address, bytes| shadow.page(address, bytes).map(|page| page.cells(address, bytes));
        assert_eq!(cells(4096, 4), Some(0..1));
        assert_eq!(cells(4100, 4), Some(1..2));
        assert_eq!(cells(4104, 8), Some(2..4));
        // A byte of it.
        assert_eq!(cells(4098, 1), Some(2..3));
        assert_eq!(cells(4096, 8), Some(0..8));
        // Accesses of eight bytes to elements of four.
        assert_eq!(cells(8192, 4), Some(0..1));
        assert_eq!(cells(8192, 8), Some(0..2));
        // Of four where that is enough.
        assert_eq!(cells(16384, 8), Some(0..1));
        assert_eq!(cells(16388, 4), Some(1..2));
        assert_eq!(cells(16392, 8), Some(2..4));
        assert_eq!(Shadow::in_page(PAGE - 2, 8), 2);
    }

    #[test]
    fn each_byte_has_what_its_element_had() {
        // No other test's.
        let place = 13 << 40;
        let mut shadow = Shadow::default();
        let when = When { block: 1, thread: 2, epoch: 3, clock: 4, how: 1, spot: Spot::new(5, 6) };
        let page = shadow.page(place, 4).expect("a page is made");
        page.set_write(1, Write::of(&when), 0);
        page.set_reads(0, 1, Reads { lanes: 6, ..Reads::of(&when) }, 0);
        for (cell, shift) in [(2, 1), (5, 0)] {
            assert_eq!(page.cells(place + (cell << shift), 1 << shift), cell as usize..cell as usize + 1);
            assert_eq!((page.shift(), page.write(cell as usize).when(), page.write(1).block), (shift, when, 0));
            assert_eq!((page.reads(0, cell as usize).lanes, page.reads(0, 1).lanes), (6, 0));
        }
    }

    #[test]
    fn cells_that_are_too_different_are_wide() {
        for shift in [0, 1] {
            let mut page = Page::of(4096, 1 << shift);
            let cells = PAGE as usize >> shift;
            let when =
                |cell: usize| When { block: 1 + cell as u32, clock: 1, spot: Spot::new(3, 0), ..When::default() };
            for cell in 0..cells {
                page.set_write(cell, Write::of(&when(cell)), 0);
                page.set_reads(0, cell, Reads::of(&when(cell + 1)), 0);
                page.set_reads(1, cell, Reads::of(&when(cell + 2)), 0);
                assert!(matches!(page.cells, Cells::Wide(_)) || page.size() < 16 * PAGE as usize);
            }
            assert!(matches!(page.cells, Cells::Wide(_)));
            assert!((0..cells).all(|cell| page.write(cell).when() == when(cell)));
            assert!((0..cells).all(|cell| page.reads(1, cell) == Reads::of(&when(cell + 2))));
        }
    }
}
