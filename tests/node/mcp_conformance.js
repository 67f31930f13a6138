// Runs the official conformance suite of the Model Context Protocol at a service: its address, a token, the arguments and the
// names of the lists of expected failures come in as JSON, and the exit status and what was printed go out. The suite sends no
// tokens, so that it calls a proxy, which adds one, and in whose place the service stands for the Origin of a request as well.

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

// The suite takes one list.
const folder = await mkdtemp(join(tmpdir(), "conformance-"));
const baseline = join(folder, "expected-failures.yaml");
const lists = await Promise.all(expectedFailures.map((list) => readFile(beside(list), "utf8")));
await writeFile(baseline, ["server:", ...lists].join("\n"));

const place =
  given[0] === "server"
    ? ["--url", `http://127.0.0.1:${proxy.address().port}/mcp`, "--expected-failures", baseline]
    : ["--url", issuer];
const suite = spawn(process.execPath, [SUITE, ...given, ...place], { stdio: ["ignore", "pipe", "pipe"] });
const [printed, complaints, status] = await Promise.all([
  text(suite.stdout),
  text(suite.stderr),
  new Promise((ended) => suite.on("close", ended)),
]);
proxy.close();
proxy.closeAllConnections();
await rm(folder, { recursive: true });
console.log(JSON.stringify({ status, output: printed + complaints }));
