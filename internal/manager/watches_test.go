package manager_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery"
	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "github.com/slipwayhq/slipway/api/infrastructure/v1alpha1"
	"github.com/slipwayhq/slipway/test/testkit/apiserver"
)

// watches counts the watches that are open, by resource.
func watches(ctx context.Context, server *apiserver.Server) (map[string]int, error) {
	c, err := discovery.NewDiscoveryClientForConfig(server.Config)
	if err != nil {
		return nil, err
	}
	text, err := c.RESTClient().Get().AbsPath("/metrics").DoRaw(ctx)
	if err != nil {
		return nil, err
	}
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(strings.NewReader(string(text)))
	if err != nil {
		return nil, err
	}
	out := map[string]int{}
	for _, m := range families["apiserver_longrunning_requests"].GetMetric() {
		labels := map[string]string{}
		for _, l := range m.Label {
			labels[l.GetName()] = l.GetValue()
		}
		if labels["verb"] == "WATCH" {
			out[labels["resource"]] += int(m.GetGauge().GetValue())
		}
	}
	return out, nil
}

// What our own controllers and the core both follow is watched once: each watch more makes the API server decode and encode
// each change once more.
func TestEachKindIsWatchedOnce(t *testing.T) {
	server := apiserver.Start(t, apiserver.Options{})
	startProcess(t, server)
	c := newClient(t, server)
	createFleet(t, c, "default")
	eventually(t, "the infrastructure of a Machine is handed over to it", func() error {
		list := &infrav1.LocalMachineList{}
		if err := c.List(t.Context(), list, client.InNamespace("default")); err != nil {
			return err
		}
		for _, m := range list.Items {
			if owner := metav1.GetControllerOf(&m); owner != nil && owner.Kind == "Machine" {
				return nil
			}
		}
		return fmt.Errorf("%d LocalMachines, none of a Machine", len(list.Items))
	})
	all, err := watches(t.Context(), server)
	must(t, err)
	want := map[string]int{"localmachines": 1, "localclusters": 1, "kubeadmconfigs": 1, "hostedcontrolplanes": 1}
	have := map[string]int{}
	for resource := range want {
		have[resource] = all[resource]
	}
	if diff := cmp.Diff(want, have); diff != "" {
		t.Errorf("open watches: %s", diff)
	}
}
