package controlplane

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"
	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/kubeadm/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/yaml"

	"github.com/slipwayhq/slipway/internal/kubeadm/controlplane/addons"
	controlplaneworkload "github.com/slipwayhq/slipway/internal/kubeadm/controlplane/workload"
	"github.com/slipwayhq/slipway/internal/kubeadm/etcd"
	"github.com/slipwayhq/slipway/internal/kubeadm/secrets"
	"github.com/slipwayhq/slipway/internal/machines"
	"github.com/slipwayhq/slipway/internal/machines/clone"
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
	c.Spec.ControlPlaneRef = clusterv1.ContractVersionedObjectReference{APIGroup: controlplanev1.GroupVersion.Group, Kind: controlPlaneKind, Name: "kcp"}
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
	// silent is a Node whose kubelet does not respond; what runs on it runs on.
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

// readKubeadmObjects reads what kubeadm left, where it was changed.
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
		data, err := secrets.Generate(p, secrets.KeyOptions{}, began)
		if err != nil {
			t.Fatal(err)
		}
		w.secrets[p].Data = data
	}
	data, err := secrets.Issue(secrets.Access{Cluster: "c", Endpoint: w.cluster.Spec.ControlPlaneEndpoint}, w.secrets[secrets.CA], secrets.KeyOptions{}, began)
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
		Now: w.now, ControlPlane: w.plane, Cluster: w.cluster, Verified: true, Fresh: true, Secrets: w.secrets, Kubeconfig: w.kubeconfig,
		Infra:   clone.Template{Ref: w.plane.Spec.MachineTemplate.Spec.InfrastructureRef, Object: contract.Object{Unstructured: w.template, Contract: contract.V1Beta2}},
		Clones:  &clone.Clones{Items: map[clone.Key]contract.Object{}},
		Configs: w.configs, Workload: w.workload(), KubeadmObjects: w.readLeft(), Connection: slipwayworkload.Health{Connected: true},
	}
	for _, name := range w.names() {
		m := w.machines[name]
		s.Machines = append(s.Machines, machines.OwnedMachine{Machine: m, Deleted: !m.DeletionTimestamp.IsZero()})
		s.Clones.Items[clone.Key{Kind: "FooMachine", Name: name}] = contract.Object{Unstructured: w.infra[name], Contract: contract.V1Beta2}
	}
	w.numbers++
	for n := range 9 {
		s.Random = append(s.Random, fmt.Sprintf("r%04d", w.numbers*10+n))
	}
	return s.withMembers() // certificates are complete
}

// workload is what the workload cluster would answer.
func (w *world) workload() controlplaneworkload.State {
	s := controlplaneworkload.State{At: w.now, ReadNodes: map[string]bool{}, Nodes: map[string]*corev1.Node{}, Pods: map[string]*corev1.Pod{}}
	s.Initialized = len(w.nodes) > 0
	for name, n := range w.nodes {
		s.ReadNodes[name] = true
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
		for _, component := range []string{"kube-apiserver", "kube-controller-manager", "kube-scheduler", "etcd"} {
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

// leftByKubeadm is what kubeadm init leaves in a cluster, as far as it is read here.
func leftByKubeadm() []client.Object {
	meta := func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: "kube-system", Name: name} }
	pod := func(name, tag string) corev1.PodTemplateSpec {
		return corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: name, Image: "example.org/" + name + ":" + tag}}}}
	}
	return []client.Object{
		&corev1.ConfigMap{ObjectMeta: meta("kubeadm-config"), Data: map[string]string{
			"ClusterConfiguration": "apiVersion: kubeadm.k8s.io/v1beta4\nkind: ClusterConfiguration\nkubernetesVersion: v1.35.4\nclusterName: c\n"}},
		&corev1.ConfigMap{ObjectMeta: meta("coredns"), Data: map[string]string{"Corefile": ".:53 {\n    errors\n}\n"}},
		&appsv1.DaemonSet{ObjectMeta: meta("kube-proxy"), Spec: appsv1.DaemonSetSpec{Template: pod("kube-proxy", "v1.35.4")}},
		&appsv1.Deployment{ObjectMeta: meta("coredns"), Spec: appsv1.DeploymentSpec{Template: pod("coredns", "v1.12.1")}},
	}
}
