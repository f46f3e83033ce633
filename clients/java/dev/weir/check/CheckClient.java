package dev.weir.check;

import com.google.gson.Gson;
import com.google.gson.JsonSyntaxException;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.net.StandardProtocolFamily;
import java.net.URI;
import java.net.UnixDomainSocketAddress;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.net.http.HttpTimeoutException;
import java.nio.ByteBuffer;
import java.nio.channels.SelectionKey;
import java.nio.channels.Selector;
import java.nio.channels.SocketChannel;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.List;
import java.util.Map;

/**
 * Asks the sidecar of a pod, by Weir's check API. It needs Java 17 or later and Gson 2.10 or later.
 * Threads may share it. It retries nothing: a check that was counted would be counted twice.
 */
public final class CheckClient {
    /** Where the sidecar of the same pod answers. */
    public static final URI DEFAULT_URI = URI.create("http://127.0.0.1:15010");

    /** The socket of pods with the annotation config.weir.dev/check-socket. */
    public static final URI DEFAULT_SOCKET = URI.create("unix:///var/run/weir.dev/check.sock");

    /**
     * Names a counter, and units of it.
     *
     * @param policy a RateLimitPolicy in the pod's namespace that selects the pod
     * @param limit one of its limits
     * @param key the values of the parts of its key; null without one
     * @param tenant who is charged, where the limit has fairness; else null
     * @param cost units
     */
    public record Query(String policy, String limit, List<String> key, String tenant, long cost) {
        /** Asks for one unit of a limit without a key, or of that of the values. */
        public static Query of(String policy, String limit, String... key) {
            return new Query(policy, limit, key.length == 0 ? null : List.of(key), null, 1);
        }
    }

    /**
     * Answers a check.
     *
     * @param allowed whether to go on, after delayMs
     * @param resetAfterMs until nothing counts any more
     * @param retryAfterMs until it may be allowed; 0 when waiting does not help
     */
    public record Decision(boolean allowed, long limit, long remaining, long resetAfterMs, long retryAfterMs, long delayMs) {}

    /**
     * Says how a query would fare.
     *
     * @param credits units that the sidecar holds
     * @param source who would decide
     * @param reason why the cost is refused; else null
     * @param storeAgeMs how long ago the store was read, at most; else null
     * @param unread why it was not; else null
     * @param shared the key would share a counter
     * @param shadow the limit refuses nothing
     */
    public record State(
            boolean allowed, long limit, long remaining, long resetAfterMs, long retryAfterMs, long delayMs,
            long credits, String source, String reason, Long storeAgeMs, String unread, boolean shared, boolean shadow) {}

    /** Has a state for each query; allowed and retryAfterMs are of all together. */
    public record Peek(boolean allowed, long retryAfterMs, List<State> limits) {}

    /**
     * Says when the cost of a query is admitted.
     *
     * @param admitted Now, Later, Never or Unknown
     * @param afterMs with Now and Later; else null
     */
    public record Outlook(
            String admitted, Long afterMs, long delayMs, long remaining, long fullAfterMs,
            long credits, String source, String reason, Long storeAgeMs, String unread, boolean shared, boolean shadow) {}

    /** Has an outlook for each query; admitted and afterMs are of all together. */
    public record Forecast(String admitted, Long afterMs, List<Outlook> limits) {}

    /** An answer that decides nothing: its detail names the field that is wrong, and the cure. */
    public static final class CheckException extends IOException {
        private static final long serialVersionUID = 1;
        private final int status;
        private final String detail;

        CheckException(int status, String title, String detail) {
            super(status + " " + title + ": " + detail);
            this.status = status;
            this.detail = detail;
        }

        public int status() {
            return status;
        }

        public String detail() {
            return detail;
        }
    }

    private record Problem(String title, String detail) {}

    private static final Gson GSON = new Gson();
    private final HttpClient http;
    private final URI uri;
    private final Duration timeout;

    /** Asks the sidecar of the same pod, for at most two seconds a call. */
    public CheckClient() {
        this(DEFAULT_URI, Duration.ofSeconds(2));
    }

    /** Asks the sidecar at http://HOST:PORT, or unix:// and the path of a socket. */
    public CheckClient(URI uri, Duration timeout) {
        this.http = HttpClient.newBuilder().version(HttpClient.Version.HTTP_1_1).connectTimeout(timeout).build();
        this.uri = uri;
        this.timeout = timeout;
    }

    /** Decides a request, and counts it. A refusal is a decision; an exception decides nothing. */
    public Decision check(Query query) throws IOException, InterruptedException {
        return ask("/v1/check", query, Decision.class);
    }

    /** Says what is left for up to 16 queries, and takes nothing. */
    public Peek peek(Query... queries) throws IOException, InterruptedException {
        return ask("/v1/peek", Map.of("limits", queries), Peek.class);
    }

    /** Says when the costs of up to 16 queries will be admitted, and takes nothing. */
    public Forecast forecast(Query... queries) throws IOException, InterruptedException {
        return ask("/v1/forecast", Map.of("limits", queries), Forecast.class);
    }

    private <T> T ask(String path, Object question, Class<T> kind) throws IOException, InterruptedException {
        String body = GSON.toJson(question);
        Answer answer = "unix".equals(uri.getScheme()) ? overSocket(path, body) : overHttp(path, body);
        if (answer.status() == 200 || answer.status() == 429) {
            return GSON.fromJson(answer.body(), kind);
        }
        Problem problem = null;
        try {
            problem = GSON.fromJson(answer.body(), Problem.class);
        } catch (JsonSyntaxException e) {
            // The status says enough.
        }
        if (problem == null || problem.detail() == null) {
            problem = new Problem("error", "the sidecar gives no reason");
        }
        throw new CheckException(answer.status(), problem.title(), problem.detail());
    }

    private record Answer(int status, String body) {}

    private Answer overHttp(String path, String body) throws IOException, InterruptedException {
        HttpRequest request = HttpRequest.newBuilder(uri.resolve(path))
                .timeout(timeout)
                .header("Content-Type", "application/json")
                .POST(HttpRequest.BodyPublishers.ofString(body))
                .build();
        HttpResponse<String> answer = http.send(request, HttpResponse.BodyHandlers.ofString());
        return new Answer(answer.statusCode(), answer.body());
    }

    /** Asks by HTTP/1.0, whose answers end with the connection: java.net.http connects to no sockets. */
    private Answer overSocket(String path, String body) throws IOException {
        byte[] content = body.getBytes(StandardCharsets.UTF_8);
        String head = "POST " + path + " HTTP/1.0\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: " + content.length + "\r\n\r\n";
        ByteBuffer request = ByteBuffer.allocate(head.length() + content.length);
        request.put(head.getBytes(StandardCharsets.US_ASCII)).put(content).flip();
        ByteArrayOutputStream said = new ByteArrayOutputStream();
        long deadline = System.nanoTime() + timeout.toNanos();
        try (SocketChannel channel = SocketChannel.open(StandardProtocolFamily.UNIX); Selector selector = Selector.open()) {
            channel.connect(UnixDomainSocketAddress.of(uri.getPath()));
            channel.configureBlocking(false);
            SelectionKey key = channel.register(selector, SelectionKey.OP_WRITE);
            ByteBuffer part = ByteBuffer.allocate(4096);
            while (true) {
                long left = (deadline - System.nanoTime()) / 1_000_000;
                if (left <= 0) {
                    throw new HttpTimeoutException("the sidecar did not answer in time");
                }
                selector.select(left);
                selector.selectedKeys().clear();
                if (request.hasRemaining()) {
                    channel.write(request);
                    key.interestOps(request.hasRemaining() ? SelectionKey.OP_WRITE : SelectionKey.OP_READ);
                    continue;
                }
                if (channel.read(part.clear()) < 0) {
                    return parsed(said.toString(StandardCharsets.UTF_8));
                }
                said.write(part.array(), 0, part.position());
            }
        }
    }

    private static Answer parsed(String answer) throws IOException {
        int end = answer.indexOf("\r\n\r\n");
        String[] words = answer.split(" ", 3);
        if (end < 0 || words.length < 3) {
            throw new IOException("the sidecar ended the connection before its answer");
        }
        return new Answer(Integer.parseInt(words[1]), answer.substring(end + 4));
    }
}
