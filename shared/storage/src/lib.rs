//! Where everything that lasts is kept: the table, secrets, and what is sealed before it is stored.

pub mod allowance;
pub mod aws;
pub mod sealing;
pub mod secrets;
pub mod table;
