//! Opening a link: socket, upgrade, `initialize`, all under one time limit. Protocol: "Authentication", "Handshake".

use std::time::Duration;

use tokio::net::TcpStream;
use tokio::time::{Instant, timeout};
use tokio_tungstenite::client_async_with_config;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::http::{HeaderValue, Request};
use tokio_tungstenite::tungstenite::{self, Message};

use super::link::{Link, Socket};
use super::{CloseReason, ConnectError, Timings};
use crate::env::Patience;
use crate::host::{self, authority};
use crate::mailbox::Mailbox;
use crate::protocol::TOKEN_HEADER;
use crate::protocol::json_rpc::{EditorMessage, InitializeParams, initialize_request, parse_editor_message};
use crate::web_socket::web_socket_config;

/// A host that says nothing must not use up the time of those after it.
const NEXT_HOST_AFTER: Duration = Duration::from_secs(1);

/// Where to dial, and the secret for it.
///
/// Not `Debug`: it carries the token.
#[derive(Clone)]
pub struct Target {
    /// Hosts in the order to try.
    pub hosts: Vec<String>,
    /// Port of the server.
    pub port: u16,
    /// Secret for the upgrade header.
    pub token: String,
    /// For names that have to be looked up.
    pub patience: Patience,
}

impl Target {
    fn first_authority(&self) -> String {
        self.hosts.first().map_or_else(String::new, |host| authority(host, self.port))
    }
}

/// Opens a link and waits for the answer to `initialize`. Dropping the future closes the socket.
///
/// No proxy variable is looked at: the socket is ours.
pub async fn open(target: &Target, hello: &InitializeParams, timings: Timings) -> Result<Link, ConnectError> {
    let attempt = async {
        let (socket, authority) = dial(target, timings.connect).await?;
        let socket = upgrade(socket, target, &authority).await?;
        initialize(socket, hello, &target.token, timings).await
    };
    let opened = timeout(timings.connect, attempt).await.unwrap_or_else(|_| {
        Err(ConnectError::Timeout { authority: target.first_authority(), within: timings.connect })
    });
    opened.map_err(|error| error.without(&target.token))
}

async fn dial(target: &Target, within: Duration) -> Result<(TcpStream, String), ConnectError> {
    let mut refusal = None;
    let mut hosts = target.hosts.iter().peekable();
    while let Some(host) = hosts.next() {
        let authority = authority(host, target.port);
        let soon = match hosts.peek() {
            Some(_) => Instant::now() + NEXT_HOST_AFTER,
            // The limit of the whole attempt comes first.
            None => Instant::now() + within + NEXT_HOST_AFTER,
        };
        let connected = host::connect(&target.patience, host, target.port, soon).await;
        match connected {
            Ok(socket) => {
                // Latency counts and messages are small; a kernel that refuses costs some milliseconds only.
                let _ = socket.set_nodelay(true);
                return Ok((socket, authority));
            }
            Err(source) => refusal = Some(ConnectError::Unreachable { authority, source }),
        }
    }
    Err(refusal.unwrap_or_else(|| ConnectError::HostRefused(String::new())))
}

async fn upgrade(socket: TcpStream, target: &Target, authority: &str) -> Result<Socket, ConnectError> {
    let request = upgrade_request(&target.token, authority)?;
    match client_async_with_config(request, socket, Some(web_socket_config())).await {
        Ok((socket, _)) => Ok(socket),
        Err(tungstenite::Error::Http(response)) => Err(ConnectError::Refused { status: response.status().as_u16() }),
        Err(tungstenite::Error::Io(error)) => Err(ConnectError::Closed(CloseReason::Broken(error.to_string()))),
        Err(error) if is_early_close(&error) => Err(ConnectError::Closed(CloseReason::from(error))),
        Err(error) => Err(ConnectError::Handshake { authority: authority.to_owned(), source: Box::new(error) }),
    }
}

fn is_early_close(error: &tungstenite::Error) -> bool {
    use tungstenite::error::ProtocolError;
    let closed = matches!(error, tungstenite::Error::ConnectionClosed | tungstenite::Error::AlreadyClosed);
    closed || matches!(error, tungstenite::Error::Protocol(ProtocolError::HandshakeIncomplete))
}

fn upgrade_request(token: &str, authority: &str) -> Result<Request<()>, ConnectError> {
    let invalid = |source| ConnectError::Handshake { authority: authority.to_owned(), source: Box::new(source) };
    let mut request = format!("ws://{authority}/").into_client_request().map_err(invalid)?;
    let mut token = HeaderValue::from_str(token).map_err(|error| invalid(error.into()))?;
    token.set_sensitive(true);
    request.headers_mut().insert(TOKEN_HEADER, token);
    Ok(request)
}

async fn initialize(
    mut socket: Socket,
    hello: &InitializeParams,
    token: &str,
    timings: Timings,
) -> Result<Link, ConnectError> {
    use futures_util::{SinkExt, StreamExt};

    let request = Message::text(initialize_request(hello));
    socket.send(request).await.map_err(|error| ConnectError::Closed(error.into()))?;
    let early = Mailbox::default();
    loop {
        let message = match socket.next().await {
            Some(Ok(Message::Close(frame))) => {
                return Err(ConnectError::Closed(CloseReason::Theirs(super::link::frame_parts(frame))));
            }
            Some(Ok(message)) => message,
            Some(Err(error)) => return Err(ConnectError::Closed(error.into())),
            None => return Err(ConnectError::Closed(CloseReason::Theirs(None))),
        };
        match super::link::message_text(&message).map(parse_editor_message) {
            Some(Ok(EditorMessage::Initialized(result))) if result.is_our_version() => {
                return Ok(Link::new(socket, result, token.to_owned(), early, timings));
            }
            Some(Ok(EditorMessage::Initialized(result))) => {
                return Err(ConnectError::ProtocolVersion(result.protocol_version.to_string()));
            }
            Some(Ok(EditorMessage::Refused { message })) => return Err(ConnectError::InitializeRefused(message)),
            // An editor may publish before it answers, but not without end.
            Some(Ok(message)) => {
                early.push(message);
                if early.is_full() {
                    return Err(ConnectError::Closed(CloseReason::Protocol("no answer among its messages".into())));
                }
            }
            Some(Err(_)) | None => {}
        }
    }
}
