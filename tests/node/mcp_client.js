// Uses the service with @modelcontextprotocol/client, given a URL, an identifier, and a secret or a
// private key. The input is a list of attempts as JSON, and the output is a list of outcomes.

import { text } from "node:stream/consumers";

import {
  Client,
  ClientCredentialsProvider,
  PrivateKeyJwtProvider,
  StreamableHTTPClientTransport,
} from "@modelcontextprotocol/client";

async function outcome({ address, clientId, clientSecret, privateKey, issuer, mode, calls }) {
  const authProvider = privateKey
    ? new PrivateKeyJwtProvider({ clientId, privateKey, algorithm: privateKey.alg, expectedIssuer: issuer })
    : new ClientCredentialsProvider({ clientId, clientSecret, expectedIssuer: issuer });
  const client = new Client({ name: "tests", version: "1" }, { versionNegotiation: { mode } });
  await client.connect(new StreamableHTTPClientTransport(new URL(address), { authProvider }));
  const granted = [authProvider.tokens().scope];
  const { tools } = await client.listTools();
  const results = [];
  for (const call of calls) {
    const { content, structuredContent, isError } = await client.callTool(call);
    results.push({ content, structuredContent, isError });
    granted.push(authProvider.tokens().scope);
  }
  const { name: server } = client.getServerVersion();
  const revision = client.getNegotiatedProtocolVersion();
  await client.close();
  return { server, revision, tools: tools.map(({ name }) => name), results, granted };
}

const attempts = JSON.parse(await text(process.stdin));
console.log(JSON.stringify(await Promise.all(attempts.map(outcome))));
