import os

import litellm

url = os.environ.get("GATEWAY_URL", "http://127.0.0.1:8080")
key = os.environ.get("GATEWAY_KEY", "sandbox-demo-key")
gpt = {"model": "openai/gpt-4o-mini", "api_base": f"{url}/v1", "api_key": key}
claude = {"model": "anthropic/claude-sonnet-4-6", "api_base": url, "api_key": key}  # without /v1

question = [{"role": "user", "content": "Hello!"}]
print(litellm.completion(**gpt, messages=question).choices[0].message.content)
print(litellm.completion(**claude, messages=question).choices[0].message.content)
# The lines above are the snippet of docs/clients.md.

for upstream in (gpt, claude):
    assert "Hello!" in litellm.completion(**upstream, messages=question).choices[0].message.content
print("ok chat")

for upstream in (gpt, claude):
    chunks = litellm.completion(**upstream, messages=question, stream=True)
    assert "Hello!" in "".join(chunk.choices[0].delta.content or "" for chunk in chunks)
print("ok stream")

parameters = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
tools = [{"type": "function", "function": {"name": "weather", "description": "Weather", "parameters": parameters}}]
for upstream in (gpt, claude):
    asked = litellm.completion(**upstream, messages=question, tools=tools, tool_choice="required")
    assert asked.choices[0].message.tool_calls[0].function.name == "weather"
print("ok tools")

thinker = {**gpt, "model": "openai/gpt-5-mini"}
response = litellm.responses(**thinker, input="Hello!")
events = list(litellm.responses(**thinker, input="And now?", previous_response_id=response.id, stream=True))
assert "Hello!" in response.output_text and "And now?" in events[-1].response.output_text
print("ok responses")

audio = {"api_base": f"{url}/v1", "api_key": key}
speech = litellm.speech(model="openai/tts-1", voice="alloy", input="Hello from the gateway.", **audio)
assert len(speech.content) > 1000
print("ok speech")

heard = litellm.transcription(model="openai/whisper-1", file=("hello.mp3", speech.content), **audio)
assert "checksum" in heard.text
print("ok transcription")
