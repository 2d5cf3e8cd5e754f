//! 16 bits are negated in other words, as ptxas 13.0 (13.5 does not) takes the result for what fits no 16 bits.
//!
//! The smallest 16-bit integer is its own negative (PTX ISA 9.7.1.11: `d = -a`). ptxas negates in 32 bits, though, and
//! goes on with 32768: converted to a wider type, shifted right, divided or compared, it is wrong. It does so to
//! `neg.s16` and to `sub.s16` from 0. Of all 16-bit arithmetic of PTX, followed by each way to a wider type, these and
//! `abs` (see `absolute.rs`) are the only ones. `sub.u16` is no way out: ptxas makes `base + u16(8 - x)` an access at
//! `base + u16(-x)` with an offset of 8, which is elsewhere. LLVM makes `neg` of `x * -1` and of `~x + 1` too when it
//! selects instructions, so its text is what can be mended.

/// LLVM's PTX without `neg.s16`. What a user writes as inline PTX stays.
pub(super) fn rewrite(ptx: Vec<u8>) -> Vec<u8> {
    let Ok(text) = std::str::from_utf8(&ptx) else { return ptx };
    if !text.lines().any(|line| negation(line).is_some()) {
        return ptx;
    }
    let mut rewritten = String::with_capacity(text.len() + 256);
    for line in text.split_inclusive('\n') {
        match negation(line) {
            Some((to, of)) => {
                rewritten.extend(["\tnot.b16 \t", to, ", ", of, ";\n\tadd.s16 \t", to, ", ", to, ", 1;\n"]);
            }
            None => rewritten.push_str(line),
        }
    }
    rewritten.into_bytes()
}

/// Where the negative of 16 bits goes, and what it is of.
fn negation(line: &str) -> Option<(&str, &str)> {
    let (to, of) = match (line.strip_prefix("\tneg.s16 \t"), line.strip_prefix("\tsub.s16 \t")) {
        (Some(operands), _) => operands.split_once(", ")?,
        (None, Some(operands)) => operands.split_once(", 0, ")?,
        (None, None) => return None,
    };
    Some((to, of.trim_end().strip_suffix(';')?))
}
