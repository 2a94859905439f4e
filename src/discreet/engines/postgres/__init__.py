"""Questions about tables that stay in a PostgreSQL database. It needs the extra ``postgres`` (psycopg)."""
