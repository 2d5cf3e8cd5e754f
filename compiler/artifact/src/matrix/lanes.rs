//! Products of matrices whose elements are in the registers of a warp's lanes.

use super::{LANES, MatrixPart, MatrixTile};

/// The values of a register in all lanes, as bits.
type Lanes = [u64; LANES];

impl MatrixTile {
    /// The product of a tile: `c += a * b`, of the registers of A and B and of the accumulators. `product` computes it
    /// for whole matrices: [`super::product::product`], or a function that is compiled for the machine's vectors.
    pub fn multiply(
        self,
        a: &[Lanes],
        b: &[Lanes],
        c: &mut [Lanes],
        product: impl Fn(Self, &[u64], &[u64], &mut [u64]),
    ) {
        let (left, right) = (self.matrix(MatrixPart::A, a), self.matrix(MatrixPart::B, b));
        self.multiply_matrices(&left, &right, c, product);
    }

    /// [`Self::multiply`] of whole matrices of elements' bits: A by rows, B by columns. Of a warpgroup, those of one warp.
    pub fn multiply_matrices(
        self,
        a: &[u64],
        b: &[u64],
        c: &mut [Lanes],
        product: impl Fn(Self, &[u64], &[u64], &mut [u64]),
    ) {
        let of_warp = self.of_warp();
        let [m, n, _] = of_warp.shape().map(usize::from);
        let at = |value: usize, lane: usize| {
            let (row, column) = of_warp.value_at(value);
            (row + lane / 4) * n + column + lane % 4 * 2
        };
        let mut out = vec![0; m * n];
        for (value, lanes) in c.iter().enumerate() {
            for (lane, bits) in lanes.iter().enumerate() {
                out[at(value, lane)] = *bits;
            }
        }
        product(self, a, b, &mut out);
        for (value, lanes) in c.iter_mut().enumerate() {
            *lanes = std::array::from_fn(|lane| out[at(value, lane)]);
        }
    }

    /// The elements of A by rows, or of B by columns, of the registers that hold them.
    pub fn matrix(self, part: MatrixPart, registers: &[Lanes]) -> Vec<u64> {
        let [m, n, k] = self.shape().map(usize::from);
        let elements = match part {
            MatrixPart::A => m * k,
            MatrixPart::B => n * k,
        };
        let per_register = usize::from(self.kind().per_register());
        let bits = 8 * self.kind().element(part).size_bytes();
        let mask = u64::MAX >> (64 - bits);
        let mut out = vec![0; elements];
        for (word, lanes) in registers.iter().enumerate() {
            let (row, at) = self.register_at(part, word);
            for (lane, word) in lanes.iter().enumerate() {
                let first = (row + lane / 4) * k + at + lane % 4 * per_register;
                for (element, out) in out[first..first + per_register].iter_mut().enumerate() {
                    *out = word >> (bits * element as u64) & mask;
                }
            }
        }
        out
    }
}
