//! `readZed` and `watchZed`.

use std::sync::Arc;

use napi::bindgen_prelude::{AsyncBlock, Object};
use napi::{Env, Result};
use napi_derive::napi;
use pi_x_ide_bridge::env::{Env as BridgeEnv, Variables};
use pi_x_ide_bridge::protocol::snapshot::HashedSnapshot;
use pi_x_ide_bridge::{follow, zed};

use crate::abort::AbortListener;
use crate::connection::{Connection, process_folder};
use crate::failure::Failure;
use crate::host::{absolute, env_of};
use crate::promise::{Settled, abortable};
use crate::snapshot::EditorSnapshot;

/// Which of Zed's databases is read, and for which folder.
#[napi(object, object_to_js = false)]
#[derive(Default)]
pub struct ZedOptions<'env> {
    /// pi's folder (absolute): only workspaces that contain it count. Default: the process's.
    pub cwd: Option<String>,
    /// Absolute path of the database. Default: `PI_X_IDE_ZED_DB`, else that of every channel where Zed keeps them.
    pub database: Option<String>,
    /// Whether the process of Zed is looked for; otherwise a database counts that was written since this boot and within
    /// twelve hours. Default: true.
    pub check_pid: Option<bool>,
    /// With the selected text; of `readZed` only. Default: false.
    pub text: Option<bool>,
    /// Ends the attempt early; the promise rejects with its reason.
    #[napi(ts_type = "AbortSignal")]
    pub signal: Option<Object<'env>>,
}

/// What Zed shows now; null where it does not run, has no workspace that contains `cwd`, or has no file open there.
///
/// Reads once, from one state of the database, and leaves nothing beside it. Rejects with `PIX_ZED_MISSING`,
/// `PIX_ZED_DENIED`, `PIX_ZED_DAMAGED`, `PIX_ZED_SCHEMA` (a form of the tables that is not known), `PIX_ZED_BUSY`,
/// `PIX_ZED_SLOW`, `PIX_ZED_UNREADABLE` or `PIX_INVALID_ARGUMENT`.
#[napi(catch_unwind, ts_return_type = "Promise<EditorSnapshot | null>")]
pub fn read_zed(env: &Env, options: Option<ZedOptions>) -> Result<AsyncBlock<Settled<Option<EditorSnapshot>>>> {
    let options = options.unwrap_or_default();
    let abort = AbortListener::attach(env, options.signal)?;
    let (cwd, database, check_pid) = (options.cwd, options.database, options.check_pid);
    let with_text = options.text.unwrap_or(false);
    let variables = Variables::current();
    let work = async move {
        let (env, cwd, database) = what(variables, cwd, database, check_pid).await?;
        Ok(zed::read(&env, &cwd, database).await?.map(HashedSnapshot::from))
    };
    abortable(env, abort, work, move |_, hashed| {
        Ok(hashed.map(|hashed: HashedSnapshot| EditorSnapshot::new(&hashed, with_text)))
    })
}

/// A connection to Zed alone. It speaks when something changes: woken by the system's file events, else every 1000 ms
/// (`PI_X_IDE_ZED_POLL_INTERVAL_MS`, 100 to 2000), when an unchanged database costs a look at the time of its log.
/// Ends with Zed, or when the database cannot be read any more.
///
/// Rejects as `readZed` does, and with `PIX_ZED_NOT_RUNNING`.
#[napi(catch_unwind, ts_return_type = "Promise<Connection>")]
pub fn watch_zed(env: &Env, options: Option<ZedOptions>) -> Result<AsyncBlock<Settled<Connection>>> {
    let options = options.unwrap_or_default();
    let abort = AbortListener::attach(env, options.signal)?;
    let (cwd, database, check_pid) = (options.cwd, options.database, options.check_pid);
    let variables = Variables::current();
    let work = async move {
        let (env, cwd, database) = what(variables, cwd, database, check_pid).await?;
        Ok(follow::watch_zed(env, cwd, database, follow::Options::default()).await?)
    };
    abortable(env, abort, work, |_, session| Ok(Connection::new(session)))
}

async fn what(
    variables: Variables,
    cwd: Option<String>,
    database: Option<String>,
    check_pid: Option<bool>,
) -> std::result::Result<(Arc<BridgeEnv>, String, Option<String>), Failure> {
    let cwd = absolute("cwd", cwd.map_or_else(process_folder, Ok)?)?;
    let database = database.map(|path| absolute("database", path)).transpose()?;
    let mut env = env_of(variables).await?;
    if check_pid == Some(false) {
        Arc::make_mut(&mut env).vars.insert("PI_X_IDE_PID_CHECK".into(), "0".into());
    }
    Ok((env, cwd, database))
}
