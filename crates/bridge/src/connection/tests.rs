//! The client against servers that misbehave, on real sockets.

use futures_util::{SinkExt, StreamExt};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;

use super::*;
use crate::env::Patience;
use crate::protocol::json_rpc::InitializeParams;
use crate::testing::Seen;

type Peer = WebSocketStream<TcpStream>;

/// Runs a server for one client; returns where it listens.
async fn server<F: Future<Output = ()> + Send + 'static>(
    serve: impl FnOnce(TcpStream) -> F + Send + 'static,
) -> Target {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move { serve(listener.accept().await.unwrap().0).await });
    Target { hosts: vec!["127.0.0.1".into()], port, token: "secret".into(), patience: Patience::default() }
}

/// A server that completes the upgrade and answers `initialize`, and goes on with `then`.
async fn editor<F: Future<Output = ()> + Send + 'static>(
    answer: Value,
    then: impl FnOnce(Peer) -> F + Send + 'static,
) -> Target {
    server(async move |socket| {
        let mut peer = tokio_tungstenite::accept_async(socket).await.unwrap();
        assert!(peer.next().await.unwrap().unwrap().to_text().unwrap().contains("initialize"));
        peer.send(Message::text(answer.to_string())).await.unwrap();
        then(peer).await;
    })
    .await
}

fn initialized(version: Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": 1, "result": { "protocolVersion": version, "server": { "name": "Test" } } })
}

fn quick() -> Timings {
    Timings {
        connect: Duration::from_millis(300),
        ping_every: Duration::from_millis(50),
        pong_within: Duration::from_millis(100),
    }
}

async fn refusal(target: &Target) -> ConnectError {
    match open(target, &InitializeParams::default(), quick()).await {
        Ok(_) => panic!("opened"),
        Err(error) => error,
    }
}

async fn forever(_: Peer) {
    std::future::pending::<()>().await;
}

async fn run(target: &Target) -> (CloseReason, Vec<LinkEvent>) {
    let seen = Seen::default();
    let mut link = open(target, &InitializeParams::default(), quick()).await.unwrap();
    let reason = link.run(&seen).await;
    (reason, seen.0.into_inner().unwrap())
}

fn selection(line: u32) -> Message {
    let at = json!({ "line": line, "character": 0 });
    let ranges = json!([{ "text": "x", "selection": { "start": at, "end": at } }]);
    let params = json!({ "source": "vscode", "filePath": "/a", "ranges": ranges });
    Message::text(json!({ "jsonrpc": "2.0", "method": "selection_changed", "params": params }).to_string())
}

#[tokio::test]
async fn a_server_that_says_nothing_times_out() {
    let silent = server(async |mut socket| {
        let mut all = Vec::new();
        socket.read_to_end(&mut all).await.unwrap();
    });
    assert_eq!(refusal(&silent.await).await.code(), "PIX_TIMEOUT");
    let deaf = server(async |socket| forever(tokio_tungstenite::accept_async(socket).await.unwrap()).await);
    assert_eq!(refusal(&deaf.await).await.code(), "PIX_TIMEOUT");
}

#[tokio::test]
async fn a_server_that_closes_at_once_is_told_apart_from_a_missing_one() {
    assert_eq!(refusal(&server(async |socket| drop(socket)).await).await.code(), "PIX_CLOSED");
    let upgraded = server(async |socket| drop(tokio_tungstenite::accept_async(socket).await.unwrap()));
    assert_eq!(refusal(&upgraded.await).await.code(), "PIX_CLOSED");
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    drop(listener);
    let nobody =
        Target { hosts: vec!["127.0.0.1".into()], port, token: "secret".into(), patience: Patience::default() };
    assert_eq!(refusal(&nobody).await.code(), "PIX_UNREACHABLE");
}

#[tokio::test]
async fn http_refusals_and_strangers_are_named_without_the_token() {
    for (answer, code) in [
        ("HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\n\r\n", "PIX_REFUSED"),
        ("SSH-2.0-OpenSSH_9\r\n\r\n", "PIX_HANDSHAKE"),
    ] {
        let target = server(async move |mut socket| {
            let mut request = [0; 4096];
            let read = socket.read(&mut request).await.unwrap();
            let request = String::from_utf8_lossy(&request[..read]).to_lowercase();
            assert!(request.contains("x-pi-x-ide-authorization: secret"), "{request}");
            socket.write_all(answer.as_bytes()).await.unwrap();
        });
        let error = refusal(&target.await).await;
        assert_eq!(error.code(), code);
        assert!(!format!("{error} {error:?}").contains("secret"));
    }
}

#[tokio::test]
async fn other_versions_and_refused_handshakes_are_typed() {
    assert_eq!(refusal(&editor(initialized(json!(2)), forever).await).await.code(), "PIX_PROTOCOL_VERSION");
    let no = json!({ "jsonrpc": "2.0", "id": 1, "error": { "code": -1, "message": "full" } });
    let error = refusal(&editor(no, forever).await).await;
    assert!(matches!(&error, ConnectError::InitializeRefused(reason) if reason == "full"), "{error}");
}

#[tokio::test]
async fn many_selections_at_once_cost_one_event_and_nothing_else_is_lost() {
    let mention = selection(7).into_text().unwrap().replace("selection_changed", "at_mentioned");
    let mention = mention.replace("\"source\"", "\"rangeText\":\"\",\"source\"");
    let target = editor(initialized(json!(1)), async move |mut peer| {
        for line in 0..100 {
            peer.feed(selection(line)).await.unwrap();
        }
        peer.feed(Message::text(mention)).await.unwrap();
        for noise in ["[]", "{", "null", r#"{"jsonrpc":"2.0","method":"foo/bar"}"#] {
            peer.feed(Message::text(noise)).await.unwrap();
        }
        peer.feed(Message::binary(selection(100).into_data())).await.unwrap();
        peer.close(None).await.unwrap();
    });
    let (reason, events) = run(&target.await).await;
    assert!(matches!(reason, CloseReason::Theirs(_)), "{reason}");
    assert!(events.len() < 20, "{} events", events.len());
    let line = |event: &LinkEvent| match event {
        LinkEvent::Selection(snapshot) | LinkEvent::Mention(snapshot) => snapshot.ranges[0].selection.start.line,
        other => panic!("{other:?}"),
    };
    let tail: Vec<_> = events[events.len() - 3..].iter().map(line).collect();
    assert_eq!(tail, [99, 7, 100], "the last selection before the mention, the mention, the last of all");
}

#[tokio::test]
async fn broken_frames_end_the_link_with_a_reason() {
    let frames: [(&str, &[u8]); 3] =
        [("bad UTF-8", &[0x81, 2, 0xc3, 0x28]), ("RSV bit", &[0xc1, 1, b'a']), ("opcode 3", &[0x83, 1, b'a'])];
    for (what, frame) in frames {
        let target = editor(initialized(json!(1)), async move |mut peer| {
            peer.get_mut().write_all(frame).await.unwrap();
            while let Some(Ok(_)) = peer.next().await {}
        });
        let (reason, _) = run(&target.await).await;
        assert!(matches!(reason, CloseReason::Protocol(_)), "{what}: {reason}");
    }
    let target = editor(initialized(json!(1)), async |mut peer| {
        // 17 MiB: refused from the header alone.
        let mut header = vec![0x81, 127];
        header.extend_from_slice(&(17_u64 << 20).to_be_bytes());
        peer.get_mut().write_all(&header).await.unwrap();
        while let Some(Ok(_)) = peer.next().await {}
    });
    let (reason, _) = run(&target.await).await;
    assert!(matches!(reason, CloseReason::Protocol(_)), "{reason}");
}

#[tokio::test]
async fn a_frozen_peer_is_dropped_and_a_quiet_one_is_kept() {
    // Does not read, so it answers no ping.
    let (reason, _) = run(&editor(initialized(json!(1)), forever).await).await;
    assert_eq!(reason, CloseReason::Silent);
    let quiet = editor(initialized(json!(1)), async |mut peer| {
        let mut pings = 0;
        while let Some(Ok(message)) = peer.next().await {
            pings += usize::from(message.is_ping());
            if pings == 4 {
                return peer.close(None).await.unwrap();
            }
        }
    });
    let (reason, _) = run(&quiet.await).await;
    assert!(matches!(reason, CloseReason::Theirs(_)), "{reason}");
}

#[tokio::test]
async fn a_frozen_peer_is_dropped_however_often_the_link_is_left_and_taken_up_again() {
    let target = editor(initialized(json!(1)), forever).await;
    let mut link = open(&target, &InitializeParams::default(), quick()).await.unwrap();
    let seen = Seen::default();
    let reason = loop {
        if let Ok(reason) = tokio::time::timeout(Duration::from_millis(10), link.run(&seen)).await {
            break reason;
        }
    };
    assert_eq!(reason, CloseReason::Silent);
}

#[tokio::test]
async fn what_an_editor_says_before_it_answers_is_kept() {
    let target = server(async |socket| {
        let mut peer = tokio_tungstenite::accept_async(socket).await.unwrap();
        peer.send(selection(3)).await.unwrap();
        peer.send(Message::text(initialized(json!(1)).to_string())).await.unwrap();
        peer.close(None).await.unwrap();
    });
    let (_, events) = run(&target.await).await;
    assert_eq!(events.len(), 1);
}
