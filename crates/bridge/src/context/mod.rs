//! What the model is told, and when: the attach gate, mentions, the metadata block. Knows no network.

mod block;
mod gate;
mod mention;
mod share;

pub use block::metadata_block;
pub use gate::{AttachGate, AttachState};
pub use mention::{label, mentions};
pub use share::{Reach, may_go_along};
