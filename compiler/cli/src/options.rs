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

impl Args for OptionFlags {
    fn augment_args(mut command: Command) -> Command {
        for option in JIT_OPTIONS {
            let arg = match option.flag {
                Flag::None => continue,
                Flag::Switch(flag) | Flag::Off(flag) => Arg::new(option.name).long(flag).action(ArgAction::SetTrue),
                Flag::Value(flag, shown) => Arg::new(option.name).long(flag).value_name(shown),
            };
            command = command.arg(arg.help(option.doc.trim_end_matches('.')));
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
