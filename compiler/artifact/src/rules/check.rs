//! Checks rules against the types and the effects of a kernel's parameters.

use super::{LaunchRule, OutputDType, OutputRule, OutputShape, RuleError, RuleExpr};
use crate::{
    artifact::Param,
    dtype::DType,
    number::{Number, Scalar},
    types::{ArgType, ArrayType, Layout},
};

/// The type of a parameter as an array.
fn array(params: &[Param], param: u32) -> Result<ArrayType, RuleError> {
    let ty = params.get(param as usize).map(|param| &param.ty);
    match ty {
        Some(ArgType::Array(array)) => Ok(*array),
        Some(other) => Err(RuleError::WrongType { param, wanted: "an array", found: other.to_string() }),
        None => Err(RuleError::NoArray { param }),
    }
}

/// Whether rules can use a value of a type.
fn is_integer(ty: &ArgType) -> bool {
    match ty {
        ArgType::Value(DType::Number(Number::Real(scalar))) => *scalar == Scalar::Bool || scalar.is_int(),
        ArgType::Value(_)
        | ArgType::Array(_)
        | ArgType::Tuple(_)
        | ArgType::None
        | ArgType::Struct(..)
        | ArgType::Enum(..)
        | ArgType::Record(_)
        | ArgType::Class(_)
        | ArgType::Pointer(_)
        | ArgType::Optional(_) => false,
    }
}

impl RuleExpr {
    /// Checks the types of the arguments that it uses.
    ///
    /// # Errors
    ///
    /// A parameter has another type than the expression uses, or an array fewer dimensions.
    pub fn check(&self, params: &[Param]) -> Result<(), RuleError> {
        let mut checked = Ok(());
        self.for_each(&mut |expr| {
            if checked.is_err() {
                return;
            }
            checked = match expr {
                Self::Int(_) | Self::Apply(..) => Ok(()),
                Self::Size(param) | Self::Ndim(param) => array(params, *param).map(drop),
                Self::Extent(param, dim) => array(params, *param).and_then(|array| {
                    let ndim = i64::from(array.ndim);
                    let error = RuleError::NoDimension { param: *param, dim: *dim, ndim: array.ndim.into() };
                    if (-ndim..ndim).contains(dim) { Ok(()) } else { Err(error) }
                }),
                Self::Scalar(param) => match params.get(*param as usize).map(|param| &param.ty) {
                    Some(ty) if is_integer(ty) => Ok(()),
                    Some(ty) => {
                        Err(RuleError::WrongType { param: *param, wanted: "an integer", found: ty.to_string() })
                    }
                    None => Err(RuleError::NoInteger { param: *param }),
                },
            };
        });
        checked
    }
}

impl LaunchRule {
    /// Checks it against a kernel's parameters, and its parts that do not depend on arguments.
    ///
    /// # Errors
    ///
    /// As [`RuleExpr::check`], or a constant part is out of range.
    pub fn check(&self, params: &[Param]) -> Result<(), RuleError> {
        self.exprs().try_for_each(|expr| expr.check(params))?;
        let parts = self.grid.iter().zip(Self::GRID).chain(self.block.iter().zip(Self::BLOCK));
        for (expr, (what, least, most)) in parts.chain([(&self.shared_bytes, Self::SHARED)]) {
            if let Some(value) = expr.constant().filter(|value| !(least..=most).contains(value)) {
                return Err(RuleError::OutOfRange { what, value, least, most });
            }
        }
        Ok(())
    }
}

/// The output rules of a kernel with their parameters, after [`OutputRule::bound`].
///
/// # Errors
///
/// As [`OutputRule::bound`]; or two rules are for the same parameter, or a rule uses an output.
pub fn bind_outputs(rules: &[OutputRule], params: &[Param]) -> Result<Vec<OutputRule>, RuleError> {
    let bound = rules.iter().map(|rule| rule.bound(params)).collect::<Result<Vec<_>, _>>()?;
    let is_output = |param: u32| bound.iter().any(|rule| rule.param == param);
    for (index, rule) in bound.iter().enumerate() {
        let param = rule.param;
        if bound[..index].iter().any(|before| before.param == param) {
            return Err(RuleError::Twice { param });
        }
        let mut used = None;
        let mut uses = |of: u32| used = used.or(is_output(of).then_some(of));
        if let OutputShape::Like(like) = rule.shape {
            uses(like);
        }
        for expr in rule.exprs() {
            expr.for_each(&mut |expr| match expr {
                RuleExpr::Scalar(of) | RuleExpr::Size(of) | RuleExpr::Extent(of, _) | RuleExpr::Ndim(of) => uses(*of),
                RuleExpr::Int(_) | RuleExpr::Apply(..) => {}
            });
        }
        if let Some(used) = used {
            return Err(RuleError::UsesOutput { param, used });
        }
    }
    Ok(bound)
}

impl OutputRule {
    /// The rule with its parameter, which a rule [for the only array that the kernel writes](Self::ONLY_WRITTEN) does
    /// not name, after [`Self::check`].
    ///
    /// # Errors
    ///
    /// As [`Self::check`]; or the kernel does not write one array, but none or several.
    pub fn bound(&self, params: &[Param]) -> Result<Self, RuleError> {
        let mut rule = self.clone();
        if rule.param == Self::ONLY_WRITTEN {
            let numbered = (0_u32..).zip(params);
            let written: Vec<u32> = numbered.filter(|(_, param)| param.access.writes).map(|(index, _)| index).collect();
            let [only] = written.as_slice() else { return Err(RuleError::NotOneOutput { written }) };
            rule.param = *only;
        }
        rule.check(params).map(|()| rule)
    }

    /// Checks it against a kernel's parameters: their types, and how the kernel accesses the output.
    ///
    /// # Errors
    ///
    /// The rule's shape or dtype is not that of the parameter, the kernel does not write it, or reads elements that
    /// nothing has initialized.
    pub fn check(&self, params: &[Param]) -> Result<(), RuleError> {
        let param = self.param;
        let own = array(params, param)?;
        self.exprs().iter().try_for_each(|expr| expr.check(params))?;
        let ndim = match &self.shape {
            OutputShape::Like(like) => array(params, *like)?.ndim.into(),
            OutputShape::Extents(extents) => extents.len(),
        };
        if ndim != usize::from(own.ndim) {
            return Err(RuleError::WrongNdim { param, rule: ndim, ty: own.ndim.into() });
        }
        let dtype = match self.dtype {
            OutputDType::Like(like) => array(params, like)?.dtype,
            OutputDType::Is(number) => number.into(),
            OutputDType::Declared => own.dtype,
        };
        if dtype != own.dtype {
            let (rule, ty) = (dtype.to_string(), own.dtype.to_string());
            return Err(RuleError::WrongDType { param, rule, ty });
        }
        if own.layout == Layout::F && own.ndim > 1 {
            return Err(RuleError::FortranOrder { param });
        }
        let access = params.get(param as usize).map(|param| param.access).unwrap_or_default();
        if !access.writes {
            return Err(RuleError::NotWritten { param });
        }
        if (access.reads || access.accumulates) && !self.zeroed {
            return Err(RuleError::Uninitialized { param, accumulates: access.accumulates });
        }
        Ok(())
    }
}
