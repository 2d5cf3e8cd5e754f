//! Rows of bytes: the unit of one copy call of the driver, and of one copy node of a graph.

use crate::error::{Error, ErrorKind};

/// The largest distance of rows that every GPU can copy at once.
pub(crate) const MAX_PITCH: u64 = i32::MAX as u64;

/// Rows of bytes to copy, with a pitch for each side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rows {
    /// Bytes of a row.
    pub width: u64,
    /// How many rows there are.
    pub count: u64,
    /// Bytes from the start of one to the start of the next where they go.
    pub to_pitch: u64,
    /// The same where they are from.
    pub from_pitch: u64,
}

impl Rows {
    /// One row of `bytes` bytes.
    pub fn one(bytes: u64) -> Self {
        Self { width: bytes, count: 1, to_pitch: bytes, from_pitch: bytes }
    }

    /// All elements of two arrays of one shape, each dimension with its extent and its strides in bytes, where they go and where
    /// they are from. `None` if that is more than one row and its repetition, or another order.
    pub fn of_elements(mut dims: Vec<(u64, i64, i64)>, itemsize: u64) -> Option<Self> {
        dims.retain(|(extent, ..)| *extent > 1);
        dims.sort_by_key(|(_, to, _)| *to);
        let mut width = itemsize;
        let mut outer: Option<Self> = None;
        for (extent, to, from) in dims {
            let (to, from) = (u64::try_from(to).ok()?, u64::try_from(from).ok()?);
            match &mut outer {
                None if to == width && from == width => width = width.checked_mul(extent)?,
                None => outer = Some(Self { width, count: extent, to_pitch: to, from_pitch: from }),
                Some(rows)
                    if rows.to_pitch.checked_mul(rows.count) == Some(to)
                        && rows.from_pitch.checked_mul(rows.count) == Some(from) =>
                {
                    rows.count = rows.count.checked_mul(extent)?;
                }
                Some(_) => return None,
            }
        }
        let rows = outer.unwrap_or_else(|| Self::one(width));
        let fits = |pitch| rows.count == 1 || (rows.width..=MAX_PITCH).contains(&pitch);
        (fits(rows.to_pitch) && fits(rows.from_pitch)).then_some(rows)
    }

    /// The same rows, copied back.
    #[must_use]
    pub fn back(self) -> Self {
        Self { to_pitch: self.from_pitch, from_pitch: self.to_pitch, ..self }
    }

    /// A row's bytes in the host memory.
    pub(crate) fn of<'a>(&self, from: &'a [u8], row: u64) -> Result<&'a [u8], Error> {
        let start = row.checked_mul(self.from_pitch);
        let end = start.and_then(|start| start.checked_add(self.width));
        let range = start.zip(end).and_then(|(start, end)| from.get(start as usize..end as usize));
        range.ok_or_else(|| Error::new(ErrorKind::Value, "the host memory is too small for a copy by rows"))
    }
}

#[cfg(test)]
mod tests {
    use super::Rows;

    fn rows(dims: Vec<(u64, i64, i64)>, itemsize: u64) -> Option<Rows> {
        Rows::of_elements(dims, itemsize)
    }

    fn pitched(width: u64, count: u64, to_pitch: u64, from_pitch: u64) -> Rows {
        Rows { width, count, to_pitch, from_pitch }
    }

    #[test]
    fn what_lies_without_gaps_is_one_row() {
        assert_eq!(rows(vec![(3, 32, 32), (4, 8, 8)], 8), Some(Rows::one(96)));
        assert_eq!(rows(vec![(4, 8, 8), (3, 32, 32)], 8), Some(Rows::one(96)));
        assert_eq!(rows(Vec::new(), 8), Some(Rows::one(8)));
        assert_eq!(rows(vec![(1, 5, 7)], 8), Some(Rows::one(8)));
    }

    #[test]
    fn gaps_are_pitches() {
        assert_eq!(rows(vec![(3, 32, 64), (4, 8, 8)], 8), Some(pitched(32, 3, 32, 64)));
        assert_eq!(rows(vec![(5, 96, 192), (3, 32, 64), (4, 8, 8)], 8), Some(pitched(32, 15, 32, 64)));
        assert_eq!(rows(vec![(3, 16, 8)], 8), Some(pitched(8, 3, 16, 8)));
    }

    #[test]
    fn other_layouts_are_no_rows() {
        // Another order, two distances, elements several times, backwards, too far apart.
        assert_eq!(rows(vec![(3, 32, 8), (4, 8, 24)], 8), None);
        assert_eq!(rows(vec![(2, 96, 500), (3, 32, 64), (4, 8, 8)], 8), None);
        assert_eq!(rows(vec![(3, 8, 0)], 8), None);
        assert_eq!(rows(vec![(3, 8, -8)], 8), None);
        assert_eq!(rows(vec![(3, 8, 1 << 31)], 8), None);
    }
}
