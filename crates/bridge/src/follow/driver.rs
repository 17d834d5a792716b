//! The task behind a session: one plan after another, never two links, never two timers.

use std::collections::HashSet;
use std::future::pending;
use std::path::Path;
use std::sync::{Arc, Weak};
use std::time::Duration;

use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, sleep};

use super::Options;
use super::backoff::Backoff;
use super::open::{Link, Opened, open_candidate};
use super::session::{Command, Session, SwitchReply};
use super::state::Shared;
use crate::connection::CloseReason;
use crate::discovery::{Candidate, Scanner, Standing, Survey, auto_connect};
use crate::env::Env;
use crate::events::{LinkState, Status};
use crate::protocol::json_rpc::ServerInfo;
use crate::sources::with_zed;
use crate::watch::FolderWatch;
use crate::zed::is_in_terminal_of_zed;

/// A link that held this long was a good one: delays start from the beginning.
const GOOD_LINK: Duration = Duration::from_secs(5);

/// Whoever has so many different troubles may be told again.
const MOST_NOTED: usize = 100;

/// Making a link takes no longer, unless the editor hangs.
const USUAL_DIAL: Duration = Duration::from_millis(200);

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

/// A wait before the next try. Other editors come and go meanwhile; only what could be connected to ends it early.
struct Pause {
    until: Instant,
    tried: Vec<(String, u64)>,
}

/// Follows the editors of one folder.
pub(super) struct Driver {
    shared: Arc<Shared>,
    options: Options,
    keep_alive: bool,
    commands: mpsc::UnboundedReceiver<Command>,
    ended: watch::Sender<bool>,
    scanner: Scanner,
    watch: Option<Arc<FolderWatch>>,
    backoff: Backoff,
    /// Between looks for the workspace of the Zed whose terminal this is: no lock file tells of its coming.
    zed_backoff: Option<Backoff>,
    failures: u32,
    /// The user knows of these failures.
    has_told: bool,
    /// Lock files that could not be reached in this round.
    failed: Vec<String>,
    /// Until when the editors that were tried are left alone, while nothing of them changes.
    pause: Option<Pause>,
    /// Lock file that the user picked.
    picked: Option<String>,
    /// What was noted of folders and locks, so that it is noted once.
    noted: HashSet<String>,
}

impl Driver {
    pub(super) fn new(env: Arc<Env>, cwd: String, options: Options, keep_alive: bool) -> (Session, Self) {
        let (sender, commands) = mpsc::unbounded_channel();
        let (ended, end) = watch::channel(false);
        let watch = keep_alive.then(|| Arc::new(FolderWatch::new(env.patience.clone())));
        let scanner = Scanner::new(Arc::clone(&env), options.discovery.clone());
        let zed_backoff = is_in_terminal_of_zed(&env).then(Backoff::default);
        let shared = Arc::new(Shared::new(env, cwd, options.last_injected.clone()));
        let session = {
            let watch = watch.as_ref().map_or_else(Weak::new, Arc::downgrade);
            Session::new(Arc::clone(&shared), sender, end, watch)
        };
        let driver = Self {
            shared,
            options,
            keep_alive,
            commands,
            ended,
            scanner,
            watch,
            backoff: Backoff::default(),
            zed_backoff,
            failures: 0,
            has_told: false,
            failed: Vec::new(),
            pause: None,
            picked: None,
            noted: HashSet::new(),
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
        let since = Instant::now();
        let lost = loop {
            tokio::select! {
                reason = link.run(self.shared.as_ref()) => break reason,
                command = self.commands.recv() => match command {
                    Some(Command::Prompted) => link.prompted().await,
                    command => {
                        link.close().await;
                        return command.into();
                    }
                },
            }
        };
        if !self.keep_alive {
            return Plan::End(lost);
        }
        self.shared.trouble_is(format!("{}: {lost}", candidate.name));
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
        let survey = tokio::select! {
            survey = survey(&self.shared, &self.options, &self.scanner, self.watch.as_deref()) => survey,
            command = next(&mut self.commands) => return command.into(),
        };
        self.note(&survey);
        let candidates = survey.candidates;
        let connectable = self.connectable(&candidates);
        if let Some(pause) = self.pause.take_if(|pause| pause.until > Instant::now() && pause.tried == connectable) {
            let left = pause.until.saturating_duration_since(Instant::now());
            self.pause = Some(pause);
            return Plan::Wait(Some(left));
        }
        self.pause = None;
        let Some(candidate) = self.choose(&candidates) else {
            self.failed.clear();
            self.backoff.reset();
            // Whatever failed is gone: the next editor's trouble is its own.
            (self.failures, self.has_told) = (0, false);
            self.shared.trouble_is_over();
            self.set_status(LinkState::Searching, None, None, None);
            return Plan::Wait(self.zed_backoff.as_mut().map(Backoff::next));
        };
        if self.failed.contains(&candidate.id) {
            self.failed.clear();
            let is_news = self.failures >= TELL_AFTER && !self.has_told;
            self.has_told |= is_news;
            let reason = self.shared.trouble().unwrap_or_else(|| format!("{} does not answer", candidate.name));
            let message = is_news.then(|| format!("{reason}; trying again in the background"));
            self.set_status(LinkState::Waiting, Some(&candidate), None, message);
            let delay = self.backoff.next();
            self.pause = Some(Pause { until: Instant::now() + delay, tried: connectable });
            return Plan::Wait(Some(delay));
        }
        self.set_status(LinkState::Connecting, Some(&candidate), None, None);
        let Self { shared, options, scanner, watch, commands, .. } = self;
        let opened = tokio::select! {
            opened = open_candidate(&shared.env, &shared.cwd, &candidate, options.timings) => opened,
            command = next(commands) => return command.into(),
            () = another(shared, options, scanner, watch.as_deref(), &connectable) => {
                // One that hangs is not worth waiting for while another one has come.
                self.failed.push(candidate.id);
                return Plan::Find;
            }
        };
        match opened {
            Ok(opened) => self.connected(candidate, opened),
            Err(error) => {
                self.shared.trouble_is(format!("{}: {error}", candidate.name));
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

    /// The editors that may be connected to, each with the time of its lock file.
    fn connectable(&self, candidates: &[Candidate]) -> Vec<(String, u64)> {
        let may =
            |c: &&Candidate| c.standing == Standing::Usable && (c.by_itself || Some(&c.id) == self.picked.as_ref());
        candidates.iter().filter(may).map(|c| (c.id.clone(), c.modified_at)).collect()
    }

    async fn wait(&mut self, delay: Option<Duration>) -> Plan {
        tokio::select! {
            () = changed(self.watch.as_deref()) => Plan::Find,
            () = elapsed(delay) => Plan::Find,
            command = next(&mut self.commands) => command.into(),
        }
    }

    async fn switch(&mut self, candidate: Candidate, reply: SwitchReply) -> Plan {
        self.pause = None;
        self.set_status(LinkState::Connecting, Some(&candidate), None, None);
        let shared = Arc::clone(&self.shared);
        let opened = tokio::select! {
            opened = open_candidate(&shared.env, &shared.cwd, &candidate, self.options.timings) => opened,
            command = next(&mut self.commands) => return command.into(),
        };
        // A caller that does not wait for the answer does not need it.
        match opened {
            Ok(opened) => {
                self.picked = Some(candidate.id.clone());
                self.shared.pick_by_hand();
                let plan = self.connected(candidate, opened);
                let _ = reply.send(Ok(()));
                plan
            }
            Err(error) => {
                let ended = CloseReason::Broken(error.to_string());
                let _ = reply.send(Err(error));
                if self.keep_alive { Plan::Find } else { Plan::End(ended) }
            }
        }
    }

    /// Tells of a new link, which is to be held.
    pub(super) fn connected(&mut self, candidate: Candidate, Opened { link, respellings }: Opened) -> Plan {
        if let Some(backoff) = &mut self.zed_backoff {
            backoff.reset();
        }
        self.shared.trouble_is_over();
        self.shared.respell_by(respellings);
        self.shared.journal.note(format!("connected to {}", candidate.name));
        self.set_status(LinkState::Connected, Some(&candidate), Some(link.server()), None);
        Plan::Hold(Box::new((candidate, link)))
    }

    /// Remembers what the user may want to know of the folders, once.
    fn note(&mut self, survey: &Survey) {
        if self.noted.len() > MOST_NOTED {
            self.noted.clear();
        }
        let folders = survey.folders.iter();
        let problems = folders
            .filter_map(|folder| Some(format!("{}: {}", folder.folder.path.display(), folder.problem.as_ref()?)));
        for problem in problems {
            if self.noted.insert(problem.clone()) {
                self.shared.journal.note(problem);
            }
        }
        for watched in self.watch.iter().flat_map(|watch| watch.folders()) {
            let Some(polled) = watched.polled else { continue };
            let place = if polled.is_limit() { "A lock folder".into() } else { watched.path.display().to_string() };
            let message = format!("{place} {polled}; it is looked at every 2 seconds");
            if self.noted.insert(message.clone()) {
                if polled.is_limit() {
                    self.shared.warn("PIX_WATCH_LIMIT", message);
                } else {
                    self.shared.journal.note(message);
                }
            }
        }
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
            // Only a link is told of prompts, see `next`.
            Some(Command::Prompted) => Self::Find,
        }
    }
}

/// The next command that counts while no link is held.
async fn next(commands: &mut mpsc::UnboundedReceiver<Command>) -> Option<Command> {
    loop {
        match commands.recv().await {
            Some(Command::Prompted) => {}
            command => return command,
        }
    }
}

/// Returns when an editor has come that is not among those `known`. A link that is made as usual is not disturbed.
async fn another(
    shared: &Shared,
    options: &Options,
    scanner: &Scanner,
    watch: Option<&FolderWatch>,
    known: &[(String, u64)],
) {
    sleep(USUAL_DIAL).await;
    loop {
        let found = survey(shared, options, scanner, watch).await.candidates;
        let is_new = |c: &Candidate| c.by_itself && !known.iter().any(|(id, _)| *id == c.id);
        if found.iter().any(is_new) {
            return;
        }
        changed(watch).await;
    }
}

/// A look at every source; the lock folders are watched from before it on.
async fn survey(shared: &Shared, options: &Options, scanner: &Scanner, watch: Option<&FolderWatch>) -> Survey {
    let locks = async {
        let surroundings = scanner.surroundings().await;
        if let Some(watch) = watch {
            watch.arm(surroundings.folders().map(Path::to_owned).collect()).await;
        }
        scanner.survey_in(surroundings, &shared.cwd).await
    };
    with_zed(&shared.env, &shared.cwd, &options.discovery, locks).await
}

async fn changed(watch: Option<&FolderWatch>) {
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
