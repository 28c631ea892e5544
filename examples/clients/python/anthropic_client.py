import os

from anthropic import Anthropic

url = os.environ.get("GATEWAY_URL", "http://127.0.0.1:8080")
key = os.environ.get("GATEWAY_KEY", "sandbox-demo-key")
client = Anthropic(base_url=url, api_key=key)  # without /v1

question = [{"role": "user", "content": "Hello!"}]
message = client.messages.create(model="claude-sonnet-4-6", max_tokens=100, messages=question)
print(message.content[0].text)
# The lines above are the snippet of docs/clients.md.

assert "Hello!" in message.content[0].text
print("ok chat")

with client.messages.stream(model="claude-sonnet-4-6", max_tokens=100, messages=question) as stream:
    assert "Hello!" in "".join(stream.text_stream)
    assert stream.get_final_message().stop_reason == "end_turn"
print("ok stream")

schema = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
tools = [{"name": "weather", "description": "Weather of a city", "input_schema": schema}]
asked = client.messages.create(
    model="claude-sonnet-4-6", max_tokens=200, messages=question, tools=tools, tool_choice={"type": "any"}
)
call = next(block for block in asked.content if block.type == "tool_use")
result = {"type": "tool_result", "tool_use_id": call.id, "content": "21 degrees"}
answered = client.messages.create(
    model="claude-sonnet-4-6",
    max_tokens=200,
    tools=tools,
    messages=[*question, {"role": "assistant", "content": asked.content}, {"role": "user", "content": [result]}],
)
assert call.name == "weather" and answered.content[0].text
print("ok tools")

thought = client.messages.create(
    model="claude-sonnet-4-6", max_tokens=3000, thinking={"type": "adaptive"}, messages=question
)
assert [block.type for block in thought.content] == ["thinking", "text"]
print("ok thinking")

counted = client.messages.count_tokens(model="claude-sonnet-4-6", messages=question)
assert counted.input_tokens > 0
print("ok count-tokens")

assert "claude-sonnet-4-6" in [model.id for model in client.models.list()]
print("ok models")
