import io.lettuce.core.ClientOptions;
import io.lettuce.core.Consumer;
import io.lettuce.core.KeyValue;
import io.lettuce.core.LettuceFutures;
import io.lettuce.core.RedisClient;
import io.lettuce.core.RedisCommandExecutionException;
import io.lettuce.core.RedisFuture;
import io.lettuce.core.RedisURI;
import io.lettuce.core.ScriptOutputType;
import io.lettuce.core.StreamMessage;
import io.lettuce.core.TrackingArgs;
import io.lettuce.core.TransactionResult;
import io.lettuce.core.XGroupCreateArgs;
import io.lettuce.core.XReadArgs;
import io.lettuce.core.api.StatefulRedisConnection;
import io.lettuce.core.api.async.RedisAsyncCommands;
import io.lettuce.core.api.sync.RedisCommands;
import io.lettuce.core.protocol.ProtocolVersion;
import io.lettuce.core.pubsub.RedisPubSubAdapter;
import io.lettuce.core.pubsub.StatefulRedisPubSubConnection;
import io.lettuce.core.support.caching.CacheAccessor;
import io.lettuce.core.support.caching.CacheFrontend;
import io.lettuce.core.support.caching.ClientSideCaching;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;

/** Checks lettuce through the proxy: one line per check, see test/clients/doc.go. */
final class LettuceChecks {
    private final RedisClient client;
    private final RedisCommands<String, String> redis;
    private final String prefix;

    private LettuceChecks(ProtocolVersion protocol) {
        client = RedisClient.create(RedisURI.builder().withHost(Checks.HOST).withPort(Checks.PORT)
            .withClientName("checker").withTimeout(Duration.ofSeconds(10)).build());
        client.setOptions(ClientOptions.builder().protocolVersion(protocol).build());
        redis = client.connect().sync();
        prefix = protocol + ":";
    }

    public static void main(String[] args) throws Exception {
        Checks checks = new Checks();
        checks.add("default connect", () -> {
            RedisClient plain = RedisClient.create("redis://" + Checks.HOST + ":" + Checks.PORT);
            try (StatefulRedisConnection<String, String> c = plain.connect()) {
                Checks.equal(c.sync().set(Checks.key("plain"), "v"), "OK");
                Checks.equal(c.sync().get(Checks.key("plain")), "v");
            }
            plain.shutdown();
        });
        for (ProtocolVersion protocol : ProtocolVersion.values()) {
            String suffix = " " + protocol.toString().toLowerCase();
            LettuceChecks c = new LettuceChecks(protocol);
            checks.add("strings" + suffix, c::strings);
            checks.add("pipeline" + suffix, c::pipeline);
            checks.add("transaction" + suffix, c::transaction);
            checks.add("optimistic lock" + suffix, c::optimisticLock);
            checks.add("script" + suffix, c::script);
            checks.add("functions" + suffix, c::functions);
            if (protocol == ProtocolVersion.RESP3) {
                checks.add("caching" + suffix, c::caching);
            }
            checks.add("blocking pop" + suffix, () -> c.blockingPop("b"));
            checks.add("publish" + suffix, c::publish);
            checks.add("streams" + suffix, c::streams);
            checks.add("errors" + suffix, c::errors);
            checks.add("databases" + suffix, c::databases);
            checks.add("restart" + suffix, c::restart);
        }
        checks.run(Checks.versionOf("io.lettuce", "lettuce-core"));
    }

    private String key(String name) {
        return Checks.key(prefix + name);
    }

    private void strings() {
        Checks.equal(redis.set(key("s"), "ä\r\n\0"), "OK");
        Checks.equal(redis.get(key("s")), "ä\r\n\0");
        Checks.equal(redis.get(key("none")), null);
        Checks.equal(redis.set(key("s"), ""), "OK");
        Checks.equal(redis.get(key("s")), "");
    }

    private void pipeline() throws Exception {
        try (StatefulRedisConnection<String, String> c = client.connect()) {
            c.setAutoFlushCommands(false);
            RedisAsyncCommands<String, String> async = c.async();
            List<RedisFuture<String>> got = new ArrayList<>();
            for (int i = 0; i < 500; i++) {
                async.set(key("p" + i), "v" + i);
                got.add(async.get(key("p" + i)));
            }
            c.flushCommands();
            Checks.equal(LettuceFutures.awaitAll(10, TimeUnit.SECONDS, got.toArray(new RedisFuture<?>[0])), true);
            for (int i = 0; i < 500; i++) {
                Checks.equal(got.get(i).get(), "v" + i);
            }
        }
    }

    private void transaction() {
        redis.multi();
        redis.incr(key("t"));
        redis.incr(key("t"));
        TransactionResult result = redis.exec();
        Checks.equal(result.stream().toList(), List.of(1L, 2L));
    }

    private void optimisticLock() {
        try (StatefulRedisConnection<String, String> c = client.connect()) {
            RedisCommands<String, String> watcher = c.sync();
            watcher.set(key("w"), "1");
            watcher.watch(key("w"));
            redis.set(key("w"), "2");
            watcher.multi();
            watcher.set(key("w"), "3");
            Checks.equal(watcher.exec().wasDiscarded(), true);
            Checks.equal(watcher.get(key("w")), "2");
        }
    }

    private void script() {
        String sha = redis.scriptLoad("return {KEYS[1], ARGV[1]}");
        List<String> got = redis.evalsha(sha, ScriptOutputType.MULTI, new String[] {key("e")}, "a");
        Checks.equal(got, List.of(key("e"), "a"));
        Checks.equal(redis.scriptExists(sha, "0".repeat(40)), List.of(true, false));
    }

    private void functions() {
        String name = Checks.functionName("lettuce");
        Checks.equal(redis.functionLoad(Checks.functionLibrary(name)), name);
        List<String> got = redis.fcall(name, ScriptOutputType.MULTI, new String[] {key("fn")}, "a");
        Checks.equal(got, List.of(key("fn"), "a"));
    }

    /** Answers come from the client's memory until another client, directly connected, changes the value. */
    private void caching() throws Exception {
        String key = key("cached");
        RedisClient other = RedisClient.create(RedisURI.create(Checks.HOST, Checks.REDIS_PORT));
        Map<String, String> memory = new ConcurrentHashMap<>();
        try (StatefulRedisConnection<String, String> c = client.connect();
                StatefulRedisConnection<String, String> direct = other.connect();
                CacheFrontend<String, String> cache = ClientSideCaching.enable(CacheAccessor.forMap(memory), c, TrackingArgs.Builder.enabled())) {
            direct.sync().set(key, "1");
            Checks.equal(cache.get(key), "1");
            Checks.equal(memory.get(key), "1");
            direct.sync().set(key, "2");
            Checks.eventually(() -> cache.get(key), "2");
        } finally {
            other.shutdown();
        }
    }

    private void blockingPop(String name) throws Exception {
        try (StatefulRedisConnection<String, String> c = client.connect()) {
            Thread pusher = Checks.later(() -> redis.rpush(key(name), "x"));
            Checks.equal(c.sync().blpop(15, key(name)), KeyValue.just(key(name), "x"));
            pusher.join();
            Checks.equal(c.sync().blpop(1, key(name)), null);
        }
    }

    private void publish() throws Exception {
        try (StatefulRedisPubSubConnection<String, String> c = client.connectPubSub()) {
            CompletableFuture<String> heard = new CompletableFuture<>();
            c.addListener(new RedisPubSubAdapter<>() {
                @Override
                public void message(String channel, String message) {
                    heard.complete(message);
                }
            });
            c.sync().subscribe(key("c"));
            Checks.equal(redis.publish(key("c"), "hello"), 1L);
            Checks.equal(heard.get(15, TimeUnit.SECONDS), "hello");
            c.sync().unsubscribe(key("c"));
            Checks.equal(c.sync().ping(), "PONG");
        }
    }

    private void streams() {
        redis.xgroupCreate(XReadArgs.StreamOffset.from(key("x"), "0"), "g", XGroupCreateArgs.Builder.mkstream());
        String id = redis.xadd(key("x"), Map.of("a", "1"));
        List<StreamMessage<String, String>> got = redis.xreadgroup(Consumer.from("g", "c"),
            XReadArgs.Builder.count(5).block(Duration.ofSeconds(1)), XReadArgs.StreamOffset.lastConsumed(key("x")));
        Checks.equal(got.get(0).getId(), id);
        Checks.equal(redis.xack(key("x"), "g", id), 1L);
        Checks.equal(redis.xpending(key("x"), "g").getCount(), 0L);
    }

    private void errors() {
        redis.set(key("f"), "text");
        try {
            redis.incr(key("f"));
        } catch (RedisCommandExecutionException e) {
            Checks.equal(e.getMessage(), "ERR value is not an integer or out of range");
            return;
        }
        throw new AssertionError("INCR of a text succeeded");
    }

    private void databases() {
        try (StatefulRedisConnection<String, String> c = client.connect()) {
            c.sync().select(3);
            c.sync().set(key("d"), "three");
            Checks.equal(c.sync().get(key("d")), "three");
            Checks.equal(redis.get(key("d")), null);
        }
    }

    private void restart() throws Exception {
        AtomicInteger heard = new AtomicInteger();
        StatefulRedisPubSubConnection<String, String> subscriber = client.connectPubSub();
        subscriber.addListener(new RedisPubSubAdapter<>() {
            @Override
            public void message(String channel, String message) {
                heard.incrementAndGet();
            }
        });
        subscriber.sync().subscribe(key("r"));
        Checks.restart(() -> Checks.equal(redis.set(key("r"), "back"), "OK"));
        Checks.eventually(() -> {
            redis.publish(key("r"), "again");
            return heard.get() > 0;
        }, true);
        subscriber.close();
        Checks.equal(redis.get(key("r")), "back");
        blockingPop("rb");
    }
}
