//! One row per SM.
