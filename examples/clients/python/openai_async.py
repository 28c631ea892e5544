import asyncio
import os

from openai import AsyncOpenAI

url = os.environ.get("GATEWAY_URL", "http://127.0.0.1:8080")
key = os.environ.get("GATEWAY_KEY", "sandbox-demo-key")


async def chat() -> str:
    async with AsyncOpenAI(base_url=f"{url}/v1", api_key=key) as client:
        stream = await client.chat.completions.create(
            model="gpt-4o-mini", messages=[{"role": "user", "content": "Hello!"}], stream=True
        )
        pieces = [chunk.choices[0].delta.content or "" async for chunk in stream]
        return "".join(pieces)


print(asyncio.run(chat()))
# The lines above are the snippet of docs/clients.md.


async def others() -> None:
    async with AsyncOpenAI(base_url=f"{url}/v1", api_key=key) as client:
        completions = await asyncio.gather(
            *(
                client.chat.completions.create(
                    model="gpt-4o-mini", messages=[{"role": "user", "content": f"Call {number}."}]
                )
                for number in range(5)
            )
        )
        for number, completion in enumerate(completions):
            assert f"Call {number}." in completion.choices[0].message.content
        print("ok chat")
        async with client.audio.speech.with_streaming_response.create(
            model="tts-1", voice="alloy", input="Hello from the gateway.", response_format="wav"
        ) as response:
            audio = await response.read()
        assert audio[:4] == b"RIFF"
        print("ok speech")
        transcript = await client.audio.transcriptions.create(
            model="gpt-4o-transcribe", file=("hello.wav", audio), stream=True
        )
        assert [event.type async for event in transcript][-1] == "transcript.text.done"
        print("ok transcription")


assert "Hello!" in asyncio.run(chat())
print("ok stream")
asyncio.run(others())
