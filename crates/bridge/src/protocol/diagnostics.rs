//! A request to look at diagnostics. Protocol: "diagnostic_fix_requested".

use serde::{Deserialize, Deserializer, Serialize};

use super::lenient::{Text, index, present};
use super::snapshot::Selection;

/// Parameters of `diagnostic_fix_requested`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DiagnosticFix {
    /// What the user chose; absent means [`Action::Fix`].
    #[serde(default)]
    pub action: Action,
    /// Always `vscode`: only that family sends it.
    pub source: VsCode,
    /// File of the diagnostics.
    pub file_path: Text,
    /// Workspace folder of that file.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    pub workspace_folder: Option<Text>,
    /// Editor's version counter of the document.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    pub document_version: Option<f64>,
    /// Where the user asked.
    pub trigger_range: Selection,
    /// At least one.
    #[serde(deserialize_with = "at_least_one")]
    pub diagnostics: Vec<Diagnostic>,
    /// When the editor sent it, in milliseconds since the epoch.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    pub received_at: Option<f64>,
}

/// What a diagnostic request asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Action {
    /// Start a turn that fixes it.
    #[default]
    Fix,
    /// Only put it in the input box.
    SendDiagnostic,
}

/// The one producer of diagnostic requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum VsCode {
    /// `vscode`.
    #[serde(rename = "vscode")]
    VsCode,
}

/// How bad a diagnostic is; weaker ones are never sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// An error.
    Error,
    /// A warning.
    Warning,
}

/// One diagnostic with the text around it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Diagnostic {
    /// Error or warning.
    pub severity: Severity,
    /// What the tool says.
    pub message: Text,
    /// Tool that says it.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    pub source: Option<Text>,
    /// The tool's code; `null` counts as absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<Code>,
    /// Where it stands.
    pub range: Selection,
    /// Text of that range.
    pub selected_text: Text,
    /// Lines around it.
    pub context_lines: Vec<ContextLine>,
    /// Other places that belong to it.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    pub related_information: Option<Vec<RelatedInformation>>,
}

/// A tool's code: a plain value, or a value with a link.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Code {
    /// `2322`.
    Number(f64),
    /// `unused_import`.
    Name(String),
    /// `{ value, target }`.
    Linked {
        /// The code itself.
        value: CodeValue,
        /// Page that explains it.
        #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
        target: Option<String>,
    },
}

/// The value of a linked code.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum CodeValue {
    /// `2322`.
    Number(f64),
    /// `unused_import`.
    Name(String),
}

/// One line near a diagnostic.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ContextLine {
    /// 0-based line.
    #[serde(deserialize_with = "index")]
    pub line: u32,
    /// Its text.
    pub text: Text,
    /// Whether the diagnostic itself covers it.
    pub is_primary: bool,
}

/// Another place that belongs to a diagnostic.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RelatedInformation {
    /// File of that place.
    pub file_path: Text,
    /// Where in the file.
    pub range: Selection,
    /// What the tool says about it.
    pub message: Text,
}

fn at_least_one<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Diagnostic>, D::Error> {
    let diagnostics = Vec::deserialize(deserializer)?;
    if diagnostics.is_empty() { Err(serde::de::Error::custom("no diagnostics")) } else { Ok(diagnostics) }
}
