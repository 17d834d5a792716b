//! An open link: reading, coalescing what is superseded at once, keep-alive, closing.

use std::time::Duration;

use futures_util::{FutureExt, SinkExt, StreamExt};
use tokio::net::TcpStream;
use tokio::time::{Instant, sleep_until, timeout};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::protocol::CloseFrame;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::{self, Message};

use super::{CloseReason, Timings};
use crate::mailbox::{Mailbox, Supersede};
use crate::protocol::diagnostics::DiagnosticFix;
use crate::protocol::json_rpc::{
    EditorMessage, InitializeResult, ServerInfo, parse_editor_message, prompt_submitted_message,
};
use crate::protocol::snapshot::Snapshot;

pub(super) type Socket = WebSocketStream<TcpStream>;

/// Messages read at once before the last selection among them is handed on.
const BATCH: usize = 256;

/// An alarm that rings this much too late was slept through: this process was stopped, or the machine slept.
const OVERSLEPT: Duration = Duration::from_secs(1);

/// A peer that does not answer our close frame is not waited for longer.
const CLOSE_WITHIN: Duration = Duration::from_millis(500);

/// One validated event of an editor.
#[derive(Debug, Clone, PartialEq)]
pub enum LinkEvent {
    /// The selection or the open file changed; superseded ones were dropped.
    Selection(Snapshot),
    /// There is no active editor.
    Cleared,
    /// The user attached a selection in the editor.
    Mention(Snapshot),
    /// The user asked for a fix.
    DiagnosticFix(DiagnosticFix),
}

/// Who takes the events of a link.
pub trait EventSink: Sync {
    /// Takes one event. Must not block.
    fn deliver(&self, event: LinkEvent);
    /// Takes something that is wrong and does not end the link, as a sentence. Must not block.
    fn note(&self, message: String);
    /// Returns when there is room for more events: a slow receiver slows the editor down instead of filling memory.
    fn room(&self) -> impl Future<Output = ()> + Send;
}

/// An open, initialised link to one editor. Dropping it closes the socket without a word; [`Link::close`] is polite.
pub struct Link {
    /// Who answered.
    pub server: ServerInfo,
    takes_prompts: bool,
    /// Never shown, also when the editor repeats it.
    token: String,
    socket: Socket,
    early: Mailbox<EditorMessage>,
    /// Outlives a cancelled [`Link::run`]: whoever stops listening for a moment must not start the wait anew.
    alive: KeepAlive,
}

impl Link {
    pub(super) fn new(
        socket: Socket,
        editor: InitializeResult,
        token: String,
        early: Mailbox<EditorMessage>,
        timings: Timings,
    ) -> Self {
        Self {
            server: editor.server,
            takes_prompts: editor.takes_prompts,
            token,
            socket,
            early,
            alive: KeepAlive::new(timings),
        }
    }

    /// Hands on events until the link ends. Cancel-safe.
    pub async fn run(&mut self, sink: &impl EventSink) -> CloseReason {
        self.hand_on(sink).await.without(&self.token)
    }

    async fn hand_on(&mut self, sink: &impl EventSink) -> CloseReason {
        let mut batch = Batch { selection: None, sink };
        while let Some(message) = self.early.pop() {
            batch.add(message);
        }
        batch.flush();
        loop {
            let waited = Instant::now();
            sink.room().await;
            self.alive.excuse(waited.elapsed());
            let first = tokio::select! {
                biased;
                message = self.socket.next() => message,
                () = sleep_until(self.alive.deadline) => {
                    match self.alive.expired() {
                        Expired::Silent => return CloseReason::Silent,
                        Expired::PingNow => {
                            if let Err(error) = self.socket.send(Message::Ping(Vec::new().into())).await {
                                return error.into();
                            }
                        }
                    }
                    continue;
                }
            };
            self.alive.heard();
            let end = self.read_batch(first, &mut batch).await;
            batch.flush();
            if let Some(reason) = end {
                return reason;
            }
        }
    }

    /// Everything that has arrived already, so that of many selections only the last one costs more than its parsing.
    async fn read_batch(
        &mut self,
        first: Option<Result<Message, tungstenite::Error>>,
        batch: &mut Batch<'_, impl EventSink>,
    ) -> Option<CloseReason> {
        let mut next = first;
        for left in (0..BATCH).rev() {
            match next {
                Some(Ok(Message::Close(frame))) => return Some(CloseReason::Theirs(frame_parts(frame))),
                Some(Ok(message)) => {
                    if let Some(Ok(message)) = message_text(&message).map(parse_editor_message) {
                        batch.add(message);
                    }
                }
                Some(Err(error)) => {
                    self.refuse(&error).await;
                    return Some(error.into());
                }
                None => return Some(CloseReason::Theirs(None)),
            }
            if left == 0 {
                break;
            }
            next = self.socket.next().now_or_never()?;
        }
        None
    }

    /// Tells an editor that broke the protocol what was wrong, as far as it still listens.
    async fn refuse(&mut self, error: &tungstenite::Error) {
        let code = match error {
            tungstenite::Error::Utf8(_) => CloseCode::Invalid,
            tungstenite::Error::Capacity(_) => CloseCode::Size,
            tungstenite::Error::Protocol(_) => CloseCode::Protocol,
            _ => return,
        };
        let frame = CloseFrame { code, reason: "".into() };
        // An editor that is gone needs no farewell.
        let _ = timeout(CLOSE_WITHIN, self.socket.close(Some(frame))).await;
    }

    /// Tells an editor that wants to know it that the user submitted a prompt. Cancel-safe.
    pub async fn prompted(&mut self) {
        if self.takes_prompts {
            // A link that broke, or is stuck, is seen by the next `run`.
            let _ = timeout(CLOSE_WITHIN, self.socket.send(Message::text(prompt_submitted_message()))).await;
        }
    }

    /// Sends a close frame and waits a moment for the editor's.
    pub async fn close(mut self) {
        let goodbye = async {
            // Errors mean that the peer is gone already.
            let _ = self.socket.close(None).await;
            while let Some(Ok(_)) = self.socket.next().await {}
        };
        let _ = timeout(CLOSE_WITHIN, goodbye).await;
    }
}

impl Supersede for EditorMessage {
    fn is_superseded_by_newer(&self) -> bool {
        matches!(self, Self::Selection(_) | Self::Cleared)
    }
}

/// Events of one batch: a selection is held back until something other than a newer one follows it.
struct Batch<'a, S: EventSink> {
    selection: Option<LinkEvent>,
    sink: &'a S,
}

impl<S: EventSink> Batch<'_, S> {
    fn add(&mut self, message: EditorMessage) {
        let event = match message {
            EditorMessage::Selection(snapshot) => return self.selection = Some(LinkEvent::Selection(snapshot)),
            EditorMessage::Cleared => return self.selection = Some(LinkEvent::Cleared),
            EditorMessage::Mention(snapshot) => LinkEvent::Mention(snapshot),
            EditorMessage::DiagnosticFix(request) => LinkEvent::DiagnosticFix(request),
            // A repeated answer to `initialize` says nothing new.
            EditorMessage::Initialized(_) | EditorMessage::Refused { .. } => return,
        };
        self.flush();
        self.sink.deliver(event);
    }

    fn flush(&mut self) {
        if let Some(selection) = self.selection.take() {
            self.sink.deliver(selection);
        }
    }
}

/// When to ping, and when a peer counts as gone.
struct KeepAlive {
    timings: Timings,
    deadline: Instant,
    pinged: bool,
}

enum Expired {
    PingNow,
    Silent,
}

impl KeepAlive {
    fn new(timings: Timings) -> Self {
        Self { timings, deadline: Instant::now() + timings.ping_every, pinged: false }
    }

    /// Anything the peer sends proves that it is alive.
    fn heard(&mut self) {
        *self = Self::new(self.timings);
    }

    /// Time in which we did not listen is not the peer's silence.
    fn excuse(&mut self, time: Duration) {
        self.deadline += time;
    }

    /// Silence counts only while we listened: after a sleep the peer is asked anew.
    fn expired(&mut self) -> Expired {
        let overslept = self.deadline.elapsed() >= OVERSLEPT;
        if self.pinged && !overslept {
            return Expired::Silent;
        }
        self.pinged = true;
        self.deadline = Instant::now() + self.timings.pong_within;
        Expired::PingNow
    }
}

/// Text of a message; binary ones count where they are UTF-8.
pub(super) fn message_text(message: &Message) -> Option<&str> {
    match message {
        Message::Text(text) => Some(text.as_str()),
        Message::Binary(bytes) => std::str::from_utf8(bytes).ok(),
        _ => None,
    }
}

pub(super) fn frame_parts(frame: Option<CloseFrame>) -> Option<(u16, String)> {
    frame.map(|frame| (frame.code.into(), frame.reason.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn sleep_is_told_from_silence() {
        let timings = Timings::default();
        let mut alive = KeepAlive::new(timings);
        let sleep_for = tokio::time::advance;
        sleep_for(timings.ping_every).await;
        assert!(matches!(alive.expired(), Expired::PingNow));
        sleep_for(Duration::from_secs(3600)).await;
        assert!(matches!(alive.expired(), Expired::PingNow), "the machine slept");
        sleep_for(timings.pong_within).await;
        assert!(matches!(alive.expired(), Expired::Silent));
    }
}
