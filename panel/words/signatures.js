// The signatures of a webhook's deliveries, as the API names them and in words.
export const SIGNATURES = [["hmac", "With the signing secret (HMAC)"],
  ["ed25519", "With the signing secret, and with a key pair (Ed25519)"]];

export const signatureInWords = (signature) => new Map(SIGNATURES).get(signature) ?? signature;
