//! The products of a warpgroup that a warp has begun and not waited for: until then it must not read or write their accumulators,
//! nor write the registers of their left matrices. Another product may add to the same accumulators.

use crate::{
    decode::{Bank, MatrixOperand, Operation, Reg, WarpgroupMultiply, for_each_register},
    error::Error,
};

/// A product in flight.
#[derive(Debug)]
struct Product {
    /// The number of its group.
    group: usize,
    accumulators: Vec<Reg>,
    left: Vec<Reg>,
}

/// The products in flight of a frame.
#[derive(Debug, Default)]
pub(super) struct InFlight {
    products: Vec<Product>,
    /// The number of groups that are complete or committed.
    groups: usize,
}

impl InFlight {
    pub(super) fn clear(&mut self) {
        self.products.clear();
        self.groups = 0;
    }

    pub(super) fn is_empty(&self) -> bool {
        self.products.is_empty()
    }

    pub(super) fn begin(&mut self, multiply: &WarpgroupMultiply) {
        let left = match &multiply.a {
            MatrixOperand::Registers(registers) => registers.clone(),
            MatrixOperand::Shared(_) => Vec::new(),
        };
        self.products.push(Product { group: self.groups, accumulators: multiply.d.clone(), left });
    }

    pub(super) fn commit(&mut self) {
        self.groups += 1;
    }

    /// Completes all groups but the latest ones.
    pub(super) fn wait(&mut self, pending: usize) {
        let complete = self.groups.saturating_sub(pending);
        self.products.retain(|product| product.group >= complete);
    }

    /// Fails if an instruction uses a register of a product in flight.
    #[cold]
    pub(super) fn check(&self, operation: &Operation) -> Result<(), Error> {
        let adds_to = if let Operation::WarpgroupMultiply(multiply) = operation { Some(&multiply.d) } else { None };
        let (mut reads, mut writes) = (false, false);
        for product in &self.products {
            let continues = adds_to == Some(&product.accumulators);
            for_each_register(operation, &mut |is_write, bank, register| {
                let own = |registers: &[Reg]| bank == Bank::Word && registers.contains(&register);
                let is_added = continues && adds_to.is_some_and(|registers| registers.contains(&register));
                reads |= !is_write && !is_added && own(&product.accumulators);
                writes |= is_write && (!is_added && own(&product.accumulators) || own(&product.left));
            });
        }
        let what = match (reads, writes) {
            (false, false) => return Ok(()),
            (true, _) => "reads an accumulator",
            (false, true) => "writes a register",
        };
        Err(Error::in_lane(
            0,
            format!("an instruction {what} of a product in flight: wgmma.wait_group must come before"),
        ))
    }
}
