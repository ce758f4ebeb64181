package mirror_test

import (
	"context"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/clientcmd"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/slipwayhq/slipway/internal/fleet/mirror"
	"github.com/slipwayhq/slipway/test/testkit/apiserver"
)

// A real API server streams its lists, and reports every change.
func TestRunAgainstAnAPIServer(t *testing.T) {
	server := apiserver.Start(t, apiserver.Options{Objects: apiserver.CRDs(t)})
	scheme := runtime.NewScheme()
	if err := clusterv1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	c := server.Client(t, scheme)
	cfg, err := clientcmd.BuildConfigFromFlags("", server.Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	changes := make(chan mirror.Change, 100)
	m, err := mirror.New(cfg, mirror.Options{OnChange: func(c mirror.Change) { changes <- c }})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { m.Run(ctx); close(ended) }()
	t.Cleanup(func() { cancel(); <-ended })
	cluster := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "demo"}, Spec: clusterv1.ClusterSpec{
		InfrastructureRef: clusterv1.ContractVersionedObjectReference{APIGroup: "infrastructure.slipway.dev", Kind: "LocalCluster", Name: "demo"}}}
	if err := c.Create(t.Context(), cluster); err != nil {
		t.Fatal(err)
	}
	wait := func(deleted bool) {
		t.Helper()
		limit := time.After(2 * time.Minute)
		for {
			select {
			case change := <-changes:
				if change.Of.Kind == "Cluster" && change.Of.Name == "demo" && change.Deleted == deleted {
					return
				}
			case <-limit:
				t.Fatalf("the change is not reported; %+v", m.Status())
			}
		}
	}
	wait(false)
	if err := c.Delete(t.Context(), cluster); err != nil {
		t.Fatal(err)
	}
	wait(true)
	for limit := time.After(2 * time.Minute); !m.Status().Synced; {
		select {
		case <-limit:
			t.Fatalf("not synced: %+v", m.Status())
		case <-time.After(50 * time.Millisecond):
		}
	}
	if s := m.Status(); len(s.Unreadable) > 0 || s.Err != nil || len(m.Kinds()) < 20 {
		t.Errorf("%d kinds, status %+v", len(m.Kinds()), s)
	}
}
