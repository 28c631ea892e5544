import asyncio
import json
import os
import urllib.request

from pipecat.frames.frames import InputAudioRawFrame, TranscriptionFrame
from pipecat.pipeline.pipeline import Pipeline
from pipecat.pipeline.runner import PipelineRunner
from pipecat.pipeline.task import PipelineTask
from pipecat.processors.frame_processor import FrameProcessor
from pipecat.services.openai.stt import OpenAIRealtimeSTTService

url = os.environ.get("GATEWAY_URL", "http://127.0.0.1:8080")
key = os.environ.get("GATEWAY_KEY", "sandbox-demo-key")


def ears() -> OpenAIRealtimeSTTService:
    return OpenAIRealtimeSTTService(
        base_url=f"{url.replace('http', 'ws', 1)}/v1/realtime",
        api_key=key,
        settings=OpenAIRealtimeSTTService.Settings(model="gpt-4o-transcribe"),
        turn_detection={"type": "server_vad", "silence_duration_ms": 800},
    )
# The lines above are the snippet of docs/clients.md.


heard = asyncio.Event()


class Listener(FrameProcessor):
    async def process_frame(self, frame, direction):
        await super().process_frame(frame, direction)
        if isinstance(frame, TranscriptionFrame) and "checksum" in frame.text:
            heard.set()
        await self.push_frame(frame, direction)


async def main() -> None:
    body = {"model": "tts-1", "voice": "alloy", "input": "What is the weather today?", "response_format": "pcm"}
    headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}
    request = urllib.request.Request(f"{url}/v1/audio/speech", json.dumps(body).encode(), headers)
    pcm = urllib.request.urlopen(request).read() + bytes(48_000)  # A second of silence ends the turn.
    task = PipelineTask(Pipeline([ears(), Listener()]))
    running = asyncio.create_task(PipelineRunner(handle_sigint=False).run(task))
    for at in range(0, len(pcm), 4_800):  # As a microphone does: 100 ms at a time.
        piece = pcm[at : at + 4_800].ljust(4_800, b"\0")
        await task.queue_frame(InputAudioRawFrame(piece, sample_rate=24_000, num_channels=1))
        await asyncio.sleep(0.1)
    await asyncio.wait_for(heard.wait(), 15)
    print("ok realtime-transcription")
    await task.cancel()
    await running


asyncio.run(main())
