// Gets tokens with openid-client, which finds every endpoint by discovery (RFC 8414). The input is
// a list of attempts as JSON, and the output is a list of outcomes.

import { text } from "node:stream/consumers";

import * as oauth from "openid-client";

/** The library's authentication method for an attempt. */
async function authentication({ method, clientSecret, privateKey }) {
  switch (method) {
    case "client_secret_basic":
      return oauth.ClientSecretBasic(clientSecret);
    case "client_secret_post":
      return oauth.ClientSecretPost(clientSecret);
    case "private_key_jwt": {
      // For an Ed25519 key, the library uses the algorithm's name from RFC 9864.
      const algorithm = privateKey.kty === "OKP" ? { name: "Ed25519" } : { name: "ECDSA", namedCurve: privateKey.crv };
      const key = await crypto.subtle.importKey("jwk", privateKey, algorithm, false, ["sign"]);
      return oauth.PrivateKeyJwt({ key, kid: privateKey.kid });
    }
  }
}

async function outcome(attempt) {
  // The library requires TLS, but the test's issuer is on this machine.
  const options = { algorithm: "oauth2", execute: [oauth.allowInsecureRequests] };
  const issuer = new URL(attempt.issuer);
  const client = await oauth.discovery(issuer, attempt.clientId, {}, await authentication(attempt), options);
  let token;
  try {
    token = await oauth.clientCredentialsGrant(client, { scope: attempt.scope });
  } catch (error) {
    // If a response includes a challenge, the library's error contains both.
    if (!(error instanceof oauth.WWWAuthenticateChallengeError || error instanceof oauth.ResponseBodyError)) throw error;
    return { error: error.error ?? (await error.response.json()).error };
  }
  if (!attempt.revoke) return { token };
  // The state of the token before and after it is revoked.
  const active = async () => (await oauth.tokenIntrospection(client, token.access_token)).active;
  const before = await active();
  await oauth.tokenRevocation(client, token.access_token);
  return { token, active: [before, await active()] };
}

const attempts = JSON.parse(await text(process.stdin));
console.log(JSON.stringify(await Promise.all(attempts.map(outcome))));
