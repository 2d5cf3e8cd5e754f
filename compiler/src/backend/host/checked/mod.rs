//! Emits the sanitizer's checks.

pub(crate) mod calls;
pub(crate) mod inline_checks;
pub(crate) mod seen;
pub(crate) mod segments;
pub(crate) mod sites;
