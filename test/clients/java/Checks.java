import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Objects;
import java.util.UUID;

/** Shared by the checks of both Java libraries: runs them in turn and prints a line for each. */
final class Checks {
    static final String HOST = System.getenv("PROXY_HOST");
    static final int PORT = Integer.parseInt(System.getenv("PROXY_PORT"));
    private static final String PREFIX = "java:" + UUID.randomUUID() + ":";
    private static final BufferedReader ANSWERS = new BufferedReader(new InputStreamReader(System.in));

    /** What a check does; it fails by throwing. */
    interface Check {
        void run() throws Exception;
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
        for (long deadline = System.nanoTime() + 15_000_000_000L; ; Thread.sleep(50)) {
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

    /** Runs everything and leaves, whatever threads a library has. */
    void run() {
        int failed = 0;
        for (Map.Entry<String, Check> e : checks.entrySet()) {
            try {
                e.getValue().run();
                System.out.println("ok " + e.getKey());
            } catch (Throwable t) {
                failed++;
                System.out.println("not ok " + e.getKey() + " # " + t.toString().replace('\n', ' '));
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
