//! Numbers of logs and up to which version they are known, in the order of the numbers: a thread may know hundreds, and takes over
//! hundreds at once.

/// By number of a log: the version that is known.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Versions(Vec<(u32, u32)>);

impl Versions {
    pub(super) const fn len(&self) -> usize {
        self.0.len()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (u32, u32)> {
        self.0.iter().copied()
    }

    /// The version that is known of a log.
    pub(super) fn get(&self, log: u32) -> Option<u32> {
        let at = self.0.binary_search_by_key(&log, |known| known.0).ok()?;
        self.0.get(at).map(|known| known.1)
    }

    /// A log is known up to a version at least; gives whether that is new.
    pub(super) fn raise(&mut self, log: u32, version: u32) -> bool {
        match self.0.binary_search_by_key(&log, |known| known.0) {
            Ok(at) => {
                let is_new = self.0[at].1 < version;
                self.0[at].1 = self.0[at].1.max(version);
                is_new
            }
            Err(at) => {
                self.0.insert(at, (log, version));
                true
            }
        }
    }

    /// The same of several, in the order of their numbers.
    pub(super) fn merge(&mut self, others: impl Iterator<Item = (u32, u32)>) {
        let n_known = self.0.len();
        let mut at = 0;
        for (log, version) in others {
            while at < n_known && self.0[at].0 < log {
                at += 1;
            }
            if at < n_known && self.0[at].0 == log {
                self.0[at].1 = self.0[at].1.max(version);
            } else {
                self.0.push((log, version));
            }
        }
        if self.0.len() > n_known {
            // Two runs that are in order, which are merged.
            self.0.sort_by_key(|known| known.0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Versions;

    #[test]
    fn the_greater_version_is_known() {
        let mut versions = Versions::default();
        assert!(versions.raise(7, 3) && versions.raise(2, 1) && versions.raise(9, 4));
        assert!(!versions.raise(7, 2) && versions.raise(7, 5));
        versions.merge([(1, 1), (2, 9), (7, 4), (8, 2), (20, 6)].into_iter());
        assert_eq!(versions.iter().collect::<Vec<_>>(), [(1, 1), (2, 9), (7, 5), (8, 2), (9, 4), (20, 6)]);
        assert_eq!((versions.get(8), versions.get(10), versions.len()), (Some(2), None, 6));
    }
}
