package machine

import (
	"errors"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"k8s.io/utils/ptr"

	controlplanev1 "github.com/slipwayhq/slipway/api/controlplane/v1alpha1"
	infrav1 "github.com/slipwayhq/slipway/api/infrastructure/v1alpha1"
	"github.com/slipwayhq/slipway/internal/condition"
	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/local/backend"
	localcontainer "github.com/slipwayhq/slipway/internal/local/container"
	"github.com/slipwayhq/slipway/internal/policy"
	"github.com/slipwayhq/slipway/internal/reconciler"
)

var now = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

var (
	yes  = true
	key  = client.ObjectKey{Namespace: "ns", Name: "lm"}
	name = backend.MachineName("i", key)
)

func localMachine(change func(*infrav1.LocalMachine)) *infrav1.LocalMachine {
	o := &infrav1.LocalMachine{ObjectMeta: metav1.ObjectMeta{
		Namespace: "ns", Name: "lm", UID: "lm-uid", Finalizers: []string{infrav1.LocalMachineFinalizer},
		Labels:          map[string]string{clusterv1.ClusterNameLabel: "c"},
		OwnerReferences: []metav1.OwnerReference{{APIVersion: clusterv1.GroupVersion.String(), Kind: "Machine", Name: "m", UID: "m-uid"}},
	}}
	if change != nil {
		change(o)
	}
	return o
}

func coreMachine(change func(*clusterv1.Machine)) *clusterv1.Machine {
	secret := "boot"
	m := &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "m", UID: "m-uid"}}
	m.Spec.Version, m.Spec.Bootstrap.DataSecretName, m.Spec.FailureDomain = "v1.36.3", &secret, "zone-a"
	if change != nil {
		change(m)
	}
	return m
}

func coreCluster(change func(*clusterv1.Cluster)) *clusterv1.Cluster {
	c := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "c"}}
	c.Spec.InfrastructureRef = clusterv1.ContractVersionedObjectReference{Kind: "LocalCluster", APIGroup: infrav1.GroupVersion.Group, Name: "lc"}
	c.Status.Initialization.InfrastructureProvisioned = &yes
	if change != nil {
		change(c)
	}
	return c
}

func localCluster() *infrav1.LocalCluster {
	o := &infrav1.LocalCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "lc"}}
	o.Status.Network = infrav1.LocalClusterNetworkStatus{Name: "net", Subnet: "172.16.0.0/18", Gateway: "172.16.0.1"}
	return o
}

func host(state backend.MachineState) backend.Machine {
	return backend.Machine{Name: name, ID: "id", State: state, Hostname: "lm", Address: netip.MustParseAddr("172.16.0.2"),
		NodeVersion: "v1.36.3", Owner: backend.Owner{Object: types.NamespacedName(key), UID: "lm-uid"}}
}

// allowed is what the operator of the tests allows.
func allowed() policy.Configuration {
	p := policy.Default()
	p.Nodes.Images = append(p.Nodes.Images, "kindest/node")
	p.Nodes.Mounts = []policy.Mount{{Path: "/srv"}}
	p.Nodes.MemoryMiB = 8192
	return p
}

// clusterNetwork is the network of the tests' LocalCluster.
func clusterNetwork() (backend.Owner, backend.Network) {
	o := backend.Owner{Cluster: "c", Object: types.NamespacedName{Namespace: "ns", Name: "lc"}}
	return o, backend.Network{Name: backend.NetworkName("i", o.Object), ID: "net-id", Subnet: netip.MustParsePrefix("172.16.0.0/18")}
}

func newSnapshot(change func(*snapshot)) snapshot {
	s := snapshot{Object: localMachine(nil), Machine: coreMachine(nil), Cluster: coreCluster(nil), Network: localCluster(),
		Name: name, HostMachine: backend.Machine{Name: name, State: backend.Absent}, Now: now, Policy: allowed(), Quota: &backend.Quota{}}
	change(&s)
	if s.Name != "" {
		s.Capabilities = localcontainer.MachineCapabilities(s.request())
	}
	return s
}

func withID(o *infrav1.LocalMachine) { o.Spec.ProviderID = backend.ProviderID(name) }

func was(o *infrav1.LocalMachine) {
	withID(o)
	o.Status.Initialization.Provisioned, o.Status.InstanceID = &yes, "id"
}

func deleted(o *infrav1.LocalMachine) { o.DeletionTimestamp = &metav1.Time{Time: now} }

func progress(p backend.Phase) func(*snapshot) {
	return func(s *snapshot) {
		s.Object, s.HostMachine, s.Progress = localMachine(withID), host(backend.Running), &backend.Progress{Phase: p, Log: "line 1\nline 2"}
	}
}

var down = fault.New(fault.Unreachable, "DockerUnreachable", "Docker does not respond")

func plane(version string, change func(*controlplanev1.HostedControlPlane)) *controlplanev1.HostedControlPlane {
	p := &controlplanev1.HostedControlPlane{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "p"}}
	p.Status.Version = version
	if change != nil {
		change(p)
	}
	return p
}

func container(c infrav1.ContainerMachine) func(*snapshot) {
	return func(s *snapshot) { s.Object.Spec.Backend.Container = &c }
}

func TestDecide(t *testing.T) {
	id := "set the provider ID to slipway:///" + name + ": it identifies the machine"
	create := "create and start machine " + name + " of slipway.dev/node:v1.36.3: there is none yet"
	cases := map[string]struct {
		reason string
		change func(*snapshot)
		want   []string
		waits  []string
	}{
		"new":      {"everything is there (IM-11)", func(*snapshot) {}, []string{id, create}, []string{"CreatingMachine"}},
		"no owner": {"nobody wants it yet", func(s *snapshot) { s.Machine = nil }, nil, []string{"WaitingForOwner"}},
		"no infra": {"IM-11", func(s *snapshot) { s.Cluster.Status.Initialization.InfrastructureProvisioned = nil }, nil, []string{"WaitingForClusterInfrastructureReady"}},
		"simulated LocalCluster": {"it never has a network, so waiting cannot help", func(s *snapshot) {
			s.Network.Spec.Backend.Simulated, s.Cluster.Status.Initialization.InfrastructureProvisioned = &infrav1.SimulatedCluster{}, nil
		}, nil, []string{"SimulatedNetwork"}},
		"no data": {"it boots meanwhile (IM-11)", func(s *snapshot) { s.Machine.Spec.Bootstrap.DataSecretName = nil }, []string{id, create}, []string{"CreatingMachine"}},
		"no data, booted": {"there is nothing to run in it (IM-11)", func(s *snapshot) {
			progress(backend.NotStarted)(s)
			s.Machine.Spec.Bootstrap.DataSecretName = nil
		}, nil, []string{"WaitingForBootstrapData"}},
		"host odd":             {"the Docker Engine says what it has not said before: looked at again by itself", func(s *snapshot) { s.Fault = fault.New(fault.Transient, "DockerError", "odd") }, nil, []string{"DockerError"}},
		"foreign ID":           {"the name of another machine's container", func(s *snapshot) { s.Name, s.HostMachine = "", backend.Machine{} }, nil, []string{"ForeignProviderID"}},
		"foreign ID, deleting": {"nothing is its own, so nothing is removed", func(s *snapshot) { s.Object, s.Name, s.HostMachine = localMachine(deleted), "", backend.Machine{} }, nil, nil},
		"foreign container":    {"it has the name", func(s *snapshot) { s.HostMachine = backend.Machine{Name: name, State: backend.Foreign} }, nil, []string{"MachineNotOwned"}},
		"foreign container, deleting": {"it stays", func(s *snapshot) {
			s.Object, s.HostMachine = localMachine(deleted), backend.Machine{Name: name, State: backend.Foreign}
		}, nil, nil},
		"image denied":   {"the operator allows others", container(infrav1.ContainerMachine{Image: "evil"}), nil, []string{"DeniedByPolicy"}},
		"mount denied":   {"as it is written", container(infrav1.ContainerMachine{ExtraMounts: []infrav1.Mount{{HostPath: "/", ContainerPath: "/host", ReadOnly: true}}}), nil, []string{"DeniedByPolicy"}},
		"mount writable": {"the operator allows reading", container(infrav1.ContainerMachine{ExtraMounts: []infrav1.Mount{{HostPath: "/srv/a", ContainerPath: "/a"}}}), nil, []string{"DeniedByPolicy"}},
		"mount leads out": {"where it leads is not allowed", func(s *snapshot) {
			container(infrav1.ContainerMachine{ExtraMounts: []infrav1.Mount{{HostPath: "/srv/a", ContainerPath: "/a", ReadOnly: true}}})(s)
			s.Quota.Mounts = []backend.Mount{{HostPath: "/etc", MachinePath: "/a", ReadOnly: true}}
		}, nil, []string{"DeniedByPolicy"}},
		"mount refused": {"whoever allows it", func(s *snapshot) { s.Quota.Refusal = fault.New(fault.Invalid, "MountRefused", "no") }, nil, []string{"MountRefused"}},
		"mount allowed": {"for reading", func(s *snapshot) {
			container(infrav1.ContainerMachine{ExtraMounts: []infrav1.Mount{{HostPath: "/srv/a", ContainerPath: "/a", ReadOnly: true}}})(s)
			s.Quota.Mounts = []backend.Mount{{HostPath: "/srv/b", MachinePath: "/a", ReadOnly: true}}
		}, []string{id, create}, []string{"CreatingMachine"}},
		"too much memory": {"more than a node may have", container(infrav1.ContainerMachine{Resources: infrav1.ContainerResources{MemoryMiB: 8193}}), nil, []string{"DeniedByPolicy"}},
		"too many here":   {"as many as the namespace may have", func(s *snapshot) { s.Quota.Own, s.Quota.All = 100, 100 }, nil, []string{"DeniedByPolicy"}},
		"too many":        {"as many as there may be", func(s *snapshot) { s.Quota.All = 250 }, nil, []string{"DeniedByPolicy"}},
		"denied later": {"what is there goes on when the policy becomes stricter", func(s *snapshot) {
			progress(backend.Succeeded)(s)
			s.Policy, s.Object.Spec.Backend.Container = policy.Configuration{}, &infrav1.ContainerMachine{Image: "evil"}
		}, nil, nil},
		"older image":         {"each node runs the kube-proxy of its own image", func(s *snapshot) { s.HostedControlPlane = plane("v1.37.0", nil) }, []string{id, create}, []string{"CreatingMachine"}},
		"oldest image":        {"the oldest kubelet that Kubernetes supports", func(s *snapshot) { s.HostedControlPlane = plane("v1.39.0", nil) }, []string{id, create}, []string{"CreatingMachine"}},
		"too old image":       {"Kubernetes does not support the kubelet", func(s *snapshot) { s.HostedControlPlane = plane("v1.40.0", nil) }, nil, []string{"NodeVersionSkew"}},
		"newer image":         {"a kubelet is never newer than the API server", func(s *snapshot) { s.HostedControlPlane = plane("v1.35.9", nil) }, nil, []string{"NodeVersionSkew"}},
		"same version":        {"all is there", func(s *snapshot) { s.HostedControlPlane = plane("v1.36.3", nil) }, []string{id, create}, []string{"CreatingMachine"}},
		"newer image, named":  {"known once there is a container of it", func(s *snapshot) { progress(backend.NotStarted)(s); s.HostedControlPlane = plane("v1.35.0", nil) }, nil, []string{"NodeVersionSkew"}},
		"newer control plane": {"a node that is there is not touched", func(s *snapshot) { progress(backend.Succeeded)(s); s.HostedControlPlane = plane("v1.37.0", nil) }, nil, nil},
		"no node image":       {"it cannot run the bootstrap data", progress(backend.Unusable), nil, []string{"NotANodeImage"}},
		"no image":            {"neither version nor image", func(s *snapshot) { s.Machine.Spec.Version = "" }, nil, []string{"NodeImageUnknown"}},
		"own image": {"an image in kind's layout, by name", func(s *snapshot) {
			s.Object.Spec.Backend.Container = &infrav1.ContainerMachine{Image: "kindest/node:v1.36.0"}
		}, []string{id, "create and start machine " + name + " of kindest/node:v1.36.0: there is none yet"}, []string{"CreatingMachine"}},
		"control plane": {"its image has more in it", func(s *snapshot) { s.Machine.Labels = map[string]string{clusterv1.MachineControlPlaneLabel: ""} }, []string{id, "create and start machine " + name + " of slipway.dev/node-control-plane:v1.36.3: there is none yet"}, []string{"CreatingMachine"}},
		"of a pool": {"the pool's data and version serve; the Machine's data is empty (MP-07)", func(s *snapshot) {
			empty, data := "", "pool-data"
			s.Machine.Spec.Bootstrap.DataSecretName = &empty
			s.Pool = &clusterv1.MachinePool{}
			s.Pool.Spec.Template.Spec.Version = "v1.36.3"
			s.Pool.Spec.Template.Spec.Bootstrap.DataSecretName = &data
		}, []string{id, create}, []string{"CreatingMachine"}},
		"host down":   {"nothing can be asked of it", func(s *snapshot) { s.Fault = down }, nil, []string{"DockerUnreachable"}},
		"crash":       {"killed between create and start", func(s *snapshot) { s.HostMachine = host(backend.Created) }, []string{id, "create and start machine " + name + " of slipway.dev/node:v1.36.3: it exists and does not run"}, []string{"WaitingForMachine"}},
		"old object":  {"a container that an earlier object of this name left", func(s *snapshot) { s.HostMachine = host(backend.Running); s.HostMachine.Owner.UID = "other" }, []string{"delete machine " + name + ": it belongs to an earlier LocalMachine of this name"}, []string{"CreatingMachine"}},
		"after move":  {"the object has another UID, but knows its container", func(s *snapshot) { progress(backend.Succeeded)(s); s.HostMachine.Owner.UID = "other" }, nil, nil},
		"remains":     {"its volume is no machine", func(s *snapshot) { s.HostMachine = backend.Machine{Name: name, State: backend.Orphaned} }, []string{id, create}, []string{"CreatingMachine"}},
		"not started": {"the bootstrap has not run (killed after the start)", progress(backend.NotStarted), []string{"run the bootstrap data of Secret boot in machine " + name + ": the machine runs and is not bootstrapped"}, []string{"Bootstrapping"}},
		"running":     {"its end is an event", progress(backend.InProgress), nil, []string{"Bootstrapping"}},
		"interrupted": {"what is done is unknown", progress(backend.Interrupted), []string{"delete machine " + name + ": a restart interrupted its bootstrap, so it is recreated"}, []string{"BootstrapInterrupted"}},
		"failed":      {"left as it is, to be looked at", progress(backend.Failed), nil, []string{"BootstrapFailed"}},
		"succeeded":   {"nothing to do", progress(backend.Succeeded), nil, nil},
		"in place":    {"a provisioned machine is not touched (IM-07)", func(s *snapshot) { s.Object = localMachine(was); s.HostMachine = host(backend.Running) }, nil, nil},
		"lost":        {"a provisioned machine is never made again", func(s *snapshot) { s.Object = localMachine(was) }, nil, nil},
		"stopped":     {"nor started", func(s *snapshot) { s.Object = localMachine(was); s.HostMachine = host(backend.Stopped) }, nil, nil},
		"deleting":    {"the container goes first", func(s *snapshot) { s.Object = localMachine(deleted); s.HostMachine = host(backend.Running) }, []string{"delete machine " + name + ": the LocalMachine is being deleted"}, []string{"DeletingMachine"}},
		"deleting remains": {"then its volume", func(s *snapshot) {
			s.Object = localMachine(deleted)
			s.HostMachine = backend.Machine{Name: name, State: backend.Orphaned}
		}, []string{"delete machine " + name + ": the LocalMachine is being deleted"}, []string{"DeletingMachine"}},
		"deleting, busy": {"Docker is at it", func(s *snapshot) { s.Object = localMachine(deleted); s.HostMachine = host(backend.Removing) }, nil, []string{"DeletingMachine"}},
		"deleting, down": {"the finalizer stays", func(s *snapshot) {
			s.Object = localMachine(func(o *infrav1.LocalMachine) { deleted(o); o.Spec.ProviderID = "slipway:///x" })
			s.Fault = down
		}, nil, []string{"DockerUnreachable"}},
		"deleting, no host": {"the provider ID is written before a machine is created: it never had one", func(s *snapshot) { s.Object = localMachine(deleted); s.Fault = down }, nil, nil},
		"deleting, host odd": {"it answers, and does not say whether there is a machine", func(s *snapshot) {
			s.Object = localMachine(deleted)
			s.Fault = fault.New(fault.Transient, "DockerError", "odd")
		}, nil, []string{"DockerError"}},
		"gone": {"the finalizer goes, whatever else is missing", func(s *snapshot) { *s = snapshot{Object: localMachine(deleted), HostMachine: s.HostMachine} }, nil, nil},
	}
	for n, tc := range cases {
		t.Run(n, func(t *testing.T) {
			p := decide(newSnapshot(tc.change))
			var did, waits []string
			for _, a := range p.Actions {
				did = append(did, a.String())
			}
			for _, w := range p.Waits {
				waits = append(waits, w.Reason)
			}
			if diff := cmp.Diff(tc.want, did); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
			if diff := cmp.Diff(tc.waits, waits); diff != "" {
				t.Errorf("%s: waits (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
	running := newSnapshot(func(s *snapshot) { s.HostMachine = host(backend.Running) })
	if p := decide(running); len(p.Reads) != 1 || p.Reads[0] != (readProgress{Name: name}) {
		t.Errorf("how far the bootstrap is has to be asked; got %+v", p)
	}
	if p := decide(newSnapshot(func(s *snapshot) { s.Quota = nil })); len(p.Reads) != 1 || p.Reads[0] != (checkQuota{}) || len(p.Actions) != 0 {
		t.Errorf("what a container can have is asked before anything is made; got %+v", p)
	}
	asked := newSnapshot(func(s *snapshot) { progress(backend.InProgress)(s); s.Object = localMachine(nil) })
	if p := decide(asked); len(p.Actions) != 1 || p.Actions[0].String() != "set the provider ID to slipway:///"+name+": it identifies the machine" {
		t.Errorf("IM-02: got %v", p.Actions)
	}
}

// A kube-apiserver may exit after the bootstrap data has failed, as on a slow host. Its reason is read again for a while.
func TestReasonOfFailedControlPlane(t *testing.T) {
	now := time.Date(2026, 11, 28, 18, 0, 0, 0, time.UTC)
	failedAt := func(at time.Time) func(*snapshot) {
		return func(s *snapshot) {
			s.Object.Status.Conditions = []metav1.Condition{{Type: infrav1.BootstrapExecSucceededCondition, Status: metav1.ConditionFalse, Reason: reasonFailed, LastTransitionTime: metav1.NewTime(at)}}
		}
	}
	for name, tc := range map[string]struct {
		change func(*snapshot)
		want   time.Duration
	}{
		"just failed":          {func(*snapshot) {}, serverRecheck},
		"failed a minute ago":  {failedAt(now.Add(-time.Minute)), serverRecheck},
		"failed an hour ago":   {failedAt(now.Add(-time.Hour)), 0},
		"the reason is known":  {func(s *snapshot) { s.Progress.APIServer = "no such plugin" }, 0},
		"the kubelet fails":    {func(s *snapshot) { s.Progress.Kubelet = "unknown flag: --x" }, 0},
		"a worker has no such": {func(s *snapshot) { s.Machine.Labels = nil }, 0},
	} {
		s := newSnapshot(func(s *snapshot) {
			progress(backend.Failed)(s)
			s.Now, s.Machine.Labels = now, map[string]string{clusterv1.MachineControlPlaneLabel: ""}
			tc.change(s)
		})
		if p := decide(s); p.Recheck != tc.want {
			t.Errorf("%s: it is read again in %s, want %s", name, p.Recheck, tc.want)
		}
	}
}

func TestReport(t *testing.T) { // IM-03, IM-04, IM-05, IM-06
	type want struct {
		container, bootstrap, ready string
		message                     string
		provisioned                 bool
		events                      []string
	}
	cases := map[string]struct {
		reason string
		change func(*snapshot)
		out    reconciler.Outcome
		want   want
	}{
		"ready": {"it runs and is bootstrapped", func(s *snapshot) { s.Object = localMachine(was); s.HostMachine = host(backend.Running) }, reconciler.Outcome{},
			want{"True/MachineRunning", "True/BootstrapSucceeded", "True/Ready", "", true, nil}},
		"just succeeded": {"IM-05", progress(backend.Succeeded), reconciler.Outcome{},
			want{"True/MachineRunning", "True/BootstrapSucceeded", "True/Ready", "", true, []string{"Provisioned"}}},
		"no provider ID": {"IM-02: not before the Node can be found", func(s *snapshot) { progress(backend.Succeeded)(s); s.Object = localMachine(nil) }, reconciler.Outcome{},
			want{"True/MachineRunning", "True/BootstrapSucceeded", "True/Ready", "", false, nil}},
		"failed": {"the end of the log is shown", progress(backend.Failed), reconciler.Outcome{},
			want{"True/MachineRunning", "False/BootstrapFailed", "False/NotReady", "line 2", false, []string{"BootstrapFailed"}}},
		"the API server fails": {"its reason is in no other place", func(s *snapshot) { progress(backend.Failed)(s); s.Progress.APIServer = "no such plugin" }, reconciler.Outcome{},
			want{"True/MachineRunning", "False/BootstrapFailed", "False/NotReady", `; kube-apiserver exits with "no such plugin"`, false, []string{"BootstrapFailed"}}},
		"the kubelet fails": {"known long before the script gives up", func(s *snapshot) { progress(backend.InProgress)(s); s.Progress.Kubelet = "unknown flag: --x" }, reconciler.Outcome{},
			want{"True/MachineRunning", "False/KubeletFails", "False/NotReady", `The kubelet exits with "unknown flag: --x" ("slipway logs node`, false, []string{"KubeletFails"}}},
		"failed, by the kubelet": {"the cause is in the first line", func(s *snapshot) { progress(backend.Failed)(s); s.Progress.Kubelet = "unknown flag: --x" }, reconciler.Outcome{},
			want{"True/MachineRunning", "False/BootstrapFailed", "False/NotReady", `; the kubelet exits with "unknown flag: --x". Correct the bootstrap data, then delete the Machine`, false, []string{"BootstrapFailed"}}},
		"down": {"Docker is absent: a condition and an event", func(s *snapshot) { s.Fault = down }, reconciler.Outcome{},
			want{"False/DockerUnreachable", "Unknown/WaitingForMachine", "False/NotReady", "Docker does not respond", false, []string{"DockerUnreachable"}}},
		"down later": {"the node may well run", func(s *snapshot) { s.Object = localMachine(was); s.Fault = down }, reconciler.Outcome{},
			want{"Unknown/DockerUnreachable", "True/BootstrapSucceeded", "Unknown/ReadyUnknown", "Docker does not respond", true, []string{"DockerUnreachable"}}},
		"image absent": {"the message says how to get it", func(*snapshot) {}, reconciler.Outcome{Failed: createMachine{Name: "x"}, Err: fault.New(fault.Invalid, "ImageAbsent", "slipway image build")},
			want{"False/ImageAbsent", "Unknown/WaitingForMachine", "False/NotReady", "slipway image build", false, []string{"ImageAbsent"}}},
		"API error": {"texts of API conflicts are not for users", progress(backend.InProgress), reconciler.Outcome{Failed: setProviderID{}, Err: errors.New("conflict")},
			want{"True/MachineRunning", "False/Bootstrapping", "False/NotReady", "runs in machine", false, nil}},
		"bad data": {"what is wrong with the data", progress(backend.NotStarted), reconciler.Outcome{Failed: runBootstrap{}, Err: fault.New(fault.Invalid, "InvalidCloudConfig", "not YAML")},
			want{"True/MachineRunning", "False/InvalidCloudConfig", "False/NotReady", "not YAML", false, []string{"InvalidCloudConfig"}}},
		"removed": {"by hand; the machine stays provisioned", func(s *snapshot) { s.Object = localMachine(was) }, reconciler.Outcome{},
			want{"False/MachineRemoved", "True/BootstrapSucceeded", "False/NotReady", "by hand", true, []string{"MachineRemoved"}}},
		"stopped": {"says how to start it", func(s *snapshot) { s.Object = localMachine(was); s.HostMachine = host(backend.Stopped) }, reconciler.Outcome{},
			want{"False/MachineStopped", "True/BootstrapSucceeded", "False/NotReady", "docker start " + name, true, []string{"MachineStopped"}}},
		"being removed": {"it will not come back: there is nothing to start", func(s *snapshot) { s.Object = localMachine(was); s.HostMachine = host(backend.Removing) }, reconciler.Outcome{},
			want{"False/MachineRemoved", "True/BootstrapSucceeded", "False/NotReady", "have it remediated at once (annotation cluster.x-k8s.io/remediate-machine)", true, []string{"MachineRemoved"}}},
		"down, then": {"what is known of it stays", func(s *snapshot) { s.Object = localMachine(was); s.Fault, s.HostMachine = down, backend.Machine{} }, reconciler.Outcome{},
			want{"Unknown/DockerUnreachable", "True/BootstrapSucceeded", "Unknown/ReadyUnknown", "Docker does not respond", true, []string{"DockerUnreachable"}}},
		"no node image": {"said where the bootstrap is looked for", progress(backend.Unusable), reconciler.Outcome{},
			want{"True/MachineRunning", "False/NotANodeImage", "False/NotReady", "line 1", false, []string{"NotANodeImage"}}},
		"foreign ID": {"its status may say anything", func(s *snapshot) { s.Object = localMachine(was); s.Name, s.HostMachine = "", backend.Machine{} }, reconciler.Outcome{},
			want{"False/ForeignProviderID", "True/BootstrapSucceeded", "False/NotReady", "create it without", true, []string{"ForeignProviderID"}}},
		"deleting": {"over the whole life", func(s *snapshot) {
			s.Object = localMachine(func(o *infrav1.LocalMachine) { was(o); deleted(o) })
			s.HostMachine = host(backend.Removing)
		}, reconciler.Outcome{},
			want{"False/MachineAbsent", "True/BootstrapSucceeded", "False/NotReady", "Deleting: The machine " + name + " is being deleted", true, nil}},
	}
	for n, tc := range cases {
		t.Run(n, func(t *testing.T) {
			s := newSnapshot(tc.change)
			r := report(s, decide(s), tc.out)
			status := r.Status.(infrav1.LocalMachineStatus)
			set := condition.Set(status.Conditions)
			short := func(name string) string { c := set.Get(name); return string(c.Status) + "/" + c.Reason }
			got := want{container: short(infrav1.MachineProvisionedCondition), bootstrap: short(infrav1.BootstrapExecSucceededCondition),
				ready: short(clusterv1.ReadyCondition), provisioned: ptr.Deref(status.Initialization.Provisioned, false)}
			for _, e := range r.Events {
				got.events = append(got.events, e.Reason)
			}
			if m := set.Get(clusterv1.ReadyCondition).Message; strings.Contains(m, tc.want.message) {
				got.message = tc.want.message
			} else {
				got.message = m
			}
			if diff := cmp.Diff(tc.want, got, cmp.AllowUnexported(want{})); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
			if status.FailureDomain != "zone-a" {
				t.Errorf("IM-03, FD-01: got %q", status.FailureDomain)
			}
			if status.InstanceID != "id" && ptr.Deref(s.Object.Status.Initialization.Provisioned, false) {
				t.Errorf("the container's ID is lost: %+v", status)
			}
			if s.HostMachine.State.Exists() {
				want := clusterv1.MachineAddresses{{Type: "Hostname", Address: "lm"}, {Type: "InternalIP", Address: "172.16.0.2"}}
				if diff := cmp.Diff(want, status.Addresses); diff != "" {
					t.Errorf("IM-04 (-want +got):\n%s", diff)
				}
			}
			s.Object.Status = status
			if again := report(s, decide(s), tc.out); len(again.Events) != 0 {
				t.Errorf("an event is for a change, not for a pass; got %+v", again.Events)
			}
		})
	}
}

func TestSpec(t *testing.T) {
	s := newSnapshot(func(s *snapshot) {
		s.Cluster.Spec.ClusterNetwork.Pods.CIDRBlocks = []string{"10.244.0.0/16"}
		s.Cluster.Spec.ClusterNetwork.Services.CIDRBlocks = []string{"172.16.16.0/20"}
		s.Object.Spec.Backend.Container = &infrav1.ContainerMachine{ExtraMounts: []infrav1.Mount{{HostPath: "/a", ContainerPath: "/b", ReadOnly: true}}}
	})
	s.Object.Spec.Backend.Container.Resources.CPUs = 2
	s.Quota.Mounts = []backend.Mount{{HostPath: "/resolved", MachinePath: "/b", ReadOnly: true}}
	s.Capabilities = localcontainer.MachineCapabilities(s.request())
	got := desiredMachine(s)
	want := backend.MachineSpec{
		Owner: backend.Owner{Cluster: "c", Object: types.NamespacedName(key), UID: "lm-uid"}, Name: name, Hostname: "lm", Image: "slipway.dev/node:v1.36.3",
		ProviderID: backend.ProviderID(name), Zone: "zone-a", Version: "v1.36.3",
		Network:   backend.Ref{Object: types.NamespacedName{Namespace: "ns", Name: "lc"}, Name: "net"},
		Ranges:    []netip.Prefix{netip.MustParsePrefix("10.244.0.0/16"), netip.MustParsePrefix("172.16.16.0/20")},
		Mounts:    s.Quota.Mounts,
		Resources: backend.Resources{CPUs: 2, MemoryMiB: 8192, Processes: 32768},
		Maximum:   policy.Default().Maxima.Nodes,
		Policy:    allowed(),
	}
	if diff := cmp.Diff(want, got, cmp.Comparer(func(a, b netip.Prefix) bool { return a == b })); diff != "" {
		t.Errorf("mounts are those that were resolved, resources what is asked for, else the most that is allowed (-want +got):\n%s", diff)
	}
	if s.Machine.Spec.ProviderID = "slipway:///x"; !desiredMachine(s).ProvisionedBefore {
		t.Error("a Machine that knows it as provisioned says that it ran, also after a move")
	}
}

func TestAddressesAreNeverEmpty(t *testing.T) { // IM-04: the API refuses an address without a value
	cases := map[string]struct {
		reason string
		m      backend.Machine
		want   int
	}{
		"nothing known": {"Docker did not answer, or the container is not made yet", backend.Machine{}, 0},
		"only a name":   {"the container has no address yet", backend.Machine{Hostname: "m"}, 1},
	}
	for name, tc := range cases {
		if got := addresses(tc.m); len(got) != tc.want {
			t.Errorf("%s: got %v (%s)", name, got, tc.reason)
		}
	}
}

// An event is one line, and has the last one of a log.
func TestEventOfAFailedBootstrap(t *testing.T) {
	for message, want := range map[string]string{
		"It ended" + lastLines + "  line 1\n  line 2": "It ended; its last line: line 2",
		"It ended" + lastLines:                        "It ended; its last line: ",
		"another":                                     "another",
	} {
		if got := singleLine(message); got != want {
			t.Errorf("%q: %q, want %q", message, got, want)
		}
	}
}

// A node image of another version than the Machine has is said once the machine is made from it, and breaks nothing. Of a machine that was
// updated in place afterwards nothing is said.
func TestVersionMatches(t *testing.T) { // IM-05
	of := func(version string, object *infrav1.LocalMachine) func(*snapshot) {
		return func(s *snapshot) {
			progress(backend.Succeeded)(s)
			s.Object = object
			s.Machine = coreMachine(func(m *clusterv1.Machine) { m.Spec.Version = version })
		}
	}
	said := func(o *infrav1.LocalMachine) {
		was(o)
		o.Status.Conditions = []metav1.Condition{{Type: infrav1.VersionMatchesCondition, Status: "False", Reason: "AnotherVersion"}}
	}
	for name, tc := range map[string]struct {
		change func(*snapshot)
		want   bool
	}{
		"the same":                  {of("v1.36.3", localMachine(withID)), false},
		"another":                   {of("v1.35.4", localMachine(withID)), true},
		"none":                      {of("", localMachine(withID)), false},
		"it was said":               {of("v1.35.4", localMachine(said)), true},
		"it was said, and the same": {of("v1.36.3", localMachine(said)), false},
		"updated in place":          {of("v1.35.4", localMachine(was)), false},
		"deleted":                   {of("v1.35.4", localMachine(func(o *infrav1.LocalMachine) { said(o); deleted(o) })), false},
		"not made yet": {func(s *snapshot) {
			of("v1.35.4", localMachine(nil))(s)
			s.HostMachine = backend.Machine{State: backend.Absent}
		}, false},
	} {
		s := newSnapshot(tc.change)
		set := condition.Set(report(s, decide(s), reconciler.Outcome{}).Status.(infrav1.LocalMachineStatus).Conditions)
		got := set.Get(infrav1.VersionMatchesCondition)
		if (got != nil) != tc.want || got != nil && (got.Status != "False" || !strings.Contains(got.Message, "has Kubernetes v1.36.3, but spec.version of the Machine is v1.35.4")) {
			t.Errorf("%s: %+v", name, got)
		}
		if ready := set.Get(clusterv1.ReadyCondition); tc.want && ready.Status != "True" {
			t.Errorf("%s: it is not ready: %+v", name, ready)
		}
	}
}

// A machine that ends as soon as it is started says how, and what its image probably is.
func TestMachineThatDoesNotKeepRunning(t *testing.T) {
	for name, c := range map[string]struct{ detail, want string }{
		"ends each time": {"it ended with exit code 0", "stopped (it ended with exit code 0) and is being restarted; if it stops every time, " +
			"its image slipway.dev/node:v1.36.3 is not a node image: see slipway image list"},
		"has not begun": {"", "is being started"},
	} {
		s := newSnapshot(func(s *snapshot) { s.HostMachine = host(backend.Stopped); s.HostMachine.Detail = c.detail })
		if p := decide(s); len(p.Waits) != 1 || !strings.HasSuffix(p.Waits[0].Message, c.want) {
			t.Errorf("%s: %+v", name, p.Waits)
		}
	}
}
