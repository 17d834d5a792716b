//! Synthetic Zed state databases, for tests only.
//!
//! [`make`] writes what Zed keeps in `<data dir>/db/0-<channel>/db.sqlite` in one of six schema [`Generation`]s,
//! real project files beside it, and [`Expected`]: what a correct reader has to see. The database stays open as a
//! running Zed keeps it, and [`live`] goes on writing to it as Zed does. Nothing here is Zed's code; the `migrations`
//! rows are placeholders, so never point a real Zed at the result.
//!
//! ```text
//! ROOT/zed/db/0-<channel>/db.sqlite[-wal,-shm]
//! ROOT/projects/...
//! ROOT/expected.json
//! ```

mod builder;
mod error;
mod expected;
mod generation;
mod live;
mod made;
mod options;
mod scenarios;
mod schema;
mod tabs;
pub mod text;

pub use error::FixtureError;
pub use expected::{Active, Expected, ExpectedEditor, ExpectedNote, ExpectedSelection};
pub use generation::Generation;
pub use live::{LiveEvent, LiveOptions, live};
pub use made::{Made, make};
pub use options::{Options, Scenario};
