// Plays cases of WebSocket with the package ws at both ends. It prints the port of its echo server, and
// then, for each address on a line of its input, which cases failed and how many there are.
import { createHash, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { WebSocket, WebSocketServer } from 'ws';

const most = 20_000; // milliseconds of a case

const server = new WebSocketServer({
  host: '127.0.0.1', port: 0, maxPayload: 64 << 20,
  perMessageDeflate: { threshold: 0 },
  handleProtocols: (offered) => (offered.has('second') ? 'second' : false),
  verifyClient: ({ req }) => req.url !== '/refused',
});
server.on('headers', (headers, request) => headers.push(`X-Seen: ${request.headers['x-sent'] ?? ''}`));
server.on('connection', (ws) => {
  ws.on('error', () => {});
  ws.on('message', (data, binary) => {
    const [order, code, reason] = binary ? [] : data.toString().split(' ');
    switch (order) {
      case 'close': return ws.close(Number(code), reason);
      case 'leave': return ws.terminate();
      case 'flood': return ws.send(Buffer.alloc(Number(code), 7), { compress: false });
      default: return ws.send(data, { binary });
    }
  });
});

const open = async (address, path = '/', protocols = [], options = {}) => {
  const ws = new WebSocket(`ws://${address}${path}`, protocols, { perMessageDeflate: false, maxPayload: 64 << 20, ...options });
  ws.on('error', () => {});
  const upgraded = once(ws, 'upgrade');
  await once(ws, 'open');
  ws.answer = (await upgraded)[0];
  return ws;
};

const want = (ok, complaint) => { if (!ok) throw new Error(complaint); };
const ended = async (ws) => { const [code, reason] = await once(ws, 'close'); return [code, reason.toString()]; };

const echo = async (ws, data, send = () => ws.send(data)) => {
  const answered = once(ws, 'message');
  send();
  const [got, binary] = await answered;
  want(binary === (typeof data !== 'string'), 'the kind differs');
  want(Buffer.compare(Buffer.from(data), got) === 0, `${got.length} other bytes come back`);
};

const close = async (ws) => { const over = ended(ws); ws.close(1000); want((await over)[0] === 1000, 'the end differs'); };

// using opens a connection for a case, and closes it in good order.
const using = (play, ...how) => async (address) => {
  const ws = await open(address, ...how);
  await play(ws);
  await close(ws);
};

const deflate = ['/', [], { perMessageDeflate: { threshold: 0 } }];
const cases = {};
for (const size of [0, 1, 125, 126, 127, 65_535, 65_536, 1 << 20, 16 << 20]) {
  cases[`a text of ${size} bytes`] = using((ws) => echo(ws, 'a'.repeat(size)));
  cases[`${size} bytes`] = using((ws) => echo(ws, randomBytes(size)));
  cases[`${size} bytes, compressed`] = using(async (ws) => {
    want(ws.extensions.includes('permessage-deflate'), 'nothing is compressed');
    await echo(ws, Buffer.alloc(size, 'compressed '));
  }, ...deflate);
}
Object.assign(cases, {
  'text that is not ASCII': using((ws) => echo(ws, 'Κόσμε \u{1f30a} ßä')),
  'a message in fragments': using((ws) => echo(ws, 'one two three', () => {
    ws.send('one ', { fin: false });
    ws.send('', { fin: false });
    ws.send('two ', { fin: false });
    ws.send('three', { fin: true });
  })),
  'a ping between fragments': using(async (ws) => {
    const pong = once(ws, 'pong');
    await echo(ws, 'one two', () => { ws.send('one ', { fin: false }); ws.ping('between'); ws.send('two', { fin: true }); });
    want((await pong)[0].toString() === 'between', 'the pong differs');
  }),
  'pings of the longest payload': using(async (ws) => {
    for (let i = 0; i < 100; i++) {
      const data = randomBytes(125);
      const pong = once(ws, 'pong');
      ws.ping(data);
      want(Buffer.compare((await pong)[0], data) === 0, 'the pong differs');
    }
  }),
  'a pong that nobody asked for': using((ws) => { ws.pong('unasked'); return echo(ws, 'on'); }),
  'a thousand messages without a wait': using(async (ws) => {
    const got = [];
    const all = new Promise((done) => ws.on('message', (m) => { if (got.push(m.toString()) === 1000) done(); }));
    for (let i = 0; i < 1000; i++) ws.send(String(i));
    await all;
    want(got.every((m, i) => m === String(i)), 'the order differs');
  }),
  'both ways at once': using(async (ws) => {
    const sent = createHash('sha256'), came = createHash('sha256');
    let left = 200;
    const all = new Promise((done) => ws.on('message', (m) => { came.update(m); if (--left === 0) done(); }));
    for (let i = 0; i < 200; i++) { const part = randomBytes(1 + i * 331); sent.update(part); ws.send(part); }
    await all;
    want(sent.digest('hex') === came.digest('hex'), 'other bytes come back');
  }),
  'a client that reads nothing for a while': using(async (ws) => {
    const came = once(ws, 'message');
    ws.pause();
    ws.send(`flood ${32 << 20}`);
    await new Promise((done) => setTimeout(done, 300));
    ws.resume();
    want((await came)[0].length === 32 << 20, 'bytes are missing');
  }),
  'a protocol that the app chooses': using((ws) => want(ws.protocol === 'second', `the protocol is ${ws.protocol}`), '/', ['first', 'second']),
  'fields of the handshake': using((ws) => want(ws.answer.headers['x-seen'] === 'a value', 'the field is missing'), '/', [], { headers: { 'X-Sent': 'a value' } }),
  'a handshake that the app refuses': async (address) => {
    const ws = new WebSocket(`ws://${address}/refused`);
    ws.on('error', () => {});
    const [, answer] = await once(ws, 'unexpected-response');
    want(answer.statusCode === 401, `the status is ${answer.statusCode}`);
    answer.destroy();
  },
  'an app that leaves': async (address) => {
    const ws = await open(address);
    const over = ended(ws);
    ws.send('leave');
    want((await over)[0] === 1006, 'the end differs');
  },
  'a hundred connections at once': async (address) => {
    await Promise.all(Array.from({ length: 100 }, () => using(async (ws) => {
      for (let i = 0; i < 20; i++) await echo(ws, randomBytes(1 + Math.floor(Math.random() * 4096)));
    })(address)));
  },
});
for (const code of [1000, 1001, 1011, 3000, 4999]) {
  cases[`the app closes with ${code}`] = async (address) => {
    const ws = await open(address);
    const over = ended(ws);
    ws.send(`close ${code} because`);
    const [got, reason] = await over;
    want(got === code && reason === 'because', `it ends with ${got} ${reason}`);
  };
  cases[`the client closes with ${code}`] = async (address) => {
    const ws = await open(address);
    const over = ended(ws);
    ws.close(code, 'because');
    want((await over)[0] === code, 'the end differs');
  };
}

const play = async (address) => {
  const failed = [];
  for (const [name, run] of Object.entries(cases)) {
    let late;
    try {
      await Promise.race([run(address), new Promise((_, stop) => { late = setTimeout(() => stop(new Error('it is late')), most); })]);
    } catch (why) {
      failed.push(`${name}: ${why.message}`);
    } finally {
      clearTimeout(late);
    }
  }
  return { failed, of: Object.keys(cases).length };
};

await once(server, 'listening');
console.log(server.address().port);
for await (const address of createInterface({ input: process.stdin })) console.log(JSON.stringify(await play(address)));
process.exit(0);
