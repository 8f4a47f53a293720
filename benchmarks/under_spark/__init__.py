"""What a measured run of Spark does: programs that need pyspark, in processes of their own."""
