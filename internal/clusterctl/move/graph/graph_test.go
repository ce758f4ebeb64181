package graph_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/slipwayhq/slipway/internal/clusterctl/move/graph"
)

const (
	core  = "cluster.x-k8s.io/v1beta2"
	infra = "infrastructure.example.org/v1"
	plane = "controlplane.slipway.dev/v1alpha1"
)

// object makes "Kind name" of an API version in namespace ns; change may be nil. Its UID is "Kind name".
func object(apiVersion, kindAndName string, change func(*unstructured.Unstructured)) graph.Object {
	kind, name, _ := strings.Cut(kindAndName, " ")
	o := &unstructured.Unstructured{Object: map[string]any{"apiVersion": apiVersion, "kind": kind}}
	o.SetName(name)
	o.SetNamespace("ns")
	o.SetUID(types.UID(kindAndName))
	if change != nil {
		change(o)
	}
	return graph.Object{Unstructured: o}
}

// owners adds owner references, "apiVersion Kind name" each.
func owners(all ...string) func(*unstructured.Unstructured) {
	return func(o *unstructured.Unstructured) {
		var refs []metav1.OwnerReference
		for _, text := range all {
			parts := strings.SplitN(text, " ", 3)
			refs = append(refs, metav1.OwnerReference{APIVersion: parts[0], Kind: parts[1], Name: parts[2], UID: types.UID(parts[1] + " " + parts[2])})
		}
		o.SetOwnerReferences(refs)
	}
}

func spec(value map[string]any) func(*unstructured.Unstructured) {
	return func(o *unstructured.Unstructured) { o.Object["spec"] = value }
}

func typed(kind string) func(*unstructured.Unstructured) {
	return func(o *unstructured.Unstructured) { o.Object["type"] = kind }
}

func label(key string) func(*unstructured.Unstructured) {
	return func(o *unstructured.Unstructured) { o.SetLabels(map[string]string{key: ""}) }
}

func labelled(key, value string) func(*unstructured.Unstructured) {
	return func(o *unstructured.Unstructured) { o.SetLabels(map[string]string{key: value}) }
}

func both(all ...func(*unstructured.Unstructured)) func(*unstructured.Unstructured) {
	return func(o *unstructured.Unstructured) {
		for _, f := range all {
			f(o)
		}
	}
}

func in(namespace string) func(*unstructured.Unstructured) {
	return func(o *unstructured.Unstructured) { o.SetNamespace(namespace) }
}

// lines are the levels, an item each, with "copy" before those that are copied.
func lines(s graph.Selection) []string {
	var out []string
	for n, level := range s.Levels {
		for _, i := range level {
			text := fmt.Sprintf("%d %s", n, i.ID)
			if i.Copy {
				text += " (copy)"
			}
			out = append(out, text)
		}
	}
	return out
}

// cluster is a Cluster of a class with a machine, its secrets, and an infrastructure of its own.
func cluster(name string) []graph.Object {
	own := core + " Cluster " + name
	return []graph.Object{
		object(core, "Cluster "+name, spec(map[string]any{
			"topology":          map[string]any{"classRef": map[string]any{"name": "class"}},
			"infrastructureRef": map[string]any{"apiGroup": "infrastructure.example.org", "kind": "InfraCluster", "name": name},
		})),
		object(infra, "InfraCluster "+name, owners(own)),
		object("v1", "Secret "+name+"-kubeconfig", owners(own)),
		object("v1", "Secret "+name+"-ca", nil),
		object(core, "Machine "+name+"-1", both(owners(own), spec(map[string]any{
			"infrastructureRef": map[string]any{"apiGroup": "infrastructure.example.org", "kind": "InfraMachine", "name": name + "-1"},
		}))),
		object(infra, "InfraMachine "+name+"-1", owners(core+" Machine "+name+"-1")),
	}
}

func class() []graph.Object {
	return []graph.Object{
		object(core, "ClusterClass class", spec(map[string]any{
			"infrastructure": map[string]any{"templateRef": map[string]any{"apiVersion": infra, "kind": "InfraClusterTemplate", "name": "t"}},
		})),
		object(infra, "InfraClusterTemplate t", nil),
	}
}

// MV-02, MV-07: what is linked to Clusters, classes and resource sets moves, owners first.
func TestSelect(t *testing.T) {
	cases := map[string]struct {
		reason   string
		objects  []graph.Object
		what     graph.Scope
		want     []string
		problems []string
	}{
		"a cluster of a class": {
			reason:  "owners, the Secret that is only named after its Cluster, and the class with its template, which is created before the Cluster",
			objects: slices.Concat(cluster("a"), class(), []graph.Object{object("v1", "Secret other", nil), object("v1", "ConfigMap kube-root-ca.crt", nil)}),
			what:    graph.Scope{Namespace: "ns"},
			want: []string{"0 ClusterClass ns/class", "0 InfraClusterTemplate ns/t", "1 Cluster ns/a", "2 InfraCluster ns/a", "2 Machine ns/a-1", "2 Secret ns/a-ca",
				"2 Secret ns/a-kubeconfig", "3 InfraMachine ns/a-1"},
		},
		"after a restore": {
			reason: "owner references are not back yet: what is referred to goes along, and comes after its Cluster",
			objects: []graph.Object{
				object(core, "Cluster a", spec(map[string]any{"controlPlaneRef": map[string]any{"apiGroup": "p.example.org", "kind": "Plane", "name": "a"}})),
				object("p.example.org/v1", "Plane a", nil),
			},
			what: graph.Scope{Namespace: "ns"}, want: []string{"0 Cluster ns/a", "1 Plane ns/a"},
		},
		"names that begin alike": {
			reason:  "a Secret belongs to the Cluster of the longest name: prod-eu-ca is not of prod",
			objects: []graph.Object{object(core, "Cluster prod", nil), object(core, "Cluster prod-eu", nil), object("v1", "Secret prod-eu-ca", nil)},
			what:    graph.Scope{Namespace: "ns", Clusters: []string{"prod"}}, want: []string{"0 Cluster ns/prod"},
		},
		"names of Secrets": {
			reason: "Secrets of Cluster API's purposes or of its type move; a Secret of another program whose name begins like the Cluster's stays",
			objects: []graph.Object{
				object(core, "Cluster a", nil), object("v1", "Secret a-ca", nil), object("v1", "Secret a-etcd", nil), object("v1", "Secret a-proxy", nil),
				object("v1", "Secret a-sa", nil), object("v1", "Secret a-kubeconfig", nil), object("v1", "Secret a-apiserver-etcd-client", nil),
				object("v1", "Secret a-encryption", nil), object("v1", "Secret a-md-x7", typed("cluster.x-k8s.io/secret")),
				object("v1", "Secret a-db-password", typed("Opaque")), object("v1", "Secret a-tls", typed("kubernetes.io/tls")),
			},
			what: graph.Scope{Namespace: "ns"},
			want: []string{"0 Cluster ns/a", "1 Secret ns/a-apiserver-etcd-client", "1 Secret ns/a-ca", "1 Secret ns/a-encryption", "1 Secret ns/a-etcd",
				"1 Secret ns/a-kubeconfig", "1 Secret ns/a-md-x7", "1 Secret ns/a-proxy", "1 Secret ns/a-sa"},
		},
		"referred data": {
			reason: "a Secret that a KubeadmConfig reads is of a person: it is copied; a pool of addresses moves with the claims on it",
			objects: []graph.Object{
				object(core, "Cluster a", nil),
				object("bootstrap.cluster.x-k8s.io/v1beta2", "KubeadmConfig a", both(owners(core+" Cluster a"), spec(map[string]any{
					"files": []any{map[string]any{"contentFrom": map[string]any{"secret": map[string]any{"name": "cloud", "key": "x"}}}},
					"users": []any{map[string]any{"passwdFrom": map[string]any{"secret": map[string]any{"name": "passwords", "key": "x"}}}},
				}))),
				object("v1", "Secret cloud", nil), object("v1", "Secret passwords", nil),
				object("ipam.cluster.x-k8s.io/v1beta2", "IPAddressClaim c", both(owners(core+" Cluster a"), spec(map[string]any{
					"poolRef": map[string]any{"apiGroup": "x.example.org", "kind": "Pool", "name": "p"},
				}))),
				object("x.example.org/v1", "Pool p", nil), object("x.example.org/v1", "Pool q", nil),
			},
			what: graph.Scope{Namespace: "ns"},
			want: []string{"0 Cluster ns/a", "1 IPAddressClaim ns/c", "1 KubeadmConfig ns/a", "1 Pool ns/p", "1 Secret ns/cloud (copy)", "1 Secret ns/passwords (copy)"},
		},
		"resource sets": {
			reason: "a set with what it applies, and the binding of its Cluster",
			objects: []graph.Object{
				object(core, "Cluster a", nil),
				object("addons.cluster.x-k8s.io/v1beta2", "ClusterResourceSet s", spec(map[string]any{"resources": []any{map[string]any{"kind": "ConfigMap", "name": "cni"}}})),
				object("v1", "ConfigMap cni", nil),
				object("addons.cluster.x-k8s.io/v1beta2", "ClusterResourceSetBinding a", both(owners("addons.cluster.x-k8s.io/v1beta2 ClusterResourceSet s"), spec(map[string]any{"clusterName": "a"}))),
			},
			what: graph.Scope{Namespace: "ns"},
			want: []string{"0 Cluster ns/a", "0 ClusterResourceSet ns/s", "0 ConfigMap ns/cni", "1 ClusterResourceSetBinding ns/a"},
		},
		"marked": {
			reason: "the label move takes an object alone, move-hierarchy with what it owns",
			objects: []graph.Object{
				object("v1", "ConfigMap alone", label(graph.MoveLabel)),
				object("v1", "ConfigMap below", owners("v1 ConfigMap alone")),
				object("x.example.org/v1", "Identity top", label(graph.MoveHierarchyLabel)),
				object("v1", "Secret key", owners("x.example.org/v1 Identity top")),
			},
			what: graph.Scope{Namespace: "ns"}, want: []string{"0 ConfigMap ns/alone", "0 Identity ns/top", "1 Secret ns/key"},
		},
		"cluster-scoped": {
			reason: "an identity of all namespaces is copied, with its Secret in the provider's namespace",
			objects: []graph.Object{
				{Unstructured: object("x.example.org/v1", "Identity top", in("")).Unstructured, MarkedHierarchy: true},
				object("v1", "Secret key", both(in("provider-system"), owners("x.example.org/v1 Identity top"))),
				object("v1", "Secret provider-own", in("provider-system")),
			},
			what: graph.Scope{Namespace: "ns"}, want: []string{"0 Identity top (copy)", "1 Secret provider-system/key (copy)"},
		},
		"one of two clusters": {
			reason:  "the class that both are of is copied with its templates",
			objects: slices.Concat(cluster("a"), cluster("b"), class()),
			what:    graph.Scope{Namespace: "ns", Clusters: []string{"a"}},
			want: []string{"0 ClusterClass ns/class (copy)", "0 InfraClusterTemplate ns/t (copy)", "1 Cluster ns/a", "2 InfraCluster ns/a", "2 Machine ns/a-1", "2 Secret ns/a-ca",
				"2 Secret ns/a-kubeconfig", "3 InfraMachine ns/a-1"},
		},
		"shared template": {
			reason: "there can be two of a template",
			objects: []graph.Object{
				object(core, "Cluster a", nil), object(core, "Cluster b", nil),
				object(infra, "InfraMachineTemplate t", owners(core+" Cluster a", core+" Cluster b")),
			},
			what: graph.Scope{Namespace: "ns", Clusters: []string{"a"}}, want: []string{"0 Cluster ns/a", "1 InfraMachineTemplate ns/t (copy)"},
		},
		"shared machine": {
			reason: "what acts on the world cannot be in two places",
			objects: []graph.Object{
				object(core, "Cluster a", nil), object(core, "Cluster b", nil),
				object(infra, "InfraNetwork n", owners(core+" Cluster a", core+" Cluster b")),
			},
			what: graph.Scope{Namespace: "ns", Clusters: []string{"a"}}, want: []string{"0 Cluster ns/a"},
			problems: []string{"InfraNetwork ns/n also belongs to Cluster b and cannot exist in two management clusters: move the Clusters together"},
		},
		"unknown name": {
			reason: "a wrong name is said", objects: cluster("a"), what: graph.Scope{Namespace: "ns", Clusters: []string{"x"}},
			problems: []string{"Cluster x does not exist in namespace ns: check the name"},
		},
		"credentials of a global identity": {
			reason: "what belongs to cluster-scoped objects alone stays at the source, where Clusters of other namespaces use it",
			objects: []graph.Object{
				{Unstructured: object("x.example.org/v1", "Identity top", in("")).Unstructured, MarkedHierarchy: true},
				object("v1", "Secret key", owners("x.example.org/v1 Identity top")),
				object(core, "Cluster a", nil), object("v1", "Secret both", owners("x.example.org/v1 Identity top", core+" Cluster a")),
				object(infra, "InfraCluster a", owners("x.example.org/v1 Identity top", core+" Cluster a")),
			},
			what: graph.Scope{Namespace: "ns"},
			want: []string{"0 Cluster ns/a", "0 Identity top (copy)", "1 InfraCluster ns/a", "1 Secret ns/both (copy)", "1 Secret ns/key (copy)"},
		},
		"credentials of a global identity, one cluster": {
			reason: "the same for some Clusters",
			objects: []graph.Object{
				{Unstructured: object("x.example.org/v1", "Identity top", in("")).Unstructured, MarkedHierarchy: true},
				object("v1", "Secret key", owners("x.example.org/v1 Identity top")),
				object(core, "Cluster a", nil), object("v1", "Secret both", owners("x.example.org/v1 Identity top", core+" Cluster a")),
			},
			what: graph.Scope{Namespace: "ns", Clusters: []string{"a"}},
			want: []string{"0 Cluster ns/a", "0 Identity top (copy)", "1 Secret ns/both (copy)", "1 Secret ns/key (copy)"},
		},
		"another namespace": {
			reason:  "an owner reference across namespaces means nothing: the UID of a neighbour's Cluster does not draw an object along",
			objects: []graph.Object{object(core, "Cluster a", nil), object("v1", "Secret s", both(in("theirs"), owners(core+" Cluster a")))},
			what:    graph.Scope{}, want: []string{"0 Cluster ns/a"},
		},
		"forged owner": {
			reason: "a reference with the UID of one object and the name of another is none",
			objects: []graph.Object{object(core, "Cluster a", nil), object("v1", "ConfigMap c", func(o *unstructured.Unstructured) {
				o.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: core, Kind: "Cluster", Name: "b", UID: "Cluster a"}})
			})},
			what: graph.Scope{Namespace: "ns"}, want: []string{"0 Cluster ns/a"},
		},
		"circle": {
			reason: "objects that own each other end the work instead of it never ending",
			objects: []graph.Object{
				object(core, "Cluster a", nil),
				object("v1", "ConfigMap x", owners("v1 ConfigMap y", core+" Cluster a")), object("v1", "ConfigMap y", owners("v1 ConfigMap x")),
			},
			what: graph.Scope{Namespace: "ns"}, want: []string{"0 Cluster ns/a"},
			problems: []string{"the owner references of these objects form a cycle: ConfigMap ns/x, ConfigMap ns/y; remove one of the owner references"},
		},
		"snapshot policies": {
			reason: "a policy goes with its Cluster, one of several is copied, and one of none stays; the Secret of its store goes where it goes",
			objects: []graph.Object{
				object(core, "Cluster a", labelled("team", "x")), object(core, "Cluster b", labelled("team", "x")),
				object(plane, "EtcdSnapshotPolicy own", spec(map[string]any{
					"clusterName": "a", "destination": map[string]any{"s3": map[string]any{"credentialsSecretName": "keys"}},
				})),
				object(plane, "EtcdSnapshotPolicy team", spec(map[string]any{"clusterSelector": map[string]any{"matchLabels": map[string]any{"team": "x"}}})),
				object(plane, "EtcdSnapshotPolicy all", spec(map[string]any{"clusterSelector": map[string]any{}})),
				object(plane, "EtcdSnapshotPolicy none", spec(map[string]any{"clusterName": "c"})),
				object(plane, "EtcdSnapshotPolicy broken", spec(map[string]any{"clusterSelector": map[string]any{"matchLabels": "x"}})),
				object("v1", "Secret keys", nil), object("v1", "Secret other", nil),
			},
			what: graph.Scope{Namespace: "ns", Clusters: []string{"a"}},
			want: []string{"0 Cluster ns/a", "1 EtcdSnapshotPolicy ns/all (copy)", "1 EtcdSnapshotPolicy ns/own", "1 EtcdSnapshotPolicy ns/team (copy)", "1 Secret ns/keys (copy)"},
		},
		"v1beta1": {
			reason: "a Cluster of v1beta1 names its class in spec.topology.class",
			objects: []graph.Object{
				object("cluster.x-k8s.io/v1beta1", "Cluster a", spec(map[string]any{"topology": map[string]any{"class": "class"}})),
				object("cluster.x-k8s.io/v1beta1", "ClusterClass class", nil),
			},
			what: graph.Scope{Namespace: "ns", Clusters: []string{"a"}}, want: []string{"0 ClusterClass ns/class (copy)", "1 Cluster ns/a"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			slices.Reverse(tc.objects) // the order in which they were read does not matter
			got := graph.Build(tc.objects).Select(tc.what)
			if diff := cmp.Diff(tc.want, lines(got)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
			if diff := cmp.Diff(tc.problems, got.Problems); diff != "" {
				t.Errorf("%s: problems (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

// Links of the selection to objects that are not selected are found, whether these were read or not.
func TestLoose(t *testing.T) {
	objects := []graph.Object{
		object(core, "Cluster a", spec(map[string]any{"infrastructureRef": map[string]any{"apiGroup": "foo.example.org", "kind": "FooCluster", "name": "a"}})),
		object(core, "Machine a-1", both(owners(core+" Cluster a", "x.example.org/v1 Fleet f"), spec(map[string]any{
			"bootstrap": map[string]any{"configRef": map[string]any{"apiVersion": "foo.example.org/v1", "kind": "FooConfig", "name": "a-1"}},
		}))),
		object("x.example.org/v1", "Fleet f", nil),
		object("v1", "ConfigMap alone", both(label(graph.MoveLabel), owners("apps/v1 Deployment d"))),
		object("v1", "Secret a-ca", owners(core+" Cluster a", "apps/v1 Deployment d")),
		object(infra, "InfraCluster a", owners(core+" Cluster a", "x.example.org/v1 Identity top")),
		object("x.example.org/v1", "Identity top", in("")),
	}
	g := graph.Build(objects)
	var got []string
	for _, l := range g.UnselectedLinks(g.Select(graph.Scope{Namespace: "ns"})) {
		got = append(got, fmt.Sprintf("%s -> %s.%s, owner %q, read %v", l.From, l.To, l.To.Group, l.UID, l.Read))
	}
	slices.Sort(got)
	want := []string{
		`Cluster ns/a -> FooCluster ns/a.foo.example.org, owner "", read false`,
		`Machine ns/a-1 -> Fleet ns/f.x.example.org, owner "Fleet f", read true`,
		`Machine ns/a-1 -> FooConfig ns/a-1.foo.example.org, owner "", read false`,
		`Secret ns/a-ca -> Deployment ns/d.apps, owner "Deployment d", read false`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
