//! Wire types and their validation: lock files, JSON-RPC messages, snapshots. A leaf: no I/O.

pub mod diagnostics;
pub mod json_rpc;
pub mod lenient;
pub mod lock_file;
pub mod snapshot;

/// Version of the editor protocol that this crate speaks, in lock files and in `initialize`.
pub const PROTOCOL_VERSION: u64 = 1;

/// Header of the WebSocket upgrade that carries the token. Protocol: "Authentication".
pub const TOKEN_HEADER: &str = "x-pi-x-ide-authorization";

/// Longest message that either side accepts, in bytes.
pub const MAX_MESSAGE_BYTES: usize = 16 * 1024 * 1024;
