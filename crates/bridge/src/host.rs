//! Which host to dial for a lock, so that the token leaves only for a machine the user meant; and reachability probes.
//! Knows no lock files.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::time::Duration;

use tokio::net::TcpStream;

/// How long one probe may take.
pub const PROBE_TIMEOUT: Duration = Duration::from_millis(500);

/// Outcome of a connect to one port.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Probe {
    /// Somebody accepted.
    Reachable,
    /// The machine answered that nobody listens.
    Refused,
    /// No answer in time, or an error that proves nothing.
    Timeout,
}

/// How this process sees the Windows side.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Networking {
    /// Not in WSL.
    Native,
    /// WSL behind its own network: Windows is the default gateway.
    WslNat,
    /// WSL that shares the interfaces of Windows: the gateway is a stranger.
    WslMirrored,
}

/// Default gateway of WSL and what a probe of the lock's port on it said.
#[derive(Debug, Clone, Copy)]
pub struct Gateway<'a> {
    /// Its address.
    pub host: &'a str,
    /// `None` when it was not probed.
    pub probe: Option<Probe>,
}

/// What [`resolve`] decides on.
#[derive(Debug, Clone, Copy)]
pub struct Facts<'a> {
    /// `PI_X_IDE_HOST_OVERRIDE`; blank counts as unset.
    pub override_host: Option<&'a str>,
    /// Networking of this process.
    pub networking: Networking,
    /// WSL's default gateway, where known.
    pub gateway: Option<Gateway<'a>>,
    /// The lock's own host; may be empty.
    pub lock_host: &'a str,
    /// Whether the editor runs on native Windows.
    pub running_in_windows: bool,
}

/// No host is left: the lock names one that is neither loopback nor meant by the user.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not-loopback")]
pub struct Refused;

/// The hosts to dial for one lock, in order, without the brackets of an IPv6 literal.
/// Protocol: "WSL2 discovery and host resolution", tightened so that the token stays on machines the user meant.
pub fn resolve(facts: &Facts<'_>) -> Result<Vec<String>, Refused> {
    if let Some(host) = facts.override_host.map(str::trim).filter(|host| !host.is_empty()) {
        return Ok(vec![bare(host).to_owned()]);
    }
    let mut hosts = Vec::new();
    if facts.networking == Networking::WslNat && facts.running_in_windows {
        hosts.extend(facts.gateway.filter(|g| g.probe == Some(Probe::Reachable)).map(|g| bare(g.host).to_owned()));
    }
    let lock_host = match facts.lock_host.trim() {
        "" => "127.0.0.1",
        host => bare(host),
    };
    if is_loopback(lock_host) {
        hosts.push(lock_host.to_owned());
    }
    if hosts.is_empty() { Err(Refused) } else { Ok(hosts) }
}

/// `localhost`, 127.0.0.0/8 or ::1.
pub fn is_loopback(host: &str) -> bool {
    let host = bare(host);
    host.eq_ignore_ascii_case("localhost") || host.parse().is_ok_and(|ip: IpAddr| ip.is_loopback())
}

/// A host with its port as a URL needs it: IPv6 literals in brackets.
pub fn authority(host: &str, port: u16) -> String {
    if host.contains(':') { format!("[{}]:{port}", bare(host)) } else { format!("{host}:{port}") }
}

/// Connects to a port and closes at once, within [`PROBE_TIMEOUT`].
pub async fn probe(host: &str, port: u16) -> Probe {
    match tokio::time::timeout(PROBE_TIMEOUT, connect(host, port)).await {
        Ok(Ok(_)) => Probe::Reachable,
        Ok(Err(error)) if error.kind() == io::ErrorKind::ConnectionRefused => Probe::Refused,
        _ => Probe::Timeout,
    }
}

/// Opens a socket. `localhost` is this machine, without asking anybody.
pub async fn connect(host: &str, port: u16) -> io::Result<TcpStream> {
    if host.eq_ignore_ascii_case("localhost") {
        return match TcpStream::connect((Ipv4Addr::LOCALHOST, port)).await {
            Ok(socket) => Ok(socket),
            Err(refused) => TcpStream::connect((Ipv6Addr::LOCALHOST, port)).await.map_err(|_| refused),
        };
    }
    TcpStream::connect((bare(host), port)).await
}

/// Probe of this machine's loopback address.
pub async fn probe_loopback(port: u16) -> Probe {
    probe(&Ipv4Addr::LOCALHOST.to_string(), port).await
}

fn bare(host: &str) -> &str {
    host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ipv6_is_bracketed_once() {
        assert_eq!(authority("::1", 7), "[::1]:7");
        assert_eq!(authority("[::1]", 7), "[::1]:7");
        assert_eq!(authority("localhost", 7), "localhost:7");
    }

    #[tokio::test]
    async fn probes_tell_open_from_closed() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        assert_eq!(probe_loopback(port).await, Probe::Reachable);
        drop(listener);
        assert_eq!(probe_loopback(port).await, Probe::Refused);
    }
}
