//! Replaces 16-bit instructions that ptxas miscompiles. LLVM creates them in several ways during instruction selection,
//! so the workaround edits the PTX that LLVM emits.
//!
//! **Negation.** The smallest 16-bit integer is its own negative (PTX ISA 9.7.1.11: `d = -a`). ptxas 13.0 (but not
//! 13.5) negates in 32 bits instead, and continues with 32768. The result is wrong if it is converted to a wider type,
//! shifted right, divided or compared. This happens with `neg.s16` and with `sub.s16` from 0. A test of all 16-bit
//! arithmetic of PTX, followed by each conversion to a wider type, found only these and `abs` (see `absolute.rs`).
//! `sub.u16` does not avoid it: ptxas compiles `base + u16(8 - x)` to an access at `base + u16(-x)` with offset 8,
//! which is another address. LLVM also selects `neg` for `x * -1` and for `~x + 1`.
//!
//! **Minimum and maximum.** From `sm_90` on, ptxas (13.0 and 13.5) merges `max.u16 m, a, b` and `m == a` or `m == b` to
//! one instruction that computes two 16-bit maxima and one predicate for each (`VIMNMX.U16x2 m, p, p, a, b`). ptxas
//! writes both predicates to one register. The predicate of the unused upper half wins, so `max(a, 1) == 1` is true for
//! every `a`. ptxas does not do so in 32 bits.

/// Replaces such instructions in LLVM's PTX. Inline PTX of the user is not changed.
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

/// The replacement of a line, if it has such an instruction.
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

/// An instruction that widens a 16-bit operand (a register or an integer) to a 32-bit register.
fn wide(operand: &str, sign: char, register: char) -> Option<String> {
    if operand.starts_with('%') {
        return Some(format!("cvt.{sign}32.{sign}16 {register}, {operand};"));
    }
    let value = operand.parse::<i64>().ok()? as u16; // LLVM prints 65535 as -1 in some instructions
    let value = if sign == 's' { i64::from(value.cast_signed()) } else { i64::from(value) };
    Some(format!("mov.b32 {register}, {value};"))
}
