//! Command-line flags for the options of `cuda.jit`, generated from the compiler's table of options.

use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches};
use weft_compiler::request::{Flag, JIT_OPTIONS, JitOptions, OptionValue};

use crate::report::Stop;

/// The options given on the command line.
#[derive(Clone, Debug, Default)]
pub(crate) struct OptionFlags(Vec<(&'static str, OptionValue)>);

impl OptionFlags {
    /// The options of a decorator, overridden by these.
    pub(crate) fn over(&self, jit: &JitOptions) -> Result<JitOptions, Stop> {
        let mut options = jit.clone();
        options.take(&self.0).map_err(|(_, refusal)| Stop::Usage(refusal.message().to_owned()))?;
        Ok(options)
    }
}

/// Help strings of flags whose meaning differs from the documentation of the option.
const HELP: &[(&str, &str)] = &[
    (
        "debug",
        "Compile without optimizations and with line tables; `raise`, `assert`, divisions by zero and bad indices of \
         tuples raise exceptions, as in Python",
    ),
    ("lineinfo", "Write line tables for profilers"),
    (
        "fastmath",
        "Relax floating point: denormals are zero, division and functions are approximate, sums are reordered",
    ),
    (
        "launch_bounds",
        "Compile for launches with at most THREADS threads per block, at least BLOCKS blocks per multiprocessor and \
         at most CLUSTER blocks per cluster",
    ),
    ("max_registers", "Use at most N registers per thread"),
    (
        "boundscheck",
        "Check array indices: an index out of bounds raises an `IndexError` if the launching program reads the \
         exceptions of kernels",
    ),
    (
        "wraparound",
        "Assume that no array index is negative. A negative literal is an error; with `--boundscheck`, other negative \
         indices raise. Slices, tuples and strings are not affected",
    ),
    ("exceptions", "Have `raise` and `assert` record an exception; without this option they only end their thread"),
];

impl Args for OptionFlags {
    fn augment_args(mut command: Command) -> Command {
        for option in JIT_OPTIONS {
            let arg = match option.flag {
                Flag::None => continue,
                Flag::Switch(flag) | Flag::Off(flag) => Arg::new(option.name).long(flag).action(ArgAction::SetTrue),
                Flag::Value(flag, shown) => Arg::new(option.name).long(flag).value_name(shown),
            };
            let help = HELP.iter().find(|(name, _)| *name == option.name).map_or(option.doc, |(_, help)| *help);
            command = command.arg(arg.help(help.trim_end_matches('.')));
        }
        command
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for OptionFlags {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let mut flags = Self::default();
        flags.update_from_arg_matches(matches)?;
        Ok(flags)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        for option in JIT_OPTIONS {
            let value = match option.flag {
                Flag::None => continue,
                Flag::Switch(_) => matches.get_flag(option.name).then_some(OptionValue::Bool(true)),
                Flag::Off(_) => matches.get_flag(option.name).then_some(OptionValue::Bool(false)),
                Flag::Value(..) => matches.get_one::<String>(option.name).map(|text| value(text)),
            };
            self.0.extend(value.map(|value| (option.name, value)));
        }
        Ok(())
    }
}

/// Parses an integer or a comma-separated list of them. Other text is passed on as a string; the option's own check
/// rejects it.
fn value(text: &str) -> OptionValue {
    let number = |part: &str| part.trim().parse().map_or_else(|_| OptionValue::Str(part.to_owned()), OptionValue::Int);
    let mut numbers: Vec<OptionValue> = text.split(',').map(number).collect();
    if numbers.len() == 1 { numbers.remove(0) } else { OptionValue::Tuple(numbers) }
}
