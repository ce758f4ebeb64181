package manager

import (
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
)

// mostVerbose is the largest number that the log level takes.
const mostVerbose = 10

// verbosity serves the log level: a PUT of a number from 0 to 10 sets it, a GET tells it.
func verbosity(level *slog.LevelVar) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.Method {
		case http.MethodGet:
			_, _ = fmt.Fprintln(w, -int(level.Level())) // the client is gone
		case http.MethodPut:
			body, err := io.ReadAll(io.LimitReader(r.Body, 16))
			n, convErr := strconv.Atoi(strings.TrimSpace(string(body)))
			if err != nil || convErr != nil || n < 0 || n > mostVerbose {
				http.Error(w, fmt.Sprintf("send a number from 0 to %d", mostVerbose), http.StatusBadRequest)
				return
			}
			level.Set(slog.Level(-n))
			_, _ = fmt.Fprintf(w, "log level set to %d\n", n) // the client is gone
		default:
			w.Header().Set("Allow", "GET, PUT")
			http.Error(w, "use GET or PUT", http.StatusMethodNotAllowed)
		}
	})
}
