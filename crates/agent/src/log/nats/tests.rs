//! Sessions on a real NATS server, which each test starts and ends for itself.

use std::sync::Arc;

use super::super::Codec;
use super::{Nats, Place};

mod cluster;
mod peers;
mod server;
mod writers;

pub(in crate::log) use server::Server;

impl Server {
    pub(in crate::log) async fn connect(&self, codec: Arc<dyn Codec>) -> Nats {
        self.connect_to("test", codec).await
    }

    /// To a store of that name.
    async fn connect_to(&self, name: &str, codec: Arc<dyn Codec>) -> Nats {
        let (servers, name) = (vec![self.url.clone()], name.to_owned());
        Nats::connect(&Place { servers, name, replicas: None }, codec).await.unwrap()
    }
}
