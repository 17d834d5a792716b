//! `config.json`, global and project: typed values, problems with line and column. Reads only.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value};
use tokio::time::Instant;

use crate::env::Env;
use crate::paths::PathMapping;
use crate::trusted::{Distrust, read_own, read_regular};

/// Effective configuration of one folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Config {
    /// Where the line is shown.
    pub status_display: StatusDisplay,
    /// Characters of the line.
    pub icons: Icons,
    /// How much leaves the editor.
    pub share: Share,
    /// Whether a file without a selection goes along.
    pub open_file: bool,
    /// Prompt for diagnostics; of the global file.
    pub fix_prompt: Option<String>,
    /// Defaults for environment variables; of the global file.
    pub env: HashMap<String, String>,
    /// Where folders of editors lie for this process; of the global file.
    pub path_map: Vec<PathMapping>,
    /// What could not be used, as sentences that name file and place.
    pub problems: Vec<String>,
}

/// Where the line is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum StatusDisplay {
    /// Above the input box.
    #[default]
    Widget,
    /// In the footer.
    Statusline,
}

/// Characters of the line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Icons {
    /// Symbols that most fonts have.
    #[default]
    Unicode,
    /// A Nerd Font.
    Nerd,
    /// Letters and punctuation.
    Ascii,
}

/// How much leaves the editor, strictest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum Share {
    /// Nothing.
    Off,
    /// Editor, file and lines.
    Path,
    /// Everything that the protocols allow.
    #[default]
    Full,
}

/// Reads both files for `cwd`. Never fails: a file that cannot be used shares nothing and is named in
/// [`Config::problems`]; a missing one is no problem. The project file is untrusted and may only set how things look
/// and share less. Blocks on two small files.
pub fn load(env: &Env, cwd: &str) -> Config {
    let mut problems = Vec::new();
    let global = load_global(env, &mut problems);
    let path = Path::new(cwd).join(".pi/pi-x-ide/config.json");
    let project = Section::of(&path, read_regular(&path, MAX_CONFIG_BYTES), PROJECT_KEYS, &mut problems);
    Config {
        status_display: project.status_display.or(global.status_display).unwrap_or_default(),
        icons: project.icons.or(global.icons).unwrap_or_default(),
        share: global.share.unwrap_or_default().min(project.share.unwrap_or_default()),
        open_file: global.open_file.unwrap_or(true) && project.open_file.unwrap_or(true),
        fix_prompt: global.fix_prompt,
        env: global.env,
        path_map: global.path_map,
        problems,
    }
}

/// Like [`load`], for folders that may hang: what did not answer shares nothing.
pub async fn load_in_time(env: &Arc<Env>, cwd: &str) -> Config {
    let (snapshot, folder) = (Arc::clone(env), cwd.to_owned());
    let read = env.patience.run(cwd, Instant::now() + READ_WITHIN, move || load(&snapshot, &folder)).await;
    read.unwrap_or_else(|| Config {
        status_display: StatusDisplay::default(),
        icons: Icons::default(),
        share: Share::Off,
        open_file: false,
        fix_prompt: None,
        env: HashMap::new(),
        path_map: Vec::new(),
        problems: vec![format!("{cwd} or the home folder does not answer; until it does nothing is shared")],
    })
}

/// An environment with what the global file sets; as it is where the home folder hangs.
pub async fn apply(env: Env) -> Env {
    let env = Arc::new(env);
    let snapshot = Arc::clone(&env);
    let global = move || load_global(&snapshot, &mut Vec::new());
    let home = env.home.clone().unwrap_or_default();
    let global = env.patience.run(home, Instant::now() + READ_WITHIN, global).await.unwrap_or_default();
    let env = Arc::unwrap_or_clone(env).with_defaults(&global.env);
    Env { path_map: global.path_map, ..env }
}

/// A folder that takes longer hangs.
const READ_WITHIN: Duration = Duration::from_secs(1);

/// It names hosts that get a token, so nobody else may have written it.
fn load_global(env: &Env, problems: &mut Vec<String>) -> Section {
    env.own_dir().map(|dir| dir.join("config.json")).map_or_else(Section::default, |path| {
        Section::of(&path, read_own(&path, MAX_CONFIG_BYTES), GLOBAL_KEYS, problems)
    })
}

/// Nobody writes a configuration of this size by hand.
const MAX_CONFIG_BYTES: u64 = 1024 * 1024;

const GLOBAL_KEYS: &[&str] =
    &["$schema", "status_display", "icons", "share", "openFile", "fixPrompt", "fix_prompt", "env", "pathMap"];
const PROJECT_KEYS: &[&str] = &["$schema", "status_display", "icons", "share", "openFile"];

/// One file.
#[derive(Default)]
struct Section {
    status_display: Option<StatusDisplay>,
    icons: Option<Icons>,
    share: Option<Share>,
    open_file: Option<bool>,
    fix_prompt: Option<String>,
    env: HashMap<String, String>,
    path_map: Vec<PathMapping>,
}

impl Section {
    fn of(path: &Path, text: Result<String, Distrust>, allowed: &[&str], problems: &mut Vec<String>) -> Self {
        let mut problem = |what: String| problems.push(format!("{}: {what}", path.display()));
        let fault = match text {
            Ok(text) => match serde_json::from_str(text.strip_prefix('\u{feff}').unwrap_or(&text)) {
                Ok(Value::Object(members)) => return Self::from_members(&members, allowed, &mut problem),
                Ok(_) => "is not a JSON object".to_owned(),
                Err(error) => {
                    let what = error.to_string();
                    let what = what.rsplit_once(" at line ").map_or(what.as_str(), |(what, _)| what);
                    format!("line {}, column {}: {what}", error.line(), error.column())
                }
            },
            Err(Distrust::Missing) => return Self::default(),
            Err(error) => error.to_string(),
        };
        problem(format!("{fault}; until it is mended nothing is shared"));
        // It may hold a switch of privacy, so it fails closed.
        Self { share: Some(Share::Off), ..Self::default() }
    }

    fn from_members(members: &Map<String, Value>, allowed: &[&str], problem: &mut impl FnMut(String)) -> Self {
        let mut section = Self::default();
        for (key, value) in members {
            if !allowed.contains(&key.as_str()) {
                let scope =
                    if GLOBAL_KEYS.contains(&key.as_str()) { "counts in the global file only" } else { "is unknown" };
                problem(format!("the key {key:?} {scope}"));
                continue;
            }
            if let Err(expected) = section.set(key, value) {
                problem(format!("the value of {key:?} must be {expected}"));
            }
        }
        section
    }

    fn set(&mut self, key: &str, value: &Value) -> Result<(), &'static str> {
        match (key, value) {
            ("status_display", Value::String(text)) if text == "widget" => {
                self.status_display = Some(StatusDisplay::Widget);
            }
            ("status_display", Value::String(text)) if text == "statusline" => {
                self.status_display = Some(StatusDisplay::Statusline);
            }
            ("status_display", _) => return Err("\"widget\" or \"statusline\""),
            ("icons", Value::String(text)) if text == "unicode" => self.icons = Some(Icons::Unicode),
            ("icons", Value::String(text)) if text == "nerd" => self.icons = Some(Icons::Nerd),
            ("icons", Value::String(text)) if text == "ascii" => self.icons = Some(Icons::Ascii),
            ("icons", _) => return Err("\"unicode\", \"nerd\" or \"ascii\""),
            ("share", Value::String(text)) if text == "off" => self.share = Some(Share::Off),
            ("share", Value::String(text)) if text == "path" => self.share = Some(Share::Path),
            ("share", Value::String(text)) if text == "full" => self.share = Some(Share::Full),
            ("share", _) => {
                // A switch of privacy that cannot be read fails closed.
                self.share = Some(Share::Off);
                return Err("\"off\", \"path\" or \"full\"; until then nothing is shared");
            }
            ("openFile", Value::Bool(on)) => self.open_file = Some(*on),
            ("openFile", _) => return Err("true or false"),
            ("fixPrompt", Value::String(text)) => self.fix_prompt = Some(text.clone()),
            // The name before 1.18; the new one wins.
            ("fix_prompt", Value::String(text)) => {
                self.fix_prompt.get_or_insert(text.clone());
            }
            ("fixPrompt" | "fix_prompt", _) => return Err("a string"),
            ("env", Value::Object(vars)) => {
                self.env = vars.iter().filter_map(|(name, value)| Some((name.clone(), scalar(value)?))).collect();
            }
            ("env", _) => return Err("an object"),
            ("pathMap", value) => self.path_map = path_map(value).ok_or(PATH_MAP)?,
            _ => {}
        }
        Ok(())
    }
}

const PATH_MAP: &str = "an object with the strings \"from\" and \"to\" (absolute), or a list of such objects";

fn path_map(value: &Value) -> Option<Vec<PathMapping>> {
    let mapping = |value: &Value| {
        let text = |member| Some(value.get(member)?.as_str()?.to_owned()).filter(|text| !text.is_empty());
        let mapping = PathMapping { from: text("from")?, to: text("to")? };
        Path::new(&mapping.to).is_absolute().then_some(mapping)
    };
    match value {
        Value::Array(mappings) => mappings.iter().map(mapping).collect(),
        single => Some(vec![mapping(single)?]),
    }
}

fn scalar(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        Value::Bool(on) => Some(on.to_string()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn load_with(global: Option<&str>, project: Option<&str>) -> Config {
        let (home, cwd) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        for (base, text) in [(&home, global), (&cwd, project)] {
            if let Some(text) = text {
                let dir = base.path().join(".pi/pi-x-ide");
                fs::create_dir_all(&dir).unwrap();
                fs::write(dir.join("config.json"), text).unwrap();
            }
        }
        let env = Env { home: Some(home.path().to_owned()), ..Env::current() };
        load(&env, cwd.path().to_str().unwrap())
    }

    #[test]
    fn without_files_everything_is_default_and_fine() {
        let config = load_with(None, None);
        assert_eq!((config.share, config.open_file, config.problems.len()), (Share::Full, true, 0));
    }

    #[test]
    fn the_project_may_only_be_stricter() {
        assert_eq!(load_with(Some(r#"{"share":"path"}"#), Some(r#"{"share":"full"}"#)).share, Share::Path);
        assert_eq!(load_with(None, Some(r#"{"share":"off"}"#)).share, Share::Off);
        assert!(!load_with(Some(r#"{"openFile":false}"#), Some(r#"{"openFile":true}"#)).open_file);
        let config = load_with(None, Some(r#"{"env":{"PATH":"/evil"},"fixPrompt":"x"}"#));
        assert!(config.env.is_empty() && config.fix_prompt.is_none());
        assert_eq!(config.problems.len(), 2);
    }

    #[test]
    fn a_privacy_switch_that_cannot_be_read_shares_nothing() {
        let config = load_with(Some(r#"{"share":"of"}"#), None);
        assert_eq!((config.share, config.problems.len()), (Share::Off, 1));
    }

    #[test]
    fn problems_name_the_place() {
        let config = load_with(Some("{\n  \"icons\": \"ascii\",\n}"), None);
        assert!(config.problems[0].contains("line 3, column 1"), "{:?}", config.problems);
        assert_eq!(config.share, Share::Off, "it might have said so");
        let config = load_with(Some(r#"{"statusDisplay":"widget","icons":7}"#), None);
        assert_eq!(config.problems.len(), 2, "{:?}", config.problems);
    }

    #[test]
    #[cfg(unix)]
    fn folders_are_mapped_by_the_global_file_only() {
        let one = r#"{"pathMap":{"from":"C:\\p","to":"/workspace"}}"#;
        let two = r#"{"pathMap":[{"from":"/a","to":"/b"},{"from":"/c","to":"/d"}]}"#;
        assert_eq!(
            load_with(Some(one), None).path_map,
            [PathMapping { from: r"C:\p".into(), to: "/workspace".into() }]
        );
        assert_eq!(load_with(Some(two), None).path_map.len(), 2);
        for wrong in [r#"{"from":"/a"}"#, r#"[{"from":"/a","to":7}]"#, r#"{"from":"/a","to":"b"}"#, "true", "[[]]"] {
            let config = load_with(Some(&format!(r#"{{"pathMap":{wrong}}}"#)), None);
            assert_eq!((config.path_map.len(), config.problems.len()), (0, 1), "{wrong}");
        }
        let config = load_with(None, Some(one));
        assert_eq!((config.path_map.len(), config.problems.len()), (0, 1));
    }

    #[test]
    fn old_names_still_count() {
        let config = load_with(Some(r#"{"fix_prompt":"old","env":{"A":1,"B":true,"C":null}}"#), None);
        assert_eq!(config.fix_prompt.as_deref(), Some("old"));
        assert_eq!((config.env.len(), config.problems.len()), (2, 0));
    }
}
