//! What the tests stand on: the bundle, a client that checks every answer, and the third parties of the crate `doubles`.

mod account;
mod api;
mod bundle;
mod bus;
mod clock;
mod contract;
mod entity;
mod forge;
pub mod geo_ip;
mod handwritten;
mod hooks;
mod linked;
mod person;
mod processes;
mod providers;
mod python;
mod run;
mod signature;
mod suite;
mod table;

pub use account::{Account, account, unrecorded};
pub use api::{Answer, Api, Call};
pub use bundle::{Bundle, Settings, free_port, local, project};
pub use bus::Bus;
pub use clock::{now, time};
pub use contract::Contract;
pub use doubles::{
    AwsCall, Behaviour, Held, Interposer, LONG, Moment, Received, Receiver, UpdateServer, until,
};
pub use entity::{Entity, Hook};
pub use forge::Forge;
pub use handwritten::send_raw;
pub use hooks::secret_of;
pub use linked::{Visit, hash_of, state_of};
pub use person::{Choice, Return, choose, query};
pub use processes::{Process, descendants, group_members, memory_kilobytes, until_gone};
pub use providers::{PROVIDERS, SCOPES, Secrets, Simulation};
pub use python::python;
pub(crate) use run::tests;
pub use run::{Test, run};
pub use signature::is_signed_by;
pub use suite::{Application, Interposed, Suite};
pub use table::Table;
