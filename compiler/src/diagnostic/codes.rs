//! The table of diagnostic codes. A code never changes its meaning; a new error gets a new row and a page in
//! `explain/`. E01xx: syntax; E02xx: names, types and calls; E03xx: launches and signatures;
//! E04xx: derivatives; E09xx: internal errors.

/// Declares the codes: variant, number, title.
macro_rules! codes {
    ($($variant:ident $number:literal $title:literal),* $(,)?) => {
        /// A diagnostic's code.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum Code {
            $(#[doc = $title] $variant),*
        }

        impl Code {
            /// Every code.
            pub const ALL: &'static [Self] = &[$(Self::$variant),*];

            /// `E0203`.
            pub const fn number(self) -> &'static str {
                match self { $(Self::$variant => $number),* }
            }

            /// A short title.
            pub const fn title(self) -> &'static str {
                match self { $(Self::$variant => $title),* }
            }

            /// The code with a number such as `E0203` (upper or lower case).
            pub fn from_number(number: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|code| code.number().eq_ignore_ascii_case(number))
            }
        }
    };
}

codes! {
    Syntax "E0101" "Python syntax that weft cannot read",
    UnsupportedStatement "E0102" "a statement that kernels do not support",
    UnsupportedExpression "E0103" "an expression that kernels do not support",
    MisplacedStatement "E0104" "break, continue or return outside a loop or function",
    UnknownName "E0201" "a name that is not defined",
    UnsupportedValue "E0202" "a captured value that a kernel cannot use",
    CannotJoin "E0203" "a variable has types that cannot be joined",
    UndefinedLocal "E0204" "a local variable is used before it has a value",
    NoMatchingOverload "E0205" "no overload of a function for these argument types",
    ArgumentCount "E0206" "a call with wrong arguments",
    NoSuchAttribute "E0207" "an attribute that a value does not have",
    IndexCount "E0208" "a wrong number of indices for an array",
    BadIndex "E0209" "a value that cannot be an index",
    NotConstant "E0210" "a value must be a compile-time constant",
    BadOperand "E0211" "an operator that does not support its operand types",
    KernelReturns "E0212" "a kernel returns a value",
    Recursion "E0213" "a recursion without an end",
    NotCallable "E0214" "a value that cannot be called",
    ReadonlyArray "E0215" "a store into a read-only array",
    BadAssignment "E0216" "an assignment that is not possible",
    ReturnTypes "E0217" "return values have types that cannot be joined",
    OutOfRange "E0218" "an integer out of range for its type",
    Widened "E0219" "Numba's typing widens a number",
    NotReproducible "E0220" "an operation whose bits differ between devices or runs",
    Remade "E0221" "an array of an earlier iteration that a newer one has overwritten",
    InFlight "E0222" "a matrix product in flight that is not used exactly once",
    BadSignature "E0301" "a signature that cannot be read",
    NoSignature "E0302" "a kernel has no signature to compile for",
    NoKernel "E0303" "a kernel that does not exist",
    UnknownTarget "E0304" "a target that weft does not know",
    SharedTooLarge "E0305" "more shared memory than a block can have",
    LocalTooLarge "E0306" "more local memory than a thread can have",
    Usage "E0307" "the command cannot run as given",
    NotInTarget "E0308" "an operation that the target does not support",
    BadRule "E0309" "a launch rule or an output rule that cannot be translated",
    NoDerivative "E0401" "something without a derivative",
    NoPath "E0402" "a derivative that reaches no output",
    NotRecomputable "E0403" "a value that the reverse sweep cannot compute again",
    Unordered "E0404" "a gradient whose bits depend on the order of the threads",
    Internal "E0901" "an internal error of weft",
}
