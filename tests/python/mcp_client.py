"""Uses the service with mcp, the official library, by an address, an identifier and a secret. Input: a list of attempts as
JSON; output: a list of outcomes."""

import asyncio
import json
import sys

import httpx2
from mcp import Client
from mcp.client.auth.extensions.client_credentials import ClientCredentialsOAuthProvider
from mcp.client.streamable_http import streamable_http_client


class Memory:
    """The token storage that the library requires."""

    tokens = None

    async def get_tokens(self):
        return self.tokens

    async def set_tokens(self, tokens):
        self.tokens = tokens

    async def get_client_info(self):
        return None

    async def set_client_info(self, client_info):
        pass


async def outcome(attempt):
    memory = Memory()
    provider = ClientCredentialsOAuthProvider(
        server_url=attempt["address"],
        storage=memory,
        client_id=attempt["clientId"],
        client_secret=attempt["clientSecret"],
        issuer=attempt["issuer"],
    )
    async with httpx2.AsyncClient(auth=provider, trust_env=False) as http:
        transport = streamable_http_client(attempt["address"], http_client=http)
        async with Client(transport, mode=attempt["mode"]) as client:
            granted = [memory.tokens.scope]
            tools = [tool.name for tool in (await client.list_tools()).tools]
            results = []
            for call in attempt["calls"]:
                result = await client.call_tool(call["name"], call["arguments"])
                results.append(result.model_dump(mode="json", by_alias=True, include={"content", "structured_content", "is_error"}))
                granted.append(memory.tokens.scope)
            return {
                "server": client.server_info.name,
                "revision": client.protocol_version,
                "tools": tools,
                "results": results,
                "granted": granted,
            }


async def outcomes(attempts):
    return [await outcome(attempt) for attempt in attempts]


json.dump(asyncio.run(outcomes(json.load(sys.stdin))), sys.stdout)
