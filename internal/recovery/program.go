package recovery

import (
	_ "embed"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// surveyProgram prints what the member of etcd on a node says of itself, as its metrics do.
//
//go:embed survey.sh
var surveyProgram string

// rebuildProgram makes the member of etcd on a node the only one of its cluster.
//
//go:embed rebuild.sh
var rebuildProgram string

// stateFolder keeps on the node what was done; the id follows.
const stateFolder = "/var/lib/slipway/etcd-rebuild-"

// runningMark is locked while the program runs; the id follows.
const runningMark = "/run/slipway/etcd-rebuild-"

// SurveyProgram is a program for bash, for [ParseSurvey].
func SurveyProgram() string { return surveyProgram }

// ParseSurvey reads what the program printed. What runs on a node is its tenant's: nothing of it is kept but numbers.
func ParseSurvey(out string) (Member, error) {
	found := map[string]float64{}
	for line := range strings.Lines(out) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		if n, err := strconv.ParseFloat(value, 64); err == nil && n >= 0 && n < math.MaxInt64 {
			found[name] = n
		}
	}
	leader, ok := found["etcd_server_has_leader"]
	if !ok {
		return Member{}, fmt.Errorf("etcd on this node does not say whether it has a leader")
	}
	return Member{
		Leader: leader == 1, Revision: int64(found["etcd_debugging_mvcc_current_revision"]), Index: int64(found["etcd_server_proposals_committed_total"]),
	}, nil
}

// RebuildProgram is a program for bash that makes the member of etcd on a node the only one of its cluster, once for each id. It may
// be ended at any point and started again: what it has done is kept on the node. A second one at the same time ends at once.
func RebuildProgram(id string) string {
	return "id=" + id + "\nstate=" + stateFolder + id + "\nrunning=" + runningMark + id + "\n" + rebuildProgram
}

// ProgressProgram is a program for sh that prints how far the other is: "done", "failed" and why with the last lines of its log, "running", or
// "none" where it does not run and has no result.
func ProgressProgram(id string) string {
	return "state=" + stateFolder + id + "\nrunning=" + runningMark + id + `
if [ -e "$state/result" ]; then cat "$state/result"; tail -n 10 "$state/log" 2>/dev/null || true
elif [ -e "$running" ] && ! flock -n "$running" true; then echo running
else echo none; fi`
}
