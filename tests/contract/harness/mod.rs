//! The foundation of the tests: the bundle, a client that checks every response, and the third parties from the crate
//! `fakes`.

mod account;
mod admin;
mod agent;
mod announced;
mod api;
mod aws;
mod browser;
mod bundle;
mod bus;
mod clock;
mod contract;
pub mod counts;
pub mod documented;
mod entity;
pub mod feed;
mod forge;
pub mod geo_ip;
mod handwritten;
mod hooks;
mod limits;
mod linked;
mod members;
pub mod order;
mod panel;
mod person;
mod processes;
mod promises;
mod providers;
pub mod recovery;
pub mod rights;
mod rounds;
mod run;
mod sandbox;
mod scripts;
mod signature;
mod stack;
mod stalls;
mod suite;
mod table;
mod violations;

pub use account::{Account, account, has_outcome, interrupted, outcomes};
pub use admin::{Admin, admin};
pub use agent::{Agent, message};
pub use announced::{DueAttempt, announced};
pub use api::{Api, ApiResponse, Call};
pub use aws::{aws_call, aws_caller, aws_variables, delete_secret, invocation, purge, queue_url, secrets_manager};
pub use browser::{Browser, ENTER, ESCAPE, RIGHT, TAB};
pub use bundle::{Bundle, Settings, free_port, local, project, refused_start};
pub use bus::Bus;
pub use clock::{LONG_AGO, now, time, window_start};
pub use contract::{Contract, NO_HEAD};
pub use entity::{Entity, Hook};
pub use fakes::{
    AwsCall, AwsCaller, Behaviour, Gate, Held, Interposer, LONG, Metered, Moment, Received, Receiver, UpdateServer,
    in_a_row, stored, until,
};
pub use forge::Forge;
pub use handwritten::send_raw;
pub use hooks::secret_of;
pub use limits::is_limited;
pub use linked::{Visit, hash_of, new_account, outcome_of, state_of};
pub use members::SeenMembers;
pub use person::{Choice, Departure, Return, choose, continue_to_provider, cookie_of, link_of, query};
pub use processes::{Process, descendants, group_members, memory_kilobytes, until_gone};
pub use providers::{PROVIDERS, SCOPES, Secrets, Simulation};
pub use rounds::until_a_round_counts;
pub use run::{Test, When, run};
pub use sandbox::second_sandbox;
pub use scripts::{is_temporary, node, python, site_packages};
pub use signature::{is_signed_by, signature};
pub use stack::secret;
pub use suite::{Application, Interposed, Suite};
pub use table::Table;
pub use violations::invalid_values;
