package patch

import (
	"bytes"
	"encoding/json"
	"runtime"
	"strings"
	"testing"

	runtimehooksv1 "sigs.k8s.io/cluster-api/api/runtime/hooks/v1alpha1"
)

// FuzzApply: whatever an extension sends as a patch is refused, or makes another object that is JSON, within bounds of size and memory, and
// the same each time; the object that it was applied to is as it was.
func FuzzApply(f *testing.F) {
	const object = `{"a":1,"b":{"c":["x",{"d":null}]},"e":"é"}`
	for _, data := range []string{
		"", " null ", "[]", "{}", `{"a":null,"f":[{"x":null}]}`, `[{"op":"replace","path":"/a","value":2},{"op":"test","path":"/a","value":2}]`,
		`[{"op":"add","path":"/d/e/-","value":1}]`, `[{"op":"add","path":"/b/c/+2","value":1}]`, `[{"op":"add","path":"/g/+99999999/x","value":1}]`,
		`[{"op":"add","path":"/g/9999/9999/9999/9999","value":1}]`, `[{"op":"add","path":"/b/c/-1","value":1}]`, `[{"op":"move","from":"/b","path":"/b/c"}]`,
		`[{"op":"copy","from":"","path":"/h"},{"op":"copy","from":"","path":"/h"},{"op":"copy","from":"","path":"/h"}]`, `[{"op":"remove","path":"/b/c/7"}]`,
		`[{"op":"add","path":"","value":null}]`, `[{"op":"replace","path":"","value":[1]},{"op":"add","path":"/0","value":1}]`, `[null]`, `[{"op":"remove","path":"/b/c/1/d/~2"}]`,
		strings.Repeat("[", 1000), `[{"op":"add","path":"/g` + strings.Repeat("/7777", 500) + `","value":1}]`,
	} {
		f.Add(data, true)
		f.Add(data, false)
	}
	f.Fuzz(func(t *testing.T, data string, merge bool) {
		kind := runtimehooksv1.JSONPatchType
		if merge {
			kind = runtimehooksv1.JSONMergePatchType
		}
		before := []byte(object)
		var got []byte
		var err error
		used := allocated(func() { got, err = ApplyPatch(kind, before, []byte(data)) })
		if string(before) != object {
			t.Errorf("the object became %s", before)
		}
		// The array that is recreated with each of its elements is the most: some 400 MB for one of maxIndex.
		if most := uint64(1<<30 + 1000*len(data)); used > most {
			t.Errorf("a patch of %d bytes allocates %d MiB", len(data), used>>20)
		}
		if err != nil {
			return
		}
		if !json.Valid(got) && !isEmptyPatch([]byte(data)) {
			t.Errorf("what it makes is not JSON: %q", got)
		}
		if most := len(object) + 6*len(data) + len("null,")*maxCreated + 4*maxCopied; len(got) > most {
			t.Errorf("a patch of %d bytes makes %d", len(data), len(got))
		}
		if again, err := ApplyPatch(kind, before, []byte(data)); err != nil || !bytes.Equal(got, again) {
			t.Errorf("%s, and then %s, %v", got, again, err)
		}
	})
}

// allocated returns how much memory f allocates.
func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}
