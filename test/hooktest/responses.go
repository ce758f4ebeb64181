package hooktest

import (
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"strings"
	"time"
)

// Drip serves one byte every 20 ms until the client disconnects. It and the following handlers are the broken
// extensions of the tests of package hook, which pass them to [Extension.Handle] and [Extension.Serve].
func Drip(w http.ResponseWriter, r *http.Request) {
	w.WriteHeader(http.StatusOK)
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		if _, err := io.WriteString(w, " "); err != nil || http.NewResponseController(w).Flush() != nil {
			return
		}
		select {
		case <-r.Context().Done():
			return
		case <-tick.C:
		}
	}
}

// Flood serves an endless body.
func Flood(w http.ResponseWriter, r *http.Request) {
	chunk := []byte(strings.Repeat(" ", 1<<16))
	for r.Context().Err() == nil {
		if _, err := w.Write(chunk); err != nil {
			return
		}
	}
}

// Silent serves no response and returns when the client disconnects.
func Silent(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }

// Status serves an HTTP status without a body.
func Status(code int) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) }
}

// Cut serves the first bytes of a longer response and closes the connection, with a TCP reset if hard is set.
func Cut(hard bool) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		conn, buffer, err := http.NewResponseController(w).Hijack()
		if err != nil {
			return
		}
		_, _ = buffer.WriteString("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n{\"apiVersion\":")
		_ = buffer.Flush()
		if secure, ok := conn.(*tls.Conn); ok && hard {
			if plain, ok := secure.NetConn().(*net.TCPConn); ok {
				_ = plain.SetLinger(0)
				_ = plain.Close()
				return
			}
		}
		_ = conn.Close()
	}
}
