package move

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/kubeadm/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	hostedv1 "github.com/slipwayhq/slipway/api/controlplane/v1alpha1"
	"github.com/slipwayhq/slipway/internal/clusterctl/move/graph"
)

// DataOptions are the options of "slipway move --with-data".
type DataOptions struct {
	// Policy is the EtcdSnapshotPolicy whose store is used; empty for the only one that selects the Cluster.
	Policy string
	// IdentitySecret is the name of a Secret at the target with an age identity, for a policy that encrypts snapshots.
	IdentitySecret string
}

// dataInput is the input of [dataSurvey]. Move.readData fills it in.
type dataInput struct {
	DataOptions
	Items []graph.Item
	// Endpoints are the control plane endpoints at the target, with their Clusters.
	Endpoints map[string]graph.ID
	// Identities are the namespaces at the target that have the identity Secret.
	Identities map[string]bool
}

// ControlPlane is a control plane whose data is transferred. The plan and the journal contain it, so its JSON names
// must not change.
type ControlPlane struct {
	ID      graph.ID `json:"id"`
	Version string   `json:"v"`
	Cluster string   `json:"cluster"`
	// Policy is the EtcdSnapshotPolicy in its namespace whose store is used.
	Policy        string `json:"policy"`
	PolicyVersion string `json:"pv"`
	// Snapshot is the final snapshot, taken after the last write; empty if it is not taken yet.
	Snapshot string `json:"snapshot,omitempty"`

	store, endpoint string
}

// dataSurvey returns the control planes whose data is transferred, the Machines that are replaced at the target, and
// the problems that prevent the transfer. The plan of a move calls it. It has no side effects.
func dataSurvey(f dataInput) (planes []ControlPlane, replaced []graph.ID, problems []string) {
	for _, i := range f.Items {
		switch {
		case hasHostData(i):
			p, why := f.plane(i)
			planes, problems = append(planes, p), append(problems, why...)
		case i.ID.IsCore("Machine") && f.onHost(i):
			if why := replacementProblem(i); why != "" {
				problems = append(problems, i.ID.String()+" "+why)
			}
			replaced = append(replaced, i.ID)
		}
	}
	return planes, replaced, problems
}

// hasHostData reports whether an object is a HostedControlPlane with data on its host.
func hasHostData(i graph.Item) bool { return i.ID.Kind == "HostedControlPlane" && OnHost(i) }

// onHost reports whether the infrastructure of a Machine is on the host of its management cluster.
func (f dataInput) onHost(machine graph.Item) bool {
	id, ok := infraOf(machine.Unstructured)
	return ok && slices.ContainsFunc(f.Items, func(i graph.Item) bool { return i.ID == id && OnHost(i) })
}

// infraOf returns the LocalMachine of a Machine.
func infraOf(machine *unstructured.Unstructured) (graph.ID, bool) {
	ref, _, _ := unstructured.NestedStringMap(machine.UnstructuredContent(), "spec", "infrastructureRef")
	group, _, _ := strings.Cut(ref["apiVersion"], "/")
	id := graph.ID{Group: cmp.Or(ref["apiGroup"], group), Kind: ref["kind"], Namespace: machine.GetNamespace(), Name: ref["name"]}
	return id, id.Kind == "LocalMachine"
}

// replacementProblem returns the reason why a Machine cannot be replaced at the target; empty if it can.
func replacementProblem(machine graph.Item) string {
	for _, ref := range machine.GetOwnerReferences() {
		group, _, _ := strings.Cut(ref.APIVersion, "/")
		switch {
		case group == controlplanev1.GroupVersion.Group:
			return "is of a control plane on machines, whose etcd is in containers of this host: its data does not go along; keep this cluster here, or create it there"
		case group == clusterv1.GroupVersion.Group && (ref.Kind == "MachineSet" || ref.Kind == "MachinePool"):
			return ""
		}
	}
	return "has its node on this host, and is of no MachineSet or MachinePool that would replace it at the target: delete it"
}

func text(o *unstructured.Unstructured, path ...string) string {
	s, _, _ := unstructured.NestedString(o.UnstructuredContent(), path...)
	return s
}

// plane returns how a control plane is transferred, and the problems that prevent it.
func (f dataInput) plane(i graph.Item) (ControlPlane, []string) {
	p := ControlPlane{ID: i.ID, Version: i.GroupVersionKind().Version}
	var problems []string
	add := func(form string, args ...any) {
		problems = append(problems, i.ID.String()+" "+fmt.Sprintf(form, args...))
	}
	switch notes := i.GetAnnotations(); {
	case notes[hostedv1.InitializedAnnotation] == "":
		add("is not noted to be initialized yet: wait a moment")
	case notes[hostedv1.RestoreAnnotation] != "":
		add("is being restored from a snapshot: wait until that is over")
	case notes[hostedv1.QuiesceAnnotation] != "":
		add("is kept from its work by annotation %s: remove it first", hostedv1.QuiesceAnnotation)
	}
	at := slices.IndexFunc(f.Items, func(c graph.Item) bool {
		return c.ID.IsCore(graph.Cluster) && !c.Copy && c.ID.Namespace == i.ID.Namespace && text(c.Unstructured, "spec", "controlPlaneRef", "name") == i.ID.Name &&
			text(c.Unstructured, "spec", "controlPlaneRef", "kind") == i.ID.Kind
	})
	if at < 0 {
		add("is of no Cluster that moves: its data does not go along")
		return p, problems
	}
	cluster := f.Items[at]
	p.Cluster = cluster.ID.Name
	p.endpoint = dataEndpoint(cluster.Unstructured)
	if other, taken := f.Endpoints[p.endpoint]; taken && p.endpoint != "" && other != cluster.ID {
		add("has the endpoint %s, which %s of the target has already: delete one of the two", p.endpoint, other)
	}
	policy, why := f.policy(cluster)
	if why != "" {
		add("%s", why)
		return p, problems
	}
	p.Policy, p.PolicyVersion, p.store = policy.ID.Name, policy.GroupVersionKind().Version, storeOf(policy.Unstructured)
	return p, problems
}

// dataEndpoint returns the control plane endpoint of a Cluster; empty if it has none.
func dataEndpoint(cluster *unstructured.Unstructured) string {
	hostName := text(cluster, "spec", "controlPlaneEndpoint", "host")
	port, found, _ := unstructured.NestedFieldNoCopy(cluster.UnstructuredContent(), "spec", "controlPlaneEndpoint", "port")
	if hostName == "" || !found {
		return ""
	}
	return fmt.Sprintf("%s:%v", hostName, port)
}

// policy returns the EtcdSnapshotPolicy whose store is used for a Cluster, or the reason why there is none.
func (f dataInput) policy(cluster graph.Item) (found graph.Item, why string) {
	var names []string
	for _, i := range f.Items {
		if graph.IsSnapshotPolicy(i.ID) && i.ID.Namespace == cluster.ID.Namespace && graph.PolicySelects(i.Unstructured, cluster.Unstructured) && (f.Policy == "" || f.Policy == i.ID.Name) {
			found, names = i, append(names, i.ID.Name)
		}
	}
	switch {
	case len(names) == 0 && f.Policy != "":
		return found, fmt.Sprintf("needs EtcdSnapshotPolicy %s, which does not exist or is not for Cluster %s", f.Policy, cluster.ID.Name)
	case len(names) == 0:
		return found, fmt.Sprintf("needs an EtcdSnapshotPolicy for Cluster %s, whose store both management clusters reach: an S3-compatible one, or a folder that both have; create one: `slipway docs etcd-snapshots` describes how", cluster.ID.Name)
	case len(names) > 1:
		return found, fmt.Sprintf("has several EtcdSnapshotPolicies (%s): name one with --policy", strings.Join(names, ", "))
	}
	return found, f.unusable(found)
}

// unusable returns the reason why the store of a policy cannot be used; empty if it can.
func (f dataInput) unusable(policy graph.Item) string {
	o, name := policy.Unstructured, policy.ID.Name
	suspended, _, _ := unstructured.NestedBool(o.UnstructuredContent(), "spec", "suspend")
	folder, isFolder, _ := unstructured.NestedMap(o.UnstructuredContent(), "spec", "destination", "folder")
	recipients, _, _ := unstructured.NestedStringSlice(o.UnstructuredContent(), "spec", "encryption", "recipients")
	switch status := graph.ConditionStatus(o, hostedv1.StoreAvailableCondition); {
	case suspended:
		return fmt.Sprintf("cannot use EtcdSnapshotPolicy %s, which is suspended: set its spec.suspend to false", name)
	case isFolder && folder["path"] == nil:
		return fmt.Sprintf("cannot use EtcdSnapshotPolicy %s, whose folder is in the data directory of the source: name an S3-compatible store, or a folder that both management clusters have and allow", name)
	case status != "True":
		return fmt.Sprintf("cannot use EtcdSnapshotPolicy %s, whose store is not available (condition %s)", name, hostedv1.StoreAvailableCondition)
	case len(recipients) > 0 && f.IdentitySecret == "":
		return fmt.Sprintf("needs --identity-secret: EtcdSnapshotPolicy %s encrypts its snapshots", name)
	case len(recipients) > 0 && !f.Identities[policy.ID.Namespace]:
		return fmt.Sprintf("needs Secret %s/%s at the target, with an identity of age in its key \"identity\": create it there", policy.ID.Namespace, f.IdentitySecret)
	}
	return ""
}

// storeOf describes the store of a policy.
func storeOf(policy *unstructured.Unstructured) string {
	if path := text(policy, "spec", "destination", "folder", "path"); path != "" {
		return "folder " + path
	}
	return "bucket " + text(policy, "spec", "destination", "s3", "bucket") + " at " + text(policy, "spec", "destination", "s3", "endpoint")
}

// Steps describes the steps for a control plane. [Plan.Steps] includes them.
func (p ControlPlane) Steps() []string {
	return []string{
		fmt.Sprintf("target: see that %s could start there, but for its data", p.ID),
		fmt.Sprintf("both: see that both reach the store of EtcdSnapshotPolicy %s (%s), with a snapshot", p.Policy, p.store),
		fmt.Sprintf("source: quiesce %s: its etcd runs alone, and its API does not answer from here on", p.ID),
		fmt.Sprintf("source: take the last snapshot of %s: every write that was acknowledged is in it, and nothing is lost", p.ID),
		fmt.Sprintf("source: stop %s; its data stays until the target answers", p.ID),
		fmt.Sprintf("target: restore the snapshot and start %s on its host alone; wait until its API server answers", p.ID),
	}
}

// Notes returns hints for the user in addition to the steps. Plan.surveyData adds them to the plan.
func (p ControlPlane) Notes() []string {
	return []string{"note: images that `slipway image load` keeps for later nodes of Cluster " + p.Cluster + " do not go along: load them again at the target",
		fmt.Sprintf("note: the API of Cluster %s keeps the endpoint %s: it answers there when the target has its network; clients outside of it have to reach it there", p.Cluster, p.endpoint)}
}
