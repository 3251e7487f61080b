//! A scripted model server: stands in for paid language models in tests, and by hand.
//!
//! Speaks OpenAI Responses, OpenAI Chat Completions, Anthropic Messages and Gemini, each as its
//! provider documents it, and can fail in every way that a provider can. Shares no code with the
//! product, so that it cannot share its mistakes. Never leaves loopback, verifies no key, and keeps
//! nothing on disk.

mod answer;
mod api;
mod ask;
mod events;
mod fault;
mod flush;
mod made;
mod models;
mod paced;
mod reply;
mod route;
mod serve;
mod store;
mod token;
mod usage;
mod words;

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use serde_json::Value;
use tokio::task::JoinHandle;

use crate::store::Store;

pub const TOKEN_SECS: u64 = 3600;

/// A running server; it ends, with all its connections, when this is dropped.
pub struct FakeModel {
    address: SocketAddr,
    store: Arc<Store>,
    task: JoinHandle<()>,
}

#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// 0 takes any that is free.
    pub port: u16,
    /// How long the tokens of `…/token` are said to be good.
    pub token_secs: u64,
}

impl Default for Options {
    fn default() -> Options {
        Options { port: 0, token_secs: TOKEN_SECS }
    }
}

impl FakeModel {
    /// Starts a server on any free port, in the runtime of the caller.
    pub async fn start() -> io::Result<FakeModel> {
        FakeModel::start_with(Options::default()).await
    }

    pub async fn start_with(options: Options) -> io::Result<FakeModel> {
        let listener = serve::bind(options.port).await?;
        let address = listener.local_addr()?;
        let store = Arc::new(Store::new(options.token_secs));
        let task = tokio::spawn(serve::serve(listener, store.clone()));
        Ok(FakeModel { address, store, task })
    }

    /// `http://127.0.0.1:PORT`; any path may follow before the ones of an API.
    pub fn base_url(&self) -> String {
        format!("http://{}", self.address)
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Appends replies, given as an array: all of them, or none and what is wrong.
    pub fn script(&self, replies: &Value) -> Result<(), String> {
        self.store.append(replies.to_string().as_bytes())
    }

    pub fn clear_script(&self) {
        self.store.clear_queue();
    }

    /// Every model and token request so far, as `GET /_requests` shows them.
    pub fn requests(&self) -> Vec<Value> {
        self.store.requests()
    }

    pub fn clear_requests(&self) {
        self.store.clear_requests();
    }

    /// `open`, `aborted` and `queued`, as `GET /_state` shows them.
    pub fn state(&self) -> Value {
        self.store.state()
    }
}

impl Drop for FakeModel {
    fn drop(&mut self) {
        self.task.abort();
    }
}
