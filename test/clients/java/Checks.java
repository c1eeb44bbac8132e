import java.io.BufferedReader;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Objects;
import java.util.Properties;
import java.util.UUID;
import java.util.concurrent.Callable;

/** Shared by the checks of both Java libraries: runs them in turn and prints a line for each. */
final class Checks {
    static final String HOST = System.getenv("PROXY_HOST");
    static final int PORT = Integer.parseInt(System.getenv("PROXY_PORT"));
    /** Of the server itself, on the same host. */
    static final int REDIS_PORT = Integer.parseInt(System.getenv("REDIS_PORT"));
    private static final String PREFIX = "java:" + UUID.randomUUID() + ":";
    private static final BufferedReader ANSWERS = new BufferedReader(new InputStreamReader(System.in));

    /** What a check does; it fails by throwing. */
    interface Check {
        void run() throws Exception;
    }

    /** The library does not offer this with the server, directly connected or not. */
    static final class Refused extends Exception {
        private static final long serialVersionUID = 1;

        Refused(Throwable cause) {
            super(cause);
        }
    }

    private final Map<String, Check> checks = new LinkedHashMap<>();

    void add(String name, Check check) {
        checks.put(name, check);
    }

    static String key(String name) {
        return PREFIX + name;
    }

    static void equal(Object got, Object want) {
        if (!Objects.equals(got, want)) {
            throw new AssertionError("got " + got + ", want " + want);
        }
    }

    /** Has Redis restarted behind the proxy and waits until the check passes again. */
    static void restart(Check check) throws Exception {
        System.out.println("restart");
        ANSWERS.readLine();
        for (long deadline = System.nanoTime() + 20_000_000_000L; ; Thread.sleep(50)) {
            try {
                check.run();
                return;
            } catch (RuntimeException e) {
                if (System.nanoTime() > deadline) {
                    throw e;
                }
            }
        }
    }

    /** A library with a function of the same name, which returns its first key and argument. */
    static String functionLibrary(String name) {
        return "#!lua name=" + name + "\nredis.register_function('" + name + "', function(k, a) return {k[1], a[1]} end)";
    }

    /** A name that no other run uses and that a function may have. */
    static String functionName(String library) {
        return library + UUID.randomUUID().toString().replace("-", "");
    }

    /** Waits until a value is what is wanted. */
    static void eventually(Callable<?> get, Object want) throws Exception {
        for (long deadline = System.nanoTime() + 15_000_000_000L; ; Thread.sleep(20)) {
            Object got = get.call();
            if (Objects.equals(got, want)) {
                return;
            }
            if (System.nanoTime() > deadline) {
                equal(got, want);
            }
        }
    }

    /** The version that a library's Maven coordinates state. */
    static String versionOf(String group, String artifact) throws Exception {
        Properties p = new Properties();
        try (InputStream in = Checks.class.getResourceAsStream("/META-INF/maven/" + group + "/" + artifact + "/pom.properties")) {
            p.load(in);
        }
        return p.getProperty("version");
    }

    /** Runs everything and leaves, whatever threads a library has. */
    void run(String version) {
        System.out.println("version " + version);
        int failed = 0;
        for (Map.Entry<String, Check> e : checks.entrySet()) {
            try {
                e.getValue().run();
                System.out.println("ok " + e.getKey());
            } catch (Refused r) {
                System.out.println("refused " + e.getKey() + " # " + r.getMessage());
            } catch (Throwable t) {
                failed++;
                System.out.println("failed " + e.getKey() + " # " + t.toString().replace('\n', ' '));
                t.printStackTrace();
            }
        }
        System.out.flush();
        System.exit(failed == 0 ? 0 : 1);
    }

    /** Does something a little later, while this thread waits. */
    static Thread later(Check check) {
        Thread t = new Thread(() -> {
            try {
                Thread.sleep(200);
                check.run();
            } catch (Exception e) {
                e.printStackTrace();
            }
        });
        t.start();
        return t;
    }
}
