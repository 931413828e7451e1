// Receives webhooks that are signed after Standard Webhooks. Needs nothing but Node.js 18.3 or newer.
'use strict';

const crypto = require('node:crypto');
const http = require('node:http');

const tolerance = 5 * 60; // seconds that the timestamp may be away from our clock
const maxBody = 1 << 20; // bytes; a larger delivery is refused unread

// parseSecret returns the key of whsec_ and base64.
function parseSecret(text) {
  const [, encoded] = /^whsec_([A-Za-z0-9+/]+={0,2})$/.exec(text) ?? [];
  const key = Buffer.from(encoded ?? '', 'base64');
  if (key.length < 24) throw new Error('a secret is whsec_ and base64 of at least 24 bytes');
  return key;
}

// verify returns 0 if body, a Buffer, was signed with one of the keys, else the status to answer. headers is the request's headersDistinct.
function verify(keys, headers, body, now) {
  const values = ['webhook-id', 'webhook-timestamp', 'webhook-signature'].map((name) => headers[name] ?? []);
  if (values.some((list) => list.length !== 1)) return 400;
  const [id, timestamp, signatures] = values.flat();
  if (!/^[!-\-/-~]{1,200}$/.test(id)) return 400; // printable, and without a dot, which separates what is signed
  if (!/^[0-9]{1,12}$/.test(timestamp)) return 400;
  if (Math.abs(now - Number(timestamp)) > tolerance) return 401;
  for (const entry of signatures.split(' ')) { // several while secrets rotate
    if (!entry.startsWith('v1,')) continue;
    const signature = Buffer.from(entry.slice('v1,'.length));
    for (const key of keys) {
      const expected = Buffer.from(crypto.createHmac('sha256', key).update(`${id}.${timestamp}.`).update(body).digest('base64'));
      if (signature.length === expected.length && crypto.timingSafeEqual(signature, expected)) return 0;
    }
  }
  return 401;
}

// In memory here; keep them in your database, under a unique key, in the transaction that does the work.
const seen = new Set();

function receive(keys, req, body) {
  const refused = verify(keys, req.headersDistinct, body, Date.now() / 1000);
  if (refused) return refused;
  const id = req.headers['webhook-id'];
  if (seen.has(id)) {
    console.log('again', id);
  } else {
    seen.add(id);
    console.log(`received ${id}, ${body.length} bytes`); // put it in a queue of yours: do not work before you answer
  }
  return 204;
}

function serve(keys, port) {
  const server = http.createServer((req, res) => {
    let chunks = [];
    let size = 0;
    req.on('data', (chunk) => {
      size += chunk.length;
      if (size <= maxBody) return chunks.push(chunk);
      chunks = [];
      if (!res.headersSent) res.writeHead(413, { connection: 'close' }).end();
    });
    req.on('end', () => {
      if (res.headersSent) return;
      const mine = req.method === 'POST' && req.url === '/hooks';
      res.writeHead(mine ? receive(keys, req, Buffer.concat(chunks)) : 404).end(); // the raw bytes: they are what was signed
    });
  });
  server.listen(port, '127.0.0.1', () => console.log(`listening on http://127.0.0.1:${server.address().port}/hooks`));
}

module.exports = { parseSecret, verify };

if (require.main === module) {
  // The current secret, and the old one while they rotate, separated by a space.
  const keys = (process.env.WEBHOOK_SECRETS ?? '').split(/\s+/).filter(Boolean).map(parseSecret);
  if (keys.length === 0) throw new Error('WEBHOOK_SECRETS: give at least one secret');
  serve(keys, Number(process.argv[2] ?? 8003));
}
