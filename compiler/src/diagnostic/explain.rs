//! The page of each code.

use super::Code;

/// The page in Markdown.
pub fn explain(_code: Code) -> &'static str {
    ""
}
