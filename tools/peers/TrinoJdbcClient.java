import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.Properties;

/**
 * Asks through Trino's own JDBC driver until its standard input ends, and knows each answer before it asks: one line for each query, `right`, `wrong` or `failed`
 * and what it was; for each transaction `opened`, then `committed` or `lost`.
 *
 * java -cp trino-jdbc.jar TrinoJdbcClient.java jdbc:trino://HOST:PORT PAUSE_MS
 */
public final class TrinoJdbcClient {
  private static final String SUM = "SELECT count(*), CAST(sum(n) AS varchar) FROM TABLE(sequence(start => 1, stop => %d)) AS t(n)";

  public static void main(String[] args) throws Exception {
    Thread reader = new Thread(() -> {
      try {
        while (System.in.read() >= 0) {}
      } catch (java.io.IOException ended) {
        // the same as its end
      }
      over = true;
    });
    reader.setDaemon(true);
    reader.start();
    Properties properties = new Properties();
    properties.setProperty("user", "demo-jdbc");
    properties.setProperty("source", "relevo-demo-jdbc");
    for (int turn = 1; !over; turn++) {
      try (Connection connection = DriverManager.getConnection(args[0], properties)) {
        ask(connection, turn);
        prepared(connection, turn);
        transaction(connection, turn);
      } catch (SQLException error) {
        tell("failed", "connection: " + error.getMessage());
      }
      Thread.sleep(Long.parseLong(args[1]));
    }
  }

  private static volatile boolean over;

  private static boolean ask(Connection connection, int turn) {
    long last = 1_000L * turn;
    try (Statement statement = connection.createStatement(); ResultSet rows = statement.executeQuery(String.format(SUM, last))) {
      boolean right = rows.next() && rows.getLong(1) == last && rows.getString(2).equals(Long.toString(last * (last + 1) / 2)) && !rows.next();
      return tell(right ? "right" : "wrong", "sum of " + last);
    } catch (SQLException error) {
      return tell("failed", "sum of " + last + ": " + error.getMessage());
    }
  }

  private static void prepared(Connection connection, int turn) {
    try (PreparedStatement statement = connection.prepareStatement("SELECT ? * 7, ?")) {
      statement.setLong(1, turn);
      statement.setString(2, "it's");
      try (ResultSet rows = statement.executeQuery()) {
        boolean right = rows.next() && rows.getLong(1) == 7L * turn && rows.getString(2).equals("it's") && !rows.next();
        tell(right ? "right" : "wrong", "prepared " + turn);
      }
    } catch (SQLException error) {
      tell("failed", "prepared " + turn + ": " + error.getMessage());
    }
  }

  private static void transaction(Connection connection, int turn) {
    tell("opened", "transaction " + turn);
    try {
      connection.setAutoCommit(false);
      boolean right = ask(connection, turn) & ask(connection, turn + 1);
      connection.commit();
      connection.setAutoCommit(true);
      tell(right ? "committed" : "lost", "transaction " + turn);
    } catch (SQLException error) {
      tell("lost", "transaction " + turn + ": " + error.getMessage());
    }
  }

  private static synchronized boolean tell(String how, String what) {
    System.out.println(how + " " + what.replaceAll("[\\r\\n]+", " "));
    return how.equals("right");
  }
}
