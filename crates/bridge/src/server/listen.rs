//! Where a server listens: on loopback always, on further addresses of this machine as they come and go.

use std::future::poll_fn;
use std::io;
use std::net::Ipv4Addr;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use futures_util::stream::{self, Stream, StreamExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;
use tokio::time::{interval, sleep};

use super::Inner;
use crate::blocking::blocking;

/// More sockets than this at once are turned away: pi opens one each.
const MAX_SOCKETS: usize = 64;

/// Between two looks for the adapter of WSL, which Windows makes when WSL starts, each time with another address.
const LOOK_EVERY: Duration = Duration::from_secs(30);

/// Addresses to listen on besides 127.0.0.1, looked for again and again.
pub(super) struct FurtherAddresses {
    /// Those of now. May block.
    pub(super) find: Arc<dyn Fn() -> Vec<Ipv4Addr> + Send + Sync>,
    /// Between two looks.
    pub(super) every: Duration,
}

impl FurtherAddresses {
    /// The adapter through which a WSL behind NAT reaches native Windows; `None` on other systems.
    pub(super) fn of_wsl() -> Option<Self> {
        cfg!(windows).then(|| Self { find: Arc::new(wsl_adapter), every: LOOK_EVERY })
    }

    /// What each look finds, the first one at once.
    fn looks(self) -> impl Stream<Item = Vec<Ipv4Addr>> {
        stream::unfold((self.find, interval(self.every)), |(find, mut beat)| async move {
            beat.tick().await;
            let look = Arc::clone(&find);
            // A look that fails has found nothing; the next one may.
            let found = blocking(move || look()).await.unwrap_or_default();
            Some((found, (find, beat)))
        })
    }
}

/// The part of its name is the same in every language and for every kind of switch behind it.
#[cfg(windows)]
fn wsl_adapter() -> Vec<Ipv4Addr> {
    let interfaces = if_addrs::get_if_addrs().unwrap_or_default().into_iter();
    // The name is the one that people see, "vEthernet (WSL (Hyper-V firewall))" for example.
    let of_wsl = interfaces.filter(|interface| interface.name.starts_with("vEthernet (WSL"));
    of_wsl
        .filter_map(|interface| match interface.ip() {
            std::net::IpAddr::V4(address) => Some(address),
            std::net::IpAddr::V6(_) => None,
        })
        .collect()
}

#[cfg(not(windows))]
fn wsl_adapter() -> Vec<Ipv4Addr> {
    Vec::new()
}

/// Serves whoever comes to 127.0.0.1, or to the same port of a further address, until the server ends; returns when
/// nothing listens any more and the last client is gone.
pub(super) async fn serve(
    inner: Arc<Inner>,
    loopback: TcpListener,
    port: u16,
    further: Option<FurtherAddresses>,
    mut end: watch::Receiver<bool>,
) {
    let mut listeners = vec![(Ipv4Addr::LOCALHOST, loopback)];
    let mut looks = pin!(stream::iter(further).flat_map(FurtherAddresses::looks));
    let places = Arc::new(Semaphore::new(MAX_SOCKETS));
    let mut clients = JoinSet::new();
    loop {
        let socket = tokio::select! {
            accepted = accept(&listeners) => accepted,
            Some(addresses) = looks.next() => {
                listen_on(&mut listeners, &addresses, port).await;
                continue;
            }
            Some(_) = clients.join_next() => continue,
            // The outcome holds a lock, which must not be held while another branch waits.
            () = async { drop(end.wait_for(|end| *end).await) } => break,
        };
        match (socket, Arc::clone(&places).try_acquire_owned()) {
            (Ok(socket), Ok(place)) => {
                let (inner, end) = (Arc::clone(&inner), end.clone());
                clients.spawn(async move {
                    inner.serve(socket, end).await;
                    drop(place);
                });
            }
            (Ok(_), Err(_)) => {}
            // Out of descriptors, most likely: give others time to close some.
            (Err(_), _) => sleep(Duration::from_millis(50)).await,
        }
    }
    drop(listeners);
    while clients.join_next().await.is_some() {}
}

/// The next socket of any listener. Cancel-safe.
async fn accept(listeners: &[(Ipv4Addr, TcpListener)]) -> io::Result<TcpStream> {
    let (socket, _) = poll_fn(|context| {
        let mut polled = listeners.iter().map(|(_, listener)| listener.poll_accept(context));
        polled.find(Poll::is_ready).unwrap_or(Poll::Pending)
    })
    .await?;
    Ok(socket)
}

/// Listens on loopback and these addresses and no others. One that cannot be had now, since its port is taken or the
/// address is not ready, is for the next look.
async fn listen_on(listeners: &mut Vec<(Ipv4Addr, TcpListener)>, addresses: &[Ipv4Addr], port: u16) {
    listeners.retain(|(address, _)| *address == Ipv4Addr::LOCALHOST || addresses.contains(address));
    for &address in addresses {
        if listeners.iter().all(|(other, _)| *other != address)
            && let Ok(listener) = TcpListener::bind((address, port)).await
        {
            listeners.push((address, listener));
        }
    }
}
