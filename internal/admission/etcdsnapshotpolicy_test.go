package admission

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hostedv1 "github.com/slipwayhq/slipway/api/controlplane/v1alpha1"
	"github.com/slipwayhq/slipway/internal/policy"
)

func TestEtcdSnapshotPolicy(t *testing.T) {
	good := hostedv1.EtcdSnapshotPolicySpec{ClusterName: "demo", Schedule: "@daily", Destination: hostedv1.SnapshotDestination{Folder: &hostedv1.SnapshotFolder{}}}
	allowed := policy.Default()
	allowed.Snapshots.Folders = []policy.SnapshotFolder{{Path: "/srv/snapshots", Namespaces: []string{"team-a"}}}
	allowed.Snapshots.Endpoints = []string{"store.example:9000"}
	for name, tc := range map[string]struct {
		reason string
		change func(*hostedv1.EtcdSnapshotPolicySpec)
		want   []string
		says   string
	}{
		"good":     {"the default folder is always allowed", func(*hostedv1.EtcdSnapshotPolicySpec) {}, nil, ""},
		"schedule": {"it would never be due", func(s *hostedv1.EtcdSnapshotPolicySpec) { s.Schedule = "0 0 31 2 *" }, []string{"spec.schedule"}, "never due"},
		"selector": {"it cannot be read", func(s *hostedv1.EtcdSnapshotPolicySpec) {
			s.ClusterSelector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a", Operator: "Near"}}}
		}, []string{"spec.clusterSelector"}, "Near"},
		"recipient": {"an identity must never be there", func(s *hostedv1.EtcdSnapshotPolicySpec) {
			s.Encryption.Recipients = []string{"age1ql3z7hjy54pw3hyww5ayyfg7zqgvc7w3j2elw8zmrj2kg5sfn9aqmcac8p", "AGE-SECRET-KEY-1X"}
		}, []string{"spec.encryption.recipients[1]"}, "age-keygen"},
		"allowed folder":  {"below one that is listed", func(s *hostedv1.EtcdSnapshotPolicySpec) { s.Destination.Folder.Path = "/srv/snapshots/team-a" }, nil, ""},
		"other folder":    {"that is the host's", func(s *hostedv1.EtcdSnapshotPolicySpec) { s.Destination.Folder.Path = "/etc" }, []string{"spec.destination.folder.path"}, "snapshots.folders"},
		"beside a folder": {"it only begins alike", func(s *hostedv1.EtcdSnapshotPolicySpec) { s.Destination.Folder.Path = "/srv/snapshots2" }, []string{"spec.destination.folder.path"}, "snapshots.folders"},
		"out of a folder": {"dots lead out", func(s *hostedv1.EtcdSnapshotPolicySpec) { s.Destination.Folder.Path = "/srv/snapshots/../../etc" }, []string{"spec.destination.folder.path"}, "must not contain .."},
		"endpoint": {"allowed as it stands there", func(s *hostedv1.EtcdSnapshotPolicySpec) {
			s.Destination = hostedv1.SnapshotDestination{S3: &hostedv1.SnapshotBucket{Endpoint: "store.example:9000"}}
		}, nil, ""},
		"other endpoint": {"the manager would connect to it", func(s *hostedv1.EtcdSnapshotPolicySpec) {
			s.Destination = hostedv1.SnapshotDestination{S3: &hostedv1.SnapshotBucket{Endpoint: "169.254.169.254"}}
		}, []string{"spec.destination.s3.endpoint"}, "snapshots.endpoints"},
	} {
		spec := *good.DeepCopy()
		tc.change(&spec)
		object := &hostedv1.EtcdSnapshotPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: "p"}, Spec: spec}
		got := Validate(Request{New: object, Policy: allowed})
		if diff := cmp.Diff(tc.want, problems(got)); diff != "" {
			t.Errorf("%s: %s (-want +got):\n%s", name, tc.reason, diff)
		}
		if tc.says != "" && !strings.Contains(got.Errors.ToAggregate().Error(), tc.says) {
			t.Errorf("%s: says %v", name, got.Errors)
		}
		labelled := object.DeepCopy()
		labelled.Labels = map[string]string{"a": "b"}
		if unchanged := Validate(Request{New: labelled, Old: object}); len(unchanged.Errors) > 0 {
			t.Errorf("%s: a label cannot be changed: %v", name, unchanged.Errors)
		}
	}
	if other := allowed.DeniedSnapshotFolder("team-b", "/srv/snapshots"); !strings.Contains(other, "namespace team-b") {
		t.Errorf("another namespace: %q", other)
	}
}
