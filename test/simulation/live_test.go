package simulation

import (
	"os"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	addonsv1 "sigs.k8s.io/cluster-api/api/addons/v1beta2"
	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlconfig "sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"k8s.io/utils/ptr"

	hostedv1 "github.com/slipwayhq/slipway/api/controlplane/v1alpha1"
	infrav1 "github.com/slipwayhq/slipway/api/infrastructure/v1alpha1"
	"github.com/slipwayhq/slipway/internal/condition"
	"github.com/slipwayhq/slipway/internal/controllers/cluster"
	"github.com/slipwayhq/slipway/internal/controllers/machine"
	"github.com/slipwayhq/slipway/internal/kube"
	"github.com/slipwayhq/slipway/internal/reconciler"
	"github.com/slipwayhq/slipway/internal/workload"
	"github.com/slipwayhq/slipway/test/testkit"
	"github.com/slipwayhq/slipway/test/testkit/apiserver"
)

// patience is how long a busy machine may take for one step.
const patience = 2 * time.Minute

// hold keeps an object from going until the test lets it.
const hold = "test.slipway.dev/hold"

type live struct {
	t *testing.T
	client.Client
	kubeconfig []byte
}

func newScheme(t *testing.T) *runtime.Scheme {
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		clientgoscheme.AddToScheme, apiextensionsv1.AddToScheme, clusterv1.AddToScheme, addonsv1.AddToScheme, bootstrapv1.AddToScheme, infrav1.AddToScheme, hostedv1.AddToScheme,
	} {
		if err := add(s); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

func start(t *testing.T) live {
	t.Helper()
	installed := append(apiserver.CRDs(t, "Cluster", "ClusterResourceSetBinding", "ClusterClass", "Machine", "MachinePool", "MachineSet", "MachineDeployment", "KubeadmConfig",
		"LocalCluster", "LocalMachine", "HostedControlPlane"), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "ns"}})
	srv := apiserver.Start(t, apiserver.Options{Objects: installed})
	mgr, err := ctrl.NewManager(srv.Config, manager.Options{
		Scheme: newScheme(t), Metrics: server.Options{BindAddress: "0"}, HealthProbeBindAddress: "0", Cache: cache.Options{DefaultTransform: kube.PruneManagedFields},
		Client:     client.Options{Cache: &client.CacheOptions{Unstructured: true, DisableFor: []client.Object{&corev1.Secret{}}}},
		Controller: ctrlconfig.Controller{SkipNameValidation: new(true)}, // one process, several managers
	})
	if err != nil {
		t.Fatal(err)
	}
	clusters, err := workload.New(workload.Config{Management: mgr.GetClient()})
	if err != nil {
		t.Fatal(err)
	}
	setup := reconciler.Setup{Manager: mgr, Concurrency: 2}
	for _, add := range []func() error{
		func() error { return clusters.SetupWithManager(mgr) },
		func() error { return cluster.Add(setup, clusters, cluster.Settings{}) },
		func() error { return machine.Add(setup, clusters, nil, machine.Settings{}) },
	} {
		if err := add(); err != nil {
			t.Fatal(err)
		}
	}
	testkit.RunBackground(t, mgr.Start)
	l := live{t: t, Client: srv.Client(t, newScheme(t))}
	l.kubeconfig, err = os.ReadFile(srv.Kubeconfig)
	l.must(err)
	return l
}

func (l live) must(err error) {
	l.t.Helper()
	if err != nil {
		l.t.Fatal(err)
	}
}

// eventually polls until f says yes of an object that was just read.
func (l live) eventually(what string, o client.Object, f func() bool) {
	l.t.Helper()
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); {
		err := l.Get(l.t.Context(), client.ObjectKeyFromObject(o), o)
		if err == nil && f() {
			return
		}
		if err != nil && !apierrors.IsNotFound(err) {
			l.t.Fatal(err)
		}
		select {
		case <-l.t.Context().Done():
			l.t.Fatal(l.t.Context().Err())
		case <-time.After(20 * time.Millisecond):
		}
	}
	l.t.Fatalf("%s: %+v", what, o)
}

// gone waits until an object does not exist.
func (l live) gone(o client.Object) {
	l.t.Helper()
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); {
		if err := l.Get(l.t.Context(), client.ObjectKeyFromObject(o), o); apierrors.IsNotFound(err) {
			return
		}
		select {
		case <-l.t.Context().Done():
			l.t.Fatal(l.t.Context().Err())
		case <-time.After(20 * time.Millisecond):
		}
	}
	l.t.Fatalf("still exists: %+v", o)
}

// change patches an object as it is now, or its status.
func change[O client.Object](l live, o O, f func(O)) {
	l.t.Helper()
	l.must(l.Get(l.t.Context(), client.ObjectKeyFromObject(o), o))
	before := o.DeepCopyObject().(client.Object)
	f(o)
	after := o.DeepCopyObject().(client.Object)
	l.must(l.Patch(l.t.Context(), o, client.MergeFrom(before)))
	l.must(l.Status().Patch(l.t.Context(), after, client.MergeFrom(before)))
}

func meta(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: "ns", Name: name} }

func ready(conditionType string) []metav1.Condition {
	return []metav1.Condition{{Type: conditionType, Status: "True", Reason: "Fine", LastTransitionTime: metav1.Now()}}
}

// life is a Cluster with a Machine, from the first object to the last.
type life struct {
	live
	cluster *clusterv1.Cluster
	infra   *infrav1.LocalCluster
	plane   *hostedv1.HostedControlPlane
	machine *clusterv1.Machine
	host    *infrav1.LocalMachine
	config  *bootstrapv1.KubeadmConfig
	node    *corev1.Node
}

func TestLifeOfACluster(t *testing.T) { // CL-03 to CL-05, CL-08, CL-09, CL-12, MA-04 to MA-13, MD-14 to MD-16, RC-01, OR-01
	l := life{
		live:    start(t),
		cluster: &clusterv1.Cluster{ObjectMeta: meta("c")}, infra: &infrav1.LocalCluster{ObjectMeta: meta("c")},
		plane: &hostedv1.HostedControlPlane{ObjectMeta: meta("c")}, machine: &clusterv1.Machine{ObjectMeta: meta("m")},
		host: &infrav1.LocalMachine{ObjectMeta: meta("m")}, config: &bootstrapv1.KubeadmConfig{ObjectMeta: meta("m")},
		node: &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}},
	}
	l.createCluster()
	l.provisionCluster()
	l.createMachine()
	l.provisionMachine()
	l.followNode()
	l.deleteMachine()
	l.deleteCluster()
}

func (l life) createCluster() {
	l.cluster.Spec.InfrastructureRef = clusterv1.ContractVersionedObjectReference{APIGroup: infrav1.GroupVersion.Group, Kind: "LocalCluster", Name: "c"}
	l.cluster.Spec.ControlPlaneRef = clusterv1.ContractVersionedObjectReference{APIGroup: hostedv1.GroupVersion.Group, Kind: "HostedControlPlane", Name: "c"}
	l.must(l.Create(l.t.Context(), l.cluster))
	l.eventually("references to nothing are reported", l.cluster, func() bool {
		c := condition.Set(l.cluster.Status.Conditions).Get(clusterv1.ClusterInfrastructureReadyCondition)
		return len(l.cluster.Finalizers) == 1 && c != nil && c.Reason == clusterv1.ClusterInfrastructureDoesNotExistReason && l.cluster.Status.Phase == "Provisioning"
	})
	l.plane.Spec.Version = "v1.36.3"
	l.must(l.Create(l.t.Context(), l.infra))
	l.must(l.Create(l.t.Context(), l.plane))
	for _, o := range []client.Object{l.infra, l.plane} { // long before the timer of a missing reference
		l.eventually("is owned by the Cluster", o, func() bool {
			return len(o.GetOwnerReferences()) == 1 && o.GetOwnerReferences()[0].UID == l.cluster.UID && o.GetLabels()[clusterv1.ClusterNameLabel] == "c"
		})
	}
}

func (l life) provisionCluster() {
	change(l.live, l.infra, func(o *infrav1.LocalCluster) {
		o.Finalizers = []string{hold}
		o.Status.Initialization.Provisioned, o.Status.Conditions = ptr.To(true), ready("Ready")
	})
	l.eventually("infrastructure is provisioned", l.cluster, func() bool {
		return ptrTrue(l.cluster.Status.Initialization.InfrastructureProvisioned)
	})
	change(l.live, l.plane, func(o *hostedv1.HostedControlPlane) {
		o.Finalizers = []string{hold}
		o.Spec.ControlPlaneEndpoint = clusterv1.APIEndpoint{Host: "10.0.0.1", Port: 6443}
		o.Status.Initialization.ControlPlaneInitialized, o.Status.ExternalManagedControlPlane = ptr.To(true), ptr.To(true)
		o.Status.Conditions = ready("Available")
	})
	l.eventually("endpoint is taken over", l.cluster, func() bool {
		return l.cluster.Spec.ControlPlaneEndpoint.Host == "10.0.0.1" && l.cluster.Status.Phase == "Provisioned"
	})
	l.must(l.Create(l.t.Context(), &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "c-kubeconfig", Labels: map[string]string{clusterv1.ClusterNameLabel: "c"}},
		Type:       clusterv1.ClusterSecretType, Data: map[string][]byte{"value": l.kubeconfig},
	}))
	l.eventually("the Cluster is available", l.cluster, func() bool {
		set := condition.Set(l.cluster.Status.Conditions)
		return set.IsTrue(clusterv1.ClusterRemoteConnectionProbeCondition) && set.IsTrue(clusterv1.ClusterAvailableCondition)
	})
}

func (l life) createMachine() {
	l.machine.Labels = map[string]string{"node-role.kubernetes.io/worker": "", "node.cluster.x-k8s.io/a": "1"}
	l.machine.Spec = clusterv1.MachineSpec{
		ClusterName:       "c",
		Bootstrap:         clusterv1.Bootstrap{ConfigRef: clusterv1.ContractVersionedObjectReference{APIGroup: bootstrapv1.GroupVersion.Group, Kind: "KubeadmConfig", Name: "m"}},
		InfrastructureRef: clusterv1.ContractVersionedObjectReference{APIGroup: infrav1.GroupVersion.Group, Kind: "LocalMachine", Name: "m"},
	}
	l.must(l.Create(l.t.Context(), l.config))
	l.must(l.Create(l.t.Context(), l.host))
	l.must(l.Create(l.t.Context(), l.machine))
	l.eventually("the Machine belongs to the Cluster", l.machine, func() bool {
		return len(l.machine.OwnerReferences) == 1 && l.machine.OwnerReferences[0].Kind == "Cluster" && l.machine.Labels[clusterv1.ClusterNameLabel] == "c"
	})
	for _, o := range []client.Object{l.config, l.host} {
		l.eventually("is controlled by the Machine", o, func() bool {
			owner := metav1.GetControllerOf(o)
			return owner != nil && owner.UID == l.machine.UID
		})
	}
}

func (l life) provisionMachine() {
	change(l.live, l.config, func(o *bootstrapv1.KubeadmConfig) {
		o.Finalizers = []string{hold}
		o.Status.DataSecretName, o.Status.Initialization.DataSecretCreated = "m", ptr.To(true)
	})
	l.eventually("bootstrap data is taken over", l.machine, func() bool {
		return l.machine.Spec.Bootstrap.DataSecretName != nil && *l.machine.Spec.Bootstrap.DataSecretName == "m" && l.machine.Status.Phase == "Provisioning"
	})
	change(l.live, l.host, func(o *infrav1.LocalMachine) {
		o.Finalizers = []string{hold}
		o.Spec.ProviderID = "slipway:///slipway-ns-m-0123abcd"
		o.Status.Initialization.Provisioned, o.Status.Conditions = ptr.To(true), ready("Ready")
		o.Status.Addresses = clusterv1.MachineAddresses{{Type: clusterv1.MachineInternalIP, Address: "10.0.0.9"}}
	})
	l.eventually("infrastructure is taken over", l.machine, func() bool {
		return l.machine.Spec.ProviderID == "slipway:///slipway-ns-m-0123abcd" && len(l.machine.Status.Addresses) == 1 && l.machine.Status.Phase == "Provisioned"
	})
	l.node.Spec = corev1.NodeSpec{ProviderID: "slipway:///slipway-ns-m-0123abcd", Taints: []corev1.Taint{clusterv1.NodeUninitializedTaint}}
	l.must(l.Create(l.t.Context(), l.node))
	l.eventually("the Node is synced", l.node, func() bool {
		return l.node.Annotations[clusterv1.MachineAnnotation] == "m" && l.node.Labels["node.cluster.x-k8s.io/a"] == "1" &&
			!slices.ContainsFunc(l.node.Spec.Taints, func(t corev1.Taint) bool { return t.MatchTaint(&clusterv1.NodeUninitializedTaint) })
	})
	l.eventually("the Machine has a Node", l.machine, func() bool {
		return l.machine.Status.NodeRef.Name == "n" && l.machine.Status.Phase == "Running"
	})
}

// followNode changes the Node and the Machine, and sees the other follow.
func (l life) followNode() {
	change(l.live, l.node, func(n *corev1.Node) {
		for _, t := range []corev1.NodeConditionType{corev1.NodeMemoryPressure, corev1.NodeDiskPressure, corev1.NodePIDPressure} {
			n.Status.Conditions = append(n.Status.Conditions, corev1.NodeCondition{Type: t, Status: "False"})
		}
		n.Status.Conditions = append(n.Status.Conditions, corev1.NodeCondition{Type: corev1.NodeReady, Status: "True"})
	})
	l.eventually("the Machine is ready", l.machine, func() bool {
		set := condition.Set(l.machine.Status.Conditions)
		return set.IsTrue(clusterv1.MachineNodeHealthyCondition) && set.IsTrue(clusterv1.MachineReadyCondition) && set.IsTrue(clusterv1.MachineAvailableCondition)
	})
	l.eventually("the Cluster counts it", l.cluster, func() bool {
		w := l.cluster.Status.Workers
		return w != nil && *w.Replicas == 1 && *w.ReadyReplicas == 1 && *w.AvailableReplicas == 1
	})
	change(l.live, l.machine, func(m *clusterv1.Machine) {
		delete(m.Labels, "node.cluster.x-k8s.io/a")
		m.Labels["node.cluster.x-k8s.io/b"] = "2"
	})
	l.eventually("labels follow", l.node, func() bool {
		_, old := l.node.Labels["node.cluster.x-k8s.io/a"]
		return !old && l.node.Labels["node.cluster.x-k8s.io/b"] == "2"
	})
}

func (l life) deleteMachine() {
	l.must(l.Delete(l.t.Context(), l.machine))
	l.deleting(l.machine, clusterv1.MachineDeletingWaitingForInfrastructureDeletionReason)
	l.release(l.host)
	l.deleting(l.machine, clusterv1.MachineDeletingWaitingForBootstrapDeletionReason)
	l.release(l.config)
	l.gone(l.node)
	l.gone(l.machine)
}

func (l life) deleteCluster() {
	l.must(l.Delete(l.t.Context(), l.cluster))
	l.deleting(l.cluster, clusterv1.ClusterDeletingWaitingForControlPlaneDeletionReason)
	l.must(l.Get(l.t.Context(), client.ObjectKeyFromObject(l.infra), l.infra))
	if !l.infra.DeletionTimestamp.IsZero() {
		l.t.Error("infrastructure is deleted before the control plane is gone")
	}
	l.release(l.plane)
	l.deleting(l.cluster, clusterv1.ClusterDeletingWaitingForInfrastructureDeletionReason)
	l.release(l.infra)
	l.gone(l.cluster)
}

// deleting waits until the Deleting condition has a reason.
func (l life) deleting(o reconciler.Object, reason string) {
	l.t.Helper()
	l.eventually(reason, o, func() bool {
		c := condition.Set(o.GetConditions()).Get(clusterv1.DeletingCondition)
		return c != nil && c.Status == metav1.ConditionTrue && c.Reason == reason
	})
}

// release waits until an object is being deleted, and lets it go.
func (l life) release(o client.Object) {
	l.t.Helper()
	l.eventually("is being deleted", o, func() bool { return !o.GetDeletionTimestamp().IsZero() })
	before := o.DeepCopyObject().(client.Object)
	controllerutil.RemoveFinalizer(o, hold)
	l.must(l.Patch(l.t.Context(), o, client.MergeFrom(before)))
	l.gone(o)
}

func ptrTrue(b *bool) bool { return b != nil && *b }
