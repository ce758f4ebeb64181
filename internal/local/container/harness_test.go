package container

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/moby/moby/client"
	"k8s.io/apimachinery/pkg/types"

	"github.com/slipwayhq/slipway/internal/controlplane/datadir"
	"github.com/slipwayhq/slipway/internal/controlplane/hosttransfer"
	"github.com/slipwayhq/slipway/internal/local/backend"
	"github.com/slipwayhq/slipway/internal/policy"
	"github.com/slipwayhq/slipway/test/testimage"
)

// The tests in this file use the Docker Engine of this host. Everything they make belongs to an instance of its own,
// which is removed at the end.

const patience = time.Minute

func imageName(e *Engine) string { return "slipway-test-node:" + e.instance }

// testImage makes the image of the tests and returns its name.
func testImage(t *testing.T, e *Engine) string {
	t.Helper()
	if err := testimage.Import(t.Context(), e.api, imageName(e)); err != nil {
		t.Fatal(err)
	}
	return imageName(e)
}

// engine returns the host's engine with an instance that is removed when the test ends.
func engine(t *testing.T) *Engine {
	t.Helper()
	instance := fmt.Sprintf("slipway-test-%d-%s", os.Getpid(), strings.ToLower(strings.TrimPrefix(t.Name(), "Test")))
	book := hosttransfer.Open(datadir.Dir(t.TempDir()), instance)
	e, err := New(Config{Instance: instance, Ownership: book})
	if err != nil {
		t.Fatal(err)
	}
	if err := e.Ping(t.Context()); err != nil {
		t.Fatalf("these tests need Docker (make test sets it up): %v", err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if err := RemoveInstance(ctx, book, func(int, int) {}); err != nil {
			t.Error(err)
		}
		_, _ = e.api.ImageRemove(ctx, imageName(e), client.ImageRemoveOptions{Force: true}) // not every test makes it
		e.Close()
	})
	return e
}

func owner(name string) backend.Owner {
	return backend.Owner{Cluster: "c", Object: types.NamespacedName{Namespace: "slipway-test", Name: name}, UID: "u-1"}
}

func (e *Engine) testNetwork(t *testing.T) backend.Network {
	t.Helper()
	o := owner("c")
	n, err := e.EnsureNetwork(t.Context(), backend.NetworkSpec{Owner: o, Name: backend.NetworkName(e.instance, o.Object), Policy: policy.Default()})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func (e *Engine) testMachine(t *testing.T, name string) backend.MachineSpec {
	t.Helper()
	o := owner(name)
	spec := backend.MachineSpec{Owner: o, Name: backend.MachineName(e.instance, o.Object), Hostname: backend.Hostname(name),
		Network: netRef(e.testNetwork(t)), Image: testImage(t, e)}
	if _, err := e.Create(t.Context(), spec); err != nil {
		t.Fatal(err)
	}
	return spec
}

// netRef is the network of the tests' LocalCluster.
func netRef(n backend.Network) backend.Ref {
	return backend.Ref{Object: owner("c").Object, Name: n.Name}
}

// found looks up the container of a spec, which has to be there.
func (e *Engine) found(t *testing.T, spec backend.MachineSpec) ownContainer {
	t.Helper()
	c, _, err := e.container(t.Context(), refOf(spec), e.ownership.Ownership)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// eventually asks again until the answer is yes.
func eventually(t *testing.T, what string, yes func() bool) {
	t.Helper()
	deadline := time.Now().Add(patience)
	for !yes() {
		if time.Now().After(deadline) {
			t.Fatalf("%s: not within %s", what, patience)
		}
		time.Sleep(20 * time.Millisecond)
	}
}
