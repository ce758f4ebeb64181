package management

import (
	"fmt"
	"strings"

	"github.com/slipwayhq/slipway/internal/plane/datadir"
)

// presence is what the data directory records of the management cluster that runs there, and of its manager.
type presence struct {
	// text says how it is, as a sentence without its end; empty: nothing runs there, or that is not known.
	text string
	// starts: it, or its manager, is about to be ready.
	starts bool
}

// presenceIn reads the records of a data directory; empty: there is none.
func presenceIn(dir string) presence {
	if dir == "" {
		return presence{}
	}
	state, err := datadir.Inspect(datadir.Dir(dir))
	switch {
	case err != nil || state.Holder.ManagerOf != "" || !state.Held && state.Supervision == nil:
		return presence{}
	case !state.Held:
		return presence{"The management cluster in " + dir + " is being restarted", true}
	case state.Run != nil && state.Run.Ready && state.Run.Manager == nil: // no provider runs in it
		return presence{text: fmt.Sprintf("The management cluster in %s (process %d) runs", dir, state.Run.PID)}
	case state.Run == nil || state.Run.Manager == nil:
		return presence{fmt.Sprintf("The management cluster in %s (process %d) is starting", dir, state.Holder.PID), true}
	case state.Run.Manager.PID == 0:
		return presence{"The manager of the management cluster in " + dir + " is being restarted", true}
	case state.Run.Manager.Diagnostics == "":
		return presence{fmt.Sprintf("The manager of the management cluster in %s (process %d) is starting", dir, state.Run.Manager.PID), true}
	}
	return presence{text: fmt.Sprintf("The manager of the management cluster in %s (process %d) runs", dir, state.Run.Manager.PID)}
}

// isSlow reports whether a webhook, by the API server's words, did not answer in time, which is not to say that nothing listens there. The API
// server has no other sign of it.
func isSlow(err error) bool {
	text := err.Error()
	return strings.Contains(text, "deadline exceeded") || strings.Contains(text, "Timeout") || strings.Contains(text, "timed out")
}
