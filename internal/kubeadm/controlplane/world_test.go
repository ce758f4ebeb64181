package controlplane

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"
	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/kubeadm/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/yaml"

	"github.com/slipwayhq/slipway/internal/condition"
	"github.com/slipwayhq/slipway/internal/kube"
	"github.com/slipwayhq/slipway/internal/kubeadm/controlplane/addons"
	controlplaneworkload "github.com/slipwayhq/slipway/internal/kubeadm/controlplane/workload"
	"github.com/slipwayhq/slipway/internal/kubeadm/etcd"
	"github.com/slipwayhq/slipway/internal/kubeadm/secrets"
	"github.com/slipwayhq/slipway/internal/machines"
	"github.com/slipwayhq/slipway/internal/machines/clone"
	"github.com/slipwayhq/slipway/internal/reconciler"
	slipwayworkload "github.com/slipwayhq/slipway/internal/workload"
	"github.com/slipwayhq/slipway/sdk/contract"
)

var began = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

const infraTemplate = "{apiVersion: i/v1, kind: FooMachineTemplate, metadata: {namespace: ns, name: it, uid: it, ownerReferences: [{apiVersion: cluster.x-k8s.io/v1beta2, kind: Cluster, name: c, uid: cluster}]}, spec: {template: {spec: {cpus: 2}}}}"

func object(text string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), &u.Object); err != nil {
		panic(err)
	}
	return u
}

func newPlane(replicas int32) *controlplanev1.KubeadmControlPlane {
	p := &controlplanev1.KubeadmControlPlane{ObjectMeta: metav1.ObjectMeta{
		Namespace: "ns", Name: "kcp", UID: "kcp", Generation: 1, CreationTimestamp: metav1.NewTime(began),
		Finalizers: []string{controlplanev1.KubeadmControlPlaneFinalizer}, Labels: map[string]string{clusterv1.ClusterNameLabel: "c"},
		OwnerReferences: []metav1.OwnerReference{{APIVersion: clusterv1.GroupVersion.String(), Kind: "Cluster", Name: "c", UID: "cluster"}},
	}}
	p.Spec.Replicas, p.Spec.Version = &replicas, "v1.35.4"
	p.Spec.MachineTemplate.Spec.InfrastructureRef = clusterv1.ContractVersionedObjectReference{APIGroup: "i", Kind: "FooMachineTemplate", Name: "it"}
	return p
}

func newCluster() *clusterv1.Cluster {
	c := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "c", UID: "cluster"}}
	c.Spec.ControlPlaneEndpoint = clusterv1.APIEndpoint{Host: "10.0.0.1", Port: 6443}
	c.Spec.ControlPlaneRef = clusterv1.ContractVersionedObjectReference{APIGroup: controlplanev1.GroupVersion.Group, Kind: planeKind, Name: "kcp"}
	c.Status.Initialization.InfrastructureProvisioned = new(true)
	return c
}

// node is what runs on a Machine.
type node struct {
	// host is the Machine whose host this is, number what is in its address.
	host    string
	number  int
	created time.Time
	// down: nothing on it answers, since then. gone: the host is gone, and its Node object is left.
	down, gone bool
	since      time.Time
	// learner: its member of etcd has no vote yet. unnamed: kubeadm has added the member, and etcd has not started.
	learner, unnamed bool
	// hidden: the Node object does not exist. providerID is what it claims.
	hidden     bool
	providerID string
}

// runs reports whether the host runs a member that agrees with others.
func (n *node) runs() bool { return n != nil && !n.down && !n.gone && !n.unnamed }

func (n *node) address() string { return fmt.Sprintf("10.0.0.%d", n.number) }

// world is a control plane with Machines, Nodes and etcd, without an API.
type world struct {
	now      time.Time
	plane    *controlplanev1.KubeadmControlPlane
	cluster  *clusterv1.Cluster
	machines map[string]*clusterv1.Machine
	configs  map[string]*bootstrapv1.KubeadmConfig
	infra    map[string]*unstructured.Unstructured
	nodes    map[string]*node
	members  map[string]uint64
	leader   string
	// silent is a Node whose kubelet does not answer; what runs on it runs on.
	silent   string
	template *unstructured.Unstructured
	secrets  secrets.Secrets
	// kubeconfig is what is in that Secret.
	kubeconfig secrets.Kubeconfig
	numbers    int
	hosts      int
	// broken is what the controller must never do, and has done.
	broken []string
	// warnings are the events of that kind.
	warnings []string
	// kubeadm is what kubeadm left, in a workload cluster of its own; left is what was read of it last.
	kubeadm client.Client
	left    addons.KubeadmState
	log     []string
}

func newWorld(replicas int32) *world {
	w := &world{
		now: began, plane: newPlane(replicas), cluster: newCluster(), machines: map[string]*clusterv1.Machine{}, configs: map[string]*bootstrapv1.KubeadmConfig{},
		infra: map[string]*unstructured.Unstructured{}, nodes: map[string]*node{}, members: map[string]uint64{}, template: object(infraTemplate), secrets: secrets.Secrets{},
	}
	for _, p := range []secrets.Purpose{secrets.CA, secrets.Etcd, secrets.Proxy, secrets.SA, secrets.Admin} {
		w.secrets[p] = &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: p.SecretName("c"), CreationTimestamp: metav1.NewTime(began), OwnerReferences: []metav1.OwnerReference{ownerReference(w.plane)}},
			Type:       clusterv1.ClusterSecretType,
		}
	}
	w.kubeadm = fake.NewClientBuilder().WithScheme(newScheme()).WithObjects(leftByKubeadm()...).Build()
	return w
}

// readLeft reads what kubeadm left, where it was changed.
func (w *world) readLeft() addons.KubeadmState {
	if w.left.At.IsZero() {
		var err error
		if w.left, err = addons.Read(context.Background(), w.kubeadm, w.now); err != nil {
			panic(err)
		}
	}
	out := w.left
	out.At = w.now
	return out
}

// withCertificates gives the Secrets their content, which takes time.
func (w *world) withCertificates(t testing.TB) *world {
	t.Helper()
	for _, p := range []secrets.Purpose{secrets.CA, secrets.Etcd, secrets.Proxy, secrets.SA} {
		data, err := secrets.Generate(p, secrets.Keys{}, began)
		if err != nil {
			t.Fatal(err)
		}
		w.secrets[p].Data = data
	}
	data, err := secrets.Issue(secrets.Access{Cluster: "c", Endpoint: w.cluster.Spec.ControlPlaneEndpoint}, w.secrets[secrets.CA], secrets.Keys{}, began)
	if err != nil {
		t.Fatal(err)
	}
	w.secrets[secrets.Admin].Data = data
	w.kubeconfig = secrets.ParseKubeconfig(w.secrets[secrets.Admin])
	return w
}

func (w *world) names() []string { return slices.Sorted(maps.Keys(w.machines)) }

// snapshot is what the controller would observe.
func (w *world) snapshot() snapshot {
	s := snapshot{
		Now: w.now, Plane: w.plane, Cluster: w.cluster, Verified: true, Fresh: true, Secrets: w.secrets, Kubeconfig: w.kubeconfig,
		Infra:   clone.Template{Ref: w.plane.Spec.MachineTemplate.Spec.InfrastructureRef, Object: contract.Object{Unstructured: w.template, Contract: contract.V1Beta2}},
		Clones:  &clone.Clones{Items: map[clone.Key]contract.Object{}},
		Configs: w.configs, Workload: w.workload(), KubeadmObjects: w.readLeft(), Connection: slipwayworkload.Health{Connected: true},
	}
	for _, name := range w.names() {
		m := w.machines[name]
		s.Machines = append(s.Machines, machines.Member{Machine: m, Deleted: !m.DeletionTimestamp.IsZero()})
		s.Clones.Items[clone.Key{Kind: "FooMachine", Name: name}] = contract.Object{Unstructured: w.infra[name], Contract: contract.V1Beta2}
	}
	w.numbers++
	for n := range 9 {
		s.Random = append(s.Random, fmt.Sprintf("r%04d", w.numbers*10+n))
	}
	return s.withReasons() // certificates are complete
}

// workload is what the workload cluster would answer.
func (w *world) workload() controlplaneworkload.State {
	s := controlplaneworkload.State{At: w.now, Asked: map[string]bool{}, Nodes: map[string]*corev1.Node{}, Pods: map[string]*corev1.Pod{}}
	s.Initialized = len(w.nodes) > 0
	for name, n := range w.nodes {
		s.Asked[name] = true
		if n.hidden {
			continue
		}
		status := corev1.ConditionTrue
		if n.down || n.gone {
			status = corev1.ConditionFalse
		}
		s.Nodes[name] = &corev1.Node{
			ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"node-role.kubernetes.io/control-plane": ""}, CreationTimestamp: metav1.NewTime(n.created)},
			Spec:       corev1.NodeSpec{ProviderID: n.providerID},
			Status:     corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: status, LastTransitionTime: metav1.NewTime(n.since)}}},
		}
		for _, component := range []string{controlplaneworkload.APIServer, controlplaneworkload.ControllerManager, controlplaneworkload.Scheduler, controlplaneworkload.EtcdPod} {
			s.Pods[component+"-"+name] = &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: component + "-" + name}, Status: corev1.PodStatus{
				Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: status}}}}
		}
	}
	s.Etcd = w.etcd()
	return s
}

// voters and healthy count the members of etcd.
func (w *world) voters() (voters, healthy int) {
	for name := range w.members {
		n := w.nodes[name]
		if n != nil && n.learner {
			continue
		}
		voters++
		if n.runs() {
			healthy++
		}
	}
	return voters, healthy
}

func (w *world) hasQuorum() bool {
	voters, healthy := w.voters()
	return healthy >= voters/2+1
}

func (w *world) etcd() controlplaneworkload.Etcd {
	if !w.hasQuorum() {
		return controlplaneworkload.Etcd{Problem: "the etcd cluster has no leader"}
	}
	w.elect()
	e := controlplaneworkload.Etcd{Statuses: map[string]controlplaneworkload.EtcdStatus{}}
	var all []etcd.Member
	for _, name := range slices.Sorted(maps.Keys(w.members)) {
		n, member := w.nodes[name], etcd.Member{ID: w.members[name], Name: name}
		if n != nil {
			member.Learner, member.PeerURLs = n.learner, []string{"https://" + n.address() + ":2380"}
			if n.unnamed {
				member.Name = ""
			}
		}
		all = append(all, member)
	}
	slices.SortFunc(all, func(a, b etcd.Member) int { return cmp.Compare(a.ID, b.ID) })
	e.Members = all
	for name, n := range w.nodes {
		if n.hidden || n.unnamed {
			continue // there is no Pod to reach it by
		}
		status := controlplaneworkload.EtcdStatus{Status: etcd.Status{ID: w.members[name], ClusterID: 1, Leader: w.members[w.leader], Members: all, Learner: n.learner}}
		if n.down || n.gone || name == w.silent {
			status = controlplaneworkload.EtcdStatus{Problem: "Node " + name + " is not ready"}
		}
		e.Statuses[name] = status
	}
	return e
}

// elect chooses a leader where the last one does not lead any more.
func (w *world) elect() {
	if n := w.nodes[w.leader]; n.runs() && w.members[w.leader] != 0 {
		return
	}
	w.leader = ""
	for _, name := range slices.Sorted(maps.Keys(w.members)) {
		if n := w.nodes[name]; n.runs() && !n.learner {
			w.leader = name
			return
		}
	}
}

// apply carries out an action.
func (w *world) apply(s snapshot, do reconciler.Action) {
	w.log = append(w.log, do.String())
	switch a := do.(type) {
	case createMachine:
		w.create(s, a)
	case machines.Delete:
		for _, name := range a.Names {
			w.delete(name)
		}
	case setConditions:
		m := w.machines[a.Machine]
		for _, t := range a.Types {
			m.Status.Conditions = slices.DeleteFunc(m.Status.Conditions, func(c metav1.Condition) bool { return c.Type == t })
		}
		for _, c := range a.Conditions {
			set(m, c)
		}
	case removeHook:
		m := w.machines[a.Machine]
		kube.Annotate(m, controlplanev1.PreTerminateHookCleanupAnnotation, nil)
	case addons.Change:
		w.left = addons.KubeadmState{}
		if err := addons.Apply(context.Background(), kube.NewWriter(w.kubeadm, Name), a); err != nil {
			panic(err)
		}
	case moveLeader:
		w.leader = a.Node
	case removeMember:
		for name, id := range w.members {
			if id == a.ID {
				w.checkRemoval(name)
				delete(w.members, name)
			}
		}
		w.elect()
	case noteRemediation:
		w.plane = w.plane.DeepCopy()
		kube.Annotate(w.plane, controlplanev1.RemediationInProgressAnnotation, new(a.Record.Text()))
	case forgetRemediation:
		w.plane = w.plane.DeepCopy()
		kube.Annotate(w.plane, controlplanev1.RemediationInProgressAnnotation, nil)
	}
}

func (w *world) create(s snapshot, a createMachine) {
	d := s.definition()
	d.Spec.FailureDomain = a.Domain
	if text, ok := s.Plane.Annotations[controlplanev1.RemediationInProgressAnnotation]; ok && a.Joins {
		d.MachineAnnotations[controlplanev1.RemediationForAnnotation] = text
	}
	m := d.Machine(a.Name)
	m.UID, m.CreationTimestamp, m.Generation = types.UID(a.Name), metav1.NewTime(w.now), 1
	w.machines[a.Name] = m
	w.configs[a.Name] = &bootstrapv1.KubeadmConfig{ObjectMeta: metav1.ObjectMeta{Name: a.Name}, Spec: desiredConfig(s.Plane, a.Joins)}
	infra, err := clone.New(clone.CloneRequest{Template: s.Infra.Object, Name: a.Name, Cluster: "c", Owner: d.Owner, Labels: d.Labels, Annotations: d.Annotations})
	if err != nil {
		panic(err)
	}
	w.infra[a.Name] = infra
}

func (w *world) delete(name string) {
	m := w.machines[name].DeepCopy()
	if m.DeletionTimestamp.IsZero() {
		m.DeletionTimestamp = new(metav1.NewTime(w.now))
	}
	w.machines[name] = m
}

func set(m *clusterv1.Machine, c metav1.Condition) {
	m.Status.Conditions = append(slices.DeleteFunc(m.Status.Conditions, func(old metav1.Condition) bool { return old.Type == c.Type }), c)
}

// checkRemoval: the member of a Machine that stays is not removed, unless kubeadm has given up to start it.
func (w *world) checkRemoval(name string) {
	n := w.nodes[name]
	if n == nil || n.gone || n.unnamed && w.now.Sub(n.created) > 9*time.Minute {
		return
	}
	if m := w.machines[n.host]; m != nil && m.DeletionTimestamp.IsZero() {
		w.broken = append(w.broken, "the member of Machine "+n.host+", which stays, was removed")
	}
}

// boot gives a Machine a host with a Node and a member of etcd.
func (w *world) boot(name string) *node {
	w.hosts++
	n := &node{host: name, number: w.hosts, created: w.now, since: w.now, providerID: "p://" + name}
	w.nodes["n-"+name] = n
	w.members["n-"+name] = uint64(w.hosts)
	w.infra[name] = w.infra[name].DeepCopy()
	_ = unstructured.SetNestedField(w.infra[name].Object, "p://"+name, "spec", "providerID")
	m := w.machines[name].DeepCopy()
	m.Spec.Bootstrap.DataSecretName = new(name)
	w.machines[name] = m
	w.report(name)
	w.elect()
	return n
}

// report makes the Machine controller find everything out about the host of a Machine.
func (w *world) report(name string) {
	m, n := w.machines[name].DeepCopy(), w.nodes["n-"+name]
	m.Status.NodeRef.Name, m.Spec.ProviderID = "n-"+name, "p://"+name
	m.Status.Addresses = clusterv1.MachineAddresses{{Type: clusterv1.MachineInternalIP, Address: n.address()}}
	w.machines[name] = m
	n.providerID, n.hidden = "p://"+name, false
	w.start(name)
}

// start starts the member of etcd that kubeadm has added, and promotes it.
func (w *world) start(name string) {
	n := w.nodes["n-"+name]
	if _, is := w.members["n-"+name]; is && n.unnamed && !n.down && w.hasQuorum() {
		n.unnamed, n.learner = false, false
	}
}

// progress is what the Machine controller does with a Machine that is deleted: it waits for the hook, then it is gone with its host. Its
// Node object is left where it does not know it.
func (w *world) progress(name string) {
	m := w.machines[name]
	switch {
	case m.DeletionTimestamp.IsZero():
	case HasHook(m):
		m = m.DeepCopy()
		set(m, metav1.Condition{Type: clusterv1.DeletingCondition, Status: metav1.ConditionTrue, Reason: clusterv1.MachineDeletingWaitingForPreTerminateHookReason})
		w.machines[name] = m
	default:
		before, others := w.hasQuorum(), len(w.machines) > 1
		w.remove(name)
		if _, is := w.members["n-"+name]; is && others && w.nodes["n-"+name].wasStarted() {
			w.broken = append(w.broken, "Machine "+name+" went with its member of etcd")
		}
		if before && !w.hasQuorum() && others {
			w.broken = append(w.broken, "Machine "+name+" went with the quorum")
		}
	}
}

// wasStarted: a member that never started is removed afterwards.
func (n *node) wasStarted() bool { return n == nil || !n.unnamed }

// remove ends the host of a Machine, and the Machine. The Node object goes with it where the Machine refers to it.
func (w *world) remove(name string) {
	m := w.machines[name]
	delete(w.machines, name)
	if n := w.nodes["n-"+name]; n != nil {
		n.gone, n.since = true, w.now
		if m.Status.NodeRef.Name == "n-"+name {
			delete(w.nodes, "n-"+name)
		}
	}
	w.elect()
}

// asks makes a health check ask for the replacement of a Machine.
func (w *world) asks(name string) {
	m := w.machines[name].DeepCopy()
	set(m, metav1.Condition{Type: clusterv1.MachineHealthCheckSucceededCondition, Status: metav1.ConditionFalse, Reason: "NodeNotReady"})
	if c := condition.Set(m.Status.Conditions).Get(clusterv1.MachineOwnerRemediatedCondition); c == nil {
		set(m, metav1.Condition{Type: clusterv1.MachineOwnerRemediatedCondition, Status: metav1.ConditionFalse, Reason: "WaitingForRemediation"})
	}
	w.machines[name] = m
}

// pass decides once and carries out the plan; crash is how many actions are carried out before the controller dies, -1: all.
func (w *world) pass(crash int) reconciler.Plan {
	s := w.snapshot()
	p := decide(s)
	for i, do := range p.Actions {
		if i == crash {
			return p
		}
		w.apply(s, do)
	}
	r := report(s, p, reconciler.Outcome{Done: p.Actions})
	for _, e := range r.Events {
		if e.Type == corev1.EventTypeWarning {
			w.warnings = append(w.warnings, e.Message)
		}
	}
	if crash < 0 {
		w.plane = w.plane.DeepCopy()
		w.plane.Status = r.Status.(controlplanev1.KubeadmControlPlaneStatus)
	}
	return p
}

// settle lets the world go on without faults until nothing changes, and returns after how many rounds.
func (w *world) settle(most int) (int, bool) {
	quiet := 0
	for round := range most {
		before := len(w.log)
		w.now = w.now.Add(15 * time.Second)
		w.pass(-1)
		moved := false
		for _, name := range w.names() {
			m := w.machines[name]
			if m.DeletionTimestamp.IsZero() && (len(w.members) == 0 || w.hasQuorum()) && w.repair(name) {
				moved = true
			}
			if !m.DeletionTimestamp.IsZero() {
				w.progress(name)
				moved = true
			}
		}
		w.endForeign()
		if quiet++; moved || len(w.log) > before {
			quiet = 0
		}
		if quiet > 2 {
			return round, true
		}
	}
	return most, false
}

// repair boots a Machine, or reports what is not known of its host; false: there was nothing to do.
func (w *world) repair(name string) bool {
	n := w.nodes["n-"+name]
	if n == nil && !w.machines[name].Status.NodeRef.IsDefined() {
		w.boot(name)
		return true
	}
	if n == nil || w.machines[name].Status.NodeRef.Name == "n-"+name && !n.hidden && (!n.unnamed || n.down) && n.providerID == "p://"+name {
		return false
	}
	w.report(name)
	return true
}

// endForeign does what the condition EtcdClusterHealthy asks for: a person deletes the Node of a member without a Machine, one at a time, when
// the others are healthy. A Node that was deleted before that registers again. The host of the only Machine, which is never replaced, is started.
func (w *world) endForeign() {
	numbers := w.numbers
	members := w.snapshot().Etcd.Members
	w.numbers = numbers // names of Machines do not depend on it
	deleted := false
	for _, name := range slices.Sorted(maps.Keys(w.nodes)) {
		n := w.nodes[name]
		id, is := w.members[name]
		switch {
		case w.machines[n.host] != nil && n.down && w.staying() == 1:
			n.down = false
		case w.machines[n.host] != nil:
			n.hidden = false
		case n.gone:
		case !is:
			n.gone = true
		default:
			n.hidden = !deleted && members.AllowsRemoval(id)
			deleted = deleted || n.hidden
		}
	}
}

// actions of the log that change Machines or etcd.
func (w *world) actions() []string {
	var out []string
	for _, line := range w.log {
		if !strings.HasPrefix(line, "set conditions") {
			out = append(out, line)
		}
	}
	return out
}

// isWhole reports whether there are as many Machines as desired, all of them up to date and healthy.
func (w *world) isWhole() string {
	s := w.snapshot()
	switch {
	case len(s.Machines) != desired(s):
		return fmt.Sprintf("%d Machines, %d desired", len(s.Machines), desired(s))
	case len(s.outdated()) > 0:
		return fmt.Sprintf("outdated %v", s.outdated())
	case !s.isHealthy():
		return "not healthy"
	case len(w.members) != len(s.Machines):
		return fmt.Sprintf("%d members of %d Machines", len(w.members), len(s.Machines))
	}
	if _, ok := w.plane.Annotations[controlplanev1.RemediationInProgressAnnotation]; ok {
		return "a remediation is in progress"
	}
	return ""
}
