"""Questions about tables that Spark reads. It needs the extra ``spark`` (PySpark 4 and Java 17)."""
