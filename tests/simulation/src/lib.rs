#![doc = include_str!("../README.md")]

pub mod aws;
mod bundle;
#[cfg(test)]
mod burst;
mod clock;
mod cloud;
#[cfg(test)]
mod crowded_lane;
mod draws;
mod endpoints;
pub mod faults;
mod geo_ip;
pub mod history;
pub mod journal;
#[cfg(test)]
mod late_event;
#[cfg(test)]
mod lost_wake;
pub mod oauth;
pub mod plan;
pub mod promises;
pub mod providers;
mod readers;
mod records;
pub mod report;
mod sandbox;
mod service_log;
pub mod shrink;
mod tenants;
mod world;
