//! What the tests stand on: the bundle, a client that checks every answer, and the third parties of the crate `doubles`.

mod api;
mod bundle;
mod clock;
mod contract;
mod entity;
mod forge;
pub mod geo_ip;
mod handwritten;
mod linked;
mod person;
mod processes;
mod providers;
mod python;
mod run;
mod signature;
mod suite;
mod table;

pub use api::{Answer, Api, Call};
pub use bundle::{Bundle, Settings, free_port, local, project};
pub use clock::{now, time};
pub use contract::Contract;
pub use doubles::{Behaviour, LONG, Received, Receiver, UpdateServer, until};
pub use entity::Entity;
pub use forge::Forge;
pub use handwritten::send_raw;
pub use linked::{Visit, hash_of, state_of};
pub use person::{Choice, Return, choose, query};
pub use processes::{Process, descendants, group_members, memory_kilobytes, until_gone};
pub use providers::{PROVIDERS, SCOPES, Secrets, Simulation};
pub use python::python;
pub(crate) use run::tests;
pub use run::{Test, run};
pub use signature::is_signed_by;
pub use suite::{Application, Suite};
pub use table::Table;
