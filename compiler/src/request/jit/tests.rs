//! Tests of how the options of `cuda.jit` are read.

use super::*;

fn options(given: &[(&str, OptionValue)]) -> JitOptions {
    let mut options = JitOptions::default();
    options.take(given).expect("the options are good");
    options
}

#[test]
fn what_is_not_given_is_the_default() {
    assert_eq!(options(&[]), JitOptions::default());
    let nothing: Vec<_> =
        ["debug", "opt", "max_registers", "launch_bounds", "lto"].map(|name| (name, OptionValue::None)).to_vec();
    assert_eq!(options(&nothing), JitOptions::default());
}

#[test]
fn debug_code_has_lines_and_is_not_optimized_unless_somebody_says_so() {
    let code = options(&[("debug", OptionValue::Bool(true))]).code;
    assert!(code.debug && code.lineinfo && !code.opt);
    // The order in which they are given does not matter.
    let code = options(&[("opt", OptionValue::Bool(true)), ("debug", OptionValue::Bool(true))]).code;
    assert!(code.debug && code.lineinfo && code.opt);
}

#[test]
fn what_an_option_does_not_take_is_told_with_its_name() {
    let refused = |name, value| JitOptions::default().take(&[(name, value)]).expect_err("the value is wrong");
    let (name, refusal) = refused("max_registers", OptionValue::Int(5));
    assert_eq!((name, refusal.message()), (name, "max_registers must be an integer from 16 to 255, not 5"));
    assert!(matches!(refused("max_registers", OptionValue::Bool(true)).1, Refusal::Type(_)));
    assert!(matches!(refused("inline", OptionValue::Str("maybe".into())).1, Refusal::Value(_)));
    let (_, refusal) = refused("wraparound", OptionValue::Int(0));
    assert_eq!(refusal, Refusal::Type("wraparound must be True or False, not 0".to_owned()));
    let bounds = OptionValue::Tuple(vec![OptionValue::None, OptionValue::Int(2)]);
    assert!(matches!(refused("launch_bounds", bounds).1, Refusal::Type(_)));
    let (name, refusal) = refused("fastmaths", OptionValue::None);
    assert_eq!(
        (name, refusal.message()),
        ("fastmaths", "cuda.jit() got an unexpected option 'fastmaths'; did you mean 'fastmath'?")
    );
    assert!(refused("bind", OptionValue::None).1.message().contains("always loaded"));
}

#[test]
fn what_relaxes_floats_contradicts_the_same_bits() {
    let both = [("reproducible", OptionValue::Bool(true)), ("fastmath", OptionValue::Bool(true))];
    let (_, refusal) = JitOptions::default().take(&both).expect_err("both");
    assert!(refusal.message().contains("contradict each other"), "{refusal:?}");
    // The options come in two calls, as from a decorator and from the command line.
    let mut options = options(&both[..1]);
    assert!(options.take(&both[1..]).is_err());
}

#[test]
fn threads_and_blocks_are_coarsened_along_different_axes() {
    let tuple = |factors: &[i64]| OptionValue::Tuple(factors.iter().copied().map(OptionValue::Int).collect());
    let both = options(&[("coarsen", OptionValue::Int(2)), ("coarsen_blocks", tuple(&[1, 4]))]);
    assert_eq!(both.code.coarsen, Factors { threads: [2, 1, 1], blocks: [1, 4, 1] });
    assert!(both.says_factors);
    let blocks = options(&[("coarsen", OptionValue::None), ("coarsen_blocks", OptionValue::Int(2))]);
    assert_eq!((blocks.code.coarsen, blocks.says_factors), (Factors::of_blocks([2, 1, 1]), true));
    let refused = |given: &[(&str, OptionValue)]| {
        let (_, refusal) = JitOptions::default().take(given).expect_err("the value is wrong");
        refusal.message().to_owned()
    };
    assert_eq!(
        refused(&[("coarsen", OptionValue::Int(2)), ("coarsen_blocks", OptionValue::Int(2))]),
        "coarsen and coarsen_blocks must be for different axes, not coarsen=2, coarsen_blocks=2"
    );
    let auto = ("coarsen", OptionValue::Str("auto".to_owned()));
    assert!(refused(&[auto, ("coarsen_blocks", OptionValue::Int(2))]).contains("leave coarsen_blocks out"));
    assert_eq!(
        refused(&[("coarsen", OptionValue::Str("blocks:2x2".to_owned()))]),
        "coarsen must be 1, 2 or 4, or a tuple of up to three of these, or 'auto', not 'blocks:2x2': write \
         coarsen=(2, 2) for threads, coarsen_blocks=(2, 2) for blocks"
    );
}
