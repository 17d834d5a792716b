//! The client side of one link to an editor: handshake, validated events, keep-alive. Knows nothing of pi.

mod error;
mod link;
mod open;

use std::time::Duration;

use crate::env::Env;
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

impl Timings {
    /// The defaults, with the interval of pings that `PI_X_IDE_PING_INTERVAL_MS` sets (100 to 3,600,000 milliseconds;
    /// anything else counts as unset). An answer is waited for no longer than that interval.
    pub fn of(env: &Env) -> Self {
        let default = Self::default();
        let millis = env.var("PI_X_IDE_PING_INTERVAL_MS").and_then(|value| value.parse().ok());
        let interval = millis.filter(|millis| (100..=3_600_000).contains(millis)).map(Duration::from_millis);
        interval.map_or(default, |ping_every| Self {
            ping_every,
            pong_within: default.pong_within.min(ping_every),
            ..default
        })
    }
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
