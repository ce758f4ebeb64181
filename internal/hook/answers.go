package hook

import (
	"container/list"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math"
	"sync"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipwayhq/slipway/sdk/hooks"
)

const (
	// keptLongest, keptMost and keptBytes bound the answers that are kept.
	keptLongest = 24 * time.Hour
	keptMost    = 8192
	keptBytes   = 32 << 20
)

// answers keeps answers until their time is over. The longest unused go first where there are too many.
type answers struct {
	now func() time.Time

	mu    sync.Mutex
	byKey map[string]*list.Element
	used  *list.List // of kept, the last used first
	bytes int
}

type kept struct {
	key     string
	body    []byte
	expires time.Time
}

func newAnswers(now func() time.Time) *answers {
	return &answers{now: now, byKey: map[string]*list.Element{}, used: list.New()}
}

// keyOf names what an answer depends on: the handler in the version of its ExtensionConfig and since the last request to
// discover it once more, the object, and the input.
func keyOf(t target, of client.Object, input string, body []byte) string {
	if input == "" {
		sum := sha256.Sum256(body)
		input = hex.EncodeToString(sum[:])
	}
	return fmt.Sprintf("%s/%d/%d/%s/%s/%s/%s/%s/%s", t.settings.uid, t.settings.generation, t.fresh, t.handler.Name, t.handler.Hook,
		of.GetNamespace(), of.GetName(), of.GetUID(), input)
}

// keepFor says how long an answer is good for.
func keepFor(answer hooks.Response, reuse time.Duration) time.Duration {
	if r, ok := answer.(hooks.RetryResponse); ok && r.GetRetryAfterSeconds() > 0 {
		return min(time.Duration(r.GetRetryAfterSeconds())*time.Second, keptLongest)
	}
	return min(reuse, keptLongest)
}

// get returns an answer that is still good, or nil. What is left of the time that it asked for is in it, rounded up.
func (a *answers) get(key string, h hooks.Hook) hooks.Response {
	body, left := a.find(key)
	if left <= 0 {
		return nil
	}
	response, _, err := decode(body, h)
	if err != nil {
		return nil
	}
	if r, ok := response.(hooks.RetryResponse); ok && r.GetRetryAfterSeconds() > 0 {
		r.SetRetryAfterSeconds(int32(math.Ceil(left.Seconds())))
	}
	return response
}

// find returns what is kept and for how long it is still good; zero: there is nothing. An answer that is not good any
// more is dropped. The clock is read once: what is left of an answer that is good is more than nothing.
func (a *answers) find(key string) (body []byte, left time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	element := a.byKey[key]
	if element == nil {
		return nil, 0
	}
	found := element.Value.(kept)
	if left = found.expires.Sub(a.now()); left <= 0 {
		a.drop(element)
		return nil, 0
	}
	a.used.MoveToFront(element)
	return found.body, left
}

// keep remembers an answer for a time; 0 forgets the one before.
func (a *answers) keep(key string, body []byte, d time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if old := a.byKey[key]; old != nil {
		a.drop(old)
	}
	if d <= 0 || len(body) > keptBytes/8 {
		return
	}
	a.byKey[key] = a.used.PushFront(kept{key: key, body: body, expires: a.now().Add(d)})
	a.bytes += len(key) + len(body)
	for a.used.Len() > keptMost || a.bytes > keptBytes {
		a.drop(a.used.Back())
	}
}

func (a *answers) drop(element *list.Element) {
	old := a.used.Remove(element).(kept)
	a.bytes -= len(old.key) + len(old.body)
	delete(a.byKey, old.key)
}

// forgotten is how long it is remembered since when a handler blocks, after the time at which it asked to be called again.
const forgotten = time.Hour

// blocking says whether an answer holds something back, and since when the handler does.
func (e *Extensions) blocking(t target, of client.Object, answer hooks.Response) (Blocking, bool) {
	t.fresh = 0 // since when a handler holds back is not forgotten when its extension is discovered once more
	key := keyOf(t, of, "since", nil)
	r, ok := answer.(hooks.RetryResponse)
	if !ok || r.GetRetryAfterSeconds() <= 0 {
		e.blocks.keep(key, nil, 0)
		return Blocking{}, false
	}
	b := Blocking{
		Handler: t.String(), Message: ClipMessage(answer.GetMessage()), Since: e.cfg.Now(),
		RetryAfter: time.Duration(r.GetRetryAfterSeconds()) * time.Second,
	}
	if text, left := e.blocks.find(key); left > 0 {
		if began, err := time.Parse(time.RFC3339Nano, string(text)); err == nil {
			b.Since = began
		}
	}
	e.blocks.keep(key, []byte(b.Since.Format(time.RFC3339Nano)), b.RetryAfter+forgotten)
	return b, true
}
