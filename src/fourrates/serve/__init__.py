"""The monitor service: ``fourrates serve``.

Predictions and labels come in over HTTP, are on disk before they are answered, and are watched by one detector for the
whole and one for each segment. What is found is kept, shown on a live page, and sent out as alerts.
"""
