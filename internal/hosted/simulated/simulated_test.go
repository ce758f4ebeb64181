package simulated_test

import (
	"context"
	"testing"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"

	hostedsimulated "github.com/slipwayhq/slipway/internal/hosted/simulated"
	"github.com/slipwayhq/slipway/internal/simulated"
)

// The control planes of machines are on the same server, and none of this backend's: who hears of one without an object removes it.
func TestSubscribe(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	server := simulated.New(ctx, simulated.Config{Dir: t.TempDir(), Log: logr.Discard()})
	t.Cleanup(func() { cancel(); <-server.Ended() })
	told := make(chan string, 8)
	t.Cleanup(hostedsimulated.New(server).ControlPlanes.Subscribe(func(name string) { told <- name }))
	cluster := types.NamespacedName{Namespace: "default", Name: "tower"}
	var heard []string
	server.Subscribe(func(name string) { heard = append(heard, name) }) // Remove tells before it returns
	for _, name := range []string{simulated.MachineControlPlaneName(cluster), "default.tower"} {
		if err := server.Remove(name); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff([]string{"default.tower_machines", "default.tower"}, heard); diff != "" {
		t.Fatal(diff)
	}
	if got := <-told; got != "default.tower" || len(told) != 0 {
		t.Errorf("told of %s and %d others", got, len(told))
	}
}
