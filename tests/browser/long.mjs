// A long session as a file, in the form of the first AgentLoop server, which every store takes up:
// each turn is a message, a command, its output and an answer.

const START = Date.UTC(2026, 0, 1);
const WORDS =
  "Some **words** with `code`, a [link](https://example.org) and a list:\n\n- one\n- two\n\n";
const CODE = '```rust\nfn main() {\n    println!("{}", 6 * 7);\n}\n```\n';

/** The text of a session file with so many items, numbered from 0. */
export function longSession(items) {
  const lines = [];
  const add = (received, message_data) => {
    lines.push(
      JSON.stringify({
        timestamp: new Date(START + lines.length * 1000).toISOString(),
        event_type: received ? "websocket_message_received" : "websocket_message_sent",
        direction: received ? "incoming" : "outgoing",
        message_data,
      }),
    );
  };
  const item = (payload) => add(false, { id: `m-${lines.length}`, type: "response_item", payload });
  const loading = (is) =>
    add(false, { id: `m-${lines.length}`, type: "loading_state", payload: { loading: is } });
  const said = (role, text) => ({ type: "message", role, content: [{ type: "input_text", text }] });
  add(true, { event: "session_started" });
  for (let at = 0; at < items; at += 3) {
    const call = `call-${at}`;
    add(true, {
      id: `u-${at}`,
      type: "user_input",
      payload: { input: [said("user", `item ${at} of a long talk`)] },
    });
    loading(true);
    const script = JSON.stringify({ command: ["bash", "-lc", `echo item ${at + 1}`] });
    item({ type: "function_call", id: call, call_id: call, name: "shell", arguments: script });
    const output = JSON.stringify({
      output: `item ${at + 1}\n${"a line of output\n".repeat(6)}`,
      metadata: { exit_code: 0, duration_seconds: 0.1 },
    });
    item({ type: "function_call_output", id: `${call}-o`, call_id: call, output });
    item({
      ...said("assistant", `item ${at + 2} says:\n\n${WORDS}${at % 9 === 0 ? CODE : ""}`),
      id: `a-${at}`,
    });
    loading(false);
    add(false, {
      id: `m-${lines.length}`,
      type: "agent_finished",
      payload: { responseId: `r-${at}` },
    });
  }
  return `${lines.join("\n")}\n`;
}
