//! What a user needs to know when no editor is found: where was looked, what was found, and what to do.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use crate::discovery::{Candidate, Options, Standing, Survey, SurveyedFolder};
use crate::env::{Env, windows_profiles};
use crate::host::{Network, Networking};
use crate::sources;

/// Home folders on a drive that hangs are left out.
const HOMES_WITHIN: Duration = Duration::from_millis(300);

/// One look at everything that decides on a connection. Carries no token.
#[derive(Debug, Clone, PartialEq)]
pub struct Diagnosis {
    /// How this process sees Windows.
    pub network: Network,
    /// Lock folders, the user's own first.
    pub folders: Vec<SurveyedFolder>,
    /// Every lock with its verdict, usable ones first.
    pub candidates: Vec<Candidate>,
    /// Home folders, which a report for others should not name.
    pub homes: Vec<PathBuf>,
    /// What to do, as sentences; empty where nothing is to be done.
    pub advice: Vec<String>,
}

/// Looks at every lock folder and asks every port; deletes nothing.
pub async fn diagnose(env: &Arc<Env>, cwd: &str, options: &Options) -> Diagnosis {
    let options = Options { all: true, clean_up: false, ..options.clone() };
    let Survey { network, folders, candidates } = sources::survey(env, cwd, &options).await;
    let homes = {
        let (snapshot, deadline) = (Arc::clone(env), Instant::now() + HOMES_WITHIN);
        let found = env.patience.run("the home folders", deadline, move || homes(&snapshot)).await;
        found.unwrap_or_else(|| env.home.iter().cloned().collect())
    };
    let advice = advice(env, &network, &folders, &candidates);
    Diagnosis { network, folders, candidates, homes, advice }
}

fn homes(env: &Env) -> Vec<PathBuf> {
    let mut homes: Vec<_> = env.home.iter().cloned().chain(windows_profiles(env)).collect();
    let real: Vec<_> = homes.iter().filter_map(|home| home.canonicalize().ok()).collect();
    homes.extend(real);
    homes.sort();
    homes.dedup();
    homes
}

/// What to do, most useful first. Pure.
fn advice(env: &Env, network: &Network, folders: &[SurveyedFolder], candidates: &[Candidate]) -> Vec<String> {
    let mut advice = Vec::new();
    let has = |standing| candidates.iter().any(|candidate| candidate.standing == standing);
    let is_direct = |candidate: &Candidate| candidate.direct && candidate.standing == Standing::Usable;
    if candidates.iter().any(is_direct) {
        // Whatever else there is does not stand in the way.
        return advice;
    }
    if let Some(host) = env.host_override().filter(|_| has(Standing::Stale) || has(Standing::NotAnswering)) {
        advice.push(format!(
            "Nothing answers at PI_X_IDE_HOST_OVERRIDE, {host}: it is the name or address of the editor's machine, \
             without a port."
        ));
    }
    let has_trouble = has(Standing::Untrusted) || folders.iter().any(|folder| folder.problem.is_some());
    let is_behind_gateway = network.networking == Networking::WslNat && has(Standing::Stale);
    let is_told_below = is_behind_gateway || (env.host_override().is_some() && has(Standing::Stale));
    if has(Standing::Usable) {
        advice.push("Open this folder in the editor, or pick one of the editors found with /ide.".into());
    } else if !has(Standing::NotAnswering) && !has(Standing::HostRefused) && !has_trouble && !is_told_below {
        advice.push("Start an editor that has a pi-x-ide plugin; pi connects by itself as soon as it runs.".into());
    }
    if has(Standing::NotAnswering) && env.host_override().is_none() {
        advice.push(
            "An editor runs whose server does not answer: reload its window. If pi runs in a container, set \
             PI_X_IDE_HOST_OVERRIDE to the host's address."
                .into(),
        );
    }
    if is_behind_gateway {
        let gateway = network.gateway.as_deref().unwrap_or("of Windows, which the routing table does not tell");
        advice.push(format!(
            "The editor on Windows does not answer at the gateway {gateway}: switch on its WSL listener and let the \
             firewall of Windows pass it, or use networkingMode=mirrored in .wslconfig."
        ));
    }
    if has_trouble {
        advice.push(
            "A lock folder or file is not used, and its line says why: it must be your own, a plain folder or file, and \
             writable by nobody else."
                .into(),
        );
    }
    if has(Standing::HostRefused) {
        advice.push("A lock names a host that is not this machine; if it is meant, set PI_X_IDE_HOST_OVERRIDE.".into());
    }
    if has(Standing::ForeignHost) {
        advice.push("Editors of another machine are not dialled; to reach one, set PI_X_IDE_HOST_OVERRIDE.".into());
    }
    if has(Standing::Unsupported) {
        advice.push("Update pi-x-ide: an editor's plugin speaks a newer protocol.".into());
    }
    if env.home.is_none() {
        advice.push("There is no home folder: set HOME.".into());
    }
    advice
}

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests {
    use std::fs;

    use super::*;
    use crate::server::{self, Server};
    use crate::testing::{FakeWsl, env_with_home};

    async fn diagnosis(env: &Arc<Env>) -> Diagnosis {
        diagnose(env, "/w/app", &Options::default()).await
    }

    async fn editor(env: &Arc<Env>, folder: &str) -> Server {
        let options = server::Options {
            ide: "vscode".into(),
            name: "Test".into(),
            version: None,
            workspace_folders: vec![folder.into()],
            lock_dir: None,
            allowed_hosts: Vec::new(),
            heartbeat: Duration::from_secs(900),
            wsl_listener: false,
        };
        Server::start(Arc::clone(env), options).await.unwrap()
    }

    #[tokio::test]
    async fn advice_follows_what_is_wrong_and_nothing_is_deleted() {
        let home = tempfile::tempdir().unwrap();
        let env = env_with_home(home.path());
        assert!(diagnosis(&env).await.advice[0].contains("Start an editor"));
        let other = editor(&env, "/elsewhere").await;
        assert!(diagnosis(&env).await.advice[0].contains("Open this folder"));
        let dead = other.lock_file().with_file_name("vscode-2147483647-1.lock");
        let text = fs::read_to_string(other.lock_file()).unwrap();
        let text = text.replace(&std::process::id().to_string(), "2147483647");
        fs::write(&dead, text.replace(&format!("\"port\": {}", other.port()), "\"port\": 1")).unwrap();
        let found = diagnosis(&env).await;
        assert!(dead.exists() && found.candidates.len() == 2, "{found:?}");
        let here = editor(&env, "/w").await;
        let found = diagnosis(&env).await;
        assert!(found.advice.is_empty() && found.candidates[0].direct, "{found:?}");
        assert_eq!(found.folders[0].locks, 3);
        assert!(found.homes.contains(&home.path().to_owned()));
        here.close().await;
        other.close().await;
    }

    #[tokio::test]
    async fn a_host_that_does_not_answer_is_named() {
        let home = tempfile::tempdir().unwrap();
        let mut env = (*env_with_home(home.path())).clone();
        let editor = editor(&Arc::new(env.clone()), "/w").await;
        env.vars.insert("PI_X_IDE_HOST_OVERRIDE".into(), "127.0.0.1:80".into());
        let found = diagnosis(&Arc::new(env)).await;
        assert!(found.advice[0].contains("127.0.0.1:80") && found.advice[0].contains("without a port"), "{found:?}");
        editor.close().await;
    }

    #[tokio::test]
    async fn an_unreachable_windows_is_named() {
        let wsl = FakeWsl::new();
        let folder = Env::lock_dir_in(&wsl.drive('c').join("Users/me"));
        fs::create_dir_all(&folder).unwrap();
        let lock = r#"{"version":1,"ide":"vscode","transport":"ws","host":"127.0.0.1","port":1,"authToken":"t",
            "workspaceFolders":["C:\\w"],"pid":4,"runningInWindows":true}"#;
        fs::write(folder.join("vscode-4-1.lock"), lock).unwrap();
        let found = diagnosis(&Arc::new(wsl.env(&[]))).await;
        assert!(found.advice.iter().any(|line| line.contains("WSL listener")), "{found:?}");
        assert_eq!((found.folders.len(), found.folders[1].folder.of_windows), (2, true));
    }
}
