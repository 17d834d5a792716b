//! Which host to dial for a lock, so that the token leaves only for a machine the user meant; and reachability probes.
//! Knows no lock files.

mod network;

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, ToSocketAddrs};
use std::time::Duration;

use tokio::net::TcpStream;
use tokio::time::{Instant, timeout_at};

use crate::blocking::Patience;

pub use network::Network;

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

/// A server as its lock tells of it, seen from here.
#[derive(Debug, Clone, Copy)]
pub struct Server<'a> {
    /// `PI_X_IDE_HOST_OVERRIDE`; blank counts as unset.
    pub override_host: Option<&'a str>,
    /// Networking of this process.
    pub network: &'a Network,
    /// The lock's own host; may be empty.
    pub lock_host: &'a str,
    /// Port of the server.
    pub port: u16,
    /// Whether the editor runs on native Windows.
    pub running_in_windows: bool,
}

impl Server<'_> {
    /// Hosts whose answer tells whether the server lives: those that would be dialled. None of a server whose host may
    /// not be dialled: another host's answer says nothing about it.
    pub fn hosts_to_probe(&self) -> Result<Vec<String>, Refused> {
        self.hosts(Some(Probe::Reachable))
    }

    /// Hosts to dial in order, see [`resolve`]; probes the gateway first where it counts.
    pub async fn hosts_to_dial(&self) -> Result<Vec<String>, Refused> {
        let gateway =
            self.network.gateway.as_deref().filter(|_| self.running_in_windows && self.override_host.is_none());
        let probed = match gateway.and_then(known_addresses) {
            Some(gateway) => Some(probe(&gateway, self.port).await),
            None => None,
        };
        self.hosts(probed)
    }

    fn hosts(&self, gateway_probe: Option<Probe>) -> Result<Vec<String>, Refused> {
        let gateway = self.network.gateway.as_deref().map(|host| Gateway { host, probe: gateway_probe });
        resolve(&Facts {
            override_host: self.override_host,
            networking: self.network.networking,
            gateway,
            lock_host: self.lock_host,
            running_in_windows: self.running_in_windows,
        })
    }
}

/// What several probes of one server say together: one answer is enough, a refusal needs all of them.
pub fn overall(outcomes: impl IntoIterator<Item = Probe>) -> Option<Probe> {
    outcomes.into_iter().reduce(|a, b| match (a, b) {
        (Probe::Reachable, _) | (_, Probe::Reachable) => Probe::Reachable,
        (Probe::Refused, Probe::Refused) => Probe::Refused,
        _ => Probe::Timeout,
    })
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

/// Addresses of a host: itself, both of `localhost` without asking anybody, or what the system resolves. Blocks on a
/// name.
pub fn addresses(host: &str) -> io::Result<Vec<IpAddr>> {
    match known_addresses(host) {
        Some(known) => Ok(known),
        None => Ok((bare(host), 0).to_socket_addrs()?.map(|address| address.ip()).collect()),
    }
}

fn known_addresses(host: &str) -> Option<Vec<IpAddr>> {
    if host.eq_ignore_ascii_case("localhost") {
        return Some(vec![Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()]);
    }
    bare(host).parse().ok().map(|ip| vec![ip])
}

/// Connects to a port of the first address that accepts and closes at once, within [`PROBE_TIMEOUT`].
pub async fn probe(addresses: &[IpAddr], port: u16) -> Probe {
    match tokio::time::timeout(PROBE_TIMEOUT, connect_to(addresses, port)).await {
        Ok(Ok(_)) => Probe::Reachable,
        Ok(Err(error)) if error.kind() == io::ErrorKind::ConnectionRefused => Probe::Refused,
        _ => Probe::Timeout,
    }
}

/// Opens a socket by the deadline, which also holds for a name server that hangs.
pub async fn connect(patience: &Patience, host: &str, port: u16, deadline: Instant) -> io::Result<TcpStream> {
    let addresses = match known_addresses(host) {
        Some(addresses) => addresses,
        None => {
            let name = host.to_owned();
            let looked_up = patience.run(host, deadline, move || addresses(&name)).await;
            looked_up.unwrap_or_else(|| Err(io::ErrorKind::TimedOut.into()))?
        }
    };
    timeout_at(deadline, connect_to(&addresses, port)).await.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
}

/// The first error tells what matters: `localhost` is mostly the older protocol.
async fn connect_to(addresses: &[IpAddr], port: u16) -> io::Result<TcpStream> {
    let mut failure = None;
    for address in addresses {
        match TcpStream::connect((*address, port)).await {
            Ok(socket) => return Ok(socket),
            Err(error) => failure = failure.or(Some(error)),
        }
    }
    Err(failure.unwrap_or_else(|| io::ErrorKind::NotFound.into()))
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

    #[test]
    fn one_answer_is_enough_and_a_refusal_needs_all() {
        use Probe::{Reachable, Refused, Timeout};
        for (outcomes, expected) in [
            (vec![], None),
            (vec![Refused], Some(Refused)),
            (vec![Refused, Refused], Some(Refused)),
            (vec![Refused, Timeout], Some(Timeout)),
            (vec![Timeout, Reachable, Refused], Some(Reachable)),
        ] {
            assert_eq!(overall(outcomes.clone()), expected, "{outcomes:?}");
        }
    }

    #[tokio::test]
    async fn probes_tell_open_from_closed() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let here = addresses("127.0.0.1").unwrap();
        assert_eq!(probe(&here, port).await, Probe::Reachable);
        assert_eq!(probe(&addresses("LocalHost").unwrap(), port).await, Probe::Reachable);
        assert_eq!(probe(&[], port).await, Probe::Timeout, "a name without an address");
        drop(listener);
        assert_eq!(probe(&here, port).await, Probe::Refused);
    }
}
