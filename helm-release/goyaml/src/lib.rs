//! YAML as Go reads it.
