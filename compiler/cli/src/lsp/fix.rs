//! Quick fixes: the edit that applies a "did you mean" suggestion to a misspelled name.

/// The replacement for `text` that the suggestion `help` implies. `None` if `help` is not a suggestion or `text` is not
/// a name.
pub(super) fn spelt(text: &str, help: &str) -> Option<String> {
    let meant = help.strip_prefix("did you mean `")?.strip_suffix("`?")?;
    let parts: Vec<&str> = text.split('.').collect();
    let meant: Vec<&str> = meant.split('.').collect();
    let is_name = |part: &&str| {
        part.chars().all(|c| c.is_alphanumeric() || c == '_') && part.starts_with(|c: char| !c.is_ascii_digit())
    };
    if !parts.iter().chain(&meant).all(is_name) {
        return None;
    }
    // `cuda.gird` may mean `grid`: the qualifier is preserved.
    let kept = parts.get(..parts.len().checked_sub(meant.len())?)?;
    Some(kept.iter().chain(&meant).copied().collect::<Vec<_>>().join("."))
}

#[cfg(test)]
mod tests {
    use super::spelt;

    #[test]
    fn names_are_replaced_from_their_ends() {
        for (text, help, expected) in [
            ("hafl", "did you mean `half`?", Some("half")),
            ("cuda.gird", "did you mean `grid`?", Some("cuda.grid")),
            ("cuda.gird", "did you mean `cuda.grid`?", Some("cuda.grid")),
            ("gird", "did you mean `cuda.grid`?", None),
            ("f(hafl)", "did you mean `half`?", None),
            ("hafl", "write `half`", None),
            ("hafl", "did you mean `half` or `hall`?", None),
        ] {
            assert_eq!(spelt(text, help).as_deref(), expected, "{text}: {help}");
        }
    }
}
