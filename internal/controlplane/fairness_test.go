package controlplane

import (
	"math"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"k8s.io/apiserver/pkg/authentication/user"
	apirequest "k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/storage"
	flowcontrolrequest "k8s.io/apiserver/pkg/util/flowcontrol/request"

	"github.com/slipwayhq/slipway/internal/controlplane/componentconfig"
	"github.com/slipwayhq/slipway/internal/controlplane/pki"
)

// S2: what a LIST costs is known, and no flag makes it unknown again.
func TestListsAreEstimated(t *testing.T) {
	flags := append(managementFlags(pki.Folder{Path: "/pki"}, "unix:///s", "/auth", false), inFlightFlags(24<<30)...)
	with := nodes().server(flags, pki.Folder{Path: "/pki"})
	for _, set := range [][]string{flags, with} {
		counted, bounded := false, false
		for _, f := range set {
			name, value := componentconfig.SplitFlag(f)
			switch name {
			case "etcd-count-metric-poll-period":
				counted = value == "30s"
			case "max-requests-inflight":
				bounded = value == "400"
			case "enable-priority-and-fairness":
				t.Errorf("%s", f)
			case "feature-gates":
				if strings.Contains(value, "SizeBasedListCostEstimate") {
					t.Errorf("%s", f)
				}
			}
		}
		if !counted || !bounded {
			t.Errorf("objects are counted: %t; requests are bounded by memory: %t", counted, bounded)
		}
	}
}

func TestInFlight(t *testing.T) {
	for memory, want := range map[int64][]string{
		1 << 30:  {"--max-requests-inflight=43", "--max-mutating-requests-inflight=21"},
		4 << 30:  {"--max-requests-inflight=86", "--max-mutating-requests-inflight=42"},
		16 << 30: {"--max-requests-inflight=342", "--max-mutating-requests-inflight=170"},
		64 << 30: {"--max-requests-inflight=400", "--max-mutating-requests-inflight=200"},
	} {
		if got := inFlightFlags(memory); !slices.Equal(got, want) {
			t.Errorf("%d GiB: %v", memory>>30, got)
		}
	}
}

// However much memory there is, a large list takes more than one seat of the level of collections, and few run at the same time.
func TestCollectionsLevel(t *testing.T) {
	for gib := int64(1); gib <= 256; gib++ {
		f := fairness{memory: gib << 30}
		limited := f.collectionsLevel().Spec.Limited
		shares := float64(*limited.NominalConcurrencyShares)
		// As kube-apiserver computes them.
		seats := math.Ceil(float64(inFlight(f.memory)) * shares / (sharesOfDefaults + shares))
		most := max(1, min(math.Ceil(seats*0.15), float64(int(seats)/handSize)))
		if *limited.BorrowingLimitPercent != 0 || most < 2 || seats/most > 7 || seats > 24 {
			t.Errorf("%d GiB: %v seats, at most %v for a list", gib, seats, most)
		}
		estimate := flowcontrolrequest.NewWorkEstimator(
			func(string) (storage.Stats, error) {
				return storage.Stats{ObjectCount: 56, EstimatedAverageObjectSizeBytes: 900_000}, nil
			},
			func(*apirequest.RequestInfo) int { return 0 }, flowcontrolrequest.DefaultWorkEstimatorConfig(),
			func(string) uint64 { return uint64(most) })
		r := httptest.NewRequest(http.MethodGet, "/api/v1/namespaces/team-a/configmaps", nil)
		r = r.WithContext(apirequest.WithRequestInfo(r.Context(), &apirequest.RequestInfo{Verb: "list", APIVersion: "v1", Resource: "configmaps", Namespace: "team-a"}))
		if got := estimate(r, collections, collections); got.InitialSeats != uint64(most) {
			t.Errorf("%d GiB: a LIST of 50 MB takes %d seats of %v", gib, got.InitialSeats, most)
		}
	}
}

func TestTenant(t *testing.T) {
	for want, users := range map[string][]user.DefaultInfo{
		"": {
			{Name: "admin", Groups: []string{adminGroup}}, {Name: "x", Groups: []string{"system:masters"}}, {Name: managerUser},
			{Name: managerUser + ":cluster-api", Groups: []string{managerGroup}}, {Name: "system:kube-scheduler"}, {Name: "system:node:management-node"},
			{Name: "system:serviceaccount:kube-system:generic-garbage-collector"},
		},
		"alice":                         {{Name: "alice"}, {Name: "alice", Groups: []string{"system:authenticated", "slipway:admin"}}},
		"system:anonymous":              {{Name: "system:anonymous"}},
		"system:serviceaccounts:team-a": {{Name: "system:serviceaccount:team-a:one"}, {Name: "system:serviceaccount:team-a:two"}},
		"slipway:manager:cluster-api":   {{Name: managerUser + ":cluster-api"}},
	} {
		for _, u := range users {
			if got := tenant(&u); got != want {
				t.Errorf("%s is of %q, want %q", u.Name, got, want)
			}
		}
	}
}
