package simulated

import "testing"

// FuzzFaults: an annotation that asks for faults is refused, or asks for something that is there.
func FuzzFaults(f *testing.F) {
	for _, text := range []string{"etcd-down", "etcd-alarm=NOSPACE, pod-down=etcd", "etcd-delay=3s", "etcd-delay=x", ",", "pod-down", "etcd-alarm=OTHER"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		w, err := parseFaults(text)
		if err == nil && w.delay < 0 {
			t.Errorf("%q makes it quicker by %s", text, w.delay)
		}
	})
}
