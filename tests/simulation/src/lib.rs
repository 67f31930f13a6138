#![doc = include_str!("../README.md")]

pub mod aws;
mod bundle;
mod clock;
mod cloud;
mod draws;
mod endpoints;
pub mod faults;
mod geo_ip;
pub mod history;
pub mod journal;
pub mod plan;
pub mod promises;
mod sandbox;
mod tenants;
mod world;
