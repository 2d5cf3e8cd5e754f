//! Passes that normalize the structured IR before parallel regions are formed.

pub(crate) mod assigned_params;
pub(crate) mod broadcasts;
pub(crate) mod hoist_broadcasts;
pub(crate) mod if_convert;
pub(crate) mod local_arrays;
pub(crate) mod nest_conditions;
pub(crate) mod normalize_loops;
pub(crate) mod promote_scalars;
pub(crate) mod propagate_flags;
pub(crate) mod rematerialize_predicates;
pub(crate) mod sink_exit_values;
pub(crate) mod speculate_stores;
pub(crate) mod structurize;
