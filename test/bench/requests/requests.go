package requests

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

// metric is the server's counter of requests that have been answered.
const metric = "apiserver_request_total"

// Request is a sort of request.
type Request struct {
	Verb     string `json:"verb"`               // as the server says it: GET, LIST, WATCH, POST, PUT, PATCH, APPLY, DELETE …
	Resource string `json:"resource,omitempty"` // plural, with subresource and group: machines/status.cluster.x-k8s.io; empty: a path that is no resource
	DryRun   bool   `json:"dryRun,omitempty"`
	// Refused: the answer was an error of the client's (4xx), such as a conflict, or of the server's.
	Refused bool `json:"refused,omitempty"`
}

// Kind says what a request means for the server.
type Kind int

// The kinds. A review (may this user do that?) and a token are created by POST, but nothing is stored.
const (
	Other Kind = iota // reviews, tokens, dry runs, connections, paths that are no resource
	Read
	Write
)

// Kind classes a request.
func (r Request) Kind() Kind {
	switch r.Verb {
	case "GET", "LIST", "WATCH", "WATCHLIST":
		if r.Resource != "" {
			return Read
		}
	case "POST", "PUT", "PATCH", "APPLY", "DELETE", "DELETECOLLECTION":
		stored := !strings.HasSuffix(r.Resource, ".authorization.k8s.io") && !strings.HasSuffix(r.Resource, ".authentication.k8s.io") &&
			r.Resource != "serviceaccounts/token"
		if r.Resource != "" && stored && !r.DryRun {
			return Write
		}
	}
	return Other
}

// Lease reports whether the request is about a lease: those are written by the clock, whatever else happens.
func (r Request) Lease() bool { return r.Resource == "leases.coordination.k8s.io" }

// Counts says how many requests of each sort were answered, failures included.
type Counts map[Request]int

// Parse reads the server's metrics in the Prometheus text format.
func Parse(text io.Reader) (Counts, error) {
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(text)
	if err != nil {
		return nil, fmt.Errorf("read metrics: %w", err)
	}
	family, ok := families[metric]
	if !ok {
		return nil, fmt.Errorf("metrics have no %s", metric)
	}
	out := Counts{}
	for _, m := range family.GetMetric() {
		out[request(m)] += int(m.GetCounter().GetValue())
	}
	return out, nil
}

func request(m *dto.Metric) Request {
	labels := map[string]string{}
	for _, l := range m.GetLabel() {
		labels[l.GetName()] = l.GetValue()
	}
	resource := labels["resource"]
	if s := labels["subresource"]; s != "" && resource != "" {
		resource += "/" + s
	}
	if g := labels["group"]; g != "" && resource != "" {
		resource += "." + g
	}
	code := labels["code"]
	return Request{Verb: labels["verb"], Resource: resource, DryRun: labels["dry_run"] != "", Refused: strings.HasPrefix(code, "4") || strings.HasPrefix(code, "5")}
}

// Since is what came after an earlier count.
func (c Counts) Since(earlier Counts) Counts {
	out := Counts{}
	for r, n := range c {
		if n != earlier[r] {
			out[r] = n - earlier[r]
		}
	}
	return out
}

// Total is the number of requests that keep says yes to.
func (c Counts) Total(keep func(Request) bool) int {
	n := 0
	for r, count := range c {
		if keep(r) {
			n += count
		}
	}
	return n
}

// Line is a row of a list.
type Line struct {
	Request
	Count int `json:"count"`
}

func (l Line) String() string {
	text := fmt.Sprintf("%d × %s %s", l.Count, l.Verb, l.Resource)
	if l.Refused {
		text += " (refused)"
	}
	return text
}

// Lines are the requests that keep says yes to, the most frequent first.
func (c Counts) Lines(keep func(Request) bool) []Line {
	var out []Line
	for r, n := range c {
		if keep(r) {
			out = append(out, Line{r, n})
		}
	}
	slices.SortFunc(out, func(a, b Line) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Resource, b.Resource), cmp.Compare(a.Verb, b.Verb))
	})
	return out
}
