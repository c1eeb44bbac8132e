<?php
// Checks phpredis through the proxy: one line per check, see test/clients/doc.go.

declare(strict_types=1);

$prefix = 'php:' . bin2hex(random_bytes(8)) . ':';

function connect(): Redis
{
    $r = new Redis();
    $r->connect(getenv('PROXY_HOST'), (int) getenv('PROXY_PORT'));
    return $r;
}

function key_of(string $name): string
{
    return $GLOBALS['prefix'] . $name;
}

function equal(mixed $got, mixed $want): void
{
    if ($got !== $want) {
        throw new Exception('got ' . json_encode($got) . ', want ' . json_encode($want));
    }
}

// meanwhile does something in a process of its own, with connections of its own, until that returns
// true. PHP waits for one thing at a time.
function meanwhile(callable $do, callable $wait): void
{
    $child = pcntl_fork();
    if ($child === 0) {
        $deadline = microtime(true) + 15;
        do {
            usleep(100000);
        } while (!$do(connect()) && microtime(true) < $deadline);
        posix_kill(getmypid(), SIGKILL); // without destroying what the parent goes on using
    }
    try {
        $wait();
    } finally {
        pcntl_waitpid($child, $status);
    }
}

$checks = [
    'default connect' => function (): void {
        equal(connect()->ping(), true);
    },
    'strings' => function (): void {
        $r = connect();
        equal($r->set(key_of('s'), "\x00\r\n\xff"), true);
        equal($r->get(key_of('s')), "\x00\r\n\xff");
        equal($r->get(key_of('none')), false);
        equal($r->set(key_of('s'), ''), true);
        equal($r->get(key_of('s')), '');
    },
    'hashes' => function (): void {
        $r = connect();
        $r->hMSet(key_of('h'), ['a' => '1', 'b' => '']);
        equal($r->hGetAll(key_of('h')), ['a' => '1', 'b' => '']);
    },
    'pipeline' => function (): void {
        $p = connect()->pipeline();
        for ($i = 0; $i < 500; $i++) {
            $p->set(key_of("p$i"), "v$i");
            $p->get(key_of("p$i"));
        }
        $replies = $p->exec();
        for ($i = 0; $i < 500; $i++) {
            equal([$replies[2 * $i], $replies[2 * $i + 1]], [true, "v$i"]);
        }
    },
    'transaction' => function (): void {
        equal(connect()->multi()->incr(key_of('t'))->incr(key_of('t'))->exec(), [1, 2]);
    },
    'optimistic lock' => function (): void {
        [$watcher, $other] = [connect(), connect()];
        $watcher->watch(key_of('w'));
        $other->set(key_of('w'), '2');
        equal($watcher->multi()->set(key_of('w'), '3')->exec(), false);
        equal($watcher->get(key_of('w')), '2');
    },
    'script' => function (): void {
        $r = connect();
        equal($r->eval('return {KEYS[1], ARGV[1]}', ['k', 'a'], 1), ['k', 'a']);
        $sha = $r->script('load', 'return ARGV[1] * 2');
        equal($r->evalSha($sha, [21], 0), 42);
    },
    'functions' => function (): void {
        $r = connect();
        $name = 'php' . bin2hex(random_bytes(8));
        $text = "#!lua name=$name\nredis.register_function('$name', function(k, a) return {k[1], a[1]} end)";
        equal($r->rawCommand('FUNCTION', 'LOAD', $text), $name);
        equal($r->rawCommand('FCALL', $name, '1', 'k', 'a'), ['k', 'a']);
        equal($r->rawCommand('FUNCTION', 'DELETE', $name), true);
    },
    'blocking pop' => function (): void {
        $key = key_of('b');
        meanwhile(fn (Redis $other) => $other->rPush($key, 'x') > 0, function () use ($key): void {
            equal(connect()->blPop([$key], 15), [$key, 'x']);
        });
        equal(connect()->blPop([$key], 1), []);
    },
    'publish' => function (): void {
        $channel = key_of('c');
        $heard = [];
        meanwhile(fn (Redis $other) => $other->publish($channel, 'hello') > 0, function () use ($channel, &$heard): void {
            $r = connect();
            try {
                $r->subscribe([$channel], function (Redis $r, string $from, string $message) use (&$heard): void {
                    $heard = [$from, $message];
                    $r->close(); // it would wait for more
                });
            } catch (RedisException) {
            }
        });
        equal($heard, [$channel, 'hello']);
    },
    'streams' => function (): void {
        $r = connect();
        $key = key_of('x');
        $r->xGroup('CREATE', $key, 'g', '0', true);
        $id = $r->xAdd($key, '*', ['a' => '1']);
        equal($r->xReadGroup('g', 'c', [$key => '>'], 5, 1000), [$key => [$id => ['a' => '1']]]);
        equal($r->xAck($key, 'g', [$id]), 1);
        equal($r->xPending($key, 'g')[0], 0);
    },
    'databases' => function (): void {
        [$three, $r] = [connect(), connect()];
        $three->select(3);
        $three->set(key_of('d'), 'three');
        equal([$three->get(key_of('d')), $r->get(key_of('d'))], ['three', false]);
    },
    'errors' => function (): void {
        $r = connect();
        $r->set(key_of('e'), 'text');
        equal($r->incr(key_of('e')), false);
        equal(rtrim($r->getLastError(), "\0"), 'ERR value is not an integer or out of range');
    },
    'restart' => function (): void {
        $r = connect();
        $r->set(key_of('r'), 'before');
        echo "restart\n";
        fgets(STDIN);
        for ($deadline = microtime(true) + 20; $r->set(key_of('r'), 'back') !== true; usleep(50000)) {
            if (microtime(true) > $deadline) {
                throw new Exception('still ' . $r->getLastError());
            }
        }
        equal($r->get(key_of('r')), 'back');
    },
];

echo 'version ', phpversion('redis'), "\n";
$failed = 0;
foreach ($checks as $name => $check) {
    try {
        $check();
        echo "ok $name\n";
    } catch (Throwable $e) {
        $failed++;
        echo "failed $name # ", str_replace("\n", ' ', (string) $e), "\n";
    }
}
exit($failed > 0 ? 1 : 0);
