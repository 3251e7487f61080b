// node reconnect.mjs URL TEXT PIECES: starts a turn, tears the connection down after every so many
// messages, comes back where it broke off, and reports the texts it put together.

import { Connection, Screen, report } from "./client.mjs";

const [url, text, pieces] = process.argv.slice(2);
const screen = new Screen();
let connection = await Connection.open(url);
connection.say(text);
let connections = 1;
let place = null;
for (let count = 1; ; count += 1) {
  const message = await connection.next();
  place = message.cursor ?? message.seq ?? place;
  if (message.type === "response_item") screen.item(message.payload);
  if (message.type === "agent_finished") break;
  if (count % Number(pieces) === 0) {
    connection.socket.terminate();
    connection = await Connection.open(`${url}?since=${encodeURIComponent(place)}`);
    connections += 1;
  }
}
const messages = Object.fromEntries(screen.messages.map(({ id, text }) => [id, text]));
report({ messages, order: screen.order, connections });
