//! What several test modules share.

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::connection::{EventSink, LinkEvent};
use crate::env::Env;
use crate::protocol::lenient::Text;
use crate::protocol::snapshot::Snapshot;

/// This machine with another home folder and no variables.
pub(crate) fn env_with_home(home: &Path) -> Arc<Env> {
    Arc::new(Env { home: Some(home.to_owned()), vars: HashMap::new(), ..Env::current() })
}

/// A machine that looks like WSL: a system root with `etc`, `proc` and `sys`, and Windows drives.
#[cfg(target_os = "linux")]
pub(crate) struct FakeWsl {
    root: tempfile::TempDir,
}

#[cfg(target_os = "linux")]
impl FakeWsl {
    pub(crate) fn new() -> Self {
        let fake = Self { root: tempfile::tempdir().unwrap() };
        for folder in ["etc", "proc/net", "sys/class/net", "drives"] {
            std::fs::create_dir_all(fake.root.path().join(folder)).unwrap();
        }
        let conf = format!("[automount]\nroot = {}\n", fake.drives().display());
        std::fs::write(fake.root.path().join("etc/wsl.conf"), conf).unwrap();
        fake
    }

    /// Where its Windows drives are mounted.
    pub(crate) fn drives(&self) -> std::path::PathBuf {
        self.root.path().join("drives")
    }

    pub(crate) fn drive(&self, letter: char) -> std::path::PathBuf {
        self.drives().join(letter.to_string())
    }

    /// Text of `/proc/net/route`.
    pub(crate) fn route_table(&self, text: &str) {
        std::fs::write(self.root.path().join("proc/net/route"), text).unwrap();
    }

    /// A default route to this gateway, as the kernel's table has it.
    pub(crate) fn gateway(&self, gateway: std::net::Ipv4Addr) {
        let hex = format!("{:08X}", u32::from_ne_bytes(gateway.octets()));
        self.route_table(&format!(
            "Iface\tDestination\tGateway\tFlags\tRefCnt\tUse\tMetric\tMask\tMTU\tWindow\tIRTT\n\
             eth0\t00000000\t{hex}\t0003\t0\t0\t0\t00000000\t0\t0\t0\n"
        ));
    }

    /// The lock folder of a Windows user on drive `C:`, everything as open as a Windows drive shows it.
    pub(crate) fn profile(&self, user: &str) -> std::path::PathBuf {
        use std::os::unix::fs::PermissionsExt;

        let folder = Env::lock_dir_in(&self.drive('c').join("Users").join(user));
        std::fs::create_dir_all(&folder).unwrap();
        for folder in folder.ancestors().take_while(|above| *above != self.drives()) {
            std::fs::set_permissions(folder, std::fs::Permissions::from_mode(0o777)).unwrap();
        }
        folder
    }

    /// A home folder of its own, these variables, and the distribution `Ubuntu`.
    pub(crate) fn env(&self, vars: &[(&str, &str)]) -> Env {
        let vars = vars.iter().chain(&[("WSL_DISTRO_NAME", "Ubuntu")]);
        let vars = vars.map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        let home = self.root.path().join("home/u");
        std::fs::create_dir_all(&home).unwrap();
        Env::of_system(crate::env::Variables::new(vars, Some(home)), self.root.path())
    }
}

/// Makes a pipe that nobody reads or writes.
#[cfg(unix)]
pub(crate) fn make_pipe(path: &Path) {
    assert!(std::process::Command::new("mkfifo").arg(path).status().unwrap().success());
}

/// An open file without a selection.
pub(crate) fn snapshot(file: &str) -> Snapshot {
    Snapshot {
        source: "vscode".into(),
        file_path: Text(file.into()),
        workspace_folder: None,
        ranges: Vec::new(),
        received_at: None,
    }
}

/// Waits until a condition holds; panics after ten seconds.
pub(crate) async fn until(what: &str, condition: impl Fn() -> bool) {
    for _ in 0..2000 {
        if condition() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    panic!("never: {what}");
}

/// Remembers the events of a link.
#[derive(Default)]
pub(crate) struct Seen(pub(crate) Mutex<Vec<LinkEvent>>);

impl EventSink for Seen {
    fn deliver(&self, event: LinkEvent) {
        self.0.lock().unwrap().push(event);
    }

    fn note(&self, _: String) {}

    async fn room(&self) {}
}
