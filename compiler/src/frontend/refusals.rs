//! What to write instead of what no kernel can have, for the `help` of the message.

/// By the words that the parser gives a statement or an expression.
const WAYS_OUT: &[(&str, &str)] = &[
    // Statements.
    ("a `class` definition", "define the class outside of the function"),
    ("a pattern of keys or classes in a `match`", "match values and tuples, and test for the rest with `if`"),
    ("a `raise … from`", "raise the exception alone: a kernel catches none that could be its cause"),
    ("a `try` statement", "nothing is raised in a kernel: test for the case with `if` before it comes to that"),
    ("a `type` statement", "define the type outside of the function"),
    ("a `with` statement", "write its body alone: a kernel has nothing to open or to close"),
    ("a coroutine's `async for`", "write `for`"),
    ("a coroutine's `async with`", "write its body alone: a kernel has nothing to open or to close"),
    ("a local `import`", "import at the top of the file: a kernel reads the names that its function sees"),
    ("a nested `async def`", "write `def`, outside of the function, and decorate it with `@cuda.jit(device=True)`"),
    // Expressions.
    ("`yield from`", "write the loop where its values are used"),
    ("`yield`", "return the value, write it into an array, or write the loop where its values are used"),
    ("coroutine (`await`)", "leave out `await`, and call a device function"),
    ("coroutine (`async for`)", "leave out `async`"),
    ("dictionary", "use a tuple, an array indexed by number, or one variable for each key"),
    ("dictionary comprehension", "write a loop that fills an array: `cuda.local.array(shape, dtype)`"),
    ("list comprehension", "write a loop that fills an array: `cuda.local.array(shape, dtype)`"),
    ("set", "use a tuple: `x in (1, 2, 3)`"),
    ("set comprehension", "write a loop that fills an array: `cuda.local.array(shape, dtype)`"),
];

/// What to write instead of a statement or an expression.
pub(super) fn way_out(what: &str) -> &'static str {
    let known = WAYS_OUT.iter().find(|(name, _)| *name == what);
    known.map_or("docs/language.md lists what kernels can have", |(_, way_out)| way_out)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whatever the parser refuses has a way out of its own, and there is none for what it takes.
    #[test]
    fn each_refusal_has_a_way_out() {
        let parser = concat!(include_str!("../syntax/parse/convert.rs"), include_str!("../syntax/parse/matching.rs"));
        let mut refused: Vec<&str> =
            parser.split("::Unsupported(").skip(1).filter_map(|rest| rest.trim_start().split('"').nth(1)).collect();
        let mut known: Vec<&str> = WAYS_OUT.iter().map(|(name, _)| *name).collect();
        refused.sort_unstable();
        refused.dedup();
        known.sort_unstable();
        assert_eq!(known, refused);
    }
}
