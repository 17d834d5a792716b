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

/// The environment that was taken on the JavaScript thread, with the defaults of the global configuration. Reads small
/// files, on the blocking pool: a home folder that hangs must not stop the links of others.
pub async fn env_of(variables: Variables, cwd: &str) -> Result<Arc<Env>, Failure> {
    let cwd = cwd.to_owned();
    let read = tokio::task::spawn_blocking(move || {
        let env = Env::of(variables);
        let config = config::load(&env, &cwd);
        let env = env.with_defaults(&config.env);
        Arc::new(Env { path_map: config.path_map, patience: PATIENCE.clone(), ..env })
    });
    read.await.map_err(|_| Failure::closed("the process"))
}

/// A folder that JavaScript names: absolute, so that it does not depend on where the process stands.
pub fn absolute(name: &str, folder: String) -> Result<String, Failure> {
    if std::path::Path::new(&folder).is_absolute() {
        Ok(folder)
    } else {
        Err(Failure::invalid(format!("{name} must be an absolute path, not {folder:?}")))
    }
}
