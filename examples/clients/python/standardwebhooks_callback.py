import json
import os
import threading
import urllib.request
from http.server import BaseHTTPRequestHandler, HTTPServer

from standardwebhooks import Webhook, WebhookVerificationError

URL = os.environ.get("GATEWAY_URL", "http://127.0.0.1:8080")
KEY = os.environ.get("GATEWAY_KEY", "sandbox-demo-key")
PORT = int(os.environ.get("CALLBACK_PORT", "9000"))
# The gateway's setting callbacks.secret; here that of the sandbox, which prints it at start.
SECRET = os.environ.get("CALLBACK_SECRET", "whsec_c2FuZGJveCBkZW1vIGNhbGxiYWNrIHNlY3JldA==")
tasks = []


class Receiver(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))  # the bytes as they came, not parsed JSON
        try:
            tasks.append(Webhook(SECRET).verify(body, self.headers))
            self.send_response(204)
        except WebhookVerificationError:
            self.send_response(401)
        self.end_headers()


receiver = HTTPServer(("127.0.0.1", PORT), Receiver)
threading.Thread(target=receiver.serve_forever, daemon=True).start()
# The lines above are the snippet of docs/clients.md.


def post(url: str, body: dict, headers: dict) -> int:
    request = urllib.request.Request(url, json.dumps(body).encode(), {"content-type": "application/json", **headers})
    try:
        return urllib.request.urlopen(request).status
    except urllib.error.HTTPError as error:
        print(error.read().decode())
        return error.code


hook = f"http://127.0.0.1:{receiver.server_port}/hook"
create = {"prompt": "A red kite over the sea", "callback_url": hook}
assert post(f"{URL}/vidgen/v1/videos/text2video", create, {"authorization": f"Bearer {KEY}"}) == 200
while not tasks or tasks[-1]["task_status"] == "processing":
    threading.Event().wait(0.2)
assert tasks[-1]["task_status"] == "succeed" and tasks[-1]["task_id"]
print("ok callback")

forged = {"webhook-id": "msg_1", "webhook-timestamp": "1750000182", "webhook-signature": "v1,Zm9yZ2Vk"}
received = len(tasks)
assert post(hook, {"task_status": "succeed"}, forged) == 401 and len(tasks) == received
print("ok forged-refused")
