//! Errors on their way to JavaScript: a stable `code`, a message for people, the causes behind it.

use napi::bindgen_prelude::Object;
use napi::{Env, Error, JsValue, Result, Status};
use pi_x_ide_bridge::discovery::Candidate;
use pi_x_ide_bridge::follow::{AllFailed, ConnectError};
use pi_x_ide_bridge::server::ServerError;
use pi_x_ide_bridge::zed::ZedError;

/// An error before it becomes a JavaScript one. `code` starts with `PIX_`.
#[derive(Debug)]
pub struct Failure {
    code: &'static str,
    message: String,
    causes: Vec<Failure>,
}

impl Failure {
    /// A value from JavaScript that cannot be used.
    pub fn invalid(message: impl Into<String>) -> Self {
        Self::new("PIX_INVALID_ARGUMENT", message.into())
    }

    /// More text than a message of the protocol can carry.
    pub fn too_large(bytes: usize, limit: usize) -> Self {
        Self::new("PIX_TOO_LARGE", format!("the selected text has {bytes} bytes, more than {limit}: leave some out"))
    }

    /// A connection or server that was closed.
    pub fn closed(what: &str) -> Self {
        Self::new("PIX_CLOSED", format!("{what} is closed"))
    }

    fn new(code: &'static str, message: String) -> Self {
        Self { code, message, causes: Vec::new() }
    }

    /// The JavaScript error: `code`, `message`, and `cause`, an error or a list of them.
    pub fn into_error(self, env: &Env) -> Error {
        match self.into_object(env) {
            Ok(error) => Error::from(error.to_unknown()),
            Err(error) => error,
        }
    }

    fn into_object<'env>(self, env: &'env Env) -> Result<Object<'env>> {
        let mut error = env.create_error(Error::new(Status::GenericFailure, self.message))?;
        error.set("code", self.code)?;
        let mut causes = Vec::with_capacity(self.causes.len());
        for cause in self.causes {
            causes.push(cause.into_object(env)?);
        }
        match causes.len() {
            0 => {}
            1 => error.set("cause", causes.remove(0))?,
            _ => error.set("cause", causes)?,
        }
        Ok(error)
    }

    fn with_source(mut self, source: Option<&(dyn std::error::Error + 'static)>) -> Self {
        if let Some(source) = source {
            let cause = Self::new(self.code, source.to_string()).with_source(source.source());
            self.causes.push(cause);
        }
        self
    }
}

impl From<ConnectError> for Failure {
    fn from(error: ConnectError) -> Self {
        Self::new(error.code(), error.to_string()).with_source(std::error::Error::source(&error))
    }
}

impl From<ZedError> for Failure {
    fn from(error: ZedError) -> Self {
        Self::new(error.code(), error.to_string())
    }
}

impl From<ServerError> for Failure {
    fn from(error: ServerError) -> Self {
        Self::new(error.code(), error.to_string()).with_source(std::error::Error::source(&error))
    }
}

impl From<AllFailed> for Failure {
    fn from(error: AllFailed) -> Self {
        let mut failure = Self::new("PIX_UNREACHABLE", error.to_string());
        failure.causes = error.0.into_iter().map(named).collect();
        failure
    }
}

fn named((candidate, error): (Candidate, ConnectError)) -> Failure {
    let mut failure = Failure::from(error);
    failure.message = format!("{}: {}", candidate.name, failure.message);
    failure
}
