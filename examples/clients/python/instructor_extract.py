import os

import instructor
from openai import OpenAI
from pydantic import BaseModel

url = os.environ.get("GATEWAY_URL", "http://127.0.0.1:8080")
key = os.environ.get("GATEWAY_KEY", "sandbox-demo-key")


class City(BaseModel):
    name: str
    inhabitants: int


client = instructor.from_openai(OpenAI(base_url=f"{url}/v1", api_key=key))
question = [{"role": "user", "content": "Describe Paris."}]
print(client.create(model="gpt-4o-mini", messages=question, response_model=City))
# The lines above are the snippet of docs/clients.md.

from anthropic import Anthropic

assert isinstance(client.create(model="gpt-4o-mini", messages=question, response_model=City), City)
print("ok structured")

*_, last = client.create_partial(model="gpt-4o-mini", messages=question, response_model=City)
assert isinstance(last.inhabitants, int)
print("ok stream")

claude = instructor.from_anthropic(Anthropic(base_url=url, api_key=key))
city = claude.create(model="claude-sonnet-4-6", max_tokens=500, messages=question, response_model=City)
assert isinstance(city, City)
print("ok structured-anthropic")
