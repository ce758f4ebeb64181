package machinedeployment

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/ptr"
	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	infrav1 "github.com/slipwayhq/slipway/api/infrastructure/v1alpha1"
	"github.com/slipwayhq/slipway/internal/condition"
	"github.com/slipwayhq/slipway/internal/kube"
	"github.com/slipwayhq/slipway/internal/manager/crds"
	"github.com/slipwayhq/slipway/internal/reconciler"
	"github.com/slipwayhq/slipway/internal/reconciler/ownership"
	"github.com/slipwayhq/slipway/test/testkit/apiserver"
)

// patience is how long a busy machine may take for one step.
const patience = 2 * time.Minute

// live is an API server with the controller; the test plays the MachineSets' controller.
type live struct {
	t *testing.T
	client.Client
	// cached is what the controller reads.
	cached client.Reader
	d      *clusterv1.MachineDeployment
	begun  *ownership.CreatedOwners
}

func startLive(t *testing.T) live {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		clientgoscheme.AddToScheme, apiextensionsv1.AddToScheme, clusterv1.AddToScheme, bootstrapv1.AddToScheme, infrav1.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	all, err := crds.All()
	if err != nil {
		t.Fatal(err)
	}
	objects := []client.Object{&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "ns"}}}
	for _, crd := range all {
		if slices.Contains([]string{"Cluster", "Machine", "MachineSet", "MachineDeployment", "KubeadmConfigTemplate", "LocalMachineTemplate"}, crd.Spec.Names.Kind) {
			objects = append(objects, crd)
		}
	}
	srv := apiserver.Start(t, apiserver.Options{Objects: objects})
	mgr, err := ctrl.NewManager(srv.Config, manager.Options{
		Scheme: scheme, Metrics: server.Options{BindAddress: "0"}, HealthProbeBindAddress: "0", Controller: config.Controller{SkipNameValidation: new(true)}, // several tests in one process
		Cache:  cache.Options{DefaultTransform: kube.PruneManagedFields},
		Client: client.Options{Cache: &client.CacheOptions{Unstructured: true}},
	})
	if err != nil {
		t.Fatal(err)
	}
	begun := &ownership.CreatedOwners{}
	if err := Add(reconciler.Setup{Manager: mgr, Concurrency: 2, CreatedOwners: begun}, nil, Settings{}); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Errorf("the manager exited: %v", err)
		}
	})
	c, err := client.New(srv.Config, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	return live{t: t, begun: begun, Client: c, cached: mgr.GetClient(), d: &clusterv1.MachineDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "md"}}}
}

func (l live) must(err error) {
	l.t.Helper()
	if err != nil {
		l.t.Fatal(err)
	}
}

// eventually plays the MachineSets' controller until the deployment is as said.
func (l live) eventually(what string, f func() bool) {
	l.t.Helper()
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); {
		l.play()
		l.must(l.Get(l.t.Context(), client.ObjectKeyFromObject(l.d), l.d))
		if f() {
			return
		}
		select {
		case <-l.t.Context().Done():
			l.t.Fatal(l.t.Context().Err())
		case <-time.After(20 * time.Millisecond):
		}
	}
	l.t.Fatalf("%s: %+v\n%+v", what, l.d, l.sets())
}

func (l live) sets() []clusterv1.MachineSet {
	list := &clusterv1.MachineSetList{}
	l.must(l.List(l.t.Context(), list, client.InNamespace("ns")))
	return list.Items
}

// play gives each MachineSet as many available Machines as it wants, never more than it was told. Like the controller that it stands
// for, it writes no status before the cache that both share shows the Machines: the deployment is woken by the status alone.
func (l live) play() {
	for _, set := range l.sets() {
		list := &clusterv1.MachineList{}
		l.must(l.List(l.t.Context(), list, client.InNamespace("ns"), client.MatchingLabels{clusterv1.MachineSetNameLabel: set.Name}))
		want := int(replicasOf(&set))
		if !set.DeletionTimestamp.IsZero() {
			want = 0
		}
		if set.Annotations[clusterv1.DisableMachineCreateAnnotation] == "true" {
			want = min(want, len(list.Items))
		}
		for n := len(list.Items); n < want; n++ {
			l.createMachine(&set)
		}
		for n := len(list.Items); n > want; n-- {
			l.must(l.Delete(l.t.Context(), &list.Items[n-1]))
		}
		if !l.shown(&set, want) {
			continue // the next play comes back to it
		}
		before := set.DeepCopy()
		if !set.DeletionTimestamp.IsZero() {
			controllerutil.RemoveFinalizer(&set, clusterv1.MachineSetFinalizer)
			l.must(client.IgnoreNotFound(l.Patch(l.t.Context(), &set, client.MergeFrom(before))))
			continue
		}
		set.Status.Replicas, set.Status.AvailableReplicas, set.Status.ObservedGeneration = new(int32(want)), new(int32(want)), set.Generation
		l.must(client.IgnoreNotFound(l.Status().Patch(l.t.Context(), &set, client.MergeFrom(before))))
	}
}

// createMachine makes an available Machine of the MachineSet.
func (l live) createMachine(set *clusterv1.MachineSet) {
	m := machine(set, "")
	m.GenerateName, m.CreationTimestamp = set.Name+"-", metav1.Time{}
	status := m.Status
	for i := range status.Conditions {
		status.Conditions[i].LastTransitionTime = metav1.Now()
	}
	l.must(l.Create(l.t.Context(), &m))
	m.Status = status
	m.Status.NodeRef.Name = m.Name
	l.must(l.Status().Update(l.t.Context(), &m))
}

// shown reports whether the cache has so many Machines of the MachineSet, all of them available.
func (l live) shown(set *clusterv1.MachineSet, want int) bool {
	list := &clusterv1.MachineList{}
	l.must(l.cached.List(l.t.Context(), list, client.InNamespace("ns"), client.MatchingLabels{clusterv1.MachineSetNameLabel: set.Name}))
	return len(list.Items) == want && !slices.ContainsFunc(list.Items, func(m clusterv1.Machine) bool {
		return !condition.Set(m.Status.Conditions).IsTrue(clusterv1.MachineAvailableCondition)
	})
}

// change is what a user does to the deployment.
func (l live) change(f func(*clusterv1.MachineDeployment)) {
	l.t.Helper()
	l.must(l.Get(l.t.Context(), client.ObjectKeyFromObject(l.d), l.d))
	before := l.d.DeepCopy()
	f(l.d)
	l.must(l.Patch(l.t.Context(), l.d, client.MergeFrom(before)))
}

// running reports whether the deployment runs so many replicas of a version in one MachineSet.
func (l live) running(replicas int32, version string) bool {
	sets := l.sets()
	s := l.d.Status
	return len(sets) == 1 && sets[0].Spec.Template.Spec.Version == version && replicasOf(&sets[0]) == replicas && s.Phase == "Running" &&
		ptr.Deref(s.Replicas, 0) == replicas && ptr.Deref(s.AvailableReplicas, 0) == replicas && s.ObservedGeneration == l.d.Generation &&
		condition.Set(s.Conditions).IsTrue(clusterv1.MachineDeploymentAvailableCondition) &&
		l.d.Annotations[clusterv1.RevisionAnnotation] == sets[0].Annotations[clusterv1.RevisionAnnotation]
}

// Over a real API server: fields, defaults, the scale subresource and garbage collection are as users have them.
func TestLifeOfADeployment(t *testing.T) { // DP-01, DP-02, DP-04, DP-05, DP-06, DP-17, DP-19, DP-20, OR-01
	l := startLive(t)
	l.create()
	l.scale()
	l.handDown()
	l.rollOut()
	l.restore()
	l.remove()
}

func (l live) create() {
	cluster := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "c"}}
	cluster.Spec.InfrastructureRef = clusterv1.ContractVersionedObjectReference{APIGroup: infrav1.GroupVersion.Group, Kind: "LocalCluster", Name: "c"}
	l.must(l.Create(l.t.Context(), cluster))
	user := raw()
	l.d.Spec, l.d.Annotations = user.Spec, user.Annotations
	l.d.Spec.Template.Spec.InfrastructureRef = clusterv1.ContractVersionedObjectReference{APIGroup: infrav1.GroupVersion.Group, Kind: "LocalMachineTemplate", Name: "i"}
	l.d.Spec.Template.Spec.Bootstrap.ConfigRef = clusterv1.ContractVersionedObjectReference{APIGroup: bootstrapv1.GroupVersion.Group, Kind: "KubeadmConfigTemplate", Name: "b"}
	l.must(l.Create(l.t.Context(), l.d))
	l.eventually("missing templates are reported", func() bool {
		c := condition.Set(l.d.Status.Conditions).Get(clusterv1.MachineDeploymentScalingUpCondition)
		return c != nil && c.Message == "Scaling up from 0 to 3 replicas is blocked because LocalMachineTemplate i does not exist" && len(l.sets()) == 0
	})
	infra := &infrav1.LocalMachineTemplate{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "i"}}
	infra.Spec.Template.Spec.Backend.Container = &infrav1.ContainerMachine{}
	l.must(l.Create(l.t.Context(), infra))
	bootstrap := &bootstrapv1.KubeadmConfigTemplate{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "b"}}
	bootstrap.Spec.Template.Spec.Verbosity = new(int32(1))
	l.must(l.Create(l.t.Context(), bootstrap))
	l.eventually("the first MachineSet has all replicas", func() bool { return l.running(3, "v1.36.3") })
	if !l.begun.Has(l.sets()[0].UID, time.Now()) {
		l.t.Error("OR-01: the MachineSet was created here, and its controller is not told")
	}
	for _, o := range []client.Object{infra, bootstrap, l.d} {
		l.must(l.Get(l.t.Context(), client.ObjectKeyFromObject(o), o))
		if refs := o.GetOwnerReferences(); len(refs) != 1 || refs[0].UID != cluster.UID || refs[0].Controller != nil {
			l.t.Errorf("DP-01, DP-19: owners of %T %v", o, refs)
		}
	}
	if l.d.Labels[clusterv1.ClusterNameLabel] != "c" || !controllerutil.ContainsFinalizer(l.d, clusterv1.MachineDeploymentFinalizer) {
		l.t.Errorf("DP-01: %+v", l.d.ObjectMeta)
	}
}

// scale does what kubectl scale does (DP-17).
func (l live) scale() {
	scale := &autoscalingv1.Scale{}
	l.must(l.SubResource("scale").Get(l.t.Context(), l.d, scale))
	if scale.Status.Replicas != 3 || scale.Status.Selector != l.d.Status.Selector {
		l.t.Errorf("DP-14: %+v", scale.Status)
	}
	scale.Spec.Replicas = -1
	if err := l.SubResource("scale").Update(l.t.Context(), l.d, client.WithSubResourceBody(scale)); !apierrors.IsInvalid(err) {
		l.t.Errorf("DP-17: scaled to -1: %v", err)
	}
	scale.Spec.Replicas = 5
	l.must(l.SubResource("scale").Update(l.t.Context(), l.d, client.WithSubResourceBody(scale)))
	l.eventually("it has five replicas", func() bool { return l.running(5, "v1.36.3") })
}

func (l live) handDown() {
	set := l.sets()[0]
	before := set.DeepCopy()
	set.Finalizers, set.Annotations["foreign"] = append(set.Finalizers, "test.slipway.dev/foreign"), "stays"
	l.must(l.Patch(l.t.Context(), &set, client.MergeFrom(before)))
	l.change(func(d *clusterv1.MachineDeployment) {
		delete(d.Annotations, "team")
		d.Annotations["new"] = "1"
		d.Spec.Template.Spec.Deletion.NodeDrainTimeoutSeconds = new(int32(60))
	})
	l.eventually("annotations and timeouts are handed down", func() bool {
		sets := l.sets()
		_, old := sets[0].Annotations["team"]
		return len(sets) == 1 && !old && sets[0].Annotations["new"] == "1" && sets[0].Annotations["foreign"] == "stays" && len(sets[0].Finalizers) == 2 &&
			ptr.Deref(sets[0].Spec.Template.Spec.Deletion.NodeDrainTimeoutSeconds, 0) == 60 && l.running(5, "v1.36.3")
	})
	generation, version := l.sets()[0].Generation, l.sets()[0].ResourceVersion
	l.change(func(d *clusterv1.MachineDeployment) { d.Labels["seen"] = "1" })
	l.change(func(d *clusterv1.MachineDeployment) { d.Spec.Replicas = new(int32(6)) })
	l.eventually("it has six replicas", func() bool { return l.running(6, "v1.36.3") })
	if after := l.sets()[0]; after.Generation != generation+1 || after.ResourceVersion == version {
		l.t.Errorf("one change of replicas made %d changes of the MachineSet", after.Generation-generation)
	}
	set = l.sets()[0]
	before = set.DeepCopy()
	controllerutil.RemoveFinalizer(&set, "test.slipway.dev/foreign")
	l.must(l.Patch(l.t.Context(), &set, client.MergeFrom(before)))
}

func (l live) rollOut() {
	l.change(func(d *clusterv1.MachineDeployment) { d.Spec.Template.Spec.Version = "v1.36.4" })
	l.eventually("the new version runs", func() bool { return l.running(6, "v1.36.4") })
	if l.d.Annotations[clusterv1.RevisionAnnotation] != "2" {
		l.t.Errorf("DP-04: %v", l.d.Annotations)
	}
	l.must(l.Delete(l.t.Context(), &l.sets()[0]))
	l.eventually("a MachineSet that a user deleted is made again", func() bool {
		return l.running(6, "v1.36.4") && l.d.Annotations[clusterv1.RevisionAnnotation] == "3"
	})
}

// restore takes the MachineSet from its owner.
func (l live) restore() {
	set := l.sets()[0]
	before := set.DeepCopy()
	set.OwnerReferences = nil
	l.must(l.Patch(l.t.Context(), &set, client.MergeFrom(before)))
	l.eventually("the MachineSet is adopted again", func() bool {
		sets := l.sets()
		return len(sets) == 1 && sets[0].Name == set.Name && controls(l.d, &sets[0]) && l.running(6, "v1.36.4")
	})
	l.must(l.Get(l.t.Context(), client.ObjectKeyFromObject(l.d), l.d))
	before2 := l.d.DeepCopy()
	l.d.OwnerReferences, l.d.Finalizers = nil, nil
	l.must(l.Patch(l.t.Context(), l.d, client.MergeFrom(before2)))
	l.eventually("owner and finalizer of the deployment come back", func() bool { return len(l.d.OwnerReferences) == 1 && len(l.d.Finalizers) == 1 })
}

func (l live) remove() {
	l.must(l.Delete(l.t.Context(), l.d))
	for deadline := time.Now().Add(patience); ; {
		l.play()
		err := l.Get(l.t.Context(), client.ObjectKeyFromObject(l.d), l.d)
		if apierrors.IsNotFound(err) {
			break
		}
		l.must(err)
		if time.Now().After(deadline) {
			l.t.Fatalf("not deleted: %+v", l.d)
		}
	}
	if sets := l.sets(); len(sets) != 0 {
		l.t.Errorf("MachineSets are left: %s", fmt.Sprint(sets))
	}
}
