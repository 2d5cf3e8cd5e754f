//! `neg.s16` in other words, as ptxas 13.0 (13.5 does not) takes its result for what fits no 16 bits.
//!
//! The smallest 16-bit integer is its own negative (PTX ISA 9.7.1.11: `d = -a`). ptxas negates in 32 bits, though, and
//! goes on with 32768: converted to a wider type, shifted right, divided or compared, it is wrong. Of all 16-bit
//! arithmetic of PTX, followed by each way to a wider type, `neg` and `abs` (see `absolute.rs`) are the only ones.
//! LLVM makes `neg` of `x * -1` and of `~x + 1` too when it selects instructions, so its text is what can be mended.

/// LLVM's PTX without `neg.s16`. What a user writes as inline PTX stays.
pub(super) fn rewrite(ptx: Vec<u8>) -> Vec<u8> {
    const NEGATE: &str = "\tneg.s16 \t";
    let Ok(text) = std::str::from_utf8(&ptx) else { return ptx };
    if !text.contains(NEGATE) {
        return ptx;
    }
    let mut rewritten = String::with_capacity(text.len() + 256);
    for line in text.split_inclusive('\n') {
        let operands = line.strip_prefix(NEGATE).and_then(|rest| rest.trim_end().strip_suffix(';'));
        match operands.and_then(|operands| operands.split_once(", ")) {
            Some((to, of)) => {
                for part in ["\tnot.b16 \t", to, ", ", of, ";\n\tadd.s16 \t", to, ", ", to, ", 1;\n"] {
                    rewritten.push_str(part);
                }
            }
            None => rewritten.push_str(line),
        }
    }
    rewritten.into_bytes()
}
