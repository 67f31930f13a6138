// Runs the official conformance suite of the Model Context Protocol against a service. The JSON
// input has the service's URL, a token, the arguments and the lists of expected failures; the
// output is the exit status and the suite's output. The suite sends no tokens, so it calls a proxy
// that adds the token and replaces the suite's Origin with the service's.

import { spawn } from "node:child_process";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { createServer, request } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { buffer, json, text } from "node:stream/consumers";
import { setTimeout } from "node:timers/promises";
import { fileURLToPath } from "node:url";

const beside = (path) => fileURLToPath(new URL(path, import.meta.url));
const SUITE = beside("node_modules/@modelcontextprotocol/conformance/dist/index.js");

const { address, baseUrl, issuer, token, arguments: given, expectedFailures } = await json(process.stdin);

// On a slow machine, the service may respond with 503 when the table is slow. A client should then
// try again, but the suite does not.
const call = (incoming, headers, body) =>
  new Promise((answered, failed) => {
    const onward = request(new URL(incoming.url, address), { method: incoming.method, headers }, answered);
    onward.on("error", failed).end(body);
  });
const repeated = async (incoming, headers, body) => {
  for (let left = 20; ; left--) {
    const answer = await call(incoming, headers, body);
    if (answer.statusCode !== 503 || left === 0) return answer;
    answer.resume();
    await setTimeout(1000 * Number(answer.headers["retry-after"] ?? 1));
  }
};

const proxy = createServer(async (incoming, outgoing) => {
  const { host, origin, ...headers } = incoming.headers;
  const own = `http://127.0.0.1:${proxy.address().port}`;
  if (origin) headers.origin = origin === own ? baseUrl : origin;
  headers.authorization = `Bearer ${token}`;
  try {
    const answer = await repeated(incoming, headers, await buffer(incoming));
    outgoing.writeHead(answer.statusCode, answer.headers);
    answer.pipe(outgoing);
  } catch (error) {
    outgoing.writeHead(502).end(String(error));
  }
});
await new Promise((listening) => proxy.listen(0, "127.0.0.1", listening));

// The suite accepts only a single list.
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
