//! Implements the rules of `.gitignore` files (gitignore(5)): which paths git ignores.

use std::{
    fs,
    path::{Path, PathBuf},
};

/// One line of a `.gitignore`.
#[derive(Debug, PartialEq, Eq)]
struct Rule {
    /// The parts of the pattern, split at slashes.
    parts: Vec<String>,
    /// Whether the pattern matches a path relative to the rules' folder. Otherwise it matches a name at any depth.
    is_anchored: bool,
    /// Whether it begins with `!`: it re-includes the paths that it matches.
    is_negated: bool,
    /// Whether it ends with a slash: it matches only folders.
    is_of_folders: bool,
}

impl Rule {
    fn read(line: &str) -> Option<Self> {
        let line = without_trailing_blanks(line);
        if line.is_empty() || line.starts_with('#') {
            return None;
        }
        let (is_negated, line) = line.strip_prefix('!').map_or((false, line), |rest| (true, rest));
        let (is_of_folders, line) = line.strip_suffix('/').map_or((false, line), |rest| (true, rest));
        let is_anchored = line.contains('/');
        let line = line.strip_prefix('/').unwrap_or(line);
        let parts = line.split('/').map(str::to_owned).collect();
        (!line.is_empty()).then_some(Self { parts, is_anchored, is_negated, is_of_folders })
    }

    fn matches(&self, path: &[&str], is_folder: bool) -> bool {
        if self.is_of_folders && !is_folder {
            return false;
        }
        let parts: Vec<&str> = self.parts.iter().map(String::as_str).collect();
        if self.is_anchored {
            return matches_path(&parts, path);
        }
        match (parts.as_slice(), path.last()) {
            ([pattern], Some(name)) => matches_name(pattern.as_bytes(), name.as_bytes()),
            _ => false,
        }
    }
}

/// Removes trailing blanks from a line. A blank escaped with a backslash is preserved.
fn without_trailing_blanks(line: &str) -> &str {
    let line = line.trim_end_matches('\r');
    let trimmed = line.trim_end_matches(' ');
    let escapes = trimmed.bytes().rev().take_while(|byte| *byte == b'\\').count();
    if escapes % 2 == 1 && trimmed.len() < line.len() { line.get(..=trimmed.len()).unwrap_or(trimmed) } else { trimmed }
}

/// Whether a pattern with slashes matches a path. `**` matches any number of folders; at the end it matches everything
/// inside a folder.
fn matches_path(pattern: &[&str], path: &[&str]) -> bool {
    match (pattern, path) {
        ([], []) => true,
        (["**"], rest) => !rest.is_empty(),
        (["**", more @ ..], _) => {
            (0..=path.len()).any(|skipped| matches_path(more, path.get(skipped..).unwrap_or(&[])))
        }
        ([first, more @ ..], [name, rest @ ..]) => {
            matches_name(first.as_bytes(), name.as_bytes()) && matches_path(more, rest)
        }
        ([], _) | (_, []) => false,
    }
}

/// Whether a pattern without slashes matches a name.
fn matches_name(pattern: &[u8], name: &[u8]) -> bool {
    match (pattern, name) {
        ([], []) => true,
        ([b'*', more @ ..], _) => (0..=name.len()).any(|taken| matches_name(more, name.get(taken..).unwrap_or(&[]))),
        ([b'?', more @ ..], [_, rest @ ..]) => matches_name(more, rest),
        ([b'[', more @ ..], [letter, rest @ ..]) => match class(more, *letter) {
            Some((is_in, behind)) => is_in && matches_name(behind, rest),
            // An unclosed bracket matches nothing.
            None => false,
        },
        ([b'\\', escaped, more @ ..], [letter, rest @ ..]) => escaped == letter && matches_name(more, rest),
        ([own, more @ ..], [letter, rest @ ..]) => own == letter && matches_name(more, rest),
        ([], _) | (_, []) => false,
    }
}

/// Whether a letter is in a bracket expression, and the rest of the pattern after its `]`. `pattern` begins after the
/// `[`.
fn class(pattern: &[u8], letter: u8) -> Option<(bool, &[u8])> {
    let (is_negated, pattern) = match pattern {
        [b'!' | b'^', more @ ..] => (true, more),
        _ => (false, pattern),
    };
    let (mut is_in, mut at) = (false, 0);
    loop {
        let mut low = *pattern.get(at)?;
        // A `]` at the start of the bracket expression is a literal.
        if low == b']' && at > 0 {
            return Some((is_in != is_negated, pattern.get(at + 1..)?));
        }
        if low == b'\\' {
            at += 1;
            low = *pattern.get(at)?;
        }
        at += 1;
        let mut high = low;
        if pattern.get(at) == Some(&b'-') && pattern.get(at + 1).is_some_and(|end| *end != b']') {
            high = *pattern.get(at + 1)?;
            at += 2;
        }
        is_in |= (low..=high).contains(&letter);
    }
}

/// The ignore rules of a folder and of its ancestors within the repository.
#[derive(Debug, Default)]
pub(super) struct Ignored {
    /// Each folder with its rules, outer ones first.
    folders: Vec<(PathBuf, Vec<Rule>)>,
}

impl Ignored {
    /// The rules that apply in a folder: its own, and those of its ancestors up to the root of the repository.
    pub(super) fn of(folder: &Path) -> Self {
        let mut ignored = Self::default();
        let above: Vec<&Path> = folder.ancestors().collect();
        if let Some(root) = above.iter().position(|path| path.join(".git").exists()) {
            let top = above.get(root).copied().unwrap_or(folder);
            ignored.read(top, &top.join(".git/info/exclude"));
            for path in above.iter().take(root + 1).skip(1).rev() {
                ignored.enter(path);
            }
        }
        ignored.enter(folder);
        ignored
    }

    /// Adds the rules of a subfolder.
    pub(super) fn enter(&mut self, folder: &Path) {
        self.read(folder, &folder.join(".gitignore"));
    }

    /// Removes the rules of a subfolder.
    pub(super) fn leave(&mut self, folder: &Path) {
        self.folders.retain(|(known, _)| known != folder);
    }

    fn read(&mut self, folder: &Path, file: &Path) {
        let text = fs::read(file).unwrap_or_default();
        let rules: Vec<Rule> = String::from_utf8_lossy(&text).lines().filter_map(Rule::read).collect();
        if !rules.is_empty() {
            self.folders.push((folder.to_path_buf(), rules));
        }
    }

    /// Whether a path is ignored, provided that its parent folder is not. The last matching rule decides.
    pub(super) fn has(&self, path: &Path, is_folder: bool) -> bool {
        for (folder, rules) in self.folders.iter().rev() {
            let Ok(below) = path.strip_prefix(folder) else { continue };
            let parts: Vec<&str> = below.iter().filter_map(|part| part.to_str()).collect();
            if let Some(rule) = rules.iter().rev().find(|rule| rule.matches(&parts, is_folder)) {
                return !rule.is_negated;
            }
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_ignored(rules: &str, path: &str) -> bool {
        let rules = rules.lines().filter_map(Rule::read).collect();
        let ignored = Ignored { folders: vec![(PathBuf::from("/r"), rules)] };
        ignored.has(&Path::new("/r").join(path.trim_end_matches('/')), path.ends_with('/'))
    }

    #[test]
    fn rules_are_those_of_git() {
        for (rules, yes, no) in [
            ("*.py", &["a.py", "d/a.py"] as &[&str], &["a.pyc"] as &[&str]),
            ("/a.py", &["a.py"], &["d/a.py"]),
            ("d/a.py", &["d/a.py"], &["e/d/a.py"]),
            ("build/", &["build/", "d/build/"], &["build"]),
            ("**/x/*.py", &["x/a.py", "d/e/x/a.py"], &["x/d/a.py"]),
            ("d/**", &["d/a", "d/e/a"], &["d/"]),
            ("d/**/a.py", &["d/a.py", "d/e/f/a.py"], &["a.py"]),
            ("# a\n\\#b\n!\\!c", &["#b"], &["# a", "!c"]),
            ("[a-c]?[!0-9].py\nx[]-]", &["b1x.py", "x]", "x-"], &["d1x.py", "b12.py", "xy"]),
            ("a \nb\\ ", &["a", "b "], &["a ", "b"]),
            ("*.py\n!keep.py", &["a.py"], &["keep.py", "d/keep.py"]),
            ("[a\n\\*", &["*"], &["[a", "a"]),
        ] {
            for path in yes {
                assert!(is_ignored(rules, path), "{rules:?} ignores {path}");
            }
            for path in no {
                assert!(!is_ignored(rules, path), "{rules:?} does not ignore {path}");
            }
        }
    }
}
