"""The same detector inside Spark and Kafka, next to the events."""
