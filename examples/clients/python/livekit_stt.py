import asyncio
import json
import os
import sys
import urllib.request

from livekit import rtc
from livekit.agents import stt, utils
from livekit.plugins import openai

url = os.environ.get("GATEWAY_URL", "http://127.0.0.1:8080")
key = os.environ.get("GATEWAY_KEY", "sandbox-demo-key")


def ears() -> openai.STT:
    return openai.STT(model="gpt-4o-mini-transcribe", use_realtime=True, base_url=f"{url}/v1", api_key=key)
# The lines above are the snippet of docs/clients.md.


def speech() -> bytes:
    body = {"model": "tts-1", "voice": "alloy", "input": "What is the weather today?", "response_format": "pcm"}
    headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}
    request = urllib.request.Request(f"{url}/v1/audio/speech", json.dumps(body).encode(), headers)
    return urllib.request.urlopen(request).read() + bytes(48_000)  # A second of silence ends the turn.


async def main() -> None:
    async with utils.http_context.open():
        stream = ears().stream()
        pcm = speech()
        for at in range(0, len(pcm), 4_800):  # 100 ms of 16 bit samples at 24 kHz.
            piece = pcm[at : at + 4_800]
            frame = rtc.AudioFrame(piece, sample_rate=24_000, num_channels=1, samples_per_channel=len(piece) // 2)
            stream.push_frame(frame)
        async for event in stream:
            if event.type == stt.SpeechEventType.FINAL_TRANSCRIPT:
                assert "checksum" in event.alternatives[0].text
                print("ok realtime-transcription")
                return await stream.aclose()
    sys.exit("no transcript")


asyncio.run(asyncio.wait_for(main(), 30))
