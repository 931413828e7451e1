// A local SQS server for the tests: fauxqs on the loopback, with one of its faults mended.
//
// The fault: a long poll whose client has hung up still takes the next message, which then stays hidden until its
// visibility timeout. Real SQS can strand a message like that too, but seldom; the tests must not depend on it.
// So when a receive is answered and nobody is there to read the answer, what it took is made visible again.
import { buildApp } from "fauxqs";

const host = process.env.HOST || "127.0.0.1";
const port = Number(process.env.PORT || 4566);
const app = buildApp({ logger: false, defaultRegion: "us-east-1" });

const target = (request) => request.headers["x-amz-target"];

function queueOf(request) {
  const body = typeof request.body === "string" ? JSON.parse(request.body) : request.body;
  return body.QueueUrl;
}

async function giveBack(request, handle) {
  await app.inject({
    method: "POST",
    url: "/",
    headers: {
      "content-type": "application/x-amz-json-1.0",
      "x-amz-target": "AmazonSQS.ChangeMessageVisibility",
      authorization: request.headers.authorization ?? "",
    },
    payload: JSON.stringify({ QueueUrl: queueOf(request), ReceiptHandle: handle, VisibilityTimeout: 0 }),
  });
}

app.addHook("onSend", async (request, _reply, payload) => {
  const unread = target(request) === "AmazonSQS.ReceiveMessage" && request.raw.socket?.destroyed;
  if (unread && payload) {
    for (const message of JSON.parse(payload).Messages ?? []) {
      await giveBack(request, message.ReceiptHandle);
    }
  }
  return payload;
});

for (const signal of ["SIGINT", "SIGTERM"]) {
  process.on(signal, () => process.exit(0));
}

await app.listen({ host, port });
