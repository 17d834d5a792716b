//! Who may connect, decided before the upgrade. Protocol: "Authentication", tightened against web pages.

use std::net::IpAddr;
use std::time::Duration;

use subtle::ConstantTimeEq;
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::handshake::server::{Callback, ErrorResponse, Request, Response};
use tokio_tungstenite::tungstenite::http::header::{HOST, HeaderMap, ORIGIN};
use tokio_tungstenite::tungstenite::http::{self, StatusCode};
use tokio_tungstenite::{WebSocketStream, accept_hdr_async_with_config};

use crate::protocol::TOKEN_HEADER;
use crate::web_socket::web_socket_config;

/// A peer that does not finish its handshake in this time gives its place to another one.
const HANDSHAKE_WITHIN: Duration = Duration::from_secs(5);

/// Checks each upgrade request: token, no `Origin`, a `Host` that cannot come from a rebound name.
///
/// Not `Debug`: it holds the token.
pub(super) struct Gatekeeper {
    token: String,
    allowed_hosts: Vec<String>,
}

impl Gatekeeper {
    pub(super) fn new(token: String, allowed_hosts: Vec<String>) -> Self {
        Self { token, allowed_hosts }
    }

    /// The WebSocket of an admitted peer; others got their HTTP answer.
    pub(super) async fn admit(&self, socket: TcpStream) -> Result<WebSocketStream<TcpStream>, NotAdmitted> {
        // Latency counts; a kernel that refuses costs some milliseconds only.
        let _ = socket.set_nodelay(true);
        let handshake = accept_hdr_async_with_config(socket, Check(self), Some(web_socket_config()));
        timeout(HANDSHAKE_WITHIN, handshake).await.map_err(|_| NotAdmitted)?.map_err(|_| NotAdmitted)
    }

    fn verdict(&self, headers: &HeaderMap) -> Result<(), StatusCode> {
        // A browser always sends an Origin, pi never does.
        if headers.contains_key(ORIGIN) || !self.is_known_host(headers) {
            return Err(StatusCode::FORBIDDEN);
        }
        let mut tokens = headers.get_all(TOKEN_HEADER).iter();
        let token = tokens.next().filter(|_| tokens.next().is_none()).map(http::HeaderValue::as_bytes);
        let is_ours = token.is_some_and(|token| bool::from(token.ct_eq(self.token.as_bytes())));
        if is_ours { Ok(()) } else { Err(StatusCode::UNAUTHORIZED) }
    }

    /// Rebinding needs a name, so any address will do.
    fn is_known_host(&self, headers: &HeaderMap) -> bool {
        let mut hosts = headers.get_all(HOST).iter();
        let Some(host) = hosts.next().and_then(|host| host.to_str().ok()).map(without_port) else { return false };
        let allowed = || self.allowed_hosts.iter().any(|allowed| allowed.eq_ignore_ascii_case(host));
        hosts.next().is_none()
            && (host.eq_ignore_ascii_case("localhost") || host.parse::<IpAddr>().is_ok() || allowed())
    }
}

/// The peer was refused, broke the handshake, or was too slow.
pub(super) struct NotAdmitted;

struct Check<'a>(&'a Gatekeeper);

impl Callback for Check<'_> {
    fn on_request(self, request: &Request, response: Response) -> Result<Response, ErrorResponse> {
        self.0.verdict(request.headers()).map(|()| response).map_err(|status| {
            let mut refusal = ErrorResponse::new(None);
            *refusal.status_mut() = status;
            refusal
        })
    }
}

/// `[::1]:80` → `::1`, `localhost:80` → `localhost`.
fn without_port(host: &str) -> &str {
    if let Some((address, _)) = host.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        return address;
    }
    host.split_once(':').map_or(host, |(name, _)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdict(headers: &[(&'static str, &str)]) -> Option<u16> {
        let gatekeeper = Gatekeeper::new("secret".into(), vec!["host.docker.internal".into()]);
        let map = headers
            .iter()
            .map(|(name, value)| (http::HeaderName::from_static(name), http::HeaderValue::from_str(value).unwrap()));
        let mut all = HeaderMap::new();
        map.for_each(|(name, value)| {
            all.append(name, value);
        });
        gatekeeper.verdict(&all).err().map(|status| status.as_u16())
    }

    const TOKEN: (&str, &str) = (TOKEN_HEADER, "secret");

    #[test]
    fn the_token_is_always_needed() {
        assert_eq!(verdict(&[("host", "127.0.0.1:1"), TOKEN]), None);
        assert_eq!(verdict(&[("host", "127.0.0.1:1")]), Some(401));
        for wrong in ["", "secre", "secrets", "Secret"] {
            assert_eq!(verdict(&[("host", "127.0.0.1:1"), (TOKEN_HEADER, wrong)]), Some(401), "{wrong}");
        }
        assert_eq!(verdict(&[("host", "127.0.0.1:1"), TOKEN, TOKEN]), Some(401), "two tokens");
    }

    #[test]
    fn any_origin_is_refused() {
        for origin in ["https://evil.example", "null", "http://localhost", "vscode-webview://x"] {
            assert_eq!(verdict(&[("host", "127.0.0.1:1"), TOKEN, ("origin", origin)]), Some(403), "{origin}");
        }
    }

    #[test]
    fn only_names_that_cannot_be_rebound_are_hosts() {
        for host in ["localhost", "LocalHost:9", "127.0.0.1", "[::1]:9", "192.168.1.5:9", "Host.Docker.Internal:9"] {
            assert_eq!(verdict(&[("host", host), TOKEN]), None, "{host}");
        }
        for host in ["evil.example:9", "localhost.evil.example", "127.0.0.1.evil.example", ""] {
            assert_eq!(verdict(&[("host", host), TOKEN]), Some(403), "{host}");
        }
        assert_eq!(verdict(&[TOKEN]), Some(403), "no host");
        assert_eq!(verdict(&[("host", "localhost"), ("host", "evil.example"), TOKEN]), Some(403), "two hosts");
    }
}
