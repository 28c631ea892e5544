import os

from llama_index.llms.anthropic import Anthropic
from llama_index.llms.openai_like import OpenAILike

url = os.environ.get("GATEWAY_URL", "http://127.0.0.1:8080")
key = os.environ.get("GATEWAY_KEY", "sandbox-demo-key")
gpt = OpenAILike(
    model="gpt-4o-mini", api_base=f"{url}/v1", api_key=key, is_chat_model=True, is_function_calling_model=True
)
claude = Anthropic(model="claude-sonnet-4-6", base_url=url, api_key=key)  # without /v1

print(gpt.complete("Hello!"))
print(claude.complete("Hello!"))
# The lines above are the snippet of docs/clients.md.

from llama_index.core.llms import ChatMessage
from llama_index.core.tools import FunctionTool

question = [ChatMessage(role="user", content="Hello!")]


def weather(city: str) -> str:
    """Weather of a city."""
    return f"21 degrees in {city}"


for model in (gpt, claude):
    assert "Hello!" in model.chat(question).message.content
print("ok chat")

for model in (gpt, claude):
    assert "Hello!" in "".join(chunk.delta or "" for chunk in model.stream_chat(question))
print("ok stream")

for model in (gpt, claude):
    response = model.chat_with_tools([FunctionTool.from_defaults(weather)], "Weather?", tool_required=True)
    call = model.get_tool_calls_from_response(response)[0]
    assert call.tool_name == "weather" and "city" in call.tool_kwargs, call
print("ok tools")

from llama_index.llms.openai import OpenAIResponses



def use(responses: OpenAIResponses) -> None:
    assert "Hello!" in responses.chat(question).message.content
    assert "Hello!" in "".join(chunk.delta or "" for chunk in responses.stream_chat(question))
    asked = responses.chat_with_tools([FunctionTool.from_defaults(weather)], "Weather?", tool_required=True)
    assert responses.get_tool_calls_from_response(asked)[0].tool_name == "weather"


thinking = {"effort": "low"}
use(OpenAIResponses(model="gpt-5-mini", api_base=f"{url}/v1", api_key=key, reasoning_options=thinking))
print("ok responses")

# A gateway that translates has Claude there, too. This class must be told how much a model takes whose name it does not know.
if os.environ.get("TRANSLATE") == "on":
    use(OpenAIResponses(model="claude-sonnet-4-6", api_base=f"{url}/v1", api_key=key, context_window=200_000))
    print("ok translated")
