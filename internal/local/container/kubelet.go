package container

import (
	"context"
	"fmt"
	"strings"

	"github.com/slipwayhq/slipway/internal/local/backend"
)

// kubeletProgram prints the state of the kubelet's unit.
const kubeletProgram = "systemctl show --property ActiveState --property SubState kubelet.service 2>/dev/null || true"

// Kubelet implements backend.Kubelets.
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
	active, sub := "", ""
	for line := range strings.Lines(out) {
		switch name, value, _ := strings.Cut(strings.TrimSpace(line), "="); name {
		case "ActiveState":
			active = value
		case "SubState":
			sub = value
		}
	}
	switch {
	case active == "active":
		return backend.ServiceRunning
	case active == "activating" && sub == "auto-restart", active == "failed":
		return backend.ServiceFailing
	case active == "inactive":
		return backend.ServiceStopped
	}
	return ""
}
