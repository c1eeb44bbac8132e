import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import redis.clients.jedis.DefaultJedisClientConfig;
import redis.clients.jedis.HostAndPort;
import redis.clients.jedis.Jedis;
import redis.clients.jedis.JedisPubSub;
import redis.clients.jedis.Pipeline;
import redis.clients.jedis.RedisClient;
import redis.clients.jedis.RedisProtocol;
import redis.clients.jedis.Response;
import redis.clients.jedis.StreamEntryID;
import redis.clients.jedis.Transaction;
import redis.clients.jedis.AbstractTransaction;
import redis.clients.jedis.csc.CacheConfig;
import redis.clients.jedis.exceptions.JedisDataException;
import redis.clients.jedis.exceptions.JedisException;
import redis.clients.jedis.params.XReadGroupParams;
import redis.clients.jedis.resps.StreamEntry;

/** Checks jedis through the proxy: one line per check, see test/clients/doc.go. */
final class JedisChecks {
    private static final HostAndPort ADDRESS = new HostAndPort(Checks.HOST, Checks.PORT);

    public static void main(String[] args) throws Exception {
        Checks checks = new Checks();
        checks.add("default connect", () -> {
            try (RedisClient plain = RedisClient.create(Checks.HOST, Checks.PORT)) {
                Checks.equal(plain.set(Checks.key("plain"), "v"), "OK");
                Checks.equal(plain.get(Checks.key("plain")), "v");
            }
        });
        for (RedisProtocol protocol : RedisProtocol.values()) {
            if (protocol == RedisProtocol.RESP2 || protocol == RedisProtocol.RESP3) {
                addAll(checks, protocol);
            }
        }
        checks.add("caching resp3", () -> caching(Checks.key("cached")));
        checks.run(Checks.versionOf("redis.clients", "jedis"));
    }

    private static RedisClient pooled(RedisProtocol protocol) {
        return RedisClient.builder().hostAndPort(ADDRESS)
            .clientConfig(DefaultJedisClientConfig.builder().protocol(protocol).clientName("checker").build()).build();
    }

    private static Jedis single(RedisProtocol protocol) {
        return new Jedis(ADDRESS, DefaultJedisClientConfig.builder().protocol(protocol).build());
    }

    private static void addAll(Checks checks, RedisProtocol protocol) {
        RedisClient client = pooled(protocol);
        String suffix = " " + protocol.toString().toLowerCase();
        String prefix = protocol + ":";
        checks.add("strings" + suffix, () -> strings(client, Checks.key(prefix + "s")));
        checks.add("pipeline" + suffix, () -> pipeline(client, Checks.key(prefix + "p")));
        checks.add("transaction" + suffix, () -> transaction(client, Checks.key(prefix + "t")));
        checks.add("optimistic lock" + suffix, () -> optimisticLock(client, protocol, Checks.key(prefix + "w")));
        checks.add("script" + suffix, () -> script(client, Checks.key(prefix + "e")));
        checks.add("functions" + suffix, () -> functions(client, Checks.key(prefix + "fn")));
        checks.add("blocking pop" + suffix, () -> blockingPop(client, Checks.key(prefix + "b")));
        checks.add("publish" + suffix, () -> publish(client, protocol, Checks.key(prefix + "c")));
        checks.add("streams" + suffix, () -> streams(client, Checks.key(prefix + "x")));
        checks.add("errors" + suffix, () -> errors(client, Checks.key(prefix + "f")));
        checks.add("databases" + suffix, () -> databases(client, protocol, Checks.key(prefix + "d")));
        checks.add("restart" + suffix, () -> {
            Checks.restart(() -> Checks.equal(client.set(Checks.key(prefix + "r"), "back"), "OK"));
            Checks.equal(client.get(Checks.key(prefix + "r")), "back");
            blockingPop(client, Checks.key(prefix + "rb"));
        });
    }

    private static void strings(RedisClient client, String key) {
        byte[] value = {0, 13, 10, (byte) 255};
        byte[] name = key.getBytes(StandardCharsets.UTF_8);
        client.set(name, value);
        Checks.equal(Arrays.equals(client.get(name), value), true);
        Checks.equal(client.get(key + "none"), null);
        Checks.equal(client.set(key, ""), "OK");
        Checks.equal(client.get(key), "");
    }

    private static void pipeline(RedisClient client, String key) {
        try (Pipeline p = client.pipelined()) {
            List<Response<String>> got = new ArrayList<>();
            for (int i = 0; i < 500; i++) {
                p.set(key + i, "v" + i);
                got.add(p.get(key + i));
            }
            p.sync();
            for (int i = 0; i < 500; i++) {
                Checks.equal(got.get(i).get(), "v" + i);
            }
        }
    }

    private static void transaction(RedisClient client, String key) {
        try (AbstractTransaction t = client.multi()) {
            t.incr(key);
            t.incr(key);
            Checks.equal(t.exec(), List.of(1L, 2L));
        }
    }

    private static void optimisticLock(RedisClient other, RedisProtocol protocol, String key) {
        try (Jedis watcher = single(protocol)) {
            watcher.set(key, "1");
            watcher.watch(key);
            other.set(key, "2");
            Transaction t = watcher.multi();
            t.set(key, "3");
            Checks.equal(t.exec(), null);
            Checks.equal(watcher.get(key), "2");
        }
    }

    private static void script(RedisClient client, String key) {
        String sha = client.scriptLoad("return {KEYS[1], ARGV[1]}", key);
        Checks.equal(client.evalsha(sha, List.of(key), List.of("a")), List.of(key, "a"));
    }

    private static void functions(RedisClient client, String key) {
        String name = Checks.functionName("jedis");
        Checks.equal(client.functionLoad(Checks.functionLibrary(name)), name);
        Checks.equal(client.fcall(name, List.of(key), List.of("a")), List.of(key, "a"));
        Checks.equal(client.functionDelete(name), "OK");
    }

    private static RedisClient caching(HostAndPort address) {
        return RedisClient.builder().hostAndPort(address).cacheConfig(CacheConfig.builder().build())
            .clientConfig(DefaultJedisClientConfig.builder().protocol(RedisProtocol.RESP3).build()).build();
    }

    /** Answers come from the client's memory until another client, directly connected, changes the value. */
    private static void caching(String key) throws Exception {
        HostAndPort server = new HostAndPort(Checks.HOST, Checks.REDIS_PORT);
        try (RedisClient direct = caching(server)) {
            direct.get(key);
        } catch (JedisException e) {
            throw new Checks.Refused(e);
        }
        try (RedisClient client = caching(ADDRESS); RedisClient direct = RedisClient.create(server)) {
            direct.set(key, "1");
            Checks.equal(client.get(key), "1");
            Checks.equal(client.get(key), "1");
            Checks.equal(client.getCache().getStats().getHitCount(), 1L);
            direct.set(key, "2");
            Checks.eventually(() -> client.get(key), "2");
        }
    }

    private static void blockingPop(RedisClient client, String key) throws Exception {
        Thread pusher = Checks.later(() -> client.rpush(key, "x"));
        Checks.equal(client.blpop(15, key), List.of(key, "x"));
        pusher.join();
        Checks.equal(client.blpop(1, key), null);
    }

    private static void publish(RedisClient client, RedisProtocol protocol, String channel) throws Exception {
        CompletableFuture<Boolean> listening = new CompletableFuture<>();
        CompletableFuture<String> heard = new CompletableFuture<>();
        JedisPubSub subscriber = new JedisPubSub() {
            @Override
            public void onSubscribe(String c, int count) {
                listening.complete(true);
            }

            @Override
            public void onMessage(String c, String message) {
                heard.complete(message);
                unsubscribe();
            }
        };
        Thread t = new Thread(() -> {
            try (Jedis j = single(protocol)) {
                j.subscribe(subscriber, channel);
                // A subscriber that has left its channels is a client like any other.
                Checks.equal(j.ping(), "PONG");
            } catch (RuntimeException e) {
                listening.completeExceptionally(e);
                heard.completeExceptionally(e);
            }
        });
        t.start();
        listening.get(15, TimeUnit.SECONDS);
        Checks.equal(client.publish(channel, "hello"), 1L);
        Checks.equal(heard.get(15, TimeUnit.SECONDS), "hello");
        t.join(15000);
        Checks.equal(t.isAlive(), false);
    }

    private static void streams(RedisClient client, String key) {
        client.xgroupCreate(key, "g", new StreamEntryID("0-0"), true);
        StreamEntryID id = client.xadd(key, StreamEntryID.NEW_ENTRY, Map.of("a", "1"));
        List<Map.Entry<String, List<StreamEntry>>> got = client.xreadGroup("g", "c",
            XReadGroupParams.xReadGroupParams().count(5).block(1000), Map.of(key, StreamEntryID.XREADGROUP_UNDELIVERED_ENTRY));
        Checks.equal(got.get(0).getValue().get(0).getID(), id);
        Checks.equal(client.xack(key, "g", id), 1L);
        Checks.equal(client.xpending(key, "g").getTotal(), 0L);
    }

    private static void errors(RedisClient client, String key) {
        client.set(key, "text");
        try {
            client.incr(key);
        } catch (JedisDataException e) {
            Checks.equal(e.getMessage(), "ERR value is not an integer or out of range");
            return;
        }
        throw new AssertionError("INCR of a text succeeded");
    }

    private static void databases(RedisClient client, RedisProtocol protocol, String key) {
        try (Jedis three = single(protocol)) {
            three.select(3);
            three.set(key, "three");
            Checks.equal(three.get(key), "three");
            Checks.equal(client.get(key), null);
        }
    }
}
