//! What turns of a walk store along rows: `out[i, k] = …` is kept, an element for each thread and turn, until several turns are done, and
//! turned round to vectors of the rows.
//!
//! So a load of a later turn comes before a store of an earlier one. Where they may be to one memory, the code asks how far apart they
//! are; what lies within the turns that are taken together, threads do turn by turn. One element that a turn loads and then stores may be
//! one memory, and so may what it stores and then loads, which is what it stored.

use std::collections::BTreeMap;

use crate::{
    analysis::same,
    backend::host::plan::{
        plan_ir::{Clash, WalkedLoad, WalkedStore},
        vector::transpose::{Known, Walk},
    },
    ir::{Class, ExprId, Space, Type, for_each_expr},
};

/// Turns that are taken together.
const TURNS: i64 = 16;

/// What a walk's turns store, and what of their loads stores may be in the way of.
#[derive(Debug, Default)]
pub(crate) struct Written {
    /// Along rows.
    pub(crate) rows: Vec<WalkedStore>,
    /// By the pointer of such a store: its number and the pointer that stands for it in [`crate::backend::host::plan::plan_ir::Walked::plain`].
    copies: BTreeMap<ExprId, (usize, ExprId)>,
    /// Loads ahead from memory that may be written, by their numbers, and before how many of the stores along rows they may stand.
    unsure: Vec<(usize, usize)>,
    /// Something is stored that is not along rows.
    elsewhere: bool,
    /// Something that may be written is loaded, and not ahead.
    reads: bool,
}

impl Written {
    pub(crate) fn copy_of(&self, pointer: ExprId) -> Option<ExprId> {
        self.copies.get(&pointer).map(|(_, copy)| *copy)
    }
}

impl Walk<'_, '_> {
    /// A store, whose pointer is one of neighbors or goes on along a row.
    pub(crate) fn store(&mut self, pointer: ExprId, known: &Known) -> Option<()> {
        let at = self.inline(pointer, known)?;
        if self.neighbors(at).is_some() {
            self.written.elsewhere = true;
            return Some(());
        }
        // Behind a condition some threads would store what they have not.
        if self.is_in_branch() || self.goes_on(at) != Some(true) || !self.is_plain(pointer) {
            return None;
        }
        let function = &*self.peeler.function;
        let before = self.written.rows.iter().position(|row| same(function, row.pointer, at));
        let number = before.unwrap_or(self.written.rows.len());
        if self.written.copies.contains_key(&pointer) {
            return None;
        }
        let even = self.forms(|forms| forms.is_even(at));
        let copy = self.peeler.function.exprs[pointer].clone();
        let copy = self.peeler.function.exprs.push(copy);
        self.written.copies.insert(pointer, (number, copy));
        match self.written.rows.get_mut(number) {
            Some(row) => row.pointers.push(copy),
            None => {
                let row = WalkedStore { pointers: vec![copy], reads: Vec::new(), pointer: at, even };
                self.written.rows.push(row);
            }
        }
        Some(())
    }

    /// Notes a load that gives what the same turn has stored; `false` if it is none.
    pub(crate) fn reads_stored(&mut self, load: ExprId, pointer: ExprId) -> bool {
        let function = &*self.peeler.function;
        let Some(row) = self.written.rows.iter_mut().find(|row| same(function, row.pointer, pointer)) else {
            return false;
        };
        row.reads.push(load);
        true
    }

    /// Notes a load ahead, by its number, from memory that may be written.
    pub(crate) fn reads_unsure(&mut self, number: usize) {
        self.written.unsure.push((number, self.written.rows.len()));
    }

    /// Notes a load that stays where it is.
    pub(crate) fn reads_in_turn(&mut self, pointer: ExprId) {
        let apart = matches!(
            self.peeler.function.exprs[pointer].ty,
            Type::Ptr(_, Space::Shared | Space::Local | Space::Constant)
        );
        self.written.reads |= !apart && !self.is_never_written(pointer);
    }

    /// The loads of what is computed once for all threads in each turn.
    pub(crate) fn reads_once(&mut self, root: ExprId) {
        let mut pointers = Vec::new();
        for_each_expr(self.peeler.function, root, &mut |id| {
            if let Class::Load(pointer) = self.peeler.function.class(id) {
                pointers.push(pointer);
            }
        });
        for pointer in pointers {
            self.reads_in_turn(pointer);
        }
    }

    /// What the code must ask before turns are taken together; `None` if they must not be.
    pub(crate) fn clashes(&self) -> Option<Vec<Clash>> {
        let Written { rows, unsure, elsewhere, reads, .. } = &self.written;
        if rows.is_empty() {
            return (!elsewhere || unsure.is_empty()).then(Vec::new);
        }
        let ahead = |id: &ExprId| {
            self.loads.iter().any(|load| load.loads.contains(id)) || self.once.iter().any(|(load, _)| load == id)
        };
        if *elsewhere || *reads || rows.iter().any(|row| row.reads.iter().any(ahead)) {
            return None;
        }
        let mut clashes = Vec::new();
        for &(number, before) in unsure {
            let WalkedLoad { pointer: load, .. } = self.loads.get(number)?;
            for (at, row) in rows.iter().enumerate() {
                let is_later = at >= before;
                if is_later && same(self.peeler.function, *load, row.pointer) {
                    continue;
                }
                let (loaded, stored) = (self.bytes(*load)?, self.bytes(row.pointer)?);
                let (from, to) = if loaded != stored {
                    (-TURNS * stored, TURNS * loaded)
                } else if is_later {
                    (0, TURNS * loaded)
                } else {
                    (-stored, TURNS * loaded)
                };
                self.add_clash(Clash { first: *load, second: row.pointer, from, to }, loaded, &mut clashes)?;
            }
        }
        for (at, row) in rows.iter().enumerate() {
            for other in &rows[at + 1..] {
                let (first, second) = (self.bytes(row.pointer)?, self.bytes(other.pointer)?);
                let (from, to) = (-TURNS * second, TURNS * first);
                self.add_clash(Clash { first: row.pointer, second: other.pointer, from, to }, first, &mut clashes)?;
            }
        }
        Some(clashes)
    }

    /// Adds what the code must ask, of elements of so many bytes; `None` if it is known that they clash.
    fn add_clash(&self, clash: Clash, bytes: i64, clashes: &mut Vec<Clash>) -> Option<()> {
        match self.distance(clash.first, clash.second) {
            Some(elements) => {
                let behind = elements.checked_mul(i128::from(bytes))?;
                (behind <= i128::from(clash.from) || behind >= i128::from(clash.to)).then_some(())
            }
            None => {
                clashes.push(clash);
                Some(())
            }
        }
    }

    /// Bytes of an element.
    fn bytes(&self, pointer: ExprId) -> Option<i64> {
        match self.peeler.function.exprs[pointer].ty {
            Type::Ptr(element, _) => i64::try_from(element.size_bytes()).ok(),
            Type::Scalar(_) => None,
        }
    }
}
