package requests_test

import (
	"fmt"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/slipwayhq/slipway/test/bench/requests"
)

const text = `# HELP apiserver_request_total [STABLE] Counter of requests.
# TYPE apiserver_request_total counter
apiserver_request_total{code="200",component="apiserver",dry_run="",group="cluster.x-k8s.io",resource="machines",scope="resource",subresource="status",verb="APPLY",version="v1beta2"} 3
apiserver_request_total{code="409",component="apiserver",dry_run="",group="cluster.x-k8s.io",resource="machines",scope="resource",subresource="status",verb="APPLY",version="v1beta2"} 1
apiserver_request_total{code="200",component="apiserver",dry_run="All",group="cluster.x-k8s.io",resource="machines",scope="resource",subresource="",verb="APPLY",version="v1beta2"} 2
apiserver_request_total{code="200",component="apiserver",dry_run="",group="",resource="secrets",scope="resource",subresource="",verb="GET",version="v1"} 1e+01
apiserver_request_total{code="200",component="apiserver",dry_run="",group="",resource="",scope="",subresource="/metrics",verb="GET",version=""} 5
# TYPE other gauge
other{a="b"} 7
`

func TestParse(t *testing.T) {
	got, err := requests.Parse(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	want := requests.Counts{
		{Verb: "APPLY", Resource: "machines/status.cluster.x-k8s.io"}:                3, // every code counts
		{Verb: "APPLY", Resource: "machines/status.cluster.x-k8s.io", Refused: true}: 1,
		{Verb: "APPLY", Resource: "machines.cluster.x-k8s.io", DryRun: true}:         2,
		{Verb: "GET", Resource: "secrets"}:                                           10,
		{Verb: "GET"}:                                                                5,
	}
	if diff := gocmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for name, broken := range map[string]string{"not metrics": "<html>{", "no requests": "other 1\n"} {
		if _, err := requests.Parse(strings.NewReader(broken)); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func TestKind(t *testing.T) {
	tests := map[string]struct {
		reason  string
		request requests.Request
		want    requests.Kind
	}{
		"list":           {"a list reads", requests.Request{Verb: "LIST", Resource: "machines.cluster.x-k8s.io"}, requests.Read},
		"watch":          {"so does a watch", requests.Request{Verb: "WATCH", Resource: "machines.cluster.x-k8s.io"}, requests.Read},
		"path":           {"/metrics and /readyz are no resources", requests.Request{Verb: "GET"}, requests.Other},
		"apply":          {"server-side apply writes", requests.Request{Verb: "APPLY", Resource: "machines.cluster.x-k8s.io"}, requests.Write},
		"collection":     {"deleting many writes", requests.Request{Verb: "DELETECOLLECTION", Resource: "events"}, requests.Write},
		"dry run":        {"nothing is stored", requests.Request{Verb: "APPLY", Resource: "machines.cluster.x-k8s.io", DryRun: true}, requests.Other},
		"review":         {"a question in the form of a write", requests.Request{Verb: "POST", Resource: "subjectaccessreviews.authorization.k8s.io"}, requests.Other},
		"token review":   {"likewise", requests.Request{Verb: "POST", Resource: "tokenreviews.authentication.k8s.io"}, requests.Other},
		"token":          {"a token is not stored", requests.Request{Verb: "POST", Resource: "serviceaccounts/token"}, requests.Other},
		"connect":        {"neither", requests.Request{Verb: "CONNECT", Resource: "pods/exec"}, requests.Other},
		"lease is write": {"renewing a lease writes", requests.Request{Verb: "PUT", Resource: "leases.coordination.k8s.io"}, requests.Write},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if got := tt.request.Kind(); got != tt.want {
				t.Errorf("%s: %v is of kind %v, want %v", tt.reason, tt.request, got, tt.want)
			}
		})
	}
}

func TestSinceTotalLines(t *testing.T) {
	secrets, machines := requests.Request{Verb: "POST", Resource: "secrets"}, requests.Request{Verb: "POST", Resource: "machines"}
	clusters, lease := requests.Request{Verb: "PUT", Resource: "clusters"}, requests.Request{Verb: "PUT", Resource: "leases.coordination.k8s.io"}
	before := requests.Counts{secrets: 4, clusters: 1}
	after := requests.Counts{secrets: 5, clusters: 1, machines: 1, lease: 9}
	since := after.Since(before)
	if diff := gocmp.Diff(requests.Counts{secrets: 1, machines: 1, lease: 9}, since); diff != "" {
		t.Errorf("since (-want +got):\n%s", diff)
	}
	own := func(r requests.Request) bool { return !r.Lease() }
	if got := since.Total(own); got != 2 {
		t.Errorf("total without leases is %d, want 2", got)
	}
	if got := fmt.Sprint(since.Lines(own)); got != "[1 × POST machines 1 × POST secrets]" {
		t.Errorf("in an error the lines read %q", got)
	}
	want := []requests.Line{{Request: machines, Count: 1}, {Request: secrets, Count: 1}}
	if diff := gocmp.Diff(want, since.Lines(own)); diff != "" {
		t.Errorf("lines (-want +got):\n%s", diff)
	}
}
