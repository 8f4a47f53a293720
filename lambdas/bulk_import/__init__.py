"""Bulk imports of messages: started on a platform that runs Spark, and looked after."""
