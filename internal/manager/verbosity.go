package manager

import (
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
)

// maxVerbosity is the highest log level.
const maxVerbosity = 10

// verbosity serves the log level at /debug/flags/v of the diagnostics endpoint, like Kubernetes components. PUT sets it
// to a number from 0 to 10, and GET returns it. Level n of the controllers' logger is level -n of slog. [diagnostics]
// adds it to the server.
func verbosity(level *slog.LevelVar) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.Method {
		case http.MethodGet:
			_, _ = fmt.Fprintln(w, -int(level.Level())) // the client has disconnected
		case http.MethodPut:
			body, err := io.ReadAll(io.LimitReader(r.Body, 16))
			n, convErr := strconv.Atoi(strings.TrimSpace(string(body)))
			if err != nil || convErr != nil || n < 0 || n > maxVerbosity {
				http.Error(w, fmt.Sprintf("send a number from 0 to %d", maxVerbosity), http.StatusBadRequest)
				return
			}
			level.Set(slog.Level(-n))
			_, _ = fmt.Fprintf(w, "log level set to %d\n", n) // the client has disconnected
		default:
			w.Header().Set("Allow", "GET, PUT")
			http.Error(w, "use GET or PUT", http.StatusMethodNotAllowed)
		}
	})
}
