//! Data → JSON: every key becomes a string.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use crate::error::Error;
use crate::number::{json_number, shortest_g};
use crate::value::{Data, Key};

/// Go complains about any key before it complains about any value.
pub(crate) fn to_json(data: Data) -> Result<Value, Error> {
    check_keys(&data)?;
    convert(data)
}

fn check_keys(data: &Data) -> Result<(), Error> {
    match data {
        Data::Sequence(items) => items.iter().try_for_each(check_keys),
        Data::Mapping(entries) => entries.iter().try_for_each(|(key, value)| {
            name(key, value)?;
            check_keys(value)
        }),
        Data::Null | Data::Bool(_) | Data::Int(_) | Data::Uint(_) | Data::Float(_) | Data::Str(_) => Ok(()),
    }
}

fn convert(data: Data) -> Result<Value, Error> {
    Ok(match data {
        Data::Null => Value::Null,
        Data::Bool(it) => Value::Bool(it),
        Data::Int(it) => Value::from(it),
        Data::Uint(it) => Value::from(it),
        Data::Float(it) => Value::Number(json_number(it)?),
        Data::Str(it) => Value::String(it),
        Data::Sequence(items) => array(items)?,
        Data::Mapping(entries) => object(entries)?,
    })
}

fn array(items: Vec<Data>) -> Result<Value, Error> {
    let mut array = Vec::with_capacity(items.len());
    for item in items {
        array.push(convert(item)?);
    }
    Ok(Value::Array(array))
}

fn object(entries: BTreeMap<Key, Data>) -> Result<Value, Error> {
    let mut object = Map::new();
    for (key, value) in entries {
        let name = name(&key, &value)?;
        let value = convert(value)?;
        // Strings come before all other keys, and the first one stays.
        object.entry(name).or_insert(value);
    }
    Ok(Value::Object(object))
}

fn name(key: &Key, value: &Data) -> Result<String, Error> {
    let (kind, key) = match key {
        Key::Str(it) => return Ok(it.clone()),
        Key::Bool(it) => return Ok(it.to_string()),
        Key::Int(it) => return Ok(it.to_string()),
        Key::Float(it) => return Ok(float_name(*it)),
        Key::Null => ("%!s(<nil>)", "<nil>".to_owned()),
        Key::Uint(it) => ("uint64", format!("{it:#x}")),
    };
    Err(Error::Key { kind, key, value: value.go_syntax() })
}

/// Go gives a float key single precision.
fn float_name(float: f64) -> String {
    match shortest_g(float as f32).as_str() {
        "+Inf" => ".inf".into(),
        "-Inf" => "-.inf".into(),
        "NaN" => ".nan".into(),
        text => text.into(),
    }
}
