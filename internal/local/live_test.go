package local

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	dockerclient "github.com/moby/moby/client"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	controlplanev1 "github.com/slipwayhq/slipway/api/controlplane/v1alpha1"
	infrav1 "github.com/slipwayhq/slipway/api/infrastructure/v1alpha1"
	"github.com/slipwayhq/slipway/internal/condition"
	"github.com/slipwayhq/slipway/internal/controlplane/hosttransfer"
	"github.com/slipwayhq/slipway/internal/local/backend"
	"github.com/slipwayhq/slipway/internal/local/container"
	"github.com/slipwayhq/slipway/internal/manager/crds"
	"github.com/slipwayhq/slipway/internal/policy"
	"github.com/slipwayhq/slipway/internal/reconciler"
	"github.com/slipwayhq/slipway/test/testimage"
	"github.com/slipwayhq/slipway/test/testkit/apiserver"
)

// patience is how long a busy machine may take for one step.
const patience = 2 * time.Minute

// live is the provider in a manager, with a real API server and the host's Docker. The core's controllers are played
// by the test.
type live struct {
	t *testing.T
	client.Client
	docker   *dockerclient.Client
	instance string
	image    string
}

func startLive(t *testing.T) live {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		clientgoscheme.AddToScheme, clusterv1.AddToScheme, infrav1.AddToScheme, controlplanev1.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	srv := apiserver.Start(t, apiserver.Options{Objects: kinds(t)})
	l := live{t: t, instance: fmt.Sprintf("slipway-test-%d-live", os.Getpid())}
	l.startDocker()
	mgr, err := ctrl.NewManager(srv.Config, ctrl.Options{Scheme: scheme, Metrics: server.Options{BindAddress: "0"}, HealthProbeBindAddress: "0", Logger: logr.Discard()})
	l.must(err)
	l.must(Add(func(string) reconciler.Setup { return reconciler.Setup{Manager: mgr, Concurrency: 2} }, Config{Instance: l.instance, Policy: allowing("slipway-test-node")}))
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Errorf("the manager exited: %v", err)
		}
	})
	l.Client, err = client.New(srv.Config, client.Options{Scheme: scheme})
	l.must(err)
	return l
}

// allowing is what holds by default, with another image.
func allowing(image string) policy.Configuration {
	p := policy.Default()
	p.Nodes.Images = append(p.Nodes.Images, image)
	return p
}

func kinds(t *testing.T) []client.Object {
	t.Helper()
	all, err := crds.All()
	if err != nil {
		t.Fatal(err)
	}
	objs := []client.Object{&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "ns"}}}
	for _, crd := range all {
		if g := crd.Spec.Group; g == infrav1.GroupVersion.Group || g == controlplanev1.GroupVersion.Group || g == clusterv1.GroupVersion.Group {
			objs = append(objs, crd)
		}
	}
	return objs
}

// startDocker makes the image, and sees to it that nothing of the test stays on the host.
func (l *live) startDocker() {
	var err error
	l.docker, err = dockerclient.New(dockerclient.FromEnv)
	l.must(err)
	l.image = "slipway-test-node:" + l.instance
	l.t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if err := container.RemoveInstance(ctx, hosttransfer.LabelsOnly(l.instance), func(int, int) {}); err != nil {
			l.t.Error(err)
		}
		if _, err := l.docker.ImageRemove(ctx, l.image, dockerclient.ImageRemoveOptions{Force: true}); err != nil {
			l.t.Error(err)
		}
	})
}

func (l live) must(err error) {
	l.t.Helper()
	if err != nil {
		l.t.Fatal(err)
	}
}

// await polls until the answer is empty; otherwise it says what is still wrong.
func (l live) await(what string, wrong func() string) {
	l.t.Helper()
	start := time.Now()
	for {
		problem := wrong()
		if problem == "" {
			l.t.Logf("%s: after %s", what, time.Since(start).Round(10*time.Millisecond))
			return
		}
		if time.Since(start) > patience {
			l.t.Fatalf("%s: not after %s: %s", what, patience, problem)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

func (l live) get(name string, o client.Object) { l.t.Helper(); l.must(l.find(name, o)) }

func (l live) find(name string, o client.Object) error {
	return l.Get(l.t.Context(), client.ObjectKey{Namespace: "ns", Name: name}, o)
}

func owner(kind string, o client.Object) []metav1.OwnerReference {
	yes := true
	return []metav1.OwnerReference{{APIVersion: clusterv1.GroupVersion.String(), Kind: kind, Name: o.GetName(), UID: o.GetUID(), Controller: &yes}}
}

// cluster makes a Cluster with its LocalCluster and waits until that is provisioned.
func (l live) cluster() {
	ctx := l.t.Context()
	c := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "c"}}
	c.Spec.InfrastructureRef = clusterv1.ContractVersionedObjectReference{APIGroup: infrav1.GroupVersion.Group, Kind: "LocalCluster", Name: "c"}
	l.must(l.Create(ctx, c))
	lc := &infrav1.LocalCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "c", OwnerReferences: owner("Cluster", c)}}
	l.must(l.Create(ctx, lc))
	l.await("the network is ready", func() string {
		l.get("c", lc)
		p := lc.Status.Initialization.Provisioned
		if p == nil || !*p || !condition.Set(lc.Status.Conditions).IsTrue(clusterv1.ReadyCondition) || lc.Spec.ControlPlaneEndpoint.Host != lc.Status.Network.Gateway {
			return fmt.Sprintf("%+v %+v", lc.Spec, lc.Status)
		}
		return ""
	})
	yes := true
	c.Status.Initialization.InfrastructureProvisioned = &yes
	l.must(l.Status().Update(ctx, c))
}

// pool makes a MachinePool with its LocalMachinePool and bootstrap data that succeed.
func (l live) pool(replicas int32) {
	ctx := l.t.Context()
	data := "#cloud-config\nruncmd:\n- mkdir -p /run/cluster-api && echo success > /run/cluster-api/bootstrap-success.complete\n"
	l.must(l.Create(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "boot"}, Data: map[string][]byte{"value": []byte(data)}}))
	name := "boot"
	mp := &clusterv1.MachinePool{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "mp"}}
	mp.Spec.ClusterName, mp.Spec.Replicas = "c", &replicas
	mp.Spec.Template.Spec.ClusterName, mp.Spec.Template.Spec.Bootstrap.DataSecretName, mp.Spec.Template.Spec.Version = "c", &name, testimage.Version
	mp.Spec.Template.Spec.InfrastructureRef = clusterv1.ContractVersionedObjectReference{APIGroup: infrav1.GroupVersion.Group, Kind: "LocalMachinePool", Name: "mp"}
	l.must(l.Create(ctx, mp))
	lmp := &infrav1.LocalMachinePool{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "mp", OwnerReferences: owner("MachinePool", mp),
		Labels: map[string]string{clusterv1.ClusterNameLabel: "c"}}}
	lmp.Spec.Template.Backend.Container = &infrav1.ContainerMachine{Image: l.image}
	l.must(l.Create(ctx, lmp))
}

// ids waits until the pool is ready with this many machines, and returns their provider IDs.
func (l live) ids(what string, replicas int, but ...string) []string {
	l.t.Helper()
	lmp := &infrav1.LocalMachinePool{}
	l.await(what, func() string {
		l.get("mp", lmp)
		ids := lmp.Spec.ProviderIDList
		unwanted := slices.ContainsFunc(but, func(id string) bool { return slices.Contains(ids, id) })
		if len(ids) != replicas || unwanted || lmp.Status.Replicas == nil || int(*lmp.Status.Replicas) != replicas ||
			lmp.Status.Ready == nil || !condition.Set(lmp.Status.Conditions).IsTrue(clusterv1.ReadyCondition) {
			return fmt.Sprintf("%+v %+v", lmp.Spec, lmp.Status)
		}
		return ""
	})
	return lmp.Spec.ProviderIDList
}

func (l live) scale(replicas int32) {
	l.t.Helper()
	mp := &clusterv1.MachinePool{}
	l.get("mp", mp)
	before := mp.DeepCopy()
	mp.Spec.Replicas = &replicas
	l.must(l.Patch(l.t.Context(), mp, client.MergeFrom(before)))
}

// left returns the names of what the instance has on the host.
func (l live) left() string {
	l.t.Helper()
	mine := dockerclient.Filters{}.Add("label", backend.LabelInstance+"="+l.instance)
	var out []string
	containers, err := l.docker.ContainerList(l.t.Context(), dockerclient.ContainerListOptions{All: true, Filters: mine})
	l.must(err)
	for _, c := range containers.Items {
		out = append(out, c.Names[0])
	}
	networks, err := l.docker.NetworkList(l.t.Context(), dockerclient.NetworkListOptions{Filters: mine})
	l.must(err)
	for _, n := range networks.Items {
		out = append(out, n.Name)
	}
	volumes, err := l.docker.VolumeList(l.t.Context(), dockerclient.VolumeListOptions{Filters: mine})
	l.must(err)
	for _, v := range volumes.Items {
		out = append(out, "volume "+v.Name)
	}
	return strings.Join(out, ", ")
}

// templates makes one of each kind, with defaults only, and waits for the capacity of a machine (IC-06, IM-08, IM-10,
// IP2-09).
func (l live) templates() {
	meta := metav1.ObjectMeta{Namespace: "ns", Name: "t"}
	labelled := clusterv1.ObjectMeta{Labels: map[string]string{"a": "b"}}
	m := &infrav1.LocalMachineTemplate{ObjectMeta: meta}
	m.Spec.Template.ObjectMeta = labelled
	c := &infrav1.LocalClusterTemplate{ObjectMeta: meta}
	c.Spec.Template.ObjectMeta = labelled
	p := &infrav1.LocalMachinePoolTemplate{ObjectMeta: meta}
	p.Spec.Template.ObjectMeta = labelled
	for _, o := range []client.Object{m, c, p} {
		l.must(l.Create(l.t.Context(), o))
	}
	l.await("a machine template knows what its machines offer", func() string {
		l.get("t", m)
		if m.Status.Capacity.Cpu().IsZero() || m.Status.Capacity.Memory().IsZero() || m.Status.NodeInfo.OperatingSystem != "linux" {
			return fmt.Sprintf("%+v", m.Status)
		}
		return ""
	})
}

// The wiring: from an image that is not there to a pool that heals itself, and to an empty host. IC-02, IC-04, IM-05,
// IM-06, IP2-05, IP2-06, IP2-08, MP-08, MP-16.
func TestLive(t *testing.T) {
	l := startLive(t)
	l.cluster()
	l.pool(2)
	l.await("the absent image is a condition", func() string {
		var list infrav1.LocalMachineList
		l.must(l.List(t.Context(), &list, client.InNamespace("ns")))
		for _, m := range list.Items {
			c := condition.Set(m.Status.Conditions).Get(infrav1.MachineProvisionedCondition)
			if c != nil && c.Reason == "ImageAbsent" && strings.Contains(c.Message, "slipway image build") {
				return ""
			}
		}
		return fmt.Sprintf("%+v", list.Items)
	})
	l.must(testimage.Import(t.Context(), l.docker, l.image))
	ids := l.ids("the image is there: two machines", 2)

	lost := strings.TrimPrefix(ids[0], backend.ProviderID(""))
	_, err := l.docker.ContainerRemove(t.Context(), lost, dockerclient.ContainerRemoveOptions{Force: true})
	l.must(err)
	l.await("the list is true again after docker rm -f", func() string {
		lmp := &infrav1.LocalMachinePool{}
		l.get("mp", lmp)
		if slices.Contains(lmp.Spec.ProviderIDList, ids[0]) {
			return fmt.Sprint(lmp.Spec.ProviderIDList)
		}
		return ""
	})
	l.ids("the lost machine is replaced", 2, ids[0])

	l.await("the pool knows what its machines offer", func() string {
		lmp := &infrav1.LocalMachinePool{}
		l.get("mp", lmp)
		if lmp.Status.Capacity.Cpu().IsZero() || lmp.Status.Capacity.Memory().IsZero() || lmp.Status.NodeInfo.OperatingSystem != "linux" {
			return fmt.Sprintf("%+v", lmp.Status)
		}
		return ""
	})
	l.scale(3)
	ids = l.ids("three machines", 3)
	var list infrav1.LocalMachineList
	l.must(l.List(t.Context(), &list, client.InNamespace("ns")))
	marked := &list.Items[1]
	before := marked.DeepCopy()
	metav1.SetMetaDataAnnotation(&marked.ObjectMeta, clusterv1.DeleteMachineAnnotation, "")
	l.must(l.Patch(t.Context(), marked, client.MergeFrom(before)))
	l.scale(2)
	ids = l.ids("the marked machine goes first", 2, marked.Spec.ProviderID)

	victim := &infrav1.LocalMachine{}
	for _, m := range list.Items {
		if m.Spec.ProviderID == ids[0] {
			victim = &m
		}
	}
	l.must(l.Delete(t.Context(), victim))
	l.ids("a machine that somebody deletes is replaced", 2, ids[0])

	l.templates()
	l.must(l.Delete(t.Context(), &infrav1.LocalCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "c"}}))
	l.must(l.Delete(t.Context(), &infrav1.LocalMachinePool{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "mp"}}))
	l.await("everything is gone", func() string {
		pool, cluster := l.find("mp", &infrav1.LocalMachinePool{}), l.find("c", &infrav1.LocalCluster{})
		if left := l.left(); left != "" || !apierrors.IsNotFound(pool) || !apierrors.IsNotFound(cluster) {
			return fmt.Sprint(left, pool, cluster)
		}
		return ""
	})
}
