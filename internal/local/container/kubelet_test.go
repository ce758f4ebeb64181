package container

import (
	"testing"

	"github.com/slipwayhq/slipway/internal/local/backend"
)

func TestParseService(t *testing.T) {
	for out, want := range map[string]backend.ServiceState{
		"ActiveState=active\nSubState=running\n":                                                  backend.ServiceRunning,
		"SubState=dead\nActiveState=inactive\n":                                                   backend.ServiceStopped,
		"ActiveState=activating\nSubState=auto-restart\n":                                         backend.ServiceFailing,
		"ActiveState=active\nNRestarts=3\nActiveEnterTimestampMonotonic=5000000\nUptime=9.50\n":   backend.ServiceFailing,
		"ActiveState=active\nNRestarts=3\nActiveEnterTimestampMonotonic=5000000\nUptime=700.00\n": backend.ServiceRunning,
		"ActiveState=active\nNRestarts=3\nActiveEnterTimestampMonotonic=5000000\nUptime=1.00\n":   backend.ServiceRunning, // of lxcfs
		"ActiveState=failed\nSubState=failed\nNRestarts=5\n":                                      backend.ServiceFailing,
		"ActiveState=failed\nSubState=failed\nNRestarts=0\n":                                      backend.ServiceStopped, // it was killed, because it did not stop in time
		"ActiveState=activating\nSubState=start\n":                                                "",
		"ActiveState=\x1b[2Jevil\n":                                                               "",
		"":                                                                                        "",
	} {
		if got := parseService(out); got != want {
			t.Errorf("%q: got %q, want %q", out, got, want)
		}
	}
}
