package hook

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	hooksv1 "sigs.k8s.io/cluster-api/api/runtime/hooks/v1alpha1"
	runtimev1 "sigs.k8s.io/cluster-api/api/runtime/v1beta2"

	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/sdk/hooks"
)

const (
	// mostText is the longest text that an answer may leave in a condition: less than the API takes, with room for what is
	// said around it. mostMemory is what reading one may allocate, for each hook, besides a multiple of its size.
	mostText   = 5 * maxMessage
	mostMemory = 256 << 20
)

// FuzzAnswers: whatever an extension answers to any hook is a response or an error, read within bounds, and what is said of
// it fits a condition and is the same the next time.
func FuzzAnswers(f *testing.F) { // RT-10, RT-11, RT-15, RT-28
	f.Add([]byte(`{"status":"Success","variables":[` + strings.Repeat("{},", 200_000) + `{}]}`))
	f.Add([]byte(`{"status":"Success","handlers":[` + strings.Repeat(`{"name":"`+strings.Repeat("É", 300)+`"},`, 400) + `{}]}`))
	f.Add([]byte(`{"status":"Failure","message":"` + strings.Repeat("é", maxMessage) + `"}`))
	f.Add([]byte(`{"kind":"` + strings.Repeat("K", 1<<20) + `"}`))
	f.Add([]byte(`{` + strings.Repeat(`"`+strings.Repeat("x", 1000)+`":1,`, 200) + `"status":"Success"}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		for _, h := range hooks.Default().All() {
			response, unread, err := decode(body, h)
			if used := allocated(func() { _, _, _ = decode(body, h) }); used > mostMemory+100*uint64(len(body)) {
				t.Errorf("%s: reading %d bytes allocates %d MiB", h.ID.Hook, len(body), used>>20)
			}
			if _, _, again := decode(body, h); fmt.Sprint(err) != fmt.Sprint(again) {
				t.Errorf("%s: %v, then %v", h.ID.Hook, err, again)
			}
			if err != nil {
				fitsCondition(t, h, err)
				continue
			}
			if unread != nil {
				fitsText(t, h, ClipMessage(unread.Error()))
			}
			fuzzUse(t, h, body, response)
		}
	})
}

// allocated returns how much memory f allocates.
func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// fitsCondition checks an error about an answer: it is a fault that anybody may see.
func fitsCondition(t *testing.T, h hooks.Hook, err error) {
	t.Helper()
	found := fault.As(err)
	if found == nil || found.Reason == "" {
		t.Errorf("%s: an error without a reason: %v", h.ID.Hook, err)
		return
	}
	fitsText(t, h, err.Error())
	fitsText(t, h, fmt.Sprint(found.Details...))
}

func fitsText(t *testing.T, h hooks.Hook, text string) {
	t.Helper()
	control := func(r rune) bool { return unicode.IsControl(r) && r != '\n' }
	if len(text) > mostText || !utf8.ValidString(text) || strings.ContainsFunc(text, control) {
		t.Errorf("%s: a text of %d bytes that no condition takes: %.200q", h.ID.Hook, len(text), text)
	}
}

// fuzzUse does with a response what calls and discoveries do with it.
func fuzzUse(t *testing.T, h hooks.Hook, body []byte, response hooks.Response) {
	t.Helper()
	out := h.NewResponse()
	if err := hooks.Default().Up(response, out); err != nil {
		t.Errorf("%s: %v", h.ID.Hook, err)
	}
	fitsText(t, h, out.GetMessage())
	all := h.NewResponse()
	aggregate([]hooks.Response{response, response, response, response, response, response}, all)
	fitsText(t, h, all.GetMessage())
	store := newResponseCache(func() time.Time { return time.Unix(0, 0) })
	if d := cacheTTL(response, 0); d > 0 {
		store.put("key", response, len(body), d)
		if kept, ok := store.get("key").(hooks.RetryResponse); !ok || kept.GetRetryAfterSeconds() <= 0 {
			t.Errorf("%s: an answer that blocks is kept as %+v", h.ID.Hook, kept)
		}
	}
	if discovered, ok := response.(*hooksv1.DiscoveryResponse); ok {
		fuzzDiscovery(t, h, discovered)
	}
}

// fuzzDiscovery makes a list of handlers those of an extension: they are the same after a restart.
func fuzzDiscovery(t *testing.T, h hooks.Hook, d *hooksv1.DiscoveryResponse) {
	t.Helper()
	handlers, err := handlersIn(d, hooks.Default())
	slices.Reverse(d.Handlers)
	if _, again := handlersIn(d, hooks.Default()); fmt.Sprint(err) != fmt.Sprint(again) {
		t.Errorf("%v, and in another order %v", err, again)
	}
	if err != nil {
		fitsCondition(t, h, err)
		return
	}
	slices.SortFunc(handlers, compareHandlers)
	c := &runtimev1.ExtensionConfig{}
	c.Name, c.Status.Handlers = "ext", StatusHandlers("ext", handlers)
	restored, err := handlersOf(c)
	if diff := cmp.Diff(handlers, restored); diff != "" || err != nil {
		t.Errorf("restored: %v\n%s", err, diff)
	}
}

// RT-10: a small answer does not become a large object. An empty object of three bytes is a variable of some hundred.
func TestAnswersAreBounded(t *testing.T) {
	tests := map[string]struct {
		hook, list, element string
		times               int
		ok                  bool
	}{
		"many variables":         {hook: "DiscoverVariables", list: "variables", element: "{}", times: 1000, ok: true},
		"too many variables":     {hook: "DiscoverVariables", list: "variables", element: "{}", times: 6 << 20},
		"large patches":          {hook: "GeneratePatches", list: "items", element: `{"uid":"u","patchType":"JSONPatch","patch":"` + strings.Repeat("W10g", 1000) + `"}`, times: 4000, ok: true},
		"many patches":           {hook: "GeneratePatches", list: "items", element: `{"uid":"u","patchType":"JSONPatch","patch":"W10="}`, times: 10_000, ok: true},
		"too many patches":       {hook: "GeneratePatches", list: "items", element: `{}`, times: 6 << 20},
		"commas in texts":        {hook: "GeneratePatches", list: "items", element: `{"uid":"\",{[` + strings.Repeat(",", 1<<20) + `"}`, times: 1, ok: true},
		"too many unread things": {hook: "BeforeClusterCreate", list: "other", element: "1", times: 9 << 20},
	}
	for name, tt := range tests {
		h, _ := hooks.Default().Hook(hookNamed(tt.hook))
		body := []byte(`{"status":"Success","` + tt.list + `":[` + strings.Repeat(tt.element+",", tt.times-1) + tt.element + `]}`)
		if len(body) > maxResponseBytes {
			t.Fatalf("%s: %d bytes are refused as they are", name, len(body))
		}
		var err error
		used := allocated(func() { _, _, err = decode(body, h) })
		if (err == nil) != tt.ok || err != nil && (reasonOf(err) != reasonTooLarge || err.Error() != "the response has more than 65536 values") {
			t.Errorf("%s: %v", name, err)
		}
		if used > mostMemory {
			t.Errorf("%s: reading %d bytes allocates %d MiB", name, len(body), used>>20)
		}
	}
}

// RT-15: messages of handlers are bounded, one by one and together, and so is what is made of them.
func TestMessagesAreBounded(t *testing.T) {
	h, _ := hooks.Default().Hook(hookNamed("BeforeClusterCreate"))
	long := strings.Repeat("ä", 1<<20)
	response, _, err := decode([]byte(`{"status":"Success","message":"`+long+`"}`), h)
	if err != nil {
		t.Fatal(err)
	}
	if n := len(response.GetMessage()); n > maxMessage+len("…") || n < maxMessage-1 {
		t.Errorf("a message of %d bytes", n)
	}
	many := slices.Repeat([]hooks.Response{response}, 100)
	all := h.NewResponse()
	aggregate(many, all)
	if n := len(all.GetMessage()); n > 4*maxMessage+len("…") || n < 4*maxMessage-1 {
		t.Errorf("a message of %d bytes of %d handlers", n, len(many))
	}
}
