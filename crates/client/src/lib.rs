//! A client of a pod: connects to its socket, asks, follows its records by cursor across lost connections, and folds
//! what it is told into one model. Draws nothing, and knows neither files nor the inside of a pod.

pub mod attachment;
pub mod cmd_id;
pub mod connection;
mod error;
pub mod model;

pub use error::ClientError;
