package management

import (
	"fmt"
	"strings"

	"github.com/slipwayhq/slipway/internal/controlplane/datadir"
)

// presence is the recorded state of the local management cluster and its manager, for messages of [Connection.Explain]
// and [Connection.ManagerProblem].
type presence struct {
	// text is the state as a sentence without a period. It is empty if nothing is running or the state is unknown.
	text string
	// isStarting is true while the management cluster or its manager is starting.
	isStarting bool
}

// readPresence reads the state from a data directory. It sends no request. [Connection.Explain] and
// [Connection.ManagerProblem] call it.
func readPresence(dir string) presence {
	if dir == "" {
		return presence{}
	}
	state, err := datadir.Inspect(datadir.Dir(dir))
	switch {
	case err != nil || state.Holder.ManagerOf != "" || !state.Held && state.Supervision == nil:
		return presence{}
	case !state.Held:
		return presence{"The management cluster in " + dir + " is being restarted", true}
	case state.Run != nil && state.Run.Ready && state.Run.Manager == nil: // no provider is enabled
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

// isSlow reports whether the error message of the API server indicates a timeout of a webhook, and not that nothing
// listens there. The API server provides no other indication. [Connection.Explain] and managerProblem call it.
func isSlow(err error) bool {
	text := err.Error()
	return strings.Contains(text, "deadline exceeded") || strings.Contains(text, "Timeout") || strings.Contains(text, "timed out")
}
