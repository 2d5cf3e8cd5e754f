//! The command's flags for options of `cuda.jit`, from the compiler's table of them.

use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches};
use weft_compiler::request::{Flag, JIT_OPTIONS, JitOptions, OptionValue};

use crate::report::Stop;

/// The options that the command line gives.
#[derive(Clone, Debug, Default)]
pub(crate) struct OptionFlags(Vec<(&'static str, OptionValue)>);

impl OptionFlags {
    /// What a decorator says, with these in the place of the same options.
    pub(crate) fn over(&self, jit: &JitOptions) -> Result<JitOptions, Stop> {
        let mut options = jit.clone();
        options.take(&self.0).map_err(|(_, refusal)| Stop::Usage(refusal.message().to_owned()))?;
        Ok(options)
    }
}

/// What a flag does, where that is not what is said of the option.
const HELP: &[(&str, &str)] = &[
    (
        "debug",
        "Compile without optimizations, with line tables and Python's rules: `raise`, `assert`, divisions by zero and \
         bad indices of tuples raise exceptions",
    ),
    ("lineinfo", "Write line tables for profilers"),
    (
        "fastmath",
        "Relax floating point: denormals are zero, division and functions are approximate, sums are reordered",
    ),
    (
        "launch_bounds",
        "Compile for launches with at most THREADS threads a block, with BLOCKS blocks or more on a multiprocessor and \
         at most CLUSTER blocks a cluster",
    ),
    ("max_registers", "Use at most N registers a thread"),
    (
        "boundscheck",
        "Check each index of an array: one that is out of bounds raises an `IndexError`, if the program that launches \
         the code reads what kernels raise",
    ),
    (
        "wraparound",
        "Take all indices of arrays as they are: the caller promises that none is negative. One that is written so is \
         an error, and with `--boundscheck` the others raise. Slices, tuples and strings keep Python's meaning",
    ),
    ("exceptions", "Have `raise` and `assert` record an exception; without it they end their thread"),
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

/// Numbers, with commas between if there are several; other text is refused by whoever reads it.
fn value(text: &str) -> OptionValue {
    let number = |part: &str| part.trim().parse().map_or_else(|_| OptionValue::Str(part.to_owned()), OptionValue::Int);
    let mut numbers: Vec<OptionValue> = text.split(',').map(number).collect();
    if numbers.len() == 1 { numbers.remove(0) } else { OptionValue::Tuple(numbers) }
}
