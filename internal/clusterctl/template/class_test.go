package template_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/slipwayhq/slipway/internal/clusterctl/template"
	"github.com/slipwayhq/slipway/internal/fault"
)

func world(t *testing.T, objects ...client.Object) client.Client {
	t.Helper()
	s := runtime.NewScheme()
	if err := clusterv1.AddToScheme(s); err != nil {
		t.Fatal(err)
	}
	return fake.NewClientBuilder().WithScheme(s).WithObjects(objects...).Build()
}

func own(namespace, name string) *clusterv1.ClusterClass {
	return &clusterv1.ClusterClass{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
}

func TestFind(t *testing.T) {
	c := world(t, own("team", "local"), own("team", "big"), own("shared", "small"))
	cases := map[string]struct {
		reason, namespace string
		ref               clusterv1.ClusterClassRef
		offline           bool
		missing           bool
		err               string
	}{
		"of people":       {"a class that is there is used as it is", "team", clusterv1.ClusterClassRef{Name: "local"}, false, false, ""},
		"ships":           {"a class that ships need not be there", "other", clusterv1.ClusterClassRef{Name: "local"}, false, true, ""},
		"named, too":      {"the namespace of the cluster may be named", "other", clusterv1.ClusterClassRef{Name: "simulated", Namespace: "other"}, false, true, ""},
		"elsewhere":       {"a class of another namespace", "team", clusterv1.ClusterClassRef{Name: "small", Namespace: "shared"}, false, false, ""},
		"not there":       {"what there is is listed", "team", clusterv1.ClusterClassRef{Name: "nope"}, false, false, `ClusterClass "nope" does not exist in namespace "team"; built-in ClusterClasses: kubeadm, local, simulated, ssh, ssh-kubeadm; other ClusterClasses: big, shared/small`},
		"not elsewhere":   {"nothing is made in other namespaces", "team", clusterv1.ClusterClassRef{Name: "local", Namespace: "shared"}, false, false, `ClusterClass "local" does not exist in namespace "shared"`},
		"offline":         {"the ones that ship are known without a management cluster", "team", clusterv1.ClusterClassRef{Name: "local"}, true, true, ""},
		"offline, others": {"others are not", "team", clusterv1.ClusterClassRef{Name: "big"}, true, false, "no management cluster responds"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var r client.Reader = c
			if tc.offline {
				r = nil
			}
			got, err := template.FindClass(t.Context(), r, tc.namespace, tc.ref)
			if tc.err != "" {
				if fault.KindOf(err) != fault.Gone || !strings.Contains(fault.UserMessage(err), tc.err) {
					t.Errorf("%s: got %v, want %q", tc.reason, err, tc.err)
				}
				return
			}
			if err != nil || got.Name != tc.ref.Name || (len(got.Missing) > 0) != tc.missing {
				t.Errorf("%s: %v, %d objects missing", tc.reason, err, len(got.Missing))
			}
		})
	}
}

func TestValues(t *testing.T) {
	local, err := template.FindClass(t.Context(), nil, "team", clusterv1.ClusterClassRef{Name: "local"})
	if err != nil {
		t.Fatal(err)
	}
	cases := map[string]struct {
		reason   string
		settings []string
		want     map[string]string
		err      string
	}{
		"none":          {"defaults are the class's", nil, map[string]string{}, ""},
		"string":        {"a string need not be quoted", []string{"podSecurity=baseline"}, map[string]string{"podSecurity": `"baseline"`}, ""},
		"like a number": {"what looks like a number is a string where the class wants one", []string{"nodeImage=1.5"}, map[string]string{"nodeImage": `"1.5"`}, ""},
		"boolean":       {"", []string{"audit=true"}, map[string]string{"audit": "true"}, ""},
		"fields":        {"fields of an object gather", []string{"nodeResources.cpus=2", "nodeResources.memoryMiB=2048"}, map[string]string{"nodeResources": `{"cpus":2,"memoryMiB":2048}`}, ""},
		"object":        {"YAML", []string{"nodeResources={cpus: 2}"}, map[string]string{"nodeResources": `{"cpus":2}`}, ""},
		"unknown":       {"what there is is listed", []string{"audits=true"}, nil, `ClusterClass "local" has no variable "audits"; its variables are: audit, encryption, hardening, internet, nodeImage, nodeResources, podSecurity, subnet`},
		"no value":      {"", []string{"audit"}, nil, "not of the form NAME=VALUE"},
		"wrong type":    {"the schema holds", []string{"audit=maybe"}, nil, "must be of type boolean"},
		"not allowed":   {"", []string{"podSecurity=some"}, nil, `supported values: "privileged", "baseline", "restricted"`},
		"too little":    {"", []string{"nodeResources.cpus=0"}, nil, "greater than or equal to 1"},
		"field of text": {"", []string{"nodeImage=a", "nodeImage.name=b"}, nil, "a value is already set for its parent"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := local.Values(tc.settings)
			if tc.err != "" {
				if fault.KindOf(err) != fault.Invalid || !strings.Contains(fault.UserMessage(err), tc.err) {
					t.Errorf("%s: got %v, want %q", tc.reason, err, tc.err)
				}
				return
			}
			values := map[string]string{}
			for _, v := range got {
				values[v.Name] = string(v.Value.Raw)
			}
			if diff := cmp.Diff(tc.want, values); diff != "" || err != nil {
				t.Errorf("%s: %v (-want +got):\n%s", tc.reason, err, diff)
			}
		})
	}
}

func TestWorkers(t *testing.T) {
	both, pools, none := own("a", "both"), own("a", "pools"), own("a", "none")
	both.Spec.Workers.MachineDeployments = []clusterv1.MachineDeploymentClass{{Class: "small"}, {Class: "large"}}
	both.Spec.Workers.MachinePools = []clusterv1.MachinePoolClass{{Class: "pool"}}
	pools.Spec.Workers.MachinePools = both.Spec.Workers.MachinePools
	for _, tc := range []struct {
		class *clusterv1.ClusterClass
		n     int32
		want  template.WorkerGroup
		fails bool
	}{
		{both, 2, template.WorkerGroup{Kind: "MachineDeployment", Class: "small", Replicas: 2}, false},
		{pools, 2, template.WorkerGroup{Kind: "MachinePool", Class: "pool", Replicas: 2}, false},
		{none, 0, template.WorkerGroup{}, false},
		{none, 1, template.WorkerGroup{}, true},
	} {
		got, err := template.Class{ClusterClass: tc.class}.Workers(tc.n)
		if got != tc.want || (err != nil) != tc.fails {
			t.Errorf("%s, %d workers: %v %v", tc.class.Name, tc.n, got, err)
		}
	}
}

func TestControlPlanes(t *testing.T) {
	shipped := func(name string) template.Class {
		c, err := template.FindClass(t.Context(), nil, "team", clusterv1.ClusterClassRef{Name: name})
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	foreign := shipped("kubeadm")
	foreign.ClusterClass = foreign.DeepCopy()
	foreign.Spec.ControlPlane.TemplateRef.Kind = "ExampleControlPlaneTemplate"
	for name, tc := range map[string]struct {
		class       template.Class
		asked, want int32
		err         string
	}{
		"none asked for, on Machines":    {shipped("kubeadm"), 0, 1, ""},
		"three":                          {shipped("kubeadm"), 3, 3, ""},
		"two":                            {shipped("kubeadm"), 2, 0, "etcd requires an odd number, for example 3"},
		"two of others":                  {foreign, 2, 2, ""},
		"none asked for, hosted":         {shipped("local"), 0, 0, ""},
		"one asked for, but there is no": {shipped("local"), 1, 0, `ClusterClass "local" has a control plane without nodes (HostedControlPlaneTemplate); omit --control-planes, or use a class such as "kubeadm"`},
	} {
		got, err := tc.class.ControlPlanes(tc.asked)
		if tc.err == "" && err != nil || tc.err != "" && (fault.KindOf(err) != fault.Invalid || !strings.Contains(fault.UserMessage(err), tc.err)) {
			t.Errorf("%s: %v, want %q", name, err, tc.err)
		}
		if got != tc.want {
			t.Errorf("%s: %d, want %d", name, got, tc.want)
		}
	}
}

func TestList(t *testing.T) {
	broken := own("team", "broken")
	broken.Status.Conditions = []metav1.Condition{{Type: clusterv1.ClusterClassVariablesReadyCondition, Status: metav1.ConditionFalse, Message: "Extension x does not answer"}}
	user := func(namespace, name string, ref clusterv1.ClusterClassRef) *clusterv1.Cluster {
		return &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Spec: clusterv1.ClusterSpec{Topology: clusterv1.Topology{ClassRef: ref}}}
	}
	c := world(t, broken, own("team", "local"), own("shared", "x"),
		user("team", "b", clusterv1.ClusterClassRef{Name: "local"}), user("team", "a", clusterv1.ClusterClassRef{Name: "local"}),
		user("other", "c", clusterv1.ClusterClassRef{Name: "local", Namespace: "team"}), user("other", "d", clusterv1.ClusterClassRef{}))
	rows, err := template.ListClasses(t.Context(), c, "team")
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, r := range rows {
		got[r.Namespace+"/"+r.Name] = strings.Join(r.Clusters, " ") + "|" + r.Problem
	}
	want := map[string]string{"team/broken": "|Extension x does not answer", "team/local": "other/c team/a team/b|", "/kubeadm": "|", "/simulated": "|", "/ssh": "|", "/ssh-kubeadm": "|"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the classes of the namespace, who uses them, and those that ship (-want +got):\n%s", diff)
	}
}
