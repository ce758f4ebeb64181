package ssh

import (
	"context"
	"fmt"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	controlplanev1 "github.com/slipwayhq/slipway/api/controlplane/v1alpha1"
	infrav1 "github.com/slipwayhq/slipway/api/infrastructure/v1alpha1"
	"github.com/slipwayhq/slipway/internal/bundle"
	"github.com/slipwayhq/slipway/internal/condition"
	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/jobs"
	"github.com/slipwayhq/slipway/internal/manager/crds"
	"github.com/slipwayhq/slipway/internal/policy"
	"github.com/slipwayhq/slipway/internal/reconciler"
	"github.com/slipwayhq/slipway/internal/ssh/clusters"
	"github.com/slipwayhq/slipway/internal/ssh/hosts"
	"github.com/slipwayhq/slipway/internal/ssh/machines"
	"github.com/slipwayhq/slipway/internal/ssh/remote"
	"github.com/slipwayhq/slipway/test/testkit/apiserver"
)

// patience is how long a busy machine may take for one step.
const patience = 2 * time.Minute

// network is all that can be reached: hosts in memory by their addresses, and a log of what was done to them.
type network struct {
	mu      sync.Mutex
	records map[string]remote.Record
	log     []string
}

func (n *network) do(address, what string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.log = append(n.log, address+" "+what)
}

func (n *network) record(address string) (remote.Record, bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	r, ok := n.records[address]
	return r, ok
}

// machineHost is a connection to a host. It implements the interfaces of both controllers.
type machineHost struct {
	n       *network
	address string
}

func (h machineHost) Facts(context.Context) (remote.Facts, error) {
	return remote.Facts{Hostname: "host-" + h.address, Architecture: "amd64", CPUs: 2, MemoryMiB: 4096, MachineIDHash: h.address}, nil
}
func (h machineHost) Preflight(context.Context, remote.PreflightOptions) ([]remote.Finding, error) {
	return nil, nil
}
func (h machineHost) ReadRecord(context.Context) (*remote.Record, error) {
	if r, ok := h.n.record(h.address); ok {
		return &r, nil
	}
	return nil, nil
}
func (h machineHost) WriteRecord(_ context.Context, r remote.Record) error {
	if have, ok := h.n.record(h.address); ok && have.ClaimID != r.ClaimID {
		return fault.New(fault.Conflict, remote.ReasonClaimedByAnother, "another")
	}
	h.n.do(h.address, "record "+r.Namespace+"/"+r.Name)
	h.n.mu.Lock()
	defer h.n.mu.Unlock()
	h.n.records[h.address] = r
	return nil
}
func (h machineHost) DeleteRecord(_ context.Context, id string) error {
	h.n.mu.Lock()
	defer h.n.mu.Unlock()
	if h.n.records[h.address].ClaimID == id {
		delete(h.n.records, h.address)
	}
	return nil
}
func (h machineHost) Reset(context.Context) ([]remote.Leftover, error) {
	h.n.do(h.address, "reset")
	return nil, nil
}
func (h machineHost) RemoveBundles(context.Context) error { return nil }
func (h machineHost) InstallBundle(context.Context, bundle.Bundle, func(int64, int64)) error {
	h.n.do(h.address, "install")
	return nil
}
func (h machineHost) PrepareNode(context.Context, bundle.Bundle, remote.NodeSettings) error {
	return nil
}
func (h machineHost) StartBootstrap(_ context.Context, b remote.Bootstrap) error {
	h.n.do(h.address, "bootstrap "+string(b.Data))
	return nil
}
func (h machineHost) BootstrapProgress(context.Context, string) (remote.Progress, error) {
	h.n.mu.Lock()
	defer h.n.mu.Unlock()
	for _, line := range h.n.log {
		if strings.HasPrefix(line, h.address+" bootstrap") {
			return remote.Progress{State: remote.BootstrapDone}, nil
		}
	}
	return remote.Progress{State: remote.BootstrapNone}, nil
}

type toHosts struct{ *network }

func (c toHosts) Connect(_ context.Context, t remote.Target) (hosts.Host, error) {
	c.do(t.Address, "connect")
	return machineHost{c.network, t.Address}, nil
}

type toMachines struct{ *network }

func (c toMachines) Connect(_ context.Context, t remote.Target) (machines.Host, error) {
	c.do(t.Address, "connect")
	return machineHost{c.network, t.Address}, nil
}

// ConfigureVirtualIP and VirtualIPState record what happens to a host.
func (h machineHost) ConfigureVirtualIP(_ context.Context, v remote.VirtualIP, _ remote.VirtualIPConditions) error {
	h.n.do(h.address, "virtual IP "+v.Address.String())
	return nil
}
func (h machineHost) VirtualIPState(context.Context, string, netip.Addr) (remote.VirtualIPState, error) {
	return remote.VirtualIPState{}, nil
}

type toClusters struct{ *network }

func (c toClusters) Connect(_ context.Context, t remote.Target) (clusters.Host, error) {
	c.do(t.Address, "connect")
	return machineHost{c.network, t.Address}, nil
}

// toWorkloads records the searches for Nodes. No cluster has any.
type toWorkloads struct{ *network }

func (c toWorkloads) Client(_ context.Context, cluster client.ObjectKey) (client.Client, error) {
	c.do("workload", cluster.String())
	return nil, fault.New(fault.Unreachable, "NotConnected", "the workload cluster is not connected")
}

func (c toWorkloads) Nodes(_ context.Context, cluster client.ObjectKey, _ string) ([]corev1.Node, error) {
	c.do("workload", cluster.String())
	return nil, nil
}

type anyBundle struct{}

func (anyBundle) Find(version, architecture string) (bundle.Bundle, error) {
	return bundle.Bundle{Digest: strings.Repeat("a", 64), Manifest: bundle.Manifest{KubernetesVersion: version, Architecture: architecture}}, nil
}

// attack is the controllers of the provider over a real API server. The operator has three hosts in namespace hosts: one is
// offered to namespace team-a, one to team-b, and one is the node of team-b. Alice may write every field of every object in
// namespace team-a, status included, and nothing else.
type attack struct {
	client.Client
	t        *testing.T
	operator client.Client
	network  *network
}

// The addresses of the operator's hosts, and of what is no host.
const (
	offered, secret, victim = "192.0.2.1", "192.0.2.2", "192.0.2.3"
	metadata                = "169.254.169.254"
	victimClaim             = "vvvvvvvvvvvvvvvvvvvvvvvvvv"
)

func configuration() policy.Configuration {
	p := policy.Default()
	p.Hosts.Ranges, p.Hosts.Namespaces = []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24")}, []string{"hosts"}
	p.Hosts.VirtualIPs = []policy.VirtualIPRange{{Range: netip.MustParsePrefix("192.0.2.0/28")}, {Range: netip.MustParsePrefix("198.51.100.0/28"), Namespaces: []string{"team-b"}}}
	return p
}

func inventoryHost(name, address, team string) *infrav1.SSHHost {
	h := &infrav1.SSHHost{ObjectMeta: metav1.ObjectMeta{Namespace: "hosts", Name: name}}
	h.Spec.Address, h.Spec.CredentialsRef.Name, h.Spec.HostKeys = address, "key", []string{"ssh-ed25519 AAAA"}
	h.Spec.OfferedTo = &metav1.LabelSelector{MatchLabels: map[string]string{"team": team}}
	return h
}

func startAttack(t *testing.T) attack {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, clusterv1.AddToScheme, infrav1.AddToScheme, controlplanev1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	namespace := func(name, team string) client.Object {
		return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"team": team}}}
	}
	objects := []client.Object{
		namespace("hosts", ""), namespace("team-a", "a"), namespace("team-b", "b"),
		&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "edits-everything"}, Rules: []rbacv1.PolicyRule{{
			APIGroups: []string{"", clusterv1.GroupVersion.Group, infrav1.GroupVersion.Group}, Resources: []string{"*"}, Verbs: []string{"*"},
		}}},
		&rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: "alice"},
			RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "edits-everything"},
			Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: "alice"}}},
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "hosts", Name: "key"}, Data: map[string][]byte{"ssh-privatekey": []byte("k")}},
	}
	all, err := crds.All()
	if err != nil {
		t.Fatal(err)
	}
	for _, crd := range all {
		if g := crd.Spec.Group; g == infrav1.GroupVersion.Group || g == controlplanev1.GroupVersion.Group || g == clusterv1.GroupVersion.Group {
			objects = append(objects, crd)
		}
	}
	ctrl.SetLogger(logr.Discard())
	srv := apiserver.Start(t, apiserver.Options{Objects: objects})
	a := attack{t: t, network: &network{records: map[string]remote.Record{victim: {ClaimID: victimClaim, Namespace: "team-b", Name: "db"}}}}
	a.operator, err = client.New(srv.Config, client.Options{Scheme: scheme})
	a.must(err)
	as := rest.CopyConfig(srv.Config)
	as.Impersonate = rest.ImpersonationConfig{UserName: "alice"}
	a.Client, err = client.New(as, client.Options{Scheme: scheme})
	a.must(err)
	a.prepareVictim()
	for _, h := range []*infrav1.SSHHost{inventoryHost("offered", offered, "a"), inventoryHost("secret", secret, "b")} {
		a.must(a.operator.Create(t.Context(), h))
	}
	a.startControllers(srv.Config, scheme)
	return a
}

// prepareVictim creates the node of team-b.
func (a attack) prepareVictim() {
	m := &infrav1.SSHMachine{ObjectMeta: metav1.ObjectMeta{Namespace: "team-b", Name: "db", Finalizers: []string{infrav1.SSHMachineFinalizer}}}
	m.Spec.ClaimID, m.Spec.ProviderID = victimClaim, "ssh://"+victimClaim
	a.must(a.operator.Create(a.t.Context(), m))
	m.Status.Initialization.Provisioned = ptr.To(true)
	a.must(a.operator.Status().Update(a.t.Context(), m))
	h := inventoryHost("victim", victim, "b")
	a.must(a.operator.Create(a.t.Context(), h))
	h.Status.Claim = &infrav1.SSHHostClaim{Namespace: "team-b", Name: "db", ClaimID: victimClaim}
	a.must(a.operator.Status().Update(a.t.Context(), h))
}

func (a attack) startControllers(access *rest.Config, scheme *runtime.Scheme) {
	mgr, err := ctrl.NewManager(access, ctrl.Options{Scheme: scheme, Metrics: server.Options{BindAddress: "0"}, HealthProbeBindAddress: "0", Logger: logr.Discard(),
		Controller: config.Controller{SkipNameValidation: ptr.To(true)}})
	a.must(err)
	ctx, stop := context.WithCancel(context.Background())
	setup := reconciler.Setup{Manager: mgr, Concurrency: 2}
	runner := jobs.NewRunner(ctx, time.Now, jobs.Limits{Total: 9, Namespace: 9})
	a.must(hosts.Add(setup, hosts.Config{Connector: toHosts{a.network}, Workloads: toWorkloads{a.network}, Jobs: runner, Policy: configuration()}))
	a.must(machines.Add(setup, machines.Config{Connector: toMachines{a.network}, Bundles: anyBundle{}, Jobs: runner, Policy: configuration()}))
	a.must(clusters.Add(setup, clusters.Config{Connector: toClusters{a.network}, Policy: configuration()}))
	a.must(addTemplates(setup))
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(ctx) }()
	a.t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			a.t.Errorf("the manager exited: %v", err)
		}
	})
}

func (a attack) must(err error) {
	a.t.Helper()
	if err != nil {
		a.t.Fatal(err)
	}
}

// await polls until the answer is empty; otherwise it says what is still wrong.
func (a attack) await(what string, wrong func() string) {
	a.t.Helper()
	for start := time.Now(); ; time.Sleep(50 * time.Millisecond) {
		problem := wrong()
		if problem == "" {
			return
		}
		if time.Since(start) > patience {
			a.t.Fatalf("%s: not after %s: %s", what, patience, problem)
		}
	}
}

// unharmed makes sure that nothing was done to the hosts of others, and that nothing else was connected to.
func (a attack) unharmed() {
	a.t.Helper()
	a.network.mu.Lock()
	defer a.network.mu.Unlock()
	for _, line := range a.network.log {
		address, what, _ := strings.Cut(line, " ")
		if address == "workload" && strings.HasPrefix(what, "team-a/") {
			continue
		}
		if address != offered && (what != "connect" || address != secret && address != victim) {
			a.t.Errorf("%s", line)
		}
	}
	if r := a.network.records[victim]; r.ClaimID != victimClaim {
		a.t.Errorf("the record of the victim is %+v", r)
	}
}

func in(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: "team-a", Name: name} }

// cluster makes a Cluster that says that all is ready.
func (a attack) cluster() {
	a.t.Helper()
	c := &clusterv1.Cluster{ObjectMeta: in("c")}
	c.Spec.InfrastructureRef = clusterv1.ContractVersionedObjectReference{APIGroup: infrav1.GroupVersion.Group, Kind: "SSHCluster", Name: "c"}
	a.must(a.Create(a.t.Context(), c))
	c.Status.Initialization.InfrastructureProvisioned = ptr.To(true)
	a.must(a.Status().Update(a.t.Context(), c))
}

// machine makes a Machine with bootstrap data, and its SSHMachine.
func (a attack) machine(name string, change func(*infrav1.SSHMachine)) (*infrav1.SSHMachine, error) {
	a.t.Helper()
	ctx, data := a.t.Context(), name+"-data"
	a.must(a.Create(ctx, &corev1.Secret{ObjectMeta: in(data), Data: map[string][]byte{"value": []byte("#cloud-config\nruncmd: [id]\n")}}))
	m := &clusterv1.Machine{ObjectMeta: in(name)}
	m.Spec.ClusterName, m.Spec.Version, m.Spec.Bootstrap.DataSecretName = "c", "v1.36.3", &data
	m.Spec.InfrastructureRef = clusterv1.ContractVersionedObjectReference{APIGroup: infrav1.GroupVersion.Group, Kind: "SSHMachine", Name: name}
	a.must(a.Create(ctx, m))
	o := &infrav1.SSHMachine{ObjectMeta: in(name)}
	o.Labels = map[string]string{clusterv1.ClusterNameLabel: "c"}
	o.OwnerReferences = []metav1.OwnerReference{{APIVersion: clusterv1.GroupVersion.String(), Kind: "Machine", Name: m.Name, UID: m.UID}}
	change(o)
	return o, a.Create(ctx, o)
}

func (a attack) awaitReason(o *infrav1.SSHMachine, conditionType, reason string) string {
	a.t.Helper()
	message := ""
	a.await(o.Name+" is "+reason, func() string {
		if err := a.Get(a.t.Context(), client.ObjectKeyFromObject(o), o); err != nil {
			return err.Error()
		}
		c := condition.Set(o.Status.Conditions).Get(conditionType)
		if c == nil || c.Reason != reason {
			return fmt.Sprintf("%+v", o.Status.Conditions)
		}
		message = c.Message
		return ""
	})
	return message
}

func (a attack) gone(o client.Object) {
	a.t.Helper()
	a.must(client.IgnoreNotFound(a.Delete(a.t.Context(), o)))
	a.await(o.GetName()+" is gone", func() string {
		if err := a.Get(a.t.Context(), client.ObjectKeyFromObject(o), o); !apierrors.IsNotFound(err) {
			return fmt.Sprintf("%v, %+v", err, o)
		}
		return ""
	})
}

// A tenant who may write every field in a namespace reaches no host but those that are offered to it.
func TestAttacker(t *testing.T) {
	a := startAttack(t)
	a.cluster()
	t.Run("inventory", func(t *testing.T) { a.t = t; a.inventory() })
	t.Run("identities", func(t *testing.T) { a.t = t; a.identities() })
	t.Run("claims", func(t *testing.T) { a.t = t; a.claims() })
	t.Run("status", func(t *testing.T) { a.t = t; a.status() })
	t.Run("virtual IP", func(t *testing.T) { a.t = t; a.virtualIP() })
	a.t = t
	a.unharmed()
}

// inventory: the inventory of the operator cannot be read or written, and one of the tenant's own leads nowhere.
func (a attack) inventory() {
	ctx := a.t.Context()
	if err := a.Get(ctx, client.ObjectKey{Namespace: "hosts", Name: "secret"}, &infrav1.SSHHost{}); !apierrors.IsForbidden(err) {
		a.t.Errorf("alice reads the inventory: %v", err)
	}
	for name, address := range map[string]string{"own": metadata, "bait": offered} {
		h := inventoryHost(name, address, "")
		h.Namespace, h.Spec.OfferedTo = "team-a", &metav1.LabelSelector{}
		a.must(a.Create(ctx, h))
		before := h.DeepCopy()
		h.Status.State, h.Status.ObservedGeneration = infrav1.SSHHostAvailable, 1
		a.must(a.Status().Patch(ctx, h, client.MergeFrom(before))) // the controller writes at the same time
		a.await(name+" is denied", func() string {
			if err := a.Get(ctx, client.ObjectKeyFromObject(h), h); err != nil || h.Status.State != infrav1.SSHHostUnreachable {
				return fmt.Sprintf("%v, %+v", err, h.Status)
			}
			return ""
		})
		a.gone(h)
	}
	for field, change := range map[string]func(*infrav1.SSHHost){
		"option":       func(h *infrav1.SSHHost) { h.Spec.Address = "-oProxyCommand=id" },
		"command":      func(h *infrav1.SSHHost) { h.Spec.Address = "a;id" },
		"line":         func(h *infrav1.SSHHost) { h.Spec.Address = "a\nb" },
		"user":         func(h *infrav1.SSHHost) { h.Spec.User = "root;id" },
		"no key":       func(h *infrav1.SSHHost) { h.Spec.HostKeys = nil },
		"proxy":        func(h *infrav1.SSHHost) { h.Spec.Settings.Proxy.HTTP = "http://a\"\nExecStart=id" },
		"mirror":       func(h *infrav1.SSHHost) { h.Spec.Settings.RegistryMirrors = []string{"https://a\"]\n[x"} },
		"not root":     func(h *infrav1.SSHHost) { h.Spec.User = "admin" },
		"node address": func(h *infrav1.SSHHost) { h.Spec.NodeAddress = "$(id)" },
	} {
		h := inventoryHost("refused", offered, "a")
		h.Namespace = "team-a"
		if change(h); !apierrors.IsInvalid(a.Create(ctx, h)) {
			a.t.Errorf("%s is accepted", field)
		}
	}
	a.unharmed()
}

// identities: a claim ID is what the controller sets, or worth nothing.
func (a attack) identities() {
	for name, change := range map[string]func(*infrav1.SSHMachine){
		"path":  func(o *infrav1.SSHMachine) { o.Spec.ClaimID = "../../../../../../etc/pass" },
		"upper": func(o *infrav1.SSHMachine) { o.Spec.ClaimID = strings.Repeat("A", 26) },
		"short": func(o *infrav1.SSHMachine) { o.Spec.ClaimID = "a" },
		"other-provider": func(o *infrav1.SSHMachine) {
			o.Spec.ClaimID, o.Spec.ProviderID = strings.Repeat("a", 26), "ssh://"+victimClaim
		},
		"provider-alone":   func(o *infrav1.SSHMachine) { o.Spec.ProviderID = "ssh://" + victimClaim },
		"foreign-provider": func(o *infrav1.SSHMachine) { o.Spec.ProviderID = "slipway:///slipway-team-b-db-0a1b2c3" },
		"forever":          func(o *infrav1.SSHMachine) { o.Spec.BootstrapTimeoutSeconds = 1 << 30 },
		"bundle":           func(o *infrav1.SSHMachine) { o.Spec.Bundle = "../x" },
	} {
		if _, err := a.machine("refused-"+name, change); !apierrors.IsInvalid(err) {
			a.t.Errorf("%s: %v", name, err)
		}
	}
	template := &infrav1.SSHMachineTemplate{ObjectMeta: in("t")}
	template.Spec.Template.Spec.ClaimID = victimClaim
	if err := a.Create(a.t.Context(), template); !apierrors.IsInvalid(err) {
		a.t.Errorf("a template of a claim: %v", err)
	}
	// A copy of the claim ID of another machine gets a host of its own, never that machine's.
	o, err := a.machine("thief", func(o *infrav1.SSHMachine) { o.Spec.ClaimID, o.Spec.ProviderID = victimClaim, "ssh://"+victimClaim })
	a.must(err)
	a.awaitReason(o, clusterv1.ReadyCondition, clusterv1.ReadyReason)
	if o.Status.HostRef.Name != "offered" {
		a.t.Errorf("the thief has host %+v", o.Status.HostRef)
	}
	// Released by force, its Nodes are searched for in a Cluster of its own namespace only.
	before := o.DeepCopy()
	o.Annotations = map[string]string{infrav1.ForceReleaseAnnotation: "true"}
	a.must(a.Patch(a.t.Context(), o, client.MergeFrom(before)))
	a.gone(o)
	a.await("the host is clean", func() string { return a.isFree("offered") })
	a.unharmed()
}

func (a attack) isFree(name string) string {
	h := &infrav1.SSHHost{}
	if err := a.operator.Get(a.t.Context(), client.ObjectKey{Namespace: "hosts", Name: name}, h); err != nil || h.Status.Claim != nil || h.Status.State != infrav1.SSHHostAvailable {
		return fmt.Sprintf("%v, %+v", err, h.Status)
	}
	return ""
}

// claims: only hosts that are offered to the namespace are claimed, whatever is selected, and nothing is disclosed of others.
func (a attack) claims() {
	first, err := a.machine("first", func(*infrav1.SSHMachine) {})
	a.must(err)
	a.awaitReason(first, clusterv1.ReadyCondition, clusterv1.ReadyReason)
	for name, selector := range map[string]*metav1.LabelSelector{
		"all": {}, "none": nil, "names": {MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "team", Operator: metav1.LabelSelectorOpDoesNotExist}}},
	} {
		o, err := a.machine("more-"+name, func(o *infrav1.SSHMachine) { o.Spec.HostSelector = selector })
		a.must(err)
		message := a.awaitReason(o, infrav1.HostClaimedCondition, "NoHostAvailable")
		if !strings.Contains(message, "of the 1 that are offered to namespace team-a") || strings.Contains(message, "secret") || strings.Contains(message, "victim") || strings.Contains(message, "192.0.2") {
			a.t.Errorf("%s discloses: %s", name, message)
		}
		a.gone(o)
	}
	a.gone(first)
	a.await("the host is clean", func() string { return a.isFree("offered") })
	a.unharmed()
}

// status: a status that the tenant writes releases, cleans and claims nothing.
func (a attack) status() {
	ctx := a.t.Context()
	o, err := a.machine("liar", func(o *infrav1.SSHMachine) { o.Spec.FailureDomain = "nowhere" })
	a.must(err)
	a.awaitReason(o, infrav1.HostClaimedCondition, "NoHostAvailable")
	before := o.DeepCopy()
	o.Status.HostRef = &infrav1.SSHHostReference{Namespace: "hosts", Name: "victim"}
	o.Status.Initialization.Provisioned = ptr.To(true)
	a.must(a.Status().Patch(ctx, o, client.MergeFrom(before)))
	a.gone(o)
	if problem := a.isFree("victim"); problem == "" {
		a.t.Error("the victim was released")
	}
	a.unharmed()
}

// virtualIP: an address is a plain one in the ranges of the operator, belongs to nobody else, and is held by own hosts alone.
func (a attack) virtualIP() {
	ctx := a.t.Context()
	for name, text := range map[string]string{
		"block": "192.0.2.9 }\n vrrp_script x { script id }", "prefix": "192.0.2.9/24", "name": "db.internal", "zone": "fe80::1%eth0", "line": "192.0.2.9\nid",
		"command": "$(id)", "mapped": "::ffff:192.0.2.9", "zeros": "192.000.002.009", "long form": "2001:0db8:0:0:0:0:0:1", "option": "-h",
	} {
		o := &infrav1.SSHCluster{ObjectMeta: in("refused")}
		if o.Spec.VirtualIP = text; !apierrors.IsInvalid(a.Create(ctx, o)) {
			a.t.Errorf("%s is accepted", name)
		}
	}
	owned := func(namespace, name, address string) *infrav1.SSHCluster {
		owner := &clusterv1.Cluster{}
		a.must(a.operator.Get(ctx, client.ObjectKey{Namespace: "team-a", Name: "c"}, owner))
		o := &infrav1.SSHCluster{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name,
			OwnerReferences: []metav1.OwnerReference{{APIVersion: clusterv1.GroupVersion.String(), Kind: "Cluster", Name: "c", UID: owner.UID}}}}
		o.Spec.VirtualIP = address
		return o
	}
	theirs := owned("team-b", "theirs", "192.0.2.14")
	theirs.OwnerReferences = nil // the garbage collector would delete it, because the owner is in another namespace
	a.must(a.operator.Create(ctx, theirs))
	theirs.Status.Initialization.Provisioned = ptr.To(true)
	a.must(a.operator.Status().Update(ctx, theirs))
	for name, address := range map[string]string{
		"offered": offered, "secret": secret, "victim": victim, "foreign": "192.0.2.200", "metadata": metadata, "cluster": "192.0.2.14", "loopback": "127.0.0.1",
		"other-range": "198.51.100.1",
	} {
		o := owned("team-a", "vip-"+name, address)
		a.must(a.Create(ctx, o))
		a.await(name+" is denied", func() string {
			if err := a.Get(ctx, client.ObjectKeyFromObject(o), o); err != nil {
				return err.Error()
			}
			c := condition.Set(o.Status.Conditions).Get(infrav1.EndpointReadyCondition)
			if c == nil || c.Reason != "DeniedByPolicy" && c.Reason != "VirtualIPTaken" || strings.Contains(c.Message, "team-b") || strings.Contains(c.Message, "theirs") {
				return fmt.Sprintf("%+v", o.Status.Conditions)
			}
			return ""
		})
		if o.Spec.ControlPlaneEndpoint.IsValid() || ptr.Deref(o.Status.Initialization.Provisioned, false) {
			a.t.Errorf("%s: %+v", name, o)
		}
		o.Spec.VirtualIP = "192.0.2.13"
		if err := a.Update(ctx, o); !apierrors.IsInvalid(err) {
			a.t.Errorf("%s was changed: %v", name, err)
		}
		a.gone(o)
	}
	// A status that the tenant writes does not let the hosts of others hold the address.
	o := owned("team-a", "c", "192.0.2.13")
	a.must(a.Create(ctx, o))
	liar, err := a.machine("liar-vip", func(m *infrav1.SSHMachine) { m.Spec.FailureDomain = "nowhere" })
	a.must(err)
	core := &clusterv1.Machine{}
	a.must(a.Get(ctx, client.ObjectKeyFromObject(liar), core))
	core.Labels = map[string]string{clusterv1.ClusterNameLabel: "c", clusterv1.MachineControlPlaneLabel: ""}
	a.must(a.Update(ctx, core))
	a.await("the endpoint is set", func() string {
		a.must(a.Get(ctx, client.ObjectKeyFromObject(o), o))
		if o.Spec.ControlPlaneEndpoint.Host != "192.0.2.13" {
			return fmt.Sprintf("%+v", o)
		}
		return ""
	})
	before := liar.DeepCopy()
	liar.Status.HostRef = &infrav1.SSHHostReference{Namespace: "hosts", Name: "victim"}
	liar.Status.Conditions = []metav1.Condition{{Type: infrav1.HostPreparedCondition, Status: metav1.ConditionTrue, Reason: "x", LastTransitionTime: metav1.Now()}}
	a.must(a.Status().Patch(ctx, liar, client.MergeFrom(before)))
	a.gone(liar)
	a.gone(o)
	a.unharmed()
}
