package topology_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	hooksv1 "sigs.k8s.io/cluster-api/api/runtime/hooks/v1alpha1"

	"github.com/slipwayhq/slipway/sdk/extension"
	"github.com/slipwayhq/slipway/sdk/extension/extensiontest"
	"github.com/slipwayhq/slipway/sdk/extension/topology"
)

func variable(name, value string) hooksv1.Variable {
	return hooksv1.Variable{Name: name, Value: apiextensionsv1.JSON{Raw: []byte(value)}}
}

func variables(t *testing.T) topology.Variables {
	t.Helper()
	v, err := topology.NewVariables(
		[]hooksv1.Variable{
			variable("image", `"default"`), variable("count", "9007199254740993"), variable("nothing", "null"),
			variable("network", `{"dns":{"servers":["a","b"]},"labels":{"topology.io/zone":"z"}}`),
			variable("builtin", `{"cluster":{"name":"demo","topology":{"version":"v1.36.0"}}}`),
		},
		[]hooksv1.Variable{
			variable("image", `"own"`),
			variable("builtin", `{"machineDeployment":{"version":"v1.35.0","replicas":3},"cluster":{"namespace":"team"}}`),
		})
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// RT-24: variables are found by path; what is not there and what does not fit are different errors.
func TestLookup(t *testing.T) {
	v := variables(t)
	cases := map[string]struct {
		reason, path, want, missing, invalid string
	}{
		"own in front":    {"a variable of the template is in front of the cluster's", "image", `"own"`, "", ""},
		"nested":          {"fields follow dots", "network.dns.servers", `["a","b"]`, "", ""},
		"element":         {"positions are in brackets", "network.dns.servers[1]", `"b"`, "", ""},
		"quoted":          {"names with dots are quoted", `network.labels["topology.io/zone"]`, `"z"`, "", ""},
		"builtin":         {"a template tells about what it is for", "builtin.machineDeployment.version", `"v1.35.0"`, "", ""},
		"builtin, global": {"and the cluster's part stays visible", "builtin.cluster.name", `"demo"`, "", ""},
		"builtin, both":   {"field by field", "builtin.cluster.namespace", `"team"`, "", ""},
		"large":           {"a number is not rounded", "count", "9007199254740993", "", ""},
		"no variable":     {"not set", "other.field", "", "other", ""},
		"no field":        {"set, but without the field", "network.proxy.url", "", "network.proxy", ""},
		"no element":      {"a list that is too short", "network.dns.servers[2]", "", "network.dns.servers[2]", ""},
		"null":            {"null is no value", "nothing", "", "nothing", ""},
		"no object":       {"the path does not fit", "image.name", "", "", "not an object"},
		"no list":         {"the path does not fit", "network[0]", "", "", "not a list"},
		"empty":           {"no path", "", "", "", "a name is missing"},
		"open bracket":    {"a mistake in the path", "network[0", "", "", "the path is not"},
		"open quote":      {"a mistake in the path", `network["a"`, "", "", "not closed"},
		"double dot":      {"a mistake in the path", "network..dns", "", "", "a name is missing"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := v.Lookup(tc.path)
			var missing *topology.NotFoundError
			var invalid *topology.InvalidError
			switch {
			case tc.want != "":
				if err != nil || string(got) != tc.want {
					t.Errorf("%s: got %s %v, want %s", tc.reason, got, err, tc.want)
				}
			case tc.missing != "":
				if !errors.As(err, &missing) || missing.Missing != tc.missing || !topology.IsNotFound(err) {
					t.Errorf("%s: got %v, want that %s is missing", tc.reason, err, tc.missing)
				}
			case !errors.As(err, &invalid) || !strings.Contains(err.Error(), tc.invalid):
				t.Errorf("%s: got %v, want %q", tc.reason, err, tc.invalid)
			}
		})
	}
}

// RT-24: typed access, nested objects and builtins.
func TestGet(t *testing.T) {
	v := variables(t)
	type dns struct {
		Servers []string `json:"servers"`
	}
	if got, err := topology.Get[dns](v, "network.dns"); err != nil || !cmp.Equal(got, dns{[]string{"a", "b"}}) {
		t.Errorf("object: %v %v", got, err)
	}
	if got, err := topology.Get[int64](v, "count"); err != nil || got != 9007199254740993 {
		t.Errorf("number: %v %v", got, err)
	}
	if got, err := topology.GetOr(v, "network.mtu", 1500); err != nil || got != 1500 {
		t.Errorf("default: %v %v", got, err)
	}
	if _, err := topology.GetOr(v, "image", 1500); err == nil || !strings.Contains(err.Error(), `variable "image": it is not a int`) {
		t.Errorf("a default does not hide another type: %v", err)
	}
	b, err := v.Builtins()
	if err != nil || b.Cluster.Name != "demo" || *b.MachineDeployment.Replicas != 3 {
		t.Errorf("builtins: %+v %v", b, err)
	}
	if d := cmp.Diff([]string{"builtin", "count", "image", "network", "nothing"}, v.Names()); d != "" {
		t.Error(d)
	}
	if _, err := topology.NewVariables([]hooksv1.Variable{variable("builtin", "3")}, []hooksv1.Variable{variable("builtin", "{}")}); err == nil {
		t.Error("a builtin that is no object is accepted")
	}
}

type template struct {
	Spec struct {
		Template struct {
			Spec struct {
				Image string            `json:"image,omitempty"`
				Extra map[string]string `json:"extra,omitempty"`
			} `json:"spec"`
		} `json:"template"`
	} `json:"spec"`
}

func item(uid, kind, holder string, more ...hooksv1.Variable) hooksv1.GeneratePatchesRequestItem {
	i := hooksv1.GeneratePatchesRequestItem{
		HolderReference: hooksv1.HolderReference{APIVersion: "cluster.x-k8s.io/v1beta2", Kind: "MachineDeployment", Namespace: "team", Name: holder},
		Variables:       more,
	}
	i.Object.Raw = fmt.Appendf(nil, `{"apiVersion":"infrastructure.example.org/v1","kind":%q,"spec":{"template":{"spec":{"image":"old","kept":[1]}}}}`, kind)
	i.UID = types.UID(uid)
	return i
}

func rules() []topology.Rule {
	return []topology.Rule{
		topology.For("infrastructure.example.org/v1", "MachineTemplate", func(_ context.Context, t topology.Template, m *template) error {
			image, err := topology.Get[string](t.Variables, "image")
			if topology.IsNotFound(err) {
				return nil
			}
			m.Spec.Template.Spec.Image = image
			return err
		}),
		topology.ForUnstructured("", "*", func(_ context.Context, t topology.Template, u *unstructured.Unstructured) error {
			if t.Kind.Kind != "MachineTemplate" {
				return nil
			}
			return unstructured.SetNestedField(u.Object, t.Holder.Name, "spec", "template", "spec", "extra", "for")
		}),
	}
}

// RT-24: templates are walked in order, decoded, and what rules changed becomes patches of either format.
func TestPatcher(t *testing.T) {
	for _, format := range []hooksv1.PatchType{"", hooksv1.JSONPatchType, hooksv1.JSONMergePatchType} {
		t.Run(string(format), func(t *testing.T) {
			p := topology.Patcher{Rules: rules(), Format: format}
			x, err := extension.New(extension.On("patch", hooksv1.GeneratePatches, p.Generate))
			if err != nil {
				t.Fatal(err)
			}
			in := &hooksv1.GeneratePatchesRequest{
				Variables: []hooksv1.Variable{variable("image", `"new"`)},
				Items: []hooksv1.GeneratePatchesRequestItem{
					item("1", "MachineTemplate", "a"), item("2", "OtherTemplate", "b"), item("3", "MachineTemplate", "c", variable("image", `"own"`)),
				},
			}
			out := extensiontest.Call[hooksv1.GeneratePatchesResponse](t, x, "patch", in)
			if len(out.Items) != 2 || out.Status != hooksv1.ResponseStatusSuccess {
				t.Fatalf("got %+v", out)
			}
			if want := hooksv1.JSONMergePatchType; (format == want) != (out.Items[0].PatchType == want) {
				t.Errorf("the format is %s", out.Items[0].PatchType)
			}
			got := map[string]any{}
			for uid, u := range extensiontest.Patched(t, in, out) {
				got[uid], _, _ = unstructured.NestedMap(u.Object, "spec", "template", "spec")
			}
			kept := []any{int64(1)}
			want := map[string]any{
				"1": map[string]any{"image": "new", "kept": kept, "extra": map[string]any{"for": "a"}},
				"2": map[string]any{"image": "old", "kept": kept},
				"3": map[string]any{"image": "own", "kept": kept, "extra": map[string]any{"for": "c"}},
			}
			if d := cmp.Diff(want, got); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
		})
	}
}

// RT-24: errors name the template, all at once, and no half of the patches is sent.
func TestPatcherFails(t *testing.T) {
	in := &hooksv1.GeneratePatchesRequest{
		Variables: []hooksv1.Variable{variable("image", "3")},
		Items: []hooksv1.GeneratePatchesRequestItem{
			item("1", "MachineTemplate", "a"), item("2", "MachineTemplate", "b"), item("3", "MachineTemplate", "c", variable("image", `"x"`)),
		},
	}
	out := &hooksv1.GeneratePatchesResponse{}
	topology.Patcher{Rules: rules()}.Generate(t.Context(), in, out)
	for _, want := range []string{"MachineTemplate of MachineDeployment team/a: variable \"image\"", "team/b"} {
		if out.Status != hooksv1.ResponseStatusFailure || !strings.Contains(out.Message, want) || len(out.Items) != 0 {
			t.Errorf("want %q in %+v", want, out)
		}
	}
	strict := &hooksv1.GeneratePatchesResponse{}
	topology.Patcher{Rules: rules()[:1], Strict: true}.Generate(t.Context(), &hooksv1.GeneratePatchesRequest{
		Items: []hooksv1.GeneratePatchesRequestItem{item("2", "OtherTemplate", "b")},
	}, strict)
	if strict.Status != hooksv1.ResponseStatusFailure || !strings.Contains(strict.Message, "OtherTemplate of MachineDeployment team/b: no rule is for templates of infrastructure.example.org/v1") {
		t.Errorf("strict: %+v", strict)
	}
	broken := item("1", "MachineTemplate", "a")
	broken.Object.Raw = []byte("3")
	other := &hooksv1.GeneratePatchesResponse{}
	topology.Patcher{}.Generate(t.Context(), &hooksv1.GeneratePatchesRequest{Items: []hooksv1.GeneratePatchesRequestItem{broken}}, other)
	if other.Status != hooksv1.ResponseStatusFailure || !strings.Contains(other.Message, "template of MachineDeployment team/a: the template is not an object") {
		t.Errorf("no object: %+v", other)
	}
}

// RT-24: the same rules check a topology.
func TestValidator(t *testing.T) {
	v := topology.Validator{Rules: []topology.Rule{
		topology.For("infrastructure.example.org/v1", "MachineTemplate", func(_ context.Context, _ topology.Template, m *template) error {
			if m.Spec.Template.Spec.Image == "old" {
				return errors.New("the image is too old")
			}
			return nil
		}),
	}}
	i := item("1", "MachineTemplate", "a")
	in := &hooksv1.ValidateTopologyRequest{Items: []*hooksv1.ValidateTopologyRequestItem{nil, {HolderReference: i.HolderReference, Object: i.Object}}}
	out := &hooksv1.ValidateTopologyResponse{}
	v.Validate(t.Context(), in, out)
	if out.Status != hooksv1.ResponseStatusFailure || out.Message != "MachineTemplate of MachineDeployment team/a: the image is too old" {
		t.Errorf("got %+v", out)
	}
	in.Items[1].Object.Raw = []byte(strings.ReplaceAll(string(i.Object.Raw), "old", "new"))
	out = &hooksv1.ValidateTopologyResponse{}
	if v.Validate(t.Context(), in, out); out.Status == hooksv1.ResponseStatusFailure {
		t.Errorf("got %+v", out)
	}
}
