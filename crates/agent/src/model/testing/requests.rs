//! What is sent: golden requests, and prompts that every interface is given.

use polyloop_session::event::Purpose;
use polyloop_session::history::{EXPLAINED_PREFIX, Message, Prompt, SUMMARISE_TEXT, Tools};
use polyloop_session::{Seq, WaitId};
use serde_json::{Value, json};

use super::{Interface, call, card, image, plain_card, pretty, result, says, text, then, user};
use crate::model::Request;
use crate::model::table::Card;
use crate::tool::{ToolList, ToolSpec};

const NO_IMAGE_TEXT: &str = "[an image was attached, which this model does not take]";

/// A longer prompt begins as the shorter one did, up to what closes that; a provider finds it in
/// its cache then.
pub fn begins(longer: &str, shorter: &str, closed: &str) {
    let common = shorter.strip_suffix(closed).unwrap();
    assert!(longer.starts_with(common), "{common}\n{longer}");
}

impl Interface {
    pub fn tools(&self) -> ToolList {
        let schema = |field: &str| {
            let properties = json!({field: {"type": "string"}});
            json!({"type": "object", "properties": properties, "required": [field]}).into()
        };
        let [bash, patch] = self.tools;
        let bash =
            ToolSpec { name: "bash", description: bash.into(), parameters: schema("command") };
        let name = "apply_patch";
        let patch = ToolSpec { name, description: patch.into(), parameters: schema("patch") };
        [bash, patch].into_iter().collect()
    }

    pub fn request(&self, messages: Vec<Message>) -> Request {
        let prompt = Prompt { purpose: Purpose::Think, messages, tools: Tools::All };
        Request { prompt, instructions: self.instructions.into(), tools: self.tools() }
    }

    /// One that may propose no calls.
    fn aside(&self, messages: Vec<Message>, purpose: Purpose) -> Request {
        let mut request = self.request(messages);
        request.prompt.purpose = purpose;
        request.tools = ToolList::default();
        request
    }

    pub fn body(&self, request: &Request, card: &Card) -> String {
        let body = String::from_utf8(self.api.encode(request, self.model, card).whole()).unwrap();
        assert!(serde_json::from_str::<Value>(&body).is_ok(), "{body}");
        body
    }

    pub fn value(&self, request: &Request, card: &Card) -> Value {
        serde_json::from_str(&self.body(request, card)).unwrap()
    }

    pub fn check_request(&self, name: &str, request: &Request, card: &Card) {
        self.compare(&format!("requests/{name}.json"), &pretty(&self.body(request, card)));
    }

    pub fn check(&self, name: &str, messages: Vec<Message>) {
        self.check_request(name, &self.request(messages), &card());
    }

    /// The bodies for the first so many messages.
    pub fn grown(&self, messages: &[Message], counts: &[usize], card: &Card) -> Vec<String> {
        let body = |count: &usize| self.body(&self.request(messages[..*count].to_vec()), card);
        counts.iter().map(body).collect()
    }

    pub fn check_picture_not_taken(&self) {
        let picture = Message::User(vec![text("What is this?"), image("image/png")]);
        let request = self.request(vec![picture]);
        self.check_request("image-not-taken", &request, &plain_card());
        assert!(self.body(&request, &plain_card()).contains(NO_IMAGE_TEXT));
        assert!(!self.body(&request, &card()).contains(NO_IMAGE_TEXT));
    }

    pub fn check_invalid_arguments(&self) {
        let calls = vec![
            call("call_1", "bash", r#"{"command":"ls"#, None),
            call("call_2", "bash", "", None),
            call("call_3", "bash", "[1]", None),
        ];
        let messages = vec![
            user("Go."),
            Message::Assistant(calls),
            result("call_1", "bash", "bash: the arguments are not a JSON object", true),
            result("call_2", "bash", "bash: `command` is missing", true),
            result("call_3", "bash", "bash: the arguments are not a JSON object", true),
        ];
        self.check("invalid-arguments", messages);
    }

    pub fn check_explained_call(&self) {
        let messages = vec![
            user("Delete it."),
            Message::Assistant(vec![call("call_1", "bash", r#"{"command":"rm x"}"#, None)]),
            result("call_1", "bash", "Denied", true),
            user(&format!("{EXPLAINED_PREFIX}It removes x.")),
        ];
        self.check("explanation", messages);
    }

    pub fn check_no_tools(&self) {
        let bare = self.aside(vec![user("Hi")], Purpose::Think);
        let request = Request { instructions: "".into(), ..bare };
        self.check_request("no-tools", &request, &card());
    }

    /// Long instructions and tools are sent from where they are kept.
    pub fn check_shared(&self) {
        let long = "Say \"so\".\n".repeat(200);
        let tools = Interface { tools: ["Runs a command.", long.leak()], ..*self }.tools();
        let instructions = "Be \"careful\".\n".repeat(200).into();
        let request = Request { instructions, tools, ..self.request(vec![user("Hi")]) };
        let pieces = self.api.encode(&request, self.model, &card());
        let sent: Vec<*const u8> = pieces.each().iter().map(|piece| piece.as_ptr()).collect();
        let mut kept = request.tools.written_so_far();
        kept.push(request.instructions.written().clone());
        assert!(kept.len() >= 2);
        for text in kept {
            assert!(sent.contains(&text.json().as_ptr()), "{}", text.json());
        }
    }

    pub fn check_ends_of_prompt(&self) {
        let answered = |text: &str| Message::Assistant(vec![says(text)]);
        let messages = vec![answered("Well:"), answered("Half an ans"), user(" "), answered("So.")];
        self.check("ends", messages);
        self.body(&self.request(Vec::new()), &card());
    }

    /// A question about a piece of work, while it waits for leave, and what was answered.
    pub fn check_explain(&self, work: &[Message]) {
        let explained = user(&format!("{EXPLAINED_PREFIX}It lists files."));
        self.check("explained", then(work.to_vec(), [explained]));
        let messages = then(work.to_vec(), [user("Before I decide: explain.")]);
        let request = self.aside(messages, Purpose::Explain { wait: WaitId(Seq(3)) });
        self.check_request("explain", &request, &card());
    }

    pub fn check_summarise(&self, work: Vec<Message>) {
        let messages = then(work, [user(SUMMARISE_TEXT)]);
        self.check_request("summarise", &self.aside(messages, Purpose::Summarise), &card());
    }

    /// Two questions, one behind the other.
    pub fn check_work_and_more(&self, work: Vec<Message>) {
        self.check("work-and-more", then(work, [user("And now?"), user("Well?")]));
    }
}
