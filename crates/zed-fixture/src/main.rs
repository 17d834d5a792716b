//! `zed-fixture`: builds synthetic Zed state databases and writes to them as a running Zed does.

use std::io::{self, Write};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use lexopt::prelude::*;
use pi_x_ide_zed_fixture::{Generation, LiveOptions, Made, Options, Scenario, live, make};
use serde::Serialize;

type Error = Box<dyn std::error::Error + Send + Sync>;

const HELP: &str = "\
Builds synthetic Zed state databases, for tests. One JSON line per event on stdout.

  --out DIR               folder to write; a database already there is replaced
  --gen NAME              2023, 2024, 2025a, 2025b, 2025c or 2026 (the default)
  --all-gens              every generation, each in a sub-folder of DIR
  --scenarios LIST        comma list; '+x' adds x to the default, '-x' drops x from it
  --windows N             windows of the current session (2)
  --history-workspaces N  old workspaces (0)
  --history-editors N     editors in each of them (0)
  --history-mb N          total size of their unsaved texts (0)
  --big-file-mb N         adds an editor on a file of this size
  --json-paths            the main workspace's paths as a JSON array
  --channel NAME          stable (the default), preview, nightly, dev
  --seed N                (7)
  --close                 close cleanly; otherwise -wal and -shm stay as after a crash

  --live                  go on writing until stdin closes or the duration is over, then close cleanly
  --interval-ms N         pause before each change (250)
  --duration S            seconds, with a fraction if need be
  --cursors N             selections per change (1)
  --switch-every N        activate another editor with every Nth change
  --type-every N          write the buffer's text with every Nth change
  --checkpoint-every N    make a PASSIVE checkpoint with every Nth change
  --gap-ms N              pause between DELETE and INSERT
  --atomic                DELETE and INSERT in one transaction
  --crash                 end without closing the database
";

struct Arguments {
    out: PathBuf,
    all_generations: bool,
    options: Options,
    close: bool,
    live: Option<LiveOptions>,
    crash: bool,
}

fn main() -> ExitCode {
    match parse(lexopt::Parser::from_env()).and_then(|arguments| arguments.map_or(Ok(()), run)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let _ = writeln!(io::stderr(), "zed-fixture: {error}");
            ExitCode::FAILURE
        }
    }
}

/// None after help was asked for and given.
fn parse(mut parser: lexopt::Parser) -> Result<Option<Arguments>, Error> {
    let mut out = None;
    let mut options = Options::default();
    let mut all_generations = false;
    let (mut close, mut crash, mut is_live) = (false, false, false);
    let mut writing = LiveOptions::default();
    while let Some(argument) = parser.next()? {
        match argument {
            Long("out") => out = Some(PathBuf::from(parser.value()?)),
            Long("gen") => options.generation = parser.value()?.parse_with(Generation::parse)?,
            Long("all-gens") => all_generations = true,
            Long("scenarios") => options.scenarios = parser.value()?.parse_with(Scenario::parse_list)?,
            Long("windows") => options.windows = parser.value()?.parse()?,
            Long("history-workspaces") => options.history_workspaces = parser.value()?.parse()?,
            Long("history-editors") => options.history_editors = parser.value()?.parse()?,
            Long("history-mb") => options.history_mb = parser.value()?.parse()?,
            Long("big-file-mb") => options.big_file_mb = parser.value()?.parse()?,
            Long("json-paths") => options.json_paths = true,
            Long("channel") => options.channel = parser.value()?.string()?,
            Long("seed") => {
                options.seed = parser.value()?.parse()?;
                writing.seed = options.seed.wrapping_add(1);
            }
            Long("close") => close = true,
            Long("live") => is_live = true,
            Long("interval-ms") => writing.interval = milliseconds(&mut parser)?,
            Long("duration") => {
                writing.duration = Some(Duration::try_from_secs_f64(parser.value()?.parse()?)?);
            }
            Long("cursors") => writing.cursors = parser.value()?.parse()?,
            Long("switch-every") => writing.switch_every = parser.value()?.parse()?,
            Long("type-every") => writing.type_every = parser.value()?.parse()?,
            Long("checkpoint-every") => writing.checkpoint_every = parser.value()?.parse()?,
            Long("gap-ms") => writing.gap = milliseconds(&mut parser)?,
            Long("atomic") => writing.atomic = true,
            Long("crash") => crash = true,
            Long("help") | Short('h') => {
                io::stdout().write_all(HELP.as_bytes())?;
                return Ok(None);
            }
            _ => return Err(argument.unexpected().into()),
        }
    }
    if is_live && all_generations {
        return Err("--live needs one generation".into());
    }
    let out = out.ok_or("--out is needed")?;
    Ok(Some(Arguments { out, all_generations, options, close, live: is_live.then_some(writing), crash }))
}

fn milliseconds(parser: &mut lexopt::Parser) -> Result<Duration, Error> {
    Ok(Duration::from_millis(parser.value()?.parse()?))
}

fn run(arguments: Arguments) -> Result<(), Error> {
    let Arguments { out, all_generations, mut options, close, live, crash } = arguments;
    if let Some(writing) = live {
        return run_live(make(&out, &options)?, writing, crash);
    }
    if !all_generations {
        return report(make(&out, &options)?, close);
    }
    for generation in Generation::ALL {
        options.generation = generation;
        report(make(&out.join(generation.name()), &options)?, close)?;
    }
    Ok(())
}

#[derive(Serialize)]
struct MadeLine<'a> {
    event: &'static str,
    db: &'a Path,
    generation: Generation,
    workspace_id: i64,
    item_id: Option<i64>,
    bytes: u64,
}

fn report(made: Made, close: bool) -> Result<(), Error> {
    let expected = if close { made.close()? } else { made.crash()? };
    emit(&MadeLine {
        event: "made",
        db: &expected.db,
        generation: expected.generation,
        workspace_id: expected.active.workspace_id,
        item_id: expected.active.item_id,
        bytes: std::fs::metadata(&expected.db)?.len(),
    })?;
    Ok(())
}

fn run_live(mut made: Made, options: LiveOptions, crash: bool) -> Result<(), Error> {
    stop_with_stdin(Arc::clone(&options.stop));
    let mut output = Ok(());
    live(&mut made, &options, &mut |event| {
        output = emit(&event);
        if output.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    })?;
    if crash {
        // No destructor runs, so the database stays as a killed process leaves it.
        std::process::exit(0);
    }
    made.close()?;
    Ok(output?)
}

/// Whoever started us closes our stdin to end us, or dies, which does the same.
fn stop_with_stdin(stop: Arc<AtomicBool>) {
    thread::spawn(move || {
        let _ = io::copy(&mut io::stdin(), &mut io::sink());
        stop.store(true, Ordering::Relaxed);
    });
}

fn emit(event: &impl Serialize) -> io::Result<()> {
    let mut line = serde_json::to_string(event)?;
    line.push('\n');
    let mut stdout = io::stdout().lock();
    stdout.write_all(line.as_bytes())?;
    stdout.flush()
}
