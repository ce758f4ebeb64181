package hook_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/slipwayhq/slipway/sdk/extension"
)

// held is the lock of a leader that never gives up.
type held struct{ resourcelock.Interface }

func (held) Get(context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	return nil, nil, errors.New("the lease is unreachable")
}
func (held) Identity() string   { return "me" }
func (held) Describe() string   { return "held" }
func (held) RecordEvent(string) {}

// RT-23: beside a manager of controller-runtime an extension answers in every replica, not only in the leader, and ends
// with the manager.
func TestRunnableBesideAManager(t *testing.T) {
	m, err := ctrl.NewManager(&rest.Config{Host: "https://127.0.0.1:1"}, manager.Options{
		Scheme: runtime.NewScheme(), LeaderElection: true, LeaderElectionResourceLockInterface: held{},
		Metrics:                metricsserver.Options{BindAddress: "0"},
		HealthProbeBindAddress: "0",
		MapperProvider: func(*rest.Config, *http.Client) (meta.RESTMapper, error) {
			return meta.NewDefaultRESTMapper(nil), nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	x, err := extension.New()
	if err != nil {
		t.Fatal(err)
	}
	listening := make(chan net.Addr, 1)
	if err := m.Add(x.Runnable(extension.Config{
		Address: "127.0.0.1:0", Log: slog.New(slog.NewTextHandler(io.Discard, nil)), Listening: func(a net.Addr) { listening <- a },
	})); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- m.Start(ctx) }()
	var address net.Addr
	select {
	case address = <-listening:
	case err := <-ended:
		t.Fatalf("the manager exited: %v", err)
	}
	select {
	case <-m.Elected():
		t.Error("the manager is the leader, which proves nothing")
	default:
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if c, err := net.Dial("tcp", address.String()); err == nil {
		_ = c.Close()
		t.Error("the extension still listens")
	}
}
