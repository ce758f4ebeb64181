package manager

import (
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"

	utilerrors "k8s.io/apimachinery/pkg/util/errors"

	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/manager"
)

func TestPortTaken(t *testing.T) {
	first, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer first.Close() //nolint:errcheck // the test ends
	_, port, _ := net.SplitHostPort(first.Addr().String())
	_, taken := net.Listen("tcp", first.Addr().String())
	taken = fmt.Errorf("error listening: %w", taken)
	for want, endpoints := range map[string]manager.Endpoints{
		"--health-addr":         {Health: "127.0.0.1:" + port, Diagnostics: ":1"},
		"--diagnostics-address": {Health: "0", Diagnostics: ":" + port},
	} {
		if got := portTaken(taken, manager.Config{Endpoints: endpoints}); !strings.Contains(got.Error(), "port "+port+" is taken by another process") || !strings.Contains(got.Error(), want) {
			t.Errorf("%v does not name %s", got, want)
		}
	}
	if got := portTaken(taken, manager.Config{Webhook: manager.Webhook{Port: first.Addr().(*net.TCPAddr).Port}}); !strings.Contains(got.Error(), "--webhook-port") {
		t.Errorf("webhooks: %v", got)
	}
	busy := manager.Config{Webhook: manager.Webhook{Host: "127.0.0.1", Port: first.Addr().(*net.TCPAddr).Port}, Endpoints: manager.Endpoints{Health: "0"}}
	if err := checkPorts(t.Context(), busy); err == nil || !strings.Contains(err.Error(), "--webhook-port") {
		t.Errorf("before anything is written: %v", err)
	}
	if err := checkPorts(t.Context(), manager.Config{Endpoints: manager.Endpoints{Health: "127.0.0.1:0", Diagnostics: "nonsense"}}); err != nil {
		t.Errorf("ports that are free: %v", err)
	}
	for _, host := range []string{"192.0.2.1", "host.invalid"} {
		err := checkPorts(t.Context(), manager.Config{Webhook: manager.Webhook{Host: host, Port: 9443}, Endpoints: manager.Endpoints{Health: "0"}})
		if fault.KindOf(err) != fault.Invalid || !strings.HasPrefix(err.Error(), "--webhook-host: "+host+" is not an address of this machine") {
			t.Errorf("%s: %v", host, err)
		}
	}
	joined := utilerrors.NewAggregate([]error{taken, errors.New("failed waiting for all runnables to end")})
	if got := portTaken(joined, manager.Config{Endpoints: manager.Endpoints{Diagnostics: ":" + port}}); !strings.Contains(got.Error(), "--diagnostics-address") || strings.Contains(got.Error(), "runnables") {
		t.Errorf("where other things did not end in time either: %v", got)
	}
	for _, other := range []error{nil, errors.New("x"), taken} {
		if got := portTaken(other, manager.Config{}); !errors.Is(got, other) {
			t.Errorf("%v became %v", other, got)
		}
	}
}
