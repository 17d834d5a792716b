//! `AbortSignal` for promises: listening while the work runs, and letting go of the signal afterwards.

use std::sync::Arc;

use napi::bindgen_prelude::{FnArgs, Function, FunctionRef, JsObjectValue, Object, ObjectRef, Unknown};
use napi::{Env, Result};
use tokio::sync::Notify;

/// A signal that is listened to.
pub struct AbortListener {
    /// Fires on the runtime's side.
    pub aborted: Aborted,
    /// Stays on the JavaScript side.
    pub signal: ListenedSignal,
}

/// Tells a future that the signal was aborted.
pub struct Aborted(Arc<Notify>);

/// The signal with our listener on it.
pub struct ListenedSignal {
    signal: ObjectRef<false>,
    listener: FunctionRef<(), ()>,
}

impl AbortListener {
    /// Listens to a signal; one that is aborted already fires at once.
    pub fn attach(env: &Env, signal: Option<Object<'_>>) -> Result<Option<Self>> {
        let Some(signal) = signal else { return Ok(None) };
        let notify = Arc::new(Notify::new());
        let fire = Arc::clone(&notify);
        let listener = env.create_function_from_closure("onAbort", move |_| {
            // Keeps one permit, so a wait that starts later returns at once.
            fire.notify_one();
            Ok(())
        })?;
        call(&signal, "addEventListener", &listener)?;
        if signal.get::<bool>("aborted")?.unwrap_or(false) {
            notify.notify_one();
        }
        let signal = ListenedSignal { signal: signal.create_ref()?, listener: listener.create_ref()? };
        Ok(Some(Self { aborted: Aborted(notify), signal }))
    }
}

impl Aborted {
    /// Returns once the signal is aborted.
    pub async fn wait(self) {
        self.0.notified().await;
    }
}

impl ListenedSignal {
    /// Lets go of the signal; returns its reason, which may be any value.
    pub fn detach(self, env: &Env) -> Result<Unknown<'_>> {
        let signal = self.signal.get_value(env)?;
        call(&signal, "removeEventListener", &self.listener.borrow_back(env)?)?;
        let reason = signal.get_named_property("reason")?;
        self.signal.unref(env)?;
        Ok(reason)
    }
}

type ListenerMethod<'env> = Function<'env, FnArgs<(&'static str, Function<'env, (), ()>)>, Unknown<'env>>;

fn call(signal: &Object<'_>, method: &str, listener: &Function<'_, (), ()>) -> Result<()> {
    let method: ListenerMethod<'_> = signal.get_named_property(method)?;
    method.apply(signal, ("abort", *listener).into())?;
    Ok(())
}
