//! One client's link on the editor's side.

use std::sync::Arc;
use std::time::Duration;

use futures_util::{SinkExt, StreamExt};
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::time::timeout;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::{self, Message};

use super::roster::{Outgoing, Roster};
use crate::mailbox::Mailbox;
use crate::protocol::json_rpc::{
    ClientMessage, ServerInfo, initialize_response, parse_client_message, unknown_method_response,
};

/// A client that takes no byte for this long is gone or stuck.
const SEND_WITHIN: Duration = Duration::from_secs(30);

/// A client that does not answer our close frame is not waited for longer.
const CLOSE_WITHIN: Duration = Duration::from_millis(500);

/// Serves one client until it leaves, breaks the protocol, takes nothing any more, or the server ends.
pub(super) async fn serve(
    mut socket: WebSocketStream<TcpStream>,
    roster: &Roster,
    info: &ServerInfo,
    mut end: watch::Receiver<bool>,
) {
    let mut membership = Membership { roster, joined: None };
    let ended = tokio::select! {
        // Whatever ends it, the client learns it from the close frame or is gone.
        _ = converse(&mut socket, &mut membership, info) => false,
        _ = end.wait_for(|end| *end) => true,
    };
    drop(membership);
    if ended {
        let goodbye = async {
            let _ = socket.close(None).await;
            while let Some(Ok(_)) = socket.next().await {}
        };
        let _ = timeout(CLOSE_WITHIN, goodbye).await;
    }
}

async fn converse(
    socket: &mut WebSocketStream<TcpStream>,
    membership: &mut Membership<'_>,
    info: &ServerInfo,
) -> Result<(), tungstenite::Error> {
    loop {
        let outbox = membership.outbox();
        let answer = tokio::select! {
            message = socket.next() => match message.transpose()? {
                Some(Message::Text(text)) => membership.answer(&text, info),
                Some(Message::Close(_)) | None => return Ok(()),
                Some(_) => None,
            },
            outgoing = next_of(outbox) => Some(Message::Text(outgoing.text)),
        };
        if let Some(answer) = answer {
            match timeout(SEND_WITHIN, socket.send(answer)).await {
                Ok(sent) => sent?,
                Err(_) => return Ok(()),
            }
        }
        if membership.is_stuck() {
            return Ok(());
        }
    }
}

async fn next_of(outbox: Option<Arc<Mailbox<Outgoing>>>) -> Outgoing {
    match outbox {
        Some(outbox) => outbox.next().await,
        None => std::future::pending().await,
    }
}

/// A client's place in the roster, given back on drop.
struct Membership<'a> {
    roster: &'a Roster,
    joined: Option<(u64, Arc<Mailbox<Outgoing>>)>,
}

impl Membership<'_> {
    fn outbox(&self) -> Option<Arc<Mailbox<Outgoing>>> {
        self.joined.as_ref().map(|(_, outbox)| outbox.clone())
    }

    fn is_stuck(&self) -> bool {
        self.joined.as_ref().is_some_and(|(_, outbox)| outbox.is_full())
    }

    /// The answer to one message, if it needs one. The editor's state follows the answer to `initialize` by itself.
    fn answer(&mut self, text: &str, info: &ServerInfo) -> Option<Message> {
        match parse_client_message(text) {
            ClientMessage::Initialize { id, params } => {
                match self.joined {
                    Some((member, _)) => self.roster.repeat_state(member, info),
                    None => self.joined = Some(self.roster.join(params, info)),
                }
                Some(Message::text(initialize_response(&id, info)))
            }
            ClientMessage::PromptSubmitted => {
                if let Some((member, _)) = self.joined {
                    self.roster.note_use(member);
                }
                None
            }
            ClientMessage::UnknownRequest { id } => Some(Message::text(unknown_method_response(&id))),
            ClientMessage::Other => None,
        }
    }
}

impl Drop for Membership<'_> {
    fn drop(&mut self) {
        if let Some((id, _)) = self.joined {
            self.roster.leave(id);
        }
    }
}
