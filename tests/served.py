"""An ASGI application on a real socket of the loopback, in a thread, that can be stopped and started again."""

import socket
import threading
import time

import uvicorn


class Served:
    def __init__(self, app, port=0, **options):
        self._socket = socket.socket()
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self._socket.bind(("127.0.0.1", port))
        self.port = self._socket.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        options = {"log_level": "critical", "lifespan": "on", "timeout_graceful_shutdown": 1, **options}
        self.server = uvicorn.Server(uvicorn.Config(app, **options))
        self._thread = threading.Thread(target=self.server.run, kwargs={"sockets": [self._socket]}, daemon=True)
        self._thread.start()
        end = time.monotonic() + 10
        while not self.server.started and time.monotonic() < end:
            time.sleep(0.005)
        assert self.server.started

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        self.server.should_exit = True
        self._thread.join(10)
        self._socket.close()
        assert not self._thread.is_alive()
