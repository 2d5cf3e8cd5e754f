//! The sanitizer's findings: one for each pair of lines, with a count.

use std::collections::HashMap;

use weft_artifact::Site;

use super::advice::Pairs;

/// One thing that is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// `memcheck`, `racecheck`, `initcheck` or `synccheck`.
    pub tool: &'static str,
    /// The kind of the error, in a word or two.
    pub kind: &'static str,
    /// The kernel.
    pub kernel: String,
    /// The error, in a sentence.
    pub message: String,
    /// The suggested fix.
    pub help: String,
    /// How often it was seen.
    pub count: u64,
    /// The locations, the most recent first.
    pub accesses: Vec<ThreadLocation>,
}

impl Finding {
    /// Whether it is of the same kernel and the same lines as another one.
    pub(super) fn is_at_lines_of(&self, other: &Self) -> bool {
        let lines = |finding: &Self| -> Vec<(String, u32)> {
            finding.accesses.iter().map(|location| (location.site.file.clone(), location.site.line)).collect()
        };
        self.kernel == other.kernel && lines(self) == lines(other)
    }
}

/// A thread at a source line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ThreadLocation {
    /// Where.
    pub site: Site,
    /// The operation there: "read", "write", "atomic", "barrier", ….
    pub what: &'static str,
    /// The index of the element, where it is known.
    pub index: Option<Vec<i64>>,
    /// `threadIdx`.
    pub thread: [u32; 3],
    /// `blockIdx`.
    pub block: [u32; 3],
    /// The calls that led there, the last one first.
    pub calls: Vec<Site>,
}

/// The key by which findings are merged: the class, and the lines.
type Key = (&'static str, Vec<(String, u32)>);

/// All findings of a launch.
#[derive(Debug, Default)]
pub(super) struct Findings {
    all: Vec<Finding>,
    /// Of each that is a race: the pairs of accesses that it stands for.
    pairs: Vec<Option<Pairs>>,
    known: HashMap<Key, usize>,
}

impl Findings {
    /// Adds a race. Those of the same lines are one finding, which shows the worst of them.
    pub(super) fn add_race(&mut self, sites: &[&Site; 2], pairs: Pairs, make: impl FnOnce() -> Finding) {
        if sites.iter().any(|site| site.is_own) {
            return;
        }
        let at = self.at("race", sites);
        let Some((known, of)) = self.all.get_mut(at).zip(self.pairs.get_mut(at)) else {
            self.all.push(make());
            self.pairs.push(Some(pairs));
            return;
        };
        let Some(of) = of else { return };
        if pairs.is_worse(of) {
            *known = Finding { count: known.count, ..make() };
        }
        known.count += 1;
        of.add(pairs);
    }

    /// Gives each race its advice, and says how far apart its threads are.
    pub(super) fn advise(&mut self, advice: impl Fn(&Pairs) -> String) {
        for (finding, pairs) in self.all.iter_mut().zip(&self.pairs) {
            if let Some(pairs) = pairs {
                finding.help = advice(pairs);
                finding.kind = pairs.kind();
            }
        }
    }

    /// The number of the finding of a class at some lines: that of the next one where there is none yet.
    fn at(&mut self, class: &'static str, sites: &[&Site]) -> usize {
        let mut lines: Vec<_> = sites.iter().map(|site| (site.file.clone(), site.line)).collect();
        lines.sort();
        lines.dedup();
        let at = self.known.len();
        *self.known.entry((class, lines)).or_insert(at)
    }

    /// Adds a finding, or counts it if there is one with its lines; `class` distinguishes findings of the same lines.
    pub(super) fn add(&mut self, class: &'static str, sites: &[&Site], make: impl FnOnce() -> Finding) {
        if sites.iter().any(|site| site.is_own) {
            return;
        }
        let at = self.at(class, sites);
        match self.all.get_mut(at) {
            Some(known) => known.count += 1,
            None => {
                self.all.push(make());
                self.pairs.push(None);
            }
        }
    }

    /// Whether there is one of a kind.
    pub(super) fn has(&self, kind: &str) -> bool {
        self.all.iter().any(|finding| finding.kind == kind)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// The lines of all races.
    pub(super) fn races(&self) -> Races {
        let races = self.all.iter().filter(|finding| finding.tool == "racecheck");
        Races(races.flat_map(|finding| finding.accesses.iter().map(line_of)).collect())
    }

    /// All of them, without those that races explain.
    pub(super) fn take(self) -> Vec<Finding> {
        let races = self.races();
        let mut all = self.all;
        all.retain(|finding| !races.explain(finding));
        all
    }
}

/// The lines of races.
pub(super) struct Races(Vec<(String, u32)>);

impl Races {
    /// Memory that is read before it is written only because nothing orders the two is a race, and no more.
    pub(super) fn explain(&self, finding: &Finding) -> bool {
        finding.tool == "initcheck" && finding.accesses.iter().any(|location| self.0.contains(&line_of(location)))
    }
}

fn line_of(location: &ThreadLocation) -> (String, u32) {
    (location.site.file.clone(), location.site.line)
}

/// `(1, 2, 3)`.
pub(super) fn triple([x, y, z]: [u32; 3]) -> String {
    format!("({x}, {y}, {z})")
}
