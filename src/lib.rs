//! The N-API boundary of pi-x-ide: conversions, promises, callbacks. All behaviour is in `crates/bridge`.
//!
//! Every export is either pure computation of some microseconds or returns a promise whose work runs on the addon's own
//! runtime, made at first use.

mod abort;
mod config;
mod connection;
mod diagnose;
mod diagnostics;
mod discover;
mod events;
mod failure;
mod format;
mod host;
mod promise;
mod runtime;
mod server;
mod snapshot;
mod zed;

use napi_derive::{module_init, napi};

#[module_init]
fn init() {
    // A panic becomes a rejected promise or a thrown error; its report must not land on the screen that pi draws on.
    std::panic::set_hook(Box::new(|_| {}));
    napi::bindgen_prelude::register_async_runtime(runtime::Runtime::default());
}

/// Version of the native library, equal to that of package.json.
#[napi]
pub fn version() -> &'static str {
    env!("CARGO_PKG_VERSION")
}
