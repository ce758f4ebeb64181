package hosted

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hostedv1 "github.com/slipwayhq/slipway/api/controlplane/v1alpha1"
	"github.com/slipwayhq/slipway/internal/controlplane/processconfig"
)

func TestDecideRestore(t *testing.T) {
	now := time.Date(2026, 11, 25, 12, 0, 0, 0, time.UTC)
	const id = "20261125T115900Z"
	for name, test := range map[string]struct {
		reason string
		change func(*snapshot)
		does   []string
		waits  string
		starts bool // the process may be started
		asks   string
	}{
		"none":       {"", func(s *snapshot) { s.Restore = restore{} }, nil, "", true, ""},
		"asked for":  {"the control plane keeps running meanwhile", func(*snapshot) {}, []string{"fetch snapshot c-20261125T110000Z: a restore was requested"}, "", true, ""},
		"lost data":  {"it is not started empty before its snapshot is here", func(s *snapshot) { s.Process.Running = false }, []string{"fetch snapshot c-20261125T110000Z: a restore was requested"}, "", false, ""},
		"fetching":   {"", func(s *snapshot) { s.Restore.Running = true }, nil, "FetchingSnapshot", true, ""},
		"failed":     {"it is retried", func(s *snapshot) { s.Restore.Err, s.Restore.Ended = "No", now.Add(-time.Second) }, nil, "SnapshotNotFetched", true, ""},
		"failed ago": {"", func(s *snapshot) { s.Restore.Err, s.Restore.Ended = "No", now.Add(-time.Hour) }, []string{"fetch snapshot c-20261125T110000Z: a restore was requested"}, "", true, ""},
		"busy":       {"one at a time", func(s *snapshot) { s.Restore.Busy = true }, nil, "WaitingForOtherSnapshot", true, ""},
		"here":       {"the process restarts with it", func(s *snapshot) { s.Process.Data.Staged.ID = id }, nil, "", true, id},
		"restored":   {"and not answering yet", func(s *snapshot) { s.Process.Data.Restored.ID, s.Process.Ready = id, false }, nil, "", true, id},
		"removed": {"who removes the request continues with the data from before", func(s *snapshot) {
			s.Restore = restore{}
			s.Process.Data.Staged.ID, s.Process.Data.Restored.ID = id, "20200101T000000Z"
		}, nil, "", true, "20200101T000000Z"},
		"unreadable": {"", func(s *snapshot) { s.Restore = restore{Problem: "No", Reason: "RestoreRequestInvalid"} }, nil, "RestoreRequestInvalid", true, ""},
	} {
		s := snapshot{Now: now, Plane: plane(), Restore: restore{Request: &RestoreRequest{ID: id, Policy: "p", Snapshot: "c-20261125T110000Z"}}}
		s.Process.Exists, s.Process.Running, s.Process.Ready = true, true, true
		test.change(&s)
		cfg := processconfig.Config{Restore: restoreID(s)}
		s.Process.Config = cfg.Hash()
		p := planRestore(s)
		var does []string
		for _, a := range p.Actions {
			does = append(does, a.String())
		}
		waits := ""
		if len(p.Waits) > 0 {
			waits = p.Waits[0].Reason
		}
		if diff := cmp.Diff(test.does, does); diff != "" || waits != test.waits || (p.Stage.Order == 0) != test.starts || cfg.Restore != test.asks {
			t.Errorf("%s: %s: does %v, waits %q, starts %t, restores %q", name, test.reason, does, waits, p.Stage.Order == 0, cfg.Restore)
		}
	}
}

// The data may be from before the add-ons were applied: they are, whatever the status says, and only then is the request over.
func TestAddonsAfterRestore(t *testing.T) {
	const id = "20261125T115900Z"
	after := func(change func(*snapshot)) snapshot {
		return running(t, func(s *snapshot) {
			s.Restore = restore{Request: &RestoreRequest{ID: id, Policy: "p", Snapshot: "c-20261125T110000Z"}}
			s.Process.Data.Restored.ID = id
			s.Process.Config = configOf(*s).Hash()
			change(s)
		})
	}
	answers := after(func(*snapshot) {})
	want := []string{
		"do: apply the add-ons to the workload cluster, revision " + answers.Plane.Status.AddonsHash,
		"do: remove the restore request: the API server is ready with snapshot c-20261125T110000Z",
	}
	if diff := cmp.Diff(want, texts(decide(answers))); diff != "" {
		t.Errorf("it answers (-want +got):\n%s", diff)
	}
	silent := after(func(s *snapshot) { s.Process.Ready = false })
	if diff := cmp.Diff([]string{"wait: The API server is not ready yet"}, texts(decide(silent))); diff != "" {
		t.Errorf("it does not answer yet (-want +got):\n%s", diff)
	}
}

func TestParseRestore(t *testing.T) {
	good := RestoreRequest{ID: "20261125T115900Z", Policy: "p", Snapshot: "c-20261125T110000Z", OtherCluster: true}
	for text, ok := range map[string]bool{
		good.String(): true, "": false, "{}": false, `{"id":"../x","policy":"p","snapshot":"c-20261125T110000Z"}`: false,
		`{"id":"20261125T115900Z","policy":"p","snapshot":"../../etc/passwd"}`: false, `{"id":"20261125T115900Z","snapshot":"c-20261125T110000Z"}`: false,
	} {
		p := &hostedv1.HostedControlPlane{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{hostedv1.RestoreAnnotation: text}}}
		got, err := parseRestore(p)
		if (err == nil) != ok || ok && *got != good {
			t.Errorf("%s: %v, %v", text, got, err)
		}
	}
	if got, err := parseRestore(plane()); got != nil || err != nil {
		t.Errorf("none: %v, %v", got, err)
	}
}
