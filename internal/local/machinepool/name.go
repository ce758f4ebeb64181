package machinepool

import (
	"crypto/sha256"
	"fmt"
	"strings"
)

const (
	// alphabet of suffixes has no vowels, which could form words, and no characters that are easily confused.
	alphabet  = "bcdfghjklmnpqrstvwxz2456789"
	suffixLen = 5
	// longestBase is the maximum length of the rest of the name, so that the result is a valid host name: a Node has
	// the name of its LocalMachine.
	longestBase = 63 - suffixLen - 1
)

// newName returns the name of the i-th machine that a plan creates. It is derived from the snapshot, including the
// time, because a name must not be reused while a Machine or Node of that name may still exist.
func newName(s Snapshot, i int) string {
	base := s.Object.Name
	if len(base) > longestBase {
		base = strings.TrimRight(base[:longestBase], "-.")
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "%s/%d/%d", s.Object.UID, s.Now.UnixNano(), i))
	suffix := make([]byte, suffixLen)
	for j := range suffix {
		suffix[j] = alphabet[int(sum[j])%len(alphabet)]
	}
	return base + "-" + string(suffix)
}
