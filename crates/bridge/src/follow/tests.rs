//! Sessions that follow real servers.

use std::sync::Mutex;
use std::time::Duration;

use super::*;
use crate::context::AttachState;
use crate::events::{Event, LinkState};
use crate::server::{self, Server};
use crate::testing::{env_with_home, snapshot, until};

struct Machine {
    home: tempfile::TempDir,
    env: Arc<Env>,
}

impl Machine {
    fn new() -> Self {
        let home = tempfile::tempdir().unwrap();
        let env = env_with_home(home.path());
        Self { home, env }
    }

    async fn editor(&self, name: &str, folder: &str) -> Server {
        let options = server::Options {
            ide: "vscode".into(),
            name: name.into(),
            version: None,
            workspace_folders: vec![folder.into()],
            lock_dir: None,
            allowed_hosts: Vec::new(),
            heartbeat: server::Options::HEARTBEAT,
            wsl_listener: false,
        };
        Server::start(Arc::clone(&self.env), options).await.unwrap()
    }

    fn follow(&self, options: Options) -> Session {
        follow(Arc::clone(&self.env), "/w/app".into(), options)
    }
}

fn server_name(session: &Session) -> Option<String> {
    session.status().server.as_ref().map(|server| server.name.clone())
}

#[tokio::test]
async fn an_editor_that_starts_later_is_found_and_one_that_reloads_is_found_again() {
    let machine = Machine::new();
    let session = machine.follow(Options::default());
    until("searching", || session.status().state == LinkState::Searching).await;
    for round in ["first", "second"] {
        let editor = machine.editor(round, "/w").await;
        until(round, || server_name(&session).as_deref() == Some(round)).await;
        editor.publish(snapshot("/w/app/a"));
        until("selection", || session.attach_state() == AttachState::Pending).await;
        editor.close().await;
        until("searching again", || session.status().state == LinkState::Searching).await;
        assert_eq!(session.attach_state(), AttachState::Idle, "a snapshot is dropped on disconnect");
    }
    session.close().await;
    assert_eq!(session.status().state, LinkState::Closed);
}

#[tokio::test]
async fn a_dead_window_does_not_keep_pi_from_the_next_one() {
    let machine = Machine::new();
    let editor = machine.editor("alive", "/w").await;
    let lock = std::fs::read_to_string(editor.lock_file()).unwrap();
    // Deeper folder and newer file, live pid, but nobody listens.
    let dead = lock.replace("\"/w\"", "\"/w/app\"").replace(&format!("\"port\": {}", editor.port()), "\"port\": 1");
    std::fs::write(editor.lock_file().with_file_name("vscode-1-1.lock"), dead).unwrap();
    let session = machine.follow(Options::default());
    until("fail-over", || server_name(&session).as_deref() == Some("alive")).await;
    let once = connect_best(Arc::clone(&machine.env), "/w/app".into(), Options::default()).await.unwrap().unwrap();
    assert_eq!(server_name(&once).as_deref(), Some("alive"));
    editor.close().await;
    let failed = connect_best(Arc::clone(&machine.env), "/w/app".into(), Options::default()).await.map(drop);
    let failures = failed.unwrap_err().0;
    assert_eq!((failures.len(), failures[0].1.code()), (1, "PIX_UNREACHABLE"));
}

#[tokio::test]
async fn a_window_that_hangs_does_not_keep_pi_from_one_that_comes() {
    let machine = Machine::new();
    let hung = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let template = machine.editor("template", "/w").await;
    let lock = std::fs::read_to_string(template.lock_file()).unwrap();
    let port = hung.local_addr().unwrap().port();
    let lock = lock.replace(&format!("\"port\": {}", template.port()), &format!("\"port\": {port}"));
    let path = template.lock_file().with_file_name("vscode-1-1.lock");
    template.close().await;
    std::fs::write(path, lock).unwrap();
    let session = machine.follow(Options {
        timings: Timings { connect: Duration::from_secs(3600), ..Timings::default() },
        ..Options::default()
    });
    until("dialled", || session.status().state == LinkState::Connecting && session.status().candidate.is_some()).await;
    let editor = machine.editor("new", "/w").await;
    until("the new one", || server_name(&session).as_deref() == Some("new")).await;
    editor.close().await;
    session.close().await;
    assert!(session.watched_folders().is_empty(), "nothing is watched any more");
}

#[tokio::test]
async fn the_users_choice_is_kept_while_it_lives() {
    let machine = Machine::new();
    let (near, far) = (machine.editor("near", "/w/app").await, machine.editor("far", "/elsewhere").await);
    let session = machine.follow(Options::default());
    until("near", || server_name(&session).as_deref() == Some("near")).await;
    let all = discover(&machine.env, "/w/app", &discovery::Options::default()).await;
    let choice = all.into_iter().find(|candidate| candidate.name == "far").unwrap();
    session.switch_to(choice).await.unwrap();
    assert_eq!(server_name(&session).as_deref(), Some("far"));
    far.publish(snapshot("/elsewhere/a"));
    until("selection", || session.latest().is_some()).await;
    assert!(session.prepare(Duration::ZERO).await.is_some(), "picked by hand: files outside go along");
    far.close().await;
    until("near again", || server_name(&session).as_deref() == Some("near")).await;
    near.publish(snapshot("/elsewhere/a"));
    until("selection", || session.latest().is_some()).await;
    assert!(session.prepare(Duration::ZERO).await.is_none());
}

#[tokio::test]
async fn what_was_injected_before_counts_as_sent() {
    let machine = Machine::new();
    let editor = machine.editor("x", "/w").await;
    editor.publish(snapshot("/w/app/a"));
    let session = machine.follow(Options::default());
    let prepared = session.prepare(Duration::from_secs(10)).await.expect("waits for the first word");
    assert_eq!(prepared.content, "### IDE Context\n- **IDE**: vscode\n- **File**: `a`");
    session.mark_injected(prepared.snapshot.content_hash.clone());
    assert_eq!(session.attach_state(), AttachState::Sent);
    session.close().await;
    let last_injected = Some(prepared.snapshot.content_hash.clone());
    let session = machine.follow(Options { last_injected, ..Options::default() });
    assert!(session.prepare(Duration::from_secs(10)).await.is_none());
    session.attach();
    assert!(session.prepare(Duration::ZERO).await.is_some());
}

#[tokio::test]
async fn sharing_switched_off_counts_from_the_next_prompt() {
    let machine = Machine::new();
    let editor = machine.editor("x", "/w").await;
    editor.publish(snapshot("/w/app/a"));
    let session = machine.follow(Options::default());
    assert!(session.prepare(Duration::from_secs(10)).await.is_some());
    let config = machine.home.path().join(".pi/pi-x-ide/config.json");
    for (text, goes) in [(r#"{"share":"off"}"#, false), (r#"{"openFile":false}"#, false), ("{}", true)] {
        std::fs::write(&config, text).unwrap();
        assert_eq!(session.prepare(Duration::ZERO).await.is_some(), goes, "{text}");
    }
}

#[tokio::test]
async fn listeners_hear_everything_in_order_and_nothing_after_they_left() {
    let machine = Machine::new();
    let editor = machine.editor("x", "/w").await;
    let session = machine.follow(Options::default());
    let wakes = Arc::new(Mutex::new(0));
    let count = Arc::clone(&wakes);
    let subscription = session.subscribe(move || *count.lock().unwrap() += 1);
    until("connected", || session.status().state == LinkState::Connected).await;
    editor.mention(snapshot("/w/app/a b"), None);
    until("mention", || session.attach_state() == AttachState::Pending).await;
    let mailbox = subscription.mailbox();
    let heard: Vec<_> = std::iter::from_fn(|| mailbox.pop()).collect();
    assert_eq!(heard.len(), *wakes.lock().unwrap(), "one wake for each event");
    assert!(matches!(heard.last(), Some(Event::Mention { mentions, .. }) if mentions == &["@\"a b\""]), "{heard:?}");
    drop(subscription);
    session.close().await;
    assert!(mailbox.pop().is_none());
    assert_eq!(heard.len(), *wakes.lock().unwrap());
}

#[tokio::test]
async fn a_dropped_session_lets_go_of_the_editor() {
    let machine = Machine::new();
    let editor = machine.editor("x", "/w").await;
    let session = machine.follow(Options::default());
    until("connected", || editor.clients().len() == 1).await;
    drop(session);
    until("gone", || editor.clients().is_empty()).await;
}

#[tokio::test]
async fn trouble_of_an_editor_that_is_gone_does_not_silence_that_of_the_next() {
    let machine = Machine::new();
    let editor = machine.editor("gone", "/w").await;
    let template = std::fs::read_to_string(editor.lock_file()).unwrap();
    let dead = |name: &str| {
        let text = template.replace("\"gone\"", &format!("\"{name}\""));
        text.replace(&format!("\"port\": {}", editor.port()), "\"port\": 1")
    };
    let folder = editor.lock_file().parent().unwrap().to_owned();
    editor.close().await;
    let session = machine.follow(Options::default());
    let told = |name: &'static str| {
        let heard = session.subscribe(|| {});
        let mailbox = heard.mailbox();
        async move {
            let _heard = heard;
            loop {
                if let Event::Status(status) = mailbox.next().await
                    && status.message.as_ref().is_some_and(|message| message.contains(name))
                {
                    return;
                }
            }
        }
    };
    for name in ["first", "second"] {
        let word = told(name);
        // Three of one folder fail one after the other, which is news.
        let files: Vec<_> = (1..=3).map(|n| folder.join(format!("vscode-1-{n}.lock"))).collect();
        files.iter().for_each(|file| std::fs::write(file, dead(name)).unwrap());
        tokio::time::timeout(Duration::from_secs(10), word).await.expect(name);
        files.iter().for_each(|file| std::fs::remove_file(file).unwrap());
        until("searching", || session.status().state == LinkState::Searching).await;
    }
}
