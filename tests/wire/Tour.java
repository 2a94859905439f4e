// What DBeaver, Metabase and Tableau do through pgjdbc: look around, for nothing; then ask.
import java.sql.Connection;
import java.sql.DatabaseMetaData;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.ArrayList;
import java.util.List;
import java.util.Properties;

public class Tour {
    static int count(ResultSet rows) throws SQLException {
        int found = 0;
        while (rows.next()) {
            found++;
        }
        return found;
    }

    static void check(boolean holds, String what) {
        System.out.println((holds ? "holds " : "FAILED ") + what);
    }

    static List<String> read(ResultSet rows, String column) throws SQLException {
        List<String> found = new ArrayList<>();
        while (rows.next()) {
            found.add(rows.getString(column));
        }
        return found;
    }

    public static void main(String[] arguments) throws Exception {
        Properties properties = new Properties();
        properties.setProperty("user", "ana");
        properties.setProperty("password", arguments[1]);
        properties.setProperty("options", "-c discreet.epsilon=0.1");
        try (Connection connection = DriverManager.getConnection(arguments[0], properties)) {
            lookAround(connection.getMetaData());
            ask(connection);
        }
        System.out.println("done");
    }

    static void lookAround(DatabaseMetaData about) throws SQLException {
        check(about.getDatabaseProductName().equals("PostgreSQL"), "product");
        check(read(about.getCatalogs(), "TABLE_CAT").equals(List.of("hospital")), "catalogs");
        check(read(about.getSchemas(), "TABLE_SCHEM").contains("public"), "schemas");
        List<String> tables = read(about.getTables(null, "public", "%", new String[] {"TABLE"}), "TABLE_NAME");
        System.out.println("tables " + String.join(" ", tables));
        check(count(about.getTableTypes()) > 0, "kinds of tables");
        check(count(about.getColumns(null, "public", "visits", "%")) == 10, "columns");
        check(count(about.getPrimaryKeys(null, "public", "visits")) == 0, "no primary keys");
        check(count(about.getIndexInfo(null, "public", "visits", false, false)) == 0, "no indexes");
        check(count(about.getImportedKeys(null, "public", "visits")) >= 0, "imported keys");
        check(count(about.getExportedKeys(null, "public", "patients")) >= 0, "exported keys");
        check(count(about.getTypeInfo()) > 5, "types");
        check(count(about.getFunctions(null, null, "%")) == 0, "no functions");
        check(count(about.getProcedures(null, null, "%")) == 0, "no procedures");
        check(count(about.getUDTs(null, null, "%", null)) == 0, "no types of users");
        List<String> rights = read(about.getTablePrivileges(null, "public", "visits"), "PRIVILEGE");
        check(rights.equals(List.of("SELECT")), "rights " + rights);
        check(about.getSQLKeywords() != null, "keywords");
        check(about.getMaxColumnNameLength() == 63, "length of names");
    }

    static void ask(Connection connection) throws SQLException {
        try (Statement statement = connection.createStatement()) {
            check(count(statement.executeQuery("SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward")) == 8, "question");
            check(statement.getWarnings().getMessage().startsWith("cost "), "notice");
            String probe = "SELECT TRUE AS \"_\" FROM \"public\".\"visits\" WHERE 1 <> 1 LIMIT 0";
            check(count(statement.executeQuery(probe)) == 0, "no rows are no question");
        }
        String chosen = "SELECT COUNT(*) AS n, AVG(cost) AS c FROM visits WHERE age > ? AND ward = ?";
        try (PreparedStatement prepared = connection.prepareStatement(chosen)) {
            prepared.setInt(1, 50);
            prepared.setString(2, "Surgery");
            check(prepared.getMetaData().getColumnCount() == 6, "columns are known before");
            long first = 0;
            for (int again = 0; again < 7; again++) { // after five of them the driver prepares, and wants binary values
                ResultSet rows = prepared.executeQuery();
                rows.next();
                first = again == 0 ? rows.getLong("n") : first;
                check(rows.getLong("n") == first && rows.getDouble("c_low") <= rows.getDouble("c"), "the same again");
            }
        }
        connection.setAutoCommit(false);
        try (Statement statement = connection.createStatement()) {
            statement.setFetchSize(3);
            check(count(statement.executeQuery("SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward")) == 8, "parts");
        }
        connection.rollback();
        connection.setAutoCommit(true);
        try (Statement statement = connection.createStatement()) {
            statement.executeQuery("SELECT * FROM visits LIMIT 200");
            check(false, "rows are refused");
        } catch (SQLException refused) {
            check(refused.getSQLState().equals("42601") && refused.getMessage().contains("Nothing was charged."), "rows");
        }
        check(connection.isValid(5), "valid");
    }
}
