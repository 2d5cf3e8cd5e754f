//! 16-bit instructions that ptxas gets wrong, in other words. LLVM makes them of more than one thing when it selects
//! instructions, so its text is what can be mended.
//!
//! **Negatives.** The smallest 16-bit integer is its own negative (PTX ISA 9.7.1.11: `d = -a`). ptxas 13.0 (13.5 does
//! not) negates in 32 bits, though, and goes on with 32768: converted to a wider type, shifted right, divided or compared,
//! it is wrong. It does so to `neg.s16` and to `sub.s16` from 0. Of all 16-bit arithmetic of PTX, followed by each way to
//! a wider type, these and `abs` (see `absolute.rs`) are the only ones. `sub.u16` is no way out: ptxas makes
//! `base + u16(8 - x)` an access at `base + u16(-x)` with an offset of 8, which is elsewhere. LLVM makes `neg` of `x * -1`
//! and of `~x + 1` too.
//!
//! **Minima and maxima.** From `sm_90` on, ptxas (13.0 and 13.5) joins `max.u16 m, a, b` and `m == a` or `m == b` to one
//! instruction that does two of 16 bits and says of each which it took (`VIMNMX.U16x2 m, p, p, a, b`). It has both
//! answers written to one predicate: that of the upper half, which holds nothing, stays, and `max(a, 1) == 1` is true of
//! every `a`. In 32 bits it does not.

/// LLVM's PTX without them. What a user writes as inline PTX stays.
pub(super) fn rewrite(ptx: Vec<u8>) -> Vec<u8> {
    let Ok(text) = std::str::from_utf8(&ptx) else { return ptx };
    if !text.lines().any(|line| reworded(line).is_some()) {
        return ptx;
    }
    let mut rewritten = String::with_capacity(text.len() + 256);
    for line in text.split_inclusive('\n') {
        match reworded(line) {
            Some(other) => rewritten.push_str(&other),
            None => rewritten.push_str(line),
        }
    }
    rewritten.into_bytes()
}

/// A line in other words, if it holds such an instruction.
fn reworded(line: &str) -> Option<String> {
    negation(line).or_else(|| extremum(line))
}

fn negation(line: &str) -> Option<String> {
    let (to, of) = match (line.strip_prefix("\tneg.s16 \t"), line.strip_prefix("\tsub.s16 \t")) {
        (Some(operands), _) => operands.split_once(", ")?,
        (None, Some(operands)) => operands.split_once(", 0, ")?,
        (None, None) => return None,
    };
    let of = of.trim_end().strip_suffix(';')?;
    Some(format!("\tnot.b16 \t{to}, {of};\n\tadd.s16 \t{to}, {to}, 1;\n"))
}

fn extremum(line: &str) -> Option<String> {
    let (name, operands) = line.strip_prefix('\t')?.split_once(" \t")?;
    let (operation, sign) = match name {
        "max.s16" => ("max", 's'),
        "max.u16" => ("max", 'u'),
        "min.s16" => ("min", 's'),
        "min.u16" => ("min", 'u'),
        _ => return None,
    };
    let mut operands = operands.trim_end().strip_suffix(';')?.split(", ");
    let (to, a, b) = (operands.next()?, wide(operands.next()?, sign, 'a')?, wide(operands.next()?, sign, 'b')?);
    Some(format!("\t{{ .reg .b32 a, b; {a} {b} {operation}.{sign}32 a, a, b; cvt.u16.u32 {to}, a; }}\n"))
}

/// What gives a 32-bit register the value of a 16-bit operand: a register or an integer.
fn wide(operand: &str, sign: char, register: char) -> Option<String> {
    if operand.starts_with('%') {
        return Some(format!("cvt.{sign}32.{sign}16 {register}, {operand};"));
    }
    let value = operand.parse::<i64>().ok()? as u16; // LLVM writes 65535 as -1, too
    let value = if sign == 's' { i64::from(value.cast_signed()) } else { i64::from(value) };
    Some(format!("mov.b32 {register}, {value};"))
}
