// Runs the official conformance suite of the Model Context Protocol against a service. Input as JSON: the service's address, a
// token, the arguments and the lists of expected failures; output: the exit status and the suite's output. The suite sends no
// tokens, so it calls a proxy, which adds the token and replaces its own Origin by that of the service.

import { spawn } from "node:child_process";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { createServer, request } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { json, text } from "node:stream/consumers";
import { fileURLToPath } from "node:url";

const beside = (path) => fileURLToPath(new URL(path, import.meta.url));
const SUITE = beside("node_modules/@modelcontextprotocol/conformance/dist/index.js");

const { address, baseUrl, issuer, token, arguments: given, expectedFailures } = await json(process.stdin);

const proxy = createServer((incoming, outgoing) => {
  const { host, origin, ...headers } = incoming.headers;
  const own = `http://127.0.0.1:${proxy.address().port}`;
  if (origin) headers.origin = origin === own ? baseUrl : origin;
  headers.authorization = `Bearer ${token}`;
  const onward = request(new URL(incoming.url, address), { method: incoming.method, headers }, (answer) => {
    outgoing.writeHead(answer.statusCode, answer.headers);
    answer.pipe(outgoing);
  });
  onward.on("error", (error) => outgoing.writeHead(502).end(String(error)));
  incoming.pipe(onward);
});
await new Promise((listening) => proxy.listen(0, "127.0.0.1", listening));

// The suite accepts one list only.
const folder = await mkdtemp(join(tmpdir(), "conformance-"));
const baseline = join(folder, "expected-failures.yaml");
const lists = await Promise.all(expectedFailures.map((list) => readFile(beside(list), "utf8")));
await writeFile(baseline, ["server:", ...lists].join("\n"));

const target =
  given[0] === "server"
    ? ["--url", `http://127.0.0.1:${proxy.address().port}/mcp`, "--expected-failures", baseline]
    : ["--url", issuer];
const suite = spawn(process.execPath, [SUITE, ...given, ...target], { stdio: ["ignore", "pipe", "pipe"] });
const [output, errors, status] = await Promise.all([
  text(suite.stdout),
  text(suite.stderr),
  new Promise((ended) => suite.on("close", ended)),
]);
proxy.close();
proxy.closeAllConnections();
await rm(folder, { recursive: true });
console.log(JSON.stringify({ status, output: output + errors }));
