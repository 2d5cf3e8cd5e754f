//! How a value is formatted: Python's format specifications, and those of `%`.

/// A format specification.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of Python's")]
pub(in crate::frontend) struct Spec {
    /// The fill character of a field.
    pub(super) fill: char,
    /// The alignment in the field: `<`, `>`, `^`, or `=` with the fill after the sign.
    pub(super) align: Option<char>,
    /// `-`, `+` or a space.
    pub(super) sign: char,
    /// Whether the sign was given.
    pub(super) signed: bool,
    /// `#`.
    pub(super) alternate: bool,
    /// The minimum number of characters of the field.
    pub(super) width: usize,
    /// `,` or `_` between groups of digits.
    pub(super) group: Option<char>,
    /// Digits after the decimal point, or the maximum number of characters of a string.
    pub(super) precision: Option<usize>,
    /// The presentation type.
    pub(super) ty: Option<char>,
    /// Whether the value is converted to a string first: `!s`, `!r`, `%s`, `%r`.
    pub(super) text: bool,
    /// Whether a string is quoted: `!r`, `%r`.
    pub(super) quoted: bool,
    /// Whether it is a `%` conversion: `d` truncates a float, and the precision of an integer is its minimum number of
    /// digits.
    pub(super) percent: bool,
    /// Whether a `0` precedes the width: zeros then fill after the sign of a number, or after a string.
    pub(super) zeros: bool,
}

/// The kind of value that a specification formats.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Int,
    Float,
    /// Also the string form of another value.
    Text,
    /// A value without a format of its own in Python: `None`, bytes.
    Other,
}

/// A part of a formatted string, without the values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::frontend) enum FormatPart {
    /// Literal text.
    Text(String),
    /// The next value.
    Value(Spec),
}

/// The maximum width of a field.
const WIDEST: usize = 4096;

impl Spec {
    /// The empty specification.
    pub(super) const PLAIN: Self = Self {
        fill: ' ',
        align: None,
        sign: '-',
        signed: false,
        alternate: false,
        width: 0,
        group: None,
        precision: None,
        ty: None,
        text: false,
        quoted: false,
        percent: false,
        zeros: false,
    };

    /// Whether the value is printed without formatting.
    pub(super) fn is_plain(&self) -> bool {
        let plain = Self { text: self.text, quoted: self.quoted, percent: self.percent, ..Self::PLAIN };
        let ty = self.ty.filter(|ty| *ty != 's');
        plain == Self { ty, align: self.align.filter(|_| self.width > 0), ..self.clone() }
    }

    /// Parses a format specification of Python's `format`.
    pub(super) fn of(text: &str) -> Result<Self, String> {
        let letters: Vec<char> = text.chars().collect();
        let mut spec = Self::PLAIN;
        let mut filled = false;
        let is_align = |letter: Option<&char>| letter.copied().filter(|letter| "<>^=".contains(*letter));
        let mut rest = letters.as_slice();
        if let (Some(align), Some(fill)) = (is_align(rest.get(1)), rest.first()) {
            (spec.fill, spec.align) = (*fill, Some(align));
            filled = true;
            rest = &rest[2..];
        } else if let Some(align) = is_align(rest.first()) {
            spec.align = Some(align);
            rest = &rest[1..];
        }
        let mut take = |wanted: &str| {
            let found = rest.first().copied().filter(|letter| wanted.contains(*letter));
            rest = &rest[usize::from(found.is_some())..];
            found
        };
        if let Some(sign) = take("+- ") {
            spec.sign = sign;
            spec.signed = true;
        }
        spec.alternate = take("#").is_some();
        // After a fill character, it is a digit of the width.
        if !filled && take("0").is_some() {
            spec.fill = '0';
            spec.zeros = spec.align.is_none();
            spec.align = spec.align.or(Some('='));
        }
        spec.width = number(&mut take)?.unwrap_or(0);
        spec.group = take(",_");
        if take(".").is_some() {
            spec.precision = Some(number(&mut take)?.ok_or("a `.` without a precision")?);
        }
        spec.ty = take("bcdeEfFgGnosxX%");
        match rest.first() {
            None => Ok(spec),
            Some(letter) => Err(format!("the format `{text}` is not supported in kernels: unexpected `{letter}`")),
        }
    }

    /// Parses a conversion of `%`, after that sign; returns the number of characters that it takes.
    pub(super) fn of_percent(letters: &[char]) -> Result<(Self, usize), String> {
        let mut spec = Self { percent: true, ..Self::PLAIN };
        let mut at = 0;
        let mut take = |wanted: &str| {
            let found = letters.get(at).copied().filter(|letter| wanted.contains(*letter));
            at += usize::from(found.is_some());
            found
        };
        let mut left = false;
        while let Some(flag) = take("#0- +") {
            match flag {
                '#' => spec.alternate = true,
                '0' => (spec.fill, spec.align) = ('0', Some('=')),
                '-' => left = true,
                sign => spec.sign = if spec.sign == '+' { '+' } else { sign },
            }
        }
        if left {
            (spec.fill, spec.align) = (' ', Some('<'));
        }
        spec.width = number(&mut take)?.unwrap_or(0);
        if take(".").is_some() {
            spec.precision = Some(number(&mut take)?.unwrap_or(0));
        }
        while take("hlL").is_some() {}
        let ty = take("diouxXeEfFgGcrsa").ok_or("a `%` without a conversion that kernels have")?;
        spec.ty = Some(match ty {
            'i' | 'u' => 'd',
            'r' | 'a' => 's',
            other => other,
        });
        spec.text = spec.ty == Some('s');
        spec.quoted = matches!(ty, 'r' | 'a');
        if matches!(spec.ty, Some('s' | 'c')) {
            // Zeros, signs and prefixes apply to numbers only.
            (spec.fill, spec.align) = (' ', Some(if left { '<' } else { '>' }));
            (spec.sign, spec.alternate) = ('-', false);
            // The precision of a character has no effect.
            spec.precision = spec.precision.filter(|_| spec.ty == Some('s'));
        }
        Ok((spec, at))
    }

    /// Python's error for a value with this specification. Formats that kernels lack are reported where the value is
    /// printed.
    pub(super) fn fault(&self, kind: Kind) -> Option<String> {
        let kind = if self.text { Kind::Text } else { kind };
        let ty = self.ty;
        let (what, letters) = match kind {
            Kind::Int => ("an integer", "bcdeEfFgGoxX%"),
            Kind::Float if self.percent => ("a float", "deEfFgG"),
            Kind::Float => ("a float", "eEfFgG%"),
            Kind::Text => ("a string", "s"),
            Kind::Other => ("this value", ""),
        };
        if let Some(letter) = ty.filter(|letter| !letters.contains(*letter)) {
            return Some(format!("the format `{letter}` does not take {what}"));
        }
        let is_text = kind == Kind::Text;
        let counts = kind == Kind::Int && matches!(ty, None | Some('b' | 'c' | 'd' | 'o' | 'x' | 'X'));
        let letter = ty == Some('c');
        if kind == Kind::Other && !self.percent && *self != (Self { ty, quoted: self.quoted, ..Self::PLAIN }) {
            return Some("this value takes no format specification".to_owned());
        }
        if is_text && (self.align == Some('=') && !self.zeros) {
            return Some("`=` is for numbers, not for strings".to_owned());
        }
        if (is_text || letter) && (self.signed || self.alternate) && !self.percent {
            let what = if letter { "a character" } else { "a string" };
            return Some(format!("a sign and `#` are for numbers, not for {what}"));
        }
        if let Some(group) = self.group
            && (is_text || letter || (group == ',' && matches!(ty, Some('b' | 'o' | 'x' | 'X'))))
        {
            return Some(format!("`{group}` cannot be combined with the format `{}`", ty.unwrap_or('s')));
        }
        (counts && self.precision.is_some() && !self.percent).then(|| "an integer cannot have a precision".to_owned())
    }

    /// The specification of a string that is padded with zeros.
    pub(super) fn of_text(&self) -> Self {
        Self { align: if self.zeros { Some('<') } else { self.align }, ..self.clone() }
    }

    /// The specification after a conversion of the value to a string.
    pub(super) fn converted(self, letter: char) -> Self {
        let align = if self.zeros { Some('<') } else { self.align.or(Some('<')) };
        Self { text: true, quoted: letter != 's', align, zeros: false, ..self }
    }
}

/// A decimal number, if there is one.
fn number(take: &mut impl FnMut(&str) -> Option<char>) -> Result<Option<usize>, String> {
    let mut known = None;
    while let Some(digit) = take("0123456789").and_then(|letter| letter.to_digit(10)) {
        let value = known.unwrap_or(0) * 10 + digit as usize;
        if value > WIDEST {
            return Err(format!("a field cannot have more than {WIDEST} characters"));
        }
        known = Some(value);
    }
    Ok(known)
}

#[cfg(test)]
mod tests {
    use super::Spec;

    #[test]
    fn specifications_are_pythons() {
        let spec = Spec::of("*^+#12,.3f").expect("is one");
        assert_eq!((spec.fill, spec.align, spec.sign, spec.width), ('*', Some('^'), '+', 12));
        assert!(spec.alternate && spec.group == Some(',') && spec.precision == Some(3) && spec.ty == Some('f'));
        let zeros = Spec::of("05d").expect("is one");
        assert_eq!((zeros.fill, zeros.align, zeros.width), ('0', Some('='), 5));
        assert!(Spec::of("").expect("is one").is_plain() && !zeros.is_plain());
        let filled = Spec::of(" <08d").expect("is one");
        assert_eq!((filled.fill, filled.align, filled.width), (' ', Some('<'), 8));
        let left = Spec::of("<08d").expect("is one");
        assert_eq!((left.fill, left.align, left.width), ('0', Some('<'), 8));
        assert!(Spec::of("5q").is_err() && Spec::of("99999").is_err() && Spec::of(".f").is_err());
    }

    #[test]
    fn conversions_of_percent_are_too() {
        let letters: Vec<char> = "-05.2f rest".chars().collect();
        let (spec, len) = Spec::of_percent(&letters).expect("is one");
        assert_eq!((len, spec.fill, spec.align, spec.width, spec.precision), (6, ' ', Some('<'), 5, Some(2)));
        let (text, _) = Spec::of_percent(&['s']).expect("is one");
        assert!(text.is_plain() && text.text);
        assert!(Spec::of_percent(&['y']).is_err());
    }
}
