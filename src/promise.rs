//! Promises over the addon's runtime, and the checks of what comes in with a call.

use std::future::Future;
use std::time::Duration;

use napi::bindgen_prelude::{AsyncBlock, AsyncBlockBuilder, PromiseRaw, ToNapiValue};
use napi::{Env, JsValue, Result, sys};

use crate::abort::AbortListener;
use crate::failure::Failure;

/// A promise for `work`, which runs on the addon's runtime; `convert` runs on the JavaScript thread.
pub fn promise<V, T>(
    env: &Env,
    work: impl Future<Output = std::result::Result<V, Failure>> + Send + 'static,
    convert: impl FnOnce(&Env, V) -> Result<T> + 'static,
) -> Result<AsyncBlock<T>>
where
    V: Send + 'static,
    T: ToNapiValue + 'static,
{
    AsyncBlockBuilder::build_with_map(env, async { Ok(work.await) }, move |env, outcome| match outcome {
        Ok(value) => convert(&env, value),
        Err(failure) => Err(failure.into_error(&env)),
    })
}

/// Like [`promise`], and `abort` ends it early: `work` is dropped, the promise rejects with the signal's reason.
pub fn abortable<V, T>(
    env: &Env,
    abort: Option<AbortListener>,
    work: impl Future<Output = std::result::Result<V, Failure>> + Send + 'static,
    convert: impl FnOnce(&Env, V) -> Result<T> + 'static,
) -> Result<AsyncBlock<Settled<T>>>
where
    V: Send + 'static,
    T: ToNapiValue + 'static,
{
    let Some(AbortListener { aborted, signal }) = abort else {
        return promise(env, work, |env, value| convert(env, value).map(Settled::Value));
    };
    let work = async {
        tokio::select! {
            // An aborted signal counts, however quick the work is.
            biased;
            () = aborted.wait() => Ok(None),
            outcome = work => Ok(Some(outcome)),
        }
    };
    AsyncBlockBuilder::build_with_map(env, work, move |env, outcome| {
        let reason = signal.detach(&env)?;
        match outcome {
            Some(Ok(value)) => convert(&env, value).map(Settled::Value),
            Some(Err(failure)) => Err(failure.into_error(&env)),
            None => Ok(Settled::Rejected(PromiseRaw::<()>::reject(&env, reason)?.raw())),
        }
    })
}

/// How a promise ends. `Rejected` is a promise that is rejected already: resolving with it hands on its reason as it
/// is, while an error on the way through napi would become another value.
pub enum Settled<T> {
    Value(T),
    Rejected(sys::napi_value),
}

impl<T: ToNapiValue> ToNapiValue for Settled<T> {
    unsafe fn to_napi_value(env: sys::napi_env, settled: Self) -> Result<sys::napi_value> {
        match settled {
            // SAFETY: the caller's promise about `env` is handed on.
            Self::Value(value) => unsafe { T::to_napi_value(env, value) },
            Self::Rejected(promise) => Ok(promise),
        }
    }
}

/// A number of milliseconds from JavaScript: finite, at least `min`, at most an hour.
pub fn millis(name: &str, value: Option<f64>, min: f64) -> std::result::Result<Option<Duration>, Failure> {
    const HOUR: f64 = 3_600_000.0;
    match value {
        None => Ok(None),
        Some(value) if (min..=HOUR).contains(&value) => Ok(Some(Duration::from_secs_f64(value / 1000.0))),
        Some(value) => Err(Failure::invalid(format!("{name} must be from {min} to {HOUR} milliseconds, not {value}"))),
    }
}
