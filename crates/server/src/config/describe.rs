//! What holds, for people. Never shows a secret.

use std::path::Path;
use std::time::Duration;

use super::settings::{self, Setting};
use super::{Config, Model, ModelAccess, Secret};
use super::{capacity, search};

type Row = (&'static str, String);

impl Config {
    /// Each setting and what holds, in the table's order; secrets are hidden.
    pub fn describe(&self) -> Vec<Row> {
        let secs = |limit: Option<Duration>| limit.map(|limit| limit.as_secs().to_string());
        let roots: Vec<String> =
            self.workspace_roots.iter().map(|root| root.display().to_string()).collect();
        let mut rows = vec![
            (settings::HOST.name, self.host.to_string()),
            (settings::PORT.name, self.port.to_string()),
            (settings::WORKING_DIRECTORY.name, self.working_directory.display().to_string()),
            list(&settings::WORKSPACE_ROOTS, &roots),
        ];
        rows.extend(model(&self.model));
        rows.extend([
            word(&settings::AGENT, self.agent.word()),
            word(&settings::TOOL_USE_APPROVAL_MODE, self.approval.mode.word()),
            (settings::ALLOW_BYPASS.name, self.approval.allow_bypass.to_string()),
            (settings::APPROVAL_TIMEOUT_SECS.name, or_unset(secs(self.approval.timeout))),
            (settings::AUTO_RESUME.name, self.auto_resume.to_string()),
            path(&settings::INSTRUCTIONS_FILE_PATH, self.instructions_file.as_deref()),
            path(&settings::RULES_FILE, self.rules_file.as_deref()),
            (
                settings::COMMAND_TIMEOUT_SECS.name,
                or_unset(secs(Some(self.limits.command_timeout))),
            ),
            (settings::WEB_PRIVATE_ADDRESSES.name, self.web_private_addresses.to_string()),
            word(&settings::CHAT_BROADCAST, self.chat_broadcast.word()),
        ]);
        rows.extend(search::describe(&self.bounds));
        rows.extend([
            path(&settings::SESSION_STORE_PATH, self.session_store.as_deref()),
            hidden(&settings::STORE, self.shared_store.as_ref().and_then(|s| s.servers.first())),
            (
                settings::STORE_REPLICAS.name,
                or_unset(self.store_replicas.map(|replicas| replicas.to_string())),
            ),
            path(&settings::TODOS_STORE_PATH, self.todos_store.as_deref()),
            path(&settings::USER_MESSAGE_DB, self.user_message_db.as_deref()),
            path(&settings::MEMORY_DB, self.memory_db.as_deref()),
            word(&settings::CONTEXT_STRATEGY, self.context.strategy.word()),
            (settings::CONTEXT_COMPACTION_THRESHOLD.name, self.context.threshold.to_string()),
            (
                settings::MAX_SESSION_COST_USD.name,
                or_unset(self.context.budget.cost_micros_max.map(dollars)),
            ),
            (
                settings::MAX_SESSION_TOKENS.name,
                or_unset(self.context.budget.tokens_max.map(|tokens| tokens.to_string())),
            ),
            hidden(&settings::POLYLOOP_TOKEN, self.access.token.as_ref()),
            list(&settings::ALLOWED_ORIGINS, &self.access.allowed_origins),
            list(&settings::ALLOWED_HOSTS, &self.access.allowed_hosts),
            word(&settings::LOG_LEVEL, self.log.level.word()),
            word(&settings::LOG_FORMAT, self.log.format.word()),
            path(&settings::AUDIT_LOG, self.log.audit.as_deref()),
            (settings::MAX_MESSAGE_BYTES.name, self.limits.message_bytes_max.to_string()),
            (settings::MAX_CONNECTIONS.name, self.limits.connections_max.to_string()),
            (settings::MAX_QUEUED_MESSAGES.name, self.limits.queued_messages_max.to_string()),
            (settings::MAX_TURNS.name, self.calls_max.to_string()),
            (settings::MAX_CALLS_AT_ONCE.name, self.bounds.calls_at_once.to_string()),
        ]);
        rows.extend(capacity::describe(&self.limits));
        rows
    }
}

fn model(model: &Model) -> Vec<Row> {
    let key = |setting: &Setting, access: &ModelAccess| {
        let key = access.key.as_ref().filter(|key| key.variable == setting.name);
        hidden(setting, key.map(|key| &key.value))
    };
    let url = |setting: &Setting, access: &ModelAccess| word(setting, &access.base_url);
    vec![
        word(&settings::PROVIDER, model.provider.word()),
        word(&settings::MODEL, &model.name),
        key(&settings::OPENAI_API_KEY, &model.openai),
        key(&settings::ANTHROPIC_API_KEY, &model.anthropic),
        key(&settings::GOOGLE_API_KEY, &model.google),
        key(&settings::GOOGLE_APPLICATION_CREDENTIALS, &model.google),
        url(&settings::OPENAI_BASE_URL, &model.openai),
        url(&settings::ANTHROPIC_BASE_URL, &model.anthropic),
        url(&settings::GOOGLE_BASE_URL, &model.google),
        word(&settings::OPENAI_WIRE_API, model.wire.word()),
        path(&settings::MODELS_FILE, model.models_file.as_deref()),
        (settings::MODEL_IDLE_TIMEOUT_SECS.name, model.idle_timeout.as_secs().to_string()),
        (settings::MODEL_RETRIES.name, model.retries_max.to_string()),
        hidden(&settings::HTTPS_PROXY, model.proxy.https.as_ref()),
        hidden(&settings::HTTP_PROXY, model.proxy.http.as_ref()),
        (settings::NO_PROXY.name, or_unset(model.proxy.no_proxy.clone())),
    ]
}

fn word(setting: &Setting, value: &str) -> Row {
    (setting.name, value.to_owned())
}

fn or_unset(value: Option<String>) -> String {
    value.unwrap_or_else(|| "(not set)".to_owned())
}

fn hidden(setting: &Setting, secret: Option<&Secret>) -> Row {
    (setting.name, or_unset(secret.map(|secret| secret.masked().to_owned())))
}

fn path(setting: &Setting, path: Option<&Path>) -> Row {
    (setting.name, or_unset(path.map(|path| path.display().to_string())))
}

fn list(setting: &Setting, values: &[String]) -> Row {
    (setting.name, or_unset((!values.is_empty()).then(|| values.join(","))))
}

/// Without what is not there: `2.5`.
fn dollars(micros: u64) -> String {
    let text = format!("{}.{:06}", micros / 1_000_000, micros % 1_000_000);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}
