package move_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/slipwayhq/slipway/internal/clusterctl/move"
	"github.com/slipwayhq/slipway/internal/clusterctl/move/graph"
	"github.com/slipwayhq/slipway/internal/fault"
)

var clusterA = []string{
	"Cluster ns/a kept", "InfraCluster ns/a of Cluster/a kept", "InfraMachine ns/a-1 of Machine/a-1 kept", "Machine ns/a-1 of Cluster/a kept",
	"Secret ns/a-ca", "Secret ns/a-kubeconfig of Cluster/a",
}

var classOfA = []string{"ClusterClass ns/class", "InfraClusterTemplate ns/t of ClusterClass/class"}

func lines(all ...[]string) []string {
	out := slices.Concat(all...)
	slices.Sort(out)
	return out
}

// MV-05, MV-07, MV-09, MV-10, MV-11: paused, created with the owners that are at the target, deleted, resumed; the namespace is created.
func TestMove(t *testing.T) {
	source, target := management(nil, world()...), management(nil)
	p := &process{}
	result, err := move.New(p.through(source), p.through(target), instant(move.Options{Scope: graph.Scope{Namespace: "ns"}})).Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(move.Result{Moved: 8}, result); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"ConfigMap ns/other"}, contents(t, source)); diff != "" {
		t.Error("source:", diff)
	}
	if diff := cmp.Diff(lines(clusterA, classOfA), contents(t, target)); diff != "" {
		t.Error("target:", diff)
	}
}

// MV-05, MV-09, MV-10: killed at any write, the same command or a rollback ends with everything on one side, and nothing paused.
func TestKilledAtEveryWrite(t *testing.T) {
	moves := map[string]struct {
		what           graph.Scope
		source, target []string // after the move
	}{
		"namespace":   {graph.Scope{Namespace: "ns"}, []string{"ConfigMap ns/other"}, lines(clusterA, classOfA)},
		"one cluster": {graph.Scope{Namespace: "ns", Clusters: []string{"a"}}, lines(classOfA, []string{"ConfigMap ns/other"}), lines(clusterA, classOfA)},
	}
	for name, tc := range moves {
		for _, rollback := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, rollback %v", name, rollback), func(t *testing.T) {
				before := lines(clusterA, classOfA, []string{"ConfigMap ns/other"})
				for n := 1; ; n++ {
					source, target := management(nil, world()...), management(nil)
					p := &process{killAt: n}
					run := func() *move.Move {
						return move.New(p.through(source), p.through(target), instant(move.Options{Scope: tc.what}))
					}
					if _, err := run().Run(t.Context()); err == nil {
						if n < 30 {
							t.Fatalf("only %d writes", n)
						}
						return
					} else if !errors.Is(err, errKilled) {
						t.Fatalf("write %d: %v", n, err)
					}
					*p = process{}
					back, ended := rollback, false
					if rollback {
						if _, err := run().Rollback(t.Context()); err != nil {
							switch fault.As(err).Reason {
							case "NothingToTakeBack", "TooLate": // nothing was begun, or the source has nothing any more
							case "MoveEnded":
								ended = true
							default:
								t.Fatalf("write %d: %v", n, err)
							}
							back = false
						}
					}
					if !back && !ended {
						if _, err := run().Run(t.Context()); err != nil {
							t.Fatalf("write %d, again: %v", n, err)
						}
					}
					wantSource, wantTarget := tc.source, tc.target
					if back {
						wantSource, wantTarget = before, nil
					}
					if diff := cmp.Diff(wantSource, contents(t, source)); diff != "" {
						t.Fatalf("write %d, source:\n%s", n, diff)
					}
					if diff := cmp.Diff(wantTarget, contents(t, target)); diff != "" {
						t.Fatalf("write %d, target:\n%s", n, diff)
					}
				}
			})
		}
	}
}

// MV-05: a move goes through although an API server fails at any one write, done or not.
func TestServerFailsOnce(t *testing.T) {
	for n := 1; ; n++ {
		var writes atomic.Int64
		fail := func(do func() error) error {
			if writes.Add(1) != int64(n) {
				return do()
			}
			if n%2 == 0 { // it was done, and the answer was lost
				if err := do(); err != nil {
					return err
				}
			}
			return apierrors.NewInternalError(errors.New("etcdserver: request timed out"))
		}
		failing := func(c client.WithWatch) client.WithWatch {
			p := &process{}
			return interceptor.NewClient(p.through(c), interceptor.Funcs{
				Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
					return fail(func() error { return c.Create(ctx, o, opts...) })
				},
				Patch: func(ctx context.Context, c client.WithWatch, o client.Object, patch client.Patch, opts ...client.PatchOption) error {
					return fail(func() error { return c.Patch(ctx, o, patch, opts...) })
				},
				Delete: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.DeleteOption) error {
					return fail(func() error { return c.Delete(ctx, o, opts...) })
				},
			})
		}
		source, target := management(nil, world()...), management(nil)
		options := instant(move.Options{Scope: graph.Scope{Namespace: "ns"}})
		if _, err := move.New(failing(source), failing(target), options).Run(t.Context()); err != nil && n > 1 { // the first only notes that it begins
			t.Fatalf("write %d: %v", n, err)
		} else if err != nil {
			continue
		}
		if diff := cmp.Diff(lines(clusterA, classOfA), contents(t, target)); diff != "" {
			t.Fatalf("write %d, target:\n%s", n, diff)
		}
		if writes.Load() < int64(n) {
			if n < 30 {
				t.Fatalf("only %d writes", writes.Load())
			}
			return
		}
	}
}
