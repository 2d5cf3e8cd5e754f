//! The text form of rules, which exported kernels contain: prefix expressions in parentheses.
//!
//! ```text
//! (launch (grid (// (+ (size 0) 255) 256) 1 1) (block 256 1 1) (shared 0))
//! (output 2 (like 0) (dtype like 0) empty)
//! (output 2 (shape (extent 0 0) (extent 1 -1)) (dtype float32) zeros)
//! ```
//!
//! `(scalar 1)`, `(size 0)`, `(extent 0 -1)` and `(ndim 0)` name arguments by number. Operators are [`RuleOp::name`].

use std::fmt::{self, Display, Formatter};

use super::{LaunchRule, OutputDType, OutputRule, OutputShape, RuleExpr, RuleOp};
use crate::number::Number;

/// The deepest nesting of expressions in a text.
const MAX_DEPTH: usize = 200;

/// A text that is no rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BadRuleText;

impl Display for BadRuleText {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str("the text is not a rule of this version of weft")
    }
}

impl std::error::Error for BadRuleText {}

impl Display for RuleExpr {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Int(value) => value.fmt(f),
            Self::Scalar(param) => write!(f, "(scalar {param})"),
            Self::Size(param) => write!(f, "(size {param})"),
            Self::Extent(param, dim) => write!(f, "(extent {param} {dim})"),
            Self::Ndim(param) => write!(f, "(ndim {param})"),
            Self::Apply(op, operands) => {
                write!(f, "({}", op.name())?;
                operands.iter().try_for_each(|operand| write!(f, " {operand}"))?;
                f.write_str(")")
            }
        }
    }
}

impl Display for LaunchRule {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Self { grid: [gx, gy, gz], block: [bx, by, bz], shared_bytes } = self;
        write!(f, "(launch (grid {gx} {gy} {gz}) (block {bx} {by} {bz}) (shared {shared_bytes}))")
    }
}

impl Display for OutputRule {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "(output {} ", self.param)?;
        match &self.shape {
            OutputShape::Like(param) => write!(f, "(like {param})")?,
            OutputShape::Extents(extents) => {
                f.write_str("(shape")?;
                extents.iter().try_for_each(|extent| write!(f, " {extent}"))?;
                f.write_str(")")?;
            }
        }
        match self.dtype {
            OutputDType::Like(param) => write!(f, " (dtype like {param})")?,
            OutputDType::Is(number) => write!(f, " (dtype {number})")?,
            OutputDType::Declared => f.write_str(" (dtype declared)")?,
        }
        f.write_str(if self.zeroed { " zeros)" } else { " empty)" })
    }
}

/// A text as a tree.
enum Node<'a> {
    Word(&'a str),
    List(Vec<Node<'a>>),
}

impl<'a> Node<'a> {
    /// Reads one node, and returns the rest of the text.
    fn read(text: &'a str, depth: usize) -> Option<(Self, &'a str)> {
        let text = text.trim_start();
        let Some(mut rest) = text.strip_prefix('(') else {
            let end = text.find(|c: char| c == '(' || c == ')' || c.is_whitespace()).unwrap_or(text.len());
            let (word, rest) = text.split_at(end);
            return (!word.is_empty()).then_some((Self::Word(word), rest));
        };
        let mut items = Vec::new();
        loop {
            rest = rest.trim_start();
            if let Some(after) = rest.strip_prefix(')') {
                return Some((Self::List(items), after));
            }
            let (item, after) = Self::read(rest, depth.checked_sub(1)?)?;
            items.push(item);
            rest = after;
        }
    }

    /// Reads a text that is one node.
    fn of(text: &'a str) -> Option<Self> {
        let (node, rest) = Self::read(text, MAX_DEPTH)?;
        rest.trim().is_empty().then_some(node)
    }

    fn word(&self) -> Option<&'a str> {
        match self {
            Self::Word(word) => Some(word),
            Self::List(_) => None,
        }
    }

    fn list(&self) -> Option<&[Self]> {
        match self {
            Self::Word(_) => None,
            Self::List(items) => Some(items),
        }
    }

    /// The items after the first, which is this word.
    fn after(&self, head: &str) -> Option<&[Self]> {
        let (first, rest) = self.list()?.split_first()?;
        (first.word()? == head).then_some(rest)
    }

    fn param(&self) -> Option<u32> {
        self.word()?.parse().ok()
    }

    fn expr(&self) -> Option<RuleExpr> {
        if let Some(word) = self.word() {
            return word.parse().ok().map(RuleExpr::Int);
        }
        let (head, operands) = self.list()?.split_first()?;
        Some(match (head.word()?, operands) {
            ("scalar", [param]) => RuleExpr::Scalar(param.param()?),
            ("size", [param]) => RuleExpr::Size(param.param()?),
            ("extent", [param, dim]) => RuleExpr::Extent(param.param()?, dim.word()?.parse().ok()?),
            ("ndim", [param]) => RuleExpr::Ndim(param.param()?),
            (name, operands) => {
                let op = RuleOp::ALL.into_iter().find(|op| op.name() == name && op.operands() == operands.len())?;
                RuleExpr::Apply(op, operands.iter().map(Self::expr).collect::<Option<_>>()?)
            }
        })
    }

    fn three(&self, head: &str) -> Option<[RuleExpr; 3]> {
        let exprs = self.after(head)?.iter().map(Self::expr).collect::<Option<Vec<_>>>()?;
        exprs.try_into().ok()
    }

    fn launch(&self) -> Option<LaunchRule> {
        let [grid, block, shared] = self.after("launch")? else { return None };
        let [shared] = shared.after("shared")? else { return None };
        Some(LaunchRule { grid: grid.three("grid")?, block: block.three("block")?, shared_bytes: shared.expr()? })
    }

    fn output(&self) -> Option<OutputRule> {
        let [param, shape, dtype, fill] = self.after("output")? else { return None };
        let shape = match (shape.after("like"), shape.after("shape")) {
            (Some([like]), _) => OutputShape::Like(like.param()?),
            (_, Some(extents)) => OutputShape::Extents(extents.iter().map(Self::expr).collect::<Option<_>>()?),
            (Some(_) | None, None) => return None,
        };
        let dtype = match dtype.after("dtype")? {
            [like, param] if like.word()? == "like" => OutputDType::Like(param.param()?),
            [word] if word.word()? == "declared" => OutputDType::Declared,
            [word] => OutputDType::Is(Number::from_name(word.word()?)?),
            _ => return None,
        };
        let zeroed = match fill.word()? {
            "zeros" => true,
            "empty" => false,
            _ => return None,
        };
        Some(OutputRule { param: param.param()?, shape, dtype, zeroed })
    }
}

impl LaunchRule {
    /// Reads the text form.
    ///
    /// # Errors
    ///
    /// The text is none.
    pub fn parse(text: &str) -> Result<Self, BadRuleText> {
        Node::of(text).and_then(|node| node.launch()).ok_or(BadRuleText)
    }
}

impl OutputRule {
    /// Reads the text form.
    ///
    /// # Errors
    ///
    /// The text is none.
    pub fn parse(text: &str) -> Result<Self, BadRuleText> {
        Node::of(text).and_then(|node| node.output()).ok_or(BadRuleText)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_read_as_written() {
        for text in [
            "(launch (grid (// (+ (size 0) 255) 256) 1 1) (block 256 1 1) (shared 0))",
            "(launch (grid (if (< (scalar 1) -3) (extent 0 -1) (ndim 0)) 1 1) (block (neg -1) 1 1) (shared (<< 1 4)))",
        ] {
            assert_eq!(LaunchRule::parse(text).map(|rule| rule.to_string()), Ok(text.to_owned()));
        }
        for text in [
            "(output 2 (like 0) (dtype like 0) empty)",
            "(output 2 (shape (extent 0 0) (extent 1 -1)) (dtype float32) zeros)",
            "(output 0 (shape) (dtype declared) zeros)",
        ] {
            assert_eq!(OutputRule::parse(text).map(|rule| rule.to_string()), Ok(text.to_owned()));
        }
    }

    #[test]
    fn other_texts_are_errors() {
        let deep = format!("(launch (grid {}1{} 1 1) (block 1 1 1) (shared 0))", "(neg ".repeat(300), ")".repeat(300));
        for text in [
            "",
            "(launch",
            "(launch (grid 1 1) (block 1 1 1) (shared 0))",
            "(launch (grid 1 1 (pow 1 2)) (block 1 1 1) (shared 0))",
            "(launch (grid 1 1 (+ 1)) (block 1 1 1) (shared 0))",
            "(launch (grid 1 1 1) (block 1 1 1) (shared 0)) 1",
            &deep,
        ] {
            assert_eq!(LaunchRule::parse(text), Err(BadRuleText), "{text}");
        }
        assert_eq!(OutputRule::parse("(output 0 (like 0) (dtype float33) empty)"), Err(BadRuleText));
    }
}
