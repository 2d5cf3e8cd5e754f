//! The calls that allocate a new array each time that they are executed.

use crate::frontend::{object::Site, ty::Sites};

/// A function's source: its file in the source map, and its start offset.
pub(in crate::frontend) type Text = (u32, u32);

/// The allocating calls of each function, by its source, in the order of the first visit: dry runs and the final run
/// number them alike.
#[derive(Debug, Default)]
pub(in crate::frontend) struct Allocations(Vec<(Text, Vec<Site>)>);

impl Allocations {
    /// The bit of a call. All calls beyond the 63rd share one, as if they were one call.
    pub(in crate::frontend) fn number(&mut self, text: Text, site: Site) -> Sites {
        let known = self.0.iter().position(|(of, _)| *of == text).unwrap_or_else(|| {
            self.0.push((text, Vec::new()));
            self.0.len() - 1
        });
        let sites = &mut self.0[known].1;
        let number = sites.iter().position(|other| *other == site).unwrap_or_else(|| {
            sites.push(site);
            sites.len() - 1
        });
        bit(number)
    }

    /// The bits of the calls in a range of the source.
    pub(in crate::frontend) fn within(&self, text: Text, start: u32, end: u32) -> Sites {
        let Some((_, sites)) = self.0.iter().find(|(of, _)| *of == text) else { return Sites::NONE };
        let inside = sites.iter().enumerate().filter(|(_, site)| (start..end).contains(&site.start));
        inside.map(|(number, _)| bit(number)).fold(Sites::NONE, Sites::union)
    }
}

fn bit(number: usize) -> Sites {
    Sites(1 << number.min(63))
}
