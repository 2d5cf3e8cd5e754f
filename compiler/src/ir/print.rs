//! The text form of modules and functions.

use std::fmt;

use super::Module;

impl fmt::Display for Module {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "module")
    }
}
