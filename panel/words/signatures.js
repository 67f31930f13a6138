// The signatures of a webhook's deliveries, as the API names them and in words.
export const SIGNATURES = [["hmac", "Signing secret (HMAC)"], ["ed25519", "Signing secret and key pair (Ed25519)"]];

export const signatureInWords = (signature) => new Map(SIGNATURES).get(signature) ?? signature;
