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

// commonProgram is how the programs begin that change a member of etcd.
//
//go:embed common.sh
var commonProgram string

// rebuildProgram makes the member of etcd on a node the only one of its cluster.
//
//go:embed rebuild.sh
var rebuildProgram string

// stageProgram makes data of a snapshot that is on a node.
//
//go:embed stage.sh
var stageProgram string

// restoreProgram puts that in the place of the data of the member.
//
//go:embed restore.sh
var restoreProgram string

// Folders that keep on the node what was done, and files that are locked while a program runs; the id follows.
const (
	rebuildFolder, rebuildMark = "/var/lib/slipway/etcd-rebuild-", "/run/slipway/etcd-rebuild-"
	restoreFolder, restoreMark = "/var/lib/slipway/etcd-restore-", "/run/slipway/etcd-restore-"
)

// begin sets what programs need to know of an order.
func begin(o Order) string {
	folder, mark := rebuildFolder, rebuildMark
	if o.Step != Rebuild {
		folder, mark = restoreFolder, restoreMark
	}
	return "id=" + o.ID + "\nstate=" + folder + o.ID + "\nrunning=" + mark + o.ID + "\n"
}

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

// Program is a program for bash that makes the member of etcd on a node the only one of its cluster, once for each id: by a [Rebuild], or by
// a [Restore] of what was staged. It may be ended at any point and started again: what it has done is kept on the node. A second one at
// the same time ends at once.
func Program(o Order) string {
	if o.Step == Restore {
		return begin(o) + commonProgram + restoreProgram
	}
	return begin(o) + commonProgram + rebuildProgram
}

// ProgressProgram is a program for sh that prints how far the other is: "done", "failed" and why with the last lines of its log, "running", or
// "none" where it does not run and has no result.
func ProgressProgram(o Order) string {
	return begin(o) + `
if [ -e "$state/result" ]; then cat "$state/result"; tail -n 10 "$state/log" 2>/dev/null || true
elif [ -e "$running" ] && ! flock -n "$running" true; then echo running
else echo none; fi`
}

// Files that [StageProgram] needs in the folder of [StageFolder]: the snapshot, and this program, which can restore it.
const (
	SnapshotFile   = "snapshot.db"
	RestoreCommand = "slipway"
)

// StageFolder is the folder on a node that keeps what is staged of an order.
func StageFolder(o Order) string { return restoreFolder + o.ID }

// StageProgram is a program for bash that makes data of the snapshot in the folder, beside that of the member. It ends with code 3 where
// that cannot be done, and prints why. It may be ended at any point and started again.
func StageProgram(o Order) string { return begin(o) + stageProgram }

// StagedProgram is a program for sh that prints "staged" where the other has done its work.
func StagedProgram(o Order) string {
	return begin(o) + `if [ -e "$state/staged" ]; then echo staged; else echo none; fi`
}
