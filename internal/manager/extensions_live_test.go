package manager_test

import (
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	runtimev1 "sigs.k8s.io/cluster-api/api/runtime/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipwayhq/slipway/internal/condition"
	"github.com/slipwayhq/slipway/sdk/hooks"
	"github.com/slipwayhq/slipway/test/hooktest"
	"github.com/slipwayhq/slipway/test/testkit/apiserver"
)

// RT-02: with the gate off, extensions that are registered already are neither discovered nor called, while other objects are
// reconciled; a manager with the gate on discovers each of them when it starts.
func TestNoExtensionsWithoutTheGate(t *testing.T) {
	server := apiserver.Start(t, apiserver.Options{})
	x := hooktest.Start(t, hooktest.Options{})
	x.Handle(hooktest.Handler("say", "BeforeClusterCreate"), nil)
	discoveries := func() int { return len(x.Bodies(hooks.Discovery.Path(""))) }
	p := startProcess(t, server, "--feature-gates=RuntimeSDK=true")
	c := newClient(t, server)
	config := x.ExtensionConfig("ext")
	config.UID, config.Generation = "", 0
	eventually(t, "the extension is registered", func() error { return client.IgnoreAlreadyExists(c.Create(t.Context(), config)) })
	eventually(t, "it is discovered", func() error {
		got := &runtimev1.ExtensionConfig{}
		must(t, c.Get(t.Context(), client.ObjectKeyFromObject(config), got))
		if len(got.Status.Handlers) != 1 {
			return fmt.Errorf("%+v", got.Status)
		}
		return nil
	})
	p.stop()
	before := discoveries()

	p = startProcess(t, server, "--feature-gates=RuntimeSDK=false")
	cluster := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "plain"}}
	cluster.Spec.InfrastructureRef = clusterv1.ContractVersionedObjectReference{APIGroup: "infrastructure.slipway.dev", Kind: "LocalCluster", Name: "plain"}
	eventually(t, "a Cluster is created", func() error { return client.IgnoreAlreadyExists(c.Create(t.Context(), cluster)) })
	eventually(t, "the manager reconciles it", func() error {
		must(t, c.Get(t.Context(), client.ObjectKeyFromObject(cluster), cluster))
		if condition.Set(cluster.Status.Conditions).Get(clusterv1.ClusterInfrastructureReadyCondition) == nil {
			return fmt.Errorf("%+v", cluster.Status.Conditions)
		}
		return nil
	})
	if n := discoveries(); n != before {
		t.Errorf("%d discoveries with the gate off", n-before)
	}
	p.stop()

	startProcess(t, server, "--feature-gates=RuntimeSDK=true")
	eventually(t, "it is discovered with the gate on", func() error {
		if discoveries() == before {
			return fmt.Errorf("no discovery")
		}
		return nil
	})
}
