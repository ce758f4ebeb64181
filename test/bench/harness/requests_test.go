package harness

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

const requestsText = `# HELP apiserver_request_total [STABLE] Counter of requests.
# TYPE apiserver_request_total counter
apiserver_request_total{code="200",component="apiserver",dry_run="",group="cluster.x-k8s.io",resource="machines",scope="resource",subresource="status",verb="APPLY",version="v1beta2"} 3
apiserver_request_total{code="409",component="apiserver",dry_run="",group="cluster.x-k8s.io",resource="machines",scope="resource",subresource="status",verb="APPLY",version="v1beta2"} 1
apiserver_request_total{code="200",component="apiserver",dry_run="All",group="cluster.x-k8s.io",resource="machines",scope="resource",subresource="",verb="APPLY",version="v1beta2"} 2
apiserver_request_total{code="200",component="apiserver",dry_run="",group="",resource="secrets",scope="resource",subresource="",verb="GET",version="v1"} 1e+01
apiserver_request_total{code="200",component="apiserver",dry_run="",group="",resource="",scope="",subresource="/metrics",verb="GET",version=""} 5
# TYPE other gauge
other{a="b"} 7
`

func TestParseRequests(t *testing.T) {
	got := ParseRequests([]byte(requestsText))
	want := RequestCounts{
		{Verb: "APPLY", Resource: "machines/status.cluster.x-k8s.io"}:                3, // every code counts
		{Verb: "APPLY", Resource: "machines/status.cluster.x-k8s.io", Refused: true}: 1,
		{Verb: "APPLY", Resource: "machines.cluster.x-k8s.io", DryRun: true}:         2,
		{Verb: "GET", Resource: "secrets"}:                                           10,
		{Verb: "GET"}:                                                                5,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for name, broken := range map[string]string{"not metrics": "<html>{", "no requests": "other 1\n"} {
		if err := Try(func() { ParseRequests([]byte(broken)) }); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func TestReadsAndWrites(t *testing.T) {
	tests := map[string]struct {
		reason  string
		request Request
		want    string // read, write or empty
	}{
		"list":           {"a list reads", Request{Verb: "LIST", Resource: "machines.cluster.x-k8s.io"}, "read"},
		"watch":          {"so does a watch", Request{Verb: "WATCH", Resource: "machines.cluster.x-k8s.io"}, "read"},
		"path":           {"/metrics and /readyz are no resources", Request{Verb: "GET"}, ""},
		"apply":          {"server-side apply writes", Request{Verb: "APPLY", Resource: "machines.cluster.x-k8s.io"}, "write"},
		"collection":     {"deleting many writes", Request{Verb: "DELETECOLLECTION", Resource: "events"}, "write"},
		"dry run":        {"nothing is stored", Request{Verb: "APPLY", Resource: "machines.cluster.x-k8s.io", DryRun: true}, ""},
		"review":         {"a question in the form of a write", Request{Verb: "POST", Resource: "subjectaccessreviews.authorization.k8s.io"}, ""},
		"token review":   {"likewise", Request{Verb: "POST", Resource: "tokenreviews.authentication.k8s.io"}, ""},
		"token":          {"a token is not stored", Request{Verb: "POST", Resource: "serviceaccounts/token"}, ""},
		"connect":        {"neither", Request{Verb: "CONNECT", Resource: "pods/exec"}, ""},
		"lease is write": {"renewing a lease writes", Request{Verb: "PUT", Resource: "leases.coordination.k8s.io"}, "write"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if reads, writes := tt.request.Reads(), tt.request.Writes(); reads != (tt.want == "read") || writes != (tt.want == "write") {
				t.Errorf("%s: %v reads: %v, writes: %v; want %q", tt.reason, tt.request, reads, writes, tt.want)
			}
		})
	}
}

func TestSinceTotalLines(t *testing.T) {
	secrets, machines := Request{Verb: "POST", Resource: "secrets"}, Request{Verb: "POST", Resource: "machines"}
	clusters, lease := Request{Verb: "PUT", Resource: "clusters"}, Request{Verb: "PUT", Resource: "leases.coordination.k8s.io"}
	before := RequestCounts{secrets: 4, clusters: 1}
	after := RequestCounts{secrets: 5, clusters: 1, machines: 1, lease: 9}
	since := after.Since(before)
	if diff := cmp.Diff(RequestCounts{secrets: 1, machines: 1, lease: 9}, since); diff != "" {
		t.Errorf("since (-want +got):\n%s", diff)
	}
	own := func(r Request) bool { return !r.IsLease() }
	if got := since.Total(own); got != 2 {
		t.Errorf("total without leases is %d, want 2", got)
	}
	want := []RequestLine{{Request: machines, Count: 1}, {Request: secrets, Count: 1}}
	if diff := cmp.Diff(want, since.Lines(own)); diff != "" {
		t.Errorf("lines (-want +got):\n%s", diff)
	}
}
