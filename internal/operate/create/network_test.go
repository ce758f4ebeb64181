package create_test

import (
	"net/netip"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	localv1 "github.com/slipwayhq/slipway/api/infrastructure/v1alpha1"
	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/operate/create"
	"github.com/slipwayhq/slipway/internal/policy"
)

func local(name, asked string) *localv1.LocalCluster {
	return &localv1.LocalCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "other", Name: name},
		Spec: localv1.LocalClusterSpec{Backend: localv1.LocalClusterBackend{Container: &localv1.ContainerCluster{Network: localv1.ContainerNetwork{Subnet: asked}}}}}
}

// allowed is what an operator allows; nil where it is not known.
func allowed(r string) *policy.Networks {
	if r == "" {
		return nil
	}
	return &policy.Networks{Ranges: []netip.Prefix{netip.MustParsePrefix(r)}, WidestPrefix: 12}
}

func TestNetwork(t *testing.T) {
	cases := map[string]struct {
		reason  string
		exist   []client.Object
		routes  []string
		allowed string
		want    string
		err     string
	}{
		"first":    {"nothing is taken", nil, nil, "", "172.16.0.0/18", ""},
		"clusters": {"other namespaces share the host", []client.Object{local("a", "172.16.0.0/18")}, nil, "", "172.16.64.0/18", ""},
		"routes":   {"what the host reaches otherwise is left alone", []client.Object{local("a", "172.16.0.0/18")}, []string{"172.16.64.0/20"}, "", "172.16.128.0/18", ""},
		"full":     {"the message says what can be done", []client.Object{local("a", "172.16.0.0/12")}, nil, "", "", "--subnet"},
		"operator": {"a range that is not allowed would be refused later", []client.Object{local("a", "10.20.0.0/18")}, nil, "10.20.0.0/16", "10.20.64.0/18", ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var routes []netip.Prefix
			for _, r := range tc.routes {
				routes = append(routes, netip.MustParsePrefix(r))
			}
			c := fake.NewClientBuilder().WithScheme(scheme(t)).WithObjects(tc.exist...).Build()
			got, err := create.SelectSubnet(t.Context(), c, create.Host{Routes: routes, Networks: allowed(tc.allowed)})
			if tc.err != "" {
				if err == nil || !strings.Contains(err.Error(), tc.err) {
					t.Errorf("%s: got %v, want an error with %q", tc.reason, err, tc.err)
				}
				return
			}
			if err != nil || got.String() != tc.want {
				t.Errorf("%s: got %s, %v, want %s", tc.reason, got, err, tc.want)
			}
		})
	}
	if got, err := create.SelectSubnet(t.Context(), nil, create.Host{}); err != nil || got.String() != "172.16.0.0/18" {
		t.Errorf("without a management cluster the routes decide: got %s, %v", got, err)
	}
}

// A range that is in use is refused before anything is written, with who uses it and what is free.
func TestCheckNetwork(t *testing.T) {
	mine := client.ObjectKey{Namespace: "team", Name: "demo"}
	own := local("a", "172.20.0.0/16")
	own.SetNamespace("team")
	own.SetName("demo")
	labelled := local("b", "172.20.0.0/16")
	labelled.SetNamespace("team")
	labelled.SetLabels(map[string]string{clusterv1.ClusterNameLabel: "owner"})
	cases := map[string]struct {
		reason, want string
		exist        []client.Object
		routes       []string
		err          string
		allowed      string
	}{
		"free":   {"another range is another range", "172.20.0.0/16", []client.Object{local("a", "172.21.0.0/16")}, []string{"10.0.0.0/8"}, "", ""},
		"taken":  {"the cluster is named", "172.20.0.0/16", []client.Object{labelled}, []string{"172.20.0.0/16"}, "--subnet 172.20.0.0/16 is taken by cluster team/owner; free is 172.16.0.0/18", ""},
		"inside": {"part of a range is enough", "172.16.0.0/18", []client.Object{local("a", "172.16.0.0/12")}, nil, "; delete a cluster that is no longer needed", ""},
		"host":   {"the host would lose what it reaches there", "192.0.0.0/16", nil, []string{"192.0.2.0/24"}, "--subnet 192.0.0.0/16 is taken by a network of this host, 192.0.2.0/24; free is", ""},
		"denied": {"it would be refused later", "172.20.0.0/16", nil, nil,
			"--subnet: Range 172.20.0.0/16 is not in 10.20.0.0/16: choose another one, or ask the operator to allow it in networks.ranges", "10.20.0.0/16"},
		"allowed":  {"and free", "10.20.0.0/18", nil, nil, "", "10.20.0.0/16"},
		"the same": {"that it exists is said by Apply", "172.20.0.0/16", []client.Object{own}, []string{"172.20.0.0/16"}, "", ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var routes []netip.Prefix
			for _, r := range tc.routes {
				routes = append(routes, netip.MustParsePrefix(r))
			}
			c := fake.NewClientBuilder().WithScheme(scheme(t)).WithObjects(tc.exist...).Build()
			err := create.CheckSubnet(t.Context(), c, mine, netip.MustParsePrefix(tc.want), create.Host{Routes: routes, Networks: allowed(tc.allowed)})
			if tc.err == "" && err != nil || tc.err != "" && (fault.KindOf(err) != fault.Invalid || !strings.Contains(fault.UserMessage(err), tc.err)) {
				t.Errorf("%s: got %v, want %q", tc.reason, err, tc.err)
			}
		})
	}
}

// A template of two clusters has two networks; written again, it has the one that its cluster has.
func TestHalf(t *testing.T) {
	own := local("a", "172.20.0.0/16")
	own.SetNamespace("team")
	own.SetName("demo")
	for name, tc := range map[string]struct {
		exist           []client.Object
		routes, allowed string
		want            string
	}{
		"first":       {want: "172.31"},
		"taken":       {exist: []client.Object{local("a", "172.31.64.0/18")}, routes: "172.30.0.0/24", want: "172.29"},
		"its own":     {exist: []client.Object{own}, routes: "172.20.0.0/16", want: "172.20"},
		"not allowed": {allowed: "172.24.0.0/14", want: "172.27"},
		"nothing":     {allowed: "10.20.0.0/16"},
		"no network":  {exist: []client.Object{local("a", "")}, want: "172.31"},
	} {
		t.Run(name, func(t *testing.T) {
			host := create.Host{Networks: allowed(tc.allowed)}
			if tc.routes != "" {
				host.Routes = []netip.Prefix{netip.MustParsePrefix(tc.routes)}
			}
			c := fake.NewClientBuilder().WithScheme(scheme(t)).WithObjects(tc.exist...).Build()
			got, err := create.FirstOctets(t.Context(), c, client.ObjectKey{Namespace: "team", Name: "demo"}, host)
			if err != nil || got != tc.want {
				t.Errorf("%q, %v, want %q", got, err, tc.want)
			}
		})
	}
}
