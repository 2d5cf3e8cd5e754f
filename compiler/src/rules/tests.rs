//! Translations of rules, and the errors of what cannot be translated.

use std::collections::BTreeMap;

use super::*;
use crate::{
    source::SourceFile,
    syntax::{ast::ExprKind, parse_expression, parse_function},
};

fn translate(text: &str) -> Translated<String> {
    let source = SourceFile::new("rule.py", text);
    let ast = if text.starts_with("lambda") {
        let expr = parse_expression(&source, 0)?;
        let ExprKind::Lambda(function) = expr.kind else { panic!("{text} is no lambda") };
        *function
    } else {
        parse_function(&source, 0, None)?
    };
    let globals = BTreeMap::from([
        ("B".to_owned(), Captured::Int(256)),
        ("PAIR".to_owned(), Captured::Tuple(vec![Captured::Int(16), Captured::Int(8)])),
        ("scale".to_owned(), Captured::Float(1.5)),
        ("math".to_owned(), Captured::Known("math".to_owned())),
        (
            "config".to_owned(),
            Captured::Module("config".to_owned(), BTreeMap::from([("B".to_owned(), Captured::Int(64))])),
        ),
        ("len".to_owned(), Captured::Known("builtins.len".to_owned())),
    ]);
    let params = ["x", "out", "n"].map(str::to_owned);
    let of = RuleFunction { what: "launch rule", ast: &ast, globals: &globals, kernel: "k", params: &params };
    launch_rule(of).map(|rule| rule.to_string())
}

#[test]
fn rules_are_translated() {
    let blocks = "(// (+ (size 0) 255) 256)";
    for (text, grid, block, shared) in [
        ("lambda x, out: ((x.size + 255) // 256, 256)", format!("{blocks} 1 1"), "256 1 1", "0"),
        ("lambda x: (-(-x.size // B), B, 4 * B)", "(neg (// (neg (size 0)) 256)) 1 1".to_owned(), "256 1 1", "1024"),
        ("lambda n: ((n, 2), PAIR)", "(scalar 2) 2 1".to_owned(), "16 8 1", "0"),
        ("lambda x: (x.shape[-1] if x.ndim > 1 else len(x), config.B)", 
         "(if (< 1 (ndim 0)) (extent 0 -1) (extent 0 0)) 1 1".to_owned(), "64 1 1", "0"),
        ("lambda x, n: ([1], 32) if 0 < n <= 4 and x.size else ([n], 64)",
         "(if (if (if (< 0 (scalar 2)) (<= (scalar 2) 4) 0) (size 0) (if (< 0 (scalar 2)) (<= (scalar 2) 4) 0)) 1 (scalar 2)) 1 1"
             .to_owned(),
         "(if (if (if (< 0 (scalar 2)) (<= (scalar 2) 4) 0) (size 0) (if (< 0 (scalar 2)) (<= (scalar 2) 4) 0)) 32 64) 1 1", "0"),
        ("lambda x: (min(max(1, x.size >> 8), 1 << 10), 256)", "(min (max 1 (>> (size 0) 8)) 1024) 1 1".to_owned(),
         "256 1 1", "0"),
        ("lambda x: (math.prod(x.shape), 1)", "(size 0) 1 1".to_owned(), "1 1 1", "0"),
        ("def rule(x, n):\n    \"\"\"Doc.\"\"\"\n    rows, cols = x.shape\n    t = 16\n    t += 0\n    if n > 8:\n        t = 32\n    return (cols // t, rows), (t, 1)\n",
         "(if (< 8 (scalar 2)) (// (extent 0 1) 32) (// (extent 0 1) 16)) (extent 0 0) 1".to_owned(),
         "(if (< 8 (scalar 2)) 32 16) 1 1", "0"),
    ] {
        let expected = format!("(launch (grid {grid}) (block {block}) (shared {shared}))");
        assert_eq!(translate(text).as_ref(), Ok(&expected), "{text}");
    }
}

#[test]
fn everything_else_is_an_error_with_a_fix() {
    for (text, message) in [
        ("lambda y: (1, 1)", "the launch rule takes `y`, which is no parameter of `k`"),
        ("lambda *x: (1, 1)", "the launch rule of `k` takes `*x`"),
        ("lambda x: x.size", "a launch rule returns a tuple of a grid and a block"),
        ("lambda x: (1, 2, 3, 4)", "a launch rule returns a tuple of a grid and a block"),
        ("lambda x: ((1, 1, 1, 1), 1)", "a grid has up to three extents, not 4"),
        ("lambda x: (x.size / 256, 256)", "a launch rule cannot contain the operator `/`"),
        ("lambda x: (math.ceil(x.size), 256)", "a launch rule cannot call `math.ceil`"),
        ("lambda x: (x.shape, 256)", "the launch rule needs an integer, not a shape"),
        ("lambda x: (x.nbytes, 256)", "a launch rule cannot use `.nbytes`"),
        ("lambda x: (x[0], 256)", "a launch rule cannot read elements of `x`"),
        ("lambda x: (x.shape[n], 256)", "`n` is not defined in the launch rule"),
        ("lambda x, n: (x.shape[n], 256)", "an index in a launch rule must be a constant"),
        ("lambda x: (scale, 256)", "a launch rule cannot use the value of `scale`"),
        ("lambda x: (x.size * 1.5, 256)", "a launch rule computes with integers"),
        ("lambda x: (sum(x.shape), 256)", "a launch rule cannot call `sum`"),
        ("lambda x: (2 ** x.size, 256)", "a launch rule cannot contain the operator `**`"),
        (
            "lambda x: ((1, 2) if x.size else 1, 256)",
            "the branches of a launch rule must have tuples of the same length",
        ),
        ("lambda x: ([i for i in x], 256)", "a launch rule cannot contain a list comprehension"),
        (
            "def rule(x):\n    for i in x:\n        pass\n    return 1, 1\n",
            "a launch rule cannot contain this statement",
        ),
        ("def rule(x):\n    if x.size:\n        return 1, 1\n", "the launch rule returns nothing on a path"),
        ("def rule(x):\n    x.size = 3\n    return 1, 1\n", "a launch rule assigns to names only"),
        ("def rule(x):\n    a, b = 1, 2, 3\n    return 1, 1\n", "3 values cannot be assigned to 2 names"),
    ] {
        let error = translate(text).expect_err(text);
        assert_eq!(error.message, message, "{text}");
        assert_eq!(error.code, Code::BadRule);
    }
}

#[test]
fn the_shape_of_an_output_is_translated() {
    let source = SourceFile::new("rule.py", "lambda x, n: (x.shape[0], n + 1)");
    let expr = parse_expression(&source, 0).expect("is Python");
    let ExprKind::Lambda(ast) = expr.kind else { panic!("is a lambda") };
    let params = ["x", "out", "n"].map(str::to_owned);
    let globals = BTreeMap::new();
    let of = RuleFunction { what: "output rule", ast: &ast, globals: &globals, kernel: "k", params: &params };
    let OutputShape::Extents(extents) = output_shape(of).expect("is a shape") else { panic!("has extents") };
    assert_eq!(extents.iter().map(ToString::to_string).collect::<Vec<_>>(), ["(extent 0 0)", "(+ (scalar 2) 1)"]);
}

#[test]
fn constants_are_a_launch_rule() {
    let pair = Captured::Tuple(vec![Captured::Int(8), Captured::Tuple(vec![Captured::Int(16), Captured::Int(4)])]);
    let rule = constant_launch(&pair).map(|rule| rule.to_string());
    assert_eq!(rule.as_deref(), Ok("(launch (grid 8 1 1) (block 16 4 1) (shared 0))"));
    assert!(constant_launch(&Captured::Int(8)).is_err());
}
