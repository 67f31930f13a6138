// A webhook's retries, as the API names them and in words.
export const RETRIES = [["default", "The whole schedule"], ["short", "Within an hour"], ["none", "No retries"]];

export const retriesInWords = (retries) => new Map(RETRIES).get(retries) ?? retries;
