// A pasted public key as a JSON Web Key: PEM is converted by the browser, so that the API receives one format.
import { Refusal, violationOf } from "../refusal.js";

const EXPORT = "openssl pkey -in private.pem -pubout";

const refuse = (detail) => {
  throw new Refusal({ title: "The key was not added", detail: "Correct the marked field.",
    properties: { violations: [violationOf("publicKey", detail)] } });
};

/** The algorithms of public keys, by the object identifiers in their DER form (RFC 5280 §4.1.2.7). */
const KINDS = [
  { oid: "2a864886f70d010101", algorithm: { name: "RSASSA-PKCS1-v1_5", hash: "SHA-256" } },
  { oid: "2a8648ce3d030107", algorithm: { name: "ECDSA", namedCurve: "P-256" } },
  { oid: "2b81040022", algorithm: { name: "ECDSA", namedCurve: "P-384" } },
  { oid: "2b6570", algorithm: { name: "Ed25519" } },
];

/** The members that define a key. The browser adds others, such as `key_ops`, which say nothing about it. */
const MEMBERS = ["kty", "crv", "x", "y", "n", "e"];

/** The members of a JSON Web Key that are secret (RFC 7518 §6). */
const SECRET_MEMBERS = ["d", "p", "q", "dp", "dq", "qi", "oth", "k"];

const refusePrivate = () => refuse(`must not be a private key. This pair is no longer safe, since its private key ` +
  `was pasted here. Create a new pair, and paste the output of “${EXPORT}”`);

/** The public key in a text, as the API accepts it. Throws a `Refusal` that says what to paste instead. */
export async function publicKeyOf(text) {
  const given = text.trim();
  if (!given) return refuse("is missing: paste a key in PEM or JWK form");
  if (given.includes("-----BEGIN")) return ofPem(given);
  let jwk;
  try {
    jwk = JSON.parse(given);
  } catch {
    return refuse("is neither PEM nor a JSON Web Key: paste the whole text, from “-----BEGIN PUBLIC KEY-----” or from “{”");
  }
  return SECRET_MEMBERS.some((name) => Object.hasOwn(jwk ?? {}, name)) ? refusePrivate() : jwk;
}

async function ofPem(text) {
  const [, label, body] = text.match(/-----BEGIN ([A-Z0-9 ]+)-----([\s\S]*?)-----END \1-----/) ?? [];
  if (text.includes("PRIVATE KEY")) return refusePrivate();
  if (!label) return refuse("is cut off: paste the text from “-----BEGIN” to the end of the “-----END” line");
  if (label === "CERTIFICATE") return refuse("is a certificate: paste the output of “openssl x509 -in certificate.pem -noout -pubkey”");
  if (label === "RSA PUBLIC KEY") {
    return refuse("is an RSA key in an old format: paste the output of “openssl rsa -RSAPublicKey_in -in key.pem -pubout”");
  }
  if (label !== "PUBLIC KEY") return refuse(`is “${label}”: paste a “PUBLIC KEY”, as printed by “${EXPORT}”`);
  return ofDer(bytesOf(body));
}

function bytesOf(body) {
  try {
    return Uint8Array.from(atob(body.replaceAll(/\s/g, "")), (letter) => letter.charCodeAt(0));
  } catch {
    return refuse("contains characters that are not Base64: copy the key again");
  }
}

async function ofDer(der) {
  const hex = Array.from(der.slice(0, 40), (byte) => byte.toString(16).padStart(2, "0")).join("");
  const kind = KINDS.find(({ oid }) => hex.includes(oid));
  if (!kind) return refuse("has an unsupported algorithm: use Ed25519, ECDSA on P-256 or P-384, or RSA");
  if (!globalThis.crypto?.subtle) return refuse("cannot be converted without https: paste it as a JSON Web Key");
  let jwk;
  try {
    const key = await crypto.subtle.importKey("spki", der, kind.algorithm, true, ["verify"]);
    jwk = await crypto.subtle.exportKey("jwk", key);
  } catch (error) {
    return refuse(error.name === "NotSupportedError"
      ? "cannot be converted by this browser: paste it as a JSON Web Key, or use a newer browser"
      : "is damaged: copy the whole key again");
  }
  return Object.fromEntries(MEMBERS.filter((name) => name in jwk).map((name) => [name, jwk[name]]));
}
