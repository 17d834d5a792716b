//! Zed's database as a whole: made in every generation, read, followed, broken.
#![cfg(unix)]
#![expect(clippy::unwrap_used, reason = "what cannot be set up must stop the test")]

mod broken;
mod choice;
mod following;
mod generations;
mod harmless;
mod sources;
mod support;
mod wsl;
