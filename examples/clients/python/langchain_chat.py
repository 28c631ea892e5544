import os

from langchain.agents import create_agent
from langchain_anthropic import ChatAnthropic
from langchain_openai import ChatOpenAI, OpenAIEmbeddings

url = os.environ.get("GATEWAY_URL", "http://127.0.0.1:8080")
key = os.environ.get("GATEWAY_KEY", "sandbox-demo-key")
gpt = ChatOpenAI(model="gpt-4o-mini", base_url=f"{url}/v1", api_key=key)
claude = ChatAnthropic(model="claude-sonnet-4-6", base_url=url, api_key=key)  # without /v1

print(gpt.invoke("Hello!").content)
print(claude.invoke("Hello!").content)
# The lines above are the snippet of docs/clients.md.


def weather(city: str) -> str:
    """Weather of a city."""
    return f"21 degrees in {city}"


for model in (gpt, claude):
    name = type(model).__name__
    reply = model.invoke("Hello!")
    assert "Hello!" in reply.text and reply.usage_metadata["total_tokens"] > 0, name
print("ok chat")

for model in (gpt, claude):
    assert "Hello!" in "".join(chunk.text for chunk in model.stream("Hello!"))
print("ok stream")

for model in (gpt, claude):
    call = model.bind_tools([weather], tool_choice="weather").invoke("Weather in Paris?").tool_calls[0]
    assert call["name"] == "weather" and "city" in call["args"], call
print("ok tools")

thinking = {"effort": "low", "summary": "auto"}
responses = ChatOpenAI(
    model="gpt-5-mini", base_url=f"{url}/v1", api_key=key, use_responses_api=True, reasoning=thinking
)
reply = responses.invoke("Hello!")
assert "Hello!" in reply.text and reply.usage_metadata["output_token_details"]["reasoning"] > 0
assert "Hello!" in "".join(chunk.text for chunk in responses.stream("Hello!"))
messages = create_agent(responses, tools=[weather]).invoke({"messages": [("user", "Weather in Paris?")]})["messages"]
assert [message.type for message in messages] == ["human", "ai", "tool", "ai"], messages
print("ok responses")

# A gateway that translates has Claude at /v1/responses, too, which `reasoning` alone chooses.
if os.environ.get("TRANSLATE") == "on":
    translated = ChatOpenAI(model="claude-sonnet-4-6", base_url=f"{url}/v1", api_key=key, reasoning=thinking)
    reply = translated.invoke("Hello!")
    assert "Hello!" in reply.text and any(block["type"] == "reasoning" for block in reply.content), reply
    assert "Hello!" in "".join(chunk.text for chunk in translated.stream("Hello!"))
    messages = create_agent(translated, tools=[weather]).invoke({"messages": [("user", "Weather?")]})["messages"]
    assert [message.type for message in messages] == ["human", "ai", "tool", "ai"], messages
    print("ok translated")

# Counts tokens by itself, and sends them in place of the text, unless check_embedding_ctx_length is False.
embeddings = OpenAIEmbeddings(
    model="text-embedding-3-small", base_url=f"{url}/v1", api_key=key, check_embedding_ctx_length=False
)
assert [len(vector) for vector in embeddings.embed_documents(["Hello!", "Goodbye!"])] == [1536, 1536]
print("ok embeddings")

for model in (gpt, claude):
    messages = create_agent(model, tools=[weather]).invoke({"messages": [("user", "Weather in Paris?")]})["messages"]
    assert [message.type for message in messages] == ["human", "ai", "tool", "ai"], messages
print("ok agent")
