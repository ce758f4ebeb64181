// Package replay sends recorded requests to another build of an extension and says what it answers differently.
//
// Does: sends every request byte for byte, one after the other in the order of the recording, and compares the answers.
//
// Never: needs a management cluster.
//
// Read first: [Run].
package replay

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
	// within is how long one call may take: the longest timeout that a handler may have.
	within = 30 * time.Second
	// maxResponse is what a manager reads at most.
	maxResponse = 20 << 20
)

// Result is one call that was repeated.
type Result struct {
	// Number of the call in the recording, from 1.
	Number int `json:"number"`
	// Hook, Handler and Object of the call.
	Hook    string `json:"hook"`
	Handler string `json:"handler,omitempty"`
	Object  string `json:"object,omitempty"`
	// Differences, one a line; none: the answer is the same.
	Differences []string `json:"differences,omitempty"`
	// Redacted says that the request held a Secret whose data is not in the recording: the answer may differ for that.
	Redacted bool `json:"redacted,omitempty"`
	// BeforeSeconds and Seconds are how long the call took when it was recorded, and now.
	BeforeSeconds float64 `json:"beforeSeconds"`
	Seconds       float64 `json:"seconds"`
}

// Target is the build to send requests to.
type Target struct {
	URL    *url.URL
	Client *http.Client
	// Now is the clock.
	Now func() time.Time
}

// Run repeats the calls that match, and tells each result. It ends early with ctx.
func Run(ctx context.Context, calls []recording.Call, t Target, match func(recording.Call) bool, tell func(Result)) ([]Result, error) {
	var out []Result
	for n, c := range calls {
		if !match(c) {
			continue
		}
		began := t.Now()
		answer := t.send(ctx, c)
		if ctx.Err() != nil {
			return out, ctx.Err()
		}
		r := Result{
			Number: n + 1, Hook: c.Hook, Handler: c.Handler, Object: c.Object, Differences: recording.Compare(c, answer),
			Redacted: c.Redacted, BeforeSeconds: c.Seconds, Seconds: t.Now().Sub(began).Seconds(),
		}
		out = append(out, r)
		tell(r)
	}
	return out, nil
}

func (t Target) send(ctx context.Context, c recording.Call) recording.Answer {
	ctx, cancel := context.WithTimeout(ctx, within)
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
	body, err := io.ReadAll(io.LimitReader(response.Body, maxResponse))
	if err != nil {
		return recording.Answer{Error: err.Error()}
	}
	return recording.Answer{Code: response.StatusCode, Body: body}
}
