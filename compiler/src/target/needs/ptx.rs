//! Parses a PTX text into instructions, each with its modifiers and operands.
//!
//! The parser only reads the parts that the table needs. It skips comments, predicates, labels and the braces of
//! scopes, and does not split vectors. ptxas reports invalid PTX.

/// One instruction, or a declaration such as `.reg .b128 x`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Instruction {
    /// The name as written, without operands: `fma.rn.bf16x2`.
    pub(super) name: String,
    /// The first word, then the modifiers: `fma`, `rn`, `bf16x2`.
    pub(super) words: Vec<String>,
    /// The operands, with vectors and addresses unsplit.
    pub(super) operands: Vec<String>,
}

/// All instructions of a text.
pub(super) fn instructions(text: &str) -> Vec<Instruction> {
    statements(&without_comments(text)).iter().filter_map(|statement| read(statement)).collect()
}

/// The special registers in an operand, such as `%cluster_ctarank`.
pub(super) fn registers(operand: &str) -> impl Iterator<Item = &str> {
    operand.split(|c: char| !c.is_ascii_alphanumeric() && !"_%".contains(c)).filter(|word| word.starts_with('%'))
}

fn without_comments(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find("//").into_iter().chain(rest.find("/*")).min() {
        let (before, comment) = rest.split_at(start);
        out.push_str(before);
        let end = if comment.starts_with("//") { comment.find('\n') } else { comment.find("*/").map(|end| end + 2) };
        // A comment separates tokens.
        out.push(' ');
        rest = end.map_or("", |end| &comment[end..]);
    }
    out.push_str(rest);
    out
}

/// The statements: the text between semicolons and the braces of scopes. A brace after the beginning of a statement
/// opens a vector.
fn statements(text: &str) -> Vec<String> {
    let mut out = vec![String::new()];
    let mut depth = 0usize;
    for c in text.chars() {
        let last = out.last_mut().expect("there is always one");
        match c {
            ';' => out.push(String::new()),
            '{' if last.trim().is_empty() => {}
            '{' => {
                depth += 1;
                last.push(c);
            }
            '}' if depth == 0 => out.push(String::new()),
            '}' => {
                depth -= 1;
                last.push(c);
            }
            _ => last.push(c),
        }
        if c == ';' {
            depth = 0;
        }
    }
    out
}

fn read(statement: &str) -> Option<Instruction> {
    let mut rest = statement.trim();
    // Skip labels and the predicate.
    loop {
        if let Some(end) = label(rest) {
            rest = rest[end..].trim_start();
        } else if rest.starts_with('@') {
            rest = rest.find(char::is_whitespace).map_or("", |end| rest[end..].trim_start());
        } else {
            break;
        }
    }
    let mut name = String::new();
    // Whitespace may precede modifiers.
    while name.is_empty() || rest.starts_with('.') {
        let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && !"._:".contains(c)).unwrap_or(rest.len());
        if end == 0 {
            break;
        }
        name.push_str(&rest[..end]);
        rest = rest[end..].trim_start();
    }
    let words: Vec<_> = name.split('.').filter(|word| !word.is_empty()).map(str::to_owned).collect();
    if words.is_empty() { None } else { Some(Instruction { name, words, operands: operands(rest) }) }
}

/// The length of a label at the beginning, with its colon.
fn label(text: &str) -> Option<usize> {
    let end = text.find(|c: char| !c.is_ascii_alphanumeric() && !"_$%".contains(c))?;
    let after = text[end..].trim_start();
    (end > 0 && after.starts_with(':') && !after.starts_with("::")).then(|| text.len() - after.len() + 1)
}

fn operands(text: &str) -> Vec<String> {
    let mut out = vec![String::new()];
    let mut depth = 0usize;
    for c in text.chars() {
        match c {
            '{' | '[' | '(' => depth += 1,
            '}' | ']' | ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        if c == ',' && depth == 0 {
            out.push(String::new());
        } else if let Some(last) = out.last_mut() {
            last.push(c);
        }
    }
    out.iter().map(|operand| operand.trim().to_owned()).filter(|operand| !operand.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Vec<(String, usize)> {
        instructions(text).into_iter().map(|one| (one.name, one.operands.len())).collect()
    }

    #[test]
    fn instructions_have_their_modifiers_and_operands() {
        let text = "{ .reg .b32 t; mapa.u32 t, $1, 0; @!p mbarrier.try_wait.b64 $0, [t]; }";
        let names = [(".reg.b32", 1), ("mapa.u32", 3), ("mbarrier.try_wait.b64", 2)];
        assert_eq!(found(text), names.map(|(name, count)| (name.to_owned(), count)));
        let text = "again: mma.sync.aligned.m16n8k8 .row.col.f32.tf32.tf32.f32\n{$0,$1}, {$2, $3}, {$4}, {$5,$6};";
        assert_eq!(found(text), [("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32".to_owned(), 4)]);
        assert_eq!(found("mov.u32 $0, %clock; // not wgmma;"), [("mov.u32".to_owned(), 2)]);
        assert_eq!(found("/* wgmma.fence; */ ret;"), [("ret".to_owned(), 0)]);
        assert_eq!(
            found("ld.shared::cta.b32 $0, [$1+4];{ret;}"),
            [("ld.shared::cta.b32".to_owned(), 2), ("ret".to_owned(), 0)]
        );
    }

    #[test]
    fn what_is_no_ptx_is_passed_over() {
        for text in ["", ";;", "}{", "/*", "@", "::", "{}}", "a:", "µ"] {
            assert!(instructions(text).len() <= 1, "{text}");
        }
    }

    #[test]
    fn special_registers_are_found_in_operands() {
        let of = |text| registers(text).collect::<Vec<_>>();
        assert_eq!(of("%cluster_ctarank"), ["%cluster_ctarank"]);
        assert_eq!(of("{%tid.x, $1}"), ["%tid"]);
        assert_eq!(of("[$1]"), Vec::<&str>::new());
    }
}
