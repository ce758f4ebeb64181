package topology

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// mostAttempts is how many objects are remembered at most; what was forgotten is applied once more.
const mostAttempts = 8192

// Attempts remembers what was last applied to which state of an object: to apply it once more to the same state would change
// nothing. The zero value is ready to use.
type Attempts struct {
	mu   sync.Mutex
	last map[types.UID]string
}

// Record records what was applied.
func (a *Attempts) Record(live client.Object, want *unstructured.Unstructured) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.last == nil || len(a.last) >= mostAttempts {
		a.last = map[types.UID]string{}
	}
	a.last[live.GetUID()] = Fingerprint(live, want)
}

// Of returns the attempts on those of the objects that there were any on.
func (a *Attempts) Of(objects []client.Object) map[types.UID]string {
	a.mu.Lock()
	defer a.mu.Unlock()
	var out map[types.UID]string
	for _, o := range objects {
		if last, ok := a.last[o.GetUID()]; ok {
			if out == nil {
				out = map[types.UID]string{}
			}
			out[o.GetUID()] = last
		}
	}
	return out
}

// Fingerprint tells apart what is applied to which state of an object.
func Fingerprint(live client.Object, want *unstructured.Unstructured) string {
	data, err := json.Marshal(want.Object)
	if err != nil {
		return ""
	}
	sum := sha256.Sum256(data)
	return live.GetResourceVersion() + " " + hex.EncodeToString(sum[:])
}
