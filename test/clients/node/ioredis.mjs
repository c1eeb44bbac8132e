// Checks ioredis through the proxy: one line per check, see test/clients/doc.go.
import { createRequire } from 'node:module';
import { Redis } from 'ioredis';
import { equal, eventually, functionLibrary, host, key as keyOf, port, restart, runChecks, sleep } from './check.mjs';

const connectWith = (options = {}) => {
  const client = new Redis({ host, port, ...options });
  client.on('error', () => {}); // failed commands report it
  return client;
};
const checksOf = (protocol) => {
  const client = connectWith({ protocol });
  const connect = (options = {}) => connectWith({ protocol, ...options });
  const key = (name) => keyOf(`${name}${protocol}`);
  return {
    strings: async () => {
      equal(await client.set(key('s'), Buffer.from([0, 13, 10, 255])), 'OK');
      equal(await client.getBuffer(key('s')), Buffer.from([0, 13, 10, 255]));
    },
    pipeline: async () => {
      const p = client.pipeline();
      for (let i = 0; i < 500; i++) p.set(key(`p${i}`), i).get(key(`p${i}`));
      const values = (await p.exec()).filter((_, i) => i % 2 === 1).map(([error, value]) => error ?? value);
      equal(values, Array.from({ length: 500 }, (_, i) => String(i)));
    },
    transaction: async () => {
      equal(await client.multi().incr(key('t')).incr(key('t')).exec(), [[null, 1], [null, 2]]);
    },
    'lone transaction': async () => {
      await client.multi({ pipeline: false });
      equal(await client.incr(key('l')), 'QUEUED');
      equal(await client.exec(), [[null, 1]]);
    },
    'optimistic lock': async () => {
      const other = connect();
      const watcher = connect();
      await watcher.set(key('w'), 1);
      await watcher.watch(key('w'));
      await other.set(key('w'), 2);
      equal(await watcher.multi().set(key('w'), 3).exec(), null);
      equal(await client.get(key('w')), '2');
      other.disconnect();
      watcher.disconnect();
    },
    'blocking pop': async () => {
      const waiting = connect();
      const reply = waiting.blpop(key('b'), 5);
      await sleep(100);
      await client.rpush(key('b'), 'x');
      equal(await reply, [key('b'), 'x']);
      waiting.disconnect();
    },
    publish: async () => {
      const subscriber = connect();
      await subscriber.subscribe(key('c'));
      const heard = new Promise((resolve) => subscriber.on('message', (_, message) => resolve(message)));
      await client.publish(key('c'), 'hello');
      equal(await heard, 'hello');
      subscriber.disconnect();
    },
    script: async () => {
      client.defineCommand('twice', { numberOfKeys: 0, lua: 'return ARGV[1] * 2' });
      equal(await client.twice(21), 42);
    },
    functions: async () => {
      const [library, text] = functionLibrary(`ioredis${protocol}`);
      equal(await client.function('LOAD', text), library);
      equal(await client.fcall(library, 1, key('f'), 'a'), [key('f'), 'a']);
      equal(await client.function('DELETE', library), 'OK');
    },
    streams: async () => {
      await client.xgroup('CREATE', key('x'), 'g', '$', 'MKSTREAM');
      const id = await client.xadd(key('x'), '*', 'a', '1');
      const reply = await client.xreadgroup('GROUP', 'g', 'c', 'COUNT', 5, 'BLOCK', 1000, 'STREAMS', key('x'), '>');
      equal(JSON.stringify(reply).includes(id), true);
      equal(await client.xack(key('x'), 'g', id), 1);
    },
    databases: async () => {
      const three = connect({ db: 3 });
      await three.set(key('d'), 'three');
      equal([await three.get(key('d')), await client.get(key('d'))], ['three', null]);
      three.disconnect();
    },
    restart: async () => {
      client.defineCommand('thrice', { numberOfKeys: 0, lua: 'return ARGV[1] * 3' });
      equal(await client.thrice(1), 3);
      const subscriber = connect();
      await subscriber.subscribe(key('r'));
      let heard = 0;
      subscriber.on('message', () => heard++);
      await restart(async () => equal(await client.thrice(14), 42));
      equal(await client.set(key('r'), 'back'), 'OK');
      equal(await client.get(key('r')), 'back');
      await eventually(async () => {
        await client.publish(key('r'), 'again');
        return heard > 0;
      }, true);
      subscriber.disconnect();
    },
    errors: async () => {
      await client.set(key('e'), 'text');
      const message = await client.incr(key('e')).then(() => 'no error', (error) => error.message);
      equal(message.replace(/^ERR /, ''), 'value is not an integer or out of range');
    },
  };
};

const defaultConnect = async () => {
  const client = new Redis(port, host);
  equal(await client.set(keyOf('plain'), 'v'), 'OK');
  equal(await client.get(keyOf('plain')), 'v');
  client.disconnect();
};

const named = { 'default connect': defaultConnect };
for (const protocol of [2, 3]) {
  for (const [name, check] of Object.entries(checksOf(protocol))) named[`${name} resp${protocol}`] = check;
}
await runChecks(createRequire(import.meta.url)('ioredis/package.json').version, named);
