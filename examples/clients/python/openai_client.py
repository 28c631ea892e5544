import os

from openai import OpenAI

url = os.environ.get("GATEWAY_URL", "http://127.0.0.1:8080")
key = os.environ.get("GATEWAY_KEY", "sandbox-demo-key")
client = OpenAI(base_url=f"{url}/v1", api_key=key)

question = [{"role": "user", "content": "Hello!"}]
completion = client.chat.completions.create(model="gpt-4o-mini", messages=question)
print(completion.choices[0].message.content)

speech = client.audio.speech.create(model="tts-1", voice="alloy", input="Hello from the gateway.")
transcript = client.audio.transcriptions.create(model="whisper-1", file=("hello.mp3", speech.content))
print(transcript.text)
# The lines above are the snippet of docs/clients.md.

assert "Hello!" in completion.choices[0].message.content
print("ok chat")

stream = client.chat.completions.create(
    model="gpt-4o-mini", messages=question, stream=True, stream_options={"include_usage": True}
)
chunks = list(stream)
assert "Hello!" in "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)
assert chunks[-1].usage.total_tokens > 0
print("ok stream")

weather = {
    "name": "weather",
    "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
}
tools = [{"type": "function", "function": weather}]
asked = client.chat.completions.create(model="gpt-4o-mini", messages=question, tools=tools, tool_choice="required")
call = asked.choices[0].message.tool_calls[0]
answered = client.chat.completions.create(
    model="gpt-4o-mini",
    tools=tools,
    messages=[*question, asked.choices[0].message, {"role": "tool", "tool_call_id": call.id, "content": "21 degrees"}],
)
assert call.function.name == "weather" and answered.choices[0].message.content
print("ok tools")

with client.audio.speech.with_streaming_response.create(
    model="tts-1", voice="alloy", input="Hello from the gateway.", response_format="pcm"
) as response:
    assert len(speech.content) > 1000 and sum(map(len, response.iter_bytes())) > 10_000
print("ok speech")

assert "checksum" in transcript.text
print("ok transcription")

response = client.responses.create(model="gpt-5-mini", input="Hello!")
assert "Hello!" in response.output_text and client.responses.retrieve(response.id).output == response.output
events = list(
    client.responses.create(model="gpt-5-mini", input="And now?", previous_response_id=response.id, stream=True)
)
assert events[-1].type == "response.completed" and "And now?" in events[-1].response.output_text
items = client.responses.input_items.list(events[-1].response.id)
assert [item.role for item in items] == ["user"]
client.responses.delete(response.id)
print("ok responses")

texts = ["The cat sleeps on the sofa", "A cat on the sofa", "Interest rates rose"]
vectors = [item.embedding for item in client.embeddings.create(model="text-embedding-3-small", input=texts).data]
near, far = (sum(a * b for a, b in zip(vectors[0], other)) for other in vectors[1:])
assert len(vectors[0]) == 1536 and near > far
print("ok embeddings")

assert "gpt-4o-mini" in [model.id for model in client.models.list()]
assert client.models.retrieve("gpt-4o-mini").id == "gpt-4o-mini"
print("ok models")
