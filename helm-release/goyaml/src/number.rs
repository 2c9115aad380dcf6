//! Floats as Go prints them.

use std::fmt::LowerExp;

use serde_json::Number;

use crate::error::Error;

/// The shortest text that reads back as the same float, with an exponent where Go's `%g` has one.
pub(crate) fn shortest_g<F: LowerExp>(float: F) -> String {
    let scientific = format!("{float:e}");
    let Some((mantissa, exponent)) = scientific.split_once('e') else {
        return not_finite(&scientific).into();
    };
    let exponent: i32 = exponent.parse().unwrap_or_default();
    if (-4..6).contains(&exponent) {
        return positional(mantissa, exponent);
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{mantissa}e{sign}{:02}", exponent.unsigned_abs())
}

fn not_finite(text: &str) -> &'static str {
    match text {
        "inf" => "+Inf",
        "-inf" => "-Inf",
        _ => "NaN",
    }
}

fn positional(mantissa: &str, exponent: i32) -> String {
    let (sign, digits) = mantissa.strip_prefix('-').map_or(("", mantissa), |digits| ("-", digits));
    let digits = digits.replace('.', "");
    match usize::try_from(exponent) {
        Err(_) => format!("{sign}0.{}{digits}", "0".repeat((-exponent - 1) as usize)),
        Ok(exponent) if digits.len() <= exponent + 1 => format!("{sign}{digits:0<width$}", width = exponent + 1),
        Ok(exponent) => {
            let (whole, fraction) = digits.split_at(exponent + 1);
            format!("{sign}{whole}.{fraction}")
        }
    }
}

/// The JSON number whose text Go would write: a whole float loses its point, and with it its type.
pub(crate) fn json_number(float: f64) -> Result<Number, Error> {
    let Some(number) = Number::from_f64(float) else {
        return Err(Error::Number { value: not_finite(&float.to_string()) });
    };
    let negative_zero = float == 0.0 && float.is_sign_negative();
    if float.fract() != 0.0 || float.abs() >= 1e21 || negative_zero {
        return Ok(number);
    }
    let text = float.to_string();
    let whole = text.parse::<i64>().map(Number::from).or_else(|_| text.parse::<u64>().map(Number::from));
    Ok(whole.unwrap_or(number))
}
