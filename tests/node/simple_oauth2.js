// Gets tokens with simple-oauth2. The input is a list of attempts as JSON, and the output is a list
// of outcomes.

import { text } from "node:stream/consumers";

import { ClientCredentials } from "simple-oauth2";

const METHODS = { client_secret_basic: "header", client_secret_post: "body" };

async function outcome(attempt) {
  const endpoint = new URL(attempt.tokenEndpoint);
  const client = new ClientCredentials({
    client: { id: attempt.clientId, secret: attempt.clientSecret },
    auth: { tokenHost: endpoint.origin, tokenPath: endpoint.pathname },
    options: { authorizationMethod: METHODS[attempt.method] },
  });
  try {
    return { token: (await client.getToken({ scope: attempt.scope })).token };
  } catch (error) {
    if (!error.data?.payload?.error) throw error;
    return { error: error.data.payload.error };
  }
}

const attempts = JSON.parse(await text(process.stdin));
console.log(JSON.stringify(await Promise.all(attempts.map(outcome))));
