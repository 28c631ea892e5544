import asyncio
import os

from agents import Agent, OpenAIChatCompletionsModel, Runner, set_tracing_disabled
from openai import AsyncOpenAI

url = os.environ.get("GATEWAY_URL", "http://127.0.0.1:8080")
key = os.environ.get("GATEWAY_KEY", "sandbox-demo-key")
set_tracing_disabled(True)  # traces would go to the vendor


async def main() -> None:
    # For models that the gateway does not serve at /v1/responses, which agents use by default.
    model = OpenAIChatCompletionsModel("gpt-4o-mini", AsyncOpenAI(base_url=f"{url}/v1", api_key=key))
    result = await Runner.run(Agent(name="Assistant", model=model), "Hello!")
    print(result.final_output)


asyncio.run(main())
# The lines above are the snippet of docs/clients.md.

from agents import OpenAIProvider, RunConfig, function_tool
from pydantic import BaseModel

cities = []


class City(BaseModel):
    name: str
    inhabitants: int


@function_tool
def weather(city: str) -> str:
    """Weather of a city."""
    cities.append(city)
    return "21 degrees"


async def others() -> None:
    model = OpenAIChatCompletionsModel("gpt-4o-mini", AsyncOpenAI(base_url=f"{url}/v1", api_key=key))
    assistant = Agent(name="Assistant", model=model)
    assert "Hello!" in (await Runner.run(assistant, "Hello!")).final_output
    print("ok chat")

    streamed = Runner.run_streamed(assistant, "Hello!")
    assert [event async for event in streamed.stream_events()] and "Hello!" in streamed.final_output
    print("ok stream")

    assert (await Runner.run(assistant.clone(tools=[weather]), "Weather in Paris?")).final_output
    assert len(cities) == 1
    print("ok tools")

    described = await Runner.run(assistant.clone(output_type=City), "Describe Paris.")
    assert isinstance(described.final_output, City)
    print("ok structured")

    # By default, and for a model that is named without its class, agents use /v1/responses.
    provider = OpenAIProvider(openai_client=AsyncOpenAI(base_url=f"{url}/v1", api_key=key))
    config = RunConfig(model_provider=provider)
    guide = Agent(name="Guide", model="gpt-5-mini", tools=[weather])
    first = await Runner.run(guide, "Weather in Paris?", run_config=config)
    assert first.final_output and len(cities) == 2
    streamed = Runner.run_streamed(
        guide.clone(tools=[]), "Hello!", run_config=config, previous_response_id=first.last_response_id
    )
    assert [event async for event in streamed.stream_events()] and "Hello!" in streamed.final_output
    print("ok responses")

    # A gateway that translates has Claude there, too.
    if os.environ.get("TRANSLATE") == "on":
        claude = guide.clone(model="claude-sonnet-4-6")
        first = await Runner.run(claude, "Weather in Paris?", run_config=config)
        assert first.final_output and len(cities) == 3
        streamed = Runner.run_streamed(
            claude.clone(tools=[]), "Hello!", run_config=config, previous_response_id=first.last_response_id
        )
        assert [event async for event in streamed.stream_events()] and "Hello!" in streamed.final_output
        described = await Runner.run(claude.clone(tools=[], output_type=City), "Describe Paris.", run_config=config)
        assert isinstance(described.final_output, City)
        print("ok translated")


asyncio.run(others())
