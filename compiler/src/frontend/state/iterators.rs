//! The iterators of a function.

use crate::{frontend::object::Site, ir::LocalId};

/// The positions of the iterators, and the variables that hold them.
#[derive(Debug, Default)]
pub(in crate::frontend) struct Iterators(Vec<(Site, LocalId, Option<String>)>);

impl Iterators {
    /// Adds the local with the position of the iterator of a call.
    pub(in crate::frontend) fn add(&mut self, site: Site, position: LocalId) {
        self.0.push((site, position, None));
    }

    /// The local with the position of an iterator.
    pub(in crate::frontend) fn position(&self, site: &Site) -> Option<LocalId> {
        self.0.iter().find(|(known, ..)| known == site).map(|(_, position, _)| *position)
    }

    /// The variable that holds an iterator: `name`, if none does yet.
    pub(in crate::frontend) fn owner(&mut self, site: &Site, name: &str) -> Option<&str> {
        let (.., owner) = self.0.iter_mut().find(|(known, ..)| known == site)?;
        Some(owner.get_or_insert_with(|| name.to_owned()))
    }
}
