package recovery

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	controlplanev1 "github.com/slipwayhq/slipway/api/controlplane/v1alpha1"
)

const id = "20261125T131500Z"

var snapshot = Snapshot{Policy: "nightly", Name: "c1-20261125T120000Z", IdentitySecret: "age"}

// Annotations are anyone's: what cannot be read is an error or nothing, and no id is more than a time.
func TestParse(t *testing.T) {
	request := map[string]string{controlplanev1.RecoverAnnotation: RecoveryRequest{ID: id, Survivor: "a", Accepted: true, Lost: []LostMember{{"b", "n-b"}}}.String()}
	got, err := ParseRequest(request)
	if err != nil || got.Survivor != "a" || !got.Discards("b") || got.Discards("a") || got.Discards("") {
		t.Errorf("%+v, %v", got, err)
	}
	for _, text := range []string{"", "{}", `{"id":"1; reboot"}`, `{"id":"` + id + `\n"}`, `{"id":1}`, `{"id":"` + id + `","survivor":"a\u001b[2J"}`, strings.Repeat(" ", maxText) + `{"id":"` + id + `"}`} {
		if got, err := ParseRequest(map[string]string{controlplanev1.RecoverAnnotation: text}); err == nil {
			t.Errorf("%q is read as %+v", text, got)
		}
		if got := ParseOrder(map[string]string{controlplanev1.EtcdOrderAnnotation: text}); got != nil {
			t.Errorf("%q is read as %+v", text, got)
		}
	}
	if got := ParseOrder(map[string]string{controlplanev1.EtcdOrderAnnotation: `{"id":"` + id + `","step":"Format"}`}); got != nil {
		t.Errorf("an unknown step is read as %+v", got)
	}
	for _, text := range []string{`{"policy":"p","name":"x"}`, `{"name":"c1-` + id + `"}`, `{"policy":"p","name":"../c1-` + id + `"}`, `{"policy":"p/q","name":"c1-` + id + `"}`,
		`{"policy":"p","name":"c1-` + id + `","identitySecret":"\u001b"}`, `{"otherCluster":true}`} {
		value := `{"id":"` + id + `","step":"Stage","survivor":"a","snapshot":` + text + `}`
		if got, err := ParseRequest(map[string]string{controlplanev1.RecoverAnnotation: value}); err == nil {
			t.Errorf("%q is read as %+v", value, got)
		}
		if got := ParseOrder(map[string]string{controlplanev1.EtcdOrderAnnotation: value}); got != nil {
			t.Errorf("%q is read as %+v", value, got)
		}
	}
	for _, o := range []EtcdOrder{{ID: id, Step: Stage}, {ID: id, Step: Restore, Snapshot: snapshot}} {
		if got := ParseOrder(map[string]string{controlplanev1.EtcdOrderAnnotation: o.String()}); got != nil {
			t.Errorf("%s is read", o)
		}
	}
	stage := EtcdOrder{ID: id, Step: Stage, Snapshot: snapshot}
	if got := ParseOrder(map[string]string{controlplanev1.EtcdOrderAnnotation: stage.String()}); got == nil || *got != stage {
		t.Errorf("%+v", got)
	}
	if at := snapshot.Time(); at.Format(IDLayout) != "20261125T120000Z" || !(Snapshot{}).Time().IsZero() {
		t.Errorf("taken %v", at)
	}
	order := EtcdOrder{ID: id, Step: Survey}
	if got := ParseOrder(map[string]string{controlplanev1.EtcdOrderAnnotation: order.String()}); got == nil || *got != order {
		t.Errorf("%+v", got)
	}
	report := &Report{ID: id, Step: Survey, Member: &MemberState{Revision: 3}}
	back := ParseReport(map[string]string{controlplanev1.EtcdReportAnnotation: report.String()})
	if diff := cmp.Diff(report, back); diff != "" || !back.IsFor(order) || back.IsFor(EtcdOrder{ID: id, Step: Rebuild}) {
		t.Error(diff)
	}
	if got, err := ParseRequest(nil); got != nil || err != nil {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestParseSurvey(t *testing.T) {
	tests := map[string]struct {
		out  string
		want MemberState
		ok   bool
	}{
		"without a leader": {"etcd_server_has_leader 0\netcd_server_proposals_committed_total 1.234567e+06\netcd_debugging_mvcc_current_revision 4711\n", MemberState{Revision: 4711, Index: 1234567}, true},
		"with a leader":    {"etcd_server_has_leader 1\n", MemberState{Leader: true}, true},
		"silent":           {"silent\n", MemberState{}, false},
		"no etcd":          {"absent\n", MemberState{}, false},
		"nonsense":         {"etcd_server_has_leader NaN\netcd_debugging_mvcc_current_revision 1e300\n", MemberState{}, false},
		"too much":         {"etcd_server_has_leader 0\netcd_debugging_mvcc_current_revision 1e300\n", MemberState{}, true},
	}
	for name, tt := range tests {
		got, err := ParseSurvey(tt.out)
		if got != tt.want || (err == nil) != tt.ok {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
}

// The programs are ones that bash can read.
func TestPrograms(t *testing.T) {
	for name, program := range map[string]string{"survey": SurveyProgram(), "rebuild": Program(EtcdOrder{ID: id, Step: Rebuild}), "progress": ProgressProgram(EtcdOrder{ID: id, Step: Rebuild}),
		"stage": StageProgram(EtcdOrder{ID: id, Step: Stage}), "staged": StagedProgram(EtcdOrder{ID: id, Step: Stage}), "restore": Program(EtcdOrder{ID: id, Step: Restore})} {
		cmd := exec.Command("bash", "-n")
		cmd.Stdin = strings.NewReader(program)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s", name, err, out)
		}
	}
}
