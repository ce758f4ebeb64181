package version

// MaxKubeletLag is the number of minor versions by which a kubelet may be older than an API server, according to the
// version skew policy of Kubernetes. The preflight checks of Machines apply it through [Span.IsTooNewFor].
const MaxKubeletLag = 3

// Span is the range of versions that the instances of a component run. The preflight checks of Machines compare a new
// Machine with the span of its control plane, and upgrade plans of a topology use it for the maximum lag of workers.
// The LocalMachine controller compares the kubelet of a node image with it.
type Span struct{ Lowest, Highest Version }

// Include extends a span to contain a version.
func (s Span) Include(v Version) Span {
	if v.Compare(s.Lowest) < 0 {
		s.Lowest = v
	}
	if v.Compare(s.Highest) > 0 {
		s.Highest = v
	}
	return s
}

// IsOlderThan reports whether the oldest API server of the span has an older minor version than the kubelet, which
// Kubernetes does not support.
func (s Span) IsOlderThan(kubelet Version) bool {
	return kubelet.Major != s.Lowest.Major || kubelet.Minor > s.Lowest.Minor
}

// IsTooNewFor reports whether a kubelet is too old for the newest API server of the span.
func (s Span) IsTooNewFor(kubelet Version) bool {
	return kubelet.Minor+MaxKubeletLag < s.Highest.Minor
}

// OtherMinor returns a version of the span whose minor version differs from v; kubeadm cannot join such API servers. It
// returns false if both ends have the minor version of v.
func (s Span) OtherMinor(v Version) (Version, bool) {
	for _, end := range []Version{s.Lowest, s.Highest} {
		if !v.SameMinor(end) {
			return end, true
		}
	}
	return Version{}, false
}
