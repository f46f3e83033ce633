import com.google.gson.Gson;
import dev.weir.check.CheckClient;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.net.URI;
import java.time.Duration;
import java.util.Map;

/** Asks as the lines of the standard input say, and prints each answer in a line. */
public final class Drive {
    private record Asked(String call, CheckClient.Query[] queries) {}

    public static void main(String[] args) throws Exception {
        Gson gson = new Gson();
        CheckClient client = new CheckClient(URI.create(args[0]), Duration.ofSeconds(10));
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            Asked asked = gson.fromJson(line, Asked.class);
            Object answer;
            try {
                answer = switch (asked.call()) {
                    case "check" -> client.check(asked.queries()[0]);
                    case "peek" -> client.peek(asked.queries());
                    default -> client.forecast(asked.queries());
                };
            } catch (CheckClient.CheckException e) {
                answer = Map.of("status", e.status(), "detail", e.detail());
            }
            System.out.println(gson.toJson(answer));
        }
    }
}
