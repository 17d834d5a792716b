//! Lets the linker leave the N-API symbols to the host process.

fn main() {
    napi_build::setup();
}
