// Checks node-redis through the proxy: one line per check, see test/clients/doc.go.
import { createClient } from 'redis';
import { equal, host, key, port, restart, runChecks, sleep } from './check.mjs';

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
      await restart(async () => equal(await client.set(k('r'), 'back'), 'OK'));
      equal(await client.get(k('r')), 'back');
    },
    hashes: async () => {
      await client.hSet(k('h'), { a: '1', b: '' });
      equal({ ...(await client.hGetAll(k('h'))) }, { a: '1', b: '' });
    },
  };
};

const named = {};
for (const protocol of [2, 3]) {
  for (const [name, check] of Object.entries(await checksOf(protocol))) named[`${name} resp${protocol}`] = check;
}
await runChecks(named);
