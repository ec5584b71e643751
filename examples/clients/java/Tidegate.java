// A client on java.net.http. It needs Java 17 and no library.
import java.io.IOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpRequest.BodyPublishers;
import java.net.http.HttpResponse.BodyHandlers;
import java.time.Duration;
import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;

class Tidegate {
    /** The status and the header fields of a response. */
    record Decision(int status, Map<String, String> fields) {}

    private static final System.Logger LOG = System.getLogger("tidegate");
    private static final Duration TIMEOUT = Duration.ofMillis(Long.parseLong(setting("TIDEGATE_TIMEOUT_MS", "100")));
    private final HttpClient client =
        HttpClient.newBuilder().version(HttpClient.Version.HTTP_1_1).connectTimeout(TIMEOUT).build();

    /** Posts to a route. HttpClient repeats a GET and not a POST: a repeated request could spend twice. */
    Decision ask(String route, String body) {
        var uri = URI.create("http://" + setting("TIDEGATE_HTTP", "127.0.0.1:8380") + route);
        var request = HttpRequest.newBuilder(uri).timeout(TIMEOUT).header("Content-Type", "application/json");
        var token = setting("TIDEGATE_TOKEN", "");
        if (!token.isEmpty()) request.header("Tidegate-Token", token);
        try {
            var reply = client.sendAsync(request.POST(BodyPublishers.ofString(body)).build(), BodyHandlers.ofString())
                .get(TIMEOUT.toMillis(), TimeUnit.MILLISECONDS);
            var status = reply.statusCode();
            if (status >= 500) throw new IOException(reply.body());
            var fields = new HashMap<String, String>();
            for (var name : new String[] {"Retry-After", "RateLimit-Policy", "RateLimit"}) {
                reply.headers().firstValue(name).ifPresent(value -> fields.put(name, value));
            }
            if (status == 200 || status == 403 || status == 429) return new Decision(status, fields);
            LOG.log(System.Logger.Level.ERROR, "tidegate: " + reply.body()); // the token or the request is wrong
            return new Decision(500, Map.of());
        } catch (InterruptedException stopping) {
            Thread.currentThread().interrupt();
            return down(stopping);
        } catch (ExecutionException | IOException | TimeoutException error) {
            return down(error);
        }
    }

    private static Decision down(Exception error) {
        LOG.log(System.Logger.Level.ERROR, "tidegate: " + error);
        return setting("TIDEGATE_FAIL", "open").equals("open")
            ? new Decision(200, Map.of()) : new Decision(503, Map.of("Retry-After", "1"));
    }

    static String setting(String name, String otherwise) {
        var value = System.getenv(name);
        return value == null || value.isEmpty() ? otherwise : value;
    }
}
