import asyncio
import os

from livekit.agents import llm, utils
from livekit.plugins import openai

url = os.environ.get("GATEWAY_URL", "http://127.0.0.1:8080")
key = os.environ.get("GATEWAY_KEY", "sandbox-demo-key")


def voice() -> openai.TTS:
    return openai.TTS(model="gpt-4o-mini-tts", voice="alloy", base_url=f"{url}/v1", api_key=key)


def model() -> openai.LLM:
    return openai.LLM(model="gpt-4o-mini", base_url=f"{url}/v1", api_key=key)
# The lines above are the snippet of docs/clients.md.


async def main() -> None:
    # Inside a job of an agent the HTTP session is there already.
    async with utils.http_context.open():
        question = llm.ChatContext.empty()
        question.add_message(role="user", content="Hello!")
        async with model() as gpt, gpt.chat(chat_ctx=question) as stream:
            assert "Hello!" in "".join([chunk.delta.content or "" async for chunk in stream if chunk.delta])
        print("ok stream")

        async with voice() as tts, tts.synthesize("Hello from the gateway.") as speech:
            frames = [event.frame async for event in speech]
        assert sum(frame.duration for frame in frames) > 0.3 and frames[0].sample_rate == 24_000
        print("ok speech")


asyncio.run(main())
