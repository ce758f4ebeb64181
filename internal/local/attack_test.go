package local

import (
	"context"
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	controlplanev1 "github.com/slipwayhq/slipway/api/controlplane/v1alpha1"
	infrav1 "github.com/slipwayhq/slipway/api/infrastructure/v1alpha1"
	"github.com/slipwayhq/slipway/internal/condition"
	"github.com/slipwayhq/slipway/internal/local/backend"
	"github.com/slipwayhq/slipway/internal/local/cluster"
	"github.com/slipwayhq/slipway/internal/local/machine"
	"github.com/slipwayhq/slipway/internal/local/machinepool"
	"github.com/slipwayhq/slipway/internal/policy"
	"github.com/slipwayhq/slipway/internal/reconciler"
	"github.com/slipwayhq/slipway/test/testhost"
	"github.com/slipwayhq/slipway/test/testkit/apiserver"
)

// Names on the host that are not the attacker's.
var (
	victimMachine = types.NamespacedName{Namespace: "team-b", Name: "db"}
	victimCluster = types.NamespacedName{Namespace: "team-b", Name: "c"}
	victim        = backend.MachineName(testhost.Instance, victimMachine)
	victimNet     = backend.NetworkName(testhost.Instance, victimCluster)
)

// still is a host on which nothing happens by itself.
type still struct{}

func (still) Watch(ctx context.Context, handle func(backend.Event)) error {
	handle(backend.Event{})
	<-ctx.Done()
	return nil
}

// attack is the controllers of the provider over a real API server and a host that records, and a person who may write
// every field of every object in the namespace team-a, status included, and nothing else.
type attack struct {
	live
	host *testhost.Host
}

// operator is what the operator of the test allows: the defaults, a folder for reading, and few nodes.
func operator() policy.Configuration {
	p := policy.Default()
	p.Nodes.Mounts = []policy.Mount{{Path: "/srv/shared"}}
	p.Maxima.Nodes.Namespace = 2
	return p
}

func startAttack(t *testing.T) attack {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		clientgoscheme.AddToScheme, clusterv1.AddToScheme, infrav1.AddToScheme, controlplanev1.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	alice := append(kinds(t),
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "team-a"}},
		&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "edits-everything"}, Rules: []rbacv1.PolicyRule{{
			APIGroups: []string{"", clusterv1.GroupVersion.Group, infrav1.GroupVersion.Group}, Resources: []string{"*"}, Verbs: []string{"*"},
		}}},
		&rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: "alice"},
			RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "edits-everything"},
			Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: "alice"}}})
	ctrl.SetLogger(logr.Discard())
	srv := apiserver.Start(t, apiserver.Options{Objects: alice})
	a := attack{live: live{t: t}, host: testhost.New()}
	a.host.AddMachine(testhost.Machine{Instance: testhost.Instance, Machine: backend.Machine{
		Name: victim, ID: "victim-id", State: backend.Running, Owner: backend.Owner{Object: victimMachine, UID: "b"}}})
	a.host.AddMachine(testhost.Machine{Machine: backend.Machine{Name: "ci-postgres", ID: "ci-id", State: backend.Running}})
	a.host.AddNetwork(testhost.Instance, backend.Owner{Cluster: "c", Object: victimCluster},
		backend.Network{Name: victimNet, ID: "victim-net", Subnet: netip.MustParsePrefix("172.20.0.0/18"), Gateway: netip.MustParseAddr("172.20.0.1")})
	a.host.AddUsedRange(backend.UsedRange{Range: netip.MustParsePrefix("172.28.0.0/16"), By: "a route of this host through wg0"})
	a.host.Link("/srv/shared/link", "/etc")
	a.host.RefuseMount("/srv/shared/docker.sock", "a socket")
	a.startControllers(srv.Config, scheme)
	as := rest.CopyConfig(srv.Config)
	as.Impersonate = rest.ImpersonationConfig{UserName: "alice"}
	var err error
	a.Client, err = client.New(as, client.Options{Scheme: scheme})
	a.must(err)
	return a
}

func (a attack) startControllers(access *rest.Config, scheme *runtime.Scheme) {
	mgr, err := ctrl.NewManager(access, ctrl.Options{Scheme: scheme, Metrics: server.Options{BindAddress: "0"}, HealthProbeBindAddress: "0", Logger: logr.Discard(),
		Controller: config.Controller{SkipNameValidation: new(true)}}) // another test of this process has controllers of these names
	a.must(err)
	hub := backend.NewBroadcaster(still{})
	setup := reconciler.Setup{Manager: mgr, Concurrency: 2}
	a.must(cluster.Add(setup, cluster.Config{Instance: testhost.Instance, Backends: a.host.Set(), Hub: hub, Policy: operator()}))
	a.must(machine.Add(setup, machine.Config{Instance: testhost.Instance, Backends: a.host.Set(), Hub: hub, Policy: operator()}))
	a.must(machinepool.Add(setup, backend.CapacityCalculator{Backends: a.host.Set(), Policy: operator()}))
	a.must(mgr.Add(hub))
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(ctx) }()
	a.t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			a.t.Errorf("the manager exited: %v", err)
		}
	})
}

// unharmed makes sure that the others' things are as they were, and that nothing was done to them.
func (a attack) unharmed() {
	a.t.Helper()
	for _, name := range []string{victim, victimNet, "ci-postgres"} {
		if !a.host.Exists(name) {
			a.t.Errorf("%s is gone", name)
		}
	}
	for _, line := range a.host.Log() {
		if strings.Contains(line, victim) || strings.Contains(line, "ci-postgres") || strings.Contains(line, "Delete "+victimNet) {
			a.t.Errorf("the host was told: %s", line)
		}
	}
	for name, m := range a.host.Machines() {
		if name != victim && m.Network == victimNet {
			a.t.Errorf("%s joined the network of another cluster", name)
		}
	}
}

func in(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: "team-a", Name: name} }

func (a attack) read(name string, o client.Object) error {
	return a.Get(a.t.Context(), client.ObjectKey{Namespace: "team-a", Name: name}, o)
}

// awaitReason waits until a condition has the reason.
func (a attack) awaitReason(name, conditionType, reason string, o interface {
	client.Object
	GetConditions() []metav1.Condition
}) string {
	a.t.Helper()
	message := ""
	a.await(name+" is "+reason, func() string {
		if err := a.read(name, o); err != nil {
			return err.Error()
		}
		c := condition.Set(o.GetConditions()).Get(conditionType)
		if c == nil || c.Reason != reason {
			return fmt.Sprintf("%+v", o.GetConditions())
		}
		message = c.Message
		return ""
	})
	return message
}

// cluster makes a Cluster that says that all is ready, and its LocalCluster.
func (a attack) cluster(name string, change func(*infrav1.LocalCluster)) *infrav1.LocalCluster {
	a.t.Helper()
	ctx := a.t.Context()
	c := &clusterv1.Cluster{ObjectMeta: in(name)}
	c.Spec.InfrastructureRef = clusterv1.ContractVersionedObjectReference{APIGroup: infrav1.GroupVersion.Group, Kind: "LocalCluster", Name: name}
	a.must(a.Create(ctx, c))
	yes := true
	c.Status.Initialization.InfrastructureProvisioned = &yes
	a.must(a.Status().Update(ctx, c))
	lc := &infrav1.LocalCluster{ObjectMeta: in(name)}
	lc.OwnerReferences = owner("Cluster", c)
	if change != nil {
		change(lc)
	}
	a.must(a.Create(ctx, lc))
	return lc
}

// machine makes a Machine with bootstrap data, and its LocalMachine.
func (a attack) machine(name, of string, change func(*infrav1.LocalMachine)) (*infrav1.LocalMachine, error) {
	a.t.Helper()
	ctx := a.t.Context()
	data := name + "-data"
	a.must(a.Create(ctx, &corev1.Secret{ObjectMeta: in(data), Data: map[string][]byte{"value": []byte("#cloud-config\nruncmd: [id]\n")}}))
	m := &clusterv1.Machine{ObjectMeta: in(name)}
	m.Spec.ClusterName, m.Spec.Version, m.Spec.Bootstrap.DataSecretName = of, "v1.36.3", &data
	m.Spec.InfrastructureRef = clusterv1.ContractVersionedObjectReference{APIGroup: infrav1.GroupVersion.Group, Kind: "LocalMachine", Name: name}
	a.must(a.Create(ctx, m))
	lm := &infrav1.LocalMachine{ObjectMeta: in(name)}
	lm.Labels, lm.OwnerReferences = map[string]string{clusterv1.ClusterNameLabel: of}, owner("Machine", m)
	change(lm)
	return lm, a.Create(ctx, lm)
}

// gone deletes an object and waits until its controller has let it go.
func (a attack) gone(o client.Object) {
	a.t.Helper()
	a.must(a.Delete(a.t.Context(), o))
	a.await(o.GetName()+" is gone", func() string {
		if err := a.read(o.GetName(), o); !apierrors.IsNotFound(err) {
			return fmt.Sprintf("%v, %+v", err, o)
		}
		return ""
	})
}

// A person who may write everything in a namespace reaches nothing on the host beyond it: C1, C3, H1, H2, H3.
func TestAttacker(t *testing.T) {
	a := startAttack(t)
	if err := a.Create(t.Context(), &infrav1.LocalMachine{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "x"}}); !apierrors.IsForbidden(err) {
		t.Fatalf("alice may write to another namespace: %v", err)
	}
	a.cluster("c", nil)
	a.awaitReason("c", clusterv1.ReadyCondition, clusterv1.ReadyReason, &infrav1.LocalCluster{})
	t.Run("provider IDs", func(t *testing.T) { a.live.t = t; a.providerIDs() })
	t.Run("what a node may be", func(t *testing.T) { a.live.t = t; a.nodes() })
	t.Run("networks", func(t *testing.T) { a.live.t = t; a.networks() })
	t.Run("replicas", func(t *testing.T) { a.live.t = t; a.replicas() })
	a.live.t = t
	a.unharmed()
}

func (a attack) providerIDs() {
	for n, id := range []string{"slipway:///ci-postgres", "slipway:///../networks/x", "slipway:///victim-id", "slipway:///slipway-team-b-db-0A1B2C3D"} {
		if _, err := a.machine(fmt.Sprintf("refused-%d", n), "c", func(o *infrav1.LocalMachine) { o.Spec.ProviderID = id }); !apierrors.IsInvalid(err) {
			a.t.Errorf("%s: %v", id, err)
		}
	}
	o, err := a.machine("thief", "c", func(o *infrav1.LocalMachine) { o.Spec.ProviderID = backend.ProviderID(victim) })
	a.must(err)
	a.awaitReason("thief", infrav1.MachineProvisionedCondition, "ForeignProviderID", o)
	yes, before := true, o.DeepCopy()
	o.Status.Initialization.Provisioned, o.Status.InstanceID = &yes, "victim-id"
	a.must(a.Status().Patch(a.t.Context(), o, client.MergeFrom(before)))
	a.gone(o)
	a.unharmed()

	squatter := backend.MachineName("x", types.NamespacedName{Namespace: "team-a", Name: "squatter"}) // of another instance
	a.host.AddMachine(testhost.Machine{Instance: "y", Machine: backend.Machine{Name: squatter, ID: "s", State: backend.Running, Owner: backend.Owner{Object: victimMachine}}})
	o, err = a.machine("squatter", "c", func(o *infrav1.LocalMachine) { o.Spec.ProviderID = backend.ProviderID(squatter) })
	a.must(err)
	a.awaitReason("squatter", infrav1.MachineProvisionedCondition, "MachineNotOwned", o)
	a.gone(o)
	if !a.host.Exists(squatter) {
		a.t.Error("the container of another management cluster is gone")
	}
	a.unharmed()
}

func (a attack) nodes() {
	mount := func(path string, readOnly bool) func(*infrav1.LocalMachine) {
		return func(o *infrav1.LocalMachine) {
			o.Spec.Backend.Container = &infrav1.ContainerMachine{ExtraMounts: []infrav1.Mount{{HostPath: path, ContainerPath: "/host", ReadOnly: readOnly}}}
		}
	}
	cases := map[string]struct {
		change          func(*infrav1.LocalMachine)
		reason, message string
	}{
		"all":    {mount("/", false), "DeniedByPolicy", "nodes.mounts"},
		"docker": {mount("/var/run/docker.sock", false), "DeniedByPolicy", "nodes.mounts"},
		"dots":   {mount("/srv/shared/../../root", true), "DeniedByPolicy", "nodes.mounts"},
		"write":  {mount("/srv/shared/a", false), "DeniedByPolicy", "readOnly"},
		"link":   {mount("/srv/shared/link", true), "DeniedByPolicy", "nodes.mounts"},
		"socket": {mount("/srv/shared/docker.sock", true), "MountRefused", "a socket"},
		"image":  {func(o *infrav1.LocalMachine) { o.Spec.Backend.Container = &infrav1.ContainerMachine{Image: "evil:v1"} }, "DeniedByPolicy", "nodes.images"},
		"threads": {func(o *infrav1.LocalMachine) {
			o.Spec.Backend.Container = &infrav1.ContainerMachine{Resources: infrav1.ContainerResources{Processes: 4194304}}
		}, "DeniedByPolicy", "nodes.processes"},
	}
	for name, tc := range cases {
		o, err := a.machine(name, "c", tc.change)
		a.must(err)
		if m := a.awaitReason(name, infrav1.MachineProvisionedCondition, tc.reason, o); !strings.Contains(m, tc.message) {
			a.t.Errorf("%s: the message does not say %q: %s", name, tc.message, m)
		}
		if a.host.Exists(backend.MachineName(testhost.Instance, client.ObjectKeyFromObject(o))) || o.Spec.ProviderID != "" {
			a.t.Errorf("%s: something was made", name)
		}
	}
	for _, name := range []string{"good-1", "good-2"} {
		_, err := a.machine(name, "c", mount("/srv/shared/a", true))
		a.must(err)
		a.awaitReason(name, infrav1.MachineProvisionedCondition, "MachineRunning", &infrav1.LocalMachine{})
	}
	_, err := a.machine("good-3", "c", func(*infrav1.LocalMachine) {})
	a.must(err)
	if m := a.awaitReason("good-3", infrav1.MachineProvisionedCondition, "DeniedByPolicy", &infrav1.LocalMachine{}); !strings.Contains(m, "maxima.nodes.namespace") {
		a.t.Errorf("the maximum is not named: %s", m)
	}
	for _, name := range []string{"good-1", "good-2"} {
		a.gone(&infrav1.LocalMachine{ObjectMeta: in(name)})
	}
	a.unharmed()
}

func (a attack) networks() {
	for subnet, want := range map[string]struct{ reason, message string }{
		"8.8.0.0/16":     {"DeniedByPolicy", "networks.ranges"},
		"169.254.0.0/16": {"DeniedByPolicy", "networks.ranges"},
		"10.0.0.0/8":     {"DeniedByPolicy", "networks.widestPrefix"},
		"10.40.0.0/16":   {"DeniedByPolicy", "networks.ranges"},
		"172.16.0.0/12":  {"DeniedByPolicy", "networks.widestPrefix"},
		"172.28.0.0/15":  {"SubnetTaken", "wg0"},
		"172.20.0.0/16":  {"SubnetTaken", victimNet},
	} {
		name := "range-" + strings.NewReplacer(".", "-", "/", "-").Replace(subnet)
		lc := a.cluster(name, func(o *infrav1.LocalCluster) {
			o.Spec.Backend.Container = &infrav1.ContainerCluster{Network: infrav1.ContainerNetwork{Subnet: subnet}}
		})
		if m := a.awaitReason(name, infrav1.NetworkReadyCondition, want.reason, lc); !strings.Contains(m, want.message) {
			a.t.Errorf("%s: the message does not say %q: %s", subnet, want.message, m)
		}
	}
	// A way out of the host is denied by default, and neither asked for nor given up later.
	out := a.cluster("way-out", func(o *infrav1.LocalCluster) {
		o.Spec.Backend.Container = &infrav1.ContainerCluster{Network: infrav1.ContainerNetwork{Internet: true}}
	})
	if m := a.awaitReason("way-out", infrav1.NetworkReadyCondition, "DeniedByPolicy", out); !strings.Contains(m, "networks.internet") {
		a.t.Errorf("the setting is not named: %s", m)
	}
	for o, internet := range map[*infrav1.LocalCluster]bool{out: false, a.cluster("no-way-out", func(*infrav1.LocalCluster) {}): true} {
		before := o.DeepCopy()
		o.Spec.Backend.Container = &infrav1.ContainerCluster{Network: infrav1.ContainerNetwork{Internet: internet}}
		if err := a.Patch(a.t.Context(), o, client.MergeFrom(before)); err == nil || !strings.Contains(err.Error(), "network.internet cannot be changed") {
			a.t.Errorf("internet becomes %v in %s: %v", internet, o.Name, err)
		}
		a.gone(o)
	}
	// A LocalCluster that its controller leaves alone keeps the status that its owner writes.
	for name, leave := range map[string]string{"paused": clusterv1.PausedAnnotation, "managed": clusterv1.ManagedByAnnotation} {
		lc := a.cluster(name, func(o *infrav1.LocalCluster) { o.Annotations = map[string]string{leave: "x"} })
		a.forge(lc, infrav1.LocalClusterNetworkStatus{Name: victimNet, Subnet: "172.20.0.0/18", Gateway: "172.20.0.1"})
		o, err := a.machine("spy-"+name, name, func(*infrav1.LocalMachine) {})
		a.must(err)
		a.awaitReason(o.Name, infrav1.MachineProvisionedCondition, "NetworkAbsent", o)
		a.gone(o)
		a.gone(lc)
	}
	// One that is reconciled, with a status that names another's network and a range of the internet.
	lc := a.cluster("forged", func(o *infrav1.LocalCluster) { o.Annotations = map[string]string{clusterv1.PausedAnnotation: ""} })
	a.forge(lc, infrav1.LocalClusterNetworkStatus{Name: victimNet, Subnet: "8.8.0.0/16"})
	before := lc.DeepCopy()
	lc.Annotations = nil
	a.must(a.Patch(a.t.Context(), lc, client.MergeFrom(before)))
	a.awaitReason("forged", infrav1.NetworkReadyCondition, "DeniedByPolicy", lc)
	a.gone(lc)
	a.unharmed()
}

// forge writes what the status says of the network.
func (a attack) forge(lc *infrav1.LocalCluster, n infrav1.LocalClusterNetworkStatus) {
	a.t.Helper()
	before := lc.DeepCopy()
	lc.Status.Network = n
	a.must(a.Status().Patch(a.t.Context(), lc, client.MergeFrom(before)))
}

func (a attack) replicas() {
	replicas, data := int32(2000000000), "pool-data"
	a.must(a.Create(a.t.Context(), &corev1.Secret{ObjectMeta: in(data)}))
	mp := &clusterv1.MachinePool{ObjectMeta: in("mp")}
	mp.Spec.ClusterName, mp.Spec.Replicas = "c", &replicas
	mp.Spec.Template.Spec.ClusterName, mp.Spec.Template.Spec.Bootstrap.DataSecretName, mp.Spec.Template.Spec.Version = "c", &data, "v1.36.3"
	mp.Spec.Template.Spec.InfrastructureRef = clusterv1.ContractVersionedObjectReference{APIGroup: infrav1.GroupVersion.Group, Kind: "LocalMachinePool", Name: "mp"}
	a.must(a.Create(a.t.Context(), mp))
	lmp := &infrav1.LocalMachinePool{ObjectMeta: in("mp")}
	lmp.OwnerReferences, lmp.Labels = owner("MachinePool", mp), map[string]string{clusterv1.ClusterNameLabel: "c"}
	a.must(a.Create(a.t.Context(), lmp))
	a.await("the pool says what is too much", func() string {
		if err := a.read("mp", lmp); err != nil {
			return err.Error()
		}
		if c := condition.Set(lmp.Status.Conditions).Get(clusterv1.ReadyCondition); c == nil || !strings.Contains(c.Message, "maxima.replicas") {
			return fmt.Sprintf("%+v", lmp.Status.Conditions)
		}
		return ""
	})
	var list infrav1.LocalMachineList
	a.must(a.List(a.t.Context(), &list, client.InNamespace("team-a")))
	for _, m := range list.Items {
		if m.Annotations[backend.PoolAnnotation] == "mp" {
			a.t.Errorf("%s was made", m.Name)
		}
	}
}
