// A service on an embedded Jetty 9 with the filter of TidegateFilter.java in front of every servlet.
import java.io.IOException;
import java.net.InetSocketAddress;
import java.util.EnumSet;
import javax.servlet.DispatcherType;
import javax.servlet.http.HttpServlet;
import javax.servlet.http.HttpServletRequest;
import javax.servlet.http.HttpServletResponse;
import org.eclipse.jetty.server.Server;
import org.eclipse.jetty.servlet.ServletContextHandler;

public class JettyService {
    public static class Hello extends HttpServlet {
        @Override
        protected void doGet(HttpServletRequest request, HttpServletResponse response) throws IOException {
            response.getWriter().print("hello");
        }
    }

    public static void main(String[] arguments) throws Exception {
        var port = Integer.parseInt(Tidegate.setting("PORT", "8080"));
        var server = new Server(new InetSocketAddress("127.0.0.1", port));
        var context = new ServletContextHandler(server, "/");
        context.addFilter(TidegateFilter.class, "/*", EnumSet.of(DispatcherType.REQUEST));
        context.addServlet(Hello.class, "/");
        server.start();
    }
}
