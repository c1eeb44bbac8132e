// Shared by the checks of both Node libraries: runs them in turn and prints a line for each.
import { randomUUID } from 'node:crypto';
import { createInterface } from 'node:readline';
import { isDeepStrictEqual, inspect } from 'node:util';

export const host = process.env.PROXY_HOST;
export const port = Number(process.env.PROXY_PORT);
export const redisPort = Number(process.env.REDIS_PORT); // of the server itself
export const key = (name) => `node:${run}:${name}`;
const run = randomUUID();

// functionLibrary is a library with a function of the same name, which returns its first key and argument.
export function functionLibrary(name) {
  const library = `${name}_${run.replaceAll('-', '')}`;
  return [library, `#!lua name=${library}\nredis.register_function('${library}', function(k, a) return {k[1], a[1]} end)`];
}

export function equal(got, want) {
  if (!isDeepStrictEqual(got, want)) throw new Error(`got ${inspect(got)}, want ${inspect(want)}`);
}

// restart has Redis restarted behind the proxy and waits until the client's check passes again.
const answers = createInterface({ input: process.stdin })[Symbol.asyncIterator]();
export async function restart(check) {
  console.log('restart');
  await answers.next();
  for (const deadline = Date.now() + 20000; ; ) {
    try {
      return await check();
    } catch (error) {
      if (Date.now() > deadline) throw error;
      await sleep(50);
    }
  }
}

// eventually waits until a value is what is wanted.
export async function eventually(get, want) {
  for (const deadline = Date.now() + 15000; ; await sleep(20)) {
    const got = await get();
    if (got === want) return;
    if (Date.now() > deadline) equal(got, want);
  }
}

export const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

// A check that hangs must end as one that failed.
const limit = (ms) => new Promise((_, reject) => setTimeout(() => reject(new Error(`no end after ${ms} ms`)), ms).unref());

export async function runChecks(version, checks) {
  console.log(`version ${version}`);
  let failed = 0;
  for (const [name, check] of Object.entries(checks)) {
    try {
      await Promise.race([check(), limit(40000)]);
      console.log(`ok ${name}`);
    } catch (error) {
      failed++;
      console.log(`failed ${name} # ${String(error).replaceAll('\n', ' ')}`);
    }
  }
  process.exit(failed ? 1 : 0);
}
