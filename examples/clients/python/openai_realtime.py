import asyncio
import base64
import os

from openai import AsyncOpenAI

url = os.environ.get("GATEWAY_URL", "http://127.0.0.1:8080")
key = os.environ.get("GATEWAY_KEY", "sandbox-demo-key")
client = AsyncOpenAI(base_url=f"{url}/v1", api_key=key)


async def speak(modality: str) -> tuple[str, bytes]:
    said, audio = "", b""
    async with client.realtime.connect(model="gpt-realtime") as connection:
        await connection.session.update(session={"type": "realtime", "output_modalities": [modality]})
        content = [{"type": "input_text", "text": "Hello!"}]
        await connection.conversation.item.create(item={"type": "message", "role": "user", "content": content})
        await connection.response.create()
        async for event in connection:
            if event.type in ("response.output_text.delta", "response.output_audio_transcript.delta"):
                said += event.delta
            elif event.type == "response.output_audio.delta":
                audio += base64.b64decode(event.delta)
            elif event.type == "error":
                raise RuntimeError(event.error.message)
            elif event.type == "response.done":
                break
    return said, audio


print(asyncio.run(speak("text"))[0])
# The lines above are the snippet of docs/clients.md.

text, silence = asyncio.run(speak("text"))
assert "Hello!" in text and silence == b""
print("ok realtime")

text, audio = asyncio.run(speak("audio"))
assert "Hello!" in text and len(audio) > 10_000
print("ok realtime-audio")
