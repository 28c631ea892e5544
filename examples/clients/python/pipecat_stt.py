"""Realtime transcription with Pipecat, in a pipeline without a transport: pip install "pipecat-ai[openai]" """

import asyncio, json, os, urllib.request

from pipecat.frames.frames import InputAudioRawFrame, TranscriptionFrame
from pipecat.pipeline.pipeline import Pipeline
from pipecat.pipeline.runner import PipelineRunner
from pipecat.pipeline.task import PipelineTask
from pipecat.processors.frame_processor import FrameProcessor
from pipecat.services.openai.stt import OpenAIRealtimeSTTService as STT

URL = os.environ.get("GATEWAY_URL", "http://127.0.0.1:8080").rstrip("/")
KEY = os.environ.get("GATEWAY_KEY", "sandbox-demo-key")
VAD = {"type": "server_vad", "silence_duration_ms": 800}
heard = asyncio.Event()

class Printer(FrameProcessor):
    async def process_frame(self, frame, direction):
        await super().process_frame(frame, direction)
        if isinstance(frame, TranscriptionFrame) and not heard.is_set():
            print("pipecat:", frame.text)
            heard.set()
        await self.push_frame(frame, direction)

async def main():
    body = {"model": "tts-1", "voice": "alloy", "input": "What is the weather today?", "response_format": "pcm"}
    headers = {"Authorization": f"Bearer {KEY}", "Content-Type": "application/json"}
    pcm = urllib.request.urlopen(urllib.request.Request(f"{URL}/v1/audio/speech", json.dumps(body).encode(), headers)).read()
    url = URL.replace("http", "ws", 1) + "/v1/realtime"
    stt = STT(api_key=KEY, base_url=url, settings=STT.Settings(model="gpt-4o-transcribe"), turn_detection=VAD)
    task = PipelineTask(Pipeline([stt, Printer()]))
    running = asyncio.create_task(PipelineRunner(handle_sigint=False).run(task))
    for at in range(0, len(pcm) + 48_000, 4_800):  # as a microphone does: 100 ms at a time, at the end a second of silence
        await task.queue_frame(InputAudioRawFrame(pcm[at : at + 4_800].ljust(4_800, b"\0"), sample_rate=24_000, num_channels=1))
        await asyncio.sleep(0.1)
    await asyncio.wait_for(heard.wait(), 15)
    await task.cancel()
    await running

asyncio.run(main())
