package repository

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"time"

	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/pause"
)

// fetcher downloads files over HTTP, for the repositories github, gitlab and web and for the Go module proxy.
type fetcher struct {
	client *http.Client
	pause  func(context.Context, time.Duration) error
}

// tryTimeout is the timeout of one attempt.
const tryTimeout = time.Minute

// pauses returns the delays before the second and each further attempt.
func pauses() []time.Duration { return []time.Duration{time.Second, 4 * time.Second} }

// fetcher returns the fetcher that a repository over HTTP uses.
func (o Options) fetcher() fetcher {
	f := fetcher{client: &http.Client{Transport: o.transport()}, pause: o.Pause}
	if f.pause == nil {
		f.pause = pause.Sleep
	}
	return f
}

// request is a GET request, with an optional token for its host.
type request struct {
	url, accept, token string
	// credentials is the variable that provides the token, for error messages.
	credentials string
}

// response is a complete response. github.go reads also the header.
type response struct {
	body   []byte
	header http.Header
}

// get sends a request, and retries temporary failures. The repositories and the Go module proxy call it.
func (f fetcher) get(ctx context.Context, r request) (response, error) {
	out, err := f.try(ctx, r)
	for _, d := range pauses() {
		if !retryable(err) {
			break
		}
		if err := f.pause(ctx, d); err != nil {
			return response{}, err
		}
		out, err = f.try(ctx, r)
	}
	return out, err
}

// retryable reports whether a retry may succeed. Rate limits are not retried.
func retryable(err error) bool {
	known := fault.As(err)
	return known != nil && known.Reason == reasonUnreachable && !errors.Is(err, context.Canceled)
}

func (f fetcher) try(ctx context.Context, r request) (response, error) {
	ctx, cancel := context.WithTimeout(ctx, tryTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, r.url, http.NoBody)
	if err != nil {
		return response{}, fault.New(fault.Invalid, reasonURL, "the URL of a repository is invalid; correct the url of the provider")
	}
	req.Header.Set("User-Agent", "slipway")
	if r.accept != "" {
		req.Header.Set("Accept", r.accept)
	}
	if r.token != "" {
		req.Header.Set("Authorization", "Bearer "+r.token)
	}
	resp, err := f.client.Do(req)
	if err != nil {
		return response{}, unreachable(req.URL, err)
	}
	defer func() { _ = resp.Body.Close() }()
	if err := checkStatus(resp, r); err != nil {
		return response{}, err
	}
	what := req.URL.Host + req.URL.Path
	if resp.ContentLength > maxFile {
		return response{}, tooLarge(what)
	}
	body, err := readAll(resp.Body, what)
	if err != nil && fault.As(err) == nil {
		err = fault.New(fault.Unreachable, reasonUnreachable, "the download of %s is incomplete (%v); run the command again", what, err).From(err)
	}
	return response{body, resp.Header}, err
}

// unreachable returns the fault for a request without a response. The URL is shortened because its query may contain a
// signature.
func unreachable(u *url.URL, err error) error {
	if known := fault.As(err); known != nil {
		return known
	}
	var wrapped *url.Error
	if errors.As(err, &wrapped) {
		err = wrapped.Err
	}
	return fault.New(fault.Unreachable, reasonUnreachable, "%s does not respond (%v); check the network and the proxy settings, then run the command again. Without a network, set the url of the provider in the configuration file to a folder with the files of the release", u.Host, err).From(err)
}

// checkStatus returns a fault unless the response has the status 200.
func checkStatus(resp *http.Response, r request) error {
	host, path := resp.Request.URL.Host, resp.Request.URL.Path
	limited := resp.StatusCode == http.StatusTooManyRequests ||
		resp.StatusCode == http.StatusForbidden && (resp.Header.Get("X-Ratelimit-Remaining") == "0" || resp.Header.Get("Retry-After") != "")
	switch {
	case resp.StatusCode == http.StatusOK:
		return nil
	case limited && r.token == "" && r.credentials != "":
		return fault.New(fault.Unreachable, reasonRateLimited, "the rate limit of %s for requests without a token is exceeded; set %s, or run the command again later", host, r.credentials)
	case limited:
		return fault.New(fault.Unreachable, reasonRateLimited, "the rate limit of %s is exceeded; run the command again later", host)
	case resp.StatusCode == http.StatusNotFound || resp.StatusCode == http.StatusGone:
		return fault.New(fault.Gone, reasonNotFound, "%s has no %s; check the version and the url of the provider", host, path)
	case resp.StatusCode == http.StatusUnauthorized || resp.StatusCode == http.StatusForbidden:
		if r.token != "" {
			return fault.New(fault.Invalid, reasonCredentials, "%s rejected the token in %s (%s); set a token that is allowed to read %s", host, r.credentials, resp.Status, path)
		}
		if r.credentials != "" {
			return fault.New(fault.Invalid, reasonCredentials, "%s requires a token (%s); set %s", host, resp.Status, r.credentials)
		}
		return fault.New(fault.Invalid, reasonCredentials, "%s denied access to %s (%s); use a repository that can be read without credentials", host, path, resp.Status)
	case resp.StatusCode >= 500:
		return fault.New(fault.Unreachable, reasonUnreachable, "%s responded with %s; run the command again later", host, resp.Status)
	}
	return fault.New(fault.Invalid, reasonURL, "%s responded with %s for %s; check the url of the provider", host, resp.Status, path)
}
