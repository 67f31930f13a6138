#![doc = include_str!("../README.md")]

mod message;
mod queue;
mod queues;
mod ready;
mod refusal;
mod settings;
mod timer;
mod wire;

pub use message::{Attribute, AttributeValue, Attributes, Message, NewMessage};
pub use queue::Received;
pub use queues::{Queues, Receive, Sent};
pub use refusal::{Kind, Refusal};
