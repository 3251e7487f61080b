// Waits until a WebSocket is closed on both sides.

// A server that does not answer the close has lost the connection anyway.
const CLOSE_MS_MAX = 2_000;

export function closing(socket) {
  if (!socket || socket.readyState === WebSocket.CLOSED) return Promise.resolve();
  return new Promise((resolve) => {
    socket.addEventListener('close', resolve, { once: true });
    setTimeout(resolve, CLOSE_MS_MAX);
  });
}
