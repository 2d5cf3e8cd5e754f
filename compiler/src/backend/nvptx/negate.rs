//! Differences of 16 bits in other words, as ptxas 13.0 (13.5 does not) takes a negated one for what fits no 16 bits.
//!
//! The smallest 16-bit integer is its own negative (PTX ISA 9.7.1.11: `d = -a`). ptxas negates in 32 bits, though, and
//! goes on with 32768: converted to a wider type, shifted right, divided or compared, it is wrong. It does so to
//! `neg.s16` and to a `sub.s16` whose first operand it finds to be 0, but not to `sub.u16`, which is the same
//! instruction otherwise. Of all 16-bit arithmetic of PTX, followed by each way to a wider type, these and `abs` (see
//! `absolute.rs`) are the only ones. LLVM makes `neg` of `x * -1` and of `~x + 1` too when it selects instructions, so
//! its text is what can be mended.

/// LLVM's PTX without `neg.s16` and `sub.s16`. What a user writes as inline PTX stays.
pub(super) fn rewrite(ptx: Vec<u8>) -> Vec<u8> {
    const NEGATE: &str = "\tneg.s16 \t";
    const SUBTRACT: &str = "\tsub.s16 \t";
    let Ok(text) = std::str::from_utf8(&ptx) else { return ptx };
    if !text.contains(NEGATE) && !text.contains(SUBTRACT) {
        return ptx;
    }
    let mut rewritten = String::with_capacity(text.len() + 256);
    for line in text.split_inclusive('\n') {
        if let Some(operands) = line.strip_prefix(SUBTRACT) {
            rewritten.extend(["\tsub.u16 \t", operands]);
        } else if let Some((to, of)) = line.strip_prefix(NEGATE).and_then(|operands| operands.split_once(", ")) {
            rewritten.extend(["\tsub.u16 \t", to, ", 0, ", of]);
        } else {
            rewritten.push_str(line);
        }
    }
    rewritten.into_bytes()
}
