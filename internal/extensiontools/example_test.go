package extensiontools_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/slipwayhq/slipway/internal/extensiontools"
	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/sdk/hooks"
)

// RT-23: there is an example of every hook; it has all that a request holds, and nothing else.
func TestExamples(t *testing.T) {
	have := map[string]bool{}
	for _, h := range extensiontools.ExampleHooks() {
		have[h.ID.Hook] = true
		t.Run(h.ID.Hook, func(t *testing.T) {
			r, err := extensiontools.GetExample(h.ID.Hook)
			if err != nil {
				t.Fatal(err)
			}
			object, err := r.Object() // strict: a field that the request does not have is an error
			if err != nil {
				t.Fatal(err)
			}
			given := map[string]any{}
			if err := yaml.Unmarshal([]byte(r.YAML), &given); err != nil {
				t.Fatal(err)
			}
			for _, f := range reflect.VisibleFields(reflect.TypeOf(object).Elem()) {
				name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
				optional := name == "" || name == "settings" || name == "apiVersion" || name == "kind" || strings.HasSuffix(name, "Upgrades")
				if _, ok := given[name]; !ok && !optional {
					t.Errorf("the example has no %s", name)
				}
			}
			for _, asJSON := range []bool{false, true} {
				text, err := r.Document(asJSON)
				if err != nil {
					t.Fatal(err)
				}
				again := h.NewRequest()
				if err := yaml.UnmarshalStrict(text, again); err != nil {
					t.Fatal(err)
				}
				if d := cmp.Diff(object, again); d != "" || json.Valid(text) != asJSON {
					t.Errorf("(-want +got):\n%s", d)
				}
			}
		})
	}
	for _, h := range hooks.Default().All() {
		if !have[h.ID.Hook] {
			t.Errorf("there is no example of %s", h.ID.Hook)
		}
	}
}

// What does not exist is said with what does.
func TestUnknown(t *testing.T) {
	_, err := extensiontools.GetExample("BeforeLunch")
	if fault.KindOf(err) != fault.Invalid || !strings.Contains(fmt.Sprint(err), `there is no hook "BeforeLunch"; there are: Discovery, DiscoverVariables`) {
		t.Errorf("got %v", err)
	}
}
