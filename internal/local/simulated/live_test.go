package simulated_test

import (
	"context"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/yaml"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	addonsv1 "sigs.k8s.io/cluster-api/api/addons/v1beta2"
	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlconfig "sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	hostedv1 "github.com/slipwayhq/slipway/api/controlplane/v1alpha1"
	infrav1 "github.com/slipwayhq/slipway/api/infrastructure/v1alpha1"
	"github.com/slipwayhq/slipway/internal/condition"
	"github.com/slipwayhq/slipway/internal/controllers/cluster"
	"github.com/slipwayhq/slipway/internal/controllers/machine"
	"github.com/slipwayhq/slipway/internal/controllers/machinepool"
	"github.com/slipwayhq/slipway/internal/hosted"
	"github.com/slipwayhq/slipway/internal/hosted/backend"
	hostedsimulated "github.com/slipwayhq/slipway/internal/hosted/simulated"
	"github.com/slipwayhq/slipway/internal/kube"
	"github.com/slipwayhq/slipway/internal/kubeadm/bootstrap"
	"github.com/slipwayhq/slipway/internal/local"
	"github.com/slipwayhq/slipway/internal/policy"
	"github.com/slipwayhq/slipway/internal/reconciler"
	"github.com/slipwayhq/slipway/internal/simulated"
	"github.com/slipwayhq/slipway/internal/workload"
	"github.com/slipwayhq/slipway/test/testkit/apiserver"
)

// patience is how long a busy machine may take for one step.
const patience = 4 * time.Minute

// manifest is a cluster with a pool of two.
const manifest = `
apiVersion: cluster.x-k8s.io/v1beta2
kind: Cluster
metadata: {name: c, namespace: default}
spec:
  clusterNetwork: {pods: {cidrBlocks: [10.244.0.0/16]}, services: {cidrBlocks: [10.96.0.0/16]}}
  controlPlaneRef: {apiGroup: controlplane.slipway.dev, kind: HostedControlPlane, name: c}
  infrastructureRef: {apiGroup: infrastructure.slipway.dev, kind: LocalCluster, name: c}
---
apiVersion: infrastructure.slipway.dev/v1alpha1
kind: LocalCluster
metadata: {name: c, namespace: default}
spec: {backend: {simulated: {}}}
---
apiVersion: controlplane.slipway.dev/v1alpha1
kind: HostedControlPlane
metadata: {name: c, namespace: default}
spec: {backend: {simulated: {}}, version: v1.36.3}
---
apiVersion: cluster.x-k8s.io/v1beta2
kind: MachinePool
metadata: {name: pool, namespace: default}
spec:
  clusterName: c
  replicas: 2
  template:
    spec:
      bootstrap: {configRef: {apiGroup: bootstrap.cluster.x-k8s.io, kind: KubeadmConfig, name: pool}}
      clusterName: c
      infrastructureRef: {apiGroup: infrastructure.slipway.dev, kind: LocalMachinePool, name: pool}
      version: v1.36.3
---
apiVersion: bootstrap.cluster.x-k8s.io/v1beta2
kind: KubeadmConfig
metadata: {name: pool, namespace: default}
spec: {format: cloud-config}
---
apiVersion: infrastructure.slipway.dev/v1alpha1
kind: LocalMachinePool
metadata: {name: pool, namespace: default}
spec: {template: {backend: {simulated: {startupDelay: 10ms, jitter: 10ms}}}}
`

type live struct {
	t *testing.T
	client.Client
	config *rest.Config
	dir    string
}

func newScheme(t *testing.T) *runtime.Scheme {
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		clientgoscheme.AddToScheme, clusterv1.AddToScheme, addonsv1.AddToScheme, bootstrapv1.AddToScheme, infrav1.AddToScheme, hostedv1.AddToScheme,
	} {
		if err := add(s); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// run runs all controllers until the returned function is called.
func (l *live) run() (stop func()) {
	l.t.Helper()
	unique := true
	mgr, err := ctrl.NewManager(l.config, manager.Options{
		Scheme: newScheme(l.t), Metrics: server.Options{BindAddress: "0"}, HealthProbeBindAddress: "0",
		Cache:      cache.Options{DefaultTransform: kube.PruneManagedFields},
		Client:     client.Options{Cache: &client.CacheOptions{Unstructured: true, DisableFor: []client.Object{&corev1.Secret{}}}},
		Controller: ctrlconfig.Controller{SkipNameValidation: &unique},
	})
	l.must(err)
	ctx, cancel := context.WithCancel(context.Background())
	sim := simulated.New(ctx, simulated.Config{Dir: filepath.Join(l.dir, "simulated"), Log: logr.Discard()})
	clusters, err := workload.New(workload.Config{Management: mgr.GetClient()})
	l.must(err)
	setup := func(string) reconciler.Setup { return reconciler.Setup{Manager: mgr, Concurrency: 2} }
	for _, add := range []func() error{
		func() error { return clusters.SetupWithManager(mgr) },
		func() error { return cluster.Add(setup(""), clusters, cluster.Settings{}) },
		func() error { return machine.Add(setup(""), clusters, nil, machine.Settings{}) },
		func() error {
			return machinepool.Add(setup(""), clusters, machinepool.Settings{Policy: policy.Default()})
		},
		func() error { return bootstrap.Add(setup(""), clusters, bootstrap.Settings{}) },
		func() error {
			return hosted.Add(setup(""), hosted.Config{
				Backends: backend.Set{hostedv1.BackendSimulated: hostedsimulated.WithFaults(hostedsimulated.New(sim), sim)}, Workloads: clusters,
			})
		},
		func() error {
			return local.Add(setup, local.Config{Instance: "test", Docker: "unix:///nonexistent", Simulated: sim, Policy: policy.Default()})
		},
	} {
		l.must(add())
	}
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(ctx) }()
	return func() {
		cancel()
		if err := <-ended; err != nil {
			l.t.Errorf("the manager exited: %v", err)
		}
		<-sim.Ended()
	}
}

func (l *live) must(err error) {
	l.t.Helper()
	if err != nil {
		l.t.Fatal(err)
	}
}

// eventually polls until f says yes.
func (l *live) eventually(what string, f func() bool) {
	l.t.Helper()
	for deadline := time.Now().Add(patience); !f(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			l.t.Fatalf("still not: %s", what)
		}
	}
}

// get reads an object of the test by name.
func get[O client.Object](l *live, name string, o O) (O, error) {
	return o, l.Get(context.Background(), client.ObjectKey{Namespace: "default", Name: name}, o)
}

func (l *live) apply(text string) {
	l.t.Helper()
	documents := yaml.NewYAMLOrJSONDecoder(strings.NewReader(text), 4096)
	for {
		o := &unstructured.Unstructured{}
		if err := documents.Decode(&o.Object); err != nil {
			return // the end
		}
		l.must(l.Create(context.Background(), o))
	}
}

func (l *live) available() bool {
	c, err := get(l, "c", &clusterv1.Cluster{})
	return err == nil && condition.Set(c.Status.Conditions).IsTrue(clusterv1.AvailableCondition)
}

// workload is a client of the workload cluster, by its kubeconfig.
func (l *live) workload() client.Client {
	l.t.Helper()
	secret, err := get(l, "c-kubeconfig", &corev1.Secret{})
	l.must(err)
	config, err := clientcmd.RESTConfigFromKubeConfig(secret.Data["value"])
	l.must(err)
	c, err := client.New(config, client.Options{Scheme: newScheme(l.t)})
	l.must(err)
	return c
}

func (l *live) nodes(c client.Client, ready bool) int {
	var list corev1.NodeList
	if err := c.List(context.Background(), &list); err != nil {
		return -1
	}
	n := 0
	for _, node := range list.Items {
		for _, condition := range node.Status.Conditions {
			if condition.Type == corev1.NodeReady && (condition.Status == corev1.ConditionTrue) == ready {
				n++
			}
		}
	}
	return n
}

func (l *live) annotate(o client.Object, annotation, value string) {
	l.t.Helper()
	before := o.DeepCopyObject().(client.Object)
	annotations := map[string]string{}
	maps.Copy(annotations, o.GetAnnotations())
	annotations[annotation] = value
	o.SetAnnotations(annotations)
	l.must(l.Patch(context.Background(), o, client.MergeFrom(before)))
}

// A cluster that is simulated becomes Available, lives through a restart that loses what was written last, has faults
// on demand, and goes without leaving anything.
func TestLifeOfASimulatedCluster(t *testing.T) { // CP-02, CP-10, IC-04, IM-02, IM-05, IP2-03
	srv := apiserver.Start(t, apiserver.Options{Objects: apiserver.CRDs(t)})
	l := &live{t: t, config: srv.Config, dir: t.TempDir(), Client: srv.Client(t, newScheme(t))}
	ctrl.SetLogger(logr.Discard())
	stop := l.run()
	defer func() { stop() }()

	l.apply(manifest)
	l.eventually("the cluster is Available", l.available)
	workload := l.workload()
	if n := l.nodes(workload, true); n != 2 {
		t.Errorf("%d nodes are ready, want 2", n)
	}

	stop()
	file := filepath.Join(l.dir, "simulated", "default.c.state")
	if _, err := os.Stat(file); err != nil {
		t.Fatal(err)
	}
	l.must(os.Remove(file)) // as if it had been killed before anything was written
	stop = l.run()
	l.eventually("the nodes are created again", func() bool { return l.nodes(workload, true) == 2 })
	l.eventually("the cluster is Available", l.available)

	var machines infrav1.LocalMachineList
	l.must(l.List(context.Background(), &machines))
	l.annotate(&machines.Items[0], infrav1.NotReadyAfterAnnotation, "0s")
	l.eventually("a node is not ready", func() bool { return l.nodes(workload, false) == 1 })
	l.annotate(&machines.Items[0], infrav1.NotReadyAfterAnnotation, "none")
	l.eventually("all nodes are ready", func() bool { return l.nodes(workload, true) == 2 })

	plane, err := get(l, "c", &hostedv1.HostedControlPlane{})
	l.must(err)
	isReady := func() bool {
		p, err := get(l, "c", &hostedv1.HostedControlPlane{})
		return err == nil && condition.Set(p.Status.Conditions).IsTrue(hostedv1.AvailableCondition)
	}
	l.annotate(plane, hostedv1.APIDownAnnotation, "always")
	l.eventually("the API server is unreachable", func() bool { return !isReady() && l.nodes(workload, true) == -1 })
	l.annotate(plane, hostedv1.APIDownAnnotation, "none")
	l.eventually("the API server answers", func() bool { return isReady() && l.nodes(workload, true) == 2 })

	l.must(l.Delete(context.Background(), &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "c"}}))
	l.eventually("the cluster is gone", func() bool {
		_, err := get(l, "c", &clusterv1.Cluster{})
		return apierrors.IsNotFound(err)
	})
	if _, err := os.Stat(file); !os.IsNotExist(err) {
		t.Errorf("its state is left: %v", err)
	}
}
