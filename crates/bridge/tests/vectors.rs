//! Conformance vectors: every case of every area, from the folder that `VECTORS_DIR` names (default: `vectors/`).
//!
//! Prints `area: N cases` per area. An area outside [`BUILT`] is printed as not built; the list only ever grows.
#![expect(clippy::unwrap_used, reason = "a vector of the wrong shape must stop the test")]

use std::path::PathBuf;
use std::sync::Arc;

use data_encoding::{BASE64, HEXLOWER};
use pi_x_ide_bridge::context::{AttachGate, AttachState, mentions, metadata_block};
use pi_x_ide_bridge::discovery::rank::{self, Ranked};
use pi_x_ide_bridge::discovery::verdict::{self, Facts, PidState, Validity, Verdict};
use pi_x_ide_bridge::host::{self, Gateway, Networking, Probe};
use pi_x_ide_bridge::paths::{self, Host, Os, Wsl};
use pi_x_ide_bridge::protocol::json_rpc::{EditorMessage, Ignored, parse_editor_message};
use pi_x_ide_bridge::protocol::lock_file::{self, Parsed};
use pi_x_ide_bridge::protocol::snapshot::{HashedSnapshot, Snapshot};
use pi_x_ide_bridge::width::{line_width, truncate_to_width};
use pi_x_ide_bridge::zed::{self, FolderColumns, Offsets};
use serde_json::{Value, json};

type Check = fn(&Value, &Value) -> Value;

const BUILT: &[(&str, Check)] = &[
    ("paths-normalize", paths_normalize),
    ("paths-match", paths_match),
    ("lock-validate", lock_validate),
    ("lock-liveness", lock_liveness),
    ("rank", rank_candidates),
    ("host-resolve", host_resolve),
    ("jsonrpc", jsonrpc),
    ("mention", mention),
    ("context-block", context_block),
    ("attach-state", attach_state),
    ("width", width),
    ("zed-offsets", zed_offsets),
    ("zed-paths", zed_paths),
];

#[test]
fn every_case_of_every_built_area() {
    let folder = std::env::var_os("VECTORS_DIR")
        .map_or_else(|| PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../vectors")), PathBuf::from);
    let mut files: Vec<_> = std::fs::read_dir(&folder)
        .unwrap_or_else(|error| panic!("{}: {error}", folder.display()))
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "json"))
        .collect();
    files.sort();
    let mut failures = Vec::new();
    let mut seen = Vec::new();
    for file in files {
        let suite: Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
        let area = suite["area"].as_str().unwrap().to_owned();
        let Some((_, check)) = BUILT.iter().find(|(name, _)| *name == area) else {
            report(&format!("{area}: not built yet"));
            continue;
        };
        let cases = suite["cases"].as_array().unwrap();
        report(&format!("{area}: {} cases", cases.len()));
        for case in cases {
            let (input, expect) = (&case["input"], &case["expect"]);
            let got = check(input, expect);
            if got != *expect {
                failures.push(format!("{area}: {}\n  input  {input}\n  expect {expect}\n  got    {got}", case["name"]));
            }
        }
        seen.push(area);
    }
    for (area, _) in BUILT {
        assert!(seen.iter().any(|name| name == area), "no vectors for the built area {area}");
    }
    assert!(failures.is_empty(), "{} failed:\n{}", failures.len(), failures.join("\n"));
}

#[expect(clippy::print_stdout, reason = "the counts are what a reader of the test output looks for")]
fn report(line: &str) {
    println!("{line}");
}

fn host(env: &Value) -> Host {
    let os = match env["os"].as_str() {
        Some("windows") => Os::Windows,
        Some("macos") => Os::MacOs,
        _ => Os::Linux,
    };
    let wsl = env["wslDistro"].as_str().map(|distro| Wsl {
        distro: distro.to_owned(),
        automount_root: env["automountRoot"].as_str().unwrap_or("/mnt").to_owned(),
    });
    Host { os, wsl }
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_else(|| panic!("no text: {value}"))
}

fn snapshot(value: &Value) -> Snapshot {
    serde_json::from_value(value.clone()).unwrap_or_else(|error| panic!("{error}: {value}"))
}

fn paths_normalize(input: &Value, _: &Value) -> Value {
    json!(paths::normalise(&host(&input["env"]), text(&input["path"])))
}

fn paths_match(input: &Value, _: &Value) -> Value {
    let host = host(&input["env"]);
    let folders: Vec<_> = input["workspaceFolders"].as_array().unwrap().iter().map(text).collect();
    let ignore_case = input["caseInsensitive"].as_bool().unwrap_or_else(|| host.ignores_case());
    let best = paths::best_match(&host, &folders, text(&input["cwd"]), ignore_case);
    json!({ "matchLength": best.length, "folder": best.folder, "direct": best.direct })
}

fn lock_validate(input: &Value, expect: &Value) -> Value {
    match lock_file::parse(text(&input["text"])) {
        Parsed::Unsupported => json!({ "kind": "unsupported" }),
        Parsed::Malformed(_) => json!({ "kind": "malformed" }),
        Parsed::Valid(lock) => {
            let mut all = json!({
                "version": 1, "ide": lock.ide, "name": lock.name, "transport": "ws", "host": lock.host, "port": lock.port,
                "authToken": lock.auth_token, "workspaceFolders": lock.workspace_folders, "pid": lock.pid,
                "runningInWindows": lock.running_in_windows, "focusedAt": lock.focused_at,
            });
            if let Some(host_id) = lock.host_id {
                all["hostId"] = json!(host_id);
            }
            // Only the members that the case gives are compared.
            let given = expect["lock"].as_object().cloned().unwrap_or_default();
            let lock: serde_json::Map<_, _> =
                given.keys().map(|member| (member.clone(), all[member].clone())).collect();
            json!({ "kind": "valid", "lock": lock })
        }
    }
}

fn lock_liveness(input: &Value, _: &Value) -> Value {
    let facts = Facts {
        validity: match input["validity"].as_str() {
            Some("unsupported") => Validity::Unsupported,
            Some("malformed") => Validity::Malformed { own_name: true, pid: PidState::Dead },
            _ => Validity::Valid,
        },
        pid: lock_file::usable_pid(&input["pid"]).map(|_| match input["pidState"].as_str() {
            Some("dead") => PidState::Dead,
            _ => PidState::Alive,
        }),
        pid_check: input["pidCheck"].as_bool().unwrap(),
        windows_lock_in_wsl: input["runningInWindows"] == json!(true) && input["isWsl"] == json!(true),
        foreign_host: input["foreignHost"].as_bool().unwrap(),
        probe: probe(&input["probe"]),
        age: std::time::Duration::from_secs_f64(input["ageMinutes"].as_f64().unwrap() * 60.0),
    };
    json!(match verdict::judge(&facts) {
        Verdict::Keep => "keep",
        Verdict::Hide => "hide",
        Verdict::Delete => "delete",
    })
}

fn probe(value: &Value) -> Option<Probe> {
    match value.as_str() {
        Some("reachable") => Some(Probe::Reachable),
        Some("refused") => Some(Probe::Refused),
        Some("timeout") => Some(Probe::Timeout),
        _ => None,
    }
}

fn rank_candidates(input: &Value, _: &Value) -> Value {
    let mut candidates: Vec<Ranked<String>> = input["candidates"]
        .as_array()
        .unwrap()
        .iter()
        .map(|c| Ranked {
            id: text(&c["id"]).to_owned(),
            path: text(&c["path"]).to_owned(),
            match_length: u32::try_from(c["matchLength"].as_u64().unwrap()).unwrap(),
            direct: c["direct"].as_bool().unwrap(),
            focused_at: c["focusedAt"].as_f64(),
            mtime: c["mtime"].as_f64().unwrap(),
            connectable: c["connectable"].as_bool().unwrap_or(true),
        })
        .collect();
    rank::sort(&mut candidates);
    let failed: Vec<_> = input["failed"].as_array().into_iter().flatten().map(|id| text(id).to_owned()).collect();
    let order: Vec<_> = candidates.iter().map(|c| c.id.clone()).collect();
    json!({ "order": order, "autoConnect": rank::auto_connect(&candidates, &failed).map(|c| c.id.clone()) })
}

fn host_resolve(input: &Value, _: &Value) -> Value {
    let facts = host::Facts {
        override_host: input["override"].as_str(),
        networking: match (input["isWsl"].as_bool().unwrap(), input["networking"].as_str()) {
            (false, _) => Networking::Native,
            (true, Some("mirrored")) => Networking::WslMirrored,
            (true, _) => Networking::WslNat,
        },
        gateway: input["gateway"].as_str().map(|host| Gateway { host, probe: probe(&input["gatewayProbe"]) }),
        lock_host: text(&input["lockHost"]),
        running_in_windows: input["runningInWindows"].as_bool().unwrap(),
    };
    match host::resolve(&facts) {
        Ok(hosts) => json!({ "hosts": hosts }),
        Err(refused) => json!({ "refused": refused.to_string() }),
    }
}

fn jsonrpc(input: &Value, _: &Value) -> Value {
    match parse_editor_message(text(&input["text"])) {
        Ok(EditorMessage::Initialized(_)) => json!({ "event": "initialized" }),
        Ok(EditorMessage::Selection(_)) => json!({ "event": "selection" }),
        Ok(EditorMessage::Cleared) => json!({ "event": "cleared" }),
        Ok(EditorMessage::Mention(_)) => json!({ "event": "mention" }),
        Ok(EditorMessage::DiagnosticFix(_)) => json!({ "event": "diagnosticFix" }),
        Ok(EditorMessage::Refused { .. }) => json!({ "ignored": Ignored::BadResult.to_string() }),
        Err(ignored) => json!({ "ignored": ignored.to_string() }),
    }
}

fn mention(input: &Value, _: &Value) -> Value {
    json!(mentions(&host(&input["env"]), text(&input["cwd"]), &snapshot(&input["snapshot"])))
}

fn context_block(input: &Value, _: &Value) -> Value {
    if input["snapshot"].is_null() {
        // A gate without a snapshot has nothing pending, so no block is ever asked for.
        return json!(AttachGate::default().pending().map(|_| ""));
    }
    json!(metadata_block(&host(&input["env"]), text(&input["cwd"]), &snapshot(&input["snapshot"]), None))
}

fn attach_state(input: &Value, _: &Value) -> Value {
    let mut gate = AttachGate::default();
    let (mut states, mut injected) = (Vec::new(), Vec::new());
    let named = |event: &Value| Arc::new(HashedSnapshot::from(snapshot(&input["snapshots"][text(&event["snapshot"])])));
    let snapshots = input["snapshots"].as_object().unwrap();
    for event in input["events"].as_array().unwrap() {
        match text(&event["type"]) {
            "selection" => gate.select(named(event)),
            "mention" => gate.mention(named(event)),
            "cleared" | "disconnect" => gate.clear(),
            "attach" => gate.attach(),
            "prompt" => {
                let taken = gate.pending().cloned();
                let name = taken.as_ref().and_then(|taken| {
                    snapshots.iter().find(|(_, value)| snapshot(value) == taken.snapshot).map(|(name, _)| name.clone())
                });
                injected.push(json!(name));
                if let Some(taken) = taken {
                    gate.mark_injected(taken.content_hash.clone());
                }
            }
            other => panic!("unknown event {other}"),
        }
        states.push(match gate.state() {
            AttachState::Idle => "idle",
            AttachState::Pending => "pending",
            AttachState::Sent => "sent",
        });
    }
    json!({ "states": states, "injected": injected })
}

fn width(input: &Value, _: &Value) -> Value {
    let line = truncate_to_width(text(&input["text"]), usize::try_from(input["width"].as_u64().unwrap()).unwrap());
    json!({ "line": line, "width": line_width(&line) })
}

fn zed_offsets(input: &Value, _: &Value) -> Value {
    let offsets = [Offsets { start: input["start"].as_i64().unwrap(), end: input["end"].as_i64().unwrap() }];
    let ranges = match &input["contents"] {
        Value::String(contents) => zed::ranges(contents, &offsets),
        _ => zed::ranges_in_file(&BASE64.decode(text(&input["diskBytesBase64"]).as_bytes()).unwrap(), &offsets, false)
            .unwrap(),
    };
    json!(ranges.first().map(|range| json!({
        "text": range.text, "start": range.selection.start, "end": range.selection.end,
    })))
}

fn zed_paths(input: &Value, _: &Value) -> Value {
    let column = |name: &str| input[name].as_str().map(str::to_owned);
    let hex = |text: String| HEXLOWER.decode(text.as_bytes()).unwrap();
    let remote = ["ssh_project_id", "ssh_connection_id", "remote_connection_id"];
    json!(zed::folders(&FolderColumns {
        paths: column("paths"),
        blob: column("local_paths").or_else(|| column("workspace_location")).map(hex),
        array: column("local_paths_array"),
        is_remote: remote.iter().any(|name| !input[name].is_null()),
    }))
}
