package machinepool

import (
	"crypto/sha256"
	"fmt"
	"strings"

	"github.com/slipwayhq/slipway/internal/naming"
)

// newName returns the name of the i-th machine that a plan of [decide] creates, which is also a valid host name. It is
// derived from the snapshot, including the time, because a name must not be reused while a Machine or Node of that name
// may still exist.
func newName(s snapshot, i int) string {
	sum, position := sha256.Sum256(fmt.Appendf(nil, "%s/%d/%d", s.Object.UID, s.Now.UnixNano(), i)), -1
	suffix := "-" + naming.Random(func(n int) int {
		position++
		return int(sum[position]) % n
	})
	base := s.Object.Name
	if longest := naming.MaxLength - len(suffix); len(base) > longest {
		base = strings.TrimRight(base[:longest], "-.")
	}
	return base + suffix
}
