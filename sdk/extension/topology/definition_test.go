package topology_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	hooksv1 "sigs.k8s.io/cluster-api/api/runtime/hooks/v1alpha1"

	"github.com/slipwayhq/slipway/sdk/extension"
	"github.com/slipwayhq/slipway/sdk/extension/extensiontest"
	"github.com/slipwayhq/slipway/sdk/extension/topology"
)

type shared struct {
	Zone string `json:"zone"`
}

// More is embedded, and exported, so that its fields can be set.
type More struct {
	Region string `json:"region"`
}

type hidden struct {
	Never string `json:"never"`
}

type proxy struct {
	URL     string            `json:"url" required:"true" pattern:"^https?://" minLength:"9" maxLength:"99"`
	Headers map[string]string `json:"headers,omitempty"`
	hidden  string
}

type classVariables struct {
	shared
	*More
	*hidden
	Image    string                `json:"image" required:"true" description:"Image of all nodes." example:"1"`
	Disks    int64                 `json:"disks" default:"2" minimum:"1" maximum:"8"`
	Tier     string                `json:"tier" enum:"small,large" default:"small"`
	Share    float64               `json:"share"`
	Count    uint16                `json:"count"`
	Debug    bool                  `json:"debug" default:"false"`
	Proxy    *proxy                `json:"proxy,omitempty"`
	Servers  []string              `json:"servers" minItems:"1" maxItems:"3" default:"[a, b]" rule:"self.all(s, s != '')" ruleMessage:"a server has a name"`
	Window   metav1.Duration       `json:"window"`
	Memory   resource.Quantity     `json:"memory" default:"1Gi"`
	Port     intstr.IntOrString    `json:"port"`
	Address  string                `json:"address" format:"ipv4"`
	Key      []byte                `json:"key"`
	Anything any                   `json:"anything"`
	JSON     *apiextensionsv1.JSON `json:"json"`
	NoTag    bool
	Left     string `json:"-"`
}

// RT-24: the variables of a class are the fields of a struct.
func TestDiscoverVariables(t *testing.T) {
	x, err := extension.New(extension.OnErr("variables", hooksv1.DiscoverVariables, topology.DiscoverVariables[classVariables]))
	if err != nil {
		t.Fatal(err)
	}
	out := extensiontest.Call[hooksv1.DiscoverVariablesResponse](t, x, "variables", &hooksv1.DiscoverVariablesRequest{})
	if out.Status != hooksv1.ResponseStatusSuccess {
		t.Fatal(out.Message)
	}
	got := map[string]string{}
	for _, v := range out.Variables {
		schema, err := json.Marshal(v.Schema.OpenAPIV3Schema)
		if err != nil {
			t.Fatal(err)
		}
		got[v.Name] = string(schema)
		if *v.Required {
			got[v.Name] += " required"
		}
	}
	want := map[string]string{
		"zone":   `{"type":"string"}`,
		"region": `{"type":"string"}`,
		"image":  `{"description":"Image of all nodes.","example":"1","type":"string"} required`,
		"disks":  `{"type":"integer","format":"int64","maximum":8,"minimum":1,"default":2}`,
		"tier":   `{"type":"string","enum":["small","large"],"default":"small"}`,
		"share":  `{"type":"number"}`,
		"count":  `{"type":"integer","minimum":0}`,
		"debug":  `{"type":"boolean","default":false}`,
		"proxy": `{"type":"object","properties":{"headers":{"type":"object","additionalProperties":{"type":"string"}},` +
			`"url":{"type":"string","maxLength":99,"minLength":9,"pattern":"^https?://"}},"required":["url"]}`,
		"servers": `{"type":"array","items":{"type":"string"},"maxItems":3,"minItems":1,"default":["a","b"],` +
			`"x-kubernetes-validations":[{"rule":"self.all(s, s != '')","message":"a server has a name"}]}`,
		"window":   `{"type":"string"}`,
		"memory":   `{"type":"string","default":"1Gi"}`,
		"port":     `{"x-kubernetes-int-or-string":true}`,
		"address":  `{"type":"string","format":"ipv4"}`,
		"key":      `{"type":"string","format":"byte"}`,
		"anything": `{"x-kubernetes-preserve-unknown-fields":true}`,
		"json":     `{"x-kubernetes-preserve-unknown-fields":true}`,
		"NoTag":    `{"type":"boolean"}`,
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	_ = proxy{}.hidden
}

type circle struct {
	Next *circle `json:"next"`
}

type special struct{}

func (special) MarshalJSON() ([]byte, error) { return []byte("1"), nil }

// RT-24: what is no variable is said with the field, all at once.
func TestDefinitionsRefuse(t *testing.T) {
	type wrong struct {
		Builtin  string         `json:"builtin"`
		Dotted   string         `json:"a.b"`
		Channel  chan int       `json:"channel"`
		Keys     map[int]string `json:"keys"`
		Circle   circle         `json:"circle"`
		Special  special        `json:"special"`
		Bound    string         `json:"bound" minimum:"1"`
		Number   int            `json:"number" minimum:"a"`
		Pattern  int            `json:"pattern" pattern:"a"`
		Default  int            `json:"default" default:"a"`
		Enum     int            `json:"enum" enum:"1,b"`
		Good     string         `json:"good"`
		Function func()         `json:"-"`
	}
	_, err := topology.Definitions[wrong]()
	if err == nil {
		t.Fatal("no error")
	}
	for _, want := range []string{
		`wrong.Builtin: a variable cannot have the name "builtin"`, `wrong.Dotted: a variable cannot have the name "a.b"`,
		"wrong.Channel: there is no schema of chan int", "wrong.Keys: a map with keys of int", "circle.Next: topology_test.circle contains itself",
		"wrong.Special: topology_test.special has a JSON of its own", `wrong.Bound: the tag minimum:"1" is for whole numbers, and for a field of integer or number`,
		`wrong.Number: the tag minimum:"a"`, "wrong.Pattern: the tag pattern is for texts", `wrong.Default: the tag default:"a" is no value`,
		`wrong.Enum: the tag enum:"b" is no value`,
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not in\n%v", want, err)
		}
	}
	if strings.Contains(err.Error(), "Good") || strings.Contains(err.Error(), "Function") {
		t.Errorf("too much in\n%v", err)
	}
	if _, err := topology.Definitions[string](); err == nil || !strings.Contains(err.Error(), "the fields of a struct, not of string") {
		t.Errorf("got %v", err)
	}
}

// RT-24: the same struct reads the variables of a template.
func TestRead(t *testing.T) {
	v, err := topology.NewVariables([]hooksv1.Variable{
		variable("zone", `"z"`), variable("region", `"r"`), variable("image", `"own"`), variable("proxy", `{"url":"http://p"}`), variable("window", `"1m0s"`),
		variable("disks", "null"), variable("other", "1"),
	})
	if err != nil {
		t.Fatal(err)
	}
	got, err := topology.Read[classVariables](v)
	if err != nil {
		t.Fatal(err)
	}
	want := classVariables{Image: "own", Proxy: &proxy{URL: "http://p"}, Window: metav1.Duration{Duration: time.Minute}}
	want.Zone, want.More = "z", &More{Region: "r"}
	if d := cmp.Diff(want, got, cmp.AllowUnexported(classVariables{}, proxy{})); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	v, err = topology.NewVariables([]hooksv1.Variable{variable("image", "1"), variable("disks", `"x"`)})
	if err != nil {
		t.Fatal(err)
	}
	_, err = topology.Read[classVariables](v)
	for _, want := range []string{`variable "image": it is not a string`, `variable "disks": it is not a int64`} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want %q, got %v", want, err)
		}
	}
	if _, err := topology.Read[int](v); err == nil {
		t.Error("an int has no fields")
	}
}
