//! JSON-RPC 2.0 messages between pi and an editor. Protocol: "Handshake", "Notifications".

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::PROTOCOL_VERSION;
use super::diagnostics::DiagnosticFix;
use super::lenient::{Text, present};
use super::snapshot::Snapshot;

/// Method of the only request that pi sends.
pub const INITIALIZE: &str = "initialize";

/// Method of the only notification that pi sends: the user has submitted a prompt. It has no parameters. An extension
/// of ours, sent to editors that ask for it with `capabilities.promptSubmitted` in their answer to `initialize`.
pub const PROMPT_SUBMITTED: &str = "prompt_submitted";

/// A valid message of an editor.
#[derive(Debug, Clone, PartialEq)]
pub enum EditorMessage {
    /// Answer to `initialize`.
    Initialized(InitializeResult),
    /// The request was answered with an error.
    Refused {
        /// The editor's words.
        message: String,
    },
    /// `selection_changed`.
    Selection(Snapshot),
    /// `selection_cleared`.
    Cleared,
    /// `at_mentioned`; its `rangeText` is dropped, since pi computes mentions itself.
    Mention(Snapshot),
    /// `diagnostic_fix_requested`.
    DiagnosticFix(DiagnosticFix),
}

/// Why a message counts for nothing. The link stays open.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Ignored {
    /// Not JSON at all.
    #[error("not-json")]
    NotJson,
    /// JSON, but no object: a batch, a number, null.
    #[error("not-object")]
    NotObject,
    /// `jsonrpc` is not "2.0", `method` is no string, or neither `method` nor `id` is there.
    #[error("bad-envelope")]
    BadEnvelope,
    /// A request: pi answers none.
    #[error("request")]
    Request,
    /// An answer that does not fit.
    #[error("bad-result")]
    BadResult,
    /// A notification that pi does not know.
    #[error("unknown-method")]
    UnknownMethod,
    /// A known notification with wrong parameters.
    #[error("invalid-params")]
    InvalidParams,
}

/// `result` of `initialize`.
#[derive(Debug, Clone, PartialEq)]
pub struct InitializeResult {
    /// Version that the editor speaks, as it was sent; editors that leave it out speak version 1.
    pub protocol_version: Value,
    /// Who answered.
    pub server: ServerInfo,
    /// Whether the editor wants to be told of prompts, see [`PROMPT_SUBMITTED`].
    pub takes_prompts: bool,
}

impl InitializeResult {
    /// Whether the editor speaks the version that this crate speaks.
    pub fn is_our_version(&self) -> bool {
        self.protocol_version.as_f64() == Some(PROTOCOL_VERSION as f64)
    }

    fn from_value(result: &Value) -> Option<Self> {
        let server = result.get("server")?;
        let text = |member| server.get(member).and_then(Value::as_str).map(str::to_owned);
        let protocol_version = result.get("protocolVersion").cloned().unwrap_or_else(|| PROTOCOL_VERSION.into());
        let server = ServerInfo { name: text("name")?, version: text("version"), ide: text("ide") };
        let takes_prompts = result.pointer("/capabilities/promptSubmitted") == Some(&Value::Bool(true));
        Some(Self { protocol_version, server, takes_prompts })
    }
}

/// An editor's server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ServerInfo {
    /// Name for people.
    pub name: String,
    /// Its version.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// Kind of editor.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ide: Option<String>,
}

/// `params` of `initialize`, as this pi sends them and as a server reads them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
pub struct InitializeParams {
    /// Version that the client speaks.
    pub protocol_version: f64,
    /// Who asks.
    pub client: ClientName,
    /// The client's working folder.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cwd: Option<String>,
    /// Name of the editor's terminal that the client runs in, where the editor gave it one. An extension of ours: other
    /// servers ignore it, and what is no string counts as absent.
    #[serde(deserialize_with = "string_or_none", skip_serializing_if = "Option::is_none")]
    pub terminal_session_id: Option<String>,
}

/// A client's name and version.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Default)]
#[serde(default)]
pub struct ClientName {
    /// Name for people.
    pub name: String,
    /// Its version.
    pub version: String,
}

fn string_or_none<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    Ok(Value::deserialize(deserializer)?.as_str().map(str::to_owned))
}

#[derive(Deserialize)]
struct Envelope<'a> {
    jsonrpc: Text,
    method: Text,
    // Present even when it is null: a message with both is a request.
    #[serde(default, borrow, deserialize_with = "present")]
    id: Option<&'a RawValue>,
    #[serde(default, borrow)]
    params: Option<&'a RawValue>,
}

/// Reads one text message of an editor.
///
/// Tolerates what the protocol asks for: unknown members, doubled members (the last one counts), text with half a
/// surrogate pair. Errors say why the message counts for nothing.
pub fn parse_editor_message(text: &str) -> Result<EditorMessage, Ignored> {
    match serde_json::from_str::<Envelope<'_>>(text) {
        Ok(Envelope { jsonrpc, method, id: None, params }) if jsonrpc.0 == "2.0" => {
            let params = params.map_or("null", RawValue::get);
            from_params(&method.0, params).or_else(|_| parse_slowly(text))
        }
        _ => parse_slowly(text),
    }
}

fn from_params(method: &str, params: &str) -> Result<EditorMessage, Ignored> {
    fn read<T: DeserializeOwned>(params: &str) -> Result<T, Ignored> {
        serde_json::from_str(params).map_err(|_| Ignored::InvalidParams)
    }
    match method {
        "selection_changed" => read(params).map(EditorMessage::Selection),
        "selection_cleared" => read::<ClearedParams>(params).map(|_| EditorMessage::Cleared),
        "at_mentioned" => {
            read::<MentionParams>(params)?;
            read(params).map(EditorMessage::Mention)
        }
        "diagnostic_fix_requested" => read(params).map(EditorMessage::DiagnosticFix),
        _ => Err(Ignored::UnknownMethod),
    }
}

/// Every message that is not a plain valid notification: answers, oddities, and the reason for an ignored one.
fn parse_slowly(text: &str) -> Result<EditorMessage, Ignored> {
    let value: Value = serde_json::from_str(text).map_err(|_| Ignored::NotJson)?;
    let object = value.as_object().ok_or(Ignored::NotObject)?;
    if object.get("jsonrpc").and_then(Value::as_str) != Some("2.0") {
        return Err(Ignored::BadEnvelope);
    }
    match (object.get("method"), object.contains_key("id")) {
        (Some(Value::String(_)), true) => Err(Ignored::Request),
        (Some(Value::String(method)), false) => {
            from_params(method, &object.get("params").unwrap_or(&Value::Null).to_string())
        }
        (None, true) => answer(object),
        _ => Err(Ignored::BadEnvelope),
    }
}

fn answer(object: &serde_json::Map<String, Value>) -> Result<EditorMessage, Ignored> {
    if let Some(error) = object.get("error").filter(|error| !error.is_null()) {
        let message = error.get("message").and_then(Value::as_str).unwrap_or("no reason given");
        return Ok(EditorMessage::Refused { message: message.to_owned() });
    }
    let result = object.get("result").and_then(InitializeResult::from_value);
    result.map(EditorMessage::Initialized).ok_or(Ignored::BadResult)
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ClearedParams {
    #[serde(rename = "source", deserialize_with = "non_empty")]
    _source: (),
    #[serde(rename = "reason")]
    _reason: NoActiveEditor,
    #[serde(rename = "receivedAt", default, deserialize_with = "present")]
    _received_at: Option<f64>,
}

#[derive(Deserialize)]
enum NoActiveEditor {
    #[serde(rename = "no-active-editor")]
    NoActiveEditor,
}

#[derive(Deserialize)]
struct MentionParams {
    #[serde(rename = "rangeText")]
    _range_text: Text,
}

fn non_empty<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<(), D::Error> {
    let Text(text) = Text::deserialize(deserializer)?;
    if text.is_empty() { Err(serde::de::Error::custom("must not be empty")) } else { Ok(()) }
}

/// The request that opens every link.
pub fn initialize_request(params: &InitializeParams) -> String {
    json!({ "jsonrpc": "2.0", "id": 1, "method": INITIALIZE, "params": params }).to_string()
}

/// A message of pi, as an editor's server reads it.
#[derive(Debug, Clone, PartialEq)]
pub enum ClientMessage {
    /// `initialize` with its request id; parameters that cannot be read count as absent.
    Initialize {
        /// To be repeated in the answer.
        id: Value,
        /// Who asks.
        params: InitializeParams,
    },
    /// `prompt_submitted`, with whatever parameters.
    PromptSubmitted,
    /// A request that the server does not know.
    UnknownRequest {
        /// To be repeated in the answer.
        id: Value,
    },
    /// Anything else: counts for nothing.
    Other,
}

/// Reads one text message of a client. Never fails: what is not understood is [`ClientMessage::Other`].
pub fn parse_client_message(text: &str) -> ClientMessage {
    let Ok(Value::Object(mut object)) = serde_json::from_str(text) else {
        return ClientMessage::Other;
    };
    if object.get("jsonrpc").and_then(Value::as_str) != Some("2.0") {
        return ClientMessage::Other;
    }
    match (object.remove("id"), object.get("method").and_then(Value::as_str)) {
        (Some(id @ (Value::String(_) | Value::Number(_))), Some(method)) => {
            if method != INITIALIZE {
                return ClientMessage::UnknownRequest { id };
            }
            let params = object.remove("params").and_then(|params| serde_json::from_value(params).ok());
            ClientMessage::Initialize { id, params: params.unwrap_or_default() }
        }
        (None, Some(PROMPT_SUBMITTED)) => ClientMessage::PromptSubmitted,
        _ => ClientMessage::Other,
    }
}

/// Answer to `initialize`.
pub fn initialize_response(id: &Value, server: &ServerInfo) -> String {
    let capabilities = json!({ "promptSubmitted": true });
    let result = json!({ "protocolVersion": PROTOCOL_VERSION, "server": server, "capabilities": capabilities });
    json!({ "jsonrpc": "2.0", "id": id, "result": result }).to_string()
}

/// Tells an editor that its user submitted a prompt to this pi.
pub fn prompt_submitted_message() -> String {
    json!({ "jsonrpc": "2.0", "method": PROMPT_SUBMITTED }).to_string()
}

/// Answer to a request that the server does not know.
pub fn unknown_method_response(id: &Value) -> String {
    json!({ "jsonrpc": "2.0", "id": id, "error": { "code": -32601, "message": "Method not found" } }).to_string()
}

/// A notification of an editor.
pub fn notification_message<P: Serialize>(method: &str, params: &P) -> String {
    #[derive(Serialize)]
    struct Notification<'a, P> {
        jsonrpc: &'static str,
        method: &'a str,
        params: &'a P,
    }
    // Only maps with keys that are no strings fail to serialise, and no wire type has one.
    serde_json::to_string(&Notification { jsonrpc: "2.0", method, params }).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SELECTION: &str =
        r#"{"jsonrpc":"2.0","method":"selection_changed","params":{"source":"vscode","filePath":"/a","ranges":[]}}"#;

    #[test]
    fn the_last_of_doubled_members_counts() {
        let doubled = SELECTION.replace(r#""filePath":"/a""#, r#""filePath":7,"filePath":"/b""#);
        let Ok(EditorMessage::Selection(snapshot)) = parse_editor_message(&doubled) else { panic!("{doubled}") };
        assert_eq!(snapshot.file_path.0, "/b");
    }

    #[test]
    fn half_a_surrogate_pair_does_not_lose_the_selection() {
        let cut = SELECTION.replace("/a", r"/a\ud83d");
        assert!(matches!(parse_editor_message(&cut), Ok(EditorMessage::Selection(s)) if s.file_path.0 == "/a\u{fffd}"));
    }

    #[test]
    fn deep_nesting_is_survived() {
        let deep = "[".repeat(100_000);
        assert_eq!(parse_editor_message(&deep), Err(Ignored::NotJson));
        let inside = SELECTION.replace(r#""ranges""#, &format!(r#""x":{}{},"ranges""#, deep, "]".repeat(100_000)));
        assert!(parse_editor_message(&inside).is_ok());
    }

    #[test]
    fn null_is_no_absent_member() {
        let null = SELECTION.replace(r#""ranges""#, r#""workspaceFolder":null,"ranges""#);
        assert_eq!(parse_editor_message(&null), Err(Ignored::InvalidParams));
    }

    #[test]
    fn an_error_answer_tells_why() {
        let refused = r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32000,"message":"too many"}}"#;
        assert_eq!(parse_editor_message(refused), Ok(EditorMessage::Refused { message: "too many".into() }));
    }

    #[test]
    fn a_server_answers_only_requests() {
        assert_eq!(parse_client_message("[]"), ClientMessage::Other);
        assert_eq!(parse_client_message(r#"{"jsonrpc":"2.0","id":null,"method":"initialize"}"#), ClientMessage::Other);
        let bad_params = r#"{"jsonrpc":"2.0","id":"a","method":"initialize","params":{"cwd":7}}"#;
        assert!(matches!(parse_client_message(bad_params), ClientMessage::Initialize { .. }));
    }

    #[test]
    fn only_a_notification_tells_of_a_prompt() {
        for (rest, expected) in [
            ("", ClientMessage::PromptSubmitted),
            (r#","params":[7]"#, ClientMessage::PromptSubmitted),
            (r#","id":null"#, ClientMessage::Other),
            (r#","id":1"#, ClientMessage::UnknownRequest { id: 1.into() }),
        ] {
            let text = format!(r#"{{"jsonrpc":"2.0","method":"prompt_submitted"{rest}}}"#);
            assert_eq!(parse_client_message(&text), expected, "{text}");
        }
        assert_eq!(parse_client_message(r#"{"method":"prompt_submitted"}"#), ClientMessage::Other);
    }

    #[test]
    fn a_terminal_without_a_name_costs_nothing_else() {
        for (terminal, expected) in [(r#""t""#, Some("t")), ("7", None), ("null", None), ("{}", None)] {
            let params = format!(r#"{{"cwd":"/w","terminalSessionId":{terminal}}}"#);
            let text = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"initialize","params":{params}}}"#);
            let ClientMessage::Initialize { params, .. } = parse_client_message(&text) else { panic!("{text}") };
            assert_eq!((params.cwd.as_deref(), params.terminal_session_id.as_deref()), (Some("/w"), expected));
        }
        assert!(!initialize_request(&InitializeParams::default()).contains("terminalSessionId"));
    }
}
