//! The page of each code: `explain/E0203.md` and its like, as `weft explain E0203` prints them.
//!
//! A page says what the code means, shows a program with the fault and its message, the program without it, and why it
//! is so. The first Python block of a page has the fault, the second has not.

use super::Code;

/// The page in Markdown.
pub fn explain(code: Code) -> &'static str {
    match code {
        Code::Syntax => include_str!("E0101.md"),
        Code::UnsupportedStatement => include_str!("E0102.md"),
        Code::UnsupportedExpression => include_str!("E0103.md"),
        Code::MisplacedStatement => include_str!("E0104.md"),
        Code::UnknownName => include_str!("E0201.md"),
        Code::UnsupportedValue => include_str!("E0202.md"),
        Code::CannotJoin => include_str!("E0203.md"),
        Code::UndefinedLocal => include_str!("E0204.md"),
        Code::NoMatchingOverload => include_str!("E0205.md"),
        Code::ArgumentCount => include_str!("E0206.md"),
        Code::NoSuchAttribute => include_str!("E0207.md"),
        Code::IndexCount => include_str!("E0208.md"),
        Code::BadIndex => include_str!("E0209.md"),
        Code::NotConstant => include_str!("E0210.md"),
        Code::BadOperand => include_str!("E0211.md"),
        Code::KernelReturns => include_str!("E0212.md"),
        Code::Recursion => include_str!("E0213.md"),
        Code::NotCallable => include_str!("E0214.md"),
        Code::ReadonlyArray => include_str!("E0215.md"),
        Code::BadAssignment => include_str!("E0216.md"),
        Code::ReturnTypes => include_str!("E0217.md"),
        Code::Widened => include_str!("E0219.md"),
        Code::NotReproducible => include_str!("E0220.md"),
        Code::Remade => include_str!("E0221.md"),
        Code::InFlight => include_str!("E0222.md"),
        Code::OutOfRange => include_str!("E0218.md"),
        Code::BadSignature => include_str!("E0301.md"),
        Code::NoSignature => include_str!("E0302.md"),
        Code::NoKernel => include_str!("E0303.md"),
        Code::UnknownTarget => include_str!("E0304.md"),
        Code::SharedTooLarge => include_str!("E0305.md"),
        Code::LocalTooLarge => include_str!("E0306.md"),
        Code::NotInTarget => include_str!("E0308.md"),
        Code::BadRule => include_str!("E0309.md"),
        Code::Usage => include_str!("E0307.md"),
        Code::NoDerivative => include_str!("E0401.md"),
        Code::NoPath => include_str!("E0402.md"),
        Code::NotRecomputable => include_str!("E0403.md"),
        Code::Unordered => include_str!("E0404.md"),
        Code::Internal => include_str!("E0901.md"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_has_a_page_with_a_wrong_and_a_right_example() {
        for &code in Code::ALL {
            let page = explain(code);
            let title = format!("# {}: {}\n", code.number(), code.title());
            assert!(page.starts_with(&title), "{}: the title is not `{}`", code.number(), title.trim_end());
            // The command's own diagnostics show their code in JSON only.
            let own = code == Code::Usage;
            let severity = if code == Code::Widened {
                "note"
            } else if code == Code::NotReproducible {
                "warning"
            } else {
                "error"
            };
            let message = format!("\n```text\n{severity}{}", if own { ": " } else { "[" });
            let sections = ["\n## Wrong\n", message.as_str(), "\n## Right\n", "\n## Why\n"];
            let places: Vec<_> = sections.iter().map(|section| page.find(section)).collect();
            assert!(places.iter().all(Option::is_some) && places.is_sorted(), "{}: {places:?}", code.number());
            assert!(
                own || page.contains(&format!("{severity}[{}]", code.number())),
                "{}: shows its message",
                code.number()
            );
            assert!(page.lines().all(|line| line.chars().count() <= 120), "{}: long lines", code.number());
        }
    }
}
