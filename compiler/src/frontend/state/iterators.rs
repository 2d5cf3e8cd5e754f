//! The iterators of a function.

use crate::{frontend::object::Site, ir::LocalId};

/// How far the iterators have come, and the variables that hold them.
#[derive(Debug, Default)]
pub(in crate::frontend) struct Iterators(Vec<(Site, LocalId, Option<String>)>);

impl Iterators {
    /// Notes the local that says how far the iterator of a call has come.
    pub(in crate::frontend) fn add(&mut self, site: Site, position: LocalId) {
        self.0.push((site, position, None));
    }

    /// That local.
    pub(in crate::frontend) fn position(&self, site: &Site) -> Option<LocalId> {
        self.0.iter().find(|(known, ..)| known == site).map(|(_, position, _)| *position)
    }

    /// The variable that holds an iterator: `name`, if none does yet.
    pub(in crate::frontend) fn owner(&mut self, site: &Site, name: &str) -> Option<&str> {
        let (.., owner) = self.0.iter_mut().find(|(known, ..)| known == site)?;
        Some(owner.get_or_insert_with(|| name.to_owned()))
    }
}
