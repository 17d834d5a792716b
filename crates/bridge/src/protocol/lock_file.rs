//! Lock files. Protocol: "Lock files".

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::PROTOCOL_VERSION;

/// Largest lock file that is read or written. Real ones have some hundred bytes.
pub(crate) const MAX_BYTES: u64 = 1024 * 1024;

/// A valid lock file, normalised: see [`parse`].
///
/// Not `Debug`: it carries the token, which must not reach a log.
#[derive(Clone, PartialEq)]
pub struct LockFile {
    /// Kind of editor.
    pub ide: String,
    /// Name for people.
    pub name: String,
    /// Host as the editor sees itself; never empty.
    pub host: String,
    /// Port of the server.
    pub port: u16,
    /// Secret for the upgrade header.
    pub auth_token: String,
    /// Open folders, in the editor's path form, not judged.
    pub workspace_folders: Vec<String>,
    /// Process that owns the socket, if that is a usable number.
    pub pid: Option<u64>,
    /// Whether the editor runs on native Windows.
    pub running_in_windows: bool,
    /// Machine of the writer, see `Env::host_id`.
    pub host_id: Option<String>,
    /// When the editor's window had the focus last, in milliseconds since the epoch.
    pub focused_at: Option<f64>,
}

/// What the text of a lock file turned out to be.
pub enum Parsed {
    /// A lock of version 1.
    Valid(LockFile),
    /// An object of another version: listed with the reason, never deleted.
    Unsupported,
    /// No lock at all, with what is wrong.
    Malformed(String),
}

/// Largest integer that JSON numbers of every editor keep exactly.
const MAX_SAFE_INTEGER: f64 = 9_007_199_254_740_991.0;

/// Reads the text of one lock file.
///
/// Required: `version` 1, a non-empty `ide`, `transport` "ws", `host`, `port` 1 to 65535, `authToken`,
/// `workspaceFolders`. A missing `name` is the ide, an empty `host` 127.0.0.1, a `pid` that is no integer from 1 to
/// 2^53-1 counts as absent. Unknown members are ignored.
pub fn parse(text: &str) -> Parsed {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let value: Value = match serde_json::from_str(text) {
        Ok(value) => value,
        Err(error) => return Parsed::Malformed(format!("not JSON: {error}")),
    };
    match value.get("version") {
        None => Parsed::Malformed("no version".into()),
        Some(version) if version.as_f64() != Some(PROTOCOL_VERSION as f64) => Parsed::Unsupported,
        Some(_) => match serde_path_to_error::deserialize::<_, Wire>(value) {
            Ok(wire) => wire.validated().map_or_else(Parsed::Malformed, Parsed::Valid),
            Err(error) => Parsed::Malformed(without_values(&error)),
        },
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Wire {
    ide: String,
    #[serde(default)]
    name: Option<String>,
    transport: String,
    host: String,
    port: f64,
    auth_token: String,
    workspace_folders: Vec<String>,
    #[serde(default)]
    pid: Value,
    #[serde(default, deserialize_with = "super::lenient::present")]
    running_in_windows: Option<bool>,
    #[serde(default)]
    host_id: Value,
    #[serde(default)]
    focused_at: Value,
}

/// What is wrong with which member, but not what stands there: it may be the token.
fn without_values(error: &serde_path_to_error::Error<serde_json::Error>) -> String {
    let what = error.inner().to_string();
    match what.rsplit_once("expected ") {
        Some((_, expected)) => format!("{} is not {expected}", error.path()),
        None if what.starts_with("missing field") => what,
        None => format!("{} is not valid", error.path()),
    }
}

impl Wire {
    fn validated(self) -> Result<LockFile, String> {
        if self.ide.is_empty() {
            return Err("ide is empty".into());
        }
        if self.transport != "ws" {
            return Err("transport is not ws".into());
        }
        if self.port.fract() != 0.0 || !(1.0..=65535.0).contains(&self.port) {
            return Err("port is not from 1 to 65535".into());
        }
        Ok(LockFile {
            name: self.name.unwrap_or_else(|| self.ide.clone()),
            ide: self.ide,
            host: if self.host.is_empty() { "127.0.0.1".into() } else { self.host },
            port: self.port as u16,
            auth_token: self.auth_token,
            workspace_folders: self.workspace_folders,
            pid: usable_pid(&self.pid),
            running_in_windows: self.running_in_windows.unwrap_or(false),
            host_id: self.host_id.as_str().map(str::to_owned),
            focused_at: self.focused_at.as_f64(),
        })
    }
}

/// The pid if it is an integer from 1 to 2^53-1.
pub fn usable_pid(pid: &Value) -> Option<u64> {
    let number = pid.as_f64()?;
    (number.fract() == 0.0 && (1.0..=MAX_SAFE_INTEGER).contains(&number)).then_some(number as u64)
}

/// `<ide>-<pid>-<port>.lock` taken apart; the ide may hold hyphens itself.
pub fn parse_name(file_name: &str) -> Option<(&str, u64, u16)> {
    let mut parts = file_name.strip_suffix(".lock")?.rsplitn(3, '-');
    let (port, pid, ide) = (parts.next()?, parts.next()?, parts.next()?);
    Some((ide, pid.parse().ok()?, port.parse().ok()?)).filter(|(ide, pid, _)| !ide.is_empty() && *pid != 0)
}

/// A lock file as our own writers write it.
#[derive(Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct OwnLock {
    /// Always 1.
    pub version: u64,
    /// Kind of editor.
    pub ide: String,
    /// Name for people.
    pub name: String,
    /// Always `ws`.
    pub transport: &'static str,
    /// Always 127.0.0.1.
    pub host: String,
    /// Port of the server.
    pub port: u16,
    /// Secret for the upgrade header.
    pub auth_token: String,
    /// Open folders.
    pub workspace_folders: Vec<String>,
    /// This process.
    pub pid: u32,
    /// Whether this is native Windows.
    pub running_in_windows: bool,
    /// When the lock was made, RFC 3339.
    pub created_at: String,
    /// When it was refreshed last, RFC 3339.
    pub updated_at: String,
    /// Machine of the writer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host_id: Option<String>,
    /// When the editor's window had the focus last, in milliseconds since the epoch.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub focused_at: Option<u64>,
}

impl OwnLock {
    /// `<ide>-<pid>-<port>.lock`.
    pub fn file_name(&self) -> String {
        format!("{}-{}-{}.lock", self.ide, self.pid, self.port)
    }

    /// Pretty JSON with a final newline, as every other producer writes it.
    pub fn to_text(&self) -> String {
        // Strings, numbers and lists always serialise.
        let mut text = serde_json::to_string_pretty(self).unwrap_or_default();
        text.push('\n');
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_taken_apart_from_the_right() {
        assert_eq!(parse_name("vscode-12-48123.lock"), Some(("vscode", 12, 48123)));
        assert_eq!(parse_name("my-ide-12-48123.lock"), Some(("my-ide", 12, 48123)));
        for name in ["-12-1.lock", "a-12-70000.lock", "a-0-1.lock", "a-x-1.lock", "a-1.lock", "a-1-1", ".lock"] {
            assert_eq!(parse_name(name), None, "{name}");
        }
    }

    #[test]
    fn a_byte_order_mark_is_no_fault() {
        assert!(matches!(parse("\u{feff}{\"version\":2}"), Parsed::Unsupported));
    }

    #[test]
    fn what_is_wrong_is_told_without_what_stands_there() {
        let valid = serde_json::json!({
            "version": 1, "ide": "x", "transport": "ws", "host": "", "port": 1, "authToken": "t", "workspaceFolders": [],
        });
        for (member, value, told) in [
            ("authToken", serde_json::json!(987_654_321), "authToken is not a string"),
            ("workspaceFolders", "SECRET, expected SECRET".into(), "workspaceFolders is not a sequence"),
            ("workspaceFolders", serde_json::json!(["/w", {"SECRET": 1}]), "workspaceFolders[1] is not a string"),
            ("port", "SECRET".into(), "port is not f64"),
            ("port", serde_json::json!(987_654_321), "port is not from 1 to 65535"),
            ("transport", "SECRET".into(), "transport is not ws"),
        ] {
            let mut lock = valid.clone();
            lock[member] = value;
            let Parsed::Malformed(reason) = parse(&lock.to_string()) else { panic!("{lock}") };
            assert_eq!(reason, told);
        }
    }
}
