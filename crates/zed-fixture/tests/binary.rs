//! The `zed-fixture` program.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::Value;

fn fixture(root: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_zed-fixture"));
    command.arg("--out").arg(root).args(arguments);
    command
}

fn lines(output: &[u8]) -> Vec<Value> {
    String::from_utf8_lossy(output).lines().map(|line| serde_json::from_str(line).expect("a JSON line")).collect()
}

fn has_wal(line: &Value) -> bool {
    Path::new(line["db"].as_str().expect("a path")).with_extension("sqlite-wal").exists()
}

#[test]
fn makes_every_generation() {
    let root = tempfile::tempdir().unwrap();
    for close in [false, true] {
        let arguments: &[&str] = if close { &["--all-gens", "--close"] } else { &["--all-gens"] };
        let output = fixture(root.path(), arguments).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        let lines = lines(&output.stdout);
        let names: Vec<&str> = lines.iter().filter_map(|line| line["generation"].as_str()).collect();
        assert_eq!(names, ["2023", "2024", "2025a", "2025b", "2025c", "2026"]);
        assert!(lines.iter().all(|line| line["event"] == "made" && has_wal(line) != close));
    }
}

#[test]
fn live_ends_with_its_stdin_even_within_a_long_pause() {
    let root = tempfile::tempdir().unwrap();
    for (crash, arguments) in
        [(false, &["--live", "--interval-ms", "600000"][..]), (true, &["--live", "--interval-ms", "1", "--crash"][..])]
    {
        let mut child = fixture(root.path(), arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut output = BufReader::new(child.stdout.take().unwrap());
        let mut first = String::new();
        output.read_line(&mut first).unwrap();
        let ready: Value = serde_json::from_str(&first).unwrap();
        assert_eq!(ready["event"], "ready");
        assert_eq!(ready["pid"], child.id());
        drop(child.stdin.take());
        let last = output.lines().last().unwrap().unwrap();
        assert_eq!(serde_json::from_str::<Value>(&last).unwrap()["event"], "stop");
        assert!(child.wait().unwrap().success());
        assert_eq!(has_wal(&ready), crash);
    }
}

#[test]
fn wrong_arguments_are_named() {
    let root = tempfile::tempdir().unwrap();
    for (arguments, word) in [
        (&["--scenarios", "nonsense"][..], "nonsense"),
        (&["--gen", "1999"], "1999"),
        (&["--nonsense"], "--nonsense"),
        (&["--live", "--all-gens"], "one generation"),
    ] {
        let output = fixture(root.path(), arguments).output().unwrap();
        assert!(!output.status.success());
        assert!(output.stdout.is_empty());
        let message = String::from_utf8_lossy(&output.stderr);
        assert!(message.contains(word), "{message}");
    }
}
