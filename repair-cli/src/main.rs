//! gwrepair.
fn main() {}
