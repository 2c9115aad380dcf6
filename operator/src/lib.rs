//! Keeps the place of the gateway operator: a controller over `helm-release` that drives APIGateway resources.
//!
//! Nothing is here yet.
