package workload

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/version"

	"github.com/slipwayhq/slipway/internal/fault"
)

// maxProbeBytes is the maximum size of the response to a probe, in bytes.
const maxProbeBytes = 256 << 10

// errUnauthorized means that the API server responded and rejected the credentials.
var errUnauthorized = errors.New("the API server refuses the credentials of the kubeconfig Secret; renew the Secret")

// probeAPIServer checks whether a Kubernetes API server responds at an address and accepts the credentials. Each
// connection attempt and each later probe of the connection calls it. It reads the version, which is public, and the
// API versions, which require authorization. The HTTP status is not sufficient, because a portal, a proxy or a load
// balancer in front of the API server also sends one.
func probeAPIServer(ctx context.Context, c *http.Client, address string) error {
	var release version.Info
	if err := getJSON(ctx, c, address, "version", &release); err != nil {
		return err
	}
	if release.GitVersion == "" && release.Major == "" {
		return notAPI(address, "version")
	}
	var versions metav1.APIVersions
	if err := getJSON(ctx, c, address, "api", &versions); err != nil {
		return err
	}
	if !slices.Contains(versions.Versions, "v1") {
		return notAPI(address, "api")
	}
	return nil
}

// getJSON reads a JSON document from a path of the API server.
func getJSON(ctx context.Context, c *http.Client, address, path string, into any) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address+path, nil)
	if err != nil {
		return err
	}
	req.Header.Set("Accept", "application/json")
	resp, err := c.Do(req)
	if err != nil {
		return describe(err, req.URL.Host, address)
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxProbeBytes+1))
	if err == nil {
		err = ctx.Err() // a server that notices the timeout first ends its half of the body in good order
	}
	switch {
	case err != nil:
		return describe(err, req.URL.Host, address)
	case resp.StatusCode != http.StatusOK:
		return statusError(resp.StatusCode, body, address, path)
	case len(body) > maxProbeBytes || !isJSON(resp) || json.Unmarshal(body, into) != nil:
		return notAPI(address, path)
	}
	return nil
}

func isJSON(resp *http.Response) bool {
	media, _, err := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	return err == nil && media == "application/json"
}

// statusError returns the error for a status other than 200.
func statusError(status int, body []byte, address, path string) error {
	switch {
	case status == http.StatusUnauthorized:
		return errUnauthorized
	case status == http.StatusForbidden && isForbidden(body):
		return fault.New(fault.Invalid, "Forbidden", "the API server at %s does not let the user of the kubeconfig Secret get /%s: "+
			"give that user ClusterRole system:discovery there, or renew the Secret", address, path)
	case status == http.StatusTooManyRequests:
		return fault.New(fault.Unreachable, "Overloaded", "the API server at %s refuses requests because it has too many (HTTP status 429): "+
			"reduce its load, or give it more resources", address)
	case status >= http.StatusMultipleChoices && status < http.StatusBadRequest:
		return fault.New(fault.Invalid, "Redirected", "the API server at %s redirects to another address: set server in the kubeconfig Secret to that", address)
	case status >= http.StatusInternalServerError:
		return fault.New(fault.Unreachable, "HTTPStatus", "the API server at %s returns HTTP status %d", address, status)
	}
	return notAPI(address, path)
}

// isForbidden reports whether a response was written by an API server, and not by a proxy in front of it.
func isForbidden(body []byte) bool {
	var s metav1.Status
	return json.Unmarshal(body, &s) == nil && s.Kind == "Status" && s.Reason == metav1.StatusReasonForbidden
}

func notAPI(address, path string) error {
	return fault.New(fault.Invalid, "NotAnAPIServer", "the server at %s is not a Kubernetes API server (unexpected response to /%s): "+
		"correct server in the kubeconfig Secret, and check for a proxy or portal in between", address, path)
}

// describe returns the error for a call without a response.
func describe(err error, host, address string) error {
	if f := fault.As(err); f != nil { // from the connection policy, or the limits for responses
		return f
	}
	return &callError{Host: host, address: address, cause: err}
}

// unreachable returns the message for any call without a response.
func unreachable(address string) string {
	return fmt.Sprintf("the API server at %s does not respond as described in the kubeconfig Secret: "+
		"check that it runs, and server and certificate-authority-data in the Secret", address)
}
