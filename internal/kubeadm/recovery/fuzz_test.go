package recovery

import (
	"testing"

	controlplanev1 "github.com/slipwayhq/slipway/api/controlplane/v1alpha1"
)

// FuzzAnnotations: whatever a tenant writes into the annotations of a recovery is refused, or says the same when it is written again.
func FuzzAnnotations(f *testing.F) {
	for _, text := range []string{
		`{"id":"20261125T131500Z","survivor":"cp-1","lost":[{"machine":"cp-2","node":"n2"}]}`, `{"id":"20261125T131500Z","step":"Survey"}`,
		`{"id":"20261125T131500Z","step":"Rebuild","member":{"leader":true,"revision":7}}`, `{}`, `[`, `{"id":"../x","step":"Rebuild"}`, `null`,
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		in := func(name string) map[string]string { return map[string]string{name: text} }
		if r, err := ParseRequest(in(controlplanev1.RecoverAnnotation)); err == nil && r != nil {
			again, err := ParseRequest(map[string]string{controlplanev1.RecoverAnnotation: r.String()})
			if err == nil && (again == nil || again.String() != r.String()) || err != nil && len(r.String()) <= maxText {
				t.Errorf("%q is %s and then %v: %v", text, r, again, err)
			}
		}
		_ = LostNodes(in(controlplanev1.RecoverAnnotation))
		if o := ParseOrder(in(controlplanev1.EtcdOrderAnnotation)); o != nil {
			if again := ParseOrder(map[string]string{controlplanev1.EtcdOrderAnnotation: o.String()}); again == nil || *again != *o {
				t.Errorf("%q is %s and then %v", text, o, again)
			}
		}
		if r := ParseReport(in(controlplanev1.EtcdReportAnnotation)); r != nil {
			_ = r.IsFor(EtcdOrder{ID: r.ID, Step: r.Step})
		}
	})
}

// FuzzParseSurvey: what a node prints is refused, or made of numbers that are none of its making beyond their range.
func FuzzParseSurvey(f *testing.F) {
	for _, out := range []string{
		"etcd_server_has_leader 1\netcd_debugging_mvcc_current_revision 42\netcd_server_proposals_committed_total 99\n", "etcd_server_has_leader 0", "",
		"etcd_server_has_leader NaN", "etcd_server_has_leader 1\netcd_debugging_mvcc_current_revision 1e300", "etcd_server_has_leader 1\netcd_debugging_mvcc_current_revision -1",
	} {
		f.Add(out)
	}
	f.Fuzz(func(t *testing.T, out string) {
		if m, err := ParseSurvey(out); err == nil && (m.Revision < 0 || m.Index < 0) {
			t.Errorf("%q has revision %d and index %d", out, m.Revision, m.Index)
		}
	})
}
