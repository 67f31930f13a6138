// Uses the service with @modelcontextprotocol/sdk, the library's previous generation, which
// requests all of the application's scopes at once. Input and output are the same as in
// mcp_client.js.

import { text } from "node:stream/consumers";

import { ClientCredentialsProvider } from "@modelcontextprotocol/sdk/client/auth-extensions.js";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";

async function outcome({ address, clientId, clientSecret, issuer, calls }) {
  const authProvider = new ClientCredentialsProvider({ clientId, clientSecret, expectedIssuer: issuer });
  const client = new Client({ name: "tests", version: "1" });
  const transport = new StreamableHTTPClientTransport(new URL(address), { authProvider });
  await client.connect(transport);
  const granted = [authProvider.tokens().scope];
  const { tools } = await client.listTools();
  const results = [];
  for (const call of calls) {
    const { content, structuredContent, isError } = await client.callTool(call);
    results.push({ content, structuredContent, isError });
    granted.push(authProvider.tokens().scope);
  }
  const { name: server } = client.getServerVersion();
  const revision = transport.protocolVersion;
  await client.close();
  return { server, revision, tools: tools.map(({ name }) => name), results, granted };
}

const attempts = JSON.parse(await text(process.stdin));
console.log(JSON.stringify(await Promise.all(attempts.map(outcome))));
