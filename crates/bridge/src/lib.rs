//! Everything that pi-x-ide does, without N-API and without global state.
//!
//! Data flows one way: `env → discovery → (connection | zed) → follow → (the addon) → (the extension) → pi`.
//! `protocol`, `paths`, `escape` and `width` are leaves. Nothing points back.

mod blocking;
pub mod config;
pub mod connection;
pub mod context;
pub mod discovery;
pub mod doctor;
pub mod env;
pub mod escape;
pub mod events;
mod file_system;
pub mod follow;
pub mod host;
pub mod journal;
pub mod mailbox;
pub mod paths;
mod process;
pub mod protocol;
pub mod server;
pub mod sources;
#[cfg(test)]
mod testing;
mod trusted;
pub mod watch;
mod web_socket;
pub mod width;
pub mod zed;
