//! The task behind a session: one plan after another, never two links, never two timers.

use std::future::pending;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, sleep};

use super::backoff::Backoff;
use super::session::{Command, Session, SwitchReply};
use super::state::Shared;
use super::{Options, open_candidate};
use crate::connection::{CloseReason, Link};
use crate::discovery::{Candidate, Standing, auto_connect, discover};
use crate::env::Env;
use crate::events::{LinkState, Status};
use crate::protocol::json_rpc::ServerInfo;
use crate::watch::LockFolderWatch;

/// A link that held this long was a good one: delays start from the beginning.
const GOOD_LINK: Duration = Duration::from_secs(5);

/// The user is told once after this many failures in a row.
const TELL_AFTER: u32 = 3;

/// What the driver does next.
pub(super) enum Plan {
    /// Hold this link until it ends.
    Hold(Box<(Candidate, Link)>),
    /// Look for the editor to connect to, and try it.
    Find,
    /// Wait for a lock file to change, at most this long.
    Wait(Option<Duration>),
    /// Connect to the editor that the user picked.
    Switch(Box<Candidate>, SwitchReply),
    /// Nothing more to do.
    End(CloseReason),
}

impl Plan {
    pub(super) fn hold(candidate: Candidate, link: Link) -> Self {
        Self::Hold(Box::new((candidate, link)))
    }
}

/// Follows the editors of one folder.
pub(super) struct Driver {
    shared: Arc<Shared>,
    options: Options,
    keep_alive: bool,
    commands: mpsc::UnboundedReceiver<Command>,
    ended: watch::Sender<bool>,
    watch: Option<LockFolderWatch>,
    backoff: Backoff,
    failures: u32,
    /// The user knows of these failures.
    has_told: bool,
    /// Lock files that could not be reached in this round.
    failed: Vec<String>,
    /// Lock file that the user picked.
    picked: Option<String>,
}

impl Driver {
    pub(super) fn new(env: Arc<Env>, cwd: String, options: Options, keep_alive: bool) -> (Session, Self) {
        let (sender, commands) = mpsc::unbounded_channel();
        let (ended, end) = watch::channel(false);
        let watch = options.discovery.folder(&env).filter(|_| keep_alive).map(LockFolderWatch::new);
        let shared = Arc::new(Shared::new(env, cwd, options.last_injected.clone()));
        let session = Session::new(Arc::clone(&shared), sender, end);
        let driver = Self {
            shared,
            options,
            keep_alive,
            commands,
            ended,
            watch,
            backoff: Backoff::default(),
            failures: 0,
            has_told: false,
            failed: Vec::new(),
            picked: None,
        };
        (session, driver)
    }

    pub(super) async fn run(mut self, mut plan: Plan) {
        loop {
            plan = match plan {
                Plan::Hold(held) => self.hold(*held).await,
                Plan::Find => self.find().await,
                Plan::Wait(delay) => self.wait(delay).await,
                Plan::Switch(candidate, reply) => self.switch(*candidate, reply).await,
                Plan::End(reason) => {
                    self.shared.closed(reason.to_string());
                    self.ended.send_replace(true);
                    return;
                }
            };
        }
    }

    async fn hold(&mut self, (candidate, mut link): (Candidate, Link)) -> Plan {
        self.connected(&candidate, &link);
        let since = Instant::now();
        let shared = &self.shared;
        let lost = tokio::select! {
            reason = link.run(shared.as_ref()) => reason,
            command = self.commands.recv() => {
                link.close().await;
                return command.into();
            }
        };
        if !self.keep_alive {
            return Plan::End(lost);
        }
        self.shared.set_trouble(Some(format!("{}: {lost}", candidate.name)));
        if since.elapsed() >= GOOD_LINK {
            self.backoff.reset();
            (self.failures, self.has_told) = (0, false);
        } else {
            self.failures += 1;
        }
        self.set_status(LinkState::Connecting, Some(&candidate), None, None);
        // Another window of the same folder is tried at once, this one after a delay.
        self.failed = vec![candidate.id];
        Plan::Find
    }

    async fn find(&mut self) -> Plan {
        if let Some(watch) = &mut self.watch {
            watch.arm();
        }
        let shared = Arc::clone(&self.shared);
        let options = self.options.discovery.clone();
        let candidates = tokio::select! {
            candidates = discover(&shared.env, &shared.cwd, &options) => candidates,
            command = self.commands.recv() => return command.into(),
        };
        let Some(candidate) = self.choose(&candidates) else {
            self.failed.clear();
            self.backoff.reset();
            // Whatever failed is gone: the next editor's trouble is its own.
            (self.failures, self.has_told) = (0, false);
            self.shared.set_trouble(None);
            self.set_status(LinkState::Searching, None, None, None);
            return Plan::Wait(None);
        };
        if self.failed.contains(&candidate.id) {
            self.failed.clear();
            let is_news = self.failures >= TELL_AFTER && !self.has_told;
            self.has_told |= is_news;
            let reason = self.shared.trouble().unwrap_or_else(|| format!("{} does not answer", candidate.name));
            let message = is_news.then(|| format!("{reason}; trying again in the background"));
            self.set_status(LinkState::Waiting, Some(&candidate), None, message);
            return Plan::Wait(Some(self.backoff.next()));
        }
        self.set_status(LinkState::Connecting, Some(&candidate), None, None);
        let opened = tokio::select! {
            opened = open_candidate(&shared.env, &shared.cwd, &candidate, self.options.timings) => opened,
            command = self.commands.recv() => return command.into(),
        };
        match opened {
            Ok(link) => Plan::hold(candidate, link),
            Err(error) => {
                self.shared.set_trouble(Some(format!("{}: {error}", candidate.name)));
                self.failures += 1;
                self.failed.push(candidate.id);
                Plan::Find
            }
        }
    }

    /// The editor that the user picked while its lock is there, else the one that connects by itself.
    fn choose(&mut self, candidates: &[Candidate]) -> Option<Candidate> {
        let usable = |c: &&Candidate| c.standing == Standing::Usable && Some(&c.id) == self.picked.as_ref();
        if let Some(picked) = candidates.iter().find(usable) {
            return Some(picked.clone());
        }
        self.picked = None;
        self.shared.picked_automatically();
        auto_connect(candidates, &self.failed)
    }

    async fn wait(&mut self, delay: Option<Duration>) -> Plan {
        tokio::select! {
            () = changed(self.watch.as_ref()) => Plan::Find,
            () = elapsed(delay) => Plan::Find,
            command = self.commands.recv() => command.into(),
        }
    }

    async fn switch(&mut self, candidate: Candidate, reply: SwitchReply) -> Plan {
        self.set_status(LinkState::Connecting, Some(&candidate), None, None);
        let shared = Arc::clone(&self.shared);
        let opened = tokio::select! {
            opened = open_candidate(&shared.env, &shared.cwd, &candidate, self.options.timings) => opened,
            command = self.commands.recv() => return command.into(),
        };
        // A caller that does not wait for the answer does not need it.
        match opened {
            Ok(link) => {
                self.picked = Some(candidate.id.clone());
                self.shared.pick_by_hand();
                let _ = reply.send(Ok(()));
                Plan::hold(candidate, link)
            }
            Err(error) => {
                let ended = CloseReason::Broken(error.to_string());
                let _ = reply.send(Err(error));
                if self.keep_alive { Plan::Find } else { Plan::End(ended) }
            }
        }
    }

    pub(super) fn connected(&self, candidate: &Candidate, link: &Link) {
        self.shared.set_trouble(None);
        self.set_status(LinkState::Connected, Some(candidate), Some(&link.server), None);
    }

    fn set_status(
        &self,
        state: LinkState,
        candidate: Option<&Candidate>,
        server: Option<&ServerInfo>,
        message: Option<String>,
    ) {
        let status = Status { state, candidate: candidate.cloned(), server: server.cloned(), message };
        self.shared.set_status(status);
    }
}

impl From<Option<Command>> for Plan {
    /// A session that was dropped is closed.
    fn from(command: Option<Command>) -> Self {
        match command {
            Some(Command::SwitchTo(candidate, reply)) => Self::Switch(candidate, reply),
            Some(Command::Close) | None => Self::End(CloseReason::Ours),
        }
    }
}

async fn changed(watch: Option<&LockFolderWatch>) {
    match watch {
        Some(watch) => watch.changed().await,
        None => pending().await,
    }
}

async fn elapsed(delay: Option<Duration>) {
    match delay {
        Some(delay) => sleep(delay).await,
        None => pending().await,
    }
}
