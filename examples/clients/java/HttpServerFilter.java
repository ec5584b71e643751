// A filter of the HTTP server in the JDK: limits the requests of each client.
import com.sun.net.httpserver.Filter;
import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.util.HexFormat;
import java.util.concurrent.Executors;

class HttpServerFilter extends Filter {
    private final Tidegate tidegate = new Tidegate();

    @Override
    public void doFilter(HttpExchange exchange, Chain chain) throws IOException {
        var key = keyOf(exchange.getRemoteAddress().getAddress());
        var decision = tidegate.ask("/v1/take", "{\"key\":\"" + key + "\",\"limit\":\"5/60s\"}");
        decision.fields().forEach(exchange.getResponseHeaders()::set);
        if (decision.status() == 200) {
            chain.doFilter(exchange);
        } else {
            exchange.sendResponseHeaders(decision.status(), -1);
            exchange.close();
        }
    }

    /** Returns the key of an address, in hexadecimal. An IPv6 client can use every address of its /64. */
    static String keyOf(InetAddress address) {
        var bytes = address.getAddress();
        return "ip:" + HexFormat.of().formatHex(bytes, 0, Math.min(bytes.length, 8));
    }

    @Override
    public String description() {
        return "limits the requests of each client";
    }

    public static void main(String[] arguments) throws IOException {
        var port = Integer.parseInt(Tidegate.setting("PORT", "8080"));
        var server = HttpServer.create(new InetSocketAddress("127.0.0.1", port), 0);
        var hello = server.createContext("/", exchange -> {
            exchange.sendResponseHeaders(200, 5);
            try (var body = exchange.getResponseBody()) {
                body.write("hello".getBytes());
            }
        });
        hello.getFilters().add(new HttpServerFilter());
        server.setExecutor(Executors.newCachedThreadPool()); // by default one thread serves all requests
        server.start();
    }
}
