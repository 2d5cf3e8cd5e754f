//! The `weft` command as a library.
