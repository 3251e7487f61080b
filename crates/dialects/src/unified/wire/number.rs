//! Values that a plain serialiser would write otherwise than clients expect: shares and money as
//! plain decimals, and JSON from elsewhere, unchanged.

use serde::{Serialize, Serializer};
use serde_json::value::RawValue;

/// Deeper JSON from a model or a client is passed on as text: common readers refuse it.
const JSON_DEPTH_MAX: usize = 100;
const DIGITS: u32 = 6;
/// A share below this many places is nothing.
const PLACES_MAX: u32 = 18;

/// A share of a whole as a plain decimal of six digits: 0.035, never 3.5e-2. It may exceed 1, and
/// it is null where there is no whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::unified) struct Fraction {
    pub part: u64,
    pub whole: u64,
}

impl Fraction {
    fn text(self) -> Option<String> {
        if self.whole == 0 {
            return None;
        }
        let (part, whole) = (u128::from(self.part), u128::from(self.whole));
        let mut places = DIGITS;
        let scaled = |places: u32| part * 10_u128.pow(places) / whole;
        while places < PLACES_MAX && scaled(places) < 10_u128.pow(DIGITS - 1) {
            places += 1;
        }
        let scale = 10_u128.pow(places);
        let rounded = (part * scale + whole / 2) / whole;
        let text =
            format!("{}.{:0width$}", rounded / scale, rounded % scale, width = places as usize);
        Some(text.trim_end_matches('0').trim_end_matches('.').to_string())
    }
}

impl Serialize for Fraction {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let raw = self.text().and_then(|text| RawValue::from_string(text).ok());
        raw.serialize(to)
    }
}

#[cfg(feature = "schema")]
impl schemars::JsonSchema for Fraction {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Fraction".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({ "type": ["number", "null"], "minimum": 0 })
    }
}

/// Dollars, kept as millionths, as a plain decimal of at most six places: 0.0125.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::unified) struct Dollars {
    pub micros: u64,
}

impl Serialize for Dollars {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let (whole, rest) = (self.micros / 1_000_000, self.micros % 1_000_000);
        let text = format!("{whole}.{rest:06}");
        let text = text.trim_end_matches('0').trim_end_matches('.');
        RawValue::from_string(text.to_string()).map_err(serde::ser::Error::custom)?.serialize(to)
    }
}

#[cfg(feature = "schema")]
impl schemars::JsonSchema for Dollars {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Dollars".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({ "type": "number", "minimum": 0 })
    }
}

/// JSON text from elsewhere, written as it stands; a text that is no JSON is a JSON string.
#[derive(Serialize)]
#[serde(transparent)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(transparent))]
pub(in crate::unified) struct Json(
    #[cfg_attr(feature = "schema", schemars(with = "serde_json::Value"))] Box<RawValue>,
);

impl Json {
    pub(in crate::unified) fn new(text: &str) -> Json {
        let raw = RawValue::from_string(text.to_string()).ok();
        let raw = raw.filter(|raw| is_shallow(raw.get()));
        let quoted = || serde_json::value::to_raw_value(text).unwrap_or_default();
        Json(raw.unwrap_or_else(quoted))
    }

    /// An object; what a model wrote instead of one is a text.
    pub(in crate::unified) fn object(text: &str) -> Json {
        let json = Json::new(text);
        match json.0.get().trim_start().starts_with('{') {
            true => json,
            false => Json(serde_json::value::to_raw_value(text).unwrap_or_default()),
        }
    }
}

/// Whether common readers would take this valid JSON inside a message.
pub(in crate::unified) fn is_shallow(json: &str) -> bool {
    let (mut depth, mut in_string, mut escaped) = (0_usize, false, false);
    for byte in json.bytes() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = in_string,
            b'"' => in_string = !in_string,
            _ if in_string => {}
            b'[' | b'{' => depth += 1,
            b']' | b'}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth > JSON_DEPTH_MAX {
            return false;
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn shown(part: u64, whole: u64) -> String {
        serde_json::to_string(&Fraction { part, whole }).unwrap()
    }

    #[test]
    fn shares_are_plain_decimals() {
        let rows = [
            (7_000, 200_000, "0.035"),
            (7, 200_000, "0.000035"),
            (184_000, 200_000, "0.92"),
            (90_000, 200_000, "0.45"),
            (0, 200_000, "0"),
            (200_000, 200_000, "1"),
            (250_000, 200_000, "1.25"),
            (2_000_000, 200_000, "10"),
            (1, 3, "0.333333"),
            (2, 3, "0.666667"),
            (999_999_999, 1_000_000_000, "1"),
            (5, 128_000, "0.0000390625"),
            (1, 0, "null"),
            (1, u64::MAX, "0"),
            (u64::MAX, 1, "18446744073709551615"),
            (u64::MAX, u64::MAX, "1"),
        ];
        for (part, whole, want) in rows {
            assert_eq!(shown(part, whole), want, "{part}/{whole}");
        }
    }

    #[test]
    fn money_is_a_plain_decimal_to_the_last_millionth() {
        let rows = [
            (0, "0"),
            (1, "0.000001"),
            (12_500, "0.0125"),
            (500_000, "0.5"),
            (1_000_000, "1"),
            (10_000_000, "10"),
            (123_456_789, "123.456789"),
            (u64::MAX, "18446744073709.551615"),
        ];
        for (micros, want) in rows {
            assert_eq!(serde_json::to_string(&Dollars { micros }).unwrap(), want);
        }
    }

    proptest! {
        #[test]
        fn a_share_is_the_quotient(part in any::<u32>(), whole in 1..u32::MAX) {
            let text = shown(part.into(), whole.into());
            prop_assert!(!text.contains('e'), "{text}");
            let (got, want) = (text.parse::<f64>().unwrap(), f64::from(part) / f64::from(whole));
            prop_assert!((got - want).abs() <= want * 1e-5 + 1e-12, "{got} for {want}");
        }

        #[test]
        fn json_is_always_json(text in "[\\[\\]{}\",:a1\\\\ ]{0,30}|.{0,30}") {
            let written = serde_json::to_string(&Json::new(&text)).unwrap();
            prop_assert!(serde_json::from_str::<serde_json::Value>(&written).is_ok(), "{written}");
        }
    }

    #[test]
    fn json_stays_as_it_is_or_becomes_text() {
        let deep = format!("{}{}", "[".repeat(101), "]".repeat(101));
        let rows = [
            (r#"{"b":1,"a":1.50}"#, r#"{"b":1,"a":1.50}"#),
            (" [1] ", "[1]"),
            ("", "\"\""),
            ("{\"a\"", r#""{\"a\"""#),
            (r#""[[[\"[""#, r#""[[[\"[""#),
        ];
        for (text, want) in rows {
            assert_eq!(serde_json::to_string(&Json::new(text)).unwrap(), want);
        }
        let written = serde_json::to_string(&Json::new(&deep)).unwrap();
        assert_eq!(written, format!("\"{deep}\""));
    }
}
