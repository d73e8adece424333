"""The monitor service: ``fourrates serve``.

Predictions and labels arrive over HTTP and are on disk before they are answered. One detector watches the overall
stream and one each segment; findings are stored, shown on a live page and sent as alerts.
"""
