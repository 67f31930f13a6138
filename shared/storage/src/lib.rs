#![doc = include_str!("../README.md")]

pub mod allowance;
pub mod aws;
pub mod sealing;
pub mod secrets;
pub mod table;
