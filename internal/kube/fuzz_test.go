package kube

import (
	"encoding/json"
	"testing"
)

// FuzzFieldSets: managed fields are part of what a client writes, whatever they name.
func FuzzFieldSets(f *testing.F) {
	for _, text := range []string{
		`{"f:spec":{"f:a":{},"f:l":{"k:{\"name\":\"x\"}":{".":{},"f:v":{}},"v:\"y\"":{},"i:0":{},"i:-1":{},"i:99":{}}}}`, `{"f:status":{"f:conditions":{}}}`, `{`, `null`, `{"k:{":{}}`, `{"f:spec":1}`,
	} {
		f.Add(text, `{"spec":{"a":1,"l":[{"name":"x","v":2},"y"]}}`)
	}
	f.Fuzz(func(t *testing.T, fields, object string) {
		var live any
		if json.Unmarshal([]byte(object), &live) != nil {
			return
		}
		set := parsedFieldSets.object([]byte(fields))
		if ownsMore(set, live, live) && !ownsMore(set, nil, live) {
			t.Errorf("%s of %s", fields, object)
		}
		_ = ownsMore(part(set, "status"), live, nil)
	})
}
