//! "Did you mean": the candidate with the smallest edit distance to a misspelt name.

/// The candidate with the fewest letters to change, insert, drop or swap, if these are few for the name's length; a
/// difference only in case counts as one. Names of one letter have no suggestion; for two letters the first must agree.
pub fn closest<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let length = name.chars().count();
    let limit = (length / 3).clamp(1, 3);
    let may_be_meant = |candidate: &str| {
        candidate != name
            && candidate.len() > 1
            && match length {
                0 | 1 => false,
                2 => candidate.to_lowercase().chars().next() == name.to_lowercase().chars().next(),
                _ => true,
            }
    };
    let scored = candidates.into_iter().filter(|candidate| may_be_meant(candidate)).map(|candidate| {
        let same_letters = candidate.to_lowercase() == name.to_lowercase();
        (if same_letters { 1 } else { distance(name, candidate) }, candidate)
    });
    scored.filter(|(distance, _)| *distance <= limit).min().map(|(_, candidate)| candidate)
}

/// All candidates with the smallest edit distance, best first: for a short list of names.
pub fn nearest<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>, most: usize) -> Vec<&'a str> {
    let mut ranked: Vec<_> = candidates.into_iter().map(|known| (distance(name, known), known)).collect();
    ranked.sort_by_key(|(distance, _)| *distance);
    ranked.into_iter().take(most).map(|(_, known)| known).collect()
}

/// The edit distance of two words: changes, insertions, deletions, and swaps of adjacent letters.
fn distance(left: &str, right: &str) -> usize {
    let left: Vec<char> = left.chars().collect();
    let right: Vec<char> = right.chars().collect();
    // The row before the last row of the table, the last row, and the row being filled.
    let mut older = vec![0; right.len() + 1];
    let mut old: Vec<usize> = (0..=right.len()).collect();
    for (i, &a) in left.iter().enumerate() {
        let mut row = vec![i + 1];
        for (j, &b) in right.iter().enumerate() {
            let mut best = (old[j] + usize::from(a != b)).min(old[j + 1] + 1).min(row[j] + 1);
            if i > 0 && j > 0 && left[i - 1] == b && right[j - 1] == a {
                best = best.min(older[j - 1] + 1);
            }
            row.push(best);
        }
        older = std::mem::replace(&mut old, row);
    }
    old[right.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_name_wins_and_far_ones_are_not_offered() {
        let names = ["threadIdx", "blockIdx", "blockDim", "grid", "gridsize"];
        assert_eq!(closest("threadidx", names), Some("threadIdx"));
        assert_eq!(closest("gird", names), Some("grid"));
        assert_eq!(closest("blokDim", names), Some("blockDim"));
        assert_eq!(closest("warp", names), None);
        assert_eq!(closest("", names), None);
        assert_eq!(closest("a", ["b", "x", "ab"]), None);
        assert_eq!(closest("tx", ["ty", "bx", "t"]), Some("ty"));
        assert_eq!(distance("saxpy", "saxpi"), 1);
        assert_eq!(distance("", "abc"), 3);
    }
}
