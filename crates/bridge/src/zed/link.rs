//! Following one database: ticks that cost a look while nothing changes, woken at once where the system tells of
//! writes.

use std::future::pending;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep_until, timeout};

use super::error::ZedError;
use super::locate::{Place, folder_of};
use super::reader::{Reader, Reading, Scope, look};
use super::running::Running;
use crate::connection::{CloseReason, EventSink, LinkEvent};
use crate::env::Env;
use crate::protocol::json_rpc::ServerInfo;
use crate::protocol::snapshot::Snapshot;
use crate::watch::FolderWatch;

/// Between two ticks, unless `PI_X_IDE_ZED_POLL_INTERVAL_MS` says otherwise.
const TICK_EVERY: Duration = Duration::from_secs(1);
const TICK_BOUNDS: (u64, u64) = (100, 2000);

/// Whether Zed still runs is looked at no more often.
const ALIVE_EVERY: Duration = Duration::from_secs(5);

/// A database that does not answer for so long hangs.
pub(super) const READ_WITHIN: Duration = Duration::from_secs(5);

/// How long reading may fail before the link ends: Zed may just be moving or restoring its database.
const FAILING_WITHIN: Duration = Duration::from_secs(10);

/// The reading of one tick.
enum Tick {
    /// Nothing was committed.
    Unchanged,
    /// Zed has ended.
    Ended,
    Read(Result<Reading, ZedError>),
}

/// Reading has failed without a success in between.
struct Failing {
    since: Instant,
    /// Before the next try.
    delay: Duration,
    /// What was noted.
    error: Option<ZedError>,
}

/// An open link to one database of Zed. Dropping it closes the database.
pub struct Link {
    /// Who answered.
    pub server: ServerInfo,
    every: Duration,
    next: Instant,
    worker: Option<Worker>,
    /// A tick that is under way; outlives a cancelled [`Link::run`].
    busy: Option<JoinHandle<(Worker, Tick)>>,
    watch: LogWatch,
    failing: Option<Failing>,
    /// What was delivered last; `None` before the first word.
    told: Option<Option<Snapshot>>,
    first: Option<Reading>,
}

impl Link {
    /// Reads the database once: a link is only made of one that could be read, while Zed runs.
    pub async fn open(
        env: Arc<Env>,
        cwd: String,
        place: Place,
        scope: Scope,
        deadline: Instant,
    ) -> Result<Self, ZedError> {
        let (every, patience) = (tick_every(&env), env.patience.clone());
        let name = place.name.clone();
        // Without events of the system the ticks are all there is.
        let folder = (!place.is_on_windows).then(|| folder_of(&place.path));
        let begun = Worker::open(Arc::clone(&env), cwd, place, scope, deadline).await;
        let (worker, reading) = begun?;
        let watch = LogWatch(folder.map(|folder| (FolderWatch::new(patience), folder)));
        watch.arm().await;
        Ok(Self {
            server: ServerInfo { name, version: None, ide: Some("zed".into()) },
            every,
            // What was committed between the reading and the watch is not missed.
            next: Instant::now(),
            worker: Some(worker),
            busy: None,
            watch,
            failing: None,
            told: None,
            first: Some(reading),
        })
    }

    /// Hands on what changes until Zed ends or its database cannot be read any more. Cancel-safe.
    pub async fn run(&mut self, sink: &impl EventSink) -> CloseReason {
        if let Some(reading) = self.first.take() {
            self.deliver(reading, sink);
        }
        loop {
            if self.busy.is_none() {
                self.wait().await;
            }
            sink.room().await;
            match self.tick().await {
                Tick::Unchanged => self.failing = None,
                Tick::Ended => return CloseReason::Broken("Zed has ended".into()),
                Tick::Read(Ok(reading)) => {
                    self.failing = None;
                    self.deliver(reading, sink);
                    self.watch.arm().await;
                }
                // Asked again at the next tick, as often as it takes.
                Tick::Read(Err(ZedError::Busy)) => {}
                Tick::Read(Err(error)) => {
                    if let Some(reason) = self.failed(error, sink) {
                        return reason;
                    }
                }
            }
        }
    }

    /// Notes each trouble once and waits longer each time; the reason to end when that does not help.
    fn failed(&mut self, error: ZedError, sink: &impl EventSink) -> Option<CloseReason> {
        let now = Instant::now();
        let last = self.failing.take().unwrap_or(Failing { since: now, delay: self.every, error: None });
        if last.error.as_ref() != Some(&error) {
            sink.note(error.to_string());
        }
        if error == ZedError::Slow || now - last.since >= FAILING_WITHIN {
            return Some(CloseReason::Broken(error.to_string()));
        }
        self.next = now + last.delay;
        self.failing = Some(Failing { delay: (last.delay * 2).min(FAILING_WITHIN), error: Some(error), ..last });
        None
    }

    async fn wait(&mut self) {
        tokio::select! {
            () = sleep_until(self.next) => {}
            // What fails is not tried more often because of events, some of which may be our own.
            () = self.watch.changed(), if self.failing.is_none() => {}
        }
        self.next = Instant::now() + self.every;
    }

    async fn tick(&mut self) -> Tick {
        if let Some(mut worker) = self.worker.take() {
            self.busy = Some(tokio::task::spawn_blocking(move || {
                let tick = worker.tick();
                (worker, tick)
            }));
        }
        let Some(busy) = self.busy.as_mut() else {
            return Tick::Ended;
        };
        let Ok(ticked) = timeout(READ_WITHIN, busy).await else {
            // Its thread ends when the drive answers.
            return Tick::Read(Err(ZedError::Slow));
        };
        self.busy = None;
        // Fails only when the runtime is going down.
        let Ok((worker, tick)) = ticked else { return Tick::Ended };
        self.worker = Some(worker);
        tick
    }

    fn deliver(&mut self, reading: Reading, sink: &impl EventSink) {
        if let Some(caveat) = reading.caveat {
            sink.note(caveat);
        }
        if self.told.as_ref() == Some(&reading.snapshot) {
            return;
        }
        self.told = Some(reading.snapshot.clone());
        sink.deliver(reading.snapshot.map_or(LinkEvent::Cleared, LinkEvent::Selection));
    }
}

/// Wakes at writes beside the database, where the system tells of them.
struct LogWatch(Option<(FolderWatch, PathBuf)>);

impl LogWatch {
    /// Zed may have moved the folder aside; costs a look where nothing did.
    async fn arm(&self) {
        if let Some((watch, folder)) = &self.0 {
            watch.arm(vec![folder.clone()]).await;
        }
    }

    async fn changed(&self) {
        match &self.0 {
            Some((watch, _)) => watch.changed().await,
            None => pending().await,
        }
    }
}

/// `PI_X_IDE_ZED_POLL_INTERVAL_MS`, kept within bounds.
fn tick_every(env: &Env) -> Duration {
    let given = env.var("PI_X_IDE_ZED_POLL_INTERVAL_MS").and_then(|text| text.parse::<f64>().ok());
    let given = given.filter(|millis| *millis > 0.0).map(|millis| millis as u64);
    given.map_or(TICK_EVERY, |millis| Duration::from_millis(millis.clamp(TICK_BOUNDS.0, TICK_BOUNDS.1)))
}

/// What a tick needs; goes to a thread and comes back.
struct Worker {
    env: Arc<Env>,
    reader: Reader,
    running: Running,
    asked: Instant,
    seen: Option<((u64, u64), SystemTime, u64)>,
    /// The tick after a change reads again: two commits may bear the same time.
    must_read: bool,
}

impl Worker {
    async fn open(
        env: Arc<Env>,
        cwd: String,
        place: Place,
        scope: Scope,
        deadline: Instant,
    ) -> Result<(Self, Reading), ZedError> {
        let patience = env.patience.clone();
        let path = place.path.clone();
        let open = move || {
            let running = Running::find(&env, &place).ok_or(ZedError::NotRunning)?;
            let seen = look(&place.path);
            let mut reader = Reader::new(Arc::clone(&env), cwd, place, scope);
            let reading = reader.read()?;
            Ok((Self { env, reader, running, asked: Instant::now(), seen, must_read: true }, reading))
        };
        patience.run(path, deadline, open).await.unwrap_or(Err(ZedError::Slow))
    }

    fn tick(&mut self) -> Tick {
        if self.has_ended() {
            return Tick::Ended;
        }
        let now = look(&self.reader.place().path);
        let looks_the_same = now.is_some() && now == self.seen;
        if looks_the_same && !self.must_read {
            return Tick::Unchanged;
        }
        // Told by the looks, confirmed by the database, which knows its commits.
        if !self.must_read && !self.reader.has_changed() {
            self.seen = now;
            self.must_read = true;
            return Tick::Unchanged;
        }
        let read = self.reader.read();
        // Whatever failed is tried again.
        self.must_read = !looks_the_same || read.is_err();
        self.seen = now;
        Tick::Read(read)
    }

    fn has_ended(&mut self) -> bool {
        if self.asked.elapsed() < ALIVE_EVERY {
            return false;
        }
        self.asked = Instant::now();
        if self.running.still(&self.env, self.reader.place()) {
            return false;
        }
        // It may have been restarted since.
        match Running::find(&self.env, self.reader.place()) {
            Some(running) => self.running = running,
            None => return true,
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_interval_is_kept_within_bounds() {
        let mut env = Env::current();
        for (given, millis) in [
            ("", 1000),
            ("1", 100),
            ("250", 250),
            ("250.5", 250),
            ("5000", 2000),
            ("-1", 1000),
            ("NaN", 1000),
            ("x", 1000),
        ] {
            env.vars.insert("PI_X_IDE_ZED_POLL_INTERVAL_MS".into(), given.into());
            assert_eq!(tick_every(&env).as_millis(), millis, "{given}");
        }
    }
}
