//! Access to the panel: links, each of which opens one session, and the sessions' tokens.

pub mod cookie;
mod error;
pub mod frame_ancestors;
pub mod key;
pub mod link;
pub mod link_list;
pub mod links;
pub mod look;
pub mod new_link;
pub mod renewal;
pub mod session;
pub mod sessions;
mod store;
mod view;
pub mod views;

pub use error::{CodeFault, PanelError, SessionFault};
pub use link::PanelLink;
