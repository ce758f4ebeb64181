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

// maxAttempts is the maximum number of recorded objects; a forgotten object is applied once more.
const maxAttempts = 8192

// Attempts records what was last applied to which state of an object, because applying the same again to the same state
// would change nothing. The zero value is ready to use.
type Attempts struct {
	mu   sync.Mutex
	last map[types.UID]string
}

// Record records an apply.
func (a *Attempts) Record(live client.Object, want *unstructured.Unstructured) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.last == nil || len(a.last) >= maxAttempts {
		a.last = map[types.UID]string{}
	}
	a.last[live.GetUID()] = Fingerprint(live, want)
}

// Of returns the recorded attempts for the given objects, by UID.
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

// Fingerprint identifies an apply by the applied content and the state of the object.
func Fingerprint(live client.Object, want *unstructured.Unstructured) string {
	data, err := json.Marshal(want.Object)
	if err != nil {
		return ""
	}
	sum := sha256.Sum256(data)
	return live.GetResourceVersion() + " " + hex.EncodeToString(sum[:])
}
