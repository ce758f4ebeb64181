package extensiontools

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/slipwayhq/slipway/sdk/extension/recording"
)

const (
	// callTimeout is the timeout of one call: the maximum timeout of a handler, as in package hook (client.go).
	callTimeout = 30 * time.Second
	// replayMaxResponse is the maximum response size that a manager accepts, as in package hook (conn.go).
	replayMaxResponse = 20 << 20
)

// ReplayResult is the result of one repeated call. `slipway extension replay -o json` prints it.
type ReplayResult struct {
	// Number is the position of the call in the recording, starting with 1.
	Number int `json:"number"`
	// Hook, Handler and Object identify the call.
	Hook    string `json:"hook"`
	Handler string `json:"handler,omitempty"`
	Object  string `json:"object,omitempty"`
	// Differences are the differences of the responses, one per line; empty if they are equal.
	Differences []string `json:"differences,omitempty"`
	// Redacted means that the request contained a Secret whose data is not in the recording, which may cause
	// differences.
	Redacted bool `json:"redacted,omitempty"`
	// BeforeSeconds and Seconds are the duration of the recorded and of the repeated call.
	BeforeSeconds float64 `json:"beforeSeconds"`
	Seconds       float64 `json:"seconds"`
}

// ReplayTarget is the build that receives the requests. `slipway extension replay` fills it in with the build that it
// has started.
type ReplayTarget struct {
	URL    *url.URL
	Client *http.Client
	// Now is the clock.
	Now func() time.Time
}

// Replay repeats the recorded calls for which match returns true with another build of an extension, and compares the
// responses, for `slipway extension replay`. It calls tell with each result, and ends early with ctx.
func Replay(ctx context.Context, calls []recording.Call, t ReplayTarget, match func(recording.Call) bool, tell func(ReplayResult)) ([]ReplayResult, error) {
	var out []ReplayResult
	for n, c := range calls {
		if !match(c) {
			continue
		}
		began := t.Now()
		answer := t.send(ctx, c)
		if ctx.Err() != nil {
			return out, ctx.Err()
		}
		r := ReplayResult{
			Number: n + 1, Hook: c.Hook, Handler: c.Handler, Object: c.Object, Differences: recording.Compare(c, answer),
			Redacted: c.Redacted, BeforeSeconds: c.Seconds, Seconds: t.Now().Sub(began).Seconds(),
		}
		out = append(out, r)
		tell(r)
	}
	return out, nil
}

func (t ReplayTarget) send(ctx context.Context, c recording.Call) recording.Answer {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	target := *t.URL
	target.Path = strings.TrimSuffix(target.Path, "/") + c.Path
	target.RawQuery = c.Query
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, target.String(), bytes.NewReader([]byte(c.Request)))
	if err != nil {
		return recording.Answer{Error: err.Error()}
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := t.Client.Do(request)
	if err != nil {
		return recording.Answer{Error: err.Error()}
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(response.Body, replayMaxResponse))
	if err != nil {
		return recording.Answer{Error: err.Error()}
	}
	return recording.Answer{Code: response.StatusCode, Body: body}
}
