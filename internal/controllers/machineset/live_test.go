package machineset

import (
	"context"
	"fmt"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/go-logr/logr/testr"
	"github.com/google/go-cmp/cmp"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	ctrlmanager "sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	infrav1 "github.com/slipwayhq/slipway/api/infrastructure/v1alpha1"
	"github.com/slipwayhq/slipway/internal/condition"
	"github.com/slipwayhq/slipway/internal/kube"
	"github.com/slipwayhq/slipway/internal/manager/crds"
	"github.com/slipwayhq/slipway/internal/reconciler"
	"github.com/slipwayhq/slipway/internal/workload"
	"github.com/slipwayhq/slipway/test/testkit/apiserver"
)

// patience is how long a busy machine may take for one step.
const patience = 20 * time.Second

// live is an API server, management and workload cluster at once, with the controller. The test plays everybody else.
type live struct {
	t *testing.T
	client.Client
	set *clusterv1.MachineSet
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
	installed, err := crds.All()
	if err != nil {
		t.Fatal(err)
	}
	objects := []client.Object{&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "ns"}}}
	for _, crd := range installed {
		if slices.Contains([]string{"Cluster", "Machine", "MachineSet", "MachineDeployment", "KubeadmConfig", "KubeadmConfigTemplate",
			"LocalMachine", "LocalMachineTemplate"}, crd.Spec.Names.Kind) {
			objects = append(objects, crd)
		}
	}
	srv := apiserver.Start(t, apiserver.Options{Objects: objects})
	mgr, err := ctrl.NewManager(srv.Config, ctrlmanager.Options{
		Logger: testr.New(t),                                                                                                                                 // a logger of the process would outlive the test that it writes to
		Scheme: scheme, Metrics: server.Options{BindAddress: "0"}, HealthProbeBindAddress: "0", Controller: config.Controller{SkipNameValidation: new(true)}, // several tests in one process
		Cache:  cache.Options{DefaultTransform: kube.PruneManagedFields},
		Client: client.Options{Cache: &client.CacheOptions{Unstructured: true, DisableFor: []client.Object{&corev1.Secret{}}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	clusters, err := workload.New(workload.Config{Management: mgr.GetClient()})
	if err != nil {
		t.Fatal(err)
	}
	for _, add := range []func() error{
		func() error { return clusters.SetupWithManager(mgr) },
		func() error { return Add(reconciler.Setup{Manager: mgr, Concurrency: 2}, clusters, Settings{}) },
	} {
		if err := add(); err != nil {
			t.Fatal(err)
		}
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
	l := live{t: t, Client: c, set: &clusterv1.MachineSet{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "ms"}}}
	kubeconfig, err := os.ReadFile(srv.Kubeconfig)
	l.must(err)
	l.createCluster(kubeconfig)
	return l
}

func (l live) must(err error) {
	l.t.Helper()
	if err != nil {
		l.t.Fatal(err)
	}
}

// createCluster makes a Cluster that is connected, and the templates.
func (l live) createCluster(kubeconfig []byte) {
	l.t.Helper()
	meta := func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: "ns", Name: name} }
	c := &clusterv1.Cluster{ObjectMeta: meta("c")}
	c.Spec.ControlPlaneEndpoint = clusterv1.APIEndpoint{Host: "localhost", Port: 1}
	l.must(l.Create(l.t.Context(), c))
	c.Status.Initialization = clusterv1.ClusterInitializationStatus{InfrastructureProvisioned: new(true), ControlPlaneInitialized: new(true)}
	l.must(l.Status().Update(l.t.Context(), c))
	l.must(l.Create(l.t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "c-kubeconfig",
		Labels: map[string]string{clusterv1.ClusterNameLabel: "c"}}, Type: clusterv1.ClusterSecretType, Data: map[string][]byte{"value": kubeconfig}}))
	bootstrap := &bootstrapv1.KubeadmConfigTemplate{ObjectMeta: meta("t")}
	bootstrap.Spec.Template.Spec.PreKubeadmCommands = []string{"true"}
	l.must(l.Create(l.t.Context(), bootstrap))
	infra := &infrav1.LocalMachineTemplate{ObjectMeta: meta("t")}
	infra.Spec.Template.ObjectMeta.Labels = map[string]string{"size": "big"}
	l.must(l.Create(l.t.Context(), infra))
}

// eventually polls until f says yes of the set as it is now.
func (l live) eventually(what string, f func() bool) {
	l.t.Helper()
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); {
		err := l.Get(l.t.Context(), client.ObjectKeyFromObject(l.set), l.set)
		l.must(client.IgnoreNotFound(err))
		if f() {
			return
		}
		select {
		case <-l.t.Context().Done():
			l.t.Fatal(l.t.Context().Err())
		case <-time.After(20 * time.Millisecond):
		}
	}
	l.t.Fatalf("%s: %+v\n%+v", what, l.set, l.machines())
}

func (l live) machines() []clusterv1.Machine {
	l.t.Helper()
	list := &clusterv1.MachineList{}
	l.must(l.List(l.t.Context(), list, client.InNamespace("ns")))
	return list.Items
}

// change patches the set as it is now.
func (l live) change(f func(*clusterv1.MachineSet)) {
	l.t.Helper()
	l.must(l.Get(l.t.Context(), client.ObjectKeyFromObject(l.set), l.set))
	before := l.set.DeepCopy()
	f(l.set)
	l.must(l.Patch(l.t.Context(), l.set, client.MergeFrom(before), client.FieldOwner("user")))
}

// managers are the names and operations of those who own fields of an object, without those of the test.
func managers(o client.Object) map[string]string {
	out := map[string]string{}
	for _, e := range o.GetManagedFields() {
		if e.Manager == manager || e.Manager == metadataManager {
			out[e.Manager] = string(e.Operation)
		}
	}
	return out
}

// TestLifeOverAnAPIServer goes through the life of a MachineSet.
func TestLifeOverAnAPIServer(t *testing.T) { // MS-01 to MS-05, MS-07 to MS-10, MS-19, MS-20, MS-24, MS-25, OR-01
	l := startLive(t)
	l.adoptsAndCreates()
	l.counts()
	l.propagates()
	l.scales()
	l.ends()
}

func (l live) adoptsAndCreates() {
	m := &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "orphan", Labels: map[string]string{"set": "x"}, Annotations: map[string]string{"mine": "1"}}}
	m.Spec = clusterv1.MachineSpec{ClusterName: "c", Version: "v1.36.3", Bootstrap: clusterv1.Bootstrap{DataSecretName: new("s")},
		InfrastructureRef: clusterv1.ContractVersionedObjectReference{APIGroup: infrav1.GroupVersion.Group, Kind: "LocalMachine", Name: "orphan"}}
	l.must(l.Create(l.t.Context(), m, client.FieldOwner("manager")))
	set := newSet()
	l.set.Spec = set.Spec
	l.set.Spec.Template.Spec.Bootstrap.ConfigRef = clusterv1.ContractVersionedObjectReference{APIGroup: bootstrapv1.GroupVersion.Group, Kind: "KubeadmConfigTemplate", Name: "t"}
	l.set.Spec.Template.Spec.InfrastructureRef = clusterv1.ContractVersionedObjectReference{APIGroup: infrav1.GroupVersion.Group, Kind: "LocalMachineTemplate", Name: "t"}
	l.must(l.Create(l.t.Context(), l.set))
	l.eventually("one adopted, one made", func() bool {
		return l.set.Status.Replicas != nil && *l.set.Status.Replicas == 2 && l.set.Status.ObservedGeneration == l.set.Generation
	})
	if len(l.machines()) != 2 || !slices.Equal(l.set.Finalizers, []string{clusterv1.MachineSetFinalizer}) || l.set.Labels[clusterv1.ClusterNameLabel] != "c" {
		l.t.Errorf("%d Machines, set %+v", len(l.machines()), l.set.ObjectMeta)
	}
	l.eventually("Machines are judged and the adopted one follows the template", func() bool {
		for _, m := range l.machines() {
			owner := metav1.GetControllerOf(&m)
			if owner == nil || owner.UID != l.set.UID || m.Annotations["note"] != "1" || !controllerutil.ContainsFinalizer(&m, clusterv1.MachineFinalizer) ||
				m.Labels[clusterv1.MachineSetNameLabel] != "ms" || m.Name != "orphan" && condition.Set(m.Status.Conditions).Get(clusterv1.MachineUpToDateCondition) == nil {
				return false
			}
		}
		return true
	})
	for _, m := range l.machines() {
		if got := managers(&m); !cmp.Equal(got, map[string]string{manager: "Apply"}) || m.Name == "orphan" && m.Annotations["mine"] != "1" {
			l.t.Errorf("Machine %s: managers %v, annotations %v", m.Name, got, m.Annotations)
		}
	}
	made := l.made()
	for _, o := range []client.Object{&infrav1.LocalMachine{}, &bootstrapv1.KubeadmConfig{}} {
		l.must(l.Get(l.t.Context(), client.ObjectKeyFromObject(made), o))
		if got := managers(o); !cmp.Equal(got, map[string]string{manager: "Apply"}) || o.GetAnnotations()[clusterv1.TemplateClonedFromNameAnnotation] != "t" ||
			metav1.GetControllerOf(o).UID != l.set.UID {
			l.t.Errorf("%T: managers %v, %+v", o, got, o.GetAnnotations())
		}
	}
	for _, o := range []client.Object{&infrav1.LocalMachineTemplate{}, &bootstrapv1.KubeadmConfigTemplate{}} {
		l.must(l.Get(l.t.Context(), client.ObjectKey{Namespace: "ns", Name: "t"}, o))
		if refs := o.GetOwnerReferences(); len(refs) != 1 || refs[0].Kind != "Cluster" {
			l.t.Errorf("%T: owners %v", o, refs)
		}
	}
}

// made is the Machine that the set made.
func (l live) made() *clusterv1.Machine {
	l.t.Helper()
	for _, m := range l.machines() {
		if m.Name != "orphan" {
			return &m
		}
	}
	l.t.Fatal("the set made no Machine")
	return nil
}

// counts plays the Machine controller, and sees the set count.
func (l live) counts() {
	for _, m := range l.machines() {
		m.Status.NodeRef.Name = m.Name
		for _, t := range []string{"Ready", "Available", "NodeReady", "NodeHealthy"} {
			m.Status.Conditions = append(m.Status.Conditions, metav1.Condition{Type: t, Status: "True", Reason: t, LastTransitionTime: metav1.Now()})
		}
		l.must(l.Status().Patch(l.t.Context(), &m, client.MergeFrom(&clusterv1.Machine{ObjectMeta: m.ObjectMeta})))
	}
	l.eventually("counts", func() bool {
		s := l.set.Status
		return s.ReadyReplicas != nil && *s.ReadyReplicas == 2 && *s.AvailableReplicas == 2 && s.Deprecated.V1Beta1.AvailableReplicas == 2 &&
			s.Deprecated.V1Beta1.FullyLabeledReplicas == 2 && len(s.Versions) == 1 && s.Versions[0].Replicas == 2 &&
			condition.Set(s.Conditions).IsTrue(clusterv1.MachineSetMachinesReadyCondition)
	})
}

// propagates changes metadata of the template, and sees Machine and clones follow: what is added, and what goes.
func (l live) propagates() {
	made := l.made()
	l.change(func(s *clusterv1.MachineSet) {
		s.Spec.Template.Labels["new"] = "1"
		s.Spec.Template.Annotations = map[string]string{"other": "2"}
		s.Spec.Template.Spec.Deletion.NodeDrainTimeoutSeconds = new(int32(5))
	})
	for _, o := range []client.Object{&clusterv1.Machine{}, &infrav1.LocalMachine{}, &bootstrapv1.KubeadmConfig{}} {
		l.eventually("metadata follows", func() bool {
			l.must(l.Get(l.t.Context(), client.ObjectKeyFromObject(made), o))
			_, old := o.GetAnnotations()["note"]
			return !old && o.GetAnnotations()["other"] == "2" && o.GetLabels()["new"] == "1"
		})
		want := map[string]string{manager: "Apply", metadataManager: "Apply"}
		if _, isMachine := o.(*clusterv1.Machine); isMachine {
			delete(want, metadataManager)
		} else if o.GetAnnotations()[clusterv1.TemplateClonedFromNameAnnotation] != "t" || len(o.GetOwnerReferences()) != 1 {
			l.t.Errorf("%T: %+v", o, o)
		}
		if got := managers(o); !cmp.Equal(got, want) {
			l.t.Errorf("%T: managers %v, want %v", o, got, want)
		}
	}
	infra := &infrav1.LocalMachine{}
	l.must(l.Get(l.t.Context(), client.ObjectKeyFromObject(made), infra))
	if infra.Labels["size"] != "big" {
		l.t.Errorf("the label that the template brought is gone: %v", infra.Labels)
	}
	l.must(l.Get(l.t.Context(), client.ObjectKeyFromObject(made), made))
	if *made.Spec.Deletion.NodeDrainTimeoutSeconds != 5 {
		l.t.Errorf("timeouts %+v", made.Spec.Deletion)
	}
	l.change(func(s *clusterv1.MachineSet) { delete(s.Spec.Template.Labels, "new") })
	l.eventually("a label goes again", func() bool {
		l.must(l.Get(l.t.Context(), client.ObjectKeyFromObject(made), infra))
		_, infraHas := infra.Labels["new"]
		_, machineHas := l.made().Labels["new"]
		return !infraHas && !machineHas
	})
}

// scales goes through the scale subresource, as kubectl scale does.
func (l live) scales() {
	scale := &autoscalingv1.Scale{}
	resize := func(n int32) {
		patch := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"spec":{"replicas":%d}}`, n))
		l.must(l.SubResource("scale").Patch(l.t.Context(), l.set.DeepCopy(), patch))
	}
	resize(60) // more than one action makes
	l.eventually("scaled up", func() bool { return *l.set.Status.Replicas == 60 })
	l.must(l.SubResource("scale").Get(l.t.Context(), l.set, scale))
	if scale.Status.Replicas != 60 || scale.Status.Selector != "set=x" || len(l.machines()) != 60 {
		l.t.Errorf("scale status %+v, %d Machines", scale.Status, len(l.machines()))
	}
	orphan := &clusterv1.Machine{}
	l.must(l.Get(l.t.Context(), client.ObjectKey{Namespace: "ns", Name: "orphan"}, orphan))
	before := orphan.DeepCopy()
	orphan.Annotations[clusterv1.DeleteMachineAnnotation] = "yes"
	l.must(l.Patch(l.t.Context(), orphan, client.MergeFrom(before)))
	resize(1)
	l.finishing("scaled down", func() bool { return *l.set.Status.Replicas == 1 })
	if left := l.machines(); len(left) != 1 || left[0].Name == "orphan" || !left[0].Status.NodeRef.IsDefined() {
		l.t.Errorf("left: %+v", left)
	}
}

// finishing plays the Machine controller, which ends deletions, until f says yes.
func (l live) finishing(what string, f func() bool) {
	l.t.Helper()
	l.eventually(what, func() bool {
		for _, m := range l.machines() {
			if !m.DeletionTimestamp.IsZero() {
				before := m.DeepCopy()
				m.Finalizers = nil
				l.must(client.IgnoreNotFound(l.Patch(l.t.Context(), &m, client.MergeFrom(before))))
			}
		}
		return f()
	})
}

func (l live) ends() {
	l.must(l.Delete(l.t.Context(), l.set))
	l.eventually("waits for its Machines", func() bool {
		c := condition.Set(l.set.Status.Conditions).Get(clusterv1.MachineSetDeletingCondition)
		return c != nil && c.Status == metav1.ConditionTrue && c.Message == "Deleting 1 Machine"
	})
	l.finishing("the set goes", func() bool {
		sets := &clusterv1.MachineSetList{}
		l.must(l.List(l.t.Context(), sets))
		return len(sets.Items) == 0
	})
	if left := l.machines(); len(left) != 0 {
		l.t.Errorf("left: %+v", left)
	}
}
