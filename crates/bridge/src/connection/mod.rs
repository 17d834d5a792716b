//! The client side of one link to an editor: handshake, validated events, keep-alive. Knows nothing of pi.

mod error;
mod link;
mod open;

use std::time::Duration;

pub use error::{CloseReason, ConnectError};
pub use link::{EventSink, Link, LinkEvent};
pub use open::{Target, open};

/// Time limits of a link.
#[derive(Debug, Clone, Copy)]
pub struct Timings {
    /// For resolving the host, opening the socket and the answer to `initialize` together.
    pub connect: Duration,
    /// Between two pings.
    pub ping_every: Duration,
    /// For the answer to a ping; then the editor counts as gone.
    pub pong_within: Duration,
}

impl Default for Timings {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(5),
            ping_every: Duration::from_secs(30),
            pong_within: Duration::from_secs(10),
        }
    }
}

#[cfg(test)]
mod tests;
