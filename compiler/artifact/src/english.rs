//! English for messages.

/// The article `a` or `an` for the word after it, which is a type's name or code in backticks.
pub fn article(word: &str) -> &'static str {
    let spoken = word.trim_start_matches('`');
    // A `u` is pronounced as in `uint8`: no message has another one.
    if spoken.starts_with(['a', 'e', 'i', 'o', 'A', 'E', 'I', 'O']) { "an" } else { "a" }
}

#[cfg(test)]
mod tests {
    use super::article;

    #[test]
    fn articles_are_as_spoken() {
        for (word, expected) in [
            ("object", "an"),
            ("int of more than 64 bits", "an"),
            ("`async for` loop", "an"),
            ("uint8", "a"),
            ("list", "a"),
            ("`with` statement", "a"),
        ] {
            assert_eq!(article(word), expected, "{word}");
        }
    }
}
