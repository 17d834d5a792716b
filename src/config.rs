//! `loadConfig`.

use std::sync::Arc;

use napi::bindgen_prelude::AsyncBlock;
use napi::{Env, Result};
use napi_derive::napi;
use pi_x_ide_bridge::config as bridge;
use pi_x_ide_bridge::env::Variables;

use crate::host::{absolute, bare_env_of};
use crate::promise::promise;

/// Where the line is shown: above the input box, or in the footer.
#[napi(string_enum = "lowercase")]
pub enum StatusDisplay {
    /// Above the input box.
    Widget,
    /// In the footer.
    Statusline,
}

/// Characters of the line.
#[napi(string_enum = "lowercase")]
pub enum Icons {
    /// Symbols that most fonts have.
    Unicode,
    /// A Nerd Font.
    Nerd,
    /// Letters and punctuation.
    Ascii,
}

/// How much leaves the editor: nothing; editor, file and lines; everything that the protocols allow.
#[napi(string_enum = "lowercase")]
pub enum Share {
    /// Nothing.
    Off,
    /// Editor, file and lines.
    Path,
    /// Everything that the protocols allow.
    Full,
}

/// Effective configuration of one folder.
#[napi(object, object_from_js = false)]
pub struct Config {
    /// Where the line is shown.
    pub status_display: StatusDisplay,
    /// Characters of the line.
    pub icons: Icons,
    /// How much leaves the editor.
    pub share: Share,
    /// Whether a file without a selection goes along.
    pub open_file: bool,
    /// Prompt for diagnostics.
    pub fix_prompt: Option<String>,
    /// What could not be used, as sentences that name file and place.
    pub problems: Vec<String>,
}

/// Reads `~/.pi/pi-x-ide/config.json` and `<cwd>/.pi/pi-x-ide/config.json` (`cwd` absolute).
///
/// A file that cannot be used counts as empty and is named in `problems`. Rejects with `PIX_INVALID_ARGUMENT` only.
#[napi(catch_unwind)]
pub fn load_config(env: &Env, cwd: String) -> Result<AsyncBlock<Config>> {
    let variables = Variables::current();
    let work = async move {
        let cwd = absolute("cwd", cwd)?;
        let env = Arc::new(bare_env_of(variables).await?);
        Ok(bridge::load_in_time(&env, &cwd).await)
    };
    promise(env, work, |_, config| Ok(Config::from(config)))
}

impl From<bridge::Config> for Config {
    fn from(config: bridge::Config) -> Self {
        Self {
            status_display: match config.status_display {
                bridge::StatusDisplay::Widget => StatusDisplay::Widget,
                bridge::StatusDisplay::Statusline => StatusDisplay::Statusline,
            },
            icons: match config.icons {
                bridge::Icons::Unicode => Icons::Unicode,
                bridge::Icons::Nerd => Icons::Nerd,
                bridge::Icons::Ascii => Icons::Ascii,
            },
            share: match config.share {
                bridge::Share::Off => Share::Off,
                bridge::Share::Path => Share::Path,
                bridge::Share::Full => Share::Full,
            },
            open_file: config.open_file,
            fix_prompt: config.fix_prompt,
            problems: config.problems,
        }
    }
}
