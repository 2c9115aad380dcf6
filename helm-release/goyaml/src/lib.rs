//! YAML as Go reads it.
/// Stub.
///
/// # Errors
/// None.
pub fn parse(_text: &[u8]) -> Result<serde_json::Value, String> {
    Ok(serde_json::Value::Null)
}
