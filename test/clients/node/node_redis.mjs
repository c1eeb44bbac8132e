// Checks node-redis through the proxy: one line per check, see test/clients/doc.go.
import { createRequire } from 'node:module';
import { createClient } from 'redis';
import { equal, eventually, functionLibrary, host, key, port, redisPort, restart, runChecks, sleep } from './check.mjs';

const connect = async (options = {}) => {
  const client = createClient({ socket: { host, port }, ...options });
  client.on('error', () => {}); // failed commands report it
  await client.connect();
  return client;
};

const checksOf = async (protocol) => {
  const client = await connect({ RESP: protocol });
  const k = (name) => key(`${name}${protocol}`);
  return {
    strings: async () => {
      equal(await client.set(k('s'), 'ä\r\n'), 'OK');
      equal(await client.get(k('s')), 'ä\r\n');
      equal(await client.get(k('none')), null);
    },
    'automatic pipeline': async () => {
      const values = Array.from({ length: 1000 }, (_, i) => String(i));
      await Promise.all(values.map((v) => client.set(k(v), v)));
      equal(await Promise.all(values.map((v) => client.get(k(v)))), values);
    },
    transaction: async () => {
      equal(await client.multi().incr(k('t')).incr(k('t')).exec(), [1, 2]);
    },
    'blocking pop': async () => {
      const waiting = await connect({ RESP: protocol });
      const reply = waiting.blPop(k('b'), 5);
      await sleep(100);
      await client.rPush(k('b'), 'x');
      equal((await reply).element, 'x');
      waiting.destroy();
    },
    publish: async () => {
      const subscriber = await connect({ RESP: protocol });
      const heard = new Promise((resolve) => subscriber.subscribe(k('c'), resolve));
      for (let i = 0; i < 50 && (await client.publish(k('c'), 'hello')) === 0; i++) await sleep(20);
      equal(await heard, 'hello');
      subscriber.destroy();
    },
    script: async () => {
      equal(await client.eval('return {1, ARGV[1]}', { arguments: ['a'] }), [1, 'a']);
    },
    streams: async () => {
      const id = await client.xAdd(k('x'), '*', { a: '1' });
      await client.xGroupCreate(k('x'), 'g', '0');
      const reply = await client.xReadGroup('g', 'c', { key: k('x'), id: '>' }, { COUNT: 5, BLOCK: 1000 });
      equal(JSON.stringify(reply).includes(id), true);
      equal(await client.xAck(k('x'), 'g', id), 1);
    },
    functions: async () => {
      const [library, text] = functionLibrary(`node_redis${protocol}`);
      equal(await client.functionLoad(text), library);
      equal(await client.fCall(library, { keys: [k('f')], arguments: ['a'] }), [k('f'), 'a']);
      equal(await client.functionDelete(library), 'OK');
    },
    'optimistic lock': async () => {
      const [watcher, other] = [await connect({ RESP: protocol }), await connect({ RESP: protocol })];
      await watcher.set(k('w'), '1');
      await watcher.watch(k('w'));
      await other.set(k('w'), '2');
      const lost = await watcher.multi().set(k('w'), '3').exec().then(() => false, (error) => error.constructor.name === 'WatchError');
      equal(lost, true);
      equal(await client.get(k('w')), '2');
      watcher.destroy();
      other.destroy();
    },
    restart: async () => {
      const subscriber = await connect({ RESP: protocol });
      let heard = 0;
      await subscriber.subscribe(k('r'), () => heard++);
      await restart(async () => equal(await client.set(k('r'), 'back'), 'OK'));
      equal(await client.get(k('r')), 'back');
      await eventually(async () => {
        await client.publish(k('r'), 'again');
        return heard > 0;
      }, true);
      subscriber.destroy();
    },
    hashes: async () => {
      await client.hSet(k('h'), { a: '1', b: '' });
      equal({ ...(await client.hGetAll(k('h'))) }, { a: '1', b: '' });
    },
  };
};

// caching answers from the client's memory until another client, directly connected, changes the value.
const caching = async () => {
  const client = await connect({ RESP: 3, clientSideCache: { ttl: 0, maxEntries: 0, evictPolicy: 'LRU' } });
  const direct = await connect({ socket: { port: redisPort } });
  await direct.set(key('cached'), '1');
  equal([await client.get(key('cached')), await client.get(key('cached'))], ['1', '1']);
  equal(client.clientSideCache.stats().hitCount, 1);
  await direct.set(key('cached'), '2');
  await eventually(() => client.get(key('cached')), '2');
  client.destroy();
  direct.destroy();
};

const defaultConnect = async () => {
  const client = await connect();
  equal(await client.set(key('plain'), 'v'), 'OK');
  equal(await client.get(key('plain')), 'v');
  client.destroy();
};

const named = { 'default connect': defaultConnect, 'caching resp3': caching };
for (const protocol of [2, 3]) {
  for (const [name, check] of Object.entries(await checksOf(protocol))) named[`${name} resp${protocol}`] = check;
}
await runChecks(createRequire(import.meta.url)('redis/package.json').version, named);
