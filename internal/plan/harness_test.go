package plan

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/yaml"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	addonsv1 "sigs.k8s.io/cluster-api/api/addons/v1beta2"
	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	runtimev1 "sigs.k8s.io/cluster-api/api/runtime/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"

	hostedv1 "github.com/slipwayhq/slipway/api/controlplane/v1alpha1"
	infrav1 "github.com/slipwayhq/slipway/api/infrastructure/v1alpha1"
	"github.com/slipwayhq/slipway/internal/admission"
	"github.com/slipwayhq/slipway/internal/controllers/cluster"
	"github.com/slipwayhq/slipway/internal/controllers/clusterclass"
	"github.com/slipwayhq/slipway/internal/controllers/machine"
	"github.com/slipwayhq/slipway/internal/controllers/machinedeployment"
	"github.com/slipwayhq/slipway/internal/controllers/machinehealthcheck"
	"github.com/slipwayhq/slipway/internal/controllers/machinepool"
	"github.com/slipwayhq/slipway/internal/controllers/machineset"
	"github.com/slipwayhq/slipway/internal/controllers/topology"
	"github.com/slipwayhq/slipway/internal/hook"
	"github.com/slipwayhq/slipway/internal/manager/crds"
	"github.com/slipwayhq/slipway/internal/manager/webhook"
	"github.com/slipwayhq/slipway/internal/plan/memory"
	"github.com/slipwayhq/slipway/internal/policy"
	"github.com/slipwayhq/slipway/internal/reconciler"
	"github.com/slipwayhq/slipway/internal/workload"
)

func TestMain(m *testing.M) {
	ctrllog.SetLogger(logr.Discard())
	os.Exit(m.Run())
}

var began = time.Date(2026, 5, 6, 7, 8, 9, 0, time.UTC)

func scheme(t testing.TB) *runtime.Scheme {
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		clientgoscheme.AddToScheme, clusterv1.AddToScheme, addonsv1.AddToScheme, runtimev1.AddToScheme, bootstrapv1.AddToScheme, infrav1.AddToScheme, hostedv1.AddToScheme,
	} {
		if err := add(s); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

func controllers(s reconciler.Setup, w workload.Workloads, extensions hook.Client) error {
	allowed := policy.Default()
	return errors.Join(cluster.Add(s, w, cluster.Settings{DeleteHook: true}), machine.Add(s, w, nil, machine.Settings{}), machinehealthcheck.Add(s, w),
		machinedeployment.Add(s, nil, machinedeployment.Settings{Policy: allowed}), machineset.Add(s, w, machineset.Settings{Policy: allowed}), machinepool.Add(s, w, machinepool.Settings{Policy: allowed}),
		clusterclass.Add(s, extensions), topology.Add(s, extensions))
}

func options(t testing.TB) Options {
	return Options{Scheme: scheme(t), Controllers: controllers, Now: began, Admission: func(live client.Reader) memory.Admission {
		return webhook.NewInProcessAdmission(webhook.Options{Gates: admission.Gates{ClusterTopology: true, RuntimeSDK: true}, Policy: policy.Default(), Live: live})
	}}
}

// kinds are those of this build; their schemas are compiled once for all tests.
var kinds = sync.OnceValues(func() (*memory.Kinds, error) {
	all, err := crds.All()
	return kindsOf(all), err
})

// snapshot is a management cluster with the CRDs of this build and some objects.
func snapshot(t testing.TB, objects ...*unstructured.Unstructured) Snapshot {
	all, err := kinds()
	if err != nil {
		t.Fatal(err)
	}
	return Snapshot{Kinds: all, Objects: objects}
}

func read(t testing.TB, text string) []*unstructured.Unstructured {
	t.Helper()
	var out []*unstructured.Unstructured
	d := yaml.NewYAMLOrJSONDecoder(bytes.NewBufferString(text), 4096)
	for {
		u := &unstructured.Unstructured{}
		raw := runtime.RawExtension{}
		if err := d.Decode(&raw); errors.Is(err, io.EOF) {
			return out
		} else if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(raw.Raw, &u.Object); err != nil {
			t.Fatal(err)
		}
		if len(u.Object) > 0 {
			out = append(out, u)
		}
	}
}

// run returns the plan of a change, and what there is then.
func run(t testing.TB, s Snapshot, c Change) (*Plan, Snapshot) {
	t.Helper()
	p, after, err := Run(context.Background(), options(t), s, c)
	if err != nil {
		t.Fatal(err)
	}
	return p, after
}
