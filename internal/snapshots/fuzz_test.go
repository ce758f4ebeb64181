package snapshots

import "testing"

// FuzzParseName: a name in a store, or in a request, is that of one cluster and one second, or refused.
func FuzzParseName(f *testing.F) {
	for _, name := range []string{"demo-20260101T000000Z", "a.b-c-20261231T235959Z", "-20260101T000000Z", "demo-20260132T000000Z", "../x-20260101T000000Z", "demo-20260101T000000Z.json"} {
		f.Add(name)
	}
	f.Fuzz(func(t *testing.T, name string) {
		cluster, at, ok := ParseName(name)
		if ok && Name(cluster, at) != name {
			t.Errorf("%q is that of %q at %s, which is %q", name, cluster, at, Name(cluster, at))
		}
	})
}
