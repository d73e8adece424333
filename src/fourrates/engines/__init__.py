"""The same detector where the events already are: Spark, Kafka."""
