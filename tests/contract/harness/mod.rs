//! What the tests stand on: the bundle, a client that checks every answer, a receiver that misbehaves on request.

mod api;
mod bundle;
mod clock;
mod contract;
mod entity;
mod forge;
mod handwritten;
mod processes;
mod python;
mod receiver;
mod run;
mod signature;
mod steps;
mod suite;
mod wait;

pub use api::{Answer, Api, Call};
pub use bundle::{Bundle, Settings, free_port, local, project};
pub use clock::{now, time};
pub use contract::Contract;
pub use entity::Entity;
pub use forge::Forge;
pub use handwritten::send_raw;
pub use processes::{Process, descendants, group_members, memory_kilobytes, until_gone};
pub use python::python;
pub use receiver::{Received, Receiver};
pub(crate) use run::tests;
pub use run::{Test, run};
pub use signature::is_signed_by;
pub use steps::Behaviour;
pub use suite::{Application, Suite};
pub use wait::{LONG, until};
