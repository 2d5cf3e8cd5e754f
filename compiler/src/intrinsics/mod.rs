//! One row per name that a kernel can call or read.
