// node closing.mjs URL WHAT: sends something that ends the connection and reports the close code.

import { Connection, report } from "./client.mjs";

const [url, what] = process.argv.slice(2);
const connection = await Connection.open(url);
connection.socket.once("close", (code, reason) => report({ code, reason: reason.toString() }));
if (what === "close") connection.socket.close(1000, "done");
else connection.socket.send("x".repeat(Number(what)));
