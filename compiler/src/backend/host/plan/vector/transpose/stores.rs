//! Stores of transposed loops: `out[i, k] = …` in a loop over `k`, in which each thread stores along its own row.
//!
//! Each iteration stores one vector, an element for each lane, to a buffer. After 16 iterations the buffer is
//! transposed, and each lane's row is stored as one vector.
//!
//! A load of a later iteration thus executes before a store of an earlier one. If they may alias, the emitted code
//! compares their addresses, and iterations that conflict run one at a time. Within an iteration, a load may access the
//! element that the iteration stores later; a load of the element that the iteration has stored before reads the
//! buffer.

use crate::{
    analysis::same,
    backend::host::plan::{
        plan_ir::{AliasCheck, TransposedLoad, TransposedStore},
        vector::transpose::transposition::{Known, Transposition, Written},
    },
    ir::{Class, ExprId, Space, Type, for_each_expr},
};

/// Iterations that run between two transposes.
const ITERATIONS: i64 = 16;

impl Transposition<'_, '_> {
    /// Records a store whose address is uniform across threads, contiguous across threads, or along a row. `None` if it
    /// is none of these.
    pub(crate) fn store(&mut self, pointer: ExprId, known: &Known) -> Option<()> {
        let at = self.inline(pointer, known)?;
        if self.neighbors(at).is_some() {
            self.written.elsewhere = true;
            return Some(());
        }
        // A conditional store would be executed for lanes that do not store.
        if !legal!("transpose.store-of-all", !self.is_in_branch())
            || self.goes_on(at) != Some(true)
            || !self.is_plain(pointer)
        {
            return None;
        }
        let function = &*self.peeler.function;
        let before = self.written.rows.iter().position(|row| same(function, row.pointer, at));
        let number = before.unwrap_or(self.written.rows.len());
        if self.written.copies.contains_key(&pointer) {
            return None;
        }
        let uniform_stride = self.forms(|forms| forms.has_uniform_stride(at));
        let copy = self.peeler.function.exprs[pointer].clone();
        let copy = self.peeler.function.exprs.push(copy);
        self.written.copies.insert(pointer, (number, copy));
        match self.written.rows.get_mut(number) {
            Some(row) => row.pointers.push(copy),
            None => {
                let row = TransposedStore { pointers: vec![copy], reads: Vec::new(), pointer: at, uniform_stride };
                self.written.rows.push(row);
            }
        }
        Some(())
    }

    /// Records a load of the element that the same iteration has stored; `false` if it is no such load.
    pub(crate) fn reads_stored(&mut self, load: ExprId, pointer: ExprId) -> bool {
        let function = &*self.peeler.function;
        let Some(row) = self.written.rows.iter_mut().find(|row| same(function, row.pointer, pointer)) else {
            return false;
        };
        row.reads.push(load);
        true
    }

    /// Records an early load, by its number, from memory that may be written.
    pub(crate) fn reads_unsure(&mut self, number: usize) {
        self.written.unsure.push((number, self.written.rows.len()));
    }

    /// Records a load that keeps its position.
    pub(crate) fn reads_in_iteration(&mut self, pointer: ExprId) {
        let apart = matches!(
            self.peeler.function.exprs[pointer].ty,
            Type::Ptr(_, Space::Shared | Space::Local | Space::Constant)
        );
        self.written.reads |= !apart && !self.is_never_written(pointer);
    }

    /// Records the loads of a uniform computation, which each iteration executes once.
    pub(crate) fn reads_once(&mut self, root: ExprId) {
        let mut pointers = Vec::new();
        for_each_expr(self.peeler.function, root, &mut |id| {
            if let Class::Load(pointer) = self.peeler.function.class(id) {
                pointers.push(pointer);
            }
        });
        for pointer in pointers {
            self.reads_in_iteration(pointer);
        }
    }

    /// The alias checks that the emitted code must make before several iterations run at once; `None` if that is not
    /// legal.
    pub(crate) fn alias_checks(&self) -> Option<Vec<AliasCheck>> {
        let Written { rows, unsure, elsewhere, reads, .. } = &self.written;
        if rows.is_empty() {
            return legal!("transpose.no-store-between", !elsewhere || unsure.is_empty()).then(Vec::new);
        }
        let ahead = |id: &ExprId| {
            self.loads.iter().any(|load| load.loads.contains(id))
                || self.uniform_loads.iter().any(|(load, _)| load == id)
        };
        if !legal!("transpose.only-row-stores", !elsewhere)
            || !legal!("transpose.only-row-loads", !reads)
            || !legal!("transpose.stored-not-early", !rows.iter().any(|row| row.reads.iter().any(ahead)))
        {
            return None;
        }
        let mut alias_checks = Vec::new();
        for &(number, before) in unsure {
            let TransposedLoad { pointer: load, .. } = self.loads.get(number)?;
            for (at, row) in rows.iter().enumerate() {
                let is_later = at >= before;
                if is_later && same(self.peeler.function, *load, row.pointer) {
                    continue;
                }
                let (loaded, stored) = (self.bytes(*load)?, self.bytes(row.pointer)?);
                let (from, to) = if loaded != stored {
                    (-ITERATIONS * stored, ITERATIONS * loaded)
                } else if is_later {
                    (0, ITERATIONS * loaded)
                } else {
                    (-stored, ITERATIONS * loaded)
                };
                self.add_alias_check(
                    AliasCheck { first: *load, second: row.pointer, from, to },
                    loaded,
                    &mut alias_checks,
                )?;
            }
        }
        for (at, row) in rows.iter().enumerate() {
            for other in &rows[at + 1..] {
                let (first, second) = (self.bytes(row.pointer)?, self.bytes(other.pointer)?);
                let (from, to) = (-ITERATIONS * second, ITERATIONS * first);
                self.add_alias_check(
                    AliasCheck { first: row.pointer, second: other.pointer, from, to },
                    first,
                    &mut alias_checks,
                )?;
            }
        }
        Some(alias_checks)
    }

    /// Adds an alias check of elements of `bytes` bytes; `None` if they are known to conflict.
    fn add_alias_check(&self, clash: AliasCheck, bytes: i64, alias_checks: &mut Vec<AliasCheck>) -> Option<()> {
        match self.distance(clash.first, clash.second) {
            Some(elements) => {
                let behind = elements.checked_mul(i128::from(bytes))?;
                let is_disjoint = behind <= i128::from(clash.from) || behind >= i128::from(clash.to);
                legal!("transpose.disjoint", is_disjoint).then_some(())
            }
            None => {
                alias_checks.push(clash);
                Some(())
            }
        }
    }

    /// The size of an element in bytes.
    fn bytes(&self, pointer: ExprId) -> Option<i64> {
        match self.peeler.function.exprs[pointer].ty {
            Type::Ptr(element, _) => i64::try_from(element.size_bytes()).ok(),
            Type::Scalar(_) => None,
        }
    }
}
