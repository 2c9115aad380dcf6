//! The gateway operator. Placeholder.
