package controlplane

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"
	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/kubeadm/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/slipwayhq/slipway/internal/condition"
	"github.com/slipwayhq/slipway/internal/kubeadm/secrets"
	"github.com/slipwayhq/slipway/internal/machines"
	"github.com/slipwayhq/slipway/internal/machines/clone"
	"github.com/slipwayhq/slipway/internal/reconciler"
	"github.com/slipwayhq/slipway/sdk/contract"
)

func texts(p reconciler.Plan) []string {
	var out []string
	for _, q := range p.Reads {
		out = append(out, "ask: "+q.String())
	}
	for _, a := range p.Actions {
		if _, conditions := a.(setConditions); !conditions {
			out = append(out, "do: "+a.String())
		}
	}
	for _, w := range p.Waits {
		out = append(out, "wait: "+w.Message)
	}
	return out
}

// running is a control plane of three that runs.
func running(t *testing.T) *world {
	t.Helper()
	w := newWorld(3).withCertificates(t)
	w.run(t)
	if problem := w.isWhole(); problem != "" {
		t.Fatal(problem)
	}
	w.log = nil
	return w
}

func TestDecide(t *testing.T) { // KC-01, KC-02, KC-03, KC-07, KC-25, KC-30
	fresh := func(t *testing.T) *world { return newWorld(3).withCertificates(t) }
	more := func(s *snapshot) {
		s.ControlPlane = s.ControlPlane.DeepCopy()
		s.ControlPlane.Spec.Replicas = new(int32(5))
	}
	first := func(s snapshot) *clusterv1.Machine { return s.Machines[0].Machine }
	expire := func(s *snapshot) {
		config := s.Configs[first(*s).Spec.Bootstrap.ConfigRef.Name].DeepCopy()
		config.Annotations = map[string]string{clusterv1.MachineCertificatesExpiryDateAnnotation: s.Now.Add(-time.Hour).UTC().Format(time.RFC3339)}
		s.Configs[config.Name] = config
	}
	restart := func(s *snapshot) {
		s.ControlPlane = s.ControlPlane.DeepCopy()
		s.ControlPlane.Spec.Rollout.After = metav1.NewTime(s.Now.Add(-time.Second))
	}
	adoptable := func(version, kind string) func(*snapshot) {
		return func(s *snapshot) {
			m := &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Name: "a"}}
			m.Spec.Version = version
			m.Spec.Bootstrap.ConfigRef = clusterv1.ContractVersionedObjectReference{APIGroup: bootstrapv1.GroupVersion.Group, Kind: kind, Name: "a"}
			s.Adoptable = []*clusterv1.Machine{m}
		}
	}
	for name, tc := range map[string]struct {
		reason string
		world  func(*testing.T) *world
		change func(*snapshot)
		want   []string
	}{
		"no Cluster":        {"", fresh, func(s *snapshot) { s.Cluster = nil }, []string{"wait: Waiting for the Cluster to own this control plane"}},
		"no infrastructure": {"", fresh, func(s *snapshot) { s.Cluster = &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "c"}} }, []string{"wait: Waiting for the infrastructure of Cluster c"}},
		"new":               {"", fresh, func(*snapshot) {}, []string{"do: create Machine kcp-r0010: initialize the cluster"}},
		"no Secret":         {"before the first Machine it is created", fresh, func(s *snapshot) { delete(s.Secrets, secrets.Proxy) }, []string{"do: create Secret c-proxy: it does not exist", "wait: Secret c-proxy is being created (preflight check Certificates)"}},
		"first Machine": {"explain shows what it waits for", func(t *testing.T) *world {
			w := newWorld(1).withCertificates(t)
			w.pass(-1)
			return w
		}, func(*snapshot) {}, []string{"wait: Waiting for the first Machine to initialize the cluster"}},
		"whole":       {"", running, func(*snapshot) {}, nil},
		"stale":       {"what changes Machines is decided by what is the case now", running, func(s *snapshot) { more(s); s.Fresh = false }, []string{"ask: Nodes, Pods and etcd members", "do: create Machine"}},
		"long ago":    {"", running, func(s *snapshot) { s.Fresh, s.Now = false, s.Now.Add(time.Hour) }, []string{"ask: Nodes, Pods and etcd members"}},
		"Secret gone": {"another authority would not be that of the cluster", running, func(s *snapshot) { more(s); delete(s.Secrets, secrets.CA) }, []string{"wait: Secret c-ca does not exist", "wait: Secret c-ca does not exist"}},
		"two certificates": {"kube-controller-manager of a new node would not start with them", running, func(s *snapshot) {
			more(s)
			ca := s.Secrets[secrets.CA].DeepCopy()
			ca.Data["tls.crt"] = append(ca.Data["tls.crt"], s.Secrets[secrets.Etcd].Data["tls.crt"]...)
			s.Secrets[secrets.CA] = ca
		}, []string{"do: write Secret c-kubeconfig: the CA has changed", "wait: Secret c-ca has 2 certificates", "wait: Secret c-ca has 2 certificates"}},
		"kubeconfig gone": {"", running, func(s *snapshot) { delete(s.Secrets, secrets.Admin); s.Kubeconfig = secrets.Kubeconfig{} }, []string{"do: write Secret c-kubeconfig: it does not exist or cannot be read"}},
		"endpoint":        {"", running, func(s *snapshot) { s.Cluster = s.Cluster.DeepCopy(); s.Cluster.Spec.ControlPlaneEndpoint.Host = "h" }, []string{"do: write Secret c-kubeconfig: the endpoint is https://h:6443"}},
		"half a year":     {"", running, func(s *snapshot) { s.Now = s.Now.AddDate(0, 7, 0); s.KubeadmObjects.At = s.Now }, []string{"do: write Secret c-kubeconfig: its client certificate has passed half of its lifetime"}},
		"template gone":   {"", running, func(s *snapshot) { more(s); s.Infra.Object.Unstructured = nil }, []string{"wait: FooMachineTemplate it does not exist (preflight check InfrastructureTemplate)"}},
		"Pod down": {"", running, func(s *snapshot) {
			more(s)
			s.Workload.Pods["kube-scheduler-n-"+first(*s).Name].Status.Phase = corev1.PodPending
			s.Workload.Pods["kube-scheduler-n-"+first(*s).Name].Status.Conditions = nil
		}, []string{"wait: Machine kcp-r0010 has SchedulerPodHealthy False"}},
		"member down": {"", running, func(s *snapshot) {
			more(s)
			e := s.Workload.Etcd.Statuses["n-"+first(*s).Name]
			e.Problem = "silent"
			s.Workload.Etcd.Statuses["n-"+first(*s).Name] = e
		}, []string{"wait: Machine kcp-r0010 has EtcdMemberHealthy False: silent"}},
		"certificate expired":           {"something else asks for another Machine", running, func(s *snapshot) { more(s); expire(s) }, []string{"wait: Machine kcp-r0010 has APIServerPodHealthy False: The certificate of the API server on Node n-kcp-r0010 expired on"}},
		"certificate expired, replaced": {"nothing else ends it", running, func(s *snapshot) { expire(s); restart(s) }, []string{"do: create Machine kcp-r0090: replace Machines kcp-r0010"}},
		"certificate renewed": {"on the node", running, func(s *snapshot) {
			expire(s)
			s.Workload.Expiry = map[string]time.Time{"n-" + first(*s).Name: s.Now.AddDate(1, 0, 0)}
		}, []string{"do: record on KubeadmConfig kcp-r0010 that the certificates of its Machine expire at"}},
		"version skew": {"", running, func(s *snapshot) { more(s); s.ControlPlane.Spec.Version = "v1.38.0" }, []string{"wait: Version v1.38.0 is more than one minor version newer"}},
		"topology": {"its version comes first", running, func(s *snapshot) {
			more(s)
			s.Cluster = s.Cluster.DeepCopy()
			s.Cluster.Spec.Topology.ClassRef.Name, s.Cluster.Spec.Topology.Version = "k", "v1.36.0"
		}, []string{"wait: Waiting for the topology of Cluster c to set version v1.36.0"}},
		"etcd unknown": {"", running, func(s *snapshot) { more(s); s.Workload.Etcd.Problem = "no leader" }, []string{"wait: Machine kcp-r0010 has EtcdMemberHealthy", "wait: no leader (preflight check EtcdMembers)"}},
		"external etcd": {"its members are not touched", running, func(s *snapshot) {
			s.ControlPlane = s.ControlPlane.DeepCopy()
			s.ControlPlane.Spec.KubeadmConfigSpec.ClusterConfiguration.Etcd.External.Endpoints = []string{"https://e"}
			s.Workload.Etcd.Members = nil
		}, []string{"wait: Secret c-apiserver-etcd-client does not exist", "wait: Secret c-apiserver-etcd-client does not exist"}},
		"stray member": {"", running, func(s *snapshot) {
			m := s.Workload.Etcd.Members[0]
			m.ID, m.Name = 99, "gone"
			s.Workload.Etcd.Members = append(s.Workload.Etcd.Members, m)
			for node, status := range s.Workload.Etcd.Statuses {
				status.Members = s.Workload.Etcd.Members
				s.Workload.Etcd.Statuses[node] = status
			}
		}, []string{"do: remove the etcd member gone: no Machine and no Node runs it"}},
		"adoptable":         {"", fresh, adoptable("v1.35.0", configKind), []string{"do: adopt Machine a", "wait: Adopting Machine a"}},
		"too old":           {"", fresh, adoptable("v1.33.0", configKind), []string{"wait: Machine a cannot be adopted: its version v1.33.0"}},
		"of another config": {"", fresh, adoptable("v1.35.0", "Other"), []string{"wait: Machine a cannot be adopted: its bootstrap config is not a KubeadmConfig"}},
		"restored": {"its Machines may come later", fresh, func(s *snapshot) {
			s.ControlPlane = s.ControlPlane.DeepCopy()
			s.ControlPlane.CreationTimestamp = metav1.NewTime(began.Add(time.Hour))
			s.ControlPlane.UID = "new"
		}, []string{"wait: The kubeconfig of Cluster c is older than this control plane"}},
		"all Machines gone": {"another first one would be another cluster", fresh, func(s *snapshot) {
			s.ControlPlane = s.ControlPlane.DeepCopy()
			s.ControlPlane.Status.Initialization.ControlPlaneInitialized = new(true)
		}, []string{"wait: The control plane is initialized, but none of its Machines exist"}},
		"watch label": {"", running, func(s *snapshot) { s.Hidden = []string{"h"} }, []string{"wait: Label cluster.x-k8s.io/watch-filter of this control plane is missing on Machine h"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := tc.world(t).snapshot()
			tc.change(&s)
			if s.Cluster != nil {
				s = s.compared()
			}
			got := texts(decide(s))
			if len(got) != len(tc.want) {
				t.Fatalf("%s: %s", tc.reason, strings.Join(got, "\n"))
			}
			for i, want := range tc.want {
				if !strings.HasPrefix(got[i], want) {
					t.Errorf("%s: %s, want %s", tc.reason, got[i], want)
				}
			}
		})
	}
}

// A control plane is deleted after the workers, all Machines at once, whose hooks go as they do.
func TestDeletion(t *testing.T) { // KC-31
	s := running(t).snapshot()
	s.ControlPlane = s.ControlPlane.DeepCopy()
	s.ControlPlane.DeletionTimestamp = new(metav1.NewTime(s.Now))
	s.Workers = 2
	if diff := cmp.Diff([]string{"wait: Waiting for 2 Machines and MachinePools of workers to be deleted"}, texts(decide(s))); diff != "" {
		t.Error(diff)
	}
	deleting := condition.Set(report(s, decide(s), reconciler.Outcome{}).Status.(controlplanev1.KubeadmControlPlaneStatus).Conditions).Get("Deleting")
	if deleting.Status != "True" || deleting.Reason != "WaitingForWorkersDeletion" {
		t.Errorf("Deleting %+v", deleting)
	}
	s.Workers = 0
	m := s.Machines[0].DeepCopy()
	m.DeletionTimestamp = s.ControlPlane.DeletionTimestamp
	s.Machines[0].Machine, s.Machines[0].Deleted = m, true
	want := []string{
		"do: remove the hook of Machine kcp-r0010: the control plane is deleted", "do: delete Machines kcp-r0020, kcp-r0030: the KubeadmControlPlane is deleted",
		"wait: Waiting for 3 Machines to be deleted",
	}
	if diff := cmp.Diff(want, texts(decide(s))); diff != "" {
		t.Error(diff)
	}
	s.Machines = nil
	if p := decide(s); !p.Idle() {
		t.Errorf("nothing is left: %v", texts(p))
	}
}

// The status of a control plane that runs, and of one that waits.
func TestReport(t *testing.T) { // KC-15, KC-16, KC-32
	w := running(t)
	w.machines[w.names()[0]].Spec.Version = "v1.34.0"
	s := w.snapshot()
	status := report(s, decide(s), reconciler.Outcome{}).Status.(controlplanev1.KubeadmControlPlaneStatus)
	if len(status.Versions) != 2 || status.Version != "v1.34.0" || *status.Replicas != 3 || *status.UpToDateReplicas != 2 ||
		status.Selector != "cluster.x-k8s.io/cluster-name=c,cluster.x-k8s.io/control-plane" ||
		!*status.Initialization.ControlPlaneInitialized || status.ObservedGeneration != 1 {
		t.Errorf("status %+v", status)
	}
	var got []string
	for _, c := range status.Conditions {
		got = append(got, c.Type+" "+string(c.Status)+" "+c.Reason)
	}
	want := []string{
		"Initialized True Initialized", "CertificatesAvailable True Available", "EtcdClusterHealthy True Healthy", "ControlPlaneComponentsHealthy True Healthy",
		"Available True Available", "MachinesReady Unknown ReadyUnknown", "MachinesUpToDate False NotUpToDate", "RollingOut True RollingOut",
		"ScalingUp False NotScalingUp", "ScalingDown False NotScalingDown", "Remediating False NotRemediating", "AddonsUpToDate True UpToDate", "AddonsAvailable Unknown NotYetKnown", "Deleting False NotDeleting",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	legacy := status.Deprecated.V1Beta1
	if legacy.UnavailableReplicas != 3 || len(legacy.Conditions) != 8 {
		t.Errorf("v1beta1 %+v", legacy)
	}
}

// TestCertificatesWhileWaiting checks that missing Secrets are reported while the control plane waits before it creates them.
func TestCertificatesWhileWaiting(t *testing.T) {
	s := newWorld(3).withCertificates(t).snapshot()
	delete(s.Secrets, secrets.Proxy)
	s.Hidden = []string{"h"}
	s = s.compared()
	available := func(s snapshot) string {
		status := report(s, decide(s), reconciler.Outcome{}).Status.(controlplanev1.KubeadmControlPlaneStatus)
		return string(condition.Set(status.Conditions).Get("CertificatesAvailable").Status)
	}
	if got := available(s); got != "False" {
		t.Errorf("while it waits: %s", got)
	}
	s.Hidden = nil
	if got := available(s); got != "True" {
		t.Errorf("created in this reconciliation: %s", got)
	}
}

// The leader of etcd whose kubelet is gone runs on, and cannot be asked to hand over: it is removed by the others.
func TestLeaderWithoutKubelet(t *testing.T) { // KC-11
	w := running(t)
	name := w.names()[0]
	node := "n-" + name
	w.leader = node
	w.delete(name)
	set(w.machines[name], metav1.Condition{Type: clusterv1.MachineDeletingCondition, Status: "True", Reason: clusterv1.MachineDeletingWaitingForPreTerminateHookReason})
	want := func(lines ...string) {
		t.Helper()
		if diff := cmp.Diff(lines, actions(w.snapshot(), w)); diff != "" {
			t.Error(diff)
		}
	}
	want("move the etcd leader from Node "+node+" to Node "+w.newest()+": its Machine is being deleted", "remove the etcd member "+node+": Machine "+name+" is being deleted",
		"remove the hook of Machine "+name+": its etcd member is removed")
	w.silent = node
	want("remove the etcd member "+node+": Machine "+name+" is being deleted", "remove the hook of Machine "+name+": its etcd member is removed")
}

// actions are what is decided but for conditions, once those are set.
func actions(s snapshot, w *world) []string {
	for _, a := range decide(s).Actions {
		if set, is := a.(setConditions); is {
			w.apply(s, set)
		}
	}
	var out []string
	for _, text := range texts(decide(w.snapshot())) {
		if do, is := strings.CutPrefix(text, "do: "); is {
			out = append(out, do)
		}
	}
	return out
}

// newest is the Node of the newest Machine.
func (w *world) newest() string {
	var newest *clusterv1.Machine
	for _, name := range w.names() {
		if m := w.machines[name]; newest == nil || m.CreationTimestamp.After(newest.CreationTimestamp.Time) {
			newest = m
		}
	}
	return newest.Status.NodeRef.Name
}

// How often the workload cluster is read: while kubeadm init is about to end, everything waits for that.
func TestReadInterval(t *testing.T) { // KC-16
	w := running(t)
	s := w.snapshot()
	if got := s.readInterval(); got != healthyInterval {
		t.Errorf("of a healthy one: %s", got)
	}
	s.Connection.ConsecutiveFailures = 1
	if got := s.readInterval(); got != soon {
		t.Errorf("of one whose probes fail: %s", got)
	}
	s.ControlPlane = s.ControlPlane.DeepCopy()
	s.ControlPlane.Status.Initialization.ControlPlaneInitialized = nil
	s.Workload.Initialized = false
	for _, m := range s.Machines {
		m.CreationTimestamp = metav1.NewTime(s.Now)
	}
	if got := s.readInterval(); got != verySoon {
		t.Errorf("with a Node, before the end of kubeadm init: %s", got)
	}
	for _, m := range s.Machines {
		m.Status.NodeRef = clusterv1.MachineNodeReference{}
	}
	if got := s.readInterval(); got != soon {
		t.Errorf("without a Node: %s", got)
	}
	s.Now = s.Now.Add(2 * newFor)
	if got := s.readInterval(); got != unhealthyInterval {
		t.Errorf("where that takes long: %s", got)
	}
}

// A Machine whose infrastructure ends is a reason to read the workload cluster at once: it may have been one too many.
func TestReadsWhenAMachineIsLost(t *testing.T) { // KC-16
	w := running(t)
	s := w.snapshot()
	s.Fresh = false
	if s.isReadDue() {
		t.Error("what was read now is read again")
	}
	m := w.machines[w.names()[0]]
	set(m, metav1.Condition{Type: clusterv1.InfrastructureReadyCondition, Status: "False", LastTransitionTime: metav1.NewTime(w.now.Add(time.Second))})
	s = w.snapshot()
	if s.Fresh = false; !s.isReadDue() {
		t.Error("a Machine that is lost is no reason to read")
	}
	s.Workload.At = s.Workload.At.Add(time.Second)
	if s.isReadDue() {
		t.Error("it is read again and again")
	}
}

// A first Machine whose bootstrap has failed keeps all others waiting, until a person deletes it.
func TestFirstMachineFailed(t *testing.T) {
	m := &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Name: "a"}}
	m.Spec.InfrastructureRef = clusterv1.ContractVersionedObjectReference{Kind: "FooMachine", Name: "a"}
	for reason, want := range map[string]string{
		"Bootstrapping":                "Waiting for the first Machine to initialize the cluster",
		contract.ReasonBootstrapFailed: "Machine a cannot initialize the cluster",
	} {
		infra := &unstructured.Unstructured{Object: map[string]any{"status": map[string]any{"conditions": []any{
			map[string]any{"type": "BootstrapExecSucceeded", "status": "False", "reason": reason},
		}}}}
		s := snapshot{ControlPlane: &controlplanev1.KubeadmControlPlane{}, Machines: machines.OwnedMachines{{Machine: m}},
			Clones: &clone.Clones{Items: map[clone.Key]contract.Object{{Kind: "FooMachine", Name: "a"}: {Unstructured: infra, Contract: contract.V1Beta2}}}}
		if got := s.notInitialized(); !strings.HasPrefix(got, want) {
			t.Errorf("%s: %q, want %q", reason, got, want)
		}
		s.Machines[0].Deleted = true
		if got := s.notInitialized(); !strings.HasPrefix(got, "Waiting for the first") {
			t.Errorf("deleted already: %q", got)
		}
	}
}
