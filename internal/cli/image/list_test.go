package image

import (
	"bytes"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/slipwayhq/slipway/internal/nodeimage"
)

func TestListText(t *testing.T) {
	now := time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	cases := map[string]struct {
		reason string
		images []nodeimage.Image
		want   string
	}{
		"none": {"a new user is told the next step", nil, "There is no node image yet; \"slipway image build\" makes one.\n"},
		"two": {"what they are for, how big and how old", []nodeimage.Image{
			{Ref: "slipway.dev/node:v1.36.3", KubernetesVersion: "v1.36.3", Size: 534_000_000, Created: now.Add(-3 * time.Hour)},
			{Ref: "slipway.dev/node-control-plane:v1.36.3", KubernetesVersion: "v1.36.3", ControlPlane: true, Size: 997_400_000, Created: now.Add(-time.Minute)},
		}, "" +
			"IMAGE                                   KUBERNETES  ROLE           SIZE    AGE\n" +
			"slipway.dev/node:v1.36.3                v1.36.3     worker         534 MB  3h\n" +
			"slipway.dev/node-control-plane:v1.36.3  v1.36.3     control plane  997 MB  60s\n"},
		"old": {"a month without fixes is said, with the command", []nodeimage.Image{
			{Ref: "a:1", KubernetesVersion: "v1.36.3", ControlPlane: true, Size: 1e6, Created: now.Add(-45 * 24 * time.Hour)},
			{Ref: "b:1", KubernetesVersion: "v1.36.3", Size: 1e6, Created: now.Add(-29 * 24 * time.Hour)},
		}, "" +
			"IMAGE  KUBERNETES  ROLE           SIZE  AGE\n" +
			"a:1    v1.36.3     control plane  1 MB  45d\n" +
			"b:1    v1.36.3     worker         1 MB  29d\n" +
			"\na:1 lacks the fixes that Debian published in the last 45d; \"slipway image build --refresh --kubernetes-version v1.36.3 --control-plane\" takes them up.\n"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			if err := listText(&out, now, listRowsOf(tc.images)); err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(tc.want, out.String()); d != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, d)
			}
		})
	}
}
