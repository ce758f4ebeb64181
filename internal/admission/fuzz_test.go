package admission

import "testing"

// FuzzTag: a tag of CoreDNS that a user names is refused, or is a version.
func FuzzTag(f *testing.F) {
	for _, tag := range []string{"v1.14.2", "1.8", "v1.9.3-eks.1", "latest", "", "v99999999999999999999.0.0", "v1.2.3_4"} {
		f.Add(tag)
	}
	f.Fuzz(func(t *testing.T, tag string) {
		if v, err := parseTag(tag); err == nil && v.Compare(v) != 0 {
			t.Errorf("%q", tag)
		}
	})
}
