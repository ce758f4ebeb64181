package container

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/slipwayhq/slipway/internal/local/backend"
)

// kubeletProgram prints the state of the kubelet's unit.
const kubeletProgram = "systemctl show --property ActiveState --property SubState --property NRestarts --property ActiveEnterTimestampMonotonic " +
	"kubelet.service 2>/dev/null; echo \"Uptime=$(cut -d' ' -f1 /proc/uptime)\""

// stableAfter is how long a kubelet that was restarted has to run before it counts as running.
const stableAfter = time.Minute

// Kubelet implements backend.Kubelets. The LocalMachine controller calls it while the Node of the machine is not ready.
func (e *Engine) Kubelet(ctx context.Context, ref backend.Ref) (backend.KubeletState, error) {
	c, err := e.running(ctx, ref)
	if err != nil {
		return backend.KubeletState{}, err
	}
	out, err := e.exec(ctx, c, kubeletProgram, nil)
	if err != nil {
		return backend.KubeletState{}, fmt.Errorf("reading the state of the kubelet: %w", err)
	}
	return backend.KubeletState{Service: parseService(out), Start: "docker exec " + c.name + " systemctl start kubelet"}, nil
}

// parseService parses the properties of a unit. The machine can write any text; an unexpected one is an unknown state.
func parseService(out string) backend.ServiceState {
	active, sub, restarts := "", "", 0
	var began, uptime time.Duration
	for line := range strings.Lines(out) {
		switch name, value, _ := strings.Cut(strings.TrimSpace(line), "="); name {
		case "ActiveState":
			active = value
		case "SubState":
			sub = value
		case "NRestarts":
			restarts, _ = strconv.Atoi(value)
		case "ActiveEnterTimestampMonotonic":
			began, _ = time.ParseDuration(value + "us")
		case "Uptime":
			uptime, _ = time.ParseDuration(value + "s")
		}
	}
	switch {
	case active == "active" && restarts > 0 && uptime >= began && uptime-began < stableAfter:
		return backend.ServiceFailing
	case active == "active":
		return backend.ServiceRunning
	case active == "activating" && sub == "auto-restart", active == "failed" && restarts > 0:
		return backend.ServiceFailing
	case active == "inactive", active == "failed": // systemd restarts a kubelet that exits, so this one was stopped and did not end in time
		return backend.ServiceStopped
	}
	return ""
}
