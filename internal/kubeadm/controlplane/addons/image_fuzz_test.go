package addons

import "testing"

// FuzzImage: an image that a workload cluster runs is refused, or written as it was read.
func FuzzImage(f *testing.F) {
	for _, text := range []string{"registry.k8s.io/coredns/coredns:v1.14.2", "localhost:5000/kube-proxy:v1.36.3", "coredns", "a@sha256:b", ":", "/:", "a:b:c", "r/a:t+x"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		i, err := parseImage(text)
		if err == nil && i.String() != text {
			t.Errorf("%q is read as %q", text, i)
		}
		_, _ = release(i.tag)
	})
}
