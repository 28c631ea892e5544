import os

from pydantic import BaseModel
from pydantic_ai import Agent
from pydantic_ai.models.anthropic import AnthropicModel
from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
from pydantic_ai.providers.anthropic import AnthropicProvider
from pydantic_ai.providers.openai import OpenAIProvider

url = os.environ.get("GATEWAY_URL", "http://127.0.0.1:8080")
key = os.environ.get("GATEWAY_KEY", "sandbox-demo-key")
provider = OpenAIProvider(base_url=f"{url}/v1", api_key=key)
gpt = OpenAIChatModel("gpt-4o-mini", provider=provider)
responses = OpenAIResponsesModel("gpt-5-mini", provider=provider)  # where the gateway serves the model at /v1/responses
claude = AnthropicModel("claude-sonnet-4-6", provider=AnthropicProvider(base_url=url, api_key=key))  # without /v1

print(Agent(gpt).run_sync("Hello!").output)
print(Agent(responses).run_sync("Hello!").output)
print(Agent(claude).run_sync("Hello!").output)
# The lines above are the snippet of docs/clients.md.


class City(BaseModel):
    name: str
    inhabitants: int


for model in (gpt, claude):
    assert "Hello!" in Agent(model).run_sync("Hello!").output
print("ok chat")

for model in (gpt, claude):
    assert "Hello!" in "".join(Agent(model).run_stream_sync("Hello!").stream_text(delta=True))
print("ok stream")

for model in (gpt, claude):
    agent = Agent(model)
    called = []
    agent.tool_plain(lambda city: called.append(city) or "21 degrees", name="weather")
    assert agent.run_sync("Weather in Paris?").output and len(called) == 1
print("ok tools")

for model in (gpt, claude):
    assert isinstance(Agent(model, output_type=City).run_sync("Describe Paris.").output, City)
print("ok structured")



def use(model: OpenAIResponsesModel) -> None:
    agent = Agent(model)
    called = []
    agent.tool_plain(lambda city: called.append(city) or "21 degrees", name="weather")
    answered = agent.run_sync("Weather in Paris?")
    assert answered.output and len(called) == 1
    continued = Agent(model).run_stream_sync("Hello!", message_history=answered.all_messages())
    assert "Hello!" in "".join(continued.stream_text(delta=True))
    assert isinstance(Agent(model, output_type=City).run_sync("Describe Paris.").output, City)


use(responses)
print("ok responses")

# A gateway that translates has Claude there, too.
if os.environ.get("TRANSLATE") == "on":
    use(OpenAIResponsesModel("claude-sonnet-4-6", provider=provider))
    print("ok translated")
