//! Writes JSON, with members in the order in which they are given.

use std::fmt::Write as _;

/// A value.
#[derive(Clone, Debug)]
pub(crate) enum Json {
    Null,
    Bool(bool),
    Int(u64),
    Str(String),
    List(Vec<Json>),
    Object(Vec<(&'static str, Json)>),
}

impl Json {
    pub(crate) fn text(value: impl Into<String>) -> Self {
        Self::Str(value.into())
    }

    /// Appends the value. Objects in lists begin on lines of their own, so that two packages can be compared.
    pub(crate) fn write(&self, indent: usize, to: &mut String) {
        match self {
            Self::Null => to.push_str("null"),
            Self::Bool(value) => to.push_str(if *value { "true" } else { "false" }),
            Self::Int(value) => to.push_str(&value.to_string()),
            Self::Str(text) => escape(text, to),
            Self::List(items) => {
                let in_lines = items.iter().any(|item| matches!(item, Self::Object(_)));
                to.push('[');
                for (index, item) in items.iter().enumerate() {
                    to.push_str(if index > 0 { "," } else { "" });
                    if in_lines {
                        new_line(indent + 1, to);
                    } else if index > 0 {
                        to.push(' ');
                    }
                    item.write(indent + 1, to);
                }
                if in_lines {
                    new_line(indent, to);
                }
                to.push(']');
            }
            Self::Object(members) => {
                to.push('{');
                for (index, (name, value)) in members.iter().enumerate() {
                    to.push_str(if index > 0 { ", " } else { "" });
                    escape(name, to);
                    to.push_str(": ");
                    value.write(indent, to);
                }
                to.push('}');
            }
        }
    }
}

fn new_line(indent: usize, to: &mut String) {
    to.push('\n');
    to.extend(std::iter::repeat_n(' ', 2 * indent));
}

fn escape(text: &str, to: &mut String) {
    to.push('"');
    for c in text.chars() {
        match c {
            '"' => to.push_str("\\\""),
            '\\' => to.push_str("\\\\"),
            c if u32::from(c) < 0x20 => {
                // Writing to a string does not fail.
                let _written = write!(to, "\\u{:04x}", u32::from(c));
            }
            c => to.push(c),
        }
    }
    to.push('"');
}
