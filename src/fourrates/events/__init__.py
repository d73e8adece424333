"""The one door for events: columns of any transport in, class codes, times and keys out, bad rows named.

Files, frames, HTTP, Kafka and Spark bring columns (lists, NumPy or Arrow arrays). :class:`~fourrates.events.door.Door`
checks their types before it converts anything, turns them into a :class:`~fourrates.events.batch.Batch`, and says of
each row it cannot use what is wrong with it, in the same words whichever way the row came.
"""
