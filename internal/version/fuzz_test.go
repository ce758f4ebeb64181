package version

import "testing"

// FuzzParse: versions of others are refused, or can be compared with each other in one order.
func FuzzParse(f *testing.F) {
	for _, pair := range [][2]string{{"v1.36.3", "v1.35.4"}, {"v1.29", "1.29.0-eks-5e0fdde"}, {"v1.30.0+k3s1", "v1.30.0+k3s2"}, {"", "v"}, {"v1.99999999999999999999.0", " 1.2 "}} {
		f.Add(pair[0], pair[1])
	}
	f.Fuzz(func(t *testing.T, one, two string) {
		_ = Runs(one, two)
		a, errA := Parse(one)
		b, errB := Parse(two)
		if errA != nil || errB != nil {
			return
		}
		if a.String() != one {
			t.Errorf("%q is %q", one, a)
		}
		if a.Compare(a) != 0 || a.Compare(b) != -b.Compare(a) {
			t.Errorf("%q and %q: %d and %d", one, two, a.Compare(b), b.Compare(a))
		}
	})
}
