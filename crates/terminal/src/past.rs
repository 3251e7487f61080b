//! What was in a session before this client came to it, and how a new one is made.

use serde_json::Value;

use crate::Exit;
use crate::address::Address;
use crate::rest::{self, Trouble};

/// The newest part of a session.
#[derive(Debug)]
pub struct Past {
    pub frames: Vec<Value>,
    /// There is more before these.
    pub is_cut: bool,
    /// The place behind which a client goes on.
    pub since: String,
}

impl Past {
    /// With `new` the session must not be there yet; who attaches to it makes it.
    pub async fn read(
        address: &Address,
        id: &str,
        new: bool,
        limit: usize,
    ) -> Result<Past, (Exit, String)> {
        match (Past::page(address, id, limit).await, new) {
            (Ok(_), true) => {
                let problem = format!("--new: there is a session {id:?} already; leave --new away");
                Err((Exit::Usage, problem))
            }
            (Ok(past), false) => Ok(past),
            (Err(trouble), true) if trouble.is_not_found() => Ok(Past::none()),
            (Err(trouble), false) if trouble.is_not_found() => {
                Err((Exit::Usage, format!("there is no session {id:?}; --new makes it")))
            }
            (Err(trouble), _) => Err((Exit::Lost, trouble.says(address))),
        }
    }

    pub async fn page(address: &Address, id: &str, limit: usize) -> Result<Past, Trouble> {
        let page = rest::get(address, &format!("/sessions/{id}/frames?limit={limit}")).await?;
        Ok(Past {
            frames: page["frames"].as_array().cloned().unwrap_or_default(),
            is_cut: !page["before"].is_null(),
            since: page["seq"].as_u64().unwrap_or(0).to_string(),
        })
    }

    pub fn none() -> Past {
        Past { frames: Vec::new(), is_cut: false, since: "0".to_owned() }
    }
}

/// A new session with these settings; its id.
pub async fn make_session(address: &Address, settings: Value) -> Result<String, Trouble> {
    let made = rest::post(address, "/sessions", Some(settings)).await?;
    Ok(made["id"].as_str().unwrap_or_default().to_owned())
}
