package version

// MaxKubeletLag is how many minor versions a kubelet may be older than an API server.
const MaxKubeletLag = 3

// Span is the lowest and the highest of the versions that the instances of one component run.
type Span struct{ Lowest, Highest Version }

// Include widens a span to a version.
func (s Span) Include(v Version) Span {
	if v.Compare(s.Lowest) < 0 {
		s.Lowest = v
	}
	if v.Compare(s.Highest) > 0 {
		s.Highest = v
	}
	return s
}

// IsOlderThan reports whether a kubelet is of a newer minor version than the oldest API server of the span, which Kubernetes does
// not support.
func (s Span) IsOlderThan(kubelet Version) bool {
	return kubelet.Major != s.Lowest.Major || kubelet.Minor > s.Lowest.Minor
}

// HasLeftBehind reports whether a kubelet is too old for the newest API server of the span.
func (s Span) HasLeftBehind(kubelet Version) bool {
	return kubelet.Minor+MaxKubeletLag < s.Highest.Minor
}

// OtherMinor returns a version of the span that is of another minor version than v, which kubeadm does not join; false: both
// ends are of that of v.
func (s Span) OtherMinor(v Version) (Version, bool) {
	for _, end := range []Version{s.Lowest, s.Highest} {
		if !v.SameMinor(end) {
			return end, true
		}
	}
	return Version{}, false
}
