//! What the addon knows of its process.

use std::sync::{Arc, LazyLock};

use pi_x_ide_bridge::config;
use pi_x_ide_bridge::env::{Env, Patience, Variables};
use pi_x_ide_bridge::paths::Host;

use crate::failure::Failure;

/// Operating system and WSL facts do not change while a process lives.
static HOST: LazyLock<Host> = LazyLock::new(|| Env::current().host);

/// Shared by all calls: a drive that hangs holds up none twice.
static PATIENCE: LazyLock<Patience> = LazyLock::new(Patience::default);

/// Facts for pure path computations.
pub fn host() -> &'static Host {
    &HOST
}

/// The environment that was taken on the JavaScript thread, without any configuration. Reads small files of the system,
/// on the blocking pool.
pub async fn bare_env_of(variables: Variables) -> Result<Env, Failure> {
    let read = tokio::task::spawn_blocking(move || Env { patience: PATIENCE.clone(), ..Env::of(variables) });
    read.await.map_err(|_| Failure::closed("the process"))
}

/// The same with what the global configuration sets, unless the home folder hangs.
pub async fn env_of(variables: Variables) -> Result<Arc<Env>, Failure> {
    let env = bare_env_of(variables).await?;
    Ok(Arc::new(config::apply(env).await))
}

/// A folder that JavaScript names: absolute, so that it does not depend on where the process stands.
pub fn absolute(name: &str, folder: String) -> Result<String, Failure> {
    if std::path::Path::new(&folder).is_absolute() {
        Ok(folder)
    } else {
        Err(Failure::invalid(format!("{name} must be an absolute path, not {folder:?}")))
    }
}
