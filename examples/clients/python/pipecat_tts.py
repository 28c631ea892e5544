import asyncio
import os

from pipecat.services.openai.llm import OpenAILLMService
from pipecat.services.openai.tts import OpenAITTSService

url = os.environ.get("GATEWAY_URL", "http://127.0.0.1:8080")
key = os.environ.get("GATEWAY_KEY", "sandbox-demo-key")

llm = OpenAILLMService(base_url=f"{url}/v1", api_key=key, settings=OpenAILLMService.Settings(model="gpt-4o-mini"))
tts = OpenAITTSService(
    base_url=f"{url}/v1",
    api_key=key,
    sample_rate=24_000,
    settings=OpenAITTSService.Settings(model="gpt-4o-mini-tts", voice="alloy"),
)
# The lines above are the snippet of docs/clients.md.

from pipecat.frames.frames import EndFrame, ErrorFrame, Frame, LLMContextFrame, LLMTextFrame, TTSAudioRawFrame
from pipecat.pipeline.pipeline import Pipeline
from pipecat.pipeline.worker import PipelineWorker
from pipecat.processors.aggregators.llm_context import LLMContext
from pipecat.processors.frame_processor import FrameDirection, FrameProcessor
from pipecat.workers.runner import WorkerRunner

said, audio, errors = [], [], []


class Listener(FrameProcessor):
    async def process_frame(self, frame: Frame, direction: FrameDirection) -> None:
        await super().process_frame(frame, direction)
        if isinstance(frame, LLMTextFrame):
            said.append(frame.text)
        elif isinstance(frame, TTSAudioRawFrame):
            audio.append(frame.audio)
        await self.push_frame(frame, direction)


async def main() -> None:
    worker = PipelineWorker(Pipeline([llm, Listener(), tts, Listener()]))
    question = LLMContext([{"role": "user", "content": "Hello!"}])
    await worker.queue_frames([LLMContextFrame(question), EndFrame()])
    runner = WorkerRunner()
    await runner.add_workers(worker)
    await runner.run()


asyncio.run(main())
assert "Hello!" in "".join(said), said
print("ok stream")
assert sum(map(len, audio)) > 10_000
print("ok speech")
