//! English for messages.

/// `a` or `an`, as the word behind it asks for: of a type's name, or of what stands in backticks.
pub fn article(word: &str) -> &'static str {
    let spoken = word.trim_start_matches('`');
    // A `u` is spoken as in `uint8`: no message has another one.
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
