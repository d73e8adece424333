"""The same detector where one machine ends: engines that own the stream, the partitions and the restarts."""
