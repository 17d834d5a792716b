//! How this process reaches Windows, from the kernel's own tables. Protocol: "WSL2 discovery and host resolution".

use std::net::Ipv4Addr;
use std::path::PathBuf;

use super::Networking;
use crate::env::{Env, WslNetworking, wsl_networking};

/// Networking of this process and the default gateway, where that is Windows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Network {
    /// How it sees Windows.
    pub networking: Networking,
    /// Address of Windows; only of WSL with NAT.
    pub gateway: Option<String>,
}

impl Network {
    /// A process that does not run in WSL.
    pub const NATIVE: Self = Self { networking: Networking::Native, gateway: None };

    /// Reads it; blocks on small files, some of them in the Windows `profiles`.
    pub fn read(env: &Env, profiles: &[PathBuf]) -> Self {
        if env.host.wsl.is_none() {
            return Self::NATIVE;
        }
        match wsl_networking(env, profiles) {
            WslNetworking::Mirrored => Self { networking: Networking::WslMirrored, gateway: None },
            WslNetworking::Nat => {
                let gateway = default_gateway(env).filter(is_of_a_private_network).map(|ip| ip.to_string());
                Self { networking: Networking::WslNat, gateway }
            }
        }
    }
}

/// WSL takes a private network for its NAT; any other gateway is not Windows.
fn is_of_a_private_network(ip: &Ipv4Addr) -> bool {
    ip.is_private() || ip.is_link_local() || ip.is_loopback()
}

#[cfg(target_os = "linux")]
fn default_gateway(env: &Env) -> Option<Ipv4Addr> {
    use procfs_core::FromBufRead;
    use procfs_core::net::RouteEntries;

    /// Flags of `route(8)`: usable, and by way of a gateway.
    const UP_GATEWAY: u16 = 0x1 | 0x2;

    let table = std::fs::read(env.system_root.join("proc/net/route")).ok()?;
    let routes = RouteEntries::from_buf_read(table.as_slice()).ok()?.0;
    let is_default = |mask: Ipv4Addr, destination: Ipv4Addr| mask.is_unspecified() && destination.is_unspecified();
    let defaults = routes
        .into_iter()
        .filter(|route| is_default(route.mask, route.destination) && route.flags & UP_GATEWAY == UP_GATEWAY);
    defaults.min_by_key(|route| route.metrics).map(|route| route.gateway)
}

#[cfg(not(target_os = "linux"))]
fn default_gateway(_: &Env) -> Option<Ipv4Addr> {
    None
}

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests {
    use super::*;
    use crate::testing::FakeWsl;

    const HEAD: &str = "Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT\n";

    #[test]
    fn the_gateway_is_the_default_route_with_the_lowest_metric() {
        let wsl = FakeWsl::new();
        for (table, gateway) in [
            (String::new(), None),
            (HEAD.to_owned(), None),
            (format!("{HEAD}eth0\t00000000\t010014AC\t0003\t0\t0\t0\t00000000\t0\t0\t0\n"), Some("172.20.0.1")),
            (
                format!(
                    "{HEAD}eth1\t00000000\t0100A8C0\t0003\t0\t0\t100\t00000000\t0\t0\t0\n\
                     eth0\t00000000\t010014AC\t0003\t0\t0\t5\t00000000\t0\t0\t0\n\
                     eth0\t000014AC\t00000000\t0001\t0\t0\t0\t00F0FFFF\t0\t0\t0\n"
                ),
                Some("172.20.0.1"),
            ),
            (format!("{HEAD}eth0\t000014AC\t00000000\t0001\t0\t0\t0\t00F0FFFF\t0\t0\t0\n"), None),
            (format!("{HEAD}ppp0\t00000000\t00000000\t0001\t0\t0\t0\t00000000\t0\t0\t0\n"), None),
            (format!("{HEAD}eth0\t00000000\t08080808\t0003\t0\t0\t0\t00000000\t0\t0\t0\n"), None),
            (format!("{HEAD}eth0\t00000000\tnonsense\n"), None),
            ("\u{0}\u{fffd}\n\n".to_owned(), None),
        ] {
            wsl.route_table(&table);
            assert_eq!(Network::read(&wsl.env(&[]), &[]).gateway.as_deref(), gateway, "{table}");
        }
    }
}
