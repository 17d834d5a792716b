//! Diagnostic requests: as an editor gives them, and as pi gets them.

use napi::bindgen_prelude::Either;
use napi_derive::napi;
use pi_x_ide_bridge::protocol::diagnostics as wire;
use pi_x_ide_bridge::protocol::lenient::Text;
use serde::{Serialize, Serializer};

use crate::failure::Failure;
use crate::snapshot::{Selection, index};

/// What a diagnostic request asks for: start a turn, or only put it in the input box.
#[napi(string_enum = "kebab-case")]
#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum DiagnosticAction {
    /// Start a turn that fixes it.
    Fix,
    /// Only put it in the input box.
    SendDiagnostic,
}

/// How bad a diagnostic is; weaker ones are never sent.
#[napi(string_enum = "lowercase")]
#[derive(Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// An error.
    Error,
    /// A warning.
    Warning,
}

/// A request to look at diagnostics. Protocol: "diagnostic_fix_requested".
#[napi(object)]
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub struct DiagnosticFix {
    /// What the user chose, `fix` by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub action: Option<DiagnosticAction>,
    /// File of the diagnostics.
    pub file_path: String,
    /// Workspace folder of that file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workspace_folder: Option<String>,
    /// Editor's version counter of the document.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub document_version: Option<f64>,
    /// Where the user asked.
    pub trigger_range: Selection,
    /// At least one.
    pub diagnostics: Vec<Diagnostic>,
}

/// One diagnostic with the text around it.
#[napi(object)]
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Diagnostic {
    /// Error or warning.
    pub severity: Severity,
    /// What the tool says.
    pub message: String,
    /// Tool that says it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// The tool's code.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "serialize_code")]
    pub code: Option<Either<String, f64>>,
    /// Page that explains the code.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub code_target: Option<String>,
    /// Where it stands.
    pub range: Selection,
    /// Text of that range.
    pub selected_text: String,
    /// Lines around it.
    pub context_lines: Vec<ContextLine>,
    /// Other places that belong to it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub related_information: Option<Vec<RelatedInformation>>,
}

/// One line near a diagnostic.
#[napi(object)]
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ContextLine {
    /// 0-based line.
    pub line: f64,
    /// Its text.
    pub text: String,
    /// Whether the diagnostic itself covers it.
    pub is_primary: bool,
}

/// Another place that belongs to a diagnostic.
#[napi(object)]
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RelatedInformation {
    /// File of that place.
    pub file_path: String,
    /// Where in the file.
    pub range: Selection,
    /// What the tool says about it.
    pub message: String,
}

impl DiagnosticFix {
    /// The wire form; fails on an empty list or a position that is no index.
    pub fn into_wire(self) -> Result<wire::DiagnosticFix, Failure> {
        if self.diagnostics.is_empty() {
            return Err(Failure::invalid("diagnostics must not be empty"));
        }
        Ok(wire::DiagnosticFix {
            action: match self.action {
                Some(DiagnosticAction::SendDiagnostic) => wire::Action::SendDiagnostic,
                _ => wire::Action::Fix,
            },
            source: wire::VsCode::VsCode,
            file_path: Text(self.file_path),
            workspace_folder: self.workspace_folder.map(Text),
            document_version: self.document_version.filter(|version| version.is_finite()),
            trigger_range: self.trigger_range.into_wire()?,
            diagnostics: self.diagnostics.into_iter().map(Diagnostic::into_wire).collect::<Result<_, _>>()?,
            received_at: None,
        })
    }
}

impl Diagnostic {
    fn into_wire(self) -> Result<wire::Diagnostic, Failure> {
        let related = self
            .related_information
            .map(|places| places.into_iter().map(RelatedInformation::into_wire).collect::<Result<Vec<_>, _>>());
        Ok(wire::Diagnostic {
            severity: match self.severity {
                Severity::Error => wire::Severity::Error,
                Severity::Warning => wire::Severity::Warning,
            },
            message: Text(self.message),
            source: self.source.map(Text),
            code: code_to_wire(self.code, self.code_target),
            range: self.range.into_wire()?,
            selected_text: Text(self.selected_text),
            context_lines: self.context_lines.into_iter().map(ContextLine::into_wire).collect::<Result<_, _>>()?,
            related_information: related.transpose()?,
        })
    }
}

impl ContextLine {
    fn into_wire(self) -> Result<wire::ContextLine, Failure> {
        let line = index("line", self.line)?;
        Ok(wire::ContextLine { line, text: Text(self.text), is_primary: self.is_primary })
    }
}

impl RelatedInformation {
    fn into_wire(self) -> Result<wire::RelatedInformation, Failure> {
        Ok(wire::RelatedInformation {
            file_path: Text(self.file_path),
            range: self.range.into_wire()?,
            message: Text(self.message),
        })
    }
}

fn serialize_code<S: Serializer>(code: &Option<Either<String, f64>>, serializer: S) -> Result<S::Ok, S::Error> {
    match code {
        Some(Either::A(name)) => serializer.serialize_str(name),
        Some(Either::B(number)) => serializer.serialize_f64(*number),
        None => serializer.serialize_none(),
    }
}

fn code_to_wire(code: Option<Either<String, f64>>, target: Option<String>) -> Option<wire::Code> {
    match (code?, target) {
        (Either::A(name), None) => Some(wire::Code::Name(name)),
        (Either::B(number), None) => Some(wire::Code::Number(number)),
        (Either::A(name), target) => Some(wire::Code::Linked { value: wire::CodeValue::Name(name), target }),
        (Either::B(number), target) => Some(wire::Code::Linked { value: wire::CodeValue::Number(number), target }),
    }
}

impl From<&wire::DiagnosticFix> for DiagnosticFix {
    fn from(fix: &wire::DiagnosticFix) -> Self {
        Self {
            action: Some(match fix.action {
                wire::Action::Fix => DiagnosticAction::Fix,
                wire::Action::SendDiagnostic => DiagnosticAction::SendDiagnostic,
            }),
            file_path: fix.file_path.0.clone(),
            workspace_folder: fix.workspace_folder.as_ref().map(|folder| folder.0.clone()),
            document_version: fix.document_version,
            trigger_range: fix.trigger_range.into(),
            diagnostics: fix.diagnostics.iter().map(Diagnostic::from).collect(),
        }
    }
}

impl From<&wire::Diagnostic> for Diagnostic {
    fn from(diagnostic: &wire::Diagnostic) -> Self {
        let (code, code_target) = code_from_wire(diagnostic.code.as_ref());
        let related = diagnostic.related_information.as_ref();
        Self {
            severity: match diagnostic.severity {
                wire::Severity::Error => Severity::Error,
                wire::Severity::Warning => Severity::Warning,
            },
            message: diagnostic.message.0.clone(),
            source: diagnostic.source.as_ref().map(|source| source.0.clone()),
            code,
            code_target,
            range: diagnostic.range.into(),
            selected_text: diagnostic.selected_text.0.clone(),
            context_lines: diagnostic.context_lines.iter().map(ContextLine::from).collect(),
            related_information: related.map(|places| places.iter().map(RelatedInformation::from).collect()),
        }
    }
}

impl From<&wire::ContextLine> for ContextLine {
    fn from(line: &wire::ContextLine) -> Self {
        Self { line: f64::from(line.line), text: line.text.0.clone(), is_primary: line.is_primary }
    }
}

impl From<&wire::RelatedInformation> for RelatedInformation {
    fn from(place: &wire::RelatedInformation) -> Self {
        Self { file_path: place.file_path.0.clone(), range: place.range.into(), message: place.message.0.clone() }
    }
}

fn code_from_wire(code: Option<&wire::Code>) -> (Option<Either<String, f64>>, Option<String>) {
    match code {
        None => (None, None),
        Some(wire::Code::Name(name)) => (Some(Either::A(name.clone())), None),
        Some(wire::Code::Number(number)) => (Some(Either::B(*number)), None),
        Some(wire::Code::Linked { value, target }) => {
            let value = match value {
                wire::CodeValue::Name(name) => Either::A(name.clone()),
                wire::CodeValue::Number(number) => Either::B(*number),
            };
            (Some(value), target.clone())
        }
    }
}
