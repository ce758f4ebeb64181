package extensiontest

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	hooksv1 "sigs.k8s.io/cluster-api/api/runtime/hooks/v1alpha1"

	"github.com/slipwayhq/slipway/sdk/extension"
	"github.com/slipwayhq/slipway/sdk/extension/patch"
	"github.com/slipwayhq/slipway/sdk/extension/recording"
	"github.com/slipwayhq/slipway/sdk/extension/upgradeplan"
)

// Twice calls the handler twice like [Call]. The test fails if the responses differ, because callers may repeat a call
// at any time, compare messages, and cache responses.
func Twice[R any, PR response[R]](t testing.TB, x *extension.Extension, handler string, request runtime.Object) PR {
	t.Helper()
	_, first := call[R, PR](t, x, handler, request)
	out, second := call[R, PR](t, x, handler, request)
	was, _ := recording.Redact(first)
	if d := recording.Compare(recording.Call{Response: string(was)}, recording.Answer{Body: second}); len(d) > 0 {
		t.Errorf("handler %q answers the same request differently the second time:\n%s", handler, strings.Join(d, "\n"))
	}
	return out
}

// Plan fails the test if a caller would reject the plan in a response; see [upgradeplan.Check].
func Plan(t testing.TB, in *hooksv1.GenerateUpgradePlanRequest, out *hooksv1.GenerateUpgradePlanResponse) {
	t.Helper()
	if err := upgradeplan.Check(in, out); err != nil {
		t.Errorf("the plan cannot be used: %v", err)
	}
}

// Allowed applies the patches like [Patched], and fails the test if a patch changes fields that a caller protects.
// Permitted are spec.template.spec, and labels and annotations of the template and of spec.template.
func Allowed(t testing.TB, in *hooksv1.GeneratePatchesRequest, out *hooksv1.GeneratePatchesResponse) {
	t.Helper()
	open := [][]string{
		{"metadata", "labels"}, {"metadata", "annotations"}, {"spec", "template", "spec"},
		{"spec", "template", "metadata", "labels"}, {"spec", "template", "metadata", "annotations"},
	}
	patched := Patched(t, in, out)
	for _, i := range in.Items {
		var before map[string]any
		if err := json.Unmarshal(i.Object.Raw, &before); err != nil {
			t.Fatalf("template %s: %v", i.UID, err)
		}
		var after map[string]any
		raw, err := patched[string(i.UID)].MarshalJSON()
		if err == nil {
			err = json.Unmarshal(raw, &after)
		}
		if err != nil {
			t.Fatalf("template %s: %v", i.UID, err)
		}
		for _, path := range differences(before, after, nil) {
			if !slices.ContainsFunc(open, func(o []string) bool { return len(path) >= len(o) && slices.Equal(path[:len(o)], o) }) {
				t.Errorf("template %s: a patch changes %s, which callers refuse", i.UID, pointer(path))
			}
		}
	}
}

// inPlace is the constraint for requests of the CanUpdate hooks.
type inPlace interface {
	*hooksv1.CanUpdateMachineRequest | *hooksv1.CanUpdateMachineSetRequest
}

// Uncovered returns the changes that remain after the patches in a response to CanUpdateMachine or CanUpdateMachineSet:
// paths such as "infrastructureMachine /spec/image", sorted. It is empty if the extension covers all changes, so that
// no Machine is replaced. The test fails if a patch cannot be applied, or changes anything but the spec
// (spec.template.spec of a MachineSet and of templates).
func Uncovered[Q inPlace](t testing.TB, in Q, out hooksv1.ResponseObject) []string {
	t.Helper()
	current, desired, patches := fields(t, in, "current"), fields(t, in, "desired"), decoded(t, out)
	root := []string{"spec"}
	if _, sets := any(in).(*hooksv1.CanUpdateMachineSetRequest); sets {
		root = []string{"spec", "template", "spec"}
	}
	var left []string
	for _, name := range slices.Sorted(maps.Keys(current)) {
		var p hooksv1.Patch
		if raw, ok := patches[name+"Patch"]; ok {
			if err := json.Unmarshal(raw, &p); err != nil {
				t.Fatalf("%sPatch: %v", name, err)
			}
		}
		after := current[name]
		if p.IsDefined() {
			var err error
			if after, err = patch.Apply(p.PatchType, current[name], p.Patch); err != nil {
				t.Fatalf("%sPatch: %v", name, err)
			}
		}
		for _, path := range differences(object(t, current[name]), object(t, after), nil) {
			if len(path) < len(root) || !slices.Equal(path[:len(root)], root) {
				t.Errorf("%sPatch changes %s; a patch is for %s only", name, pointer(path), pointer(root))
			}
		}
		for _, path := range differences(object(t, after), object(t, desired[name]), nil) {
			if len(path) >= len(root) && slices.Equal(path[:len(root)], root) {
				left = append(left, name+" "+pointer(path))
			}
		}
	}
	return left
}

// fields returns the current or desired objects of a request as JSON.
func fields(t testing.TB, in any, side string) map[string]json.RawMessage {
	t.Helper()
	var out map[string]json.RawMessage
	if err := json.Unmarshal(decoded(t, in)[side], &out); err != nil {
		t.Fatalf("the request has no %s objects: %v", side, err)
	}
	maps.DeleteFunc(out, func(_ string, raw json.RawMessage) bool { return string(raw) == "null" })
	return out
}

func decoded(t testing.TB, from any) map[string]json.RawMessage {
	t.Helper()
	raw, err := json.Marshal(from)
	var out map[string]json.RawMessage
	if err == nil {
		err = json.Unmarshal(raw, &out)
	}
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func object(t testing.TB, raw []byte) any {
	t.Helper()
	if len(raw) == 0 {
		return nil
	}
	var out any
	if err := json.Unmarshal(raw, &out); err != nil {
		t.Fatal(err)
	}
	return out
}

// differences returns the paths at which two values differ. Lists are compared as a whole.
func differences(a, b any, at []string) [][]string {
	if reflect.DeepEqual(a, b) {
		return nil
	}
	was, ok := a.(map[string]any)
	is, ok2 := b.(map[string]any)
	if !ok && a != nil || !ok2 && b != nil || !ok && !ok2 {
		return [][]string{at}
	}
	keys := slices.AppendSeq(slices.Collect(maps.Keys(was)), maps.Keys(is))
	slices.Sort(keys)
	var out [][]string
	for _, key := range slices.Compact(keys) {
		out = append(out, differences(was[key], is[key], append(slices.Clone(at), key))...)
	}
	return out
}

func pointer(path []string) string {
	var b strings.Builder
	for _, p := range path {
		_, _ = fmt.Fprintf(&b, "/%s", strings.NewReplacer("~", "~0", "/", "~1").Replace(p))
	}
	return b.String()
}
