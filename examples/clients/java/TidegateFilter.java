// A servlet filter: the rules of Tidegate limit requests. It needs a servlet API 4.
import java.io.IOException;
import javax.servlet.FilterChain;
import javax.servlet.ServletException;
import javax.servlet.http.HttpFilter;
import javax.servlet.http.HttpServletRequest;
import javax.servlet.http.HttpServletResponse;

public class TidegateFilter extends HttpFilter {
    private final Tidegate tidegate = new Tidegate();

    @Override
    protected void doFilter(HttpServletRequest request, HttpServletResponse response, FilterChain chain)
            throws IOException, ServletException {
        // Jetty writes an IPv6 address in brackets.
        var ip = request.getRemoteAddr().replaceAll("^\\[|\\]$", "");
        var decision = tidegate.ask("/v1/admit", "{\"max_wait_ms\":0,\"attributes\":{"
            + "\"ip\":" + quoted(ip) + ",\"method\":" + quoted(request.getMethod())
            + ",\"path\":" + quoted(request.getRequestURI()) + "}}");
        decision.fields().forEach(response::setHeader);
        if (decision.status() == 200) chain.doFilter(request, response);
        else response.sendError(decision.status());
    }

    /** Returns a string of JSON. No part of the head of a request has control characters. */
    private static String quoted(String text) {
        return '"' + text.replace("\\", "\\\\").replace("\"", "\\\"") + '"';
    }
}
