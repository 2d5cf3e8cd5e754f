//! NumPy's dates and durations. The text forms are NumPy's and Numba's.

use std::fmt;

/// The type of a `datetime64` or `timedelta64`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Time {
    /// Whether it is a `timedelta64`.
    pub is_span: bool,
    /// The unit; `None` for a generic one.
    pub unit: Option<TimeUnit>,
}

/// A unit of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum TimeUnit {
    /// Years.
    Year,
    /// Months.
    Month,
    /// Weeks.
    Week,
    /// Days.
    Day,
    /// Hours.
    Hour,
    /// Minutes.
    Minute,
    /// Seconds.
    Second,
    /// 10^-3 seconds.
    Milli,
    /// 10^-6 seconds.
    Micro,
    /// 10^-9 seconds.
    Nano,
    /// 10^-12 seconds.
    Pico,
    /// 10^-15 seconds.
    Femto,
    /// 10^-18 seconds.
    Atto,
}

impl Time {
    /// The type with a NumPy name: `datetime64[ns]`, `timedelta64`. `None` for multiples of units.
    pub fn from_name(name: &str) -> Option<Self> {
        let (kind, unit) = name.split_once('[').map_or((name, None), |(kind, rest)| (kind, Some(rest)));
        let is_span = match kind {
            "datetime64" => false,
            "timedelta64" => true,
            _ => return None,
        };
        let unit = match unit {
            None => None,
            Some(unit) => Some(TimeUnit::from_name(unit.strip_suffix(']')?)?),
        };
        Some(Self { is_span, unit })
    }
}

impl TimeUnit {
    /// The length of this unit in a shorter unit, or the same; `None` if it is not constant or does not fit in 64 bits.
    pub fn count_in(self, shorter: Self) -> Option<i64> {
        let mut count: i64 = 1;
        let mut unit = self;
        while unit != shorter {
            let (next, times) = match unit {
                Self::Year => (Self::Month, 12),
                // Months differ in their number of days.
                Self::Month | Self::Atto => return None,
                Self::Week => (Self::Day, 7),
                Self::Day => (Self::Hour, 24),
                Self::Hour => (Self::Minute, 60),
                Self::Minute => (Self::Second, 60),
                Self::Second => (Self::Milli, 1000),
                Self::Milli => (Self::Micro, 1000),
                Self::Micro => (Self::Nano, 1000),
                Self::Nano => (Self::Pico, 1000),
                Self::Pico => (Self::Femto, 1000),
                Self::Femto => (Self::Atto, 1000),
            };
            count = count.checked_mul(times)?;
            unit = next;
        }
        Some(count)
    }

    /// Every unit, from the longest to the shortest, with NumPy's name.
    pub const ALL: [(Self, &'static str); 13] = [
        (Self::Year, "Y"),
        (Self::Month, "M"),
        (Self::Week, "W"),
        (Self::Day, "D"),
        (Self::Hour, "h"),
        (Self::Minute, "m"),
        (Self::Second, "s"),
        (Self::Milli, "ms"),
        (Self::Micro, "us"),
        (Self::Nano, "ns"),
        (Self::Pico, "ps"),
        (Self::Femto, "fs"),
        (Self::Atto, "as"),
    ];

    /// The unit with a NumPy name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.iter().find(|(_, known)| *known == name).map(|(unit, _)| *unit)
    }

    /// NumPy's name.
    pub fn name(self) -> &'static str {
        Self::ALL[self as usize].1
    }
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.is_span { "timedelta64" } else { "datetime64" })?;
        self.unit.map_or(Ok(()), |unit| write!(f, "[{}]", unit.name()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_are_counted_in_shorter_ones() {
        use TimeUnit::{Atto, Day, Milli, Month, Nano, Second, Week, Year};
        let counts = [(Year, Month, Some(12)), (Year, Day, None), (Week, Second, Some(604_800)), (Day, Day, Some(1))];
        for (long, short, count) in counts {
            assert_eq!(long.count_in(short), count, "{long:?} in {short:?}");
        }
        assert_eq!(Milli.count_in(Nano), Some(1_000_000));
        assert_eq!(Nano.count_in(Milli), None);
        assert_eq!(Day.count_in(Atto), None);
    }

    #[test]
    fn names_are_read_back() {
        for name in ["datetime64[ns]", "datetime64", "timedelta64[Y]", "timedelta64[as]"] {
            let time = Time::from_name(name);
            assert_eq!(time.as_ref().map(ToString::to_string).as_deref(), Some(name));
        }
        for none in ["datetime64[25s]", "datetime64[ns", "datetime", "timedelta64[]", "datetime64[generic]"] {
            assert_eq!(Time::from_name(none), None, "{none}");
        }
        for (index, (unit, name)) in TimeUnit::ALL.iter().enumerate() {
            assert_eq!((*unit as usize, unit.name(), TimeUnit::from_name(name)), (index, *name, Some(*unit)));
        }
    }
}
