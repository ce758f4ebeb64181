package container

import (
	"strings"
	"testing"

	"github.com/slipwayhq/slipway/internal/fault"
)

// Where there is no Docker, what to do about it depends on where the program runs.
func TestAbsent(t *testing.T) {
	for name, c := range map[string]struct{ service, want, not string }{
		"a host": {"", "systemctl start docker", "Pod"},
		"a Pod":  {"10.96.0.1", "this manager runs in a Pod, which has no Docker; use another infrastructure provider", "systemctl"},
	} {
		t.Setenv(inPod, c.service)
		e, err := New(Config{Instance: "i", Address: "unix:///nonexistent/docker.sock"})
		if err != nil {
			t.Fatal(err)
		}
		err = e.Ping(t.Context())
		if f := fault.As(err); f == nil || f.Kind != fault.Unreachable || !strings.Contains(f.Message, c.want) || strings.Contains(f.Message, c.not) {
			t.Errorf("%s: %v", name, err)
		}
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	}
}
