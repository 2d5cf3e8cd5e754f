//! Arrays of a launch: which of their elements an address is.

/// An array that the kernel was given, to say which of its elements an address is.
#[derive(Clone, Debug, Default)]
pub struct Argument {
    /// The parameter.
    pub name: String,
    /// Its number.
    pub parameter: u32,
    /// All of its extents and strides are known.
    pub is_whole: bool,
    /// Its first element.
    pub start: u64,
    /// Bytes of an element.
    pub item: u64,
    /// Its extents.
    pub shape: Vec<u64>,
    /// Bytes from one element to the next, by axis.
    pub strides: Vec<i64>,
}

impl Argument {
    /// Where its elements lie: the first byte, and one past the last.
    pub(super) fn range(&self) -> (u64, u64) {
        if self.shape.contains(&0) {
            return (self.start, self.start);
        }
        let spans = self
            .strides
            .iter()
            .zip(&self.shape)
            .map(|(stride, &extent)| stride.saturating_mul(extent.cast_signed().saturating_sub(1)));
        let (before, after) = spans.fold((0_u64, 0_u64), |(before, after), span| match span {
            ..0 => (before.saturating_add(span.unsigned_abs()), after),
            0.. => (before, after.saturating_add(span.unsigned_abs())),
        });
        let end = self.start.saturating_add(after).saturating_add(self.item);
        (self.start.saturating_sub(before), end)
    }

    /// The index of the element that contains an address.
    pub(super) fn index(&self, address: u64) -> Option<Vec<i64>> {
        let mut left = address.wrapping_sub(self.start).cast_signed();
        if self.shape.contains(&0) {
            return None;
        }
        // From the longest stride to the shortest, each forward.
        let mut axes: Vec<usize> = (0..self.shape.len()).collect();
        axes.sort_by_key(|&axis| std::cmp::Reverse(self.strides.get(axis).copied().unwrap_or(0).unsigned_abs()));
        let mut index = vec![0_i64; self.shape.len()];
        for axis in axes {
            let (stride, extent) = (*self.strides.get(axis)?, self.shape.get(axis)?.cast_signed());
            let backwards = stride < 0;
            if stride == 0 || (backwards && self.shape.len() > 1) {
                continue;
            }
            let at = (left / stride).clamp(0, extent - 1);
            index[axis] = at;
            left -= at * stride;
        }
        (0..self.item.cast_signed()).contains(&left).then_some(index)
    }
}
